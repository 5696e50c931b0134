"""Shell command lines that solve an exported model with the solvers' own executables."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping

from milpbn.errors import InputError

PathLike = str | os.PathLike[str]

#: Name of each solver's executable.
EXECUTABLES = {"cplex": "cplex", "gurobi": "gurobi_cl", "scip": "scip", "highs": "highs", "cbc": "cbc"}


def solvers_on_path() -> list[str]:
    """Return the solvers whose executables are on the path of this machine."""
    return [solver for solver, executable in EXECUTABLES.items() if shutil.which(executable)]


def solver_commands(
    model_path: PathLike,
    start_paths: Mapping[str, PathLike],
    solution_stem: PathLike,
    time_limit: float | None = None,
    threads: int | None = None,
) -> dict[str, str]:
    """Return one POSIX shell line per solver: read model and start, solve with gap 0, write the solution.

    The solutions go to ``SOLUTION_STEM.cplex.sol``, ``SOLUTION_STEM.gurobi.sol`` and so on, which
    :func:`milpbn.milp.files.solution_files.read_solution` reads.

    Parameters
    ----------
    model_path : path
        The .lp or .mps file, which may be gzipped.
    start_paths : mapping of str to path
        Start files by solver, as :func:`milpbn.milp.files.start_files.write_starts` returns them. A solver without an
        item starts without a solution.
    solution_stem : path
        Path of the solution files, without the solver's name and the suffix.
    time_limit : float, optional
        Wall-clock seconds.
    threads : int, optional
        Number of threads. SCIP ignores it: its ordinary solve always uses one.

    Returns
    -------
    dict of str to str
        Command lines by solver: ``cplex``, ``gurobi``, ``scip``, ``highs``, ``cbc``.

    Raises
    ------
    InputError
        If a path has a double quote or an unprintable character such as a line break. The interactive shells of CPLEX
        and SCIP cannot read such paths.
    """
    model = _word(model_path)
    starts = {solver: _word(path) for solver, path in start_paths.items()}
    stem = _word(solution_stem)
    for path in (model, stem, *starts.values()):
        if any(c == '"' or not c.isprintable() for c in path):
            raise InputError(
                f"The path {path!r} contains a double quote, a control character or bytes that are not UTF-8, and the "
                "shells of CPLEX and SCIP cannot read it; choose another path."
            )
    seconds = None if time_limit is None else f"{time_limit:.15g}"
    build = {"cplex": _cplex, "gurobi": _gurobi, "scip": _scip, "highs": _highs, "cbc": _cbc}
    return {
        solver: line(model, starts.get(solver), f"{stem}.{solver}", seconds, threads)
        for solver, line in build.items()
    }


def _cplex(model: str, start: str | None, stem: str, seconds: str | None, threads: int | None) -> str:
    # CPLEX asks before it overwrites a file and would read the next command as the answer.
    solution = f"{stem}.sol"
    commands = [f"read {_quote(model)}"]
    commands += [f"read {_quote(start)}"] if start else []
    commands += [f"set timelimit {seconds}"] if seconds else []
    commands += [f"set threads {threads}"] if threads else []
    commands += ["set mip tolerances mipgap 0", "set mip tolerances absmipgap 0", "mipopt"]
    commands += [f"write {_quote(solution)}", "quit"]
    return f"rm -f {shlex.quote(solution)} && {shlex.join(['cplex', '-c', *commands])}"


def _gurobi(model: str, start: str | None, stem: str, seconds: str | None, threads: int | None) -> str:
    words = ["gurobi_cl", "MIPGap=0", "MIPGapAbs=0"]
    words += [f"TimeLimit={seconds}"] if seconds else []
    words += [f"Threads={threads}"] if threads else []
    words += [f"InputFile={start}"] if start else []
    return shlex.join([*words, f"ResultFile={stem}.sol", model])


def _scip(model: str, start: str | None, stem: str, seconds: str | None, threads: int | None) -> str:
    commands = [f'read "{model}"']
    commands += [f'read "{start}"'] if start else []
    commands += [f"set limits time {seconds}"] if seconds else []
    commands += ["optimize", f'write solution "{stem}.sol"', "quit"]
    return shlex.join(["scip", *(word for command in commands for word in ("-c", command))])


def _highs(model: str, start: str | None, stem: str, seconds: str | None, threads: int | None) -> str:
    # The executable takes the gaps and the number of threads from an options file only.
    options = f"{stem}.options"
    lines = ["mip_rel_gap = 0", "mip_abs_gap = 0", *([f"threads = {threads}"] if threads else [])]
    words = ["highs", "--options_file", options]
    words += ["--time_limit", seconds] if seconds else []
    words += ["--read_solution_file", start] if start else []
    words += ["--solution_file", f"{stem}.sol", model]
    return f"printf '%s\\n' {shlex.join(lines)} > {shlex.quote(options)} && {shlex.join(words)}"


def _cbc(model: str, start: str | None, stem: str, seconds: str | None, threads: int | None) -> str:
    # Some builds of CBC, PuLP's among them, cannot read compressed files.
    unpack, plain = "", model.removesuffix(".gz")
    if plain != model:
        unpack = f"gzip -dkf {shlex.quote(model)} && "
    words = ["cbc", plain, "-ratioGap", "0", "-allowableGap", "0"]
    words += ["-sec", seconds, "-timeMode", "elapsed"] if seconds else []
    words += ["-threads", str(threads)] if threads else []
    # With a start, CBC 2.10 confuses the signs of a maximising .lp; the .mps minimises.
    words += ["-mips", start] if start and plain.lower().endswith(".mps") else []
    return unpack + shlex.join([*words, "-solve", "-solution", f"{stem}.sol"])


def _word(path: PathLike) -> str:
    """Return a path in a form that no program mistakes for an option."""
    text = os.fspath(path)
    return f"./{text}" if text.startswith("-") else text


def _quote(path: str) -> str:
    """Quote a path for the CPLEX interactive optimiser."""
    return f'"{path}"' if any(c.isspace() for c in path) else path
