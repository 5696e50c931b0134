"""Export to a file, solve it with real solvers outside milpbn, import the answer."""

from __future__ import annotations

import json
import shutil
import subprocess
import warnings
from functools import cache, partial

import pytest

import milpbn
from milpbn.errors import InputError
from milpbn.solving.exporting import export_model
from milpbn.solving.importing import import_solution

SCORE = milpbn.Score(p=0.9)
OPTIMUM = 261.134799740  # corral with class parents: the known optimum, which test_oracle enumerates


def by_cbc(export, target) -> None:
    pulp = pytest.importorskip("pulp")
    cbc = pulp.PULP_CBC_CMD(msg=False).path
    command = [cbc, str(export.model)]
    if export.model.suffix == ".mps":
        command += ["-mips", str(export.starts["cbc"])]
    subprocess.run(
        [*command, "-solve", "-solution", str(target)], check=True, capture_output=True, timeout=120
    )


def by_highs(export, target) -> None:
    import highspy

    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("mip_rel_gap", 0.0)
    assert h.readModel(str(export.model)) != highspy.HighsStatus.kError
    assert h.readSolution(str(export.starts["highs"]), 0) == highspy.HighsStatus.kOk
    h.run()
    h.writeSolution(str(target), 0)


def by_scip(export, target) -> None:
    scip = pytest.importorskip("pyscipopt")
    model = scip.Model()
    model.hideOutput()
    model.readProblem(str(export.model))
    model.addSol(model.readSolFile(str(export.starts["scip"])))
    model.optimize()
    model.writeBestSol(str(target))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return the model in a file with a suffix."""
    folder = partial(tmp_path_factory.mktemp, "models")
    return cache(lambda suffix: export_model("corral", SCORE, path=folder() / f"m{suffix}"))


SOLVERS = {"cbc": by_cbc, "highs": by_highs, "scip": by_scip}


@pytest.mark.parametrize(
    ("suffix", "solver"),
    [
        # CBC, which takes longest, gets one of the two.
        *(pytest.param(".lp", s, marks=pytest.mark.slow if s == "cbc" else ()) for s in SOLVERS),
        # Models in MPS are minimised, by every solver: one of them in every run, all with --slow.
        *(pytest.param(".mps", s, marks=pytest.mark.slow if s != "cbc" else ()) for s in SOLVERS),
    ],
)
def test_a_real_solvers_solution_has_the_known_optimum(model, solver, suffix):
    export = model(suffix)
    target = export.model.with_name(f"m.{solver}.sol")
    SOLVERS[solver](export, target)
    bound = OPTIMUM if suffix == ".lp" else -OPTIMUM
    result = import_solution(target, bound=bound)
    assert result.objective == pytest.approx(OPTIMUM, abs=1e-6)
    assert result.reason == "optimal"
    assert result.backend.name == solver
    assert result.bound_source == "solver"
    assert result.classifier is not None
    # If neither file nor option has a bound, only CBC's status, which means a gap of 0, gives one.
    if "Objective_bound" in target.read_text():
        return  # HiGHS from version 1.16 on
    with pytest.warns(milpbn.BoundWarning) as caught:
        alone = import_solution(target)
    assert alone.notes == tuple(str(one.message) for one in caught)
    if solver == "cbc":
        assert (alone.reason, alone.bound_source) == ("optimal", "solver")
        assert "on CBC's word" in alone.notes[0]
        return
    assert alone.reason == "feasible"
    assert alone.bound_source == "certified"
    assert alone.bound > OPTIMUM
    assert f"{alone.bound:.6f}" in alone.notes[0]
    assert "--bound" in alone.notes[0]


@pytest.mark.parametrize(("reduced", "towards"), [(True, "uniform"), (False, "class")])
def test_round_trip_of_a_leave_one_out_score(tmp_path, reduced, towards):
    """A solver proves what the native engine proves, and the sidecar has the options."""
    score = milpbn.Score(p=0.9, leave_one_out=True, smoothing_towards=towards)
    best = milpbn.solve("corral", score, verbose=False)
    assert best.optimal
    assert best.objective < OPTIMUM - 1 or towards != "uniform"  # what samples add by counting for themselves
    export = export_model("corral", score, path=tmp_path / "m.lp", reduced=reduced)
    by_highs(export, tmp_path / "m.highs.sol")
    result = import_solution(tmp_path / "m.highs.sol", bound=best.bound)
    assert result.score == score
    assert result.objective == pytest.approx(best.objective, abs=1e-6)
    assert result.reason == "optimal"
    assert json.loads(export.sidecar.read_text())["score"]["leave_one_out"] is True
    assert json.loads(export.sidecar.read_text())["score"]["smoothing_towards"] == towards
    assert result.classifier.smoothing_towards == towards


@pytest.mark.parametrize(("merge", "reduced"), [(True, False), (False, True)])
def test_round_trip_of_a_subset(tmp_path, merge, reduced):
    """The solver's numbers are those of a search over the subset; the imported score is that of all rows."""
    best = milpbn.solve("corral", SCORE, subset=40, merge=merge, verbose=False)
    assert best.subset.optimal
    export = export_model("corral", SCORE, path=tmp_path / "m.mps", subset=40, merge=merge, reduced=reduced)
    by_highs(export, tmp_path / "m.highs.sol")
    value = best.subset.objective
    result = import_solution(tmp_path / "m.highs.sol", bound=-value)
    assert result.subset.samples == best.subset.samples
    assert result.subset.objective == pytest.approx(value, abs=1e-6)
    assert result.subset.optimal
    assert result.bound is None
    assert result.objective == pytest.approx(
        milpbn.rescore(milpbn.read_table("corral").dataset(), result.structure, SCORE)
    )
    # Without a bound, the result has the subset's trivial bound; a bound below the score over the subset is refused.
    assert import_solution(tmp_path / "m.highs.sol").subset.bound >= value - 1e-9
    with pytest.raises(InputError, match="lies below the score"):
        import_solution(tmp_path / "m.highs.sol", bound=-value + 1)


