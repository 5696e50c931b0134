"""The losses of Roth & Pernkopf (2020, R20), section 2.3, and their derivatives.

A loss is a function of one sample's log-joint probabilities.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from milpbn.errors import InputError
from milpbn.util.compiled import kernel

#: Names of the losses: R20 (5), (6) and (8), and the negative conditional log-likelihood.
LOSSES = ("nll", "lm", "hyb", "cll")


class Loss(NamedTuple):
    """The loss ``generative`` * R20 (5) + ``margin`` * R20 (6) - ``conditional`` * log P(c_n | x_n).

    The factors are at least 0. `gamma` is the desired log-margin in nats, `eta` the sharpness of the softened maximum
    over the competing classes, which is (log sum exp(eta v)) / eta.
    """

    generative: float
    margin: float
    conditional: float
    gamma: float
    eta: float


def make_loss(name: str, lambda_: float = 1.0, gamma: float = 1.0, eta: float = 10.0) -> Loss:
    """Return one of the four losses: ``nll``, ``lm``, ``hyb`` (nll + lambda lm) or ``cll``.

    Raises
    ------
    InputError
        If there is no such loss, lambda is negative, or gamma or eta is not positive.
    """
    if name not in LOSSES:
        raise InputError(f"There is no loss {name!r}; choose one of {', '.join(LOSSES)}.")
    if not (lambda_ >= 0 and math.isfinite(lambda_)):
        raise InputError(f"lambda must be finite and at least 0, got {lambda_}.")
    for option, value in (("gamma", gamma), ("eta", eta)):
        if not (value > 0 and math.isfinite(value)):
            raise InputError(f"{option} must be a finite positive number, got {value}.")
    generative = float(name in ("nll", "hyb"))
    margin = {"lm": 1.0, "hyb": float(lambda_)}.get(name, 0.0)
    return Loss(generative, margin, float(name == "cll"), float(gamma), float(eta))


@kernel
def sample_loss(loss, logits, y, slope):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return one sample's loss, and whether classes other than the true one have a derivative.

    `logits` are log p(x, c) of all classes in nats, float64 array of shape (C,), and `y` is the true class. The call
    writes the derivatives to `slope`, of the same shape.
    """
    C = len(logits)
    own = logits[y]
    slope[:] = 0.0
    slope[y] = -loss.generative
    value = -loss.generative * own
    others = False
    if loss.margin > 0.0:
        top = -np.inf
        for c in range(C):
            if c != y:
                top = max(top, logits[c])
        mass = 0.0
        for c in range(C):
            if c != y:
                slope[c] = math.exp(loss.eta * (logits[c] - top))
                mass += slope[c]
        lack = loss.gamma - own + top + math.log(mass) / loss.eta
        others = lack > 0.0
        for c in range(C):
            if c != y:
                slope[c] *= loss.margin / mass if others else 0.0
        if others:
            value += loss.margin * lack
            slope[y] -= loss.margin
    if loss.conditional > 0.0:
        others = True
        top = logits[0]
        for c in range(C):
            top = max(top, logits[c])
        mass = 0.0
        for c in range(C):
            mass += math.exp(logits[c] - top)
        value += loss.conditional * (top + math.log(mass) - own)
        slope[y] -= loss.conditional
        for c in range(C):
            slope[c] += loss.conditional * math.exp(logits[c] - top) / mass
    return value, others
