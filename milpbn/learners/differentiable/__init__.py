"""Differentiable TAN of Roth & Pernkopf (2020): structures and parameters by gradients.

`DifferentiableTan` learns structures, `Parameters` and `train_parameters` the tables of any given structure.
"""

from milpbn.learners.differentiable.learner import DifferentiableTan, Parameters, train_parameters
from milpbn.learners.differentiable.losses import Loss, make_loss
from milpbn.learners.differentiable.training import Trained, Training, train
from milpbn.network.pseudo import PseudoClassifier

__all__ = [
    "DifferentiableTan",
    "Loss",
    "Parameters",
    "PseudoClassifier",
    "Trained",
    "Training",
    "make_loss",
    "train",
    "train_parameters",
]
