"""The dual bound's numbers at points and temperatures, for `verify`: plain products with all coefficients.

Counts, coefficients, dual weights and their products are computed here once more, by other means than the search's:
one matrix of all coefficients alpha(i, k, m, c), in slices of samples where it is large, and matrix products.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.scores.candidates import Candidates, ParentSet
from milpbn.scores.constraints import Rules
from milpbn.scores.spec import Score

#: Dual weights below exp(-REACH) of a sample's largest count as 0, as certificates mean them; REACH_LIKELY under CLL.
REACH, REACH_LIKELY = 16.0, 36.0
#: Bytes of one slice of the coefficients, and of all that are kept.
SLICE_BYTES, KEPT_BYTES = 1 << 25, 1 << 30
_EPS = float(np.finfo(np.float64).eps)


def states(data: Dataset, members: ParentSet) -> tuple[NDArray[np.int64], int]:
    """Return a number for the joint state of some variables in every sample, and how many numbers there are."""
    number, size = np.zeros(data.n_samples, dtype=np.int64), 1
    for j in members:
        r = int(data.n_states[j])
        number, size = number * r + data.codes[:, j], size * r
        if size > 4 * data.n_samples:
            kinds, number = np.unique(number, return_inverse=True)
            size = len(kinds)
    return number, size


def local_terms(data: Dataset, candidates: Candidates, score: Score, rules: Rules) -> NDArray[np.float64]:
    """Return the terms of a margin score that are linear in eta, shape (P,): penalty, hybrid, and arc weights."""
    terms = np.zeros(candidates.n_sets)
    likelihood, per_parameter = score.local_weights(float(data.weights.sum()))
    for p, (i, parents) in enumerate(zip(candidates.variable.tolist(), candidates.flat, strict=True)):
        r = int(data.n_states[i])
        if likelihood:
            above, size = states(data, parents)
            counts = np.bincount(above * r + data.codes[:, i], data.weights, size * r).reshape(size, r)
            total = counts.sum(axis=1, keepdims=True)
            seen = counts > 0
            terms[p] += likelihood * float(
                (counts * np.log(np.where(seen, counts / np.maximum(total, 1e-300), 1))).sum()
            )
        terms[p] -= per_parameter * (r - 1) * prod(int(data.n_states[j]) for j in parents)
        terms[p] += sum(rules.arc_weights.get((j, i), 0.0) for j in parents)
    return terms


class Duals:
    """b(lambda) = constant + max over structures of gradient @ eta, for the dual weights at given points.

    Parameters
    ----------
    data : Dataset
        Training data, merged samples for speed.
    candidates : Candidates
        Parent sets.
    score : Score
        ``sm``, ``sbm`` or ``cll``.
    rules : Rules
        Read for the arc weights only.

    Attributes
    ----------
    linear : float64 array, shape (P,)
        Terms linear in eta.
    slack : float
        Nats that rounding can take from a bound: the sum of the constant parts, and the linear terms.
    per_weight : float
        What it can take besides, per unit of dual weight: sums of M R products (P12 (13); R rows a sample) for each of
        a structure's entries, each wrong by half an ulp of all that is summed; the four sums of at most M weights
        that a coefficient is made of.
    """

    def __init__(self, data: Dataset, candidates: Candidates, score: Score, rules: Rules) -> None:
        self.data = data
        self.smooth = score.name == "cll"
        self.reach = REACH_LIKELY if self.smooth else REACH
        self.binary = score.name == "sbm"
        self.cap = 0.0 if score.gamma is None else score.gamma
        self.linear = local_terms(data, candidates, score, rules)
        c = candidates.n_variables - 1
        self.entries = np.array(
            [p for p, s in enumerate(candidates.flat) if candidates.variable[p] == c or c in s],
            dtype=np.int64,
        )
        self.column = np.full(candidates.n_sets, -1)
        self.column[self.entries] = np.arange(len(self.entries))
        self._tables = [
            self._table(int(candidates.variable[p]), candidates.flat[p], score.smoothing)
            for p in self.entries
        ]
        self.n_rows = 1 if self.binary else data.n_classes - 1
        every = np.arange(data.n_classes)
        #: The competing classes of each class, ascending.
        self._others = np.array([every[every != y] for y in every])
        # Log-probabilities are negative: no difference of two exceeds the larger one.
        largest = np.array([np.abs(t).max() for _, t in self._tables])
        owner = candidates.variable[self.entries]
        self._blocks = np.flatnonzero(np.diff(owner, prepend=-1))
        counts = np.bincount(owner, minlength=c + 1)
        #: Variables that can choose a set whose coefficients are 0.
        self._idle = (counts < np.diff(candidates.offsets))[owner[self._blocks]]
        self._starts = candidates.offsets[:-1]
        M, R = data.n_samples, self.n_rows
        total = float(data.weights.sum())
        entries = float(np.maximum.reduceat(largest, self._blocks).sum())
        coefficients = _EPS * (4 * M + 64) * (c + 1)
        self.per_weight = _EPS * (M * R / 2 + R + 64) * entries + coefficients
        self.slack = _EPS * total * (M / 2 + R + 64) * max(self.cap, np.log(R + 1) + 1)
        self.slack += _EPS * (M + 64) * float(np.maximum.reduceat(np.abs(self.linear), self._starts).sum())
        #: What rounding can take from each sample's sum of a coefficient per variable.
        self._row_slack = total * (_EPS * (c + 64) * entries + coefficients)
        # A slice has room beside it for as many dual weights as coefficients.
        per_sample = 8 * R * max(len(self.entries), 64)
        step = max(1, SLICE_BYTES // per_sample)
        self._slices = [slice(a, min(a + step, M)) for a in range(0, M, step)]
        self._kept: list[NDArray[np.float64]] | None = None
        if per_sample * M <= KEPT_BYTES:
            self._kept = [self._coefficients(s) for s in self._slices]

    def _table(self, i: int, parents: ParentSet, a: float) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return each sample's cell, shape (M,), and by cell and class the log-probabilities, shape (cells, C).

        Under SBM instead the differences log theta(own class) - log theta(all other classes), P12 (23).
        """
        data, C = self.data, self.data.n_classes
        features = tuple(j for j in parents if j != len(data.variables) - 1)
        above, n_above = states(data, features)
        n_h = np.bincount(above * C + data.y, data.weights, n_above * C).reshape(n_above, C)
        # Sums over the other classes, and no differences from the sum over all: weights may be of very different size.
        rest_of = 1.0 - np.eye(C)
        if i == len(data.variables) - 1:
            cell, counts = above, n_h
            whole = n_h.sum(axis=1, keepdims=True)
            rest, r = whole, 2 if self.binary else C
            others, other_rest = n_h @ rest_of, whole
        else:
            r = int(data.n_states[i])
            cell, size = above * r + data.codes[:, i], n_above * r
            counts = np.bincount(cell * C + data.y, data.weights, size * C).reshape(size, C)
            rest = np.repeat(n_h, r, axis=0)
            others, other_rest = counts @ rest_of, rest @ rest_of
        table = np.log((counts + a) / (rest + a * r))
        if self.binary:
            table = table - np.log((others + a) / (other_rest + a * r))
        return cell.astype(np.int32), table

    def _coefficients(self, samples: slice) -> NDArray[np.float64]:
        """Return alpha of some samples, shape (K, m R): of each sample one value a row."""
        y = self.data.y[samples]
        every = np.arange(len(y))[:, None]
        out = np.empty((len(self._tables), len(y), self.n_rows))
        for k, (cell, table) in enumerate(self._tables):
            rows = table[cell[samples]]
            own = rows[every, y[:, None]]
            out[k] = own if self.binary else own - rows[every, self._others[y]]
        return out.reshape(len(self._tables), -1)

    def _parts(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield the weights and the coefficients of all samples, slice by slice."""
        for x, samples in enumerate(self._slices):
            alpha = self._coefficients(samples) if self._kept is None else self._kept[x]
            yield self.data.weights[samples], alpha

    def at(
        self, points: NDArray[np.float64], temperatures: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return constants and gradients of the bounds by the weights at some points.

        Parameters
        ----------
        points : float64 array, shape (B, K)
            eta, at the entries `entries`.
        temperatures : float64 array, shape (B,)
            In nats.

        Returns
        -------
        constants : float64 array, shape (B,)
            sum_m w_m lambda_{m,0} gamma, under CLL minus the entropies; what rounding can take included.
        gradients : float64 array, shape (B, P)
            linear + sum_m w_m lambda_m alpha_m.
        """
        B = len(points)
        constants = np.full(B, self.slack)
        products = np.zeros((B, len(self.entries)))
        T = temperatures[:, None]
        used = np.flatnonzero(points.any(axis=0))
        points = points[:, used]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for w, alpha in self._parts():
                margins = (points @ alpha[used]).reshape(B, len(w), self.n_rows)
                low = np.minimum(margins.min(axis=2), self.cap)
                margins -= low[:, :, None]
                margins /= -T[:, :, None]
                weights = np.exp(margins)
                weights[margins <= -self.reach] = 0.0
                away = (low - self.cap) / T
                zero = np.where(away > -self.reach, np.exp(away), 0.0)
                total = weights.sum(axis=2) + zero
                constants += (self.cap * zero / total) @ w
                if self.smooth:
                    # sum lambda log lambda, with log lambda = -away / T - log total.
                    spread = np.where(weights > 0, margins * weights, 0.0).sum(axis=2)
                    spread += np.where(zero > 0, away * zero, 0.0)
                    constants += (spread / total - np.log(total)) @ w
                weights *= (w / total)[:, :, None]
                # Most samples are far beyond gamma at all of the points.
                weights = weights.reshape(B, -1)
                constants += self.per_weight * weights.sum(axis=1)
                rows = np.flatnonzero(weights.any(axis=0))
                products += weights[:, rows] @ alpha[:, rows].T
        gradients = np.tile(self.linear, (B, 1))
        gradients[:, self.entries] += products
        return constants, gradients

    def without_search(self) -> float:
        """Return the bound in which every row of every sample chooses each variable's parent set for itself."""
        terms = np.maximum.reduceat(self.linear, self._starts)
        total, size = float(terms.sum()), float(np.abs(terms).sum())
        for w, alpha in self._parts():
            best = np.maximum.reduceat(alpha, self._blocks, axis=0)
            best[self._idle] = np.maximum(best[self._idle], 0.0)
            margins = best.sum(axis=0).reshape(len(w), self.n_rows).min(axis=1)
            least = np.minimum(margins, self.cap)
            total, size = total + float(w @ least), size + float(w @ np.abs(least))
        # Terms that no variable chooses, of forbidding weights for instance, take no part in any of these sums.
        return total + self._row_slack + _EPS * (self.data.n_samples + 64) * size
