"""``milpbn data``: the data sets of the papers, where they can be had, and whether a folder has them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from milpbn.cli import completion
from milpbn.cli.report import say
from milpbn.cli.sections import option, options, verb
from milpbn.cli.types import FOLDER, Parsed
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.data.known import KnownSet

ACTIONS = ("list", "check")


def _action(text: str) -> str:
    if text not in ACTIONS:
        raise ValueError("is not list or check")
    return text


def _names(context: click.Context) -> list[str]:
    from milpbn.data.known import known_sets

    return list(known_sets())


@verb(short_help="List the data sets of the papers, or check those of a folder.")
@click.argument("action", type=Parsed("list|check", _action, completion.words(*ACTIONS)))
@click.argument("name", type=Parsed("name|file", str, completion.among(_names)), required=False)
@options(
    option("--data-dir", FOLDER, "Folder of the data, or above it; by default the variable MILPBN_DATA.")
)
def data(action: str, name: str | None, data_dir: str | None) -> None:
    """List the data sets of milpbn reproduce, or check whether those of a folder are the expected ones.

    list: rows, features and classes of every set (or of NAME, with more), the protocol, the address at which it can be
    had, and whether --data-dir has it. Rows are counted without those that are left out because values are missing.

    check: compares the sets of --data-dir (or NAME, or a FILE with the name of a set) with what is known: rows,
    features, classes, training rows, and the checksum of the contents with which the project's results were computed.
    Another size is an error. Another checksum is only said: names of columns, their kinds or the order of rows may
    differ, and then folds and random splits do.

    A set is NAME.csv.gz with its entry in catalog.json, as milpbn.read_table describes it, or has the files that list
    names.

    \b
    Example:
      milpbn data list
      milpbn data list letter
      milpbn data check --data-dir DIR
      milpbn data check german.csv
    """
    from milpbn.data.known import known_set, known_sets

    given = data_dir or os.environ.get("MILPBN_DATA")
    folder = None if given is None else Path(given)
    if action == "list":
        for known in known_sets().values() if name is None else [known_set(name)]:
            say(_described(known, folder, in_full=name is not None))
        return
    if name is not None and name not in known_sets() and Path(name).exists():
        say(_check_file(Path(name)))
        return
    chosen = [known_set(name)] if name is not None else list(known_sets().values())
    there = [known for known in chosen if known.folder(folder) is not None]
    if not there:
        what = "any of the known data sets" if name is None else repr(name)
        raise InputError(
            f"--data-dir ({given}) does not have {what}; milpbn data list says where to get them."
        )
    wrong = []
    for known in there:
        line, right = _checked(known, folder)
        say(line)
        wrong += [] if right else [known.name]
    if wrong:
        raise InputError(f"Not the expected data: {', '.join(wrong)}.")


def _described(known: KnownSet, folder: Path | None, *, in_full: bool) -> list[str]:
    place = known.folder(folder)
    found = "-" if place is None else "found"
    size = f"{known.rows:>6,} rows  {known.features:>3} features  {known.classes:>2} classes"
    if not in_full:
        return [f"{known.name:<20} {found:<6} {size}  {known.protocol}", f"{'':<27} {known.source}"]
    return [
        f"{known.name}: {size}",
        f"protocol  {known.protocol}",
        f"source    {known.source}",
        f"files     {', '.join(known.files) or f'{known.name}.csv.gz, with an entry in catalog.json'}",
        f"sha256    {known.sha256 or 'unknown: the results of the project are without this set'}",
        f"found     {'no' if place is None else place}",
        *([f"note      {known.note}"] if known.note else []),
    ]


def _checked(known: KnownSet, folder: Path | None) -> tuple[str, bool]:
    """Return what is to be said of a set in a folder, and whether its size is the expected one."""
    from milpbn.data import read_table
    from milpbn.data.known import differences
    from milpbn.experiments.images import IMAGES, files_hash
    from milpbn.experiments.protocol import table_hash

    place = known.folder(folder)
    assert place is not None
    if known.files:
        (name,) = [name for name, (files, _) in IMAGES.items() if files == known.files][:1]
        wrong, digest = [], files_hash(name, place)
    else:
        table = read_table(known.name, data_dir=place)
        split = None if table.train_rows is None else len(table.train_indices)
        size = table.n_rows, len(table.features), int(table.frame[table.target].nunique())
        wrong, digest = list(differences(known, *size, split)), table_hash(table)
    if known.sha256 is None:
        checksum = f"no checksum is known; it is {digest}"
    else:
        same = digest == known.sha256
        checksum = "checksum as expected" if same else f"another checksum ({digest[:12]}...)"
    return f"{known.name}: {'; '.join(wrong) or 'size as expected'}; {checksum}", not wrong


def _check_file(path: Path) -> str:
    """Compare a file, which has no catalog, with the set of its name."""
    from milpbn.data import read_table
    from milpbn.data.known import differences, known_set

    known = known_set(path.name.split(".")[0])
    table = read_table(path)
    size = table.n_rows, len(table.features), int(table.frame[table.target].nunique())
    wrong = list(differences(known, *size, known.train_rows))
    if wrong:
        raise InputError(f"The file {str(path)!r} is not the expected {known.name!r}: {', '.join(wrong)}.")
    return f"{known.name}: size as expected (a file alone has neither kinds nor a split to compare)"
