"""Scripts for the solvers' Python packages; those of gurobipy and cplex run where the packages are installed."""

from __future__ import annotations

import py_compile
import subprocess
import sys

import pytest
from files_common import optimum, random_milp

from milpbn.errors import InputError
from milpbn.milp.files.dialects import write_starts
from milpbn.milp.files.model_files import write_lp
from milpbn.milp.files.scripts import PACKAGES, check_packages, script_path, solver_script
from milpbn.milp.files.solution_files import read_solution


def written(folder, package, time_limit=30.0, threads=1):
    model = random_milp(6)
    value, x = optimum(model)
    write_lp(model, folder / "m.lp")
    starts = {solver: path.name for solver, path in write_starts(model, x, folder / "m.lp").items()}
    path = script_path(package, folder / "m")
    path.write_text(solver_script(package, "m.lp", starts, "m", time_limit, threads), encoding="utf-8")
    return path, value - model.constant


@pytest.mark.parametrize("package", PACKAGES)
def test_a_script_solves_the_model(tmp_path, package):
    pytest.importorskip(package)
    path, value = written(tmp_path, package)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    solution = tmp_path / f"m.{PACKAGES[package]}.sol"
    parsed = read_solution(solution)
    assert parsed.format == PACKAGES[package]
    assert parsed.objective == pytest.approx(value)
    start, _, bound = done.stdout.splitlines()[-1].partition(" --bound=")
    assert start == f"milpbn import {solution}"
    assert float(bound) == pytest.approx(value)


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("limits", [(None, None), (12.5, 3)])
def test_scripts_are_python_and_hold_the_limits_that_were_given(tmp_path, package, limits):
    path, _ = written(tmp_path, package, *limits)
    py_compile.compile(str(path), cfile=str(tmp_path / "compiled"), doraise=True)
    text = path.read_text(encoding="utf-8")
    assert ("12.5" in text) == (limits[0] is not None)
    assert "{" not in text.replace("{model}", "").replace("{shlex.quote(str(solution))}", "").replace(
        "{bound!r}", ""
    )
    assert "0.0" in text or package == "cplex"


def test_a_script_without_its_model_says_so(tmp_path):
    path, _ = written(tmp_path, "highspy")
    (tmp_path / "m.lp").unlink()
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("There is no model")


def test_unknown_packages_are_refused():
    with pytest.raises(InputError, match="no script for 'scipy'"):
        check_packages(("highspy", "scipy"))
