"""The tables, from cells that are written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from milpbn.experiments import tables
from milpbn.experiments.base import Budgets, Figures
from milpbn.experiments.cells import Kept, KeptCells
from milpbn.experiments.page import page
from milpbn.experiments.published import Accuracy, Published
from milpbn.experiments.runner import Plan, task_of
from milpbn.experiments.tables import collect, gaps, verdicts, wins

PUBLISHED = Published(
    source="A paper.",
    gaps={"folded": {"sm": 0.5}},
    accuracies={
        "folded": {"nb": Accuracy(80.0, 5.0), "tan": Accuracy(95.0, 4.99), "sm": None},
        "split": {"nb": Accuracy(50.0, 1.0)},
    },
    wins={"nb": {"tan": (7, 2)}},
)


@pytest.fixture
def plan(catalog):
    return Plan(
        data=("folded", "split"),
        methods=("nb", "tan", "sm"),
        budgets=Budgets(selection=5, final=10),
        data_dir=catalog,
    )


@pytest.fixture
def store(tmp_path, plan, monkeypatch):
    """Naive Bayes has 9, TAN 8, 9 or 10 of 10 rows of every fold, SM all; only naive Bayes has the test set."""
    monkeypatch.setattr(tables, "published", lambda: PUBLISHED)
    monkeypatch.setattr("milpbn.experiments.page.published", lambda: PUBLISHED)
    kept = KeptCells(tmp_path / "cells")
    for i in range(5):
        for name, right in (("nb", 9), ("tan", (8, 9, 9, 9, 10)[i]), ("sm", 10)):
            found = {"figures": figures(right, 10)}
            if name == "sm":
                gap = {"relative_to_bound": 0.00501 if i == 2 else 0.0}
                search = {"gap": gap, "reason": "feasible" if i == 2 else "optimal"}
                found["search"] = {**search, "certified": True, "verified": i != 1}
                found["choice"] = {"p": 0.9 if i else 0.6, "max_parents": 2}
            kept.write(task_of(plan, "folded", f"fold-{i + 1}", name).cell, Kept(found))
    kept.write(task_of(plan, "split", "test", "nb").cell, Kept({"figures": figures(30, 40)}))
    kept.write(task_of(plan, "split", "test", "tan").cell, Kept({}, "It failed."))
    return kept


def figures(right: int, rows: int) -> dict:
    correct = np.arange(rows) < right
    return Figures(correct, 0.5, 0.25, 0).to_dict()


def test_entries_are_complete_or_absent(plan, store):
    collected = collect(plan, store)
    assert set(collected.entries) == {("folded", "nb"), ("folded", "tan"), ("folded", "sm"), ("split", "nb")}
    entry = collected.entry("folded", "tan")
    assert entry.accuracy == pytest.approx(90.0)
    assert entry.half_width == pytest.approx(
        100 * 2.776 * np.std([0.8, 0.9, 0.9, 0.9, 1.0], ddof=1) / 5**0.5, rel=1e-3
    )
    assert (entry.log_loss, entry.brier) == (0.5, 0.25)
    assert collected.entry("split", "nb").half_width == pytest.approx(
        196 * (0.75 * 0.25 / 40) ** 0.5, rel=1e-4
    )


def test_gaps_are_the_largest_of_the_folds(plan, store):
    (gap,) = gaps(collect(plan, store))
    assert (gap.data, gap.method, gap.published) == ("folded", "sm", 0.5)
    assert gap.entry.worst_gap == pytest.approx(0.501)
    assert gap.holds  # 0.50 with the published decimals
    assert (gap.entry.count("optimal"), gap.entry.count("verified"), gap.entry.count("certified")) == (
        4,
        4,
        5,
    )
    assert gap.entry.chosen("p") == "0.6 (1), 0.9 (4)"
    assert gap.entry.chosen("max_parents") == "2"


def test_accuracies_beside_the_published_interval(plan, store):
    found = {
        (v.data, v.method): (v.holds, v.above)
        for m in plan.methods
        for v in verdicts(collect(plan, store), m)
    }
    assert found == {
        ("folded", "nb"): (True, True),
        ("folded", "tan"): (False, False),  # 90.00 is just below 90.01
        ("split", "nb"): (True, True),
    }


def test_wins_count_the_sets_that_both_have(plan, store):
    collected = collect(plan, store)
    assert wins(collected, "sm", "nb") == (1, 1, 1)
    assert wins(collected, "nb", "sm") == (0, 0, 1)
    assert wins(collected, "nb", "tan") == (0, 0, 1)


def test_the_page_says_what_is_missing_failed_and_below(plan, store):
    text = page(plan, store, "## Remarks\n\nSomething.\n")
    assert "- split: sm (1)" in text
    assert "- split test tan: It failed." in text
    assert "Something." in text
    assert "| NB | 2 of 2 | folded, split | - | +17.50 |" in text
    assert "| TAN | 0 of 1 | - | folded (90.00 < 90.01) | -5.00 |" in text
    assert "| folded | SM | 0.501 | 0.5 | 10 | 4 of 5 | 5 of 5 | 4 of 5 | 0.6 (1), 0.9 (4) | 2 |" in text
    assert "90.00 ± 8.78*<br>95.00 ± 4.99" in text
    assert "Gaps at most the published ones: 1 of 1." in text
    assert "0/0 [1]<br>7/2" in text
    assert "5 s for each trial of the selection, 10 s for each final search" in text
