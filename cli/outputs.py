"""Checks of the files that a verb will write, before its work begins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from milpbn.errors import InputError
from milpbn.util.atomic import check_writable


def named_files() -> list[tuple[str, str, str]]:
    """Return the files that the parameters of the current verb name: the role (see `Parsed`), the option, the path."""
    context, found = click.get_current_context(), []
    for parameter in context.command.params:
        value, role = context.params.get(parameter.name or ""), getattr(parameter.type, "role", None)
        if role is not None and value is not None:
            own = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name
            found += [(role, own, path) for path in ([value] if isinstance(value, str) else value)]
    return found


def check_outputs(more: Sequence[tuple[str, str, str]] = ()) -> None:
    """Check that every output of a verb can be written, and that none replaces an input or another output.

    `more` are further files, in the form of `named_files`. Inputs that are no files, such as catalog names, are
    ignored. Raise InputError, whose sentence names the option, if an output is refused.
    """
    files = [*named_files(), *more]
    inputs = [path for role, _, path in files if role == "input" and os.path.exists(path)]
    taken = {os.path.realpath(path): "a file that is read" for path in inputs}
    for role, option, path in files:
        if role == "input":
            continue
        real = os.path.realpath(path)
        if real in taken:
            raise InputError(f"{option} {path!r} would overwrite {taken[real]}; choose another path.")
        taken[real] = f"the file of {option}"
        try:
            _check_stream(path) if role == "stream" else check_writable(path)
        except InputError as error:
            raise InputError(f"{option}: {error}") from None


@contextmanager
def dropped_when_refused(*paths: str | None) -> Iterator[None]:
    """Remove the files that the block created if it ends in an `InputError`, since they hold nothing of use."""
    new = [Path(path) for path in paths if path is not None and not Path(path).exists()]
    try:
        yield
    except InputError:
        for path in new:
            with suppress(OSError):
                path.unlink()
        raise


def _check_stream(path: str) -> None:
    """Check a file that is written line by line, which may be a device such as ``/dev/stderr``."""
    target = Path(path)
    if target.is_dir():
        raise InputError(f"Cannot write {path!r}, which is a folder; name a file.")
    if not target.parent.is_dir():
        raise InputError(f"Cannot write {path!r}: its folder does not exist; create it first.")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InputError(f"Cannot write {path!r} (no permission); choose another path.")
