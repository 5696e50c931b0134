"""Values on the command line: finite numbers, names in CSV-style quotes, arcs, tiers, assignments.

Names are separated by commas. A name that contains a separator, or begins or ends with a space, is written in
double quotes as in CSV files: ``--require '"income, yearly",class'``. A quote inside such a name is doubled.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import click
from click.shell_completion import CompletionItem

from milpbn.cli import completion

T = TypeVar("T")


class Parsed(click.ParamType, Generic[T]):
    """A parameter type that parses its values with a function.

    The text of the function's ValueError continues a sentence that begins with the value: ``'x' is not an integer``.
    `complete` is what the shell completes, from `milpbn.cli.completion`. The role of the path of a file is ``input`` if
    the verb reads the file, ``output`` if it writes the file as a whole, and ``stream`` if it writes line by line.
    """

    def __init__(
        self,
        name: str,
        parse: Callable[[str], T],
        complete: completion.Completer = completion.nothing,
        role: str | None = None,
    ) -> None:
        self.name, self.role = name, role
        self._parse, self._complete = parse, complete

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Return the parsed value, or fail with a sentence."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(f"{value!r} {error}.", param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[str]]:
        """Return what the shell offers for the beginning of a value."""
        return self._complete(ctx, incomplete)


def parse_path(text: str) -> str:
    """Return a path or a name, which may not be empty: then a variable of the shell was probably not set."""
    if not text.strip():
        raise ValueError("is empty, and names no file; a variable of the shell may not be set")
    if text == "-":
        raise ValueError("means neither standard input nor standard output here; a file of this name is ./-")
    return text


def parse_number(text: str) -> float:
    """Return a finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("is not a finite number")
    return number


def parse_count(text: str) -> int:
    """Return an integer."""
    try:
        return int(text)
    except ValueError:
        raise ValueError("is not an integer") from None


def parse_size(text: str) -> int:
    """Return the bytes of a size such as ``4GiB``, ``500MB`` or ``1e9``."""
    parts = re.fullmatch(r"\s*([^a-z]*(?:e\+?\d+)?)\s*(?:([kmgt])(i?))?b?\s*", text.lower())
    try:
        size = parse_number(parts[1]) if parts else math.nan
    except ValueError:
        size = math.nan
    if parts is None or not 0 < size < 2**60:
        raise ValueError("is not a size such as 4GiB or 500MB")
    power = "kmgt".index(parts[2]) + 1 if parts[2] else 0
    return int(size * (1024 if parts[3] else 1000) ** power)


def split(text: str, separator: str) -> list[str]:
    """Split at the separators outside double quotes; the quotes are kept."""
    pieces, quoted = [""], False
    for character in text:
        if character == '"':
            quoted = not quoted
        if character == separator and not quoted:
            pieces.append("")
        else:
            pieces[-1] += character
    if quoted:
        raise ValueError("has a double quote that is not closed")
    return pieces


def parse_name(piece: str) -> str:
    """Return a name without the quotes and spaces around it."""
    text = piece.strip()
    if not text:
        raise ValueError("has an empty name")
    if '"' not in text:
        return text
    inside = re.fullmatch(r'"((?:[^"]|"")+)"', text)
    if inside is None:
        raise ValueError("has quotes that do not enclose a whole name (double a quote inside a name)")
    return inside[1].replace('""', '"')


def parse_names(text: str) -> tuple[str, ...]:
    """Return the names of a list such as ``A,B``."""
    return tuple(parse_name(piece) for piece in split(text, ","))


def parse_arc(text: str) -> tuple[str, str]:
    """Return the parent and the child of ``PARENT,CHILD``."""
    names = parse_names(text)
    if len(names) != 2:
        raise ValueError(
            "does not have two names; write A,B, with names that contain commas in double quotes"
        )
    return names[0], names[1]


def parse_independence(text: str) -> tuple[str, str, tuple[str, ...]]:
    """Return the two variables of ``A,B|C,D``, and those that separate them, if there are any."""
    pair, *given = split(text, "|")
    if len(given) > 1:
        raise ValueError(
            "has more than one bar; write A,B|C,D, with names that contain bars in double quotes"
        )
    return *parse_arc(pair), parse_names(given[0]) if given else ()


def parse_arc_weight(text: str) -> tuple[tuple[str, str], float]:
    """Return the arc and the weight of ``PARENT,CHILD=NATS``."""
    *arc, weight = split(text, "=")
    if not arc:
        raise ValueError("has no weight; write PARENT,CHILD=NATS")
    return parse_arc("=".join(arc)), parse_number(weight)


def parse_tiers(text: str) -> tuple[tuple[str, ...], ...]:
    """Return the tiers of ``A,B;C``, the earliest first."""
    return tuple(parse_names(tier) for tier in split(text, ";"))


