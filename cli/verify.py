"""``milpbn verify``: whether a certificate proves what a result claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from milpbn.cli.options import TableOptions, table_options
from milpbn.cli.sections import verb
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.bounds.verify import Verification


@verb(short_help="Check the proof of a result's bound.")
@click.argument("result")
@click.argument("data")
@click.option(
    "--certificate",
    metavar="FILE",
    help="What milpbn solve --certificate wrote in the same run; not with a certificate as RESULT.",
)
@table_options
def verify(result: str, data: str, certificate: str | None, table: TableOptions) -> None:
    """Check that a certificate proves the bound of RESULT, a result.json, on DATA.

    Everything is computed anew from the data, by other code than the search's: the score of the structure, a bound
    for every part of the search space, whether the structure is optimal, and the arcs that every optimum has or
    lacks. RESULT may be the certificate itself, which holds structure and bound, too. Give the table's options as
    in the run. The exit code is 0 if all of it holds, and 2, with a sentence on what does not, if not.

    \b
    Example:
      milpbn solve table.csv --output result.json --certificate proof.npz
      milpbn verify result.json table.csv --certificate proof.npz
    """
    from milpbn.bounds.verify import verify as check
    from milpbn.result import Result

    own = Path(result).suffix.lower() == ".npz"
    if own and certificate is not None:
        raise InputError("RESULT is a certificate itself; leave out --certificate, or give a result.json.")
    if not own and certificate is None:
        raise InputError("Give the certificate of the run: --certificate FILE.")
    values = None
    if not own:
        # As it is written: a `Result` computes the gap itself, but says in a sentence what is wrong with the form.
        values = Result.read(result)
        Result.from_dict(values, f"The result {result!r}")
    dataset = table.read(data).dataset("train")
    click.echo(describe(check(values, certificate or result, dataset), arcs=not own))


def describe(proved: Verification, *, arcs: bool) -> str:
    """Return what was proved, for people; the arcs are those that a result lists, and a certificate lists none."""
    from milpbn.progress import number_lines

    # A subset says nothing of the optima over all rows.
    shown = arcs and proved.samples is None
    return "\n".join(
        [
            "verified   no structure within the options and constraints of the run exceeds the bound",
            *number_lines(proved.objective, proved.bound, proved.samples),
            f"nodes      {proved.nodes}, of them {proved.leaves} leaves",
            f"deletions  {proved.deletions} parent sets",
            *([f"arcs       {proved.arcs_in} in every optimum, {proved.arcs_out} in none"] if shown else []),
            f"seconds    {proved.seconds:.2f}",
        ]
    )
