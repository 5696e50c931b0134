"""Numbers as people and programs of many countries write them: ``36,1``, ``1.234,56``, ``€ 12,50``, ``12 %``, ``−5``.

A column is read as numbers if one way of writing fits all of its cells. Decimals after a comma or a point and
thousands before it look alike in ``1,234``: both ways fit then, and `choose` says which counts, and why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache

from milpbn.data.labels import number_of, plain_numbers

_CURRENCY = r"[$€£¥₹₩₽₺₪₫₱₦₴฿¢]|R\$|(?:USD|EUR|CHF|GBP|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|Fr|Rs|kr|zł)\.?(?![A-Za-z])"
_PER_CENT = "%‰\uff05"
_MINUS = "\u2212\u2013\u2010\u2011\uff0d-"  # the last one stands at the end of a set of characters
_BLANKS = " \u00a0\u2007\u2009\u202f"
_APOSTROPHES = "'\u2019\u02bc"
_POINT_OR_GROUPS = re.compile(r"[+-]?(?:[0-9]+|[1-9][0-9]{0,2}(?:\.[0-9]{3})+)")
_ADDRESS = re.compile(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}")
_TELEPHONE = re.compile(r"\+[0-9]+[ \u00a0][0-9 \u00a0]+")
#: What may stand between groups of digits, by the decimal mark; a blank and an apostrophe stand for all of their kind.
_GROUPING = {".": ("", ",", "'", " "), ",": ("", ".", "'", " ")}
#: Distinct numbers with a mark that show, beside integers of three digits without it, that it groups thousands.
_GROUPED = 3


@dataclass(frozen=True)
class Marks:
    """A way of writing numbers: the decimal mark, and what stands between groups of digits (nothing if empty)."""

    decimal: str = "."
    thousands: str = ""


@dataclass(frozen=True)
class Written:
    """How the numbers of a column are written.

    The marks fit all cells, and so do those of `other`, which give other numbers. The example is a cell that the two
    ways read differently, or else one with thousands, or else one that is no plain number, or else the first. `plain`
    says whether all cells are plain numbers as they stand, `shows_decimal` whether they show which the decimal mark is.
    """

    marks: Marks
    other: Marks | None
    example: str
    plain: bool
    shows_decimal: bool


def is_plain(cell: str) -> bool:
    """Return whether a cell is a number with a decimal point and nothing else, white space around it aside."""
    return not math.isnan(number_of(cell))


def _all_plain(cells: Collection[str]) -> bool:
    return plain_numbers(cells) is not None or all(map(is_plain, cells))


def rough_number(cell: str) -> float:
    """Return the number that a cell is in the first way of writing that fits it; NaN if it is none."""
    if is_plain(cell):
        return float(cell)
    ways = (Marks(decimal, between) for decimal, choices in _GROUPING.items() for between in choices)
    return next((float(text) for marks in ways if (text := convert(cell, marks)) is not None), math.nan)


def is_number(cell: str) -> bool:
    """Return whether a cell is a number in one of the ways of writing."""
    return not math.isnan(rough_number(cell))


def convert(cell: str, marks: Marks) -> str | None:
    """Return a cell as a plain number; None if it is no number with these marks."""
    found = _parse(cell, marks)
    return None if found is None else found[0]


def written(cells: Collection[str], asked: Marks | None = None) -> Written | None:
    """Return how the different cells of a column are written as numbers; None if no one way fits all of them.

    The cells are not missing. `asked` are the marks that the user gives; an empty one stands for any.
    """
    asked = asked or Marks("")
    if asked == Marks("") and _all_plain(cells):
        points = [cell for cell in cells if "." in cell]
        both = bool(points) and all(_POINT_OR_GROUPS.fullmatch(cell.strip()) for cell in cells)
        example = (points or list(cells))[0].strip()
        return Written(Marks(), Marks(",", ".") if both else None, example, True, bool(points) and not both)
    ways = [
        marks
        for decimal in ((asked.decimal,) if asked.decimal else ".,")
        if (marks := _fit(cells, decimal, asked))
    ]
    if not ways or not _one_unit(cells, ways[0]) or (asked == Marks("") and _may_be_labels(cells)):
        return None
    marks, other = ways[0], ways[1] if len(ways) > 1 else None
    differing = [] if other is None else [c for c in cells if convert(c, marks) != convert(c, other)]
    between = _any_of(marks.thousands) if marks.thousands else "(?!)"
    grouped = [cell for cell in cells if re.search(between, cell.strip())]
    unusual = differing or grouped or [cell for cell in cells if not is_plain(cell)] or list(cells)
    shows_decimal = not differing and any(mark in cell for cell in cells for mark in ".,")
    plain = marks.decimal == "." and _all_plain(cells)
    return Written(marks, other if differing else None, unusual[0].strip(), plain, shows_decimal)


def choose(
    found: Written,
    cells: Collection[str],
    decimals: Collection[str],
    separator: str | None,
    usual: str | None,
) -> tuple[Marks, str]:
    """Return which of two ways of writing counts for a column, and why, as the end of a sentence.

    `decimals` are the decimal marks that other columns show, and `usual` is that of the training table, if this one is
    for prediction.
    """
    assert found.other is not None
    by_decimal = {marks.decimal: marks for marks in (found.marks, found.other)}
    if len(set(decimals)) == 1:
        (decimal,) = set(decimals)
        return by_decimal[decimal], f"as the decimal mark of other columns is {decimal!r}"
    if usual in by_decimal:
        return by_decimal[usual], "as in the training table"
    mark = "," if "," in found.example else "."
    if _groups_thousands(cells, mark):
        return by_decimal["," if mark == "." else "."], "as integers of three digits stand beside it"
    if mark == "," and separator == ";":
        return by_decimal[","], "as semicolons separate the cells"
    return by_decimal["."], "as a decimal mark is a point unless something speaks against it"


def _fit(cells: Iterable[str], decimal: str, asked: Marks) -> Marks | None:
    """Return the first way of writing with a decimal mark that fits all cells; None if there is none."""
    grouping = ("", asked.thousands) if asked.thousands else _GROUPING.get(decimal, ("", ",", ".", "'", " "))
    ways = (Marks(decimal, between) for between in grouping if between != decimal)
    return next((marks for marks in ways if all(convert(cell, marks) is not None for cell in cells)), None)


def _groups_thousands(cells: Collection[str], mark: str) -> bool:
    """Return whether numbers of three digits, and none of more, stand without a mark beside some with it."""
    others = [sum(c.isdecimal() for c in cell) for cell in cells if mark not in cell]
    return max(others, default=0) == 3 and len(cells) - len(others) >= _GROUPED


def _one_unit(cells: Collection[str], marks: Marks) -> bool:
    """Return whether all numbers have one unit; some may lack a currency, but not the sign of per cent."""
    units = {parsed[1] for cell in cells if (parsed := _parse(cell, marks))}
    return len(units - {""}) <= 1 and not ("" in units and units & set(_PER_CENT))


def _may_be_labels(cells: Collection[str]) -> bool:
    """Return whether all cells are in parentheses, or look like telephone numbers: groups after +, or of one shape."""
    shapes = {re.sub("[0-9]", "0", cell.strip()) for cell in cells}
    one_shape = len(shapes) == 1 and re.fullmatch("0+(?: 000){2,}", next(iter(shapes))) is not None
    telephone = all(map(_TELEPHONE.fullmatch, shapes))
    return one_shape or telephone or all(shape.startswith("(") for shape in shapes)


def _parse(cell: str, marks: Marks) -> tuple[str, str] | None:
    """Return a cell as a plain number, and its unit; None if it is no number with these marks."""
    text = cell.strip()
    found = _cell(marks).fullmatch(text)
    if found is None or bool(found["open"]) != bool(found["close"]) or (found["before"] and found["after"]):
        return None
    minus = [bool(found["open"]), (found["sign"] or "+") != "+", bool(found["inner"]), bool(found["last"])]
    body = found["body"]
    if sum(minus) > 1 or _ADDRESS.fullmatch(body):
        return None
    if found["last"] and body.isdecimal():
        return None  # 2- is a mark at school
    if found["e"] and marks.thousands and re.search(_any_of(marks.thousands), body):
        return None  # no one groups the digits before an exponent
    if marks.thousands:
        body = re.sub(_any_of(marks.thousands), "", body)
    body, power = body.replace(marks.decimal, "."), found["power"]
    if power and found["e"] in "dD" and "." not in body and power.isdecimal():
        return None  # 2D6 is a label
    exponent = f"e{re.sub(f'[{_MINUS}]', '-', power)}" if power else ""
    return f"{'-' if any(minus) else ''}{body}{exponent}", (found["before"] or found["after"] or "").rstrip(
        "."
    )


def _any_of(mark: str) -> str:
    """Return a pattern of a mark, or of all blanks or apostrophes."""
    return f"[{re.escape(_BLANKS if mark == ' ' else _APOSTROPHES if mark == chr(39) else mark)}]"


@cache
def _cell(marks: Marks) -> re.Pattern[str]:
    """Return the pattern of a number with its sign, unit and exponent.

    Groups have three digits, or two before the last as in India.
    """
    decimal, integer = re.escape(marks.decimal), "[0-9]++"
    if marks.thousands:
        between = _any_of(marks.thousands)
        integer = f"[1-9][0-9]{{0,2}}(?:{between}[0-9]{{3}})+|{integer}"
        if marks.thousands == ",":
            integer = f"[1-9][0-9]?(?:,[0-9]{{2}})+,[0-9]{{3}}|{integer}"
    return re.compile(
        rf"""(?P<open>\()?\s*+
        (?P<sign>[+{_MINUS}])?\s*+(?P<before>{_CURRENCY})?\s*+(?P<inner>[{_MINUS}])?\s*+
        (?P<body>(?:{integer})(?:{decimal}[0-9]*+)?|{decimal}[0-9]++)
        (?:(?P<e>[eEdD])(?P<power>[+{_MINUS}]?[0-9]+))?\s*+
        (?P<after>[{_PER_CENT}]|{_CURRENCY})?(?P<last>-)?\s*+(?P<close>\))?""",
        re.VERBOSE,
    )
