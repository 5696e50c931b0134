"""Constants and gradients of the dual bounds that a certificate claims, for the verifier.

Counts, coefficients, dual weights and their products are computed again, by other code than that of the search.
"""

from __future__ import annotations

from math import log, prod

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.verify.bdeu import bdeu_term
from milpbn.certificate.verify.priors import row_prior, states
from milpbn.certificate.verify.tables import add_best, add_products, add_scores, margin_tables
from milpbn.data.dataset import Dataset
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.local import GivenTerms
from milpbn.problem.rounding import bound_errors, bound_slack, no_search_bound, score_error
from milpbn.problem.scores.spec import Score

#: By definition of the format, dual weights below exp(-REACH) of a sample's largest are 0; REACH_LIKELY is for CLL.
REACH, REACH_LIKELY = 16.0, 36.0
#: Factor of the log-likelihood, and penalty, of the scores that consist of them.
LIKELIHOODS: dict[str, tuple[float, float | str]] = {
    "ll": (1.0, 0.0),
    "mdl": (1.0, "bic"),
    "aic": (1.0, "aic"),
}


def local_terms(
    data: Dataset, candidates: Candidates, score: Score, rules: Rules
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the terms of a score that are linear in eta, and their rounding errors, each of shape (P,).

    The terms are the penalty, the hybrid term and the arc weights. A likelihood score is a hybrid term with the factor
    1, and its penalty; local scores are their own terms. Under leave-one-out scores the hybrid term is
    sum n_{j|h} log((n_{j|h} - 1 + a) / (n_h - 1 + a sp(X_i))), or with the prior's pseudo-counts instead of a.
    """
    terms, sizes = np.zeros((2, candidates.n_sets))
    likelihood, penalty = LIKELIHOODS.get(score.name, (score.hybrid, score.penalty))
    by_name = {"bic": 0.5 * log(data.total_weight), "aic": 1.0}
    per_parameter = by_name[penalty] if isinstance(penalty, str) else penalty
    for p, (i, parents) in enumerate(zip(candidates.variable.tolist(), candidates.flat, strict=True)):
        r = int(data.n_states[i])
        if score.name == GivenTerms.name:
            terms[p], sizes[p] = score.kind.family(data, i, parents)
        if score.name == "bdeu":
            terms[p], sizes[p] = bdeu_term(data, i, parents, score.equivalent_sample_size)
        if likelihood:
            above, size = states(data, parents)
            counts = data.total_weights(above * r + data.codes[:, i], size * r).reshape(size, r)
            # log(n / n_h) = -log1p((n_h - n) / n) keeps its digits where the quotient is close to 1.
            rest = data.other_weights(counts)
            seen = counts > 0
            part, rest = counts[seen], rest[seen]
            if score.leave_one_out:
                more, others = (
                    np.broadcast_to(x, counts.shape)[seen] for x in row_prior(data, i, parents, score)
                )
                part, rest = part - 1 + more, rest + others
            fit = likelihood * float((counts[seen] * -np.log1p(rest / part)).sum())
            terms[p] += fit
            sizes[p] += abs(fit)
        k = (r - 1) * prod(int(data.n_states[j]) for j in parents)
        terms[p] -= per_parameter * k
        sizes[p] += (abs(per_parameter) + 1) * k * (bool(likelihood) or per_parameter != 0)
        arcs = [rules.arc_weights.get((j, i), 0.0) for j in parents]
        terms[p] += sum(arcs)
        sizes[p] += sum(map(abs, arcs))
    return terms, score.kind.term_error(data, score.prior) * sizes


class ClaimedDuals:
    """The bound b(lambda) = constant + max over structures of gradient @ eta, for the dual weights at given points.

    Merged samples (`Dataset.merged`) make it faster. `sample_weights`, float64 array of shape (M,), replace the data's
    weights in the score; the parameters are still those of the data. Of the rules only arc weights are used.
    """

    def __init__(
        self,
        data: Dataset,
        candidates: Candidates,
        score: Score,
        rules: Rules,
        sample_weights: NDArray[np.float64] | None = None,
    ) -> None:
        weights = data.weights if sample_weights is None else sample_weights
        rows = np.flatnonzero(weights)
        self._y, self._w = data.y[rows], weights[rows]
        self._n_classes = data.n_classes
        self.smooth = score.name == "cll"
        self.reach = REACH_LIKELY if self.smooth else REACH
        self.binary = score.name == "sbm"
        self.cap = 0.0 if score.gamma is None else score.gamma
        #: The terms linear in eta, shape (P,).
        self.linear, self._linear_error = local_terms(data, candidates, score, rules)
        #: How much rounding can lower a bound.
        self.errors = bound_errors(data, score.prior, len(rows), self._linear_error, candidates.offsets)
        self._data, self._prior, self._offsets = data, score.prior, candidates.offsets
        c = candidates.n_variables - 1
        #: Indices of the parent sets with coefficients, shape (K,): those of the class, and those that contain it.
        self.parent_sets = np.array(
            [p for p, s in enumerate(candidates.flat) if candidates.variable[p] == c or c in s],
            dtype=np.int64,
        )
        #: Position of each parent set among these, shape (P,); -1 without coefficients.
        self.column = np.full(candidates.n_sets, -1)
        self.column[self.parent_sets] = np.arange(len(self.parent_sets))
        columns, self._tables = margin_tables(data, candidates, self.parent_sets, score)
        self._columns = np.ascontiguousarray(columns[:, rows])
        self.n_rows = 1 if self.binary else data.n_classes - 1
        every = np.arange(data.n_classes)
        #: The competing classes of each class, ascending.
        self._others = np.array([every[every != y] for y in every])
        owner = candidates.variable[self.parent_sets]
        self._blocks = np.flatnonzero(np.diff(owner, prepend=-1))
        counts = np.bincount(owner, minlength=c + 1)
        #: Whether each variable has a candidate without coefficients.
        self._idle = (counts < np.diff(candidates.offsets))[owner[self._blocks]]
        self._starts = candidates.offsets[:-1]

    def at(
        self, points: NDArray[np.float64], temperatures: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return constants and gradients of the bounds that belong to the dual weights at some points.

        `points`, shape (B, K), are the components of eta at `parent_sets`, temperatures, shape (B,), are in nats. The
        constants, shape (B,), are sum_m w_m lambda_{m,0} gamma, or under CLL minus the entropies, with the rounding
        errors added; the gradients, shape (B, P), are linear + sum_m w_m lambda_m alpha_m.
        """
        constants = np.empty(len(points))
        gradients = np.tile(self.linear, (len(points), 1))
        for b, (point, temperature) in enumerate(zip(points, temperatures.tolist(), strict=True)):
            constants[b], weights = self._weights(point, temperature)
            gradients[b, self.parent_sets] += self._products(weights)
        return constants, gradients

    def _weights(self, point: NDArray[np.float64], T: float) -> tuple[float, NDArray[np.float64]]:
        """Return the constant of the bound, and w_m lambda_{m,c}, shape (M, R)."""
        y = self._y
        scores, own = np.zeros((len(y), self._n_classes)), np.zeros((len(y), 1))
        used = np.flatnonzero(point)
        add_scores(self._columns, self._tables, used, point[used], y, scores, own)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            margins = own if self.binary else own - np.take_along_axis(scores, self._others[y], axis=1)
            low = np.minimum(margins.min(axis=1), self.cap)
            margins = (margins - low[:, None]) / -T
            weights = np.exp(margins)
            weights[margins <= -self.reach] = 0.0
            away = (low - self.cap) / T
            zero = np.where(away > -self.reach, np.exp(away), 0.0)
            both = np.column_stack([weights, zero])
            total = both.sum(axis=1)
            constant = float((self.cap * zero / total) @ self._w)
            if self.smooth:
                # sum lambda log lambda, where log lambda is the exponent minus log total. The largest exponential is 1,
                # so that log1p of the others' sum is log total.
                spread = np.where(weights > 0, margins * weights, 0.0).sum(axis=1)
                spread += np.where(zero > 0, away * zero, 0.0)
                both[np.arange(len(both)), both.argmax(axis=1)] = 0.0
                constant += float((spread / total - np.log1p(both.sum(axis=1))) @ self._w)
            weights *= (self._w / total)[:, None]
        slack = bound_slack(self.errors, constant, float(weights.sum()), 2 * np.count_nonzero(weights))
        return constant + slack, weights

    def _products(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return sum_m w_m lambda_m alpha_m of `parent_sets`, shape (K,), from w_m lambda_m, shape (M, R)."""
        # Most samples have a margin far above gamma, and no weight.
        rows = np.flatnonzero(weights.any(axis=1))
        y, weights = self._y[rows], weights[rows]
        signed = np.zeros((len(rows), self._n_classes))
        if not self.binary:
            np.put_along_axis(signed, self._others[y], -weights, axis=1)
        signed[np.arange(len(rows)), y] = weights.sum(axis=1)
        out = np.empty(len(self.parent_sets))
        add_products(self._columns[:, rows], self._tables, y, signed, out)
        return out

    def score_error(self) -> float:
        """Return the bound on the rounding error of a structure's score."""
        return score_error(self._data, self._prior, float(self._w.sum()), self._linear_error, self._offsets)

    def without_search(self) -> float:
        """Return the bound in which every sample and competing class chooses each variable's parent set on its own."""
        terms = np.maximum.reduceat(self.linear + self._linear_error, self._starts)
        margins = np.zeros((len(self._y), self.n_rows))
        ends = np.append(self._blocks[1:], len(self.parent_sets))
        competing = self._others if not self.binary else np.empty((self._n_classes, 0), dtype=np.int64)
        for first, end, idle in zip(self._blocks, ends, self._idle, strict=True):
            add_best(self._columns, self._tables, first, end, idle, self._y, competing, margins)
        least = margins.min(axis=1)
        return no_search_bound(self._data, self._prior, least, self._w, self.cap, terms)
