"""Sums of weights, and logarithms of their shares, with a small relative error and without cancellation.

Weights of one table may differ by twenty orders of magnitude. Three rules keep the numbers behind a score as accurate
as float64 allows:

- Sums of weights are exact up to a few roundings at the end, whatever the number of rows (`exact_sums`).
- The weight of the other cells is their sum, never the total minus one cell (`sums_of_others`).
- The logarithm of a share n / (n + rest) is - log1p(rest / n), which is accurate even if the share is nearly 1
  (`log_share`): its relative error is at most that of rest / n, because x / ((1 + x) log1p(x)) <= 1.

`milpbn.problem.rounding` bounds the errors that remain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Spacing of doubles at 1.
EPS = 2.0**-52
#: Bits of a double's significand.
_BITS = 53
#: Exponent of the smallest positive double, of which every double is a multiple.
_LOWEST = -1074


def exact_sums(index: NDArray[np.integer], weights: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the sum of the weights of every group, exact up to a few roundings at the end.

    Every weight is divided into parts. The numbers of one part are multiples of one power of two, and have so few bits
    that their sums are exact. Whole numbers have one part. Other weights have one part for every 53 - log2(M) bits: six
    for weights between 1e-15 and 1e15 in a million rows. The weights are finite and not negative; `index` has the group
    of each row, from 0 to ``size - 1``. Both have shape (M,), and the result has shape (size,).
    """
    return sums_of_parts(index, exact_parts(weights), size)


def sums_of_parts(
    index: NDArray[np.integer], parts: list[NDArray[np.float64]], size: int
) -> NDArray[np.float64]:
    """Return the result of `exact_sums` for weights that `exact_parts` has divided already."""
    total = np.bincount(index, weights=parts[-1], minlength=size).astype(np.float64)
    # The smallest parts come first, so that only the last additions round.
    for part in parts[-2::-1]:
        total += np.bincount(index, weights=part, minlength=size)
    return total


def exact_parts(weights: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Divide weights into parts, the largest first, that add up to them; sums of one part over any rows are exact."""
    rest = np.asarray(weights, dtype=np.float64)
    room = _BITS - int(rest.size).bit_length()
    parts: list[NDArray[np.float64]] = []
    while True:
        largest = float(rest.max(initial=0.0))
        if not 0.0 < largest < np.inf:
            return parts or [rest]
        # Each number of this part is below 2^room units, so that the sum of M of them is below 2^53 units.
        unit = np.ldexp(1.0, max(int(np.frexp(largest)[1]) - room, _LOWEST))
        part = np.floor(rest / unit) * unit
        parts.append(part)
        if np.array_equal(part, rest):
            return parts
        rest = rest - part


def sums_of_others(counts: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    """Return, for each cell, the sum of the other cells along an axis; shape of `counts`.

    There are no subtractions: the difference of weights of very different sizes may consist of rounding errors only.
    """
    if counts.shape[axis] == 2:
        return np.flip(counts, axis)
    cells = np.moveaxis(counts, axis, -1)
    sums = np.zeros_like(cells)
    sums[..., 1:] = np.cumsum(cells[..., :-1], axis=-1)
    sums[..., :-1] += np.cumsum(cells[..., :0:-1], axis=-1)[..., ::-1]
    return np.moveaxis(sums, -1, axis)


def log_share(part: NDArray[np.float64], rest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log(part / (part + rest)) of positive parts, with a small relative error."""
    return np.asarray(-np.log1p(rest / part))
