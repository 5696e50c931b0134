"""``milpbn stability``: how often each arc is in the optimum of a bootstrap sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from milpbn.cli.constraint_options import constraint_options
from milpbn.cli.memory_option import memory_limit
from milpbn.cli.outputs import check_outputs
from milpbn.cli.report import say
from milpbn.cli.score_options import ScoreOptions, score_options
from milpbn.cli.search_options import QUIET, of_search
from milpbn.cli.sections import given, option, option_group, verb
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import COUNT, DATA, FILE, NUMBER
from milpbn.util.progress_line import LINE

if TYPE_CHECKING:
    from milpbn.problem.constraints import Constraints


bootstrap_options = option_group(
    "Bootstrap",
    "bootstrap",
    option("--samples", type=COUNT, help="Number of bootstrap samples; default 100."),
    option(
        "--time-limit-each",
        type=NUMBER,
        metavar="SECONDS",
        help="For the search on each sample; default 10.",
    ),
    option("--n-jobs", type=COUNT, help="Number of processes, each with one thread; by default all cores."),
    *of_search(
        "random_state",
        "backend",
        random_state={"help": "Seed of the samples; default 0."},
        backend={"help": "As for milpbn solve."},
    ),
    option(
        "--output",
        type=FILE,
        help="Runs and counts as JSON, kept up to date. If the file has runs with the same data and options, they are "
        "kept, and only missing samples are searched.",
    ),
    QUIET,
)(given)


@verb(short_help="Count how often each arc is in the optimum of a bootstrap sample.")
@click.argument("data", type=DATA)
@bootstrap_options
@memory_limit("Bootstrap")
@table_options
@score_options
@constraint_options
def stability(
    data: str,
    table: TableOptions,
    score: ScoreOptions,
    constraints: Constraints,
    bootstrap: dict[str, object],
) -> None:
    """Search for the best structure of many bootstrap samples of DATA, and show how often each arc is in it.

    A bootstrap sample has as many rows as the training data, drawn from them with replacement; states and cuts are
    those of all rows. Arcs of the class are counted by direction, and edges between two features in both. Ctrl-C
    keeps what is finished; the same command with --output continues later.

    \b
    Example:
      milpbn stability table.csv --target class --p 0.9 --samples 100 --n-jobs 2 --time-limit-each 10
    """
    score.refuse_choices("The samples are searched for")
    quiet = bool(bootstrap.pop("quiet"))
    check_outputs({"--output": bootstrap.get("output")}, [data])  # type: ignore[dict-item]
    from milpbn.cli.solve import show_notes, show_stages, telling
    from milpbn.solving.stability import stability as bootstrapped
    from milpbn.util.threads import all_cores

    show_stages(None, quiet=quiet)
    spec = score.score()
    dataset = table.read(data, in_units=spec.needs_units).dataset("train")
    if not quiet:
        show_notes(dataset)
    found = bootstrapped(
        dataset,
        spec,
        constraints=constraints,
        report=telling(None, quiet=quiet),
        **{"n_jobs": all_cores(), **bootstrap},  # type: ignore[arg-type]
    )
    LINE.end()
    say(str(found))
    output = bootstrap.get("output")
    if output is not None:
        found.save(str(output))  # a warning was all, if it failed before
