"""Dataclasses read from JSON objects, each attribute as the type that its annotation declares.

A claim of a result is declared once: its attributes, their types and their ranges. `read_as` reads it from a file by
this declaration, and every refusal is a sentence of `milpbn.util.jsonable.Fields` that names the file and the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from milpbn.util.jsonable import LARGEST_COUNT, LARGEST_NUMBER, Fields

T = TypeVar("T")
_hints: Any = cache(get_type_hints)


@dataclass(frozen=True)
class Within:
    """The range of a number, as a part of its annotation.

    `high` may be the name of the attribute whose value is the largest number; None is no limit.
    """

    low: float
    high: float | str | None = None


@dataclass(frozen=True)
class OneOf:
    """The texts that an attribute may have, as a part of its annotation."""

    choices: tuple[str, ...]


#: A number of things that is at least 1; a number that is not negative.
Count = Annotated[int, Within(1)]
NotNegative = Annotated[float, Within(0.0)]


def read_as(kind: type[T], f: Fields, *beside: str, **known: Any) -> T:
    """Return a dataclass of which a JSON object holds the attributes.

    The attributes that the dataclass names in its class attribute ``LATER`` may be missing in the object, or null, and
    have their defaults then: files of earlier versions lack them.

    Parameters
    ----------
    kind : type
        A dataclass whose attributes are annotated with bool, int, float, str, an enumeration of texts, another
        dataclass (read by its method ``read``, if it has one), or one of these or None; with ``Mapping[str, ...]`` or
        ``tuple[..., ...]`` of them; or with Any. `Within` and `OneOf` limit numbers and texts.
    *beside : str
        Keys that the object may have besides the attributes.
    **known : object
        Attributes that the caller has read otherwise.

    Raises
    ------
    InputError
        If the object has an unknown key, or if a value is missing or not as it is declared.
    """
    hints = _hints(kind, include_extras=True)
    declared = [a for a in fields(kind) if a.name not in known]  # type: ignore[arg-type]
    f.known({*(a.name for a in declared), *beside})
    found = dict(known)
    for a in declared:
        if a.name not in getattr(kind, "LATER", ()) or not f.missing(a.name):
            found[a.name] = _value(f, a.name, hints[a.name], f)
    return kind(**found)


def _value(f: Fields, key: str, hint: Any, of: Fields) -> Any:
    """Return the value of a key as a type; `of` is the object that has the attribute."""
    marks: tuple[Any, ...] = ()
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if NoneType in options and f.get(key) is None:
        return None
    hint = next(option for option in options if option is not NoneType)
    if get_origin(hint) is Annotated:
        hint, *marks = get_args(hint)  # type: ignore[assignment]
    low = next((mark.low for mark in marks if isinstance(mark, Within)), None)
    high = next((mark.high for mark in marks if isinstance(mark, Within)), None)
    high = of.whole(high) if isinstance(high, str) else high
    if hint is Any:
        hint = next((kind for kind in (bool, str) if isinstance(f.get(key), kind)), float)
    if hint is bool:
        return f.flag(key)
    if hint is int:
        return f.whole(key, int(low or 0), LARGEST_COUNT if high is None else int(high))
    if hint is float:
        return f.number(
            key, -LARGEST_NUMBER if low is None else low, LARGEST_NUMBER if high is None else high
        )
    if hint is str:
        return f.text(key, next((mark.choices for mark in marks if isinstance(mark, OneOf)), None))
    if get_origin(hint) is Mapping:
        own = f.fields(key)
        return {name: _value(own, name, get_args(hint)[1], of) for name in own}
    if get_origin(hint) is tuple:
        kind = get_args(hint)[0]
        return tuple(f.texts(key)) if kind is str else tuple(_object(kind, one) for one in f.objects(key))
    if issubclass(hint, StrEnum):
        return hint(f.text(key, tuple(hint)))
    return _object(hint, f.fields(key))


def _object(kind: Any, f: Fields) -> Any:
    return kind.read(f) if hasattr(kind, "read") else read_as(kind, f)
