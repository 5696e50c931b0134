"""An upper bound without any search: every variable, and for margins every sample, chooses for itself."""

from __future__ import annotations

import numpy as np

from milpbn.scores.problem import Problem
from milpbn.scores.products import best_margins

#: Share of all that is summed, in absolute value, that is added for rounding; sums of some 1e7 doubles stay below it.
ROUNDING = 1e-10
#: With more coefficients than this the bound is gamma times M.
MOST_COEFFICIENTS = 500_000_000


def trivial_bound(problem: Problem) -> float:
    """Return an upper bound on the score of every structure, gamma times M at the most for SM and SBM.

    The constraints of acyclicity are dropped, and every row of every sample takes each variable's best
    parent set: sum_m w_m min(gamma, min_c sum_i max_k alpha(i, k, m, c)) + sum_i max_k linear(i, k). A conditional
    log-likelihood is at most min(0, min_c ...).

    Returns
    -------
    float
        Nats, rounded up.
    """
    candidates = problem.candidates
    starts = candidates.offsets[:-1]
    terms = np.maximum.reduceat(problem.linear, starts)
    total, size = float(terms.sum()), float(np.abs(terms).sum())
    if problem.curve is not None:
        correction = problem.curve.correction(problem.curve.range(candidates)[0])
        total, size = total - correction, size + abs(correction)
    margins = problem.margins
    if margins is None:
        return total + ROUNDING * max(1.0, size)
    owner = candidates.variable[margins.columns]
    variables, first = np.unique(owner, return_index=True)
    # A variable that can also choose a set without coefficients can choose 0.
    idle = np.bincount(owner, minlength=candidates.n_variables) < np.diff(candidates.offsets)
    blocks = np.append(first, len(owner)).astype(np.int64)
    if not margins.smallest and margins.n_rows * len(owner) > MOST_COEFFICIENTS:
        # Every sample at its best: gamma each, or a likelihood of one.
        best = np.full(margins.n_samples, np.inf)
    else:
        best = best_margins(margins.flat, blocks, idle[variables])
    if margins.likelihood:
        best = np.minimum(best, 0.0)
    elif margins.gamma is not None:
        best = np.minimum(best, margins.gamma)
    weights = np.eye(1, len(best), int(best.argmin()))[0] if margins.smallest else margins.weights
    return total + float(weights @ best) + ROUNDING * max(1.0, size + float(weights @ np.abs(best)))
