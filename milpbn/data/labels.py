"""When two values are the same label: the one rule of all readers, writers, scorers and predictions.

The label of a value is its text without white space around it; the label of a number is the shortest text that is read
as the same number, that of a truth value True or False. A value is in the state that has its label. If no state has it,
the value is in the state that means the same:

- the same number: 1, 1.0 and 1e0; fractions are the same if they are equal in single precision (float32);
- the same truth value, if all states are truth values: True, TRUE, true, T, t and 1, but not tRue;
- the same time: 2024-05-31 and 2024-05-31 00:00:00;
- the same interval: ``(0.5, 1.5]``, ``(0.5-1.5]``, ``]0.5;1.5]`` and ``_0.5_1.5]``;
- the interval that contains the number, or the whole interval.

Where several states mean the same, such as 01 and 1 as texts, only those with the same label match. Where not all
states are numbers (`milpbn.data.dataset.Variable.numeric`), only 1 and 1.0, and 0 and -0.0, are the same number: 01,
1.10 and 1E5 may be codes, unless an interval contains the number. Whatever matches no state is missing if it is null or
one of `MISSING_MARKERS`; else training never saw it.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterable, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Text cells that mean a missing value, without white space around them, also among the values that ARFF files declare.
ALWAYS_MISSING = frozenset(("", "?", "NA", "NaN", "nan"))
#: Text cells that mean a missing value elsewhere: those that pandas reads as missing, and ``?``. Nulls (None, NaN, NA)
#: are missing everywhere.
MISSING_MARKERS = ALWAYS_MISSING | frozenset(
    ("-NaN", "-nan", "N/A", "n/a", "NULL", "null", "None", "<NA>", "#N/A", "#NA", "#N/A N/A")
) | frozenset(("-1.#IND", "1.#IND", "-1.#QNAN", "1.#QNAN"))  # fmt: skip

#: Magnitude up to which float64 holds every integer, so that different integers have different labels.
MAX_EXACT = 2.0**53 - 1

#: A number's range: the least and the greatest float64 that belong to a state.
Range = tuple[float, float]

BOOLEAN = (bool, np.bool_)

# float() would also accept "1_000", "nan" and digits of other scripts.
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.IGNORECASE
)
#: What plain numbers consist of; float() takes no other text of these characters.
_NUMERALS = b"0123456789+-.eE "
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)?", re.ASCII)

_BITS = {"0": False, "1": True, "0.0": False, "1.0": True, "-0": False, "-0.0": False}
_WORDS = {"true": True, "TRUE": True, "True": True, "false": False, "FALSE": False, "False": False}
_LETTERS = {"t": True, "T": True, "f": False, "F": False}

_BOUND = r"[+-]?(?:inf|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)"
# Weka's labels have apostrophes, those of bnlearn's files underscores for commas and parentheses.
_INTERVAL = re.compile(
    rf"\\?['\"]?(?P<left>[(\[\]_])\s*(?P<low>{_BOUND})(?:\s*(?P<mark>[,;_])\s*|-)(?P<high>{_BOUND})\s*"
    rf"(?P<right>[)\]\[_])\\?['\"]?",
    re.IGNORECASE | re.ASCII,
)
#: Weka's label of a column without cuts.
_ALL = re.compile(r"\\?'?All\\?'?")


def number_of(value: object) -> float:
    """Return the number that a raw value or text stands for, or NaN if it is not a number; booleans are not."""
    if isinstance(value, str):
        text = value.strip()
        return float(text) if _NUMBER.fullmatch(text) else np.nan
    if isinstance(value, BOOLEAN) or not isinstance(value, Real | Decimal):
        return np.nan
    try:
        return float(value)
    except OverflowError:  # an int beyond float64
        return np.inf


def plain_numbers(values: Collection[Any]) -> NDArray[np.float64] | None:
    """Return `number_of` of many values, shape (K,), if all are texts of digits, signs, points and exponents.

    None if one is no number, or a word such as inf. This does not match each text, and is five times as fast.
    """
    try:
        if "".join(values).encode(errors="replace").translate(None, delete=_NUMERALS):
            return None
        return np.fromiter(map(float, values), np.float64, len(values))
    except (TypeError, ValueError):  # not only texts; a text such as 1-2
        return None


def numbers_of(values: Collection[Any]) -> NDArray[np.float64]:
    """Return `number_of` of many values, shape (K,)."""
    found = plain_numbers(values)
    return np.array([number_of(value) for value in values], dtype=np.float64) if found is None else found


def number_label(number: float) -> str:
    """Return the unique label of a number: ``1`` for 1.0, else the shortest text that is read as the same number."""
    return str(int(number)) if abs(number) <= MAX_EXACT and number == int(number) else repr(float(number))


def label_of(value: object) -> str:
    """Return the label of a raw value: text without white space around it, and `number_label` of a number."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace").strip()
    if isinstance(value, BOOLEAN):
        return str(bool(value))
    if isinstance(value, Integral):
        return str(int(value))
    return number_label(float(value)) if isinstance(value, Real | Decimal) else str(value)


