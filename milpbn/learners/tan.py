"""Tree-augmented naive Bayes of Friedman, Geiger & Goldszmidt (1997): the Chow-Liu tree of the features."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.special import xlogy

from milpbn.data.dataset import Dataset
from milpbn.network.structure import Structure


def conditional_mutual_information(data: Dataset) -> NDArray[np.float64]:
    """Return I(X_i; X_j | C) of all pairs of features under the empirical distribution.

    Parameters
    ----------
    data : Dataset
        Training data; its weights are counted.

    Returns
    -------
    float64 array, shape (N, N)
        Nats; symmetric, with the conditional entropies H(X_i | C) on the diagonal.
    """
    N, total = data.n_features, float(data.weights.sum())
    starts = np.concatenate([[0], np.cumsum(data.n_states[:-1])]).astype(np.int64)
    information = np.zeros((N, N))
    for c in range(data.n_classes):
        mine = np.flatnonzero(data.y == c)
        if not len(mine):
            continue
        places = (data.X[mine] + starts[:-1]).ravel()
        rows = np.repeat(np.arange(len(mine)), N)
        shape = (len(mine), int(starts[-1]))
        one_hot = sp.csr_array((np.ones(len(rows)), (rows, places)), shape=shape)
        weighted = sp.csr_array((np.repeat(data.weights[mine], N), (rows, places)), shape=shape)
        joint = (one_hot.T @ weighted).toarray()
        single = joint.diagonal()
        weight = float(data.weights[mine].sum())
        # sum n_ij log(n_ij n_c / (n_i n_j)), each block of states summed to one number per pair of features
        marginal = np.log(np.maximum(single, np.finfo(float).tiny))
        terms = xlogy(joint, joint) + joint * (np.log(weight) - marginal[:, None] - marginal[None, :])
        information += np.add.reduceat(np.add.reduceat(terms, starts[:-1], axis=0), starts[:-1], axis=1)
    return information / total


def tan_structure(data: Dataset, root: int = 0) -> Structure:
    """Return the TAN structure: the maximum spanning tree under I(X_i; X_j | C), directed away from `root`.

    Parameters
    ----------
    data : Dataset
        Training data.
    root : int
        Feature at the root of the tree.

    Returns
    -------
    Structure
        Every feature has the class and, but for the root, one feature as parents.
    """
    N = data.n_features
    if N < 2:
        return Structure.naive_bayes(data.names)
    information = conditional_mutual_information(data)
    np.fill_diagonal(information, 0.0)
    # The sparse routine takes an explicit zero for a missing edge, so that all weights are made positive.
    tree = minimum_spanning_tree(
        information.max() + 1.0 - np.triu(information, 1) - np.tril(np.full((N, N), np.inf))
    )
    _, above = breadth_first_order(tree, root, directed=False)
    parents = [(N,) if above[i] < 0 else (int(above[i]), N) for i in range(N)]
    return Structure(data.names, (*parents, ()))
