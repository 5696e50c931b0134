"""Checks of the files that a verb will write, before its work begins."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from milpbn.errors import InputError
from milpbn.util.atomic import check_writable


def check_outputs(
    outputs: Mapping[str, str | os.PathLike[str] | None],
    inputs: Iterable[str | None] = (),
    streams: Iterable[str] = (),
) -> None:
    """Check that every output can be written, and that none replaces an input or another output.

    Parameters
    ----------
    outputs : mapping from option to path or None
        Files to write, by the option that names them.
    inputs : iterable of path or None
        Files that the verb reads, besides the file of ``--constraints``. Names that are no files, such as catalog
        names, are ignored.
    streams : iterable of str
        Options whose files are written line by line, so that a device such as ``/dev/stderr`` is allowed.

    Raises
    ------
    InputError
        If an output is refused; the sentence names its option.
    """
    # Verbs receive the parsed constraints only; click's context still knows the path of their file.
    context = click.get_current_context(silent=True)
    if context is not None:
        inputs = [*inputs, context.params.get("constraints_file")]
    taken = {os.path.realpath(path): "a file that is read" for path in inputs if path and Path(path).exists()}
    for option, path in outputs.items():
        if path is None:
            continue
        real = os.path.realpath(path)
        if real in taken:
            raise InputError(f"{option} {path!r} would overwrite {taken[real]}; choose another path.")
        taken[real] = f"the file of {option}"
        try:
            _check_stream(path) if option in streams else check_writable(path)
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


def _check_stream(path: str | os.PathLike[str]) -> None:
    target = Path(path)
    if target.is_dir():
        raise InputError(f"Cannot write {path!r}, which is a folder; name a file.")
    if not target.parent.is_dir():
        raise InputError(f"Cannot write {path!r}: its folder does not exist; create it first.")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InputError(f"Cannot write {path!r} (no permission); choose another path.")
