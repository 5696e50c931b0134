"""Checks of the types of options, with an error message that is a sentence."""

from __future__ import annotations

import numbers
import operator
import os
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from milpbn.errors import InputError


def convert_fields(options: Any) -> None:
    """Convert the fields of a frozen dataclass to the types of their annotations.

    None is kept in fields that may be None. Only fields with exactly one of the types number, boolean, text and path
    are converted; the class itself must check others. `InputError` if a value has another type; the message names the
    field.
    """
    for name, check, optional in _checks(options.__class__):
        value = getattr(options, name)
        if value is not None or not optional:
            object.__setattr__(options, name, check(name, value))


@cache
def _checks(kind: Any) -> list[tuple[str, Callable[[str, Any], Any], bool]]:
    """Return (name, check, whether None is allowed) of the fields of a dataclass that have a check."""
    by_type: dict[Any, Callable[[str, Any], Any]]
    by_type = {bool: truth_value, int: whole_number, float: real_number, str: text}
    found = []
    hints = get_type_hints(kind)
    for field in fields(kind):
        members = union_members(hints[field.name])
        optional = type(None) in members
        named = [member for member in members if member is not type(None)]
        if "file" in field.metadata or os.PathLike[str] in named:
            check: Callable[[str, Any], Any] | None = path_option
        else:
            check = by_type.get(named[0]) if len(named) == 1 else None
        if check is not None:
            found.append((field.name, check, optional))
    return found


def union_members(annotation: Any) -> tuple[Any, ...]:
    """Return the types of a union; of any other type, the type alone."""
    is_union = get_origin(annotation) in (Union, UnionType)
    return get_args(annotation) if is_union else (annotation,)


def whole_number(name: str, value: Any) -> int:
    """Return an integer of any type as int; raise InputError for another value, also for a boolean."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name} must be a whole number, got {value!r}.") from None


def real_number(name: str, value: Any) -> float:
    """Return a real number of any type as float, also infinity and NaN; raise InputError as `whole_number` does."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"{name} must be a number, got {value!r}.")
    try:
        return float(value)
    except OverflowError:
        raise InputError(
            f"{name} must be a number within float64, got one of more than 300 digits."
        ) from None


def truth_value(name: str, value: Any) -> bool:
    """Return a boolean of Python or NumPy as bool; raise InputError for another value."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise InputError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def text(name: str, value: Any) -> str:
    """Return a string; raise InputError for another value."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be text, got {value!r}.")
    return value


def path_option(name: str, value: Any) -> str:
    """Return a path as text; raise InputError for another value."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} must be a path, got {value!r}.")
    return os.fspath(value)
