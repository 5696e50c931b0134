"""An upper bound from a few Frank-Wolfe steps, without compiled kernels and without acyclicity.

For any dual weights lambda_m of a sample's margins and its cap, `constant + max over structures of g @ eta` is a bound,
where g are the coefficients summed with the weights. Each variable takes its own best parent set here, whether or not
the choices form a cycle. On a new machine this bound is ready before the kernels of a better bound are compiled.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from milpbn.network.structure import Structure
from milpbn.problem.margins import MarginRows
from milpbn.problem.problem import Problem
from milpbn.problem.rounding import CAREFUL, bound_errors, bound_slack

#: Temperature of the soft minimum that gives the dual weights, as a share of gamma.
TEMPERATURE = 0.05
#: Largest number of steps, and the seconds after which no further step begins.
STEPS, SECONDS = 50, 0.5
#: Largest number of products of samples, domains and classes in one step, which takes about a second.
MOST_PRODUCTS = 100_000_000


def first_bound(
    problem: Problem, structure: Structure, stopping: Callable[[], bool] = lambda: False
) -> float:
    """Return an upper bound on the score of every structure.

    Parameters
    ----------
    problem : Problem
        A problem whose score is a sum over the samples (`ScoreKind.sums_samples`).
    structure : Structure
        A structure of the problem, from which the steps begin.
    stopping : callable
        Called before every step except the first; True ends the steps.

    Returns
    -------
    float
        Nats, rounded up; inf if one step would take longer than about a second.
    """
    margins, choice = problem.margins, problem.choice(structure)
    if margins is None or choice is None:
        raise ValueError("the bound needs margins, and a structure of the problem")
    tables, offsets = margins.tables, problem.candidates.offsets
    n_classes = tables.values.shape[1]
    if margins.n_samples * n_classes * len(tables.sizes) > MOST_PRODUCTS:
        return np.inf
    errors = bound_errors(
        problem.data, problem.score.prior, margins.n_samples, problem.linear_error, offsets, CAREFUL
    )
    logits = margins.logits(problem.indicator(choice))
    best, end = np.inf, time.monotonic() + SECONDS
    for step in range(STEPS):
        constant, factors = _dual_weights(margins, logits)
        gradient = problem.linear + _gradient(margins, factors, len(problem.linear))
        largest = np.maximum.reduceat(gradient, offsets[:-1])
        slack = bound_slack(errors, constant, float(np.maximum(factors, 0.0).sum()), factors.size)
        best = min(best, float(constant + largest.sum() + slack))
        if time.monotonic() >= end or stopping():
            break
        vertex = [a + int(gradient[a:b].argmax()) for a, b in pairwise(offsets)]
        logits += 2 / (step + 3) * (margins.logits(problem.indicator(np.array(vertex))) - logits)
    return best


def _gradient(margins: MarginRows, factors: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the sum over samples and classes of factors times log-probabilities, of every parent set."""
    tables, gradient = margins.tables, np.zeros(size)
    for d, n_cells in enumerate(tables.sizes.tolist()):
        cells, apart = tables.cells(d), tables.apart(d)
        n_rows = n_cells + apart
        sums = np.stack(
            [
                np.bincount(cells + apart * (tables.true == c), column, n_rows)
                for c, column in enumerate(factors.T)
            ],
            axis=1,
        )
        for k in np.flatnonzero(tables.domain == d):
            start = tables.start[k]
            gradient[tables.columns[k]] = np.vdot(sums, tables.values[start : start + n_rows])
    return gradient


def _dual_weights(margins: MarginRows, logits: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
    """Return the constant of the dual bound, and the factors of the joint log-probabilities in its gradient.

    The factors, shape (M, Q), are minus w lambda_c for competing classes, and the sum of the w lambda_c for the true
    class. The constant is gamma sum_m w_m lambda_{m,0}; under the conditional log-likelihood it is minus the weighted
    entropies of the lambda_m.
    """
    cap, smooth = margins.softening
    every, true = np.arange(len(logits)), margins.tables.true
    values = logits[every, true, None] - logits
    values[every, true] = cap  # the place of the cap, which no class of its own has
    temperature = 1.0 if smooth else TEMPERATURE * cap
    logs = -values / temperature
    top = logs.argmax(axis=1)
    logs -= logs[every, top, None]
    rest = np.exp(logs)
    rest[every, top] = 0.0
    # A share near 1 has few digits of its distance to 1, which the weight multiplies; its logarithm has them all.
    logs -= np.log1p(rest.sum(axis=1))[:, None]
    shares = np.exp(logs)
    if smooth:
        constant = float(margins.weights @ (shares * logs).sum(axis=1))
    else:
        constant = cap * float(margins.weights @ shares[every, true])
    factors = -margins.weights[:, None] * shares
    factors[every, true] = 0.0
    factors[every, true] = -factors.sum(axis=1)
    return constant, factors
