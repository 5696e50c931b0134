"""The terms of BDeu, for the verifier; written anew from Heckerman et al. (1995).

With a = alpha / (q r) for each of the r states of a variable under each of the q states of its parents, the term is the
sum over the parents' states h of

    log G(a r) - log G(a r + n_h) + sum_j (log G(a + n_{j|h}) - log G(a)),

where G is the gamma function. All of it is written as `rise`: the largest count of every h stands beside the sum of
all of them, so that heavy weights of one state do not cancel.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from milpbn.certificate.verify.priors import states
from milpbn.data.dataset import Dataset
from milpbn.problem.candidates import ParentSet

#: Below this argument a search may take the difference of two values of log G, of which the errors are larger.
LARGE = 100.0
#: Stirling's series is used from this argument on. Its first part that is left out is below 1e-17 there.
SHIFT = 16
SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def bdeu_term(data: Dataset, i: int, parents: ParentSet, alpha: float) -> tuple[float, float]:
    """Return the term of a parent set, and the size of what it adds, which bounds the rounding error."""
    r, (above, size) = int(data.n_states[i]), states(data, parents)
    counts = data.total_weights(above * r + data.codes[:, i], size * r).reshape(size, r)
    counts = counts[counts.any(axis=1)]
    q = prod(int(data.n_states[j]) for j in parents)
    a, more = alpha / q / r, alpha / q * ((r - 1) / r)
    every, first = np.arange(len(counts)), counts.argmax(axis=1)
    others = data.other_weights(counts)[every, first] + more
    rest = counts.copy()
    rest[every, first] = 0
    parts = (
        (1, rise(np.full(len(counts), a), np.full(len(counts), more))),
        (-1, rise(a + counts[every, first], others)),
        (1, rise(np.full(np.count_nonzero(rest), a), rest[rest > 0])),
    )
    total = sum(sign * float(value.sum()) for sign, (value, _) in parts)
    return total, sum(float(part.sum()) for _, (_, part) in parts)


def rise(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return log G(x + y) - log G(x) for x > 0 and y >= 0, and the size of what is added.

    G(x + 1) = x G(x) moves small x up to where Stirling's series holds. Relative errors d of x and y change the series
    by at most d (its value + 3 y), and each logarithm by at most 2 d of its value. The difference of the corrections,
    each at most 1 / (12 x), has an error of its own, of some eps of them; sizes are multiplied by more than 64 eps.
    Each size is at least that of a search, so that the tolerance that it states for its errors is accepted.
    """
    near = x < SHIFT
    steps = np.arange(SHIFT, dtype=np.float64)[:, None]
    moved = np.where(near, np.log1p(y / (x + steps)), 0.0).sum(axis=0)
    far = np.where(near, x + SHIFT, x)
    end = far + y
    series = y * (np.log(far) - 1) + (end - 0.5) * np.log1p(y / far) + (_correction(end) - _correction(far))
    both = np.where(x < LARGE, np.abs(gammaln(x)) + np.abs(gammaln(x + y)) + 2 * x + y + 4, 0.0)
    return series - moved, np.maximum(both, np.abs(series) + 3 * y + 2 * moved + 0.01 / far)


def _correction(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what Stirling's series adds to (x - 1/2) log x - x + log(2 pi) / 2."""
    total = np.zeros_like(x)
    for coefficient in reversed(SERIES):
        total = coefficient + total / (x * x)
    return total / x
