"""Results: statuses and gaps from the numbers, result.json there and back, unusable files refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import random_data

import milpbn
from milpbn.claims.parts import Average
from milpbn.claims.result import BackendInfo, DataSummary, Gap, Result, Seconds, is_optimal
from milpbn.claims.selection import Selection
from milpbn.data.left_out import left_out_of
from milpbn.errors import InputError
from milpbn.network import AveragedClassifier, Classifier, save_classifier
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score
from milpbn.solving.progress import closing_block
from milpbn.util.jsonable import Fields

numbers = st.floats(-1e9, 1e9)


SELECTION = {
    "p": 0.9,
    "max_parents": 2,
    "protocol": "5-fold cross-validation",
    "interrupted": False,
    "trials": [
        {"p": 0.9, "max_parents": 2, "accuracy": 0.75, "proved": 3, "splits": 5},
        {"p": 0.95, "max_parents": 2, "accuracy": 0.75, "proved": 5, "splits": 5},
        {"p": 0.6, "max_parents": 1, "accuracy": 0.9, "proved": 2, "splits": 4},
    ],
}


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
    options |= changes
    if options["trace"]:
        *before, (seconds, _, _) = options["trace"]
        options["trace"] = (*before, (seconds, options["objective"], options["bound"]))
    return Result(**options)


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
def test_gaps_follow_from_objective_and_bound(objective, bound, absolute, to_bound, to_incumbent) -> None:
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
        (100.0, 100.0, True), (100.0, 100.0000009, True), (100.0, 100.0000011, False), (-100.0, -99.9999991, True),
        (-1e6, -999999.999998, False), (0.0, 0.9e-6, True), (0.0, 1.1e-6, False), (1e-9, 1.1e-6, False),
        (-math.inf, 3.0, False), (3.0, math.inf, False), (-math.inf, math.inf, False),
    ],
)  # fmt: skip
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
        make_result(parameters=ParameterFit()),
        make_result(
            parameters=ParameterFit(
                method="cll",
                fitted=True,
                kappa=0.0,
                strength=0.3,
                held_out_log_loss=0.2,
                generative_log_loss=0.3,
                folds=5,
                added_arcs=(("X1", "C"),),
            )
        ),
        make_result(selection=Selection.read(Fields(SELECTION, "The selection"))),
        make_result(
            selection=Selection.read(Fields(SELECTION, "The selection")),
            average=Average(asked=4, networks=2, interrupted=True, note="the run was interrupted"),
        ),
        make_result(reason="running", limit=None),
        make_result(reason="running", limit=None, structure=None, objective=None, trace=((0.1, None, 9.0),)),
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


def test_the_json_has_the_promised_keys() -> None:
    values = make_result().to_dict()
    assert {
        "version", "data", "score", "status", "objective", "bound", "gap", "structure", "backend", "bound_source",
        "seconds", "trace", "seed",
    } <= set(values)  # fmt: skip
    assert {"name", "sha256", "samples", "unique_samples", "features", "classes"} <= set(values["data"])
    assert {"name", "gamma", "max_parents", "smoothing"} <= set(values["score"])
    assert {"reason", "limit"} <= set(values["status"])
    assert set(values["gap"]) == {"absolute", "relative_to_bound", "relative_to_incumbent"}
    assert {"name", "version", "threads"} <= set(values["backend"])
    assert set(values["seconds"]) == {"total", "coefficients", "model", "solve", "parameters", "average"}
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
        (lambda v: v.update(objective="12"), "a finite number as 'objective', but has '12'"),
        (lambda v: v.update(bound=True), "a finite number as 'bound', but has True"),
        (lambda v: v.update(bound=10**400), "a number of 401 digits"),
        (lambda v: v["gap"].update(absolute="small"), "of at least 0 as 'gap.absolute', but has 'small'"),
        (lambda v: v.update(score={"name": "k2"}), "no score 'k2'"),
        (lambda v: v.update(score={"name": "sm", "speed": 1}), "the unknown key 'speed' in 'score'"),
        (lambda v: v.update(wish=1), "the unknown key 'wish'; read the file with the version of milpbn"),
        (lambda v: v.update(score=3), "an object as 'score'"),
        (lambda v: v.update(data={"name": "d", "sha256": "0"}), "lacks the key 'samples' in 'data'"),
        (lambda v: v.update(structure={"X1": ["Y"], "C": []}), "'Y', which is not a variable"),
        (lambda v: v.update(structure={"X1": ["C"], "C": ["X1"]}), "cycle"),
        (lambda v: v.update(structure=[["X1"]]), "an object as 'structure'"),
        (lambda v: v["status"].update(reason="great"), "as 'status.reason', but has 'great'"),
        (lambda v: v["status"].update(reason="optimal", limit="time"), "does not go with"),
        (lambda v: v["status"].update(limit="patience"), "as 'status.limit', but has 'patience'"),
        (lambda v: v.update(trace=[[0.0, 1.0]]), r"a list of 3 values as 'trace\[0\]'"),
        (lambda v: v.update(trace=[["a", 1.0, 2.0]]), r"at least 0 as 'trace\[0\]\[0\]', but has 'a'"),
        (lambda v: v.update(trace=5), "a list as 'trace'"),
        (lambda v: v.update(constraints={"wish": []}), "no constraint 'wish'"),
        (lambda v: v.update(backend="highs"), "an object as 'backend'"),
        (lambda v: v["backend"].update(threads=0), "a whole number of at least 1 as 'backend.threads'"),
        (lambda v: v.update(seconds=None), "an object as 'seconds'"),
        (lambda v: v.update(status=[]), "an object as 'status'"),
        (lambda v: v.update(bound_source="oath"), "certified, solver as 'bound_source'"),
        (lambda v: v.update(run=7), "needs text as 'run', but has 7"),
        (lambda v: v.update(nodes=-1), "a whole number of at least 0 as 'nodes'"),
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


PROVED = {"reason": "optimal", "limit": None, "detail": ""}


def with_subset(values, **changes) -> None:
    """Turn a result into one of a subset, and change the claims about the subset."""
    gap = vars(Gap.between(2.0, 3.0))
    own = {"samples": 5, "objective": 2.0, "bound": 3.0, "gap": gap, "optimal": False}
    values.update(
        bound=None, gap=vars(Gap()), subset={**own, **changes}, trace=[[0.5, 1.0, 9.0], [1.0, 2.0, 3.0]]
    )


def with_screened(values, **changes) -> None:
    """Turn a result into one over kept parent sets, and change the claims about these."""
    gap = vars(Gap.between(-3.5, 1.25))
    own = {"k": 2, "criterion": "linear gain", "total": 20, "ranked": 9, "optimal": False}
    own |= {"kept": dict.fromkeys(values["structure"], 2), "objective": -3.5, "bound": 1.25, "gap": gap}
    values.update(bound=None, gap=vars(Gap()), screened={**own, **changes}, proved=None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(bound=-4.0), "the bound -4.0 is below the score -3.5"),
        (lambda v: v["gap"].update(absolute=4.0), "the gap .absolute: 4.0. is not that"),
        (lambda v: v["gap"].update(relative_to_bound=None), "the gap .relative_to_bound: None. is not that"),
        (lambda v: v["status"].update(reason="optimal", limit=None), "its bound does not prove"),
        (lambda v: v["status"].update(reason="no_solution"), "excludes a structure"),
        (
            lambda v: v.update(structure=None, **{"class": None}),
            "a structure without a score",
        ),
        (lambda v: v.update({"class": "X3"}), "its class 'X3' is not a variable of its structure"),
        (lambda v: v["structure"].update(X3=[]), "another number of features than its data"),
        (lambda v: v["structure"].update(X1=["C", "C"]), "'X1' has a parent twice"),
        (lambda v: v["trace"].insert(1, [0.2, -3.0, 9.0]), "its incumbent -4.0 is below the -3.0"),
        (lambda v: v["trace"].insert(1, [0.2, None, 8.0]), "its bound 9.0 is above the 8.0"),
        (lambda v: v["trace"].insert(1, [0.2, None, None]), "its bound None is above the 9.0"),
        (lambda v: v["trace"].insert(1, [0.6, None, 9.0]), "its time 0.5 is before the 0.6"),
        (lambda v: v["trace"].insert(1, [0.2, 9.5, 9.0]), "its bound 9.0 is below its incumbent 9.5"),
        (lambda v: v["trace"].append([1.6, -3.5, 1.0]), "does not end with its score and bound"),
        (lambda v: v["trace"].append([2.1, -3.5, 1.25]), "its trace goes on after"),
        (lambda v: v["seconds"].update(total=3.0), "its seconds do not add up"),
        (lambda v: v.update(proved={"in": [], "out": [["X1", "X9"]]}), "X1 -> X9 .out."),
        (lambda v: v.update(proved={"in": [["C", "X1"]], "out": [["C", "X1"]]}), "every optimum, and none"),
        (lambda v: with_subset(v, bound=1.0), "contradicts itself in 'subset': the bound 1.0 is below"),
        (lambda v: with_subset(v, optimal=True), "it calls the subset's structure optimal"),
        (lambda v: with_subset(v, samples=21), "more samples than its data"),
        (
            lambda v: [with_subset(v), v.update(bound=-3.5, gap=vars(Gap(0.0, 0.0, 0.0)), status=PROVED)],
            "only a subset",
        ),
        (lambda v: [with_subset(v), v.update(proved={"in": [], "out": []})], "only a subset was searched"),
        (lambda v: with_screened(v, optimal=True), "optimal over the kept parent sets"),
        (lambda v: with_screened(v, ranked=0, total=6), "none was left out"),
        (lambda v: with_screened(v, kept={"X1": 2}), "of other variables"),
        (lambda v: with_screened(v, objective=-4.0, gap=vars(Gap.between(-4.0, 1.25))), "its score is not"),
        (lambda v: [with_screened(v), v.update(proved={"in": [], "out": []})], "only the kept ones"),
        (
            lambda v: [with_screened(v), v.update(bound=1.25, gap=vars(Gap.between(-3.5, 1.25)))],
            "only the kept ones",
        ),
        (
            lambda v: [with_subset(v), with_screened(v)],
            "excludes itself",
        ),
        (lambda v: v.update(selection={**SELECTION, "p": 0.95}), "not the one that was selected"),
        (lambda v: v.update(selection={**SELECTION, "trials": []}), "not the best of those that were tried"),
        (
            lambda v: v.update(
                score={**v["score"], "max_parents": 1}, selection={**SELECTION, "max_parents": 1}
            ),
            "not the best of those that were tried",
        ),
    ],
)
def test_results_that_contradict_themselves_are_refused(change, message: str, tmp_path) -> None:
    values = make_result().to_dict()
    change(values)
    with pytest.raises(InputError, match=message) as caught:
        Result.from_dict(values, "The result 'r.json'")
    assert str(caught.value).startswith("The result 'r.json' contradicts itself")


def test_a_result_of_screened_parent_sets_is_read() -> None:
    values = make_result().to_dict()
    with_screened(values)
    claim = Result.from_dict(values).screened
    assert (claim.n_kept, claim.total, claim.bound) == (6, 20, 1.25)
    assert Result.from_dict(values).searched is not None
    assert Result.from_dict(values).to_dict()["screened"] == values["screened"]


def test_a_result_of_a_subset_is_read() -> None:
    values = make_result().to_dict()
    with_subset(values)
    assert Result.from_dict(values).subset.samples == 5


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


def test_an_added_arc_between_other_variables_or_of_the_structure_is_refused() -> None:
    for arc in (("X1", "X2"), ("C", "X9"), ("C", "C")):
        values = make_result(parameters=ParameterFit(method="cll", note="Why.")).to_dict()
        values["parameters"] |= {
            "fitted": True,
            "kappa": 0.0,
            "folds": 5,
            "held_out_log_loss": 0.5,
            "generative_log_loss": 0.5,
            "added_arcs": [list(arc)],
        }
        with pytest.raises(InputError, match=f"its classifier has the arc {arc[0]} -> {arc[1]}"):
            Result.from_dict(values)


def test_files_without_seconds_of_parameters_are_read() -> None:
    values = make_result().to_dict()
    del values["seconds"]["parameters"], values["parameters"]
    del values["seconds"]["average"], values["average"]
    assert Result.from_dict(values) == make_result()


def test_the_primal_dual_integral_excludes_retraining_and_other_networks() -> None:
    longer = make_result(seconds=Seconds(7.0, 0.5, 0.25, 1.25, 3.0, 2.0))
    assert longer.primal_dual_integral() == make_result().primal_dual_integral()


def test_the_primal_dual_integral_is_that_of_the_trace() -> None:
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


@pytest.mark.parametrize("backend", ["native", "highs"])
@pytest.mark.parametrize(
    "options",
    [{}, {"gap_abs": 0.5}, {"gap_se": 0.5}, {"root_only": True}, {"subset": 10}, {"time_limit": 0.2}],
    ids=str,
)
def test_no_result_of_a_search_contradicts_itself(backend: str, options, tmp_path) -> None:
    """Every file that a search writes can be read, those written during the search and the final one."""
    for seed in range(2):
        data = random_data(seed, n_features=4, n_samples=40)
        path = tmp_path / "r.json"
        try:
            result = milpbn.solve(data, Score(p=0.9), backend=backend, threads=1, output=path, **options)
        except milpbn.MilpbnError:  # no time for a structure
            continue
        for loaded in (Result.load(path), Result.from_dict(result.to_dict())):
            assert loaded.gap == result.gap
            assert [b for _, _, b in loaded.trace] == sorted((b for _, _, b in loaded.trace), reverse=True)


def test_a_lone_surrogate_is_written_as_its_escape(tmp_path):
    result = make_result(notes=("\ud800 and \U0001f600",))
    result.save(tmp_path / "r.json")
    assert "\\ud800 and \U0001f600" in (tmp_path / "r.json").read_text(encoding="utf-8")
    assert Result.load(tmp_path / "r.json").notes == result.notes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"networks": 3}, "says why networks are missing although none is, or the reverse"),
        ({"note": ""}, "says why networks are missing although none is, or the reverse"),
        ({"networks": 4}, "whole number"),
        ({"asked": 0}, "whole number"),
        ({"more": 1}, "more"),
    ],
)
def test_impossible_averages_are_refused(change: dict[str, object], message: str) -> None:
    values = make_result(
        selection=Selection.read(Fields(SELECTION, "The selection")),
        average=Average(asked=3, networks=2, note="the time limit came before the others"),
    ).to_dict()
    values["average"] |= change
    with pytest.raises(InputError, match=message):
        Result.from_dict(values)


def test_an_average_needs_a_selection() -> None:
    with pytest.raises(InputError, match="an average without a structure, or without a selection"):
        Result.from_dict(make_result(average=Average(asked=2, networks=2)).to_dict())


def test_a_result_from_a_file_says_where_its_classifier_is(tmp_path) -> None:
    data = random_data(1, n_samples=30)
    result = milpbn.solve(data, Score(p=0.9), backend="highs", threads=1)
    result.save(tmp_path / "r.json")
    save_classifier(result.classifier, tmp_path / "c.json")
    loaded = Result.load(tmp_path / "r.json")
    with pytest.raises(InputError, match=r"holds no classifier; .* Result.load\('result.json', classifier="):
        loaded.classifier.predict(data)
    whole = Result.load(tmp_path / "r.json", classifier=tmp_path / "c.json")
    assert whole == loaded
    assert (whole.classifier.predict(data) == result.classifier.predict(data)).all()
    other = milpbn.solve(random_data(2, n_samples=30), Score(p=0.9), backend="highs", threads=1)
    save_classifier(other.classifier, tmp_path / "d.json")
    with pytest.raises(InputError, match=r"'.*d.json' is of other data than the result '.*r.json'"):
        Result.load(tmp_path / "r.json", classifier=tmp_path / "d.json")
    with pytest.raises(AttributeError, match="'Result' object has no attribute 'nothing'"):
        _ = loaded.nothing
    found_nothing = make_result(structure=None, objective=None, reason="no_solution", limit="time", trace=())
    assert Result.from_dict(found_nothing.to_dict()).classifier is None


def test_objects_show_themselves_in_a_few_words() -> None:
    frame = pd.DataFrame({f"feature {i}": [str((i * k) % 3) for k in range(300)] for i in range(40)})
    table = milpbn.read_table(frame.assign(k=["p", "q"] * 150))
    data = table.dataset()
    structure = Structure.naive_bayes(data.names)
    classifier = Classifier.fit(data, structure)
    problem = build_problem(data, Score(max_parents=1))
    shown = [
        table, data, data.merged, structure, classifier, AveragedClassifier((classifier,) * 3), problem,
        make_result(),
    ]  # fmt: skip
    for value in shown:
        assert len(repr(value)) < 300, value
        assert type(value).__name__ in repr(value)
    assert "300 samples, 40 features, 2 classes of 'k'" in repr(data)
    assert len(repr(replace(data, name="x" * 5000))) < 300


def test_columns_that_were_left_out_survive_the_file(tmp_path) -> None:
    frame = pd.DataFrame({"id": range(40), "a": [0, 1] * 20, "b": [0, 0, 1, 1] * 10, "k": [0, 1, 1, 1] * 10})
    with pytest.warns(milpbn.DataWarning, match="'id' looks like an identifier"):
        table = milpbn.read_table(frame, drop=["b"])
    result = milpbn.solve(table, Score(p=0.9), backend="highs", threads=1, output=tmp_path / "r.json")
    assert result.data.left_out == {"b": "asked", "id": "identifier"}
    assert any("'id' looks like an identifier" in note for note in result.notes)
    assert Result.load(tmp_path / "r.json").data.left_out == result.data.left_out
    assert "left out   b (as asked), id (identifier)" in closing_block(result)
    assert left_out_of(result.classifier.provenance) == result.data.left_out
    values = result.to_dict()
    del values["data"]["left_out"]  # a file of an older version
    assert Result.from_dict(values).data.left_out == {}
    values["data"]["left_out"] = {"id": "boring"}
    with pytest.raises(InputError, match="one of identifier, date"):
        Result.from_dict(values)


def test_the_closing_block_says_that_a_search_has_ended_without_a_proof() -> None:
    """Equally frequent classes: all margins of the best structure, which has no arc, are shared by two classes."""
    rows = [[f"v{(7 * i + i // 3) % 2}", f"v{i % 2}"] for i in range(90)]
    data = milpbn.read_table((rows, [f"c{i % 3}" for i in range(90)])).dataset("train")
    result = milpbn.solve(data, milpbn.Score(p=0.501), threads=1, verbose=False)
    text = closing_block(replace(result, reason="feasible", bound=result.objective + 1e-5))
    assert "feasible (the search has ended; what is left of the gap is tolerance)" in text
    assert "the search has ended" not in closing_block(replace(result, reason="feasible", limit="time"))
    assert "each 0.1 nats): another sample" in closing_block(
        replace(result, reason="feasible", bound=result.objective + 0.05, standard_error=0.1)
    )
    loose = replace(
        result, reason="feasible", bound=result.objective + 1.0
    )  # such as an import without a bound
    assert "the search has ended" not in closing_block(loose)


def test_other_files_are_named_for_what_they_are(tmp_path):
    data = random_data(1)
    classifier = Classifier.fit(data, Structure.empty(data.names))
    save_classifier(classifier, tmp_path / "classifier.json")
    with pytest.raises(
        InputError, match=r"classifier\.json' cannot be used: it is a classifier; give the file that"
    ):
        Result.load(tmp_path / "classifier.json")
    for verb, document in (("compare", {"test_samples": 3, "rows": []}), ("learn", {"learner": {}})):
        (tmp_path / "other.json").write_text(json.dumps(document))
        with pytest.raises(InputError, match=f"it is of milpbn {verb}; milpbn info shows it"):
            Result.load(tmp_path / "other.json")
