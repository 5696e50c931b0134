"""What the shell completes: a function for each kind of value; each type in `milpbn.cli.types` has one of them.

Such a function takes the context of the verb, which holds the command line so far, and the beginning of the value.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from milpbn.util.options import quoted

Items: TypeAlias = "list[CompletionItem[str]]"
Completer: TypeAlias = Callable[[click.Context, str], Items]

#: Size in bytes of the largest classifier or result that is read for its variables.
LARGEST = 1 << 23


def among(known: Callable[[click.Context], Iterable[str]]) -> Completer:
    """Return a function that completes one of the words that another function returns."""
    return lambda context, incomplete: [
        CompletionItem(word) for word in known(context) if word.lower().startswith(incomplete.lower())
    ]


def words(*known: str) -> Completer:
    """Return a function that completes one of some words."""
    return among(lambda context: known)


nothing = words()


def files(context: click.Context, incomplete: str) -> Items:
    """Let the shell complete names of files."""
    return [CompletionItem(incomplete, type="file")]


def folders(context: click.Context, incomplete: str) -> Items:
    """Let the shell complete names of folders."""
    return [CompletionItem(incomplete, type="dir")]


def tables(context: click.Context, incomplete: str) -> Items:
    """Complete files, embedded instances, and entries of the catalog."""
    return [
        *files(context, incomplete),
        *instances(context, incomplete),
        *among(_catalog)(context, incomplete),
    ]


def variables(context: click.Context) -> list[str]:
    """Return the columns of the last table, or variables of the last classifier or result, on the command line."""
    return next((list(known) for known in _described(context, -1) if known), [])


def listed(separators: str, known: Callable[[click.Context], Iterable[str]] = variables) -> Completer:
    """Return a function that completes the last name of a list, with quotes where `types.parse_name` wants them."""

    def complete(context: click.Context, incomplete: str) -> Items:
        before, last = _split_last(incomplete, separators)
        items = among(lambda context: map(quoted, known(context)))(context, last)
        return [CompletionItem(before + item.value) for item in items]

    return complete


def evidence(context: click.Context, incomplete: str) -> Items:
    """Complete the last name or value of ``NAME=VALUE,NAME=VALUE`` with those of the classifier."""
    before, _ = _split_last(incomplete, ",=")
    if not before.endswith("="):
        return listed(",")(context, incomplete)
    name = _split_last(before[:-1], ",")[1]
    states = {quoted(known): values for known, values in _states(context).items()}
    return listed(",=", lambda context: states.get(name, ()))(context, incomplete)


def _instances(context: click.Context) -> list[str]:
    from milpbn import instances as embedded

    return embedded.names()


#: Completes the names of the embedded instances.
instances = among(_instances)
#: Completes one column of the table, or variable of the classifier, that stands on the command line.
column = among(variables)
#: Completes a class of the classifier that stands on the command line.
classes = among(lambda context: next(reversed(_states(context).values()), ()))


def _split_last(text: str, separators: str) -> tuple[str, str]:
    """Split before the last name of a list; separators in double quotes are part of a name."""
    end, within = 0, False
    for position, character in enumerate(text, start=1):
        within ^= character == '"'
        if character in separators and not within:
            end = position
    return text[:end], text[end:]


def _catalog(context: click.Context) -> list[str]:
    folder = _data_dir(context)
    with suppress(OSError, ValueError):  # a damaged catalog must not hide files
        if folder is not None:
            return sorted(json.loads((folder / "catalog.json").read_text(encoding="utf-8")))
    return []


def _data_dir(context: click.Context) -> Path | None:
    named = context.params.get("data_dir") or os.environ.get("MILPBN_DATA")
    return Path(named) if named and Path(named, "catalog.json").is_file() else None


def _states(context: click.Context) -> dict[str, Sequence[str]]:
    """Return the variables of the first classifier on the command line, with their states."""
    return next((known for known in _described(context) if any(known.values())), {})


def _described(context: click.Context, step: int = 1) -> Iterator[dict[str, Sequence[str]]]:
    """Return the variables of every argument on the command line so far, of a classifier also their states.

    With the step -1, the last argument comes first.
    """
    own = [p.name or "" for p in context.command.params if isinstance(p, click.Argument)]
    values = [context.params.get(name) or () for name in own]
    found = [path for value in values for path in ([value] if isinstance(value, str) else value)]
    # If the command line ends with an option without its value, click leaves the arguments in `args`.
    return (_variables(path, _data_dir(context)) for path in (found or context.args)[::step])


def _variables(source: str, catalog: Path | None) -> dict[str, Sequence[str]]:
    """Return the variables of a table (file or catalog entry), a classifier or a result; none of another file."""
    from milpbn.data.header import column_names

    names = column_names(source) or ([] if catalog is None else column_names(catalog / f"{source}.csv.gz"))
    file = Path(source)
    if names or not source.endswith(".json") or not file.is_file() or file.stat().st_size > LARGEST:
        return dict.fromkeys(names, ())
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    first = next(iter(document.get("members") or [document]))
    listed = {known["name"]: known["states"] for known in first.get("variables") or []}
    return listed or dict.fromkeys(document.get("structure") or {}, ())
