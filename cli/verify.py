"""``milpbn verify``: checks that a certificate proves the claims of a result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.archive_info import is_archive
from milpbn.cli.local_scores import is_local_scores, refuse_others
from milpbn.cli.report import say
from milpbn.cli.search_options import MEMORY_LIMIT
from milpbn.cli.sections import flag, option, options, verb
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import DATA, FILE
from milpbn.errors import InputError
from milpbn.util.plurals import counted

if TYPE_CHECKING:
    from milpbn.certificate.verify.check import Verification
    from milpbn.claims.result import Result
    from milpbn.data.dataset import Dataset

#: What a result states and no certificate can prove. The verb names it, and prints none of its values.
UNCHECKED = (
    "not checked: how, when and by which program it was found (version, backend, seed, seconds, times of the trace, "
    "nodes and limit of the search, how the score was selected), and the names of data and run"
)


@verb(short_help="Check the proof of a result's bound.")
@click.argument("result", type=FILE)
@click.argument("data", type=DATA)
@options(
    option(
        "--certificate",
        FILE,
        "The file that milpbn solve --certificate wrote in the same run; not needed if RESULT is that file.",
    ),
    flag(
        "--exact",
        "Check the certificate a second time, in exact arithmetic (scores with margins: up to 12 features); needs "
        "milpbn[exact].",
    ),
    MEMORY_LIMIT,
)
@table_options
def verify(result: str, data: str, certificate: str | None, exact: bool, table: TableOptions) -> None:
    """Check that a certificate proves the bound of RESULT, a result.json, on DATA.

    Everything is computed again from the data, by code that the search does not use: the score of the structure, a
    bound for every leaf of the search tree, whether the structure is optimal, and the arcs that are in every optimum
    or in none. The rest of RESULT, for instance its trace, must not contradict this. What only the run itself can
    know, such as its seconds, is not checked. RESULT may also be the certificate, which holds structure and bound
    itself. DATA may also be a file of local scores (.jkl). Give the same options of the table as in the run. The exit
    code is 0 if every claim holds; else it is 2, and a sentence says which claim does not.

    With --exact, a second and much smaller program checks everything again in exact arithmetic. It rounds logarithms
    only, always to the safe side. It takes minutes where the first check takes a second.

    \b
    Example:
      milpbn solve table.csv --output result.json --certificate proof.npz
      milpbn verify result.json table.csv --certificate proof.npz
    """
    from milpbn.certificate.format import load_proof
    from milpbn.certificate.verify.check import verify as check
    from milpbn.certificate.verify.claim import read_claim
    from milpbn.claims.local_result import LocalResult, result_kind
    from milpbn.claims.result import Result
    from milpbn.solving.local_scores import local_dataset
    from milpbn.solving.progress import dropped_lines

    is_certificate = is_archive(result) or Path(result).suffix.lower() == ".npz"
    if is_certificate and certificate is not None:
        raise InputError("RESULT is a certificate itself; leave out --certificate, or give a result.json.")
    if not is_certificate and certificate is None:
        raise InputError("Give the certificate of the run: --certificate FILE.")
    local = is_local_scores(data)
    if local:
        refuse_others(data, ("certificate", "exact", "memory_limit"))
    values, read = None, None
    if not is_certificate:
        # The verifier gets the values as they are written, since a `Result` computes the gap anew. Building one
        # refuses a malformed file in a sentence.
        values = (LocalResult if local else Result).read(result)
        read = result_kind(values).from_dict(values, f"The result {result!r}")
    claimed = read_claim(load_proof(result)[0], "The certificate").result if read is None else read
    in_units = claimed.score.needs_units
    dataset = local_dataset(data) if local else table.read(data, in_units=in_units).dataset("train")
    say(describe(check(values, certificate or result, dataset), read))
    for line in dropped_lines(dataset.notes):
        say(line)
    if exact:
        say(check_exactly(values, certificate or result, dataset))


def describe(proved: Verification, result: Result | None) -> str:
    """Return what was proved as lines of text.

    `result` is None for a certificate alone, which lists no arcs and has no selection and no average.
    """
    from milpbn.solving.progress import (
        all_line,
        among_lines,
        kept_line,
        number_lines,
        show_number,
        subset_line,
    )

    # A search over some rows or parent sets proves nothing about the optima over all.
    arcs = []
    if result is not None and result.proved is not None:
        arcs = [f"arcs       {proved.arcs_in} in every optimum, {proved.arcs_out} in none"]
    over = "" if proved.kept is None else " of the kept parent sets"
    scope = among_lines(proved.among)
    scope += [] if proved.samples is None else [subset_line(proved.samples)]
    if proved.kept is not None and proved.total is not None:
        scope.append(kept_line(proved.kept, proved.total))
    others = []
    if proved.listed is not None:
        said = "nothing is proved of the others"
        if proved.others is not None:
            said = f"no other one scores more than {show_number(proved.others)}"
        if proved.others == -math.inf:
            said = "there are no others"
        others = [f"{f'best {proved.listed}':<11}scores, order and equivalences checked; {said}"]
    return "\n".join(
        [
            f"verified   no structure{over} within the options and constraints of the run exceeds the bound",
            *scope,
            *number_lines(proved.objective, proved.bound),
            *([] if proved.on_all is None else [all_line(*proved.on_all)]),
            *others,
            f"nodes      {proved.nodes}, of them {proved.leaves} leaves",
            f"fixed      {proved.deletions} parent sets excluded by reduced costs",
            *arcs,
            *([] if result is None else _beside(result)),
            f"seconds    {proved.seconds:.2f}",
            UNCHECKED,
        ]
    )


def _beside(result: Result) -> list[str]:
    """Return what is checked of the parts of a result that its certificate is not about."""
    lines = []
    if result.selection is not None:
        lines.append(
            f"selection  {counted(len(result.selection.trials), 'setting')}: the score is the one with the best stated "
            "figures; the figures are not checked"
        )
    if result.average is not None and result.average.networks > 1:
        lines.append(
            f"average    {result.average.networks} networks: only the first, which is the structure of the result, is "
            "checked"
        )
    return lines


def check_exactly(values: Mapping[str, Any] | None, certificate: str, data: Dataset) -> str:
    """Return what the exact checker proved, as lines; raise InputError if it refuses a claim, or without mpmath."""
    from milpbn.util.extras import import_extra

    import_extra("mpmath", "exact", "--exact")
    from milpbn.certificate.exact.check import check
    from milpbn.certificate.exact.local import check_local
    from milpbn.problem.local import LocalDataset

    if isinstance(data, LocalDataset):
        return _exactly(lambda: check_local(values, certificate, data.local), _aside(values))
    return _exactly(lambda: check(values, certificate, data), _aside(values))


def _aside(values: Mapping[str, Any] | None) -> str:
    """Return what the exact checker leaves aside."""
    listed = values is not None and values.get("alternatives") is not None
    return " (order and equivalences aside)" if listed else ""


def _exactly(checked: Callable[[], tuple[tuple[Fraction, Fraction], Fraction]], aside: str) -> str:
    """Return what an exact checker proves as lines of text; raise InputError if it refuses a claim."""
    from milpbn.certificate.exact.arithmetic import NotProvedError

    try:
        (low, high), bound = checked()
    except NotProvedError as error:
        raise InputError(f"The exact check: {error}") from None

    def digits(x: Fraction, rounding: str) -> str:
        return str(Context(25, rounding).divide(Decimal(x.numerator), Decimal(x.denominator)))

    return "\n".join(
        [
            f"exact      the same holds in exact arithmetic{aside}: no structure exceeds",
            f"           {digits(bound, ROUND_CEILING)}, and the incumbent's score lies between",
            f"           {digits(low, ROUND_FLOOR)} and {digits(high, ROUND_CEILING)}",
        ]
    )