def test_a_subset_is_a_problem_of_its_own(tmp_path):
    marks = {
        export_model("corral", SCORE, path=tmp_path / f"m{k}.lp", **options)
        .model.read_text()
        .split("id_")[1][:16]
        for k, options in enumerate([{}, {"subset": 40}, {"subset": 41}, {"subset": 40, "random_state": 1}])
    }
    assert len(marks) == 4
    with pytest.raises(InputError, match="mdl"):
        export_model("corral", "mdl", path=tmp_path / "g.lp", subset=40)


def test_a_sidecar_with_other_samples_is_refused(tmp_path):
    export = export_model("corral", SCORE, path=tmp_path / "m.lp", subset=40)
    by_highs(export, tmp_path / "m.highs.sol")
    sidecar = json.loads(export.sidecar.read_text())
    pairs = sidecar["subset"]
    for changed, words in (
        ([[10**6, 1.0], *pairs], "rows that the data do not have"),
        ([[-1, 1.0], *pairs], "at least 0 as 'subset"),
        ([[pairs[0][0], 2 * pairs[0][1]], *pairs[1:]], "belongs to other data or options"),
        ([["x", 1.0]], "cannot be used"),
        (5, "cannot be used"),
    ):
        export.sidecar.write_text(json.dumps({**sidecar, "subset": changed}))
        with pytest.raises(InputError, match=words):
            import_solution(tmp_path / "m.highs.sol")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The model with its optimum as the start."""
    start = milpbn.solve("corral", SCORE, threads=1, verbose=False).structure
    return export_model("corral", SCORE, path=tmp_path_factory.mktemp("model") / "m.lp", start=start)


@pytest.fixture
def written(exported, tmp_path):
    """Return a function that writes a solution beside a copy of the model's sidecar, and returns its path."""
    shutil.copy(exported.sidecar, tmp_path)

    def write(text, solver="gurobi"):
        path = tmp_path / f"m.{solver}.sol"
        path.write_text(text)
        return path

    return write


def optimal_start(export, solver="gurobi", status="", values=None, objective=None) -> str:
    """Return the export's start as a solver's solution, or other values."""
    z = export.start_objective if objective is None else objective
    return solution_text(solver, status, columns(export) if values is None else values, z)


