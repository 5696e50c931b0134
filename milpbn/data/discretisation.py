"""How continuous features become discrete: a method, its number of intervals, and the cuts it makes."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.data.sums import exact_sums
from milpbn.errors import InputError

#: Methods of scikit-learn's `KBinsDiscretizer`; they do not look at the classes.
BINNING = ("quantile", "uniform", "kmeans")
#: Least and greatest number of intervals of these methods.
LEAST_BINS, MOST_BINS = 2, 255


@dataclass(frozen=True)
class Discretisation:
    """A method to cut continuous features into intervals. Cuts come from training rows only.

    Attributes
    ----------
    method : {'mdl', 'quantile', 'uniform', 'kmeans'}
        ``mdl``: the cuts that the minimum description length criterion accepts (`milpbn.data.mdlp`), as in Peharz and
        Pernkopf (2012). The others are the strategies of `sklearn.preprocessing.KBinsDiscretizer`: intervals of equal
        weight, of equal width, or around the centres of one-dimensional k-means. It runs on the distinct values, each
        with the sum of its weights.
    bins : int or None
        Number of intervals, from 2 to 255; None for ``mdl``. A feature gets fewer where intervals would be empty.

    Raises
    ------
    InputError
        If the method is unknown, or the number of intervals does not fit it.
    """

    method: str = "mdl"
    bins: int | None = None

    def __post_init__(self) -> None:
        fits = self.bins is None if self.method == "mdl" else self.method in BINNING
        if fits and self.bins is not None:
            fits = LEAST_BINS <= self.bins <= MOST_BINS
        if not fits or (self.method != "mdl" and self.bins is None):
            raise InputError(_refusal(str(self)))

    @classmethod
    def parse(cls, text: str | Discretisation) -> Discretisation:
        """Return the method that a text such as ``mdl`` or ``quantile:5`` names.

        Raises
        ------
        InputError
            If the text names none.
        """
        if isinstance(text, Discretisation):
            return text
        known = re.fullmatch(r"(mdl)|(quantile|uniform|kmeans):(\d{1,3})", str(text).strip())
        if known is None:
            raise InputError(_refusal(str(text)))
        return cls() if known[1] else cls(known[2], int(known[3]))

    def __str__(self) -> str:
        return self.method if self.bins is None else f"{self.method}:{self.bins}"

    def cuts(
        self,
        values: NDArray[np.float64],
        classes: NDArray[np.integer],
        n_classes: int,
        weights: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the ascending cuts of one feature, midpoints between neighbouring distinct values.

        Parameters
        ----------
        values : float64 array, shape (M,)
            The feature in the training rows, finite.
        classes : int array, shape (M,)
            Class codes in 0 .. n_classes - 1; only ``mdl`` uses them.
        n_classes : int
            Number of classes.
        weights : float64 array, shape (M,)
            Sample weights; all methods but ``uniform`` count a weight of 2 as two samples.

        Returns
        -------
        float64 array
            A value belongs to the interval whose number is the count of cuts strictly below it. Empty if the method
            makes no cut.
        """
        from milpbn.data.mdlp import mdlp_cuts, midpoints  # numba takes half a second to import

        if self.method == "mdl":
            return mdlp_cuts(values, classes, n_classes, weights)
        present = weights > 0
        values, weights = values[present], weights[present]
        # Equal values are merged, so that a weight of 2 gives the very cuts of two rows: k-means stops by the variance
        # of its rows without weights.
        distinct, which = np.unique(values, return_inverse=True)
        if distinct.size < 2:
            return np.empty(0)
        edges = self._edges(distinct, exact_sums(which, weights, distinct.size))
        # scikit-learn's intervals contain their lower end, and the ones here their upper end; so each edge becomes the
        # midpoint between the training values below and above it.
        above = np.unique(np.searchsorted(distinct, edges, side="left"))
        above = above[(above > 0) & (above < distinct.size)]
        return midpoints(distinct[above - 1], distinct[above])

    def _edges(self, distinct: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the inner edges of `KBinsDiscretizer` on distinct values with weights."""
        from sklearn.preprocessing import KBinsDiscretizer

        assert self.bins is not None
        # k-means needs as many distinct values as centres; more intervals than values would be empty anyway.
        bins = min(self.bins, distinct.size)
        options = {"quantile_method": "averaged_inverted_cdf"} if self.method == "quantile" else {}
        binning = KBinsDiscretizer(
            n_bins=bins, encode="ordinal", strategy=self.method, subsample=None, **options
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns where it merges intervals; the number of cuts says so
            binning.fit(distinct[:, None], sample_weight=None if self.method == "uniform" else weights)
        edges: NDArray[np.float64] = binning.bin_edges_[0][1:-1]
        return edges


def _refusal(text: str) -> str:
    return (
        f"The discretisation must be mdl, quantile:K, uniform:K or kmeans:K with K from {LEAST_BINS} to {MOST_BINS}, "
        f"such as quantile:5; got {text!r}."
    )
