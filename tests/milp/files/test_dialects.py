"""The solvers accept the start files and run the command lines."""

from __future__ import annotations

import os
import shlex
import subprocess
from xml.etree import ElementTree

import highspy
import numpy as np
import pytest
from files_common import CBC, knapsack, needs_scip, optimum, pyscipopt, random_milp, read_with_highs, run_cbc

from milpbn.errors import InputError
from milpbn.milp.files.dialects import DIALECTS, solver_commands, write_start, write_starts
from milpbn.milp.files.model_files import write_lp, write_mps
from milpbn.milp.files.solution_files import read_solution


def knapsack_with_start():
    model = knapsack()
    x = np.zeros(model.n_columns)
    x[[3, 5, 8]] = 1
    return model, x


@pytest.fixture
def model():
    return random_milp(4)


@pytest.fixture
def x(model):
    return optimum(model)[1]


@pytest.mark.parametrize(("write", "suffix"), [(write_lp, "lp"), (write_mps, "mps")])
def test_highs_accepts_the_start(tmp_path, write, suffix):
    model, x = knapsack_with_start()
    write(model, tmp_path / f"m.{suffix}")
    start = write_starts(model, x, tmp_path / f"m.{suffix}")["highs"]
    solver = read_with_highs(tmp_path / f"m.{suffix}")
    solver.setOptionValue("log_file", str(tmp_path / "log"))
    solver.setOptionValue("log_to_console", False)
    solver.setOptionValue("output_flag", True)
    solver.readSolution(str(start), 0)
    assert solver.getSolution().col_value == x.tolist()
    solver.setOptionValue("time_limit", 0.5)
    solver.run()
    objective = model.objective(x) if suffix == "lp" else -model.objective(x)
    assert (
        f"MIP start solution is feasible, objective value is {objective:g}" in (tmp_path / "log").read_text()
    )


@needs_scip
@pytest.mark.parametrize("write", [write_lp, write_mps])
def test_scip_accepts_the_start(tmp_path, model, x, write):
    path = tmp_path / ("m.lp" if write is write_lp else "m.mps")
    write(model, path)
    start = write_starts(model, x, path)["scip"]
    solver = pyscipopt.Model()
    solver.hideOutput()
    solver.readProblem(str(path))
    assert solver.addSol(solver.readSolFile(str(start)))


def test_cbc_accepts_the_start(tmp_path):
    model, x = knapsack_with_start()
    write_mps(model, tmp_path / "m.mps")
    start = write_starts(model, x, tmp_path / "m.mps")["cbc"]
    log = run_cbc(
        tmp_path / "m.mps", tmp_path / "m.sol", "-mips", str(start), "-sec", "1", "-timeMode", "elapsed"
    )
    assert f"MIPStart values read for {model.n_columns} variables" in log
    assert f"MIPStart provided solution with cost {-model.objective(x):.6g}" in log


def test_cplex_start_holds_the_integers_by_name_and_place(tmp_path, model, x):
    write_start("cplex", model, x, tmp_path / "m.mst")
    root = ElementTree.parse(tmp_path / "m.mst").getroot()
    variables = root.findall("CPLEXSolution/variables/variable")
    assert root.tag == "CPLEXSolutions"
    assert [int(v.get("index")) for v in variables] == np.flatnonzero(model.integer).tolist()
    assert [v.get("name") for v in variables] == [
        model.column_names[j] for j in np.flatnonzero(model.integer)
    ]
    assert [float(v.get("value")) for v in variables] == np.round(x[model.integer]).tolist()


@pytest.mark.parametrize("solver", ["gurobi", "scip", "highs", "cbc"])
def test_starts_read_back_with_integers_rounded(tmp_path, model, x, solver):
    suffix = DIALECTS[solver].start_suffix
    write_start(solver, model, np.where(model.integer, np.round(x) + 1e-7, x), tmp_path / f"start{suffix}")
    solution = read_solution(tmp_path / f"start{suffix}")
    assert solution.format == solver
    for j, name in enumerate(model.column_names):
        assert solution.values[name] == (np.round(x[j]) if model.integer[j] else x[j])


