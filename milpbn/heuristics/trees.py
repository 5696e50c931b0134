"""The tree-augmented naive Bayes (TAN) structure, a start of searches and a part of several learners."""

from __future__ import annotations

from milpbn.data.dataset import Dataset
from milpbn.heuristics.information import conditional_mutual_information
from milpbn.heuristics.spanning import forest_structure, spanning_tree
from milpbn.network.structure import Structure


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
        Every feature has the class as a parent; every feature except the root also has one feature parent.
    """
    above = spanning_tree(conditional_mutual_information(data), root)
    return forest_structure(data, above, conditional=True)
