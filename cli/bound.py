"""``milpbn bound``: how good the best structure can be, in seconds, and how large the problem is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.options import (
    SUBSET,
    ScoreOptions,
    TableOptions,
    constraint_options,
    score_options,
    table_options,
)
from milpbn.cli.outputs import check_outputs
from milpbn.cli.sections import SEED, THREADS, given, option, option_group, verb
from milpbn.cli.types import COUNT, NUMBER
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.data import Dataset
    from milpbn.result import Result
    from milpbn.scores.constraints import Constraints
    from milpbn.scores.spec import Score


@option_group(
    "Search",
    "search",
    option("--time-limit", type=NUMBER, metavar="SECONDS", help="For everything, reading included."),
    option(*THREADS, "threads", type=COUNT, help="By default all cores."),
    option(*SEED, "random_state", type=COUNT, help="Random seed; default 0."),
    SUBSET,
    option("--output", metavar="FILE", help="result.json."),
    option("--certificate", metavar="FILE", help="What proves the bound, for milpbn verify (sm, sbm, cll)."),
    option("-q", "--quiet", is_flag=True, help="No notes and no progress on stderr."),
)
def bound_options(
    time_limit: float | None,
    threads: int | None,
    random_state: int | None,
    subset: int | None,
    output: str | None,
    certificate: str | None,
    quiet: bool,
) -> dict[str, Any]:
    """Gather attributes of `milpbn.options.Options`, given ones only."""
    return given(
        {
            "time_limit": time_limit,
            "threads": threads,
            "random_state": random_state,
            "subset": subset,
            "output": output,
            "certificate": certificate,
            "verbose": not quiet,
        }
    )


@verb(short_help="Bound what any structure could reach, in seconds.")
@click.argument("data", required=False)
@table_options
@score_options
@constraint_options
@bound_options
@click.pass_obj
def bound(
    started: float | None,
    data: str | None,
    table: TableOptions,
    score: ScoreOptions,
    constraints: Constraints,
    search: dict[str, Any],
) -> int:
    """Bound what any structure could reach, without a solver and without branching.

    Also says how good a structure the local search finds, which arcs every optimum has or lacks by now, and how
    much memory solving would take. DATA is as for solve.

    \b
    Example:
      milpbn bound table.csv --target class --p 0.9
    """
    check_outputs({"--output": search.get("output"), "--certificate": search.get("certificate")}, [data])
    if score.chooses:
        raise InputError("A bound is for one gamma and one max_parents; cv is for milpbn solve.")
    spec = score.score()

    from milpbn.backends.native import SCORES
    from milpbn.backends.registry import automatic
    from milpbn.cli.report import exit_code
    from milpbn.cli.solve import show_notes
    from milpbn.instances import DEFAULT
    from milpbn.options import Options
    from milpbn.solving import solve

    backend = automatic("auto", spec)
    if backend != "native" and "certificate" in search:
        raise InputError(f"A certificate comes with the scores {', '.join(SCORES)}, not with {spec.name}.")
    options = {**search, "backend": backend, "root_only": True}
    Options(**options)  # refuses what it can before the table is read
    dataset = table.read(data or f"instance:{DEFAULT}").dataset("train")
    if search["verbose"]:
        show_notes(dataset)
    result = solve(dataset, spec, constraints=constraints, started=started, **options)
    click.echo(describe(result))
    if spec.is_margin:
        click.echo(describe_memory(dataset, spec, constraints))
    return exit_code(result)


def describe(result: Result) -> str:
    """Return incumbent, bound, gap and proved arcs, for people."""
    from milpbn.progress import number_lines

    data, subset = result.data, result.subset
    lines = [
        f"data       {data.name}: {data.samples} samples, {data.features} features, {data.classes} classes"
    ]
    if subset is None:
        lines += number_lines(result.objective, result.bound)
    else:
        lines += number_lines(subset["objective"], subset["bound"], subset["samples"])
    if result.proved is not None:
        inside, outside = (len(result.proved[key]) for key in ("in", "out"))
        lines.append(f"arcs       {inside} in every optimum, {outside} in none")
    return "\n".join([*lines, f"seconds    {result.seconds.total:.2f}"])


def describe_memory(dataset: Dataset, score: Score, constraints: Constraints) -> str:
    """Return a forecast of the memory that solving takes, for people."""
    from milpbn.memory import format_bytes, peak_memory
    from milpbn.scores.conflicts import resolve
    from milpbn.scores.forecast import solver_bytes, tables_bytes, tensor_bytes

    _, candidates = resolve(constraints, dataset.names, score)
    problem = (dataset.merged, candidates, score)
    model = format_bytes(tensor_bytes(*problem) + solver_bytes(*problem))
    if score.name == "hard-margin":
        return f"memory     {model} as a MILP"
    tables, peak = format_bytes(tables_bytes(*problem)), peak_memory()
    whole = "" if peak is None else f" (the whole process so far: {format_bytes(peak)})"
    return f"memory     {tables} of tables with the backend native{whole}, {model} as a MILP"
