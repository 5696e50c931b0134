"""Maximum-weight spanning trees and forests of variables, and the contribution of their edges to a score.

The log-likelihood of a forest is that of independent variables plus M I(X_i; X_j) for every edge. An edge adds
(d_i - 1)(d_j - 1) free parameters (Chow & Liu 1968; Ihler's slides). If every variable also has the class as a parent,
an edge contributes M I(X_i; X_j | C) and C times as many parameters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from milpbn.data.dataset import Dataset
from milpbn.heuristics.information import conditional_mutual_information, mutual_information
from milpbn.network.structure import Structure

#: Smallest gain of an edge in nats per sample; smaller ones are rounding errors.
MINIMAL_GAIN = 1e-10

#: The parent of each variable in a rooted forest, -1 for none; int64, shape (K,).
Parents = NDArray[np.int64]


class EdgeTerms(NamedTuple):
    """The log-likelihood in nats and the free parameters that an edge adds to a forest; symmetric, shape (K, K)."""

    gain: NDArray[np.float64]
    parameters: NDArray[np.float64]


def edge_terms(data: Dataset, *, conditional: bool) -> EdgeTerms:
    """Return the terms of the edges between all V variables (Chow-Liu), or between N features given the class (TAN).

    `conditional` asks for the latter. Samples count with their weights.
    """
    free = (data.n_states[:-1] if conditional else data.n_states) - 1
    information = conditional_mutual_information(data) if conditional else mutual_information(data)
    factor = data.n_classes if conditional else 1
    return EdgeTerms(
        float(data.weights.sum()) * information, factor * np.outer(free, free).astype(np.float64)
    )


def spanning_tree(weights: NDArray[np.float64], root: int) -> Parents:
    """Return the maximum spanning tree of a complete graph, directed away from the root.

    The weights, shape (K, K), are symmetric; the diagonal is ignored.
    """
    K = len(weights)
    if K < 2:
        return np.full(K, -1, dtype=np.int64)
    upper = np.triu(weights, 1)
    # SciPy reads a zero as a missing edge. The weights are therefore shifted to be positive.
    tree = minimum_spanning_tree(upper.max() + 1.0 - upper - np.tril(np.full((K, K), np.inf)))
    _, above = breadth_first_order(tree, root, directed=False)
    return np.where(above < 0, -1, above).astype(np.int64)


def positive_forest(weights: NDArray[np.float64], root: int, tolerance: float) -> Parents:
    """Return the maximum-weight forest: the maximum spanning tree without its edges of weight at most `tolerance`.

    Its edges have the same directions as in the spanning tree. The other parameters are those of `spanning_tree`.
    """
    above = spanning_tree(weights, root)
    inner = np.flatnonzero(above >= 0)
    above[inner[weights[inner, above[inner]] <= tolerance]] = -1
    return above


def forest_structure(data: Dataset, above: Parents, *, conditional: bool) -> Structure:
    """Return the structure of a rooted forest; if `conditional`, every feature also has the class as a parent."""
    c = data.n_variables - 1
    sets = [() if j < 0 else (int(j),) for j in above]
    if conditional:
        return Structure(data.names, (*((*s, c) for s in sets), ()))
    return Structure(data.names, tuple(sets))


def tan_structure(data: Dataset, root: int = 0) -> Structure:
    """Return the TAN structure: the maximum spanning tree under I(X_i; X_j | C), directed away from the feature `root`.

    Every feature has the class as a parent; every feature except the root also has one feature parent.
    """
    above = spanning_tree(conditional_mutual_information(data), root)
    return forest_structure(data, above, conditional=True)
