"""``milpbn library``: the best known networks, and what a result adds to them."""

from __future__ import annotations

import click

from milpbn.cli.sections import option, options, verb
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import DATA, FILE
from milpbn.errors import InputError


@verb(short_help="List the best known networks, or compare a result with them.")
@click.argument("action", type=click.Choice(["list", "check"]))
@click.argument("result", type=FILE, required=False)
@click.argument("data", type=DATA, required=False)
@options(
    option("--certificate", FILE, "The certificate of RESULT, with which its bound is verified."),
    option("--library", FILE, "Another archive than the one of the package."),
)
@table_options
def library(
    action: str,
    result: str | None,
    data: str | None,
    certificate: str | None,
    library: str | None,
    table: TableOptions,
) -> None:
    """List the networks of the library, or check what RESULT, a result.json, adds to it.

    The library has the best structures and bounds that are known for public data sets and the embedded instances, under
    SM and SBM, P12's values of p and at most two parents. "list" shows where they are proved, and the gap where not.
    "check" scores the structure of RESULT from DATA, and says whether structure or bound is better than the library's.
    Give the same options of the table as in the run.

    \b
    Example:
      milpbn library list
      milpbn solve corral --output result.json --certificate proof.npz
      milpbn library check result.json corral --certificate proof.npz
    """
    from milpbn.claims.result import Result
    from milpbn.cli.report import say
    from milpbn.solving.library import compare, load_library, open_problems, overview
    from milpbn.util.printing import aligned

    networks = load_library(library)
    if action == "list":
        if result is not None:
            raise InputError(
                "`milpbn library list` takes no result; `milpbn library check RESULT DATA` does."
            )
        for rows in (overview(networks), [], open_problems(networks)):
            for line in aligned(rows, left=len(rows[0])) if rows else [""]:
                click.echo(line.rstrip())
        return
    if result is None or data is None:
        raise InputError("Name a result and its data: milpbn library check RESULT DATA.")
    found = Result.load(result)
    dataset = table.read(data, in_units=found.score.needs_units).dataset("train")
    say("\n".join(compare(found, networks, dataset, certificate)))
