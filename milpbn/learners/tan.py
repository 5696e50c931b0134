"""Tree-augmented naive Bayes of Friedman, Geiger & Goldszmidt (1997): the Chow-Liu tree of the features."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.data.dataset import Dataset
from milpbn.learners.base import Control
from milpbn.learners.closed_form import ClosedForm, Found
from milpbn.learners.forests import ForestOptions
from milpbn.learners.information import conditional_mutual_information
from milpbn.learners.spanning import forest_structure, spanning_tree
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
        Every feature has the class and, but for the root, one feature as parents.
    """
    above = spanning_tree(conditional_mutual_information(data), root)
    return forest_structure(data, above, conditional=True)


@dataclass(frozen=True, kw_only=True)
class Tan(ForestOptions, ClosedForm):
    """TAN, and the forests that a penalty leaves of it; every feature keeps the class as a parent."""

    name = "tan"
    summary = "Tree-augmented naive Bayes: the spanning tree of most conditional mutual information."
    reference = "Friedman, Geiger & Goldszmidt 1997; Ihler's slides for the penalties."

    def search(self, data: Dataset, control: Control) -> Found:
        """Return the tree or forest."""
        above, details = self.grow(data, self.smoothing, control, conditional=True, root=0)
        return forest_structure(data, above, conditional=True), details
