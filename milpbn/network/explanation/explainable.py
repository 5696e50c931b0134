"""The methods by which a classifier with one table per variable explains itself."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from milpbn.data.dataset import Dataset, Variable
from milpbn.network.cpt import Cpt
from milpbn.network.explanation.local import LocalExplanation, explain_rows
from milpbn.network.explanation.overall import GlobalExplanation, explain_tables, recorded_gamma


class Explainable:
    """Base of classifiers that compare classes by sums of log-probabilities; a subclass says how to encode samples."""

    variables: tuple[Variable, ...]
    cpts: tuple[Cpt, ...]

    @abstractmethod
    def encode(self, source: Any, *, ignore_unseen: bool = False) -> Dataset:
        """Return samples as codes of this classifier's states."""

    def explain_local(
        self, source: Any, *, label: str | None = None, against: str | None = None
    ) -> tuple[LocalExplanation, ...]:
        """Explain the prediction of every sample: the log-odds of two classes as an exact sum over families.

        Parameters
        ----------
        source : Dataset, pandas.DataFrame, str or path-like
            Samples; see `milpbn.network.classifier.encode`.
        label, against : str, optional
            The classes to compare; by default the most probable ones of the sample.

        Raises
        ------
        InputError
            If the samples cannot be encoded, or a label is not a class of the classifier.
        """
        return explain_rows(self.variables, self.cpts, self.encode(source), label, against)

    def explain_global(self, source: Any = None, *, gamma: float | None = None) -> GlobalExplanation:
        """Explain the classifier: the log-ratios of every family, and on data also importances and margins.

        Parameters
        ----------
        source : Dataset, pandas.DataFrame, str or path-like, optional
            Samples; see `milpbn.network.classifier.encode`.
        gamma : float, optional
            Desired log-margin in nats; samples below it are listed. By default the one that the classifier was learnt
            with, if its provenance says so.

        Raises
        ------
        InputError
            If the samples cannot be encoded or have no weight, or gamma is not positive.
        """
        data = None if source is None else self.encode(source)
        if gamma is None:
            gamma = recorded_gamma(getattr(self, "provenance", {}))
        return explain_tables(self.variables, self.cpts, data, gamma)

    def __str__(self) -> str:
        """Return the classifier's tables as text, shortened where there are many features."""
        return str(self.explain_global())