def labels_of(values: NDArray[Any]) -> tuple[str, ...]:
    """Return `label_of` of each value of an array."""
    if values.dtype.kind in "iu":
        return tuple(map(str, values.tolist()))
    if values.dtype.kind == "f":
        return tuple(map(number_label, values.tolist()))
    try:
        return tuple(map(str.strip, values))
    except TypeError:  # not only texts
        return tuple(map(label_of, values))


def find_markers(values: Collection[Any], markers: frozenset[str] = MISSING_MARKERS) -> NDArray[np.bool_]:
    """Return whether each value is a text that means a missing one, shape (K,)."""
    try:
        if markers.isdisjoint(map(str.strip, values)):
            return np.zeros(len(values), dtype=bool)
    except TypeError:  # not only texts
        pass
    return np.array([isinstance(v, str) and v.strip() in markers for v in values], dtype=bool)


def truth_of(label: str) -> bool | None:
    """Return the truth value that true, True or TRUE, false, False or FALSE stands for; None for other labels."""
    return _WORDS.get(label)


class StateLabels:
    """The states of a variable, to which labels belong by the rule of this module.

    The states, without that of missing values, are given by their labels. They are `numeric` if all of them are numbers
    or intervals, so that every text of a number is that number.
    """

    def __init__(self, states: Sequence[str], *, numeric: bool = False) -> None:
        self.states = tuple(states)
        self.numeric = numeric
        self._codes = {label: code for code, label in enumerate(self.states)}

    def code(self, label: str) -> int | None:
        """Return the code of the state that a label belongs to; None if there is none."""
        code = self._codes.get(label)
        if code is None:
            code = next(
                (c for key in self._meanings(label) if (c := self._by_meaning.get(key)) is not None), None
            )
        if code is None and math.isfinite(number := number_of(label)):
            code = self.code_of_number(number)
            if code is not None and not (self.numeric or math.isnan(number_of(self.states[code]))):
                code = None  # 01 may be a code, other than 1
        if code is None and (interval := intervals_of([label])[0]) is not None:
            low, high = map(self.code_of_number, interval)
            code = low if low == high else None
        return code

    def code_of_number(self, number: float) -> int | None:
        """Return the code of the state whose range contains a number; None if there is none."""
        lows, highs, codes = self._sorted_ranges
        place = bisect_right(lows, number) - 1
        return codes[place] if place >= 0 and number <= highs[place] else None

    @cached_property
    def _sorted_ranges(self) -> tuple[list[float], list[float], list[int]]:
        found = sorted((*r, code) for code, r in enumerate(self.ranges) if r is not None)
        return [r[0] for r in found], [r[1] for r in found], [r[2] for r in found]

    @cached_property
    def ranges(self) -> tuple[Range | None, ...]:
        """The numbers that belong to each state; None for a state without any."""
        intervals = intervals_of(self.states)
        numbers = [self._number(label) for label in self.states]
        found: list[Range | None] = [
            r if x is None else (x, x) for x, r in zip(numbers, intervals, strict=True)
        ]
        if _overlap(found):
            return (None,) * len(found)
        near = [r if x is None else _single(x) for x, r in zip(numbers, intervals, strict=True)]
        return tuple(found if _overlap(near) else near)

    def ascending(self) -> list[int] | None:
        """Return the codes in ascending order of the numbers, intervals, truth values or times that the states are.

        None for other states, and for intervals that overlap.
        """
        numbers = [None if math.isnan(x) else x for x in map(number_of, self.states)]
        meanings = [{key[0]: key for key in self._meanings(label)} for label in self.states]
        others = ([found.get(kind) for found in meanings] for kind in ("truth", "time"))
        values: Sequence[Any]
        for values in (numbers, self.ranges, *others):
            if None not in values:
                return [code for _, code in sorted(zip(values, range(len(values)), strict=True))]
        return None

    def spellings(self) -> list[tuple[str, ...]]:
        """Return the usual texts of each state, for programs that compare texts: True, TRUE, true; 1, 1.0; times."""
        taken = set(self.states)
        found = []
        for code, state in enumerate(self.states):
            number = self._number(state)
            more = [] if number is None or number != int(number) else [f"{int(number)}", f"{int(number)}.0"]
            more += ["-0", "-0.0"] if number == 0 else []  # so SQL writes the float -0.0
            truth = self._truths.get(state)
            more += [word for word, value in self._truths.items() if value is truth]
            more += _texts_of_time(state) if _TIME.fullmatch(state) else []
            more = [text for text in dict.fromkeys(more) if text not in taken and self.code(text) == code]
            found.append((state, *more))
        return found

    def _number(self, label: str) -> float | None:
        number = number_of(label)
        if not abs(number) <= MAX_EXACT:
            return None
        usual = number_label(number)
        if number == 0 and not (self._codes.keys() & {"0", "0.0"} and self._codes.keys() & {"-0", "-0.0"}):
            label = label.removeprefix("-")
        return (
            number if self.numeric or label == usual or (label == f"{usual}.0" and "." not in usual) else None
        )

    @property
    def are_truth_values(self) -> bool:
        """Whether all states are truth values: words, letters, or 0 and 1."""
        return bool(self._truths)

    @cached_property
    def _truths(self) -> dict[str, bool]:
        """The words of truth values; none unless all states are truth values."""
        if _WORDS.keys() | _LETTERS.keys() >= {*self.states}:
            return {**_WORDS, **_LETTERS, **_BITS}
        bits = {number_label(x) for x in map(number_of, self.states) if x in (0, 1)}
        return {**_WORDS, **_BITS} if len(bits) == len(self.states) else {}

    @cached_property
    def _by_meaning(self) -> dict[Hashable, int | None]:
        """The code of the state with a meaning; None where several states have it."""
        found: dict[Hashable, int | None] = {}
        for code, label in enumerate(self.states):
            for key in self._meanings(label):
                found[key] = None if key in found else code
        return found

    def _meanings(self, label: str) -> Iterable[tuple[Any, ...]]:
        """Yield what a label means besides a number within a range: the value that it stands for, by its kind."""
        number = self._number(label)
        if number is not None:
            yield "number", number
        word = label if number is None else number_label(number)
        if word in self._truths:
            yield "truth", self._truths[word]
        if _TIME.fullmatch(label):
            day, _, time = label.replace(" ", "T").partition("T")
            yield "time", day, *(float(part) for part in (f"{time or '0:0'}:0").split(":")[:3])
        if (interval := intervals_of([label])[0]) is not None:
            yield "interval", *interval


