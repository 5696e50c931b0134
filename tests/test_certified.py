"""Benchmarks: leaves of certified models and their probabilities, what regret is, and the page over partitions."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from milpbn.data import read_table
from milpbn.experiments.protocol import Part

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("benchmarks are not there", allow_module_level=True)
sys.path.insert(1, str(BENCHMARKS))

import certified  # noqa: E402
import partitions  # noqa: E402
import regret  # noqa: E402

BIF = """network small {} variable c { type discrete [ 2 ] { None, ill }; } variable a { type discrete [ 2 ] { x, y }; }
probability ( c ) { table 0.7, 0.3; } probability ( a | c ) { (None) 0.9, 0.1; (ill) 0.2, 0.8; }"""


def test_trees_have_smoothed_leaves_and_the_setting_that_inner_folds_prefer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = pd.DataFrame({"x": np.tile([0.0, 1.0, 2.0], 40), "c": np.tile(["a", "b", "b"], 40)})
    table = read_table(frame, target="c", continuous=["x"])
    part = Part("fold-1", table, np.arange(60), np.arange(60, 120))

    def learner(x: np.ndarray, y: np.ndarray, cut: float, seconds: float) -> certified.Learnt:
        return lambda x: certified.leaves_of((0, 1, 0), x > cut), {"leaves": 2, "optimal": True}

    monkeypatch.setitem(certified.PEERS, "stub", ("numpy", learner, (1.5, 0.5)))
    found, known = certified.probabilities(part, "stub", 1.0)
    assert (known["setting"], known["size"]) == (0.5, 3)
    assert found[:3, 0] == pytest.approx([21 / 22, 1 / 42, 1 / 42])


def test_regret_is_the_expected_log_ratio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small.bif.gz").write_bytes(gzip.compress(BIF.encode()))
    monkeypatch.setitem(regret.NETWORKS, "small", "c")
    monkeypatch.setattr(
        regret, "predicted", lambda name, part, seconds: (["sill", "sNone"], np.full((10_000, 2), 0.5))
    )
    options = SimpleNamespace(data_dir=tmp_path, time_limit=1.0)
    uniform = regret.cell("small", 200, "stub", options)
    joint = np.array([[0.63, 0.07], [0.06, 0.24]])  # class, state of a
    entropy = -np.sum(joint * np.log(joint / joint.sum(axis=0)))
    assert uniform["bayes"] == pytest.approx(entropy, abs=0.01)
    assert uniform["regret"] == pytest.approx(np.log(2) - uniform["bayes"])
    monkeypatch.undo()
    monkeypatch.setitem(regret.NETWORKS, "small", "c")
    learnt = regret.cell("small", 20_000, "nb", options)
    assert 0 <= learnt["regret"] < 0.001
    assert learnt["accuracy lost"] == 0


def test_the_page_over_partitions_has_its_remarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seed-1.json").write_text('{"budgets": {"selection": 2.5, "final": 60.0}}')
    (tmp_path / "remarks.md").write_text("Remarks stay.")
    monkeypatch.setattr(partitions, "catalog_names", lambda folder: [])
    monkeypatch.setattr(partitions, "collect", lambda plan, store: None)
    monkeypatch.setattr(partitions, "tables", lambda others, first: "| table |")
    given = ["--only-cached", "--data-dir", str(tmp_path), "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["partitions.py", *given])
    partitions.main()
    page = (tmp_path / "README.md").read_text()
    assert "had 2.5 s, each final search 60 s" in page
    assert page.endswith("Remarks stay.\n\n| table |\n")
