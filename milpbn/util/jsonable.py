"""Strict JSON: without NaN, infinity or repeated keys, and with a sentence for every error.

`parse_object` reads the text. `Fields` reads the values and checks the type and range of each.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from milpbn.errors import InputError
from milpbn.util.memory import format_bytes
from milpbn.util.raw_files import decode, unpack_gzip

T = TypeVar("T")
#: Largest accepted number. Scores, bounds, gaps and times are much smaller, and sums of a few such numbers are finite.
LARGEST_NUMBER = 1e150
#: Largest accepted count; counts of samples, nodes and states are much smaller.
LARGEST_COUNT = 2**62
#: Largest number of bytes of text that are read; JSON files and arc lists are much smaller.
LARGEST_TEXT = 2**28
#: Number of characters of a value that an error message shows.
SHOWN = 40


def json_safe(value: Any) -> Any:
    """Return a value that consists of JSON's types: arrays become lists, NaN and infinity None.

    A dataclass becomes what its method ``to_dict`` returns, or its attributes if it has none.

    `InputError` if a value cannot be written as JSON.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.ndarray | np.generic):
        return json_safe(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return json_safe(value.to_dict() if hasattr(value, "to_dict") else vars(value))
    raise InputError(
        f"A value of type {type(value).__name__} cannot be written to JSON; convert it to text first."
    )


def dump_json(document: Mapping[str, Any]) -> str:
    """Return a JSON object as text, with one line for each item of the two outer levels.

    Numbers keep their full precision. The values must be results of `json_safe`.
    """
    return _lines(document, depth=2) + "\n"


def _lines(value: Any, depth: int, indent: str = "") -> str:
    if depth == 0 or not value or not isinstance(value, dict | list):
        return json.dumps(value, allow_nan=False)
    inner = indent + " "
    if isinstance(value, dict):
        items = [f"{json.dumps(k)}: {_lines(v, depth - 1, inner)}" for k, v in value.items()]
        opening, closing = "{", "}"
    else:
        items = [_lines(v, depth - 1, inner) for v in value]
        opening, closing = "[", "]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{closing}"


def read_text(path: str | os.PathLike[str], what: str, *, windows: bool = False) -> str:
    """Return the text of a file, which may be gzipped, without a byte order mark.

    `what` is its kind, such as "classifier file". The encoding is UTF-8, that of a byte order mark, or what a file of
    XML declares; files of programs of Windows may also have cp1252. `InputError` if the file cannot be read, has
    another encoding, or is far too large.
    """
    try:
        with Path(path).open("rb") as file:  # a device may have no end
            content = file.read(LARGEST_TEXT + 1)
        if len(content) > LARGEST_TEXT:
            raise InputError(
                f"The {what} {str(path)!r} has more than {format_bytes(LARGEST_TEXT)}; check that it is the right file."
            )
        if content.startswith(b"\x1f\x8b"):
            content = unpack_gzip(content, repr(str(path)))
        text = decode(content, "cp1252" if windows else "utf-8")
        return text.replace("\r\n", "\n").replace("\r", "\n")
    except InputError:
        raise
    except UnicodeError:
        raise InputError(
            f"The {what} {str(path)!r} is not UTF-8 text; check that it is the right file."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"Cannot read the {what} {str(path)!r} ({reason}); check the path.") from None


def unusable(what: str, path: str | os.PathLike[str], error: InputError) -> InputError:
    """Return an error about the content of a file as a sentence that names the file; `what` is its kind."""
    reason = str(error)
    return InputError(f"The {what} {str(path)!r} is unusable: {reason[0].lower()}{reason[1:]}")


def parse_object(text: str) -> dict[str, Any]:
    """Return the JSON object in a text; every number in it is within float64.

    `InputError` if the text is not a JSON object, or holds NaN, Infinity, a number beyond float64 or a key twice.
    """
    try:
        document = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_float,
            parse_int=_int,
            object_pairs_hook=_unique_keys,
        )
    except json.JSONDecodeError as error:
        raise InputError(
            f"It is not JSON: {error.msg} in line {error.lineno}, column {error.colno}."
        ) from None
    except InputError:
        raise
    except (RecursionError, ValueError):  # Python limits the depth, and the digits of an integer
        raise InputError(
            "It cannot be read as JSON: it is too deeply nested, or a number is too long."
        ) from None
    if not isinstance(document, dict):
        raise InputError("It is not a JSON object.")
    return document


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise InputError(f"It holds the number {shorten(digits)}, which is beyond float64.")
    return value


def _int(digits: str) -> int:
    value = int(digits)  # raises ValueError for thousands of digits
    if finite_number(value) is None:
        raise InputError(f"It holds a number of {len(digits)} digits, which is beyond float64.")
    return value


def _refuse_constant(constant: str) -> None:
    raise InputError(f"It holds {constant}, which is not valid JSON.")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key, value in pairs:
        if key in document:
            raise InputError(f"It holds the key {shorten(key)} twice.")
        document[key] = value
    return document


def shorten(value: object) -> str:
    """Return a value as an error message shows it: the first `SHOWN` characters of its representation."""
    if isinstance(value, Mapping | list | tuple):
        return "an object" if isinstance(value, Mapping) else "a list"
    try:
        shown = repr(value)
    except ValueError:  # an integer of thousands of digits
        return "a number of thousands of digits"
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."