@pytest.mark.parametrize("bad", [np.zeros(3), np.full(8, np.nan)])
def test_a_wrong_vector_is_refused_and_nothing_written(tmp_path, model, bad):
    with pytest.raises(ValueError, match="8 columns"):
        write_starts(model, bad, tmp_path / "m.lp")
    assert list(tmp_path.iterdir()) == []


def shim(folder, name, script):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def run_line(line, programs):
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        line, shell=True, env=environment, capture_output=True, text=True, check=True, timeout=120
    )


@pytest.mark.parametrize("name", ["m.mps", "m.mps.gz", "m.lp", "m.lp.gz"])
def test_the_cbc_line_runs(tmp_path, name):
    """The command lines work with the actual executable, in a folder whose name needs quoting."""
    folder = tmp_path / "it's a $folder"
    folder.mkdir()
    model = random_milp(6)
    value, x = optimum(model)
    (write_mps if "mps" in name else write_lp)(model, folder / name)
    starts = write_starts(model, x, folder / name)
    programs = tmp_path / "bin"
    programs.mkdir()
    shim(programs, "cbc", f'exec {shlex.quote(CBC)} "$@"')
    line = solver_commands(folder / name, starts, folder / "m", 30, 1)["cbc"]
    log = run_line(line, programs).stdout
    sign = -1 if "mps" in name else 1
    assert sign * read_solution(folder / "m.cbc.sol").objective + model.constant == pytest.approx(value)
    # CBC confuses signs if a maximising .lp has a start.
    assert ("MIPStart values read" in log) == ("mps" in name)


@pytest.mark.parametrize("solver", ["cplex", "gurobi", "scip", "highs"])
def test_lines_survive_the_shell(tmp_path, solver):
    folder = tmp_path / "it's a $folder"
    folder.mkdir()
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in ("cplex", "gurobi_cl", "scip", "highs"):
        shim(programs, program, 'for a in "$@"; do printf "%s\\n" "$a"; done')
    model, start, stem = (str(folder / name) for name in ("m.lp", "s.mst", "out"))
    solution = f"{stem}.{solver}.sol"
    line = solver_commands(model, {solver: start}, stem, 7200, 3)[solver]
    words = run_line(line, programs).stdout.splitlines()
    expected = {
        "cplex": [
            f'read "{model}"',
            f'read "{start}"',
            "set timelimit 7200",
            "set threads 3",
            f'write "{solution}"',
        ],
        "gurobi": [f"InputFile={start}", "TimeLimit=7200", "Threads=3", f"ResultFile={solution}", model],
        "scip": [
            f'read "{model}"',
            f'read "{start}"',
            "set limits time 7200",
            f'write solution "{solution}"',
        ],
        "highs": ["--read_solution_file", start, "--time_limit", "7200", "--solution_file", solution, model],
    }
    assert set(expected[solver]) <= set(words)
    if solver == "highs":
        reader = read_options(words[words.index("--options_file") + 1])
        assert reader.getOptionValue("threads")[1] == 3
        assert reader.getOptionValue("mip_rel_gap")[1] == 0


def read_options(path):
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    assert solver.readOptions(path) == highspy.HighsStatus.kOk
    return solver


def test_commands_name_no_limits_and_starts_that_were_not_given():
    lines = solver_commands("m.lp", {}, "m")
    assert list(lines) == ["cplex", "gurobi", "scip", "highs", "cbc"]
    for word in ("time", "sec", "hreads", ".mst", "-mips", "InputFile", "--read"):
        assert not any(word in line.replace("-timeMode", "") for line in lines.values()), word


@pytest.mark.parametrize("path", ['a"b.lp', "a\nb.lp"])
def test_paths_that_no_solver_shell_can_take_are_refused(path):
    with pytest.raises(InputError, match="double quote"):
        solver_commands(path, {}, "m")
