"""How continuous features become discrete: a method, its number of intervals, and the cuts it makes.

docs/tables.md has the definitions for users. The cuts of every method lie between neighbouring distinct values of the
training rows, and an interval contains its upper end. So a method only has to say between which values it cuts.
"""

from __future__ import annotations

import re
import warnings
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from milpbn.data.boosted import boosted_cuts
from milpbn.data.midpoints import midpoints
from milpbn.data.sums import exact_sums
from milpbn.errors import InputError

#: Methods that do not look at the classes; the names are those of scikit-learn's `KBinsDiscretizer`.
BINNING = ("quantile", "uniform", "kmeans")
#: The method that looks at all features together.
BOOSTED = "boosted"
#: Least and greatest number of intervals of these methods.
LEAST_BINS, MOST_BINS = 2, 255
#: Share of all weight, or of a column's range, below which a difference counts as a rounding error.
TIE = 1e-9


@dataclass(frozen=True)
class Discretisation:
    """A method to cut continuous features into intervals. Cuts come from training rows only.

    Raises `InputError` if the method is unknown, or the number of intervals does not fit it.
    """

    #: ``mdl``: the cuts that the minimum description length criterion accepts (`milpbn.data.mdlp`), as in Peharz and
    #: Pernkopf (2012). ``quantile``, ``uniform`` and ``kmeans`` make intervals of equal weight, of equal width, or
    #: around the centres of one-dimensional k-means. They run on the distinct values, each with the sum of its weights.
    #: ``boosted``: the thresholds with the largest gains in boosted trees over all features (`milpbn.data.boosted`).
    method: str = "mdl"
    #: Number of intervals, from 2 to 255; None for ``mdl``. A feature gets fewer where intervals would be empty.
    bins: int | None = None

    def __post_init__(self) -> None:
        fits = self.bins is None if self.method == "mdl" else self.method in (*BINNING, BOOSTED)
        if fits and self.bins is not None:
            fits = LEAST_BINS <= self.bins <= MOST_BINS
        if not fits or (self.method != "mdl" and self.bins is None):
            raise InputError(_refusal(str(self)))

    @classmethod
    def parse(cls, text: str | Discretisation) -> Discretisation:
        """Return the method that a text such as ``mdl`` or ``quantile:5`` names.

        Raises `InputError` if the text names none.
        """
        if isinstance(text, Discretisation):
            return text
        known = re.fullmatch(r"(mdl)|(quantile|uniform|kmeans|boosted):(\d{1,3})", str(text).strip())
        if known is None:
            raise InputError(_refusal(str(text)))
        return cls() if known[1] else cls(known[2], int(known[3]))

    def __str__(self) -> str:
        return self.method if self.bins is None else f"{self.method}:{self.bins}"

    def cuts_of_all(
        self,
        values: NDArray[np.float64],
        continuous: NDArray[np.bool_],
        classes: NDArray[np.integer],
        n_classes: int,
        weights: NDArray[np.float64],
    ) -> list[NDArray[np.float64]]:
        """Return the cuts of every feature as `cuts` does, without one for features that are not continuous.

        The values have the shape (M, N), NaN where one is missing; those of other features are codes.
        """
        if self.method == BOOSTED:
            assert self.bins is not None
            return boosted_cuts(values, continuous, classes, weights, self.bins)
        found = [np.empty(0)] * len(continuous)
        for i in np.flatnonzero(continuous):
            present = ~np.isnan(values[:, i])
            found[i] = self.cuts(values[present, i], classes[present], n_classes, weights[present])
        return found

    def cuts(
        self,
        values: NDArray[np.float64],
        classes: NDArray[np.integer],
        n_classes: int,
        weights: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the ascending cuts of one feature, midpoints between neighbouring distinct values.

        A value belongs to the interval whose number is the count of cuts strictly below it. Without a cut, the array is
        empty. The values, class codes and weights are those of the training rows, shape (M,), and the values are
        finite. Only ``mdl`` uses the classes; all methods but ``uniform`` count a weight of 2 as two samples. The cuts
        of ``boosted`` depend on the other features: `cuts_of_all` has them.
        """
        if self.bins is None:
            from milpbn.data.mdlp import mdlp_cuts  # numba takes half a second to import

            return mdlp_cuts(values, classes, n_classes, weights)
        present = weights > 0
        distinct, which = np.unique(values[present], return_inverse=True)
        if distinct.size < 2:
            return np.empty(0)
        mass = exact_sums(which, weights[present], distinct.size)
        if self.method == "quantile":
            below = _by_weight(mass, self.bins)
        elif self.method == "uniform":
            below = _by_width(distinct, self.bins)
        else:
            below = _by_centres(distinct, mass, self.bins)
        below = np.unique(below)
        below = below[(below > 0) & (below < distinct.size)]
        return midpoints(distinct[below - 1], distinct[below])


def equal_weights(
    values: NDArray[np.float64], weights: NDArray[np.float64], bins: int
) -> NDArray[np.float64]:
    """Return cuts into intervals of equal weight, where a frequent value counts as one interval at most.

    With the method ``quantile``, a value in most of the rows leaves few cuts for the others.
    """
    distinct, which = np.unique(values[weights > 0], return_inverse=True)
    if distinct.size < 2:
        return np.empty(0)
    mass = exact_sums(which, weights[weights > 0], distinct.size)
    below = np.unique(_by_weight(np.minimum(mass, mass.sum() / bins), bins))
    return midpoints(distinct[below - 1], distinct[below])


# The functions below return the number of distinct values below each cut. `distinct` ascends, shape (K,); `mass` has
# the weights of these values.


def _by_weight(mass: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """For each j, cut where the weight below is nearest to j / bins of all weight; of two such places, at the upper."""
    sums = np.cumsum(mass)
    targets = sums[-1] * np.arange(1, bins) / bins
    upper = np.minimum(np.searchsorted(sums[:-1], targets), mass.size - 2)
    lower = np.maximum(upper - 1, 0)
    # Weights such as .1 make sums with rounding errors, which must not decide between two places.
    too_far = np.abs(targets - sums[lower]) < np.abs(sums[upper] - targets) - TIE * sums[-1]
    return np.where(too_far, lower, upper) + 1


def _by_width(distinct: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Cut above all values up to each edge. Values are the decimals that print them, so .1 is a third of .3."""

    def exact(value: float) -> Fraction:
        return Fraction(repr(value))

    values = distinct.tolist()
    low, high = exact(values[0]), exact(values[-1])
    edges = [(low * (bins - j) + high * j) / bins for j in range(1, bins)]
    return np.array([bisect_right(values, edge, key=exact) for edge in edges])


def _by_centres(distinct: NDArray[np.float64], mass: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
    """Cut above all values up to the midpoints of neighbouring centres of k-means, which begins at equal widths."""
    from sklearn.cluster import KMeans  # takes long to import

    if distinct.size <= bins:
        return np.arange(distinct.size)
    # Powers of two keep squares from overflow and from 0. Numbers within a factor of 2 have exact differences, which
    # are taken then, so that the rounding of a mean of large numbers does not move a centre past a value.
    places = _near_one(distinct)
    if places[0] * places[-1] >= max(places[0] ** 2, places[-1] ** 2) / 2:
        places = _near_one(places - places[0])
    borders = np.linspace(places[0], places[-1], bins + 1)
    start = (borders[:-1] + borders[1:]) / 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of centres that coincide
        means = KMeans(bins, init=start[:, None], n_init=1).fit(places[:, None], sample_weight=mass)
    centres = np.sort(means.cluster_centers_[:, 0])
    edges = (centres[:-1] + centres[1:]) / 2
    return np.searchsorted(places, edges + TIE * (places[-1] - places[0]), side="right")


def _near_one(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values times the power of two that makes their largest magnitude at least 1/2 and less than 1."""
    return np.ldexp(values, -int(np.frexp(np.abs(values).max())[1]))


def _refusal(text: str) -> str:
    return (
        f"The discretisation must be mdl, quantile:K, uniform:K, kmeans:K or boosted:K with K from {LEAST_BINS} "
        f"to {MOST_BINS}, such as quantile:5; got {text!r}."
    )
