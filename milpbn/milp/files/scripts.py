"""Python scripts that solve an exported model with the solvers' own Python packages.

A script reads model and start from its own folder, so that the files can be moved to another machine together. It
solves with gap 0, writes the solution file that `milpbn import` reads, and prints the command for the import, with the
solver's bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from milpbn.errors import InputError

#: The solver, as in the names of start and solution files, of each Python package.
PACKAGES = {"highspy": "highs", "pyscipopt": "scip", "gurobipy": "gurobi", "cplex": "cplex"}

_HEAD = '''"""Solve {model} with {package}: gap 0, from the start, then write the solution."""

import shlex
from pathlib import Path

import {package}

folder = Path(__file__).resolve().parent
model, start, solution = folder / {model!r}, folder / {start!r}, folder / {solution!r}
if not model.is_file():
    raise SystemExit(f"There is no model {{model}}; keep this script in the folder of the model.")

'''
_TAIL = """print(f"\\nmilpbn import {shlex.quote(str(solution))} --bound={bound!r}")
"""
_BODIES = {
    "highspy": """solver = highspy.Highs()
solver.setOptionValue("mip_rel_gap", 0.0)
solver.setOptionValue("mip_abs_gap", 0.0)
{time:solver.setOptionValue("time_limit", {})}
{threads:solver.setOptionValue("threads", {})}
if solver.readModel(str(model)) == highspy.HighsStatus.kError:
    raise SystemExit(f"HiGHS cannot read {model}.")
if start.is_file():
    solver.readSolution(str(start), 0)
solver.run()
info = solver.getInfo()
if info.primal_solution_status != 2:
    raise SystemExit("HiGHS found no solution; let it run longer.")
solver.writeSolution(str(solution), 0)
bound = info.mip_dual_bound
""",
    "pyscipopt": """solver = pyscipopt.Model()
solver.setParam("limits/gap", 0.0)
{time:solver.setParam("limits/time", {})}
solver.readProblem(str(model))
if start.is_file():
    solver.addSol(solver.readSolFile(str(start)))
solver.optimize()
if solver.getNSols() == 0:
    raise SystemExit("SCIP found no solution; let it run longer.")
solver.writeBestSol(str(solution))
bound = solver.getDualbound()
""",
    "gurobipy": """solver = gurobipy.read(str(model))
solver.Params.MIPGap = 0.0
solver.Params.MIPGapAbs = 0.0
{time:solver.Params.TimeLimit = {}}
{threads:solver.Params.Threads = {}}
if start.is_file():
    solver.read(str(start))
solver.optimize()
if solver.SolCount == 0:
    raise SystemExit("Gurobi found no solution; let it run longer.")
solver.write(str(solution))
bound = solver.ObjBound
""",
    "cplex": """solver = cplex.Cplex()
solver.read(str(model))
solver.parameters.mip.tolerances.mipgap.set(0.0)
solver.parameters.mip.tolerances.absmipgap.set(0.0)
{time:solver.parameters.timelimit.set({})}
{threads:solver.parameters.threads.set({})}
if start.is_file():
    solver.MIP_starts.read(str(start))
solver.solve()
if not solver.solution.is_primal_feasible():
    raise SystemExit("CPLEX found no solution; let it run longer.")
solver.solution.write(str(solution))
bound = solver.solution.MIP.get_best_objective()
""",
}


def script_path(package: str, stem: Path) -> Path:
    """Return the path of a package's script: ``dir/m_highspy.py`` for the stem ``dir/m``."""
    return stem.with_name(f"{stem.name}_{package}.py")


def check_packages(packages: tuple[str, ...]) -> None:
    """Check that there are scripts for these packages; InputError if there is none for one of them."""
    for package in packages:
        if package not in PACKAGES:
            raise InputError(f"There is no script for {package!r}; choose from {', '.join(PACKAGES)}.")


def solver_script(
    package: str,
    model: str,
    starts: Mapping[str, str],
    stem: str,
    time_limit: float | None = None,
    threads: int | None = None,
) -> str:
    """Return the text of the script for one of `PACKAGES`.

    `model` and the `starts` by solver are names of files, without their folder, and `stem` is the name of the solution
    file without ``.SOLVER.sol``. `time_limit` is in wall-clock seconds. SCIP ignores `threads`: its ordinary solve
    always uses one.
    """
    solver = PACKAGES[package]
    head = _HEAD.format(package=package, model=model, start=starts[solver], solution=f"{stem}.{solver}.sol")
    given = {"{time:": time_limit, "{threads:": threads}
    lines = []
    for line in _BODIES[package].splitlines(keepends=True):
        mark = next((mark for mark in given if line.startswith(mark)), None)
        if mark is None:
            lines.append(line)
        elif given[mark] is not None:
            lines.append(line.removeprefix(mark).rstrip("\n")[:-1].format(repr(given[mark])) + "\n")
    return head + "".join(lines) + _TAIL