def columns(export) -> dict[str, float]:
    """Column values of the start that the export wrote for SCIP: a feasible solution by name."""
    values = {}
    for line in export.starts["scip"].read_text().splitlines():
        parts = line.split()
        if len(parts) >= 2 and not line.startswith(("objective", "solution", "#")):
            values[parts[0]] = float(parts[1])
    return values


def cplex_text(values, objective, bound=None) -> str:
    best = "" if bound is None else f' bestBound="{bound!r}"'
    rows = "\n".join(
        f'  <variable name="{n}" index="{i}" value="{v!r}"/>' for i, (n, v) in enumerate(values.items())
    )
    return (
        '<?xml version = "1.0" encoding="UTF-8" standalone="yes"?>\n<CPLEXSolution version="1.2">\n'
        f' <header problemName="m.lp" objectiveValue="{objective!r}" solutionStatusValue="107"\n'
        f'  solutionStatusString="time limit exceeded"{best}/>\n <variables>\n{rows}\n </variables>\n</CPLEXSolution>\n'
    )


def gurobi_text(values, objective) -> str:
    rows = "\n".join(f"{name} {value!r}" for name, value in values.items())
    return f"# Solution for model m\n# Objective value = {objective!r}\n{rows}\n"


def test_the_bound_of_a_cplex_file_is_imported(exported, written):
    text = cplex_text(columns(exported), exported.start_objective, 270.0)
    result = import_solution(written(text, "cplex"))
    assert result.backend.name == "cplex"
    assert result.objective == pytest.approx(exported.start_objective)
    assert (result.bound, result.bound_source, result.limit) == (270.0, "solver", "time")


def test_the_bound_of_a_gurobi_file_comes_from_the_option(exported, written):
    result = import_solution(written(optimal_start(exported)), bound=OPTIMUM + 1e-7)
    assert result.backend.name == "gurobi"
    assert result.objective <= result.bound


#: The solver's usual name, and what precedes the bound in its log.
NAMES = {
    "cplex": ("CPLEX", "'Current MIP best bound'"),
    "gurobi": ("Gurobi", "'best bound'"),
    "highs": ("HiGHS", "'Dual bound'"),
    "scip": ("SCIP", "'Dual Bound'"),
    "cbc": ("CBC", "'Upper bound' or 'Lower bound'"),
}


@pytest.mark.parametrize(
    ("solver", "status", "share"),
    [
        ("cplex", "integer optimal, tolerance", 0.01),
        ("highs", "Optimal", 0.01),
        ("scip", "optimal solution found", 0.01),
        ("cbc", "Optimal (within gap tolerance)", 0.01 / 0.99),
    ],
)
def test_optimal_within_a_gap_that_the_user_states_gives_a_bound(exported, written, solver, status, share):
    path = written(optimal_start(exported, solver, status), solver)
    with pytest.warns(
        milpbn.BoundWarning, match="the relative gap 0.01 that you gave is added to its objective"
    ):
        result = import_solution(path, gap_rel=0.01)
    assert result.bound == pytest.approx(OPTIMUM * (1 + share), abs=2e-6)
    assert (result.bound_source, result.reason) == ("solver", "feasible")
    with pytest.warns(milpbn.BoundWarning):
        assert import_solution(path, gap_rel=0.5).bound == pytest.approx(exported.root_bound)
    with pytest.warns(milpbn.BoundWarning):
        assert import_solution(path, gap_rel=0.0).reason == "optimal"
    with pytest.raises(InputError, match="give one of them"):
        import_solution(path, gap_rel=0.01, bound=300.0)
    with pytest.raises(InputError, match="at least 0 and below 1"):
        import_solution(path, gap_rel=1.0)


@pytest.mark.parametrize(("solver", "status"), [("gurobi", ""), ("highs", "Time limit reached")])
def test_a_gap_proves_nothing_without_an_optimal_status(exported, written, solver, status):
    path = written(optimal_start(exported, solver, status), solver)
    with pytest.raises(InputError, match="no bound follows from a gap; give the bound that"):
        import_solution(path, gap_rel=1e-4)


def test_a_solvers_bound_above_the_root_bound_is_not_taken(exported, written):
    result = import_solution(written(optimal_start(exported)), bound=exported.root_bound + 5)
    assert (result.bound, result.bound_source) == (exported.root_bound, "certified")
    assert exported.root_bound < 281.2  # the trivial bound is 281.24; a busy machine gets fewer steps


