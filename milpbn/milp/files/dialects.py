"""How each solver is called: its start files, and the shell command lines that solve an exported model."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.milp.files.text_output import model_stem, number_strings, open_text
from milpbn.milp.milp import Milp

PathLike = str | os.PathLike[str]


class Dialect(NamedTuple):
    """What one solver reads.

    `start` yields the text of a start file, given a model, a point, and the name and value of every column as they are
    written. `command` returns a shell line, given the paths of model and start, the path of the solution without its
    suffix, the time limit in seconds, and the number of threads; only the first and the third are never None.
    """

    executable: str
    start_suffix: str
    start: Callable[[Milp, NDArray[np.float64], Iterable[tuple[str, str]]], Iterator[str]]
    command: Callable[[str, str | None, str, str | None, int | None], str]


def _start_cplex(model: Milp, x: NDArray[np.float64], values: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a MIP start in CPLEX's XML, like its own without continuous columns, which it computes by an LP."""
    yield '<?xml version = "1.0" encoding="UTF-8" standalone="yes"?>\n'
    yield '<CPLEXSolutions version="1.2">\n <CPLEXSolution version="1.2">\n  <header\n'
    yield f"    problemName={quoteattr(model.name)}\n"
    yield '    solutionName="m1"\n    solutionIndex="0"\n    MIPStartEffortLevel="0"\n'
    yield '    writeLevel="2"/>\n  <variables>\n'
    for j, (name, value) in enumerate(values):
        if model.integer[j]:
            yield f'   <variable name="{name}" index="{j}" value="{value}"/>\n'
    yield "  </variables>\n </CPLEXSolution>\n</CPLEXSolutions>\n"


