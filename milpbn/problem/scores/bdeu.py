"""BDeu: the logarithm of the marginal likelihood under uniform Dirichlet priors (Heckerman et al. 1995)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from milpbn.data.dataset import Dataset
from milpbn.data.sums import sums_of_others
from milpbn.problem.counts import family_counts
from milpbn.problem.scores.base import ScoreKind, Shape

#: From this argument on, differences of logarithms of the gamma function are taken by Stirling's series, which has an
#: error of less than 1e-20 there.
LARGE = 100.0


@dataclass(frozen=True, kw_only=True)
class Bdeu(ScoreKind):
    """Sum over the families of `bdeu`; each cell of a family's table has the pseudo-count alpha / (q r)."""

    name = "bdeu"
    shape = Shape.LINEAR
    certified = True
    equivalent_sample_size: float = 1.0

    def sums_of_joint_states(self, total_weight: float) -> tuple[float, float] | None:
        """Return the equivalent sample size and no penalty; see `ScoreKind.sums_of_joint_states`."""
        return self.equivalent_sample_size, 0.0

    def family(self, data: Dataset, child: int, parents: tuple[int, ...]) -> tuple[float, float]:
        """Return `bdeu` and `bdeu_size` of a family; see `ScoreKind.family`."""
        counts = family_counts(data, child, parents)
        q = math.prod(int(data.n_states[j]) for j in parents)
        alpha = self.equivalent_sample_size
        return bdeu(counts, q, alpha), bdeu_size(counts, q, alpha)


def bdeu(counts: NDArray[np.float64], n_parent_states: int, equivalent_sample_size: float) -> float:
    """Return the family's log marginal likelihood under the BDeu prior (Heckerman et al. 1995).

    `counts` are n_{j|h}, float64 array of shape (parent states, child states); parent states without samples add
    nothing. `n_parent_states` is q, the number of all joint parent states. Each cell's pseudo-count
    is alpha / (q r) with alpha the equivalent sample size.
    """
    return float(
        sum(sign * rise(x, y).sum() for sign, x, y in _rises(counts, n_parent_states, equivalent_sample_size))
    )


def bdeu_size(counts: NDArray[np.float64], n_parent_states: int, equivalent_sample_size: float) -> float:
    """Return the size of the terms that `bdeu` adds, which bounds its rounding error."""
    return float(
        sum(_rise_size(x, y).sum() for _, x, y in _rises(counts, n_parent_states, equivalent_sample_size))
    )


def _rises(
    counts: NDArray[np.float64], n_parent_states: int, equivalent_sample_size: float
) -> list[tuple[int, NDArray[np.float64], NDArray[np.float64]]]:
    """Return sign, x and y of the terms ``rise(x, y)`` of which `bdeu` is the sum.

    In a heavy row with one large count, the logarithms of the gamma function of this cell and of the row's sum nearly
    cancel. So their difference is one term, whose y is the sum of the other cells.
    """
    counts = counts[counts.any(axis=1)]
    above = equivalent_sample_size / n_parent_states
    cell = above / counts.shape[1]
    every, largest = np.arange(len(counts)), counts.argmax(axis=1)
    other = counts > 0
    other[every, largest] = False
    return [
        (1, np.full(len(counts), cell), np.full(len(counts), above - cell)),
        (-1, cell + counts[every, largest], sums_of_others(counts)[every, largest] + (above - cell)),
        (1, np.full(int(other.sum()), cell), counts[other]),
    ]


def rise(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return gammaln(x + y) - gammaln(x) for positive x and y that is not negative.

    From `LARGE` on, both are Stirling's series, without the part that they share.
    """
    far = np.maximum(x, LARGE)
    end = far + y
    series = y * (np.log(far) - 1) + (end - 0.5) * np.log1p(y / far) + _correction(end) - _correction(far)
    return np.asarray(np.where(x < LARGE, gammaln(x + y) - gammaln(x), series))


def _correction(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what follows log(2 pi) / 2 in Stirling's series."""
    z = 1 / (x * x)
    return np.asarray((1 / 12 - z * (1 / 360 - z * (1 / 1260 - z / 1680))) / x)


def _rise_size(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the size of the terms in `rise`, the effect of relative errors of x and y included.

    A relative error d of x changes gammaln(x) by d x psi(x), and |x psi(x)| is at most |gammaln(x)| + x + 2. Relative
    errors d of x and y change the series by at most d (|rise(x, y)| + 3 y).
    """
    both = sum(np.abs(gammaln(z)) + z + 2 for z in (x, x + y))
    return np.asarray(np.where(x < LARGE, both, np.abs(rise(x, y)) + 3 * y))
