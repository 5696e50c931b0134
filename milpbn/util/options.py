"""Options, declared once: a field of a dataclass has an option's name, type, default, range, and sentence of help.

The command line (`milpbn.cli.declared`), the grids of selections and the commands that reports show read the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import Field, field, fields
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from milpbn.errors import InputError
from milpbn.util.validation import union_members

_hints = cache(get_type_hints)


class Range(NamedTuple):
    """The range of an option's values, and the error message, a format string of `low`, `high` and `value`."""

    low: float
    high: float
    words: str

    def check(self, value: float) -> None:
        """Raise `InputError`, with the message of the range, for a value outside it, or NaN."""
        if not self.low <= value <= self.high:
            raise InputError(self.words.format(low=self.low, high=self.high, value=value))


def option(default: Any, help: str, **extra: Any) -> Any:  # click's word for it
    """Return a dataclass field that is an option, with a default value and a help text.

    Further arguments are those of `dataclasses.field`, such as ``compare``, and these properties:

    - ``choices``: the only words that are allowed; ``completes``: words that the shell completes, among other values;
      ``metavar``: what stands for the value in the help.
    - ``range``: a `Range`; values that are text are not checked.
    - ``spelling``: names on the command line, if not the name with dashes. ``--yes/--no`` is a pair of flags, and a
      name that begins with ``--no-`` a flag that sets the option to False.
    - ``selectable``: False if a grid of a selection cannot name the option; ``validation``: whether the command line
      takes ``cv``, which leaves the choice to validation.
    - ``refused``: of an option that only some scores take, the message to others, a format string of `option`, `scores`
      (those that take it) and `score`; ``belongs_to``: another option, whose scores take this one, too.
    - ``of_classifiers``: of an option that only a classifier's tables need, unless the score has `ScoreKind.smooths`:
      the message where no classifier is fitted, a format string of `option` and `score`.
    - ``words``: of an option of a score, its place in the score's description, and what it says there, a format string
      of `value`, where the option differs from its default.
    - ``file``: "input" or "output" if the value is the path of a file that is read or written; ``takes``: "variable" or
      "backend" if the value names one, "text" if the command line gives text only.
    """
    own = {key: extra.pop(key) for key in ("compare", "kw_only") if key in extra}
    made = {"default_factory": default} if callable(default) else {"default": default}
    return field(**made, **own, metadata={"help": help, **extra})


def declared(kind: Any) -> list[Field[Any]]:
    """Return the fields of a dataclass that are declared as options."""
    return [item for item in fields(kind) if "help" in item.metadata]


def types_of(kind: Any, name: str) -> list[Any]:
    """Return the types that an option of a dataclass may have, without None."""
    return [member for member in union_members(_hints(kind)[name]) if member is not type(None)]


def spelling(item: Field[Any]) -> str:
    """Return an option as it is written on the command line; of a pair of flags, the one that means True.

    A field whose name would be a Python keyword ends with ``_``.
    """
    names: Sequence[str] = item.metadata.get("spelling") or ("--" + item.name.rstrip("_").replace("_", "-"),)
    return names[0].partition("/")[0]


def listed(names: Iterable[str], word: str) -> str:
    """Return names as part of a sentence, such as ``A, B or C`` for the word ``or``."""
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise `InputError`, with the words of an option, for a value that is none of them."""
    if value not in choices:
        raise InputError(f"{name} must be {listed(map(repr, choices), 'or')}, got {value!r}.")


def quoted(name: str) -> str:
    """Return a name as lists of the command line have it: in double quotes if it has a separator or a space outside."""
    if name == name.strip() and not any(mark in name for mark in ',;=|"'):
        return name
    return '"' + name.replace('"', '""') + '"'


def comma_separated(names: Iterable[str]) -> str:
    """Return names as a list of the command line."""
    return ",".join(map(quoted, names))