def test_a_changed_root_bound_is_refused(exported, written):
    path = written(optimal_start(exported))
    beside, sidecar = path.with_name("m.json"), json.loads(exported.sidecar.read_text())
    beside.write_text(json.dumps({**sidecar, "root_bound": 200.0}))
    with pytest.raises(InputError, match="has the root bound 200, which lies below the score 261"):
        import_solution(path)
    del sidecar["root_bound"]  # as in the sidecars of earlier versions
    beside.write_text(json.dumps(sidecar))
    with pytest.warns(milpbn.BoundWarning, match="the trivial bound, 281.24"):
        import_solution(path)


@pytest.mark.parametrize(
    ("solver", "status", "exact"),
    [
        ("cplex", "integer optimal solution", True),
        ("cplex", "integer optimal, tolerance", False),
        ("cplex", "time limit exceeded", False),
        ("gurobi", "", False),
        ("highs", "Optimal", False),
        ("highs", "Time limit reached", False),
        ("scip", "optimal solution found", True),
        ("scip", "gap limit reached", False),
        ("cbc", "Optimal", True),
        ("cbc", "Optimal (within gap tolerance)", False),
        ("cbc", "Stopped on time", False),
    ],
)
@pytest.mark.parametrize("given", [False, True])
def test_what_each_format_says_of_optimality(exported, written, solver, status, exact, given):
    """The table of `milpbn.milp.files.solution`, with and without a bound from the user."""
    z, path = exported.start_objective, written(optimal_start(exported, solver, status), solver)
    if given:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = import_solution(path, bound=z + 2.0)
        assert (result.bound, result.notes) == (pytest.approx(z + 2.0), ())
        return
    with pytest.warns(milpbn.BoundWarning) as caught:
        result = import_solution(path)
    said = str(caught[0].message)
    assert result.notes == (said,)
    assert result.to_dict()["notes"] == [said]
    assert milpbn.Result.from_dict(result.to_dict()).notes == (said,)
    assert "holds no bound" in said
    assert (status in said) if status else ("has no status" in said)
    if exact:
        assert (result.reason, result.bound_source, result.bound) == ("optimal", "solver", pytest.approx(z))
    else:
        assert (result.reason, result.bound_source) == ("feasible", "certified")
        assert result.bound > z + 1
        assert f"root bound of the export, {result.bound:.6f}" in said
        assert result.bound == pytest.approx(exported.root_bound)
        assert f"Give the bound that {NAMES[solver][0]} printed with --bound" in said
        assert NAMES[solver][1] in said
    assert ("possibly only within a gap" in said) == (not exact and "ptimal" in status)


def solution_text(solver, status, values, z) -> str:
    if solver == "cplex":
        return cplex_text(values, z).replace("time limit exceeded", status)
    if solver == "gurobi":
        return gurobi_text(values, z)
    rows = [f"{name} {value!r}" for name, value in values.items()]
    if solver == "scip":
        lines = [
            f"solution status: {status}",
            f"objective value: {z!r}",
            *(f"{row} \t(obj:0)" for row in rows),
        ]
    elif solver == "cbc":
        lines = [f"{status} - objective value {z!r}", *(f"{k} {row} 0" for k, row in enumerate(rows))]
    else:
        lines = ["Model status", status, "", "# Primal solution values", "Feasible", f"Objective {z!r}"]
        lines += [f"# Columns {len(rows)}", *rows]
    return "\n".join(lines) + "\n"


def test_an_imported_bound_below_what_a_search_finds_is_refused(exported, written):
    """A solver that calls a bad structure optimal is detected."""
    data = milpbn.read_table("corral").dataset("all")
    naive = milpbn.Structure.naive_bayes(data.names)
    z, parents = milpbn.rescore(data, naive, SCORE), naive.to_mapping()
    meaning = json.loads(exported.sidecar.read_text())
    values = {column: float(own == parents[name]) for column, (name, own) in meaning["columns"].items()}
    values[meaning["fingerprint"]] = 1.0
    assert z < OPTIMUM - 1
    path = written(optimal_start(exported, "cbc", "Optimal", values, z), "cbc")
    with pytest.raises(InputError, match="a brief search finds one"):
        import_solution(path)
    with pytest.raises(InputError, match="a brief search finds one"):
        import_solution(path, bound=OPTIMUM - 0.5)
    assert import_solution(path, bound=OPTIMUM).bound == pytest.approx(OPTIMUM)


