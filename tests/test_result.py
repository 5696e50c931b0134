"""Results: statuses and gaps from the numbers, result.json there and back, unusable files refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import random_data

import milpbn
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.result import BackendInfo, DataSummary, Gap, Result, Seconds, is_optimal
from milpbn.scores.constraints import Constraints
from milpbn.scores.spec import Score

numbers = st.floats(-1e9, 1e9)


def make_result(**changes) -> Result:
    options = {
        "data": DataSummary("d", "0" * 64, 20, 12, 2, 2),
        "score": Score(p=0.9, penalty="bic"),
        "constraints": Constraints(required=(("C", "X1"),), arc_weights={("X1", "X2"): 0.5}),
        "reason": "feasible",
        "limit": "time",
        "structure": Structure(("X1", "X2", "C"), ((2,), (0, 2), ())),
        "objective": -3.5,
        "bound": 1.25,
        "backend": BackendInfo("highs", "HiGHS 1", 2),
        "seconds": Seconds(2.0, 0.5, 0.25, 1.25),
        "trace": ((0.1, None, 9.0), (0.5, -4.0, 9.0), (1.5, -3.5, 1.25)),
        "seed": 7,
        "nodes": 12,
        "detail": "Time limit",
    }
    return Result(**(options | changes))


@pytest.mark.parametrize(
    ("objective", "bound", "absolute", "to_bound", "to_incumbent"),
    [
        (90.0, 100.0, 10.0, 0.1, 10 / 90),
        (-110.0, -100.0, 10.0, 0.1, 10 / 110),
        (-1.0, 4.0, 5.0, 1.25, 5.0),
        (0.0, 4.0, 4.0, 1.0, None),
        (-4.0, 0.0, 4.0, None, 1.0),
        (0.0, 0.0, 0.0, 0.0, 0.0),
        (5.0, 5.0, 0.0, 0.0, 0.0),
        (5.0, 5.0 - 1e-12, 0.0, 0.0, 0.0),
        (None, 4.0, None, None, None),
        (4.0, None, None, None, None),
    ],
)
def test_gaps(objective, bound, absolute, to_bound, to_incumbent) -> None:
    gap = Gap.between(objective, bound)
    assert (gap.absolute, gap.relative_to_bound, gap.relative_to_incumbent) == (
        absolute,
        None if to_bound is None else pytest.approx(to_bound),
        None if to_incumbent is None else pytest.approx(to_incumbent),
    )


@given(numbers, numbers)
def test_gaps_are_never_negative_or_undefined_numbers(a: float, b: float) -> None:
    gap = Gap.between(min(a, b), max(a, b))
    assert gap.absolute == max(a, b) - min(a, b)
    for value in (gap.relative_to_bound, gap.relative_to_incumbent):
        assert value is None or (value >= 0 and math.isfinite(value))


@pytest.mark.parametrize(
    ("objective", "bound", "proved"),
    [
        (100.0, 100.0, True),
        (100.0, 100.00009, True),
        (100.0, 100.00011, False),
        (-100.0, -99.99991, True),
        (-100.0, -99.9998, False),
        (0.0, 0.9e-6, True),
        (0.0, 1.1e-6, False),
        (1e-9, 1.1e-6, False),
        (-math.inf, 3.0, False),
        (3.0, math.inf, False),
        (-math.inf, math.inf, False),
    ],
)
def test_optimal_is_computed_from_the_numbers(objective: float, bound: float, proved: bool) -> None:
    assert is_optimal(objective, bound) == proved


@pytest.mark.parametrize(
    "result",
    [
        make_result(),
        make_result(reason="optimal", limit=None, bound=-3.5),
        make_result(reason="no_solution", structure=None, objective=None, trace=((0.1, None, 9.0),)),
        make_result(reason="infeasible", limit=None, structure=None, objective=None, bound=None, trace=()),
        make_result(reason="error", limit=None, detail="crashed"),
        make_result(limit="gap", nodes=None, score=Score(name="bdeu", equivalent_sample_size=3.0)),
        make_result(backend=BackendInfo("cplex", "unknown", None), bound_source="certified"),
        make_result(selection={"p": 0.9, "scores": [1, 2]}),
    ],
    ids=lambda r: r.reason,
)
def test_json_round_trip(result: Result, tmp_path) -> None:
    path = tmp_path / "result.json"
    result.save(path)
    assert Result.load(path) == result
    again = tmp_path / "again.json"
    Result.load(path).save(again)
    assert again.read_text() == path.read_text()


def test_keys_of_the_contract() -> None:
    values = make_result().to_dict()
    assert {
        "version",
        "data",
        "score",
        "status",
        "objective",
        "bound",
        "gap",
        "structure",
        "backend",
        "bound_source",
        "seconds",
        "trace",
        "seed",
    } <= set(values)
    assert {"name", "sha256", "samples", "unique_samples", "features", "classes"} <= set(values["data"])
    assert {"name", "gamma", "max_parents", "smoothing"} <= set(values["score"])
    assert {"reason", "limit"} <= set(values["status"])
    assert set(values["gap"]) == {"absolute", "relative_to_bound", "relative_to_incumbent"}
    assert {"name", "version", "threads"} <= set(values["backend"])
    assert set(values["seconds"]) == {"total", "coefficients", "model", "solve"}
    assert values["structure"] == {"X1": ["C"], "X2": ["X1", "C"], "C": []}
    assert values["trace"][0] == [0.1, None, 9.0]


def test_unknown_numbers_are_null_and_never_nan(tmp_path) -> None:
    result = make_result(objective=float("nan"), bound=float("inf"), trace=((0.0, float("-inf"), math.inf),))
    path = tmp_path / "result.json"
    result.save(path)
    values = json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(name))
    assert values["objective"] is None
    assert values["bound"] is None
    assert values["trace"] == [[0.0, None, None]]


def test_sorted_keys_keep_the_class(tmp_path) -> None:
    """A tool that sorts keys puts C before X1; the key "class" says which one it is."""
    path = tmp_path / "result.json"
    path.write_text(json.dumps(make_result().to_dict(), sort_keys=True))
    loaded = Result.load(path)
    assert loaded.structure == make_result().structure
    assert loaded == make_result()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.pop("structure"), "lacks the key 'structure'"),
        (lambda v: v["status"].pop("reason"), "lacks the key 'reason'"),
        (lambda v: v.update(objective="12"), "'12' is no finite number"),
        (lambda v: v.update(bound=True), "True is no finite number"),
        (lambda v: v.update(score={"name": "k2"}), "no score 'k2'"),
        (lambda v: v.update(score={"name": "sm", "speed": 1}), "form of a result.json"),
        (lambda v: v.update(score=3), "form of a result.json"),
        (lambda v: v.update(data={"name": "d"}), "form of a result.json"),
        (lambda v: v.update(structure={"X1": ["Y"], "C": []}), "'Y', which is no variable"),
        (lambda v: v.update(structure={"X1": ["C"], "C": ["X1"]}), "cycle"),
        (lambda v: v.update(structure=[["X1"]]), "form of a result.json"),
        (lambda v: v["status"].update(reason="great"), "unknown reason 'great'"),
        (lambda v: v["status"].update(reason="optimal", limit="time"), "does not go with"),
        (lambda v: v["status"].update(limit="patience"), "does not go with"),
        (lambda v: v.update(trace=[[0.0, 1.0]]), "form of a result.json"),
        (lambda v: v.update(trace=[["a", 1.0, 2.0]]), "form of a result.json"),
        (lambda v: v.update(trace=5), "form of a result.json"),
        (lambda v: v.update(constraints={"wish": []}), "no constraint 'wish'"),
        (lambda v: v.update(backend="highs"), "form of a result.json"),
        (lambda v: v.update(seconds=None), "form of a result.json"),
        (lambda v: v.update(status=[]), "form of a result.json"),
    ],
)
def test_unusable_results_are_refused(change, message: str, tmp_path) -> None:
    values = make_result().to_dict()
    change(values)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(values))
    with pytest.raises(InputError, match=message) as caught:
        Result.load(path)
    assert "bad.json" in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"a": NaN}', "\x00\x01"])
def test_files_that_are_no_results_are_refused(text: str, tmp_path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"bad\.json"):
        Result.load(path)
    with pytest.raises(InputError, match=r"absent\.json"):
        Result.load(tmp_path / "absent.json")


def test_impossible_combinations_are_programming_errors() -> None:
    with pytest.raises(ValueError, match="unknown reason"):
        make_result(reason="fine")
    with pytest.raises(ValueError, match="does not go with"):
        make_result(reason="optimal", limit="time")
    with pytest.raises(ValueError, match="does not go with"):
        make_result(limit="mood")


def test_primal_dual_integral() -> None:
    # gap 1 until 0.5 s (no incumbent), then 13/9 cut to 1 until 1.5, then 4.75/1.25 cut to 1
    assert make_result().primal_dual_integral() == pytest.approx(2.0)
    trace = ((0.5, None, 100.0), (1.0, 50.0, 100.0), (1.5, 100.0, 100.0))
    result = make_result(trace=trace, objective=100.0, bound=100.0)
    assert result.primal_dual_integral() == pytest.approx(1.0 + 0.5 * 0.5)
    assert make_result(trace=()).primal_dual_integral() is None


def test_results_of_solve_survive_the_file(tmp_path) -> None:
    data = random_data(1, n_samples=30)
    path = tmp_path / "result.json"
    result = milpbn.solve(data, Score(p=0.9), backend="highs", threads=1, output=path)
    loaded = Result.load(path)
    rounded = tuple((round(t, 6), z, b) for t, z, b in result.trace)
    seconds = Seconds(**{key: round(value, 6) for key, value in vars(result.seconds).items()})
    assert loaded == replace(result, trace=rounded, seconds=seconds, classifier=None)
    assert loaded.data == DataSummary.of(data)
    assert loaded.optimal
    assert loaded.data.unique_samples == data.merged.n_samples
    assert milpbn.rescore(data, loaded.structure, loaded.score) == pytest.approx(loaded.objective)
