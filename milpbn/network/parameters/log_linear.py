"""The families with the class as a log-linear model of training data, from deviations to probability tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import Cpt, class_log_joint, log_cpts
from milpbn.network.parameters.conditional import Design, DistinctRows, fit_deviations, log_loss
from milpbn.network.parameters.folds import generative_log_joint
from milpbn.network.parameters.nearest import nearest
from milpbn.network.parameters.normalised import completed, normalised, widened
from milpbn.network.prior import Prior
from milpbn.network.structure import Structure


class NotFitted(Exception):  # noqa: N818  # no error: the previous parameters are kept
    """Raised if no parameters can be fitted; the text is the reason, a clause."""


class LogLinear:
    """The families with the class as a log-linear model, and the tables that hold its weights.

    `NotFitted` is raised if no tables can hold them. Rows of weight 0 have no part. `whole` is as for `Design`.
    """

    def __init__(
        self,
        classifier: Classifier,
        data: Dataset,
        objection: Callable[[Structure], str | None] | None,
        whole: Collection[int] = (),
    ) -> None:
        self._all_states_of = whole
        if not classifier.smoothing > 0:
            raise NotFitted("without smoothing some probabilities may be 0, and their logarithms infinite")
        self.structure = classifier.structure
        self.prior = Prior(classifier.smoothing, classifier.smoothing_towards)
        self.whole, self.added, reason = completed(self.structure, data.n_states, objection)
        if reason is not None:
            raise NotFitted(
                f"probability tables cannot hold the fitted parameters of this structure: {reason}"
            )
        rows = np.flatnonzero(data.weights > 0)
        self.data = data if len(rows) == data.n_samples else data.take(rows)

    @cached_property
    def design(self) -> Design:
        """The indicators of the families' joint states."""
        return Design(self.data, self.structure, self._all_states_of)

    @cached_property
    def rows(self) -> tuple[DistinctRows, NDArray[np.float64]]:
        """The distinct rows, and their generative log-joint."""
        rows = self.design.rows(self.data)
        return rows, generative_log_joint(rows, self.data, self.structure, self.prior)

    @cached_property
    def _logs(self) -> list[Cpt]:
        return log_cpts(self.data, self.structure, *self.prior)

    def origin(self) -> NDArray[np.float64]:
        """Return deviations of 0, shape (K, C)."""
        return np.zeros((self.design.n_columns, self.data.n_classes))

    def deviations(
        self,
        kappa: float,
        strength: float,
        start: NDArray[np.float64],
        tolerance: float,
        stopping: Callable[[], bool],
    ) -> NDArray[np.float64]:
        """Return the deviations of all rows; see `fit_deviations`."""
        rows, joint = self.rows
        return fit_deviations(rows, kappa * joint, strength, start, tolerance=tolerance, stopping=stopping)

    def weights(self, kappa: float, deviations: NDArray[np.float64] | None) -> list[Cpt]:
        """Return the tables of weights with deviations from a share of the generative ones; None for none."""
        return self.design.tables(self._logs, kappa, deviations)

    def log_loss(self, weights: Sequence[Cpt], data: Dataset) -> float:
        """Return the mean log-loss of rows in nats under tables of weights."""
        scores = class_log_joint(data.codes, self.structure, weights, data.n_classes, np.asarray)
        of_rows = data.weights[:, np.newaxis] * np.eye(data.n_classes)[data.y]
        return log_loss(scores, of_rows) / float(data.weights.sum())

    def tables(
        self, weights: Sequence[Cpt], stopping: Callable[[], bool], joint: bool = True
    ) -> tuple[Cpt, ...] | None:
        """Return the normalised tables of weights; None if a probability is too small for float64.

        With `joint`, they are the nearest to the generative ones of all that have their posteriors.
        """
        weights = widened(weights, self.whole, self.data.n_states)
        if joint:
            generative = log_cpts(self.data, self.whole, *self.prior)
            weights = nearest(self.whole, weights, generative, stopping=stopping)
        cpts = normalised(self.whole, weights)
        return None if cpts is None else tuple(cpts)
