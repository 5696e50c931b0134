"""The search parameters: each is documented, and docs/tuning.md is up to date."""

from __future__ import annotations

import json
import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from milpbn.engine.tuning import TUNING, Tuning, page
from milpbn.heuristics.tuning import ClimbTuning
from milpbn.util.parameters import COMPARED, parameters

DOCS = Path(__file__).parents[2] / "docs"
KINDS = (*(type(f.default) for f in fields(Tuning)), ClimbTuning)
ALL = [(kind.__name__, field) for kind in KINDS for field in parameters(kind)]


@pytest.mark.parametrize(("kind", "field"), ALL, ids=lambda x: x if isinstance(x, str) else x.name)
def test_every_parameter_has_a_unit_an_effect_and_evidence(kind, field):
    assert isinstance(field.default, int | float)
    for key in ("unit", "effect", "evidence"):
        assert field.metadata[key].strip()
    evidence = field.metadata["evidence"]
    heading = re.fullmatch(r'"(.+)"', evidence)
    if heading is not None:
        decisions = " ".join((DOCS / "decisions.md").read_text(encoding="utf-8").split())
        assert f"**{heading.group(1)}**" in decisions
    else:
        assert (DOCS.parent / evidence).exists()


def test_what_refers_to_the_comparison_is_in_it():
    compared = json.loads((DOCS.parent / COMPARED).read_text(encoding="utf-8"))
    parts = {type(f.default).__name__: f.name for f in fields(Tuning)} | {"ClimbTuning": "climb"}
    named = {f"{parts[kind]}.{field.name}" for kind, field in ALL if field.metadata["evidence"] == COMPARED}
    threads = {f"{part}.parallel_from" for sizes in compared["threads"].values() for part in sizes}
    assert named <= {*compared["parameters"], *threads}
    assert {"half", "double"} <= set.intersection(*(set(x) for x in compared["parameters"].values()))


def test_parameters_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        TUNING.root.patience = 1


def test_the_page_is_up_to_date():
    assert (DOCS / "tuning.md").read_text(encoding="utf-8") == page(), (
        "python -m milpbn.engine.tuning > docs/tuning.md"
    )
