"""The files of a search after a kill at any moment between two of its writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import milpbn
from milpbn.certificate.format import load_proof
from milpbn.certificate.verify.check import verify
from milpbn.data import read_table
from milpbn.solving import files
from milpbn.util import clock


def test_what_a_kill_between_two_files_leaves_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = read_table("instance:tic-tac-toe").dataset("train")
    output, proof = tmp_path / "r.json", tmp_path / "p.npz"
    moments: list[Path] = []

    def copied(call: Any) -> Any:
        def called(*arguments: Any) -> None:
            call(*arguments)
            moments.append(tmp_path / f"moment{len(moments)}")
            shutil.copytree(tmp_path, moments[-1], ignore=shutil.ignore_patterns("moment*"))

        return called

    monkeypatch.setattr(files, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(files, "SAVE_FIRST", 0.0)
    monkeypatch.setattr(clock, "PAUSES", 0.0)
    monkeypatch.setattr(files, "save_certificate", copied(files.save_certificate))
    monkeypatch.setattr(milpbn.Result, "save", copied(milpbn.Result.save))
    score = milpbn.Score(p=0.6, max_parents=1)
    known = {"output": output, "certificate": proof, "verbose": False, "threads": 1}
    milpbn.solve(data, score, start=milpbn.Structure.empty(data.names), **known)
    first = len(moments)
    assert not (moments[0] / proof.name).exists()
    milpbn.solve(data, score, **known)
    # The proof of the first run does not stand beside the result of the second.
    assert not (moments[first] / proof.name).exists()
    pairs = newer = 0
    for moment in moments:
        values = json.loads((moment / output.name).read_text())
        if values["structure"] is None or not (moment / proof.name).exists():
            continue
        if load_proof(moment / proof.name)[0]["structure"] is None:
            continue
        header = verify(None, moment / proof.name, data)
        proved = verify(values, moment / proof.name, data)
        assert values["objective"] <= header.objective
        assert proved.bound <= values["bound"]
        pairs += 1
        newer += header.objective > values["objective"] or header.bound < values["bound"]
    assert pairs > 5
    assert newer
