"""Learners by gradient descent: differentiable TAN, and the parameters of a given structure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.learners.base import Control, Learned, Learner, setting
from milpbn.learners.differentiable.layout import Choices
from milpbn.learners.differentiable.losses import LOSSES, make_loss
from milpbn.learners.differentiable.orderings import FIXED, STRUCTURES, candidate_choices
from milpbn.learners.differentiable.training import Trained, Training, train
from milpbn.network.classifier import Classifier
from milpbn.network.formats.structure_files import read_structure
from milpbn.network.predictor import form_record
from milpbn.network.pseudo import PseudoClassifier
from milpbn.network.structure import Structure, find_cycle
from milpbn.util.budget import Budget
from milpbn.version import __version__


@dataclass(frozen=True, kw_only=True)
class GradientLearner(Learner):
    """The common part of the learners by gradients: loss, optimiser, initial parameters, validation, checkpoints."""

    loss: str = setting(
        "hyb",
        "Negative log-likelihood (nll), margin loss (lm), hybrid of both (hyb), negative conditional log-likelihood "
        "(cll).",
        choices=LOSSES,
    )
    lambda_: float = setting(30.0, "Weight of the margin loss in the hybrid loss.")
    gamma: float = setting(3.0, "Desired log-margin in nats.")
    eta: float = setting(10.0, "Sharpness of the softened maximum over the competing classes.")
    epochs: int = setting(500, "Number of passes over the data; 0 keeps the initial parameters.")
    batch_size: int = setting(100, "Samples per step.")
    learning_rate: float = setting(
        3e-2,
        "Learning rate of the parameters in the first epoch; it decreases by a factor of 1e-3 over the run.",
    )
    init: str = setting(
        "uniform",
        "Initial parameters: random (uniform) or maximum likelihood (ml).",
        choices=("uniform", "ml"),
    )
    smoothing: float = setting(1.0, "Laplace constant of the initial parameters 'ml'.")
    dtype: str = setting("float32", "Precision of the parameters.", choices=("float32", "float64"))
    validation: float = setting(
        0.0, "Share of the samples held out to measure the error during the training."
    )
    averaged_runs: int = setting(
        1, "Number of runs from the same initial parameters whose log-probabilities are averaged."
    )
    checkpoint: str | None = setting(
        None, "File to save the state to; if it exists, the run continues from it.", file="output"
    )

    def unused(self) -> Mapping[str, str]:
        """Return the options that change nothing; see `Learner.unused`."""
        idle = {} if self.init == "ml" else {"smoothing": f"init {self.init}"}
        if self.loss != "hyb":
            idle["lambda_"] = f"loss {self.loss}"
        if self.loss not in ("lm", "hyb"):
            idle |= {"gamma": f"loss {self.loss}", "eta": f"loss {self.loss}"}
        if self.epochs == 0:
            trained = ("loss", "lambda_", "gamma", "eta", "batch_size", "learning_rate", "validation")
            idle |= dict.fromkeys((*trained, "averaged_runs"), "epochs 0")
        return idle

    def training(self) -> Training:
        """Return the settings of the training; an option out of range raises InputError."""
        return Training(
            loss=make_loss(self.loss, self.lambda_, self.gamma, self.eta),
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            init=self.init,
            smoothing=self.smoothing,
            dtype=self.dtype,
            validation=self.validation,
            averaged_runs=self.averaged_runs,
        )

    def learn(self, data: Dataset, choices: Choices, control: Control, budget: Budget) -> Learned:
        """Train, and return the classifier."""
        trained = train(data, choices, self.training(), control, self.checkpoint, budget)
        options = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "checkpoint"}
        provenance = {"learner": {"name": self.name, **options, "random_state": control.random_state}}
        return learned(data, trained, self.smoothing, provenance)


@dataclass(frozen=True, kw_only=True)
class DifferentiableTan(GradientLearner):
    """TAN structures and parameters learnt together, or the parameters of a fixed TAN structure.

    The structure is the most probable one at the end of the training. It is None for a pseudo-TAN with cycles.
    """

    name: ClassVar[str] = "differentiable-tan"
    summary: ClassVar[str] = (
        "Differentiable TAN: structure and parameters by straight-through Gumbel-softmax."
    )
    reference: ClassVar[str] = "Roth & Pernkopf 2020."

    structure: str = setting(
        "subset", "Kind of candidate parents, or of fixed structure.", choices=STRUCTURES
    )
    k: int = setting(8, "Maximum number of candidate parents of a feature.")
    structure_rate: float = setting(
        1e-3, "Learning rate of the distribution of structures, which is constant."
    )
    ordering: int = setting(
        0, "Number of the random ordering; it means the same ordering for every structure."
    )
    selection: int = setting(0, "Number of the random selection of parents.")

    def unused(self) -> Mapping[str, str]:
        """Return the options that change nothing; see `Learner.unused`."""
        idle = []
        if "subset" not in self.structure and "heuristic" not in self.structure:
            idle += ["k"]
        if self.structure not in ("random", "subset", "all", "pseudo-subset"):
            idle += ["ordering"]
        if self.structure not in ("random", "subset", "pseudo-subset"):
            idle += ["selection"]
        if self.structure in FIXED:
            idle += ["structure_rate"]
        return {**super().unused(), **dict.fromkeys(idle, f"structure {self.structure}")}

    def training(self) -> Training:
        """Return the settings of the training; see `GradientLearner.training`."""
        return replace(super().training(), structure_rate=self.structure_rate)

    def _fit(self, data: Dataset, control: Control, budget: Budget) -> Learned:
        """Learn structure and parameters."""
        choices = candidate_choices(data, self.structure, self.k, self.ordering, self.selection)
        return self.learn(data, choices, control, budget)


@dataclass(frozen=True, kw_only=True)
class Parameters(GradientLearner):
    """The parameters of any given structure that minimise one of the losses.

    With ``epochs=0`` and ``init="ml"`` they are the Laplace-smoothed maximum-likelihood parameters.
    """

    name: ClassVar[str] = "parameters"
    summary: ClassVar[str] = "Generative, discriminative or hybrid parameters for a structure from a file."
    reference: ClassVar[str] = (
        "Roth & Pernkopf 2020, section 2.3; named as future work in Peharz & Pernkopf 2012."
    )

    needs: ClassVar[str] = "--structure-file result.json"

    # With discriminative losses, families without the class have no gradient and keep their initial parameters.
    init: str = setting(
        "ml", "Initial parameters: random (uniform) or maximum likelihood (ml).", choices=("uniform", "ml")
    )
    structure_file: str | None = setting(
        None, "File with the structure: a classifier, a result or a list of arcs.", file="input"
    )

    def check(self) -> None:
        """Refuse to run without a structure; see `Learner.check`."""
        if self.structure_file is None:
            raise InputError(
                "The learner 'parameters' needs a structure; name its file with --structure-file (structure_file)."
            )

    def _fit(self, data: Dataset, control: Control, budget: Budget) -> Learned:
        """Learn the parameters."""
        assert self.structure_file is not None  # see `check`
        structure = read_structure(self.structure_file, data.names)
        return self.learn(data, fixed_choices(structure), control, budget)


def fixed_choices(structure: Structure) -> Choices:
    """Return the choices of a fixed structure: one parent set per variable."""
    return tuple((parents,) for parents in structure.parents)


def learned(data: Dataset, trained: Trained, smoothing: float, provenance: dict[str, Any]) -> Learned:
    """Return the result of a training with a Bayesian network, or a `PseudoClassifier` if the graph has a cycle."""
    if find_cycle(trained.parents) is not None:
        pseudo = PseudoClassifier(data.variables, trained.cpts)
        return Learned(predictor=pseudo, structure=None, details=trained.details)
    structure = Structure(data.names, trained.parents)
    classifier = Classifier(data.variables, structure, trained.cpts, smoothing, _provenance(data, provenance))
    return Learned(predictor=classifier, structure=structure, details=trained.details)


def _provenance(data: Dataset, more: dict[str, Any]) -> dict[str, Any]:
    recorded = {"name": data.name, "sha256": data.sha256, "samples": data.n_samples}
    return {"milpbn": __version__, "data": recorded, **form_record(data), **more}
