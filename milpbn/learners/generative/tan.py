"""Tree-augmented naive Bayes of Friedman, Geiger & Goldszmidt (1997), with a Chow-Liu tree of the features."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.data.dataset import Dataset
from milpbn.heuristics.spanning import forest_structure
from milpbn.learners.base import Control
from milpbn.learners.generative.closed_form import ClosedForm, Found
from milpbn.learners.generative.forests import ForestOptions


@dataclass(frozen=True, kw_only=True)
class Tan(ForestOptions, ClosedForm):
    """TAN, or with a penalty a forest; in both cases the class is a parent of every feature."""

    name = "tan"
    summary = "Tree-augmented naive Bayes: the maximum spanning tree under conditional mutual information."
    reference = "Friedman, Geiger & Goldszmidt 1997; Ihler's slides for the penalties."

    def search(self, data: Dataset, control: Control) -> Found:
        """Return the tree or forest."""
        above, details = self.grow(data, self.prior, control, conditional=True, root=0)
        return forest_structure(data, above, conditional=True), details