def test_an_imported_result_has_the_keys_of_every_result(exported, written):
    solved = milpbn.solve("corral", SCORE, verbose=False, threads=1)
    assert import_solution(written(optimal_start(exported))).to_dict().keys() == solved.to_dict().keys()


def test_solutions_that_do_not_fit_are_refused(exported, written):
    values, z = columns(exported), exported.start_objective
    mark = json.loads(exported.sidecar.read_text())["fingerprint"]
    chosen = next(n for n, v in values.items() if n.startswith("p_0_") and round(v) == 1)
    other = next(f"p_0_{k}" for k in range(9) if f"p_0_{k}" != chosen)
    for own, objective, words, options in (
        ({n: v for n, v in values.items() if n != mark}, z, "other data or other options", {}),
        ({f"C{k}": v for k, v in enumerate(values.values())}, z, "of this model's columns, but 'C0'", {}),
        ({**values, other: 1.0}, z, "two parent sets", {}),
        ({**values, chosen: 0.0}, z, "no parent set", {}),
        ({**values, chosen: 0.5}, z, "must be 0 or 1", {}),
        (values, z + 5.0, "scores", {}),
        (values, z, "below the score", {"bound": z - 5.0}),
        (values, z, "finite", {"bound": float("nan")}),
        (values, z, "not those of the exported model", {"data": "monks-1"}),
    ):
        with pytest.raises(InputError, match=words):
            import_solution(written(gurobi_text(own, objective)), **options)


def test_a_cyclic_solution_is_refused(exported, written):
    meaning = json.loads(exported.sidecar.read_text())["columns"]
    values = columns(exported)

    def choose(variable, parent):
        column = next(c for c, (v, p) in meaning.items() if v == variable and parent in p)
        for c, (v, _) in meaning.items():
            if v == variable:
                values[c] = float(c == column)

    choose("A0", "A1")
    choose("A1", "A0")
    with pytest.raises(InputError, match="cycle"):
        import_solution(written(gurobi_text(values, 1.0)))


def test_data_in_memory_has_to_be_given_again(tmp_path):
    data = milpbn.read_table("corral").dataset("all")
    export = export_model(data, SCORE, path=tmp_path / "m.lp")
    path = tmp_path / "m.gurobi.sol"
    path.write_text(gurobi_text(columns(export), export.start_objective))
    with pytest.raises(InputError, match="data in memory"):
        import_solution(path)
    assert import_solution(path, data=data).objective == pytest.approx(export.start_objective)


def test_a_reduced_model_is_smaller_and_has_the_same_optimum(tmp_path):
    score = milpbn.Score(p=0.99)
    whole = export_model("corral", score, path=tmp_path / "whole.lp")
    small = export_model("corral", score, path=tmp_path / "small.lp", reduced=True)
    assert small.columns < whole.columns
    marks = {json.loads(e.sidecar.read_text())["fingerprint"] for e in (whole, small)}
    assert len(marks) == 2
    target = tmp_path / "small.highs.sol"
    by_highs(small, target)
    result = import_solution(target)
    assert result.objective == pytest.approx(414.493534, abs=1e-6)  # see test_api_known_optima


def test_a_solvers_report_in_json_does_not_hide_the_sidecar(model, tmp_path):
    """Gurobi's ``m.gurobi.json`` beside ``m.gurobi.sol`` was taken for the sidecar, which is ``m.json``."""
    export = model(".lp")
    shutil.copy(export.model.with_suffix(".json"), tmp_path / "m.json")
    shutil.copy(export.starts["gurobi"], tmp_path / "m.gurobi.sol")
    (tmp_path / "m.gurobi.json").write_text('{ "SolutionInfo": { "Status": 2}}\n')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imported = import_solution(tmp_path / "m.gurobi.sol", data="corral")
    assert imported.backend.name == "gurobi"
