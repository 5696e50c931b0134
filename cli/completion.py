"""What the shell completes: one function for each kind of value. The types of `milpbn.cli.types` say which is whose.

A function takes the verb's context, with what stands before on the command line, and the beginning of the value.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import click
from click.shell_completion import CompletionItem

Items: TypeAlias = "list[CompletionItem[str]]"
Completer: TypeAlias = Callable[[click.Context, str], Items]

#: Size of the largest classifier or result that is read for its variables.
LARGEST = 1 << 23


def nothing(context: click.Context, incomplete: str) -> Items:
    """Complete nothing: numbers and free text."""
    return []


def files(context: click.Context, incomplete: str) -> Items:
    """Let the shell complete names of files."""
    return [CompletionItem(incomplete, type="file")]


def folders(context: click.Context, incomplete: str) -> Items:
    """Let the shell complete names of folders."""
    return [CompletionItem(incomplete, type="dir")]


def words(*known: str) -> Completer:
    """Return a function that completes one of some words."""
    return lambda context, incomplete: _beginning(incomplete, known)


def tables(context: click.Context, incomplete: str) -> Items:
    """Complete files, embedded instances, and entries of the catalog."""
    return [*files(context, incomplete), *_beginning(incomplete, [*_instances(), *_catalog(context)])]


def instances(context: click.Context, incomplete: str) -> Items:
    """Complete the names of the embedded instances."""
    return _beginning(incomplete, _instances())


def column(context: click.Context, incomplete: str) -> Items:
    """Complete one column of the table, or variable of the classifier, that stands on the command line."""
    return _beginning(incomplete, variables(context))


def classes(context: click.Context, incomplete: str) -> Items:
    """Complete a class of the classifier that stands on the command line."""
    described = _described(context)
    return _beginning(incomplete, list(described.values())[-1] if described else ())


def listed(separators: str, known: Callable[[click.Context], Sequence[str]] | None = None) -> Completer:
    """Return a function that completes the last name of a list, with quotes where `types.parse_name` wants them.

    Parameters
    ----------
    separators : str
        Characters between the names.
    known : callable, optional
        Returns the names; by default `variables`.
    """

    def complete(context: click.Context, incomplete: str) -> Items:
        before, last = _split_last(incomplete, separators)
        names = (variables if known is None else known)(context)
        return [
            CompletionItem(before + name)
            for name in map(_quoted, names)
            if name.lower().startswith(last.lower())
        ]

    return complete


def evidence(context: click.Context, incomplete: str) -> Items:
    """Complete the last name or value of ``NAME=VALUE,NAME=VALUE`` with those of the classifier."""
    before, _ = _split_last(incomplete, ",=")
    if not before.endswith("="):
        return listed(",")(context, incomplete)
    name = _split_last(before[:-1], ",")[1]
    states = {_quoted(known): values for known, values in _described(context).items()}
    return listed(",=", lambda _: states.get(name, []))(context, incomplete)


def variables(context: click.Context) -> list[str]:
    """Return the columns of the last table, or variables of the last classifier or result, on the command line."""
    for argument in reversed(_arguments(context)):
        names = _columns(argument, context) or list(_described_in(argument)) or _of_result(argument)
        if names:
            return names
    return []


def _beginning(incomplete: str, known: Sequence[str]) -> Items:
    return [CompletionItem(word) for word in known if word.lower().startswith(incomplete.lower())]


def _quoted(name: str) -> str:
    """Return a name as `types.parse_name` reads it."""
    plain = name == name.strip() and not re.search('[",;=]', name)
    return name if plain else '"' + name.replace('"', '""') + '"'


def _split_last(text: str, separators: str) -> tuple[str, str]:
    """Split before the last name of a list; separators in double quotes are part of a name."""
    end, quoted = 0, False
    for position, character in enumerate(text, start=1):
        quoted ^= character == '"'
        if character in separators and not quoted:
            end = position
    return text[:end], text[end:]


def _arguments(context: click.Context) -> list[str]:
    """Return the arguments on the command line so far."""
    found: list[str] = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if isinstance(parameter, click.Argument) and value is not None:
            found += [value] if isinstance(value, str) else value
    return (
        found or context.args
    )  # click leaves them there if the command line ends with an option without its value


def _instances() -> list[str]:
    from milpbn import instances as embedded

    return embedded.names()


def _catalog(context: click.Context) -> list[str]:
    folder = _data_dir(context)
    with suppress(OSError, ValueError):  # a damaged catalog must not hide files
        return (
            []
            if folder is None
            else sorted(json.loads((folder / "catalog.json").read_text(encoding="utf-8")))
        )
    return []


def _data_dir(context: click.Context) -> Path | None:
    named = context.params.get("data_dir") or os.environ.get("MILPBN_DATA")
    folder = Path(named) if named else None
    return folder if folder is not None and (folder / "catalog.json").is_file() else None


def _columns(source: str, context: click.Context) -> list[str]:
    """Return the columns of a table, by the name of its file or of its entry in the catalog."""
    from milpbn.data.header import column_names

    folder = _data_dir(context)
    return column_names(source) or ([] if folder is None else column_names(folder / f"{source}.csv.gz"))


def _described(context: click.Context) -> dict[str, list[str]]:
    """Return the variables of the first classifier on the command line, with their states."""
    return next(filter(None, map(_described_in, _arguments(context))), {})


def _described_in(path: str) -> dict[str, list[str]]:
    """Return the variables of a classifier file, with their states; none for another file."""
    document = _document(path)
    first = next(iter(document.get("members") or [document]))
    return {known["name"]: known["states"] for known in first.get("variables") or []}


def _of_result(path: str) -> list[str]:
    """Return the variables of a result.json; none for another file."""
    return list(_document(path).get("structure") or {})


def _document(path: str) -> dict[str, Any]:
    """Return the JSON object in a file that is not large; empty for another file."""
    file = Path(path)
    if not path.endswith(".json") or not file.is_file() or file.stat().st_size > LARGEST:
        return {}
    document = json.loads(file.read_text(encoding="utf-8"))
    return document if isinstance(document, dict) else {}
