"""Tests of the campaign itself: its scores are the oracle's, it draws every option, and it finds planted errors."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest

from campaign.case import Case, case_of
from campaign.checks import check, truth_of
from campaign.claims import Failure, check_result
from campaign.driver import run
from campaign.exact import Scores, truth
from campaign.failures import report
from campaign.forge import change_arrays, change_json, change_solution
from campaign.generator import SCORES, draw
from campaign.refusals import backend_of, ruled_out
from campaign.shrink import shrink
from campaign.tally import Tally
from milpbn.data.dataset import Dataset


def random_case(seed: int, name: str) -> tuple[Case, Dataset]:
    """A case, and the same case in the form that the oracle takes."""
    rng = np.random.default_rng([seed, SCORES.index(name)])
    data = oracle.random_dataset(rng, 3, 3, 3, 12, weights=True)
    score: dict[str, Any] = {"name": name, "max_parents": 3}
    if name in ("sm", "sbm"):
        score["gamma"] = 1.25
    if name in oracle.MARGIN_SCORES:
        score |= {"hybrid": 0.3, "penalty": 0.2, "smoothing": 0.7, "smoothing_towards": "class"}
    if name == "bdeu":
        score["equivalent_sample_size"] = 2.5
    return case_of(data, score), data


@pytest.mark.parametrize("name", SCORES)
def test_exact_scores_equal_those_of_the_oracle(name: str) -> None:
    for seed in range(2):
        case, data = random_case(seed, name)
        found = truth(case)
        score = {
            "ess" if k == "equivalent_sample_size" else k: v for k, v in case.score.items() if k != "name"
        }
        # Likelihood and penalty tell all parent sets apart, and are searched over all; generative scores are not.
        sets = "all" if name in oracle.MARGIN_SCORES else "paper"
        best = oracle.enumerate_best(data, name, parent_sets=sets, **score)
        assert set(found.optimal) <= set(best.structures) if found.values else not best.structures
        assert all(
            float(value) == pytest.approx(
                oracle.score_structure(
                    data, graph, name, **{k: v for k, v in score.items() if k != "max_parents"}
                ),
                rel=1e-12, abs=1e-10,
            )
            for graph, value in list(found.values.items())[:: max(1, len(found.values) // 40)]
        )  # fmt: skip


def test_a_case_without_two_classes_must_be_refused() -> None:
    """Its rows with a class that occurs in no other row lack values; without any row it has no class at all."""
    case = draw(643675103399, "mixed")
    assert len(case.training.states[-1]) > 1
    for few in (case, case.but(rows=[], weights=[])):
        assert few.score["name"] == "cll"
        assert not truth(few).values
        assert ruled_out(few, truth(few))


def test_sums_are_exact() -> None:
    """Weights of 1e9 and 1e-9 in one sum, and a log-likelihood that nearly cancels."""
    case = Case(
        names=["X", "C"],
        labels=[["a", "b"], ["c", "d"]],
        rows=[[0, 0], [0, 1], [1, 1]],
        weights=[1e9, 1e-9, 1e9],
        score={"name": "ll", "max_parents": 1},
    )
    scores = Scores(case)
    naive_bayes, empty = (Fraction(scores.of(graph) or 0) for graph in (((1,), ()), ((), ())))
    # Given the class, X has one value except for a weight of 1e-9 in 1e9: the terms are -1e-9 log(1e18 + 1) and
    # -1e9 log(1 + 1e-18).
    tail = -1e-9 * (18 * np.log(10)) - 1e-9
    assert float(naive_bayes - empty) == pytest.approx(2e9 * np.log(2) + tail, rel=1e-15)
    assert scores.local(0, (1,)) / (1 << 320) == pytest.approx(tail, rel=1e-9)


def test_seeds_give_the_same_cases_and_records_come_back() -> None:
    for seed in range(10):
        case = draw(seed)
        assert draw(seed) == case
        assert Case.from_json(case.to_json()) == case


def test_the_generator_draws_every_kind_of_option() -> None:
    cases = [draw(seed) for seed in range(200)]
    seen: Counter[str] = Counter()
    for case in cases:
        training = case.training
        seen.update({f"score {case.score['name']}", f"backend {backend_of(case)}", case.way})
        seen.update(f"option {key}" for key in case.options)
        seen.update(f"constraint {key}" for key in case.constraints)
        seen.update(f"score option {key}" for key in case.score)
        seen["certificate"] += case.certificate
        seen["start"] += case.start is not None
        seen["many states"] += max(map(len, case.labels[:-1])) > 100
        seen["many classes"] += len(case.labels[-1]) > 30
        seen["constant"] += any(len(states) == 1 for states in training.states)
        seen["wide weights"] += max(case.weights) > 1e12 * min(case.weights)
        seen["missing"] += any(-1 in row for row in case.rows)
        seen["unseen states"] += case.declared and any(
            len({row[i] for row in training.rows}) < len(states) for i, states in enumerate(training.states)
        )
    wanted = [f"score {name}" for name in SCORES]
    wanted += [f"backend {name}" for name in ("native", "highs", "cbc", "cpsat", "scip")]
    wanted += [
        f"option {name}"
        for name in (
            "acyclicity", "warm_start", "root_bound", "reduce", "merge", "subset", "root_only", "gap_rel",
        )
    ]  # fmt: skip
    wanted += [
        f"constraint {name}"
        for name in (
            "required", "forbidden", "tiers", "max_children", "max_features", "fixed", "allowed", "arc_weights",
        )
    ]  # fmt: skip
    wanted += [
        f"score option {name}"
        for name in (
            "p", "gamma", "smoothing", "smoothing_towards", "penalty", "hybrid", "leave_one_out", "parent_sets",
        )
    ]  # fmt: skip
    wanted += ["python", "command", "certificate", "start", "many states", "many classes", "constant"]
    wanted += ["wide weights", "missing", "unseen states"]
    assert [name for name in wanted if not seen[name]] == []


def planted(case: Case, tmp_path: Path) -> dict[str, Any]:
    answer = run(case, tmp_path)
    assert answer.result is not None
    known = truth_of(case.problem)
    assert check_result(case, known, answer.result, None) == []
    return answer.result


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda r: r.update(objective=r["objective"] * (1 + 3e-9)), "wrong objective"),
        (lambda r: r.update(bound=r["objective"] - 1e-3), "certified bound below the optimum"),
        (lambda r: r.update(bound=r["bound"] - 2 * (r["bound"] - r["objective"]) - 1e-12), "by rounding"),
        (lambda r: r["structure"].update(X1=["C"], X2=["C"], X3=[], C=[]), "wrong objective"),
        (lambda r: r["structure"].update(X1=["X2"], X2=["X1"]), "breaks a constraint"),
        (lambda r: r["structure"].update(C=["X1"]), "breaks a constraint"),
        (lambda r: r["status"].update(reason="feasible"), "wrong status"),
        (lambda r: r["gap"].update(absolute=1.0), "wrong gap"),
        (lambda r: r["trace"].insert(0, [0.0, r["bound"] + 1, None]), "incumbent above the optimum"),
        (lambda r: r["trace"].append([0.0, None, r["bound"] + 1]), "trace goes back"),
        (lambda r: r["proved"].update(out=r["proved"]["in"]), "wrong proved arc"),
        (lambda r: r["data"].update(samples=3), "wrong size"),
        (lambda r: r.update({"class": "X1"}), "wrong class"),
    ],
)
def test_wrong_results_that_are_planted_are_detected(
    change: Callable[[dict[str, Any]], None], kind: str, tmp_path: Path
) -> None:
    case, _ = random_case(5, "sm")
    case = case.but(score={"name": "sm", "p": 0.9, "class_parents": False}, options={"threads": 1})
    result = copy.deepcopy(planted(case, tmp_path))
    assert result["proved"]["in"]
    change(result)
    found = check_result(case, truth_of(case.problem), result, None)
    assert any(kind in failure.kind for failure in found), found


def test_shrinking_keeps_what_fails_and_drops_the_rest() -> None:
    """The failure needs a weight of a million in one class and a second class; everything else is removed."""
    case = draw(7).but(
        names=["X1", "X2", "C"],
        labels=[["a", "b"], ["a", "b", "c"], ["k", "l", "m"]],
        rows=[[k % 2, k % 3, k % 3] for k in range(18)],
        weights=[2.5] * 17 + [1.25e6],
        copies=[],
        constraints={"forbidden": [["X1", "X2"]]},
        options={"threads": 2, "merge": False},
    )

    def fails(other: Case) -> bool:
        classes = {row[-1] for row in other.rows}
        return max(other.weights) >= 1e6 and len(classes) > 1

    small = shrink(case, fails, seconds=1000.0)
    assert fails(small)
    assert len(small.rows) == 2
    assert sorted(small.weights) == [1.0, 1e6]
    assert len(small.names) == 2
    assert small.options == {}
    assert small.constraints == {}
    assert small.way == "command"


def test_a_failure_leaves_a_folder_with_table_and_command(tmp_path: Path) -> None:
    case = Case(
        names=["X1", "X2", "C"],
        labels=[["a", "b"], ["a", "b"], ["k", "l"]],
        rows=[[0, 1, 0], [1, 0, 1], [1, 1, 1]],
        weights=[1.0, 2.0, 3.0],
        score={"name": "sm", "p": 0.9},
        way="command",
    )
    outcome, failures = check(case, tmp_path)
    assert (outcome, failures) == ("optimal", [])
    small, folder = report(case, Failure("planted", "it was planted"), "a test", tmp_path / "out", 1.0)
    assert small == case
    assert {path.name for path in folder.iterdir()} >= {
        "data.csv", "record.json", "command.txt", "README.txt",
    }  # fmt: skip
    assert (folder / "command.txt").read_text().startswith("milpbn solve data.csv --target C --weights w")


def test_forgeries_differ_from_what_is_forged() -> None:
    result = {
        "bound": 1.5,
        "objective": 1.0,
        "status": {"reason": "feasible"},
        "structure": {"X": [], "C": []},
    }
    changed = [change_json(random.Random(seed), result, ["X", "C"]) for seed in range(200)]
    assert sum(json.dumps(other) != json.dumps(result) for other in changed) > 150
    arrays = {"leaf_node": np.arange(3), "eta": np.array([0.5, 0.25]), "row_members": np.eye(2, dtype=bool)}
    other = [change_arrays(random.Random(seed), arrays) for seed in range(50)]
    assert any(set(out) != set(arrays) for out in other)
    assert any("eta" in out and not np.array_equal(out["eta"], arrays["eta"]) for out in other)
    text = "objective value: 1.5\np_0_0 1 \t(obj:0)\np_0_1 0 \t(obj:0)\n"
    assert len({change_solution(random.Random(seed), text) for seed in range(50)}) > 10


def test_figures_add_up_over_tests(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    for _ in range(2):
        tally = Tally()
        tally.tried["cases"] += 30
        tally.add_to(path, "pytest")
    figures = json.loads(path.read_text())
    assert figures["tried"] == {"cases": 60}
    assert figures["bound_95"] == {"cases": 0.05}
    tally.fail("wrong objective", "seed 1")
    tally.add_to(path, "pytest")
    figures = json.loads(path.read_text())
    assert figures["failures"] == {"wrong objective": ["seed 1"]}
    assert figures["bound_95"] == {}
