"""Random searches of Roth & Pernkopf (2020): order, budget, choice by validation, page."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from statistics import fmean

import pytest
from experiments_common import write_digits

from milpbn.experiments.cells import Kept, KeptCells
from milpbn.experiments.paper import Wanted, compute, state
from milpbn.experiments.r20 import PUBLISHED, R20, Experiment, RandomSearch, chosen_error, experiments
from milpbn.learners.differentiable.presets import SUBSET_K, search_one, search_two


@pytest.fixture
def folder(tmp_path):
    write_digits(tmp_path, "letter-discretised")
    write_digits(tmp_path, "satimage-discretised", folds=5)
    return tmp_path


def search(folder, title="letter", **changes) -> RandomSearch:
    return replace(
        RandomSearch(title=title, kinds=tuple(PUBLISHED[title]), epochs=1, data_dir=folder, count=30),
        **changes,
    )


def test_kinds_take_turns_and_k_shares_the_point(folder):
    found = [task.cell.options for task in search(folder).tasks()]
    closed, hybrid = found[:2], found[2:]
    assert [options["learner"] for options in closed] == ["nb", "tan"]
    one = hybrid[:7]
    assert [o["structure"] for o in one] == ["naive-bayes", "random", "chow-liu", *["subset"] * 3, "all"]
    subset = [o for o in hybrid if o["structure"] == "subset"]
    points = search_two(30)
    for k, options in enumerate(subset):
        assert options["lambda_"] == points[k // 3].lambda_
    assert {o["k"] for o in subset[:3]} == set(SUBSET_K)
    # All selections of the first ordering come before the second one: Figure 3d has one ordering.
    assert [o["ordering"] for o in subset[: 3 * 5 + 1]] == [0] * 15 + [1]
    assert {o["selection"] for o in subset[:15]} == set(range(5))
    assert one[0]["eta"] == search_one(30)[0].eta
    assert (one[3]["eta"], one[3]["batch_size"]) == (10.0, 100)
    # On satimage the orderings come first: they are in Figure 3c.
    other = [t.cell.options for t in search(folder, "satimage").tasks() if t.part == "fold-1"]
    assert [o["ordering"] for o in other if o.get("structure") == "subset"][:15:3] == list(range(5))


def test_all_folds_of_an_experiment_are_together(folder):
    tasks = search(folder, "satimage").tasks()[10:]
    groups = [tasks[k : k + 5] for k in range(0, 50, 5)]
    assert all(len({task.cell.options["structure"] for task in group}) == 1 for group in groups)
    assert all([task.part for task in group] == [f"fold-{k}" for k in range(1, 6)] for group in groups)


def test_a_budget_is_kept_and_a_larger_one_goes_on(folder):
    store = KeptCells(folder / "out")
    none = search(folder, budget=0.0)
    assert list(compute(none, store, folder / "out")) == []
    little = search(folder, budget=0.02)
    first = list(compute(little, store, folder / "out"))
    spent = state(little, store).spent
    assert spent >= 0.02
    assert len(first) >= 1
    assert list(compute(little, store, folder / "out")) == []
    assert state(little, store).left == 0
    more = search(folder, budget=spent + 0.02)
    assert len(list(compute(more, store, folder / "out"))) >= 1
    kept = [store.read(task.cell) is not None for task in more.tasks()]
    assert all(a >= b for a, b in pairwise(kept))  # in order, without holes


def test_the_choice_by_validation_is_made_for_every_fold():
    def made(errors, validation):
        shares = [
            {"r": {"test_error": e, "validation_error": v}} for e, v in zip(errors, validation, strict=True)
        ]
        return Experiment({"structure": "all"}, shares)

    those = [made([0.10, 0.20], [1.0, 9.0]), made([0.30, 0.05], [2.0, 3.0])]
    assert chosen_error(those) == pytest.approx(fmean([10.0, 5.0]))
    assert min(one.error for one in those) == pytest.approx(15.0)


def test_an_experiment_counts_with_all_its_folds(folder):
    study = search(folder, "satimage", kinds=("all",), count=2)
    store = KeptCells(folder / "out")
    rates = {
        "0.003": {"test_error": 0.5, "validation_error": 0.4},
        "0.03": {"test_error": 0.2, "validation_error": 0.3},
    }
    for task in study.tasks()[:9]:
        store.write(task.cell, Kept({"rates": rates}), seconds={"wall": 2.0, "processor": 1.0})
    (one,) = experiments(study, store)
    assert one.error == 20.0
    assert (one.kind, len(one.parts)) == ("all", 5)
    assert state(study, store).spent == 9.0


def test_the_page_has_the_table_and_the_figures(folder):
    wanted = Wanted(data_dir=folder, budget=2.0, epochs=1, only=("letter", "ml nb", "chow-liu", "subset"))
    paper, store, out = R20(), KeptCells(folder / "out"), folder / "out"
    assert list(compute(*paper.studies(paper.choose(wanted), wanted), store, out))
    every = replace(wanted, only=())
    choice = paper.choose(every)
    assert (choice.data, choice.skipped) == (("letter", "satimage"), ("usps", "mnist"))
    text = paper.page(paper.studies(choice, every), store, out)
    rows = {row.split(" | ")[1]: row.split(" | ") for row in text.splitlines() if row.startswith("| letter")}
    assert rows["NB, maximum likelihood"][2] == "25.89"
    best, validated, count = rows["Chow-Liu"][3:]
    assert 0 <= float(best) <= float(validated) <= 100
    assert int(count.rstrip(" |")) >= 1
    assert rows["TAN All"][3] == "-"
    assert "letter: kinds of structures" in (out / "figure-2.svg").read_text()
    assert "one ordering, K = 8: parent subsets" in (out / "figure-3.svg").read_text()
