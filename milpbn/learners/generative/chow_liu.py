"""The tree of Chow & Liu (1968): the tree-structured distribution of all variables with the highest likelihood."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.data.dataset import Dataset
from milpbn.heuristics.spanning import forest_structure
from milpbn.learners.base import Control
from milpbn.learners.generative.closed_form import ClosedForm, Found
from milpbn.learners.generative.forests import ForestOptions


@dataclass(frozen=True, kw_only=True)
class ChowLiu(ForestOptions, ClosedForm):
    """The Chow-Liu tree over all variables, including the class, or with a penalty a forest."""

    name = "chow-liu"
    summary = "Chow-Liu tree: the maximum spanning tree under mutual information, over all variables."
    reference = "Chow & Liu 1968; Ihler's slides for the penalties."

    def search(self, data: Dataset, control: Control) -> Found:
        """Return the tree or forest."""
        above, details = self.grow(data, self.prior, control, conditional=False, root=data.n_variables - 1)
        return forest_structure(data, above, conditional=False), details
