"""Bayesian multinets: one Chow-Liu tree of the features per class (Friedman et al. 1997, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import InputError
from milpbn.learners.base import Control, Learned, Learner, setting
from milpbn.learners.generative.closed_form import check_data
from milpbn.learners.generative.forests import ForestOptions
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import fit_cpts
from milpbn.network.inference.rows import log_joint_of_rows
from milpbn.network.predictor import JointPredictor, Source
from milpbn.network.prior import Prior
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget


@dataclass(frozen=True, eq=False)
class Multinet(JointPredictor):
    """One network of the features per class, and the probabilities of the classes.

    The network of each class is fitted on the rows of the class. The class variable has no arcs in it, and its table is
    not used. `log_prior`, float64 array of shape (C,), has log P(c) in nats.
    """

    networks: tuple[Classifier, ...]
    log_prior: NDArray[np.float64]

    @property
    def variables(self) -> tuple[Variable, ...]:  # type: ignore[override]  # frozen, so it is only read
        """Features first, the class variable last."""
        return self.networks[0].variables

    def encode(self, source: Source, *, ignore_unseen: bool = False) -> Dataset:
        """Return samples as codes; see `Classifier.encode`."""
        return self.networks[0].encode(source, ignore_unseen=ignore_unseen)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters: those of every class's features, and C - 1 of the classes."""
        classes = len(self.classes)
        return sum(n.n_parameters - (classes - 1) for n in self.networks) + classes - 1

    def predict_log_joint(self, source: Source) -> NDArray[np.float64]:
        """Return log P(c) + log P(x_m | c) in nats, shape (M, C); see `Classifier.encode` for the sources.

        Missing features are summed over.
        """
        data = self.encode(source)
        columns = [log_joint_of_rows(data.codes, data.names, n.cpts[:-1], 1)[:, 0] for n in self.networks]
        return np.column_stack(columns) + self.log_prior


@dataclass(frozen=True, kw_only=True)
class MultinetLearner(ForestOptions, Learner):
    """One Chow-Liu tree or forest per class; its edges and their penalty are computed from the rows of the class."""

    name = "multinet"
    is_network = False
    summary = "Multinet: one Chow-Liu tree of the features per class; it is not one graph over the variables."
    reference = "Friedman, Geiger & Goldszmidt 1997, section 4.2; Ihler's slides."

    smoothing: float = setting(1.0, "Laplace constant of the parameters.")

    def _fit(self, data: Dataset, control: Control, budget: Budget) -> Learned:
        """Learn the networks. The structure of the result is None; its details have the number of edges per class."""
        check_data(data, Prior(self.smoothing))
        trees: list[Classifier] = []
        stopped = False
        for c in range(data.n_classes):
            rows = data.take(np.flatnonzero(data.y == c))
            above = np.full(data.n_features, -1, dtype=np.int64)
            if rows.n_samples:
                features = replace(rows, variables=rows.variables[:-1], codes=rows.X)
                part = budget.share(1 / (data.n_classes - c))
                try:
                    above, grown = self.grow(
                        features, Prior(self.smoothing), control, part, conditional=False, root=0
                    )
                    stopped = stopped or grown.get("stopped_early", False)
                except InputError as error:
                    label = data.variables[-1].states[c]
                    raise InputError(f"The tree of the class {label!r} cannot be learnt: {error}") from None
            structure = Structure(data.names, (*(() if j < 0 else (int(j),) for j in above), ()))
            trees.append(Classifier.fit(rows, structure, self.smoothing))
            control.report(f"{data.variables[-1].states[c]}: {len(structure.arcs)} edges")
        prior = fit_cpts(data, Structure.empty(data.names), self.smoothing)[-1].table
        with np.errstate(divide="ignore"):
            predictor = Multinet(tuple(trees), np.log(prior))
        edges = {label: len(n.structure.arcs) for label, n in zip(predictor.classes, trees, strict=True)}
        details = {"edges": edges, "stopped_early": stopped}
        return Learned(predictor=predictor, structure=None, details=details)
