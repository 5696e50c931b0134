"""An upper bound without any search: every variable, and for margins every sample, chooses for itself."""

from __future__ import annotations

import numpy as np

from milpbn.scores.problem import Problem

#: Share of the bound's magnitude that is added for rounding; sums of some 1e7 doubles stay far below it.
ROUNDING = 1e-10
#: Coefficients that are looked at in one go.
CHUNK = 2**22


def trivial_bound(problem: Problem) -> float:
    """Return an upper bound on the score of every structure, gamma times M at the most for SM and SBM.

    The constraints of acyclicity are dropped, and every row of every sample takes each variable's best
    parent set: sum_m w_m min(gamma, min_c sum_i max_k alpha(i, k, m, c)) + sum_i max_k linear(i, k).

    Returns
    -------
    float
        Nats, rounded up.
    """
    candidates = problem.candidates
    starts = candidates.offsets[:-1]
    total = float(np.maximum.reduceat(problem.linear, starts).sum())
    if problem.curve is not None:
        total -= problem.curve.correction(problem.curve.range(candidates)[0])
    margins = problem.margins
    if margins is None:
        return total + ROUNDING * max(1.0, abs(total))
    owner = candidates.variable[margins.columns]
    variables, blocks = np.unique(owner, return_index=True)
    # A variable that can also choose a set without coefficients can choose 0.
    idle = np.bincount(owner, minlength=candidates.n_variables) < np.diff(candidates.offsets)
    smallest = np.empty(margins.n_samples)
    chunk = max(1, CHUNK // max(1, margins.alpha[0].size))
    for first in range(0, margins.n_samples, chunk):
        best = np.maximum.reduceat(margins.alpha[first : first + chunk], blocks, axis=2)
        best[:, :, idle[variables]] = np.maximum(best[:, :, idle[variables]], 0.0)
        smallest[first : first + chunk] = best.sum(axis=2).min(axis=1)
    if margins.gamma is None:
        total += float(smallest.min())
    else:
        total += float(margins.weights @ np.minimum(smallest, margins.gamma))
    return total + ROUNDING * max(1.0, abs(total))
