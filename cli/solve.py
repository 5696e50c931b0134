"""``milpbn solve``: from a table to a classifier with a proven gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.options import (
    ScoreOptions,
    TableOptions,
    constraint_options,
    score_options,
    search_options,
    table_options,
)
from milpbn.cli.outputs import check_outputs, dropped_when_refused
from milpbn.cli.report import exit_code, no_structure
from milpbn.cli.sections import option, option_group, verb
from milpbn.errors import NotSavedError

if TYPE_CHECKING:
    from milpbn.data import Dataset, Table
    from milpbn.result import Result
    from milpbn.scores.constraints import Constraints


@dataclass(frozen=True)
class Files:
    """Where the answer goes, and how much is told on the way."""

    output: str | None
    classifier: str | None
    certificate: str | None
    trace: str | None
    log: str | None
    quiet: bool
    verbose: bool


@option_group(
    "Output",
    "files",
    option("--output", metavar="FILE", help="result.json, kept up to date while the search runs."),
    option("--classifier", metavar="FILE", help="The classifier as JSON, for predict and evaluate."),
    option(
        "--certificate", metavar="FILE", help="What proves the bound, for milpbn verify (native backend)."
    ),
    option("--trace", metavar="FILE", help="Incumbent and bound at every change, as JSON lines."),
    option("--log", metavar="FILE", help="The MILP solver's own log."),
    option("-q", "--quiet", is_flag=True, help="No notes and no progress on stderr."),
    option("-v", "--verbose", is_flag=True, help="Also show the variables with their states."),
)
def file_options(
    output: str | None,
    classifier: str | None,
    certificate: str | None,
    trace: str | None,
    log: str | None,
    quiet: bool,
    verbose: bool,
) -> Files:
    """Gather the options of the output."""
    return Files(output, classifier, certificate, trace, log, quiet, verbose)


@verb(short_help="Find the best structure, and bound what any could reach.")
@click.argument("data", required=False)
@table_options
@score_options
@constraint_options
@search_options
@file_options
@click.pass_obj
def solve(
    started: float | None,
    data: str | None,
    table: TableOptions,
    score: ScoreOptions,
    constraints: Constraints,
    search: dict[str, Any],
    files: Files,
) -> int:
    """Find the structure with the best score, and bound what any structure could reach.

    DATA is a CSV, TSV, ARFF or Parquet file (also .gz), a name of the catalog (--data-dir) or of an embedded
    instance (milpbn instances); without it, a default instance is solved.

    \b
    Examples:
      milpbn solve --score sm --time-limit 60
      milpbn solve table.csv --target class --p 0.9 --output result.json --classifier classifier.json

    Ctrl-C stops and keeps the best structure so far.
    """
    outputs = {
        "--output": files.output,
        "--classifier": files.classifier,
        "--certificate": files.certificate,
        "--trace": files.trace,
        "--log": files.log,
    }
    check_outputs(outputs, [data, search.get("start")], streams=["--trace", "--log"])
    spec = score.score()

    from milpbn.instances import DEFAULT
    from milpbn.network import read_structure, save_classifier
    from milpbn.options import Options
    from milpbn.solving import solve as find_structure

    Options(**{**search, "start": None})  # refuses what it can before the table is read

    source = table.read(data or f"instance:{DEFAULT}")
    dataset = source.dataset("train")
    if not files.quiet:
        show_notes(dataset, variables=files.verbose)
    options = {
        **search,
        "output": files.output,
        "certificate": files.certificate,
        "trace": files.trace,
        "log": files.log,
        "verbose": not files.quiet,
    }
    if search.get("start") is not None:
        options["start"] = read_structure(search["start"], dataset.names)
    unsaved: NotSavedError | None = None
    try:
        with dropped_when_refused(files.trace, files.log):
            if score.chooses:
                result = _choose_and_solve(source, score, constraints, started, options)
            else:
                result = find_structure(dataset, spec, constraints=constraints, started=started, **options)
    except NotSavedError as error:
        unsaved, result = error, error.result
    if files.classifier is not None and result.classifier is not None:
        save_classifier(result.classifier, files.classifier)
    code = show_result(result)
    if unsaved is not None:
        raise unsaved
    return code


def _choose_and_solve(
    source: Table,
    score: ScoreOptions,
    constraints: Constraints,
    started: float | None,
    options: dict[str, Any],
) -> Result:
    """Let validation choose p, max_parents or both, then solve."""
    from milpbn.scores.spec import P_GRID
    from milpbn.selection import MAX_PARENTS_GRID, solve_selected

    spec = score.score()
    return solve_selected(
        source,
        spec,
        p_values=P_GRID if score.choose_p else None,
        max_parents_values=MAX_PARENTS_GRID if score.choose_max_parents else (spec.max_parents,),
        constraints=constraints,
        started=started,
        **options,
    )


def show_notes(dataset: Dataset, *, variables: bool = False) -> None:
    """Print on stderr what reading decided, and on request the variables with their states."""
    for note in dataset.notes:
        click.echo(note, err=True)
    if variables:
        for variable in dataset.variables:
            click.echo(f"{variable.name}: {', '.join(variable.states)}", err=True)


def show_result(result: Result) -> int:
    """Print the closing block, on stderr a sentence if there is no structure, and return the exit code."""
    from milpbn.progress import closing_block

    click.echo(closing_block(result))
    if result.structure is None:
        click.echo(f"Error: {no_structure(result)}", err=True)
    return exit_code(result)
