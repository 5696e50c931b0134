"""A failing case, shrunk and written into a folder: record, table, and the command line that shows it."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path

from campaign.case import Case
from campaign.checks import check
from campaign.claims import Failure
from campaign.driver import write_inputs
from campaign.shrink import shrink

#: Largest number of rows of the table in a folder.
MANY = 2000
#: Number of characters of a finding that are shown.
SHOWN = 1500


def same_way(kind: str, folder: Path) -> Callable[[Case], bool]:
    """Return a function that says whether a case fails in the given way."""
    return lambda case: any(failure.kind == kind for failure in check(case, folder)[1])


def report(
    case: Case, failure: Failure, origin: str, parent: Path, seconds: float = 60.0
) -> tuple[Case, Path]:
    """Shrink a case, and write it with its failure into a new folder; return both.

    Parameters
    ----------
    case, failure
        What failed, and how.
    origin : str
        Where the case comes from: aim and seed.
    parent : Path
        The folder is made in it, named after the failure.
    seconds : float
        For the shrinking.
    """
    with tempfile.TemporaryDirectory() as scratch:
        small = shrink(case, same_way(failure.kind, Path(scratch)), seconds)
        found = [f for f in check(small, Path(scratch))[1] if f.kind == failure.kind] or [failure]
    folder = parent / re.sub(r"[^a-z0-9]+", "-", failure.kind.lower()).strip("-")[:60]
    folder.mkdir(parents=True, exist_ok=True)
    # If a table has very many rows, the folder gets only the distinct ones, with a remark.
    many = sum(small.copies) > MANY
    arguments = write_inputs(small.but(copies=[]) if many else small, folder)
    lines = [shlex.join(["milpbn", *(Path(a).name if str(folder) in a else a for a in arguments)])]
    lines[0] += " --output result.json"
    if small.certificate:
        table = shlex.join(
            [Path(arguments[1]).name, "--certificate", "proof.npz", *small.reading_arguments()]
        )
        lines.append(f"milpbn verify result.json {table}")
    if many:
        lines.insert(0, f"# every row of the table as often as here: {small.copies}")
    (folder / "record.json").write_text(small.to_json() + "\n", encoding="utf-8")
    (folder / "original.json").write_text(case.to_json() + "\n", encoding="utf-8")
    (folder / "command.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "README.txt").write_text(
        f"What: {failure.kind}\n\nFound by: {origin}, through {small.way}\n\nCommand (in this folder):\n"
        + "\n".join(f"  {line}" for line in lines)
        + f"\n\nFound, in the shrunk case:\n  {found[0].text[-SHOWN:]}\n\n"
        + f"Found, in the case as drawn:\n  {failure.text[-SHOWN:]}\n",
        encoding="utf-8",
    )
    return small, folder
