"""Learners of Bayesian networks with closed-form parameters, which are smoothed relative frequencies."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from milpbn.data.dataset import Dataset
from milpbn.data.folds import validation_split
from milpbn.errors import InputError
from milpbn.learners.base import Control, Learned, Learner, setting
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import fit_cpts, require_dataset
from milpbn.network.prior import TOWARDS, UNIFORM, Prior
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget

#: A structure, and details of the run (JSON values).
Found = tuple[Structure, dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class ClosedForm(Learner):
    """A learner of structures; `Classifier.fit` estimates the parameters on the same data.

    The Laplace constant is at least 0; Peharz & Pernkopf (2012) use 1.
    """

    smoothing: float = setting(1.0, "Laplace constant of the parameters.")
    smoothing_towards: str = setting(
        UNIFORM,
        "What the parameters are smoothed towards: the uniform distribution, the variable's distribution without "
        "parents, or the one given the class alone.",
        choices=TOWARDS,
    )

    def check(self) -> None:
        """Refuse a prior without weight; see `Learner.check`."""
        if self.smoothing == 0 and self.smoothing_towards != UNIFORM:
            raise InputError("smoothing_towards changes nothing with smoothing 0; leave it out.")

    @property
    def prior(self) -> Prior:
        """The prior of the parameters."""
        return Prior(self.smoothing, self.smoothing_towards)

    @abstractmethod
    def search(self, data: Dataset, control: Control, budget: Budget) -> Found:
        """Return a structure over the data's variables, and details of the search (JSON values)."""

    def _fit(self, data: Dataset, control: Control, budget: Budget) -> Learned:
        """Learn structure and parameters."""
        check_data(data, self.prior)
        structure, details = self.search(data, control, budget)
        return self.with_parameters(data, structure, details, {"name": self.name, **vars(self)})

    def with_parameters(
        self, data: Dataset, structure: Structure, details: dict[str, Any], learner: dict[str, Any]
    ) -> Learned:
        """Return a structure with its parameters; the classifier keeps which learner found it."""
        provenance = {"learner": learner}
        classifier = Classifier.fit(
            data, structure, self.smoothing, provenance, smoothing_towards=self.smoothing_towards
        )
        return Learned(predictor=classifier, structure=structure, details=details)


def check_data(data: Dataset, prior: Prior) -> None:
    """Refuse data and priors that the parameters cannot be fitted with, before a long search begins.

    Every value needs a state, the smoothing must be finite and not negative, and the prior's mean must be known.
    """
    require_dataset(data)
    fit_cpts(data, Structure.empty(data.names), *prior)


def log_joint(data: Dataset, classifier: Classifier) -> float:
    """Return sum_m w_m log P(c_m, x_m), in nats: the log-likelihood of labelled samples."""
    rows = classifier.predict_log_joint(data)[np.arange(data.n_samples), data.y]
    return float(data.weights @ rows)


def hold_out(data: Dataset, share: float, smoothing: float, random_state: int) -> tuple[Dataset, Dataset]:
    """Split the rows into a part to learn from and a part to choose a complexity with, stratified by class.

    Two copies of a row can be in different parts, but one row of weight 2 cannot. Everywhere else in the learners the
    two cases are equivalent.

    Raises
    ------
    InputError
        If the share of the rows held out is not in (0, 1), the smoothing of the parameters is 0, or there are fewer
        than two rows.
    """
    if not 0.0 < share < 1.0:
        raise InputError(f"The share of rows held out must be above 0 and below 1; got {share}.")
    if smoothing == 0:
        raise InputError(
            "Hold-out selection compares log-likelihoods, which can be infinite without smoothing; give a smoothing "
            "above 0."
        )
    fit, held = validation_split(data.y, share, random_state)
    return data.take(fit), data.take(held)