def finite_number(value: object) -> float | None:
    """Return a JSON number as float; None for any other value, such as a boolean or a number beyond float64."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


class Fields:
    """The values of a JSON object, each of which is read as the type that it must have.

    `where` begins the error messages, such as "The result 'result.json'"; `path` is the place of the object within the
    document, empty for the document itself. `InputError` if the value is not an object. Methods raise it if a key is
    missing, or if its value has another type or is out of range.
    """

    def __init__(self, values: object, where: str, path: str = "") -> None:
        self._where, self._path = where, path
        if not isinstance(values, Mapping):
            raise self._refusal(path or "the whole document", "an object", values)
        self._values = values

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def get(self, key: str) -> Any:
        """Return a value of any type; the key must exist."""
        if key not in self._values:
            raise InputError(f"{self._where} lacks the key {key!r}{self._inside}.")
        return self._values[key]

    def missing(self, key: str) -> bool:
        """Return whether an optional key does not exist or is null."""
        return self._values.get(key) is None

    def known(self, keys: Collection[str]) -> None:
        """Raise InputError if the object has a key that is not one of these."""
        for key in self._values:
            if key not in keys:
                raise InputError(
                    f"{self._where} has the unknown key {shorten(key)}{self._inside}; read the file with the version "
                    "of milpbn that wrote it."
                )

    def plain(self) -> dict[str, Any]:
        """Return all values as they are in the document."""
        return dict(self._values)

    def optional(self, key: str, read: Callable[..., T], *limits: float) -> T | None:
        """Return what one of the methods below reads; None if the value is null."""
        return None if self.get(key) is None else read(key, *limits)

    def number(self, key: str, low: float = -LARGEST_NUMBER, high: float = LARGEST_NUMBER) -> float:
        """Return a finite number in a range."""
        return self._number(self._at(key), self.get(key), low, high)

    def whole(self, key: str, low: int = 0, high: int = LARGEST_COUNT) -> int:
        """Return a whole number in a range."""
        value = self.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            span = f"of at least {low}" if high == LARGEST_COUNT else f"from {low} to {high}"
            raise self._refusal(self._at(key), f"a whole number {span}", value)
        return value

    def text(self, key: str, choices: Collection[str] | None = None) -> str:
        """Return a string, one of `choices` if they are given."""
        value = self.get(key)
        if not isinstance(value, str) or (choices is not None and value not in choices):
            wanted = "text" if choices is None else f"one of {', '.join(choices)}"
            raise self._refusal(self._at(key), wanted, value)
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean."""
        value = self.get(key)
        if not isinstance(value, bool):
            raise self._refusal(self._at(key), "true or false", value)
        return value

    def items(self, key: str) -> list[Any]:
        """Return a list."""
        value = self.get(key)
        if not isinstance(value, list | tuple):
            raise self._refusal(self._at(key), "a list", value)
        return list(value)

    def numbers(self, key: str, low: float = -LARGEST_NUMBER) -> list[float]:
        """Return a list of finite numbers."""
        items = enumerate(self.items(key))
        return [self._number(f"{self._at(key)}[{i}]", value, low, LARGEST_NUMBER) for i, value in items]

    def wholes(self, key: str, low: int = 0, high: int = LARGEST_COUNT) -> list[int]:
        """Return a list of whole numbers."""
        row = RowFields(self.items(key), self._where, self._at(key))
        return [row.whole(place, low, high) for place in row]

    def fields(self, key: str) -> Fields:
        """Return an object."""
        return Fields(self.get(key), self._where, self._at(key))

    def rows(self, key: str, length: int) -> Iterator[RowFields]:
        """Yield the lists in a list; all must have the given length."""
        for number, row in enumerate(self.items(key)):
            path = f"{self._at(key)}[{number}]"
            if not isinstance(row, list | tuple) or len(row) != length:
                raise self._refusal(path, f"a list of {length} values", row)
            yield RowFields(row, self._where, path)

    def texts(self, key: str) -> list[str]:
        """Return a list of strings."""
        values = self.items(key)
        for number, value in enumerate(values):
            if not isinstance(value, str):
                raise self._refusal(f"{self._at(key)}[{number}]", "text", value)
        return values

    @property
    def _inside(self) -> str:
        return f" in {self._path!r}" if self._path else ""

    def _at(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def _number(self, path: str, value: object, low: float, high: float) -> float:
        number = finite_number(value)
        if number is None or not low <= number <= high:
            span = "" if low == -LARGEST_NUMBER else f" of at least {low:g}"
            if number is not None and number > high:
                span = f" of at most {high:g}"
            elif number is not None and number < low:
                span = f" of at least {low:g}"
            raise self._refusal(path, f"a finite number{span}", value)
        return number

    def objects(self, key: str) -> Iterator[Fields]:
        """Yield the objects in a list."""
        for number, value in enumerate(self.items(key)):
            yield Fields(value, self._where, f"{self._at(key)}[{number}]")

    def contradiction(self, what: str) -> InputError:
        """Return the error for a document whose values are valid one by one, but cannot all be true."""
        return InputError(f"{self._where} contradicts itself{self._inside}: {what}.")

    def _refusal(self, path: str, wanted: str, value: object) -> InputError:
        return InputError(f"{self._where} needs {wanted} as {path!r}, but has {shorten(value)}.")


class RowFields(Fields):
    """A list of values, which are read by position as `Fields` reads them by key."""

    def __init__(self, values: Sequence[object], where: str, path: str) -> None:
        super().__init__({str(place): value for place, value in enumerate(values)}, where, path)

    def _at(self, key: str) -> str:
        return f"{self._path}[{key}]"
