"""An upper bound without any search: every variable, and for margins every sample, has its best parent set."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.network.cpt import MAX_TABLE_ENTRIES
from milpbn.problem.constraints import Rules
from milpbn.problem.problem import Problem
from milpbn.problem.products import best_margins
from milpbn.problem.rounding import CAREFUL, EPS, margin_error, no_search_bound, table_error
from milpbn.problem.scores.spec import Score

#: With more coefficients than this, the samples' part of the bound is gamma times M.
MOST_COEFFICIENTS = 500_000_000


def loose_bound(
    score: Score, data: Dataset, rules: Rules, sample_weights: NDArray[np.float64] | None
) -> float:
    """Return an upper bound on the score of every structure that needs no tables and no list of parent sets.

    It is the sum of three upper bounds: each sample adds at most `ScoreKind.cap` times its weight; log-likelihood,
    BDeu and penalties add at most 0; and the arcs add at most the sum of the positive arc weights.

    Parameters
    ----------
    score : Score
        The score to maximise.
    data : Dataset
        Training data.
    rules : Rules
        Read for the arc weights.
    sample_weights : float64 array, shape (M,), or None
        Weights of the samples' margins, instead of those of the data.

    Returns
    -------
    float
        Nats, rounded up; inf if the score has no cap or its penalty is negative.
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

    Acyclicity is dropped, and each margin row of each sample takes each variable's best parent set:
    sum_m w_m min(gamma, min_c sum_i max_k alpha(i, k, m, c)) + sum_i max_k linear(i, k). For the conditional
    log-likelihood gamma is replaced by 0.

    Parameters
    ----------
    problem : Problem
        The problem to bound.
    stopping : callable
        Called often. Once it returns true, each remaining sample counts gamma (a likelihood of 1).

    Returns
    -------
    float
        Nats, rounded up; inf for the hard margin if `stopping` returned true before any sample was bounded.
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
        best = best_margins(margins.flat, blocks, idle[variables], stopping)
    cap, weights = margins.softening.cap, margins.weights
    if margins.smallest:
        best, weights = best[[best.argmin()]], np.ones(1)
        if best[0] == np.inf:
            return math.inf
    return no_search_bound(data, prior, best, weights, cap, terms, CAREFUL)
