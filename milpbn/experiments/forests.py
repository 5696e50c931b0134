"""Ihler's slides: trees, and forests whose number of arcs a penalty or held-out rows choose, on the sets of P12.

The slides have no numbers; they name maximum likelihood, BIC, AIC, AICc and hold-out for choosing a structure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from milpbn.experiments.base import Figures, Method, MethodInput
from milpbn.learners.generative.forests import PENALTIES
from milpbn.learners.registry import get_learner
from milpbn.network.classifier import Classifier
from milpbn.network.inference.rows import log_joint_of_rows


@dataclass(frozen=True, kw_only=True)
class ForestMethod(Method):
    """A Chow-Liu forest, or TAN with a forest, with Laplace-smoothed parameters."""

    learner: str
    penalty: str
    smoothing: float = 1.0

    @property
    def name(self) -> str:
        """Learner and penalty."""
        return f"{self.learner}-{self.penalty}"

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Learn, and return also the number of arcs of the forest and the mean log-likelihood of test rows in nats."""
        train, test = given.part.train, given.part.test
        options: dict[str, Any] = {"penalty": self.penalty, "smoothing": self.smoothing}
        learned = get_learner(self.learner)(**options).fit(train, given.control())
        assert isinstance(learned.predictor, Classifier)
        cpts = learned.predictor.cpts
        rows = np.flatnonzero(test.y >= 0)  # a class that training never saw has no probability
        joint = log_joint_of_rows(test.codes[rows], test.names, cpts, train.n_classes)
        return {
            "figures": Figures.of(learned.predictor, test).to_dict(),
            "arcs": learned.details["edges"],
            "log_likelihood": float(joint[np.arange(len(rows)), test.y[rows]].mean()),
        }


FORESTS = [
    ForestMethod(learner=learner, penalty=penalty) for learner in ("chow-liu", "tan") for penalty in PENALTIES
]
