"""``milpbn stability``: how often each arc is in the optimum of a bootstrap sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.constraint_options import search_constraints
from milpbn.cli.report import say
from milpbn.cli.score_options import ScoreOptions, score_options
from milpbn.cli.search_options import DASK, MEMORY_LIMIT, QUIET, of_search
from milpbn.cli.sections import given, option, option_group, options, verb
from milpbn.cli.steps import read, show_notes, started, telling
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import COUNT, DATA, NUMBER, OUTPUT
from milpbn.util.progress_line import LINE

if TYPE_CHECKING:
    from milpbn.problem.constraints import Constraints


@verb(short_help="Count how often each arc is in the optimum of a bootstrap sample.")
@click.argument("data", type=DATA)
@option_group(
    "Bootstrap",
    "bootstrap",
    option("--samples", COUNT, "Number of bootstrap samples; default 100."),
    option("--time-limit-each", NUMBER, "For the search on each sample; default 10.", metavar="SECONDS"),
    option("--n-jobs", COUNT, "Number of processes, each with one thread; by default all cores."),
    *of_search(
        "dask",
        "random_state",
        "backend",
        dask={"help": DASK.format("Search for the samples")},
        random_state={"help": "Seed of the samples; default 0."},
        backend={"help": "As for milpbn solve."},
    ),
    option(
        "--output",
        OUTPUT,
        "Runs and counts as JSON, kept up to date. If the file has runs with the same data and options, they are "
        "kept, and only missing samples are searched.",
    ),
    QUIET,
)(given)
@options(MEMORY_LIMIT, section="Bootstrap")
@table_options
@score_options
@search_constraints
def stability(
    data: str,
    table: TableOptions,
    score: ScoreOptions,
    constraints: Constraints,
    structure: str | None,
    bootstrap: dict[str, Any],
) -> None:
    """Search for the best structure of many bootstrap samples of DATA, and show how often each arc is in it.

    A bootstrap sample has as many rows as the training data, drawn from them with replacement; states and cuts are
    those of all rows. Arcs of the class are counted by direction, and edges between two features in both. Ctrl-C
    keeps what is finished; the same command with --output continues later.

    \b
    Example:
      milpbn stability table.csv --target class --p 0.9 --samples 100 --n-jobs 2 --time-limit-each 10
    """
    score.refuse_choices("The samples are searched for", fits=False)
    from milpbn.problem.structures import structured
    from milpbn.solving.stability import stability as bootstrapped
    from milpbn.util.threads import all_cores

    quiet, spec, began = bootstrap.pop("quiet"), score.score(), started()
    _, dataset = read(table, data, began, quiet=quiet, in_units=spec.needs_units)
    show_notes(dataset, quiet=quiet)
    found = bootstrapped(
        dataset,
        spec,
        constraints=structured(structure, dataset, spec, constraints),
        report=telling(began, quiet=quiet),
        **{"n_jobs": 1 if "dask" in bootstrap else all_cores(), **bootstrap},
    )
    LINE.end()
    say(str(found))
    if "output" in bootstrap:
        found.save(bootstrap["output"])  # a warning was all, if it failed before
