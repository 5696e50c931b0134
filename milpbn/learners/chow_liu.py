"""The tree of Chow & Liu (1968): the best tree-shaped density over all variables, the class one among them."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.data.dataset import Dataset
from milpbn.learners.base import Control
from milpbn.learners.closed_form import ClosedForm, Found
from milpbn.learners.forests import ForestOptions
from milpbn.learners.spanning import forest_structure


@dataclass(frozen=True, kw_only=True)
class ChowLiu(ForestOptions, ClosedForm):
    """The Chow-Liu tree, and the forests that a penalty leaves of it."""

    name = "chow-liu"
    summary = "Chow-Liu tree: the spanning tree of most mutual information over all variables."
    reference = "Chow & Liu 1968; Ihler's slides for the penalties."

    def search(self, data: Dataset, control: Control) -> Found:
        """Return the tree or forest."""
        above, details = self.grow(
            data, self.smoothing, control, conditional=False, root=data.n_variables - 1
        )
        return forest_structure(data, above, conditional=False), details