def _texts_of_time(label: str) -> list[str]:
    """Return how pandas and databases write the time of a label: midnight as a day, too, and seconds with zeros."""
    day, _, time = label.replace(" ", "T").partition("T")
    clock = f"{time or '00:00'}:00"[:8] if "." not in time else time
    clocks = [clock] if "." in clock else [clock, f"{clock}.000", f"{clock}.000000"]
    clocks += [clock[:5]] if clock.endswith(":00") else []
    return [day] * (clock == "00:00:00") + [f"{day}{mark}{text}" for text in clocks for mark in " T"]


def intervals_of(labels: Sequence[str]) -> list[Range | None]:
    """Return the least and the greatest number in each interval, None for a label that is no interval.

    Understood are the spellings of pandas, R, Weka (``'(-inf-2.45]'``, and ``'All'`` alone), pyAgrum (``[0.5;1.5[``;
    in networks whose outer intervals reach to infinity, the outer brackets are parentheses) and of bnlearn's files
    (``_0.3_1.2]``).
    """
    if len(labels) == 1 and _ALL.fullmatch(labels[0].strip()):
        return [(-math.inf, math.inf)]
    matches = [_INTERVAL.fullmatch(label.strip()) for label in labels]
    endless = any(m and m["mark"] == ";" and m["right"] == "[" for m in matches)
    found: list[Range | None] = []
    for match in matches:
        if match is None:
            found.append(None)
            continue
        low, high = float(match["low"]), float(match["high"])
        outer = endless and match["mark"] == ";"
        low = -math.inf if outer and match["left"] == "(" else low
        high = math.inf if outer and match["right"] == ")" else high
        if match["left"] != "[" and math.isfinite(low):
            low = math.nextafter(low, math.inf)
        if match["right"] != "]" and math.isfinite(high):
            high = math.nextafter(high, -math.inf)
        found.append((low, high) if low <= high else None)
    return found


def cuts_of_labels(labels: Sequence[str]) -> tuple[float, ...] | None:
    """Return the cuts between intervals, if the labels are adjacent intervals from -inf to inf in ascending order.

    ``("(-inf, 48.5]", "(48.5, inf)")`` has the cut 48.5, the largest number that is not above it. Where intervals are
    closed on the left, the cut is the largest number below the interval. None if a label is anything else.
    """
    intervals = intervals_of(labels)
    cuts: list[float] = []
    next_low = -math.inf
    for interval in intervals:
        if interval is None or interval[0] != next_low:
            return None
        cuts.append(interval[1])
        next_low = math.nextafter(interval[1], math.inf)
    return tuple(cuts[:-1]) if cuts and cuts[-1] == math.inf else None


def _single(number: float) -> Range:
    """Return the range of the numbers that equal a fraction in single precision; of an integer, itself."""
    if number == int(number) or not np.float32(number):
        return number, number
    single = np.float32(number)
    below, above = (float(np.nextafter(single, np.float32(end))) for end in (-np.inf, np.inf))
    low, high = (below + float(single)) / 2, (float(single) + above) / 2
    # A number half-way between two of single precision is rounded to one of them.
    return tuple(x if np.float32(x) == single else math.nextafter(x, float(single)) for x in (low, high))  # type: ignore[return-value]


def _overlap(ranges: Iterable[Range | None]) -> bool:
    """Return whether two ranges share a number."""
    ordered = sorted(r for r in ranges if r is not None)
    return any(a[1] >= b[0] for a, b in pairwise(ordered))
