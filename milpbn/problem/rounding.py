r"""Bounds on the rounding errors of scores and dual bounds; the search and the verifier use the same formulas.

Notation: eps = 2^-52, twice the relative error of one operation; V variables, C classes, M samples; r the largest
number of states, W the total weight, a the smoothing. The constants cover the errors of second order.

*Counts.* `milpbn.data.sums` adds weights exactly except for at most 6 roundings, once when samples are merged and once
for a count. The relative error of a count is at most 6 eps; that of the sum of the other cells of its row is at most
(r / 2 + 6) eps; a sum over all classes but one adds at most (C / 2) eps.

*Log-probabilities.* log theta = - log1p(x) with x = (rest + a (sp - 1)) / (n + a). Neither sum has a negative term, so
the relative error of x is at most (r / 2 + C + 15) eps. Because x / ((1 + x) log1p(x)) <= 1, that of log theta is no
larger, except for the 4 ulp of the logarithm itself. So the **relative** error of log theta is at most
`table_error` = (r + C + 24) eps. Its absolute value is at most G = log(r + W / a). The same relative error holds for
log(n_{j|h} / n_h) in the log-likelihood, a sum of terms of one sign.

*Leave-one-out scores* have x = (rest + a (sp - 1)) / (n - 1 + a), and for the class variable rest + 1 instead of rest.
No weight is below 1 (`milpbn.problem.counts.require_units`), so that a positive count below 2 is the weight of one row.
It is exact, and so is the count less 1. For a larger count n the error of at most 6 eps n is at most 12 eps (n - 1). So
the relative error of x is larger by at most 7 eps. Without these, sums and logarithm have errors of at most
(r / 2 + C / 2 + 18) eps; with them they have at most `table_error`, because r and C are at least 1. Since n - 1 is not
negative, and rest + 1 is at most W, the absolute value is at most G as before.

*Other priors.* Where the prior's mean theta0 is a table of the data (`milpbn.network.prior`), theta0 and 1 - theta0 are
(p + a) / (p + q + a sp) and (q + a (sp - 1)) / (p + q + a sp), with counts p and q of which one may lack a unit. Their
relative errors are at most those of p and q together and 4 eps. That of p is at most (C / 2 + 13) eps. That of q is at
most (r / 2 + C / 2 + 7) eps, or twice (C / 2 + 7) eps if q lacks the unit, which it does for the class variable only; r
is at least C. So both errors are at most (r + C + 30) eps. x = (rest + a sp (1 - theta0)) / (n + a sp theta0) still has
no negative terms, and neither of its sums has a larger relative error than its terms: that of x is at most 2 (r + C +
32) eps + 2 eps. With the logarithm, the relative error of log theta is at most 3 (r + C + 24) eps, which `table_error`
is then. Since theta0 is at least a / (W + a r), x + 1 is at most (W + a r)^2 / (a^2 r), and the absolute value is at
most 2 G.

*Margins.* A joint log-probability is a sum of V such terms, all negative: its relative error is at most table_error +
(V + 4) eps. A log-margin is the difference of two joint log-probabilities, whose absolute values sum to at most
R = 2 V G. So its absolute error is at most R times that relative error.

*Dual bounds.* With any dual weights lambda in the simplex, b(lambda) = constant + max gradient @ eta is a bound. Let
lambda be the computed exponentials, taken as exact, divided by their exact sum. Then the computed bound has the errors

- `per_constant` = (M / 2 + C + 32) eps times the constant. The constant is a sum over samples of terms of one sign,
  gamma lambda_0 or minus the entropy; each has a relative error of at most (C + 16) eps, as its logarithm is one of
  1 + rest;
- `per_weight` = R (table_error + (V + 2 C + 32) eps) for each unit of dual weight on the competing classes, from the
  coefficients and from the division that makes the dual weights;
- `per_place` = R eps for each such unit and each product in a gradient's sum;
- `fixed`: the errors of the terms linear in eta.

The maximum over structures has an error bound of its own (`milpbn.engine.relaxation.oracle`,
`milpbn.certificate.verify.maxima`).

*Claims.* The verifier adds the bound on its own error to the value it computes, and rejects a claim below the sum. Two
computations differ by at most the errors of both. The search adds `CAREFUL` = 4 times the same formula: once for its
own error, twice for the verifier's, and once in reserve. So the verifier accepts what the search claims. One more
difference remains: the verifier computes the margins at a point anew, and the dual weights of a soft minimum at
temperature T change with the margins' errors divided by T. Any dual weights give a bound, but not the same one. The
search adds `drift` for that.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.sums import EPS
from milpbn.network.prior import Prior

#: The search adds this many times the verifier's error bound to its own bounds.
CAREFUL = 4.0
#: A log-margin that is computed a second time differs by at most this many eps times `margin_size`.
_RECOMPUTED = 256.0
#: The largest relative change of a dual weight between two computations that is allowed for.
_LARGEST_CHANGE = 2.0**-30


def table_error(data: Dataset, prior: Prior) -> float:
    """Return a bound on the relative error of a log-probability, smoothed or not."""
    error = EPS * (int(data.n_states.max()) + data.n_classes + 24)
    return 3 * error if prior.has_table else error


def margin_size(data: Dataset, prior: Prior) -> float:
    """Return R, a bound on the summed sizes of the two joint log-probabilities in a log-margin, in nats."""
    largest = math.log(int(data.n_states.max()) + data.total_weight / prior.smoothing)
    return 2 * data.n_variables * (2 * largest if prior.has_table else largest)


def margin_error(data: Dataset, prior: Prior) -> float:
    """Return a bound on the absolute error of a structure's log-margin, in nats."""
    return margin_size(data, prior) * (table_error(data, prior) + EPS * (data.n_variables + 4))


