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

    A set is NAME.csv.gz with its entry in catalog.json (continuous, missing, train_rows: see the guide's section
    on data), or has the files that list names.

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
    file = None if name is None or name in known_sets() or not Path(name).exists() else Path(name)
    if file is not None and action == "check":
        say(_checked(known_set(file.name.split(".")[0]), file))
        return
    chosen = list(known_sets().values()) if name is None else [known_set(name)]
    if action == "list":
        for known in chosen:
            say(_described(known, folder, in_full=name is not None))
        return
    places = [(known, place) for known in chosen if (place := known.folder(folder)) is not None]
    if not places:
        what = "any of the known data sets" if name is None else repr(name)
        where = "No folder is given (--data-dir, or the variable MILPBN_DATA) in which to look for"
        where = where if given is None else f"--data-dir ({given}) does not have"
        raise InputError(f"{where} {what}; milpbn data list says where to get them.")
    wrong = []
    for known, place in places:
        try:
            say(_checked(known, place))
        except InputError as error:
            say(f"{known.name}: {error}")
            wrong.append(known.name)
    if wrong:
        raise InputError(f"Not the expected data: {', '.join(wrong)}.")


def _described(known: KnownSet, folder: Path | None, *, in_full: bool) -> list[str]:
    place = known.folder(folder)
    size = f"{known.rows:>6,} rows  {known.features:>3} features  {known.classes:>2} classes"
    if not in_full:
        found = "-" if place is None else "found"
        return [f"{known.name:<20} {found:<6} {size}  {known.protocol}", f"{'':<27} {known.source}"]
    return [
        f"{known.name}: {size.lstrip()}",
        f"protocol  {known.protocol}",
        f"source    {known.source}",
        f"files     {', '.join(known.files) or f'{known.name}.csv.gz, with an entry in catalog.json'}",
        f"sha256    {known.sha256 or 'unknown: the results of the project are without this set'}",
        f"found     {'no' if place is None else place}",
        *([f"note      {known.note}"] if known.note else []),
    ]


def _checked(known: KnownSet, place: Path) -> str:
    """Compare a set in a folder, or a file, with what is known; raise InputError if the sizes are not equal.

    Return what is to be said if they are.
    """
    from milpbn.data import read_table
    from milpbn.data.known import differences
    from milpbn.experiments.images import IMAGES, files_hash
    from milpbn.experiments.protocol import table_hash

    digest: str | None
    if known.files:
        name = next(name for name, (files, _) in IMAGES.items() if files == known.files)
        wrong, digest = [], files_hash(name, place)
    else:
        alone = place.is_file()
        table = read_table(place) if alone else read_table(known.name, data_dir=place)
        split = len(table.train_indices) if table.train_rows is not None else None
        size = table.n_rows, len(table.features), int(table.frame[table.target].nunique())
        wrong = list(differences(known, *size, known.train_rows if alone else split))
        digest = None if alone else table_hash(table)
    if wrong:
        raise InputError(f"This is not the expected set: {', '.join(wrong)}.")
    if digest is None:
        checksum = "a file alone has neither kinds nor a split to compare"
    elif known.sha256 is None:
        checksum = f"no checksum is known; it is {digest}"
    else:
        checksum = (
            "checksum as expected" if digest == known.sha256 else f"another checksum ({digest[:12]}...)"
        )
    return f"{known.name}: size as expected; {checksum}"
