"""``milpbn export``: the model for a solver that runs elsewhere."""

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
from milpbn.cli.sections import SEED, THREADS, option, option_group, verb
from milpbn.cli.types import COUNT, NUMBER
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.scores.constraints import Constraints


@option_group(
    "Model",
    "model",
    option("--output", required=True, metavar="FILE", help="Model: .lp or .mps, also with .gz."),
    option("--start", metavar="FILE", help="Structure to start from: arc list, result or classifier file."),
    option("--no-merge", is_flag=True, help="Do not merge identical samples."),
    option(
        "--reduced", is_flag=True, help="Leave out parent sets that no structure better than the start has."
    ),
    SUBSET,
    option("--time-limit", type=NUMBER, metavar="SECONDS", help="Written into the command lines."),
    option(*THREADS, "threads", type=COUNT, help="Written into the command lines."),
    option(
        *SEED,
        "random_state",
        type=COUNT,
        default=0,
        help="Seed of the subset, and of the search for the start.",
    ),
    option("-q", "--quiet", is_flag=True, help="No notes on stderr."),
)
def model_options(
    output: str,
    start: str | None,
    no_merge: bool,
    reduced: bool,
    subset: int | None,
    time_limit: float | None,
    threads: int | None,
    random_state: int,
    quiet: bool,
) -> dict[str, Any]:
    """Gather the options of the model."""
    return {
        "output": output,
        "start": start,
        "merge": not no_merge,
        "reduced": reduced,
        "subset": subset,
        "time_limit": time_limit,
        "threads": threads,
        "random_state": random_state,
        "quiet": quiet,
    }


@verb(short_help="Write the model for another solver.")
@click.argument("data", required=False)
@table_options
@score_options
@constraint_options
@model_options
def export(
    data: str | None,
    table: TableOptions,
    score: ScoreOptions,
    constraints: Constraints,
    model: dict[str, Any],
) -> None:
    """Write the MILP for another solver, and print the command lines that solve it.

    Beside the model come a sidecar (.json), which says what its columns mean, and start files for CPLEX,
    Gurobi, SCIP, HiGHS and CBC. DATA is as for solve.

    \b
    Example:
      milpbn export table.csv --target class --output model.lp
      scip ...                       (as printed)
      milpbn import model.scip.sol --classifier classifier.json
    """
    if score.chooses:
        raise InputError("A model holds one gamma and one max_parents; cv is for milpbn solve.")
    output, quiet = model.pop("output"), model.pop("quiet")
    check_outputs({"--output": output}, [data, model["start"]])
    checked_score = score.score()

    from milpbn.cli.solve import show_notes
    from milpbn.external import export_model
    from milpbn.instances import DEFAULT
    from milpbn.network import read_structure
    from milpbn.options import Options

    Options(
        **{key: value for key, value in model.items() if key not in ("start", "reduced")}
    )  # checks the numbers

    source = data or f"instance:{DEFAULT}"
    dataset = table.read(source).dataset("train")
    if not quiet:
        show_notes(dataset)
    if model["start"] is not None:
        model["start"] = read_structure(model["start"], dataset.names)
    written = export_model(
        dataset,
        checked_score,
        path=output,
        constraints=constraints,
        request=table.request(source),
        **model,
    )
    click.echo(
        f"model    {written.model}: {written.rows} rows, {written.columns} columns, "
        f"{written.nonzeros} non-zeros"
    )
    click.echo(f"sidecar  {written.sidecar}")
    click.echo(f"starts   {', '.join(sorted({str(path) for path in written.starts.values()}))}")
    click.echo(f"         with the score {written.start_objective:.6f}")
    click.echo("\nSolve it with one of these, then: milpbn import SOLUTION")
    for solver, command in written.commands.items():
        click.echo(f"\n# {solver}\n{command}")
