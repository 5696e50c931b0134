"""Strict JSON: no NaN, no infinity, no repeated keys, and a sentence for whatever is wrong."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from milpbn.errors import InputError


def json_safe(value: Any) -> Any:
    """Return a value made of JSON's types only: arrays become lists, NaN and infinity None.

    Raises
    ------
    InputError
        If a value has no JSON form.
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
    raise InputError(
        f"A value of type {type(value).__name__} cannot be written to JSON; convert it to text first."
    )


def dump_json(document: Mapping[str, Any]) -> str:
    """Return a JSON object as text, the items of its two outer levels on a line each.

    Numbers keep their full precision; the values must be `json_safe`.
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


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """Return the text of a UTF-8 file, without a byte order mark.

    Parameters
    ----------
    path : str or path-like
        The file.
    what : str
        What the file should be, for the sentence: "classifier file".

    Raises
    ------
    InputError
        If the file cannot be read or is not UTF-8 text.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            f"The {what} {str(path)!r} is not UTF-8 text; check that it is the right file."
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"Cannot read the {what} {str(path)!r} ({reason}); check the path.") from None


def parse_object(text: str) -> dict[str, Any]:
    """Return the JSON object that a text holds.

    Raises
    ------
    InputError
        If the text is no JSON, holds NaN or Infinity or a key twice, or is not an object.
    """
    try:
        document = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise InputError(
            f"It is not JSON: {error.msg} in line {error.lineno}, column {error.colno}."
        ) from None
    except InputError:
        raise
    except (RecursionError, ValueError):  # nesting or numbers beyond what Python reads
        raise InputError(
            "It is not JSON that can be read: too deeply nested, or a number is too long."
        ) from None
    if not isinstance(document, dict):
        raise InputError("It is not a JSON object.")
    return document


def _refuse_constant(constant: str) -> None:
    raise InputError(f"It holds {constant}, which JSON does not have.")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key, value in pairs:
        if key in document:
            raise InputError(f"It holds the key {key!r} twice.")
        document[key] = value
    return document