def score_error(
    data: Dataset, prior: Prior, weight: float, linear_error: NDArray[np.float64], offsets: NDArray[np.int64]
) -> float:
    """Return a bound on the rounding error of any structure's score by the coefficients, in nats.

    `weight` is the sum of the samples' weights, 0 for a score without margins. The sum of the samples' parts has an
    error of some eps, however many samples there are (`milpbn.problem.products.total_score`). The other arguments are
    those of `bound_errors`.
    """
    error = float(np.maximum.reduceat(linear_error, offsets[:-1]).sum())
    return error + weight * (margin_error(data, prior) + 8 * EPS * margin_size(data, prior))


class BoundErrors(NamedTuple):
    """Bounds on the rounding errors of a dual bound; the module's docstring explains the names."""

    fixed: float
    per_constant: float
    per_weight: float
    per_place: float
    #: R; and by how much a log-margin can differ when it is computed a second time, both in nats. Only the search adds
    #: a slack for it (`drift_slack`).
    size: float
    drift: float


def bound_errors(
    data: Dataset,
    prior: Prior,
    n_samples: int,
    linear_error: NDArray[np.float64],
    offsets: NDArray[np.int64],
    careful: float = 1.0,
) -> BoundErrors:
    """Return the bounds on the rounding errors of a dual bound.

    The margins are summed over `n_samples` samples. `linear_error`, shape (P,), has the errors of the terms linear in
    eta, and `offsets`, int64 of shape (V + 1,), the start of each variable's block in eta. `careful` is the factor of
    all error bounds except the drift.
    """
    V, C = data.n_variables, data.n_classes
    size = margin_size(data, prior)
    return BoundErrors(
        careful * float(np.maximum.reduceat(linear_error, offsets[:-1]).sum()),
        careful * EPS * (n_samples / 2 + C + 32),
        careful * size * (table_error(data, prior) + EPS * (V + 2 * C + 32)),
        careful * size * EPS,
        size,
        _RECOMPUTED * EPS * size,
    )


@register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def bound_slack(errors: BoundErrors, constant: float, weight: float, places: int) -> float:
    """Return the bound on the error of a dual bound, from its constant, its dual weight and its number of products."""
    return (
        errors.fixed
        + errors.per_constant * abs(constant)
        + (errors.per_weight + errors.per_place * places) * weight
    )


@register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def drift_slack(errors: BoundErrors, soft: float, temperature: float) -> float:
    """Return by how much the bound can rise if the dual weights at a point are computed anew at the same temperature.

    `soft` is the sum over samples of the dual weight that is not on the sample's smallest term: only this weight can
    change, because a sample's dual weights have a fixed sum.
    """
    return soft * errors.size * min(errors.drift / temperature, _LARGEST_CHANGE)


def no_search_bound(
    data: Dataset,
    prior: Prior,
    best: NDArray[np.float64],
    weights: NDArray[np.float64],
    cap: float,
    terms: NDArray[np.float64],
    careful: float = 1.0,
) -> float:
    """Return the bound in which every sample has its largest log-margin, and every variable its largest term; nats.

    `best`, shape (M,), are the samples' largest log-margins, inf for a sample that counts the cap, and `weights`, shape
    (M,), their weights. The cap is the most that a sample adds, exactly: a margin that may exceed it by its error does
    not. `terms`, shape (V,), are those of the variables, already rounded up. `careful` is the factor of all error
    bounds.
    """
    most = np.minimum(best + careful * margin_error(data, prior), cap)
    sums = (len(best) / 2 + 8) * float(weights @ np.abs(most)) + (len(terms) + 8) * float(np.abs(terms).sum())
    return float(terms.sum()) + float(weights @ most) + careful * EPS * sums
