"""Spanning trees and forests over pairs of variables, and what their edges add to a score.

The log-likelihood of a forest is that of independent variables plus M I(X_i; X_j) for every edge, and an edge adds
(d_i - 1)(d_j - 1) free parameters (Chow & Liu 1968; Ihler's slides). Given the class it is M I(X_i; X_j | C), and C
times as many parameters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from milpbn.data.dataset import Dataset
from milpbn.learners.information import conditional_mutual_information, mutual_information
from milpbn.network.structure import Structure

#: An edge that gains less, in nats per sample, gains nothing but rounding.
MINIMAL_GAIN = 1e-10

#: The variable above each one in a rooted forest, -1 for none; int64, shape (K,).
Parents = NDArray[np.int64]


class EdgeTerms(NamedTuple):
    """What an edge adds to a forest: log-likelihood in nats, and free parameters; symmetric, shape (K, K)."""

    gain: NDArray[np.float64]
    parameters: NDArray[np.float64]


def edge_terms(data: Dataset, *, conditional: bool) -> EdgeTerms:
    """Return the terms of all edges.

    Parameters
    ----------
    data : Dataset
        Training data; its weights are counted.
    conditional : bool
        Over the N features given the class (TAN); else over all V variables (Chow-Liu).
    """
    free = (data.n_states[:-1] if conditional else data.n_states) - 1
    information = conditional_mutual_information(data) if conditional else mutual_information(data)
    factor = data.n_classes if conditional else 1
    return EdgeTerms(
        float(data.weights.sum()) * information, factor * np.outer(free, free).astype(np.float64)
    )


def spanning_tree(weights: NDArray[np.float64], root: int) -> Parents:
    """Return the maximum spanning tree of a complete graph, directed away from the root.

    Parameters
    ----------
    weights : float64 array, shape (K, K)
        Symmetric; the diagonal is ignored.
    root : int
        Variable at the root.
    """
    K = len(weights)
    if K < 2:
        return np.full(K, -1, dtype=np.int64)
    upper = np.triu(weights, 1)
    # The sparse routine takes an explicit zero for a missing edge, so that all weights are made positive.
    tree = minimum_spanning_tree(upper.max() + 1.0 - upper - np.tril(np.full((K, K), np.inf)))
    _, above = breadth_first_order(tree, root, directed=False)
    return np.where(above < 0, -1, above).astype(np.int64)


def positive_forest(weights: NDArray[np.float64], root: int, tolerance: float) -> Parents:
    """Return the maximum-weight forest: the spanning tree without its edges of at most `tolerance`.

    Each tree of the forest has the direction of the spanning tree, see `spanning_tree` for the parameters.
    """
    above = spanning_tree(weights, root)
    inner = np.flatnonzero(above >= 0)
    above[inner[weights[inner, above[inner]] <= tolerance]] = -1
    return above


def forest_structure(data: Dataset, above: Parents, *, conditional: bool) -> Structure:
    """Return the structure of a rooted forest; every feature has the class as a parent if `conditional`."""
    c = data.n_variables - 1
    sets = [() if j < 0 else (int(j),) for j in above]
    if conditional:
        return Structure(data.names, (*((*s, c) for s in sets), ()))
    return Structure(data.names, tuple(sets))
