"""BDeu: the logarithm of the marginal likelihood under uniform Dirichlet priors (Heckerman et al. 1995)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from milpbn.data.dataset import Dataset
from milpbn.problem.counts import family_counts
from milpbn.problem.scores.base import Range, ScoreKind, Shape

EQUIVALENT_SAMPLE_SIZE = Range(
    1e-12, 1e12, "The equivalent sample size must be a positive number from {low:g} to {high:g}, got {value}."
)


@dataclass(frozen=True, kw_only=True)
class Bdeu(ScoreKind):
    """Sum over the families of `bdeu`.

    Attributes
    ----------
    equivalent_sample_size : float
        alpha; each cell of a family's table has the pseudo-count alpha / (q r).
    """

    name = "bdeu"
    shape = Shape.LINEAR
    equivalent_sample_size: float = EQUIVALENT_SAMPLE_SIZE.option(default=1.0)

    def family(self, data: Dataset, child: int, parents: tuple[int, ...]) -> tuple[float, float]:
        """Return `bdeu` and `bdeu_size` of a family; see `ScoreKind.family`."""
        counts = family_counts(data, child, parents)
        q = math.prod(int(data.n_states[j]) for j in parents)
        alpha = self.equivalent_sample_size
        return bdeu(counts, q, alpha), bdeu_size(counts, q, alpha)


def bdeu(counts: NDArray[np.float64], n_parent_states: int, equivalent_sample_size: float) -> float:
    """Return the family's log marginal likelihood under the BDeu prior (Heckerman et al. 1995).

    Parameters
    ----------
    counts : float64 array, shape (parent states that occur, child states)
        n_{j|h}; parent states without samples contribute nothing.
    n_parent_states : int
        q, the number of all joint parent states.
    equivalent_sample_size : float
        alpha; each cell's pseudo-count is alpha / (q r).
    """
    above = equivalent_sample_size / n_parent_states
    cell = above / counts.shape[1]
    per_parent = gammaln(above) - gammaln(above + counts.sum(axis=1))
    return float(per_parent.sum() + (gammaln(cell + counts) - gammaln(cell)).sum())


def bdeu_size(counts: NDArray[np.float64], n_parent_states: int, equivalent_sample_size: float) -> float:
    """Return the size of the terms that `bdeu` adds, which bounds its rounding error.

    A relative error d of x changes gammaln(x) by d x psi(x), and |x psi(x)| is at most |gammaln(x)| + x + 2.
    """
    above = equivalent_sample_size / n_parent_states
    cell = above / counts.shape[1]
    sums = above + counts.sum(axis=1)
    size = sum(float((np.abs(gammaln(x)) + x + 2).sum()) for x in (sums, cell + counts))
    rows, cells = counts.shape[0], counts.size
    return (
        size
        + rows * (abs(float(gammaln(above))) + above + 2)
        + cells * (abs(float(gammaln(cell))) + cell + 2)
    )
