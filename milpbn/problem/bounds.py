"""Upper bounds without a search. None of them uses acyclicity, and only `trivial_bound` needs compiled kernels.

- `loose_bound`: every sample adds the most that it can; it needs neither tables nor parent sets.
- `trivial_bound`: every variable, and for margins every sample, has its best parent set.
- `first_bound`: a few Frank-Wolfe steps. For any dual weights lambda_m of a sample's margins and its cap,
  `constant + max over structures of g @ eta` is a bound, where g are the coefficients summed with the weights. Each
  variable takes its own best parent set here, whether or not the choices form a cycle. On a new machine this bound is
  ready before the kernels of a better bound are compiled.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.network.cpt import MAX_TABLE_ENTRIES
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Rules
from milpbn.problem.margins import MarginRows
from milpbn.problem.problem import Problem
from milpbn.problem.products import best_margins
from milpbn.problem.rounding import (
    CAREFUL,
    EPS,
    bound_errors,
    bound_slack,
    margin_error,
    no_search_bound,
    table_error,
)
from milpbn.problem.scores.spec import Score

#: With more coefficients than this, the samples' part of the bound is gamma times M.
MOST_COEFFICIENTS = 500_000_000
#: Temperature of the soft minimum that gives the dual weights, as a share of gamma.
TEMPERATURE = 0.05
#: Largest number of steps, and the seconds after which no further step begins.
STEPS, SECONDS = 50, 0.5
#: Largest number of products of samples, domains and classes in one step, which takes about a second.
MOST_PRODUCTS = 100_000_000


def loose_bound(
    score: Score, data: Dataset, rules: Rules, sample_weights: NDArray[np.float64] | None
) -> float:
    """Return an upper bound on the score of every structure that needs no tables and no list of parent sets.

    It is the sum of three upper bounds: each sample adds at most `ScoreKind.cap` times its weight; log-likelihood, BDeu
    and penalties add at most 0; and the arcs add at most the sum of the positive arc weights. `sample_weights`, shape
    (M,), are weights of the samples' margins, instead of those of the data. The bound is in nats, rounded up; inf if
    the score has no cap or its penalty is negative.
    """
    kind = score.kind
    if kind.cap == math.inf:
        return math.inf
    likelihood, per_parameter = kind.local_weights(data.total_weight)
    if per_parameter < 0:
        return math.inf  # a total weight below 1 makes log(M) / 2 negative: a bonus for every parameter
    terms = [w for w in rules.arc_weights.values() if w > 0]
    weight = 0.0
    if kind.is_margin:
        weight = math.fsum(data.weights if sample_weights is None else sample_weights)
        terms.append(kind.cap * weight)
    # The verifier adds as much for the rounding errors of the same bound.
    error = weight * margin_error(data, score.prior)
    error += EPS * (data.n_samples / 2 + data.n_variables + 16) * math.fsum(terms)
    local = data.n_variables * MAX_TABLE_ENTRIES if likelihood or per_parameter else 0.0
    error += (table_error(data, score.prior) + 64 * EPS) * (
        local + math.fsum(map(abs, rules.arc_weights.values()))
    )
    return math.fsum(terms) + CAREFUL * error


def trivial_bound(problem: Problem, stopping: Callable[[], bool] = lambda: False) -> float:
    """Return an upper bound on the score of every structure, gamma times M at the most for SM and SBM.

    Acyclicity is dropped, and each margin row of each sample takes each variable's best parent set: sum_m w_m
    min(gamma, min_c sum_i max_k alpha(i, k, m, c)) + sum_i max_k linear(i, k). For the conditional log-likelihood gamma
    is replaced by 0.

    Once `stopping`, which is called often, returns true, each remaining sample counts gamma (a likelihood of 1). The
    bound is in nats, rounded up; inf for the hard margin if `stopping` returned true before any sample was bounded.
    """
    candidates = problem.candidates
    starts = candidates.offsets[:-1]
    terms = np.maximum.reduceat(problem.linear + CAREFUL * problem.linear_error, starts)
    if problem.curve is not None:
        least = problem.curve.range(candidates.offsets)[0]
        terms = np.append(terms, problem.curve.error(least) - problem.curve.correction(least))
    data, prior, margins = problem.data, problem.score.prior, problem.margins
    if margins is None:
        return no_search_bound(data, prior, np.zeros(0), np.zeros(0), 0.0, terms, CAREFUL)
    owner = candidates.variable[margins.columns]
    variables, first = np.unique(owner, return_index=True)
    # A variable with a parent set without coefficients can add 0.
    idle = np.bincount(owner, minlength=candidates.n_variables) < np.diff(candidates.offsets)
    blocks = np.append(first, len(owner)).astype(np.int64)
    if not margins.smallest and margins.n_rows * len(owner) > MOST_COEFFICIENTS:
        # Each sample counts gamma, or a likelihood of 1.
        best = np.full(margins.n_samples, np.inf)
    else:
        best = best_margins(margins.tables, blocks, idle[variables], stopping)
    cap, weights = margins.softening.cap, margins.weights
    if margins.smallest:
        best, weights = best[[best.argmin()]], np.ones(1)
        if best[0] == np.inf:
            return math.inf
    return no_search_bound(data, prior, best, weights, cap, terms, CAREFUL)


def first_bound(
    problem: Problem, structure: Structure, stopping: Callable[[], bool] = lambda: False
) -> float:
    """Return an upper bound on the score of every structure, in nats, rounded up.

    It is inf if one step would take longer than about a second. The score must be a sum over the samples
    (`ScoreKind.sums_samples`). The steps begin at `structure`, one of the problem. `stopping` is asked before every
    step except the first; True ends the steps.
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
