"""Differentiable TAN of Roth & Pernkopf (2020): structures and parameters learnt by gradient descent.

`DifferentiableTan` learns structures and parameters. `Parameters` and `train_parameters` learn the parameters of a
given structure.
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
