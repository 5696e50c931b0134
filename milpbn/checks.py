"""Types of options, said in a sentence: a library is called with what happens to be at hand."""

from __future__ import annotations

import numbers
import operator
import os
from collections.abc import Callable, Mapping
from typing import Any

from milpbn.errors import InputError


def convert(options: object, checks: Mapping[str, Callable[[str, Any], Any]]) -> None:
    """Replace attributes of a frozen dataclass by what their checks return; None stays where it is the default.

    Raises
    ------
    InputError
        As the checks do, which get name and value.
    """
    for name, check in checks.items():
        value = getattr(options, name)
        if value is not None or getattr(type(options), name) is not None:
            object.__setattr__(options, name, check(name, value))


def whole_number(name: str, value: Any) -> int:
    """Return an integer of any type as int.

    Raises
    ------
    InputError
        If it is none, or a truth value.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, got {value!r}.") from None


def real_number(name: str, value: Any) -> float:
    """Return a real number of any type as float; whether it is finite is for its range to say.

    Raises
    ------
    InputError
        If it is none: a text, a truth value.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"{name} must be a number, got {value!r}.")
    return float(value)


def truth_value(name: str, value: Any) -> bool:
    """Return a truth value of Python or NumPy as bool.

    Raises
    ------
    InputError
        If it is none.
    """
    if type(value).__name__ not in ("bool", "bool_"):
        raise InputError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def path_option(name: str, value: Any) -> str | os.PathLike[str]:
    """Return a path.

    Raises
    ------
    InputError
        If it is neither text nor path-like.
    """
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} must be a path, got {value!r}.")
    return value
