"""Export to a file, solve it with real solvers outside milpbn, import the answer."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

import milpbn
from milpbn.errors import InputError
from milpbn.external import export_model, import_solution

SCORE = milpbn.Score(p=0.9)
OPTIMUM = 261.134799740  # corral with class parents: the design's table, here by enumeration in test_oracle


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


SOLVERS = {"cbc": by_cbc, "highs": by_highs, "scip": by_scip}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_round_trip_through_a_real_solver(tmp_path, solver, suffix):
    export = export_model("corral", SCORE, path=tmp_path / f"m{suffix}")
    target = tmp_path / f"m.{solver}.sol"
    SOLVERS[solver](export, target)
    bound = OPTIMUM if suffix == ".lp" else -OPTIMUM
    result = import_solution(target, bound=bound)
    assert result.objective == pytest.approx(OPTIMUM, abs=1e-6)
    assert result.reason == "optimal"
    assert result.backend.name == solver
    assert result.bound_source == "solver"
    assert result.classifier is not None
    # Without a bound in file or option nothing is claimed but the trivial one.
    unproved = import_solution(target)
    assert unproved.reason == "feasible"
    assert unproved.bound_source == "certified"
    assert unproved.bound > OPTIMUM


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("reduced", [True, False])
def test_round_trip_of_a_subset(tmp_path, merge, reduced):
    """The solver's numbers are the subset's, as a search over it here has them; the score is that of all rows."""
    best = milpbn.solve("corral", SCORE, subset=40, merge=merge, verbose=False)
    assert best.subset["optimal"]
    export = export_model("corral", SCORE, path=tmp_path / "m.mps", subset=40, merge=merge, reduced=reduced)
    by_highs(export, tmp_path / "m.highs.sol")
    value = best.subset["objective"]
    result = import_solution(tmp_path / "m.highs.sol", bound=-value)
    assert result.subset["samples"] == best.subset["samples"]
    assert result.subset["objective"] == pytest.approx(value, abs=1e-6)
    assert result.subset["optimal"]
    assert result.bound is None
    assert result.objective == pytest.approx(
        milpbn.rescore(milpbn.read_table("corral").dataset(), result.structure, SCORE)
    )
    # Without a bound the trivial one of the subset is claimed, and one below the score over it is refused.
    assert import_solution(tmp_path / "m.highs.sol").subset["bound"] >= value - 1e-9
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


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"subset": 2.5}, "subset must be a whole number"),
        ({"subset": 0}, "at least 1 sample"),
        ({"time_limit": -1.0}, "time limit"),
        ({"threads": 0}, "threads"),
        ({"random_state": -1}, "seed"),
    ],
    ids=str,
)
def test_options_are_checked_before_anything_is_written(tmp_path, option, words):
    with pytest.raises(InputError, match=words):
        export_model("corral", SCORE, path=tmp_path / "m.lp", **option)
    assert not list(tmp_path.iterdir())


def test_a_sidecar_with_other_samples_is_refused(tmp_path):
    export = export_model("corral", SCORE, path=tmp_path / "m.lp", subset=40)
    by_highs(export, tmp_path / "m.highs.sol")
    sidecar = json.loads(export.sidecar.read_text())
    pairs = sidecar["subset"]
    for changed, words in (
        ([[10**6, 1.0], *pairs], "samples that there are none of"),
        ([[-1, 1.0], *pairs], "samples that there are none of"),
        ([[pairs[0][0], 2 * pairs[0][1]], *pairs[1:]], "belongs to other data or options"),
        ([["x", 1.0]], "cannot be used"),
        (5, "cannot be used"),
    ):
        export.sidecar.write_text(json.dumps({**sidecar, "subset": changed}))
        with pytest.raises(InputError, match=words):
            import_solution(tmp_path / "m.highs.sol")


@pytest.fixture
def exported(tmp_path):
    return export_model("corral", SCORE, path=tmp_path / "m.lp")


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


def test_cplex_file_with_bound(exported, tmp_path):
    path = tmp_path / "m.cplex.sol"
    path.write_text(cplex_text(columns(exported), exported.start_objective, 270.0))
    result = import_solution(path)
    assert result.backend.name == "cplex"
    assert result.objective == pytest.approx(exported.start_objective)
    assert (result.bound, result.bound_source, result.limit) == (270.0, "solver", "time")


def test_gurobi_file_with_the_bound_as_an_option(exported, tmp_path):
    path = tmp_path / "m.gurobi.sol"
    path.write_text(gurobi_text(columns(exported), exported.start_objective))
    result = import_solution(path, bound=OPTIMUM + 1e-7)
    assert result.backend.name == "gurobi"
    assert result.objective <= result.bound


def test_the_same_result_contract(exported, tmp_path):
    path = tmp_path / "m.gurobi.sol"
    path.write_text(gurobi_text(columns(exported), exported.start_objective))
    solved = milpbn.solve("corral", SCORE, verbose=False, threads=1)
    assert import_solution(path).to_dict().keys() == solved.to_dict().keys()


def changed(values, **changes):
    return {**values, **changes}


def test_what_is_refused(exported, tmp_path):
    values = columns(exported)
    mark = json.loads(exported.sidecar.read_text())["fingerprint"]
    chosen = next(n for n, v in values.items() if n.startswith("p_0_") and round(v) == 1)
    other = next(f"p_0_{k}" for k in range(9) if f"p_0_{k}" != chosen)
    path = tmp_path / "m.gurobi.sol"

    def refused(text: str, match: str, **options) -> None:
        path.write_text(text)
        with pytest.raises(InputError, match=match):
            import_solution(path, **options)

    z = exported.start_objective
    refused(gurobi_text({n: v for n, v in values.items() if n != mark}, z), "other data or other options")
    refused(gurobi_text(changed(values, **{other: 1.0}), z), "two parent sets")
    refused(gurobi_text(changed(values, **{chosen: 0.0}), z), "no parent set")
    refused(gurobi_text(changed(values, **{chosen: 0.5}), z), "binary")
    refused(gurobi_text(values, z + 5.0), "scores")
    refused(gurobi_text(values, z), "below the score", bound=z - 5.0)
    refused(gurobi_text(values, z), "finite", bound=float("nan"))
    refused(gurobi_text(values, z), "not those of the exported model", data="monks-1")


def test_a_cyclic_solution_is_refused(exported, tmp_path):
    meaning = json.loads(exported.sidecar.read_text())["columns"]
    values = columns(exported)

    def choose(variable, parent):
        column = next(c for c, (v, p) in meaning.items() if v == variable and parent in p)
        for c, (v, _) in meaning.items():
            if v == variable:
                values[c] = float(c == column)

    choose("A0", "A1")
    choose("A1", "A0")
    path = tmp_path / "m.gurobi.sol"
    path.write_text(gurobi_text(values, 1.0))
    with pytest.raises(InputError, match="cycle"):
        import_solution(path)


def test_data_in_memory_has_to_be_given_again(tmp_path):
    data = milpbn.read_table("corral").dataset("all")
    export = export_model(data, SCORE, path=tmp_path / "m.lp")
    path = tmp_path / "m.gurobi.sol"
    path.write_text(gurobi_text(columns(export), export.start_objective))
    with pytest.raises(InputError, match="data in memory"):
        import_solution(path)
    assert import_solution(path, data=data).objective == pytest.approx(export.start_objective)


def test_a_sidecar_of_another_model_is_not_overwritten(exported, tmp_path):
    with pytest.raises(InputError, match=r"belongs to 'm\.lp'"):
        export_model("corral", SCORE, path=tmp_path / "m.mps")
    export_model("corral", milpbn.Score(p=0.99), path=tmp_path / "m.lp")


def test_the_exported_model_has_the_papers_rows(exported):
    import highspy

    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.readModel(str(exported.model))
    names = [h.getRowName(r)[1] for r in range(h.getNumRow())]
    V = 7
    assert sum(n.startswith("a_") for n in names) == V * V - V
    assert sum(n.startswith("s_") for n in names) == V
    assert np.isclose(exported.start_objective, OPTIMUM, atol=60)


def test_other_suffixes_are_refused(tmp_path):
    with pytest.raises(InputError, match="ends in"):
        export_model("corral", SCORE, path=tmp_path / "m.txt")


def test_a_score_that_is_not_piecewise_linear_is_not_exported(tmp_path):
    with pytest.raises(InputError, match="only be a relaxation"):
        export_model("corral", milpbn.Score(name="cll"), path=tmp_path / "m.lp")
    assert not any(tmp_path.iterdir())


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
    assert result.objective == pytest.approx(414.493534, abs=1e-6)  # the design's table


def test_a_score_without_a_bound_of_its_own_cannot_be_reduced(tmp_path):
    with pytest.raises(InputError, match="--reduced"):
        export_model("corral", "mdl", path=tmp_path / "m.lp", reduced=True)


@pytest.mark.parametrize(("name", "is_lp"), [("m.LP", True), ("m.lp.mps", False), ("m.MPS", False)])
def test_the_last_suffix_is_the_format(tmp_path, name: str, is_lp: bool) -> None:
    export_model("instance:corral", path=tmp_path / name)
    text = (tmp_path / name).read_text()
    assert ("Maximize" in text) == is_lp
    assert ("ROWS" in text) == (not is_lp)