def _start_gurobi(model: Milp, x: NDArray[np.float64], values: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a comment, then ``name value`` for every column; CPLEX's starts have the same suffix."""
    yield "# MIP start\n"
    yield from (f"{name} {value}\n" for name, value in values)


def _start_scip(model: Milp, x: NDArray[np.float64], values: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a solution of SCIP, whose command ``read`` accepts it as a start."""
    yield f"objective value: {float(model.c @ x)!r}\n"
    for (name, value), cost in zip(values, number_strings(model.c), strict=True):
        yield f"{name} {value} \t(obj:{cost})\n"


def _start_highs(model: Milp, x: NDArray[np.float64], values: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a raw solution, for ``highs --read_solution_file``.

    It lists every column, because with a partial start HiGHS reports bounds of a sub-MIP as bounds of the model. It
    lists no row, because HiGHS computes the activities of the rows.
    """
    yield "Model status\nUnknown\n\n# Primal solution values\nFeasible\n"
    yield f"Objective {float(model.c @ x)!r}\n# Columns {model.n_columns}\n"
    yield from (f"{name} {value}\n" for name, value in values)


def _start_cbc(model: Milp, x: NDArray[np.float64], values: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a solution for ``cbc MODEL.mps -mips FILE``.

    It is for the .mps file, which minimises. For the .lp file, which maximises, CBC 2.10.3 confuses the signs and
    calls a start with a negative objective optimal.
    """
    yield f"Stopped on iterations - objective value {-float(model.c @ x)!r}\n"
    yield from (f"{j} {name} {value} 0\n" for j, (name, value) in enumerate(values))


def _run_cplex(model: str, start: str | None, stem: str, seconds: str | None, threads: int | None) -> str:
    # CPLEX asks before it overwrites a file and would read the next command as the answer.
    solution = f"{stem}.sol"
    commands = [f"read {_quote(model)}"]
    commands += [f"read {_quote(start)}"] if start else []
    commands += [f"set timelimit {seconds}"] if seconds else []
    commands += [f"set threads {threads}"] if threads else []
    commands += ["set mip tolerances mipgap 0", "set mip tolerances absmipgap 0", "mipopt"]
    commands += [f"write {_quote(solution)}", "quit"]
    return f"rm -f {shlex.quote(solution)} && {shlex.join(['cplex', '-c', *commands])}"


def _run_gurobi(model: str, start: str | None, stem: str, seconds: str | None, threads: int | None) -> str:
    words = ["gurobi_cl", "MIPGap=0", "MIPGapAbs=0"]
    words += [f"TimeLimit={seconds}"] if seconds else []
    words += [f"Threads={threads}"] if threads else []
    words += [f"InputFile={start}"] if start else []
    return shlex.join([*words, f"ResultFile={stem}.sol", model])


def _run_scip(model: str, start: str | None, stem: str, seconds: str | None, threads: int | None) -> str:
    commands = [f'read "{model}"']
    commands += [f'read "{start}"'] if start else []
    commands += [f"set limits time {seconds}"] if seconds else []
    commands += ["optimize", f'write solution "{stem}.sol"', "quit"]
    return shlex.join(["scip", *(word for command in commands for word in ("-c", command))])


def _run_highs(model: str, start: str | None, stem: str, seconds: str | None, threads: int | None) -> str:
    # The executable takes the gaps and the number of threads from an options file only.
    options = f"{stem}.options"
    lines = ["mip_rel_gap = 0", "mip_abs_gap = 0", *([f"threads = {threads}"] if threads else [])]
    words = ["highs", "--options_file", options]
    words += ["--time_limit", seconds] if seconds else []
    words += ["--read_solution_file", start] if start else []
    words += ["--solution_file", f"{stem}.sol", model]
    return f"printf '%s\\n' {shlex.join(lines)} > {shlex.quote(options)} && {shlex.join(words)}"


def _run_cbc(model: str, start: str | None, stem: str, seconds: str | None, threads: int | None) -> str:
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


def _quote(path: str) -> str:
    """Quote a path for the CPLEX interactive optimiser."""
    return f'"{path}"' if any(c.isspace() for c in path) else path


DIALECTS: Final[dict[str, Dialect]] = {
    "cplex": Dialect("cplex", ".mst", _start_cplex, _run_cplex),
    "gurobi": Dialect("gurobi_cl", ".mst", _start_gurobi, _run_gurobi),
    "scip": Dialect("scip", ".sol", _start_scip, _run_scip),
    "highs": Dialect("highs", ".sol", _start_highs, _run_highs),
    "cbc": Dialect("cbc", ".sol", _start_cbc, _run_cbc),
}


def solvers_on_path() -> list[str]:
    """Return the solvers whose executables are on the path of this machine."""
    return [solver for solver, dialect in DIALECTS.items() if shutil.which(dialect.executable)]


def write_start(solver: str, model: Milp, x: NDArray[np.float64], path: str | os.PathLike[str]) -> None:
    """Write a start file for one of `DIALECTS`.

    The point x, shape (n,), is a feasible solution; integer columns are rounded. InputError if the file cannot be
    written.
    """
    if x.shape != (model.n_columns,) or not np.isfinite(x).all():
        raise ValueError(f"A start needs one finite value for each of the {model.n_columns} columns.")
    exact = number_strings(np.where(model.integer, np.round(x), x))
    with open_text(path) as out:
        out.writelines(DIALECTS[solver].start(model, x, zip(model.column_names, exact, strict=True)))


def write_starts(model: Milp, x: NDArray[np.float64], model_path: str | os.PathLike[str]) -> dict[str, Path]:
    """Write the start file of every solver into the folder of a model file; return the files by solver.

    The model file is an .lp or .mps file, which may be gzipped; ``dir/m.lp`` gives ``dir/m.start.cplex.mst`` and so on.
    x and errors are those of `write_start`.
    """
    stem = model_stem(model_path)
    paths = {}
    for solver, dialect in DIALECTS.items():
        paths[solver] = stem.with_name(f"{stem.name}.start.{solver}{dialect.start_suffix}")
        write_start(solver, model, x, paths[solver])
    return paths


def solver_commands(
    model_path: PathLike,
    start_paths: Mapping[str, PathLike],
    solution_stem: PathLike,
    time_limit: float | None = None,
    threads: int | None = None,
) -> dict[str, str]:
    """Return one POSIX shell line per solver of `DIALECTS`: read, solve with gap 0, write the solution.

    The solutions go to ``SOLUTION_STEM.cplex.sol``, ``SOLUTION_STEM.gurobi.sol`` and so on, which
    `milpbn.milp.files.solution_files.read_solution` reads. The model may be gzipped. `start_paths` are by solver; a
    solver without an item starts without a solution. `time_limit` is in wall-clock seconds. SCIP ignores `threads`: its
    ordinary solve always uses one. InputError if a path has a double quote or an unprintable character such as a line
    break, because the interactive shells of CPLEX and SCIP cannot read such paths.
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
    return {
        solver: dialect.command(model, starts.get(solver), f"{stem}.{solver}", seconds, threads)
        for solver, dialect in DIALECTS.items()
    }


def _word(path: PathLike) -> str:
    """Return a path in a form that no program mistakes for an option."""
    text = os.fspath(path)
    return f"./{text}" if text.startswith("-") else text
