"""Naive Bayes: the class is the only parent of every feature."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.data.dataset import Dataset
from milpbn.learners.base import Control
from milpbn.learners.generative.closed_form import ClosedForm, Found
from milpbn.network.structure import Structure


@dataclass(frozen=True, kw_only=True)
class NaiveBayes(ClosedForm):
    """Naive Bayes with Laplace-smoothed maximum-likelihood parameters."""

    name = "naive-bayes"
    summary = "Naive Bayes: the features are independent given the class."
    reference = "Friedman, Geiger & Goldszmidt 1997, section 2."

    def search(self, data: Dataset, control: Control) -> Found:
        """Return the structure of naive Bayes."""
        return Structure.naive_bayes(data.names), {}
