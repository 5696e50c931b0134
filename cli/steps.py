"""Steps that several verbs take: reading tables and files, showing notes and progress, writing what was found."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.report import exit_code, no_structure, say
from milpbn.cli.sections import Values, given
from milpbn.cli.table_options import TableOptions
from milpbn.errors import InputError
from milpbn.util import stages
from milpbn.util.progress_line import LINE

if TYPE_CHECKING:
    from milpbn.claims.result import Result
    from milpbn.data import Dataset, Table, Variable
    from milpbn.learners.base import Control
    from milpbn.solving.options import Options


def started() -> float:
    """Return the `time.monotonic` value from which time limits count: when the process began, or now."""
    began: float | None = click.get_current_context().obj
    return time.monotonic() if began is None else began


def show_stages(began: float, *, quiet: bool) -> None:
    """Show the current stage until the verb ends, whenever nothing else is shown, unless `quiet`."""
    click.get_current_context().with_resource(stages.shown(began, wanted=not quiet))


def read(
    table: TableOptions,
    source: str,
    began: float,
    *,
    quiet: bool,
    time_limit: float | None = None,
    in_units: bool = False,
) -> tuple[Table, Dataset]:
    """Show stages, and return a table and its training rows, within a time limit that counts from `began`."""
    from milpbn.util.budget import Budget

    show_stages(began, quiet=quiet)

    def work() -> tuple[Table, Dataset]:
        found = table.read(source, in_units=in_units)
        return found, found.dataset("train")

    return Budget(time_limit, began=began).before(work, "the data were read")


def telling(began: float, *, quiet: bool) -> Callable[[str], None]:
    """Return a function that shows a line of progress with the seconds since `began`, or nothing if `quiet`."""

    def tell(line: str) -> None:
        if not quiet:
            LINE.show(f"{time.monotonic() - began:8.1f}s  {line}")

    return tell


def control(run: Values, began: float, time_limit: float | None) -> Control:
    """Return the settings of learners from the options of a verb, checked, with the time limit in seconds from now."""
    from milpbn.learners.base import Control
    from milpbn.solving.options import Options

    names = ("time_limit", "threads", "random_state", "parameters")
    limits = Options(**given(**{name: getattr(run, name) for name in names}))
    return Control(
        random_state=limits.random_state,
        time_limit=time_limit,
        n_jobs=limits.n_threads,
        report=telling(began, quiet=run.quiet),
        parameters=run.parameters,
        verbose=False if run.quiet else None,
    )


def show_notes(data: Dataset | Table, *, quiet: bool, variables: Sequence[Variable] = ()) -> None:
    """Print on stderr the decisions made while reading, and the states of some variables, unless `quiet`."""
    if quiet:
        return
    for note in data.notes:
        LINE.keep(note)
    for variable in variables:
        LINE.keep(f"{variable.name}: {', '.join(variable.states)}")


def say_notes(notes: Iterable[str], *, quiet: bool = False) -> None:
    """Print notes on stderr, unless `quiet`."""
    for note in () if quiet else notes:
        say(note, err=True)


def show_result(result: Result, options: Options | None = None) -> int:
    """Print the closing block of a search with these options, and if it has no structure an error; return the code."""
    from milpbn.solving.progress import closing_block

    say(closing_block(result, options=options))
    if result.structure is None:
        say(f"Error: {no_structure(result)}", err=True)
    return exit_code(result)


def read_document(path: str, what: str = "file", verdict: str = "is unusable") -> dict[str, Any]:
    """Return the JSON object in a file; raise InputError if it cannot be read, or holds none.

    `what` and `verdict` are parts of the sentence.
    """
    from milpbn.util.jsonable import parse_object, read_text

    text = read_text(path, what)
    try:
        return parse_object(text)
    except InputError as error:
        raise InputError(f"The {what} {path!r} {verdict}: {error}") from None


def json_line(document: Mapping[str, Any]) -> str:
    """Return a JSON object on one line."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: str | None, document: Mapping[str, Any]) -> None:
    """Write a JSON object to a file, if one is named."""
    from milpbn.util.atomic import atomic_write_text
    from milpbn.util.jsonable import dump_json

    if path is not None:
        atomic_write_text(path, dump_json(document))


def write_text(path: str | None, text: str) -> None:
    """Write a text to a file, or to stdout if none is named; labels in it stay as they are."""
    from milpbn.util.atomic import atomic_write_text

    if path is None:
        click.echo(text, nl=False, color=True)  # color=True keeps escape sequences inside labels
    else:
        atomic_write_text(path, text)