def parse_family(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the variable and the parents of ``NAME=P1,P2``; ``NAME=`` means no parents."""
    name, *rest = split(text, "=")
    if not rest:
        raise ValueError("has no equals sign; write NAME=PARENT,PARENT, or NAME= for no parents")
    parents = "=".join(rest)
    return parse_name(name), parse_names(parents) if parents.strip() else ()


def parse_limit(text: str) -> tuple[str, int]:
    """Return the name and the number of ``NAME=N``; a number alone holds for every feature, named ``*``."""
    *names, count = split(text, "=")
    return parse_name("=".join(names)) if names else "*", parse_count(count)


def parse_class_weights(text: str) -> dict[str, float] | str:
    """Return ``balanced``, or the weights of ``LABEL=WEIGHT,LABEL=WEIGHT`` by label."""
    if text.lower() == "balanced":
        return "balanced"
    weights = {}
    for piece in split(text, ","):
        *label, weight = split(piece, "=")
        if not label:
            raise ValueError("has no equals sign; write LABEL=WEIGHT,LABEL=WEIGHT or balanced")
        name = parse_name("=".join(label))
        if name in weights:
            raise ValueError(f"gives the label {name!r} two weights")
        weights[name] = parse_number(weight)
    return weights


def parse_setting(text: str) -> tuple[str, str]:
    """Return the key and the value of ``KEY=VALUE``."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ValueError("is not of the form KEY=VALUE")
    return key.strip(), value.strip()


def parse_evidence(text: str) -> dict[str, str]:
    """Return the values of ``NAME=VALUE,NAME=VALUE`` by name; a value in double quotes may contain commas."""
    found: dict[str, str] = {}
    for piece in split(text, ","):
        name, *value = split(piece, "=")
        if not value:
            raise ValueError(
                "has no equals sign; write NAME=VALUE,NAME=VALUE, values with commas in double quotes"
            )
        key = parse_name(name)
        if key in found:
            raise ValueError(f"gives {key!r} two values")
        text_of_value = "=".join(value)
        if not text_of_value.strip():
            raise ValueError(f"has no value behind {key}=; leave out what is not known")
        found[key] = parse_name(text_of_value)
    return found


def parse_missing_values(text: str) -> tuple[tuple[str, str], ...]:
    """Return columns and values of a list such as ``999,age=-1``; the column of a value alone is ``*``, every one."""
    pairs = []
    for piece in split(text, ","):
        *names, value = split(piece, "=")
        pairs.append((parse_name("=".join(names)) if names else "*", parse_name(value)))
    return tuple(pairs)


def _or_cv(parse: Callable[[str], T]) -> Callable[[str], T | str]:
    def parse_or_cv(text: str) -> T | str:
        try:
            return "cv" if text.lower() == "cv" else parse(text)
        except ValueError as error:
            raise ValueError(f"{error} (nor the word cv)") from None

    return parse_or_cv


def word(name: str, *known: str) -> Parsed[str]:
    """Return a type for text of which the shell completes some words; the verb says which it takes."""
    return Parsed(name, str, completion.words(*known))


#: The shell completes the backends with names of their own, without importing them.
BACKEND = word("name", "auto", "native", "branch-and-cut", "highs", "cbc", "cpsat", "scip")
NUMBER = Parsed("number", parse_number)
COUNT = Parsed("integer", parse_count)
NUMBER_OR_CV = Parsed("number|cv", _or_cv(parse_number), completion.words("cv"))
COUNT_OR_CV = Parsed("integer|cv", _or_cv(parse_count), completion.words("cv"))
SIZE = Parsed("size", parse_size)
FILE = Parsed("file", parse_path, completion.files, "input")
OUTPUT = Parsed("file", parse_path, completion.files, "output")
STREAM = Parsed("file", parse_path, completion.files, "stream")
FOLDER = Parsed("dir", str, completion.folders)
DATA = Parsed("data", parse_path, completion.tables, "input")
INSTANCE = Parsed("name", str, completion.instances)
TEXT = Parsed("text", str)
NAME = Parsed("name", str, completion.column)
CLASS = Parsed("class", str, completion.classes)
NAMES = Parsed("a,b,...", parse_names, completion.listed(","))
MISSING_VALUES = Parsed("value,name=value,...", parse_missing_values, completion.listed(",="))
ARC = Parsed("parent,child", parse_arc, completion.listed(","))
PAIR = Parsed("a,b", parse_arc, completion.listed(","))
ARC_WEIGHT = Parsed("parent,child=nats", parse_arc_weight, completion.listed(","))
INDEPENDENCE = Parsed("a,b|c,d", parse_independence, completion.listed(",|"))
TIERS = Parsed("a,b;c;...", parse_tiers, completion.listed(",;"))
FAMILY = Parsed("name=p1,p2", parse_family, completion.listed(",="))
CHILD_LIMIT = Parsed("n|name=n", parse_limit, completion.listed(""))
CLASS_WEIGHTS = Parsed("balanced|label=w,...", parse_class_weights, completion.words("balanced"))
MONOTONE = Parsed("name=+|-,...", parse_evidence, completion.listed(",="))
EVIDENCE = Parsed("name=value,...", parse_evidence, completion.evidence)
SETTING = Parsed("key=value", parse_setting)
