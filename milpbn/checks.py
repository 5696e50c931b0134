"""Types of options, said in a sentence: a library is called with what happens to be at hand."""

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
    """Replace the fields of a frozen dataclass by values of the types that their annotations name.

    None stays where it may be given. What an annotation names neither as a number, a truth value, a text nor a path,
    or as several of them, is for the class itself to check.

    Raises
    ------
    InputError
        Naming the field whose value is of another type.
    """
    for name, check, optional in _checks(options.__class__):
        value = getattr(options, name)
        if value is not None or not optional:
            object.__setattr__(options, name, check(name, value))


@cache
def _checks(kind: Any) -> list[tuple[str, Callable[[str, Any], Any], bool]]:
    """Return the fields of a dataclass that have a check, the check, and whether None may be given."""
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
    """Return the types of a union, or the type."""
    is_union = get_origin(annotation) in (Union, UnionType)
    return get_args(annotation) if is_union else (annotation,)


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


def text(name: str, value: Any) -> str:
    """Return a text.

    Raises
    ------
    InputError
        If it is none.
    """
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text, got {value!r}.")
    return value


def path_option(name: str, value: Any) -> str:
    """Return a path as text.

    Raises
    ------
    InputError
        If it is neither text nor path-like.
    """
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name} must be a path, got {value!r}.")
    return os.fspath(value)
