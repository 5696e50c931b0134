"""What the exact checker computes with: rational numbers, intervals of logarithms, refusals, and limits of its work."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

from mpmath import iv, libmp

#: Problems with more features or more steps are refused; about 10 million steps take a second.
LARGEST_FEATURES, LARGEST_WORK = 12, 20_000_000_000
#: Logarithms are whole multiples of a grain, 1 / ONE nats; dual weights are whole multiples of 1 / ONE.
BITS, ONE = 100, 1 << 100

#: The contents of a JSON object, or the arrays of a file by name.
Json = Mapping[str, Any]
#: The lower and the upper end of an interval.
Ends = tuple[Fraction, Fraction]


class NotProvedError(ValueError):
    """A claim does not hold, or cannot be checked here; the text is a sentence."""


def need(holds: bool, sentence: str) -> None:
    """Raise NotProvedError with a sentence unless a condition holds."""
    if not holds:
        raise NotProvedError(sentence)


@contextmanager
def known_form() -> Iterator[None]:
    """Refuse a claim or a certificate of another form: errors in reading it become a NotProvedError."""
    try:
        yield
    except NotProvedError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise NotProvedError(f"The claim does not have the known form ({error!r:.80}).") from None


def require_features(count: int) -> None:
    """Refuse problems with more than `LARGEST_FEATURES` features."""
    need(count <= LARGEST_FEATURES, f"Too large: more than {LARGEST_FEATURES} features.")


def require_work(steps: int, what: str) -> None:
    """Refuse checks of more than `LARGEST_WORK` steps; `what` is too large then."""
    need(steps <= LARGEST_WORK, f"The {what} is too large for the exact check.")


def number(value: Any) -> Fraction:
    """Return a number of a JSON file, exactly."""
    need(type(value) in (int, float), f"{value!r:.40} stands where a number should be.")
    return Fraction(value)


def column(arrays: Json, name: str, kind: type, below: float = math.inf) -> list[Any]:
    """Return an array of finite numbers of a type as a list; with `below`, of indices below that number."""
    values: list[Any] = arrays[name].tolist()
    fits = all(math.isfinite(x) and type(x) is kind for x in values)
    need(fits and (below == math.inf or all(0 <= x < below for x in values)), f"{name} is damaged.")
    return values


def groups(arrays: Json, sizes: str, *columns: list[Any]) -> list[list[Any]]:
    """Divide the rows of columns of equal length into groups of the given sizes."""
    counts, items = column(arrays, sizes, int, len(columns[0]) + 1), list(zip(*columns, strict=True))
    ends = list(accumulate(counts, initial=0))
    need(ends[-1] == len(items), f"{sizes} of the certificate is damaged.")
    return [items[begin:end] for begin, end in pairwise(ends)]


@lru_cache(maxsize=500_000)
def log(x: Fraction) -> tuple[int, int]:
    """Return whole numbers of grains below and above the natural logarithm of a positive number."""
    return (0, 0) if x == 1 else _grains(iv.log, x)


@lru_cache(maxsize=500_000)
def log_gamma(x: Fraction) -> tuple[int, int]:
    """Return whole numbers of grains below and above the logarithm of the gamma function of a positive number."""
    return _grains(iv.loggamma, x)


def _grains(function: Any, x: Fraction) -> tuple[int, int]:
    iv.prec = BITS + 60
    low, high = (function(iv.mpf(x.numerator) / iv.mpf(x.denominator)) * ONE)._mpi_
    # One more grain covers a last bit that mpmath rounds to the wrong side; the interval has 60 bits to spare.
    return libmp.to_int(low, libmp.round_floor) - 1, libmp.to_int(high, libmp.round_ceiling) + 1
