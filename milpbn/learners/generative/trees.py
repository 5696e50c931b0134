"""Naive Bayes, tree-augmented naive Bayes (TAN) and the Chow-Liu tree, whose structures are computed at once."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.data.dataset import Dataset
from milpbn.heuristics.spanning import forest_structure
from milpbn.learners.base import Control
from milpbn.learners.generative.closed_form import ClosedForm, Found
from milpbn.learners.generative.forests import ForestOptions
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget


@dataclass(frozen=True, kw_only=True)
class NaiveBayes(ClosedForm):
    """Naive Bayes with Laplace-smoothed maximum-likelihood parameters."""

    name = "naive-bayes"
    summary = "Naive Bayes: the features are independent given the class."
    reference = "Friedman, Geiger & Goldszmidt 1997, section 2."

    def search(self, data: Dataset, control: Control, budget: Budget) -> Found:
        """Return the structure of naive Bayes."""
        return Structure.naive_bayes(data.names), {}


@dataclass(frozen=True, kw_only=True)
class Tan(ForestOptions, ClosedForm):
    """TAN, or with a penalty a forest; in both cases the class is a parent of every feature."""

    name = "tan"
    summary = "Tree-augmented naive Bayes: the maximum spanning tree under conditional mutual information."
    reference = "Friedman, Geiger & Goldszmidt 1997; Ihler's slides for the penalties."

    def search(self, data: Dataset, control: Control, budget: Budget) -> Found:
        """Return the tree or forest."""
        above, details = self.grow(data, self.prior, control, budget, conditional=True, root=0)
        return forest_structure(data, above, conditional=True), details


@dataclass(frozen=True, kw_only=True)
class ChowLiu(ForestOptions, ClosedForm):
    """The tree over all variables, including the class, with the highest likelihood, or with a penalty a forest."""

    name = "chow-liu"
    summary = "Chow-Liu tree: the maximum spanning tree under mutual information, over all variables."
    reference = "Chow & Liu 1968; Ihler's slides for the penalties."

    def search(self, data: Dataset, control: Control, budget: Budget) -> Found:
        """Return the tree or forest."""
        label = data.n_variables - 1
        above, details = self.grow(data, self.prior, control, budget, conditional=False, root=label)
        return forest_structure(data, above, conditional=False), details
