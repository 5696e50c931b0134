r"""Which features interact: the gain of a table over a few features on the residuals of the model so far.

With the residuals :math:`r = y - p` of a fitted model and their second derivatives :math:`h = p (1 - p)`, one Newton
step with a ridge on the table over some features gains, per cell and class, with G and H the sums of r and h there,

.. math:: \tfrac{1}{2} \, \frac{G^2 - \phi H}{H + \lambda}, \qquad \phi = \frac{\sum r^2}{\sum h}

The second term is the expected gain of a cell without an interaction, or more, as fitted terms leave less. The
residuals of training rows are smaller than those of other rows, and the dispersion phi says by how much. Without an
interaction the sum over the cells has the standard deviation
:math:`\sqrt{\tfrac{1}{2} \sum (\phi H / (H + \lambda))^2}`, and the largest of n such sums is about
:math:`\sqrt{2 \log n}` of them: a table beyond the forest must gain more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

from milpbn.data.dataset import Dataset
from milpbn.data.resolutions import coarse_features
from milpbn.network.additive.model import Additive, Penalty
from milpbn.network.inference.plan import elimination_order
from milpbn.network.margins import log_posterior
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget

#: Ridge of the Newton step.
RIDGE = 4.0
#: Fits after which tables are added, and how many at once, at most.
ROUNDS, AT_ONCE = 4, 8
#: Features whose triples are tried: those of the largest gains in pairs.
MOST_IN_TRIPLES = 24
#: Numbers in the tables of all families of coarse features, at most: the first number, a file of about a megabyte, or
#: with more than ten classes the second number for each class.
MOST_NUMBERS, NUMBERS_OF_CLASS = 60_000, 6_000

#: The positions of the features of a table, ascending.
Block = tuple[int, ...]


class Residuals:
    """The residuals of a model that was fitted without naive Bayes, and what tables on them gain."""

    def __init__(self, model: Additive, weights: NDArray[np.float64]) -> None:
        rows = model.rows
        posterior = np.exp(log_posterior(rows.scores(weights, 0.0)))
        truth = np.zeros_like(posterior)
        truth[np.arange(len(truth)), rows.classes] = 1.0
        # Of two classes the second says all.
        columns = slice(1, None) if posterior.shape[1] == 2 else slice(None)
        residuals = (truth - posterior)[:, columns]
        self._slopes = np.ascontiguousarray((rows.weights[:, None] * residuals).T)  # one row per class
        h = (rows.weights[:, None] * posterior * (1.0 - posterior))[:, columns]
        self._curvatures = np.ascontiguousarray(h.T)
        squares = float((self._slopes * residuals.T).sum())
        self._dispersion = squares / max(float(self._curvatures.sum()), np.finfo(np.float64).tiny)
        self._codes, self._sizes = model.data.codes, model.data.n_states
        #: The features that have more than one state.
        self.features = tuple(i for i in model.features if self._sizes[i] > 1)

    def gain(self, block: Block) -> tuple[float, float]:
        """Return the gain of a table over some features in nats, and its standard deviation without an interaction."""
        cells = np.zeros(len(self._codes), dtype=np.int64)
        for i in block:
            cells = cells * self._sizes[i] + self._codes[:, i]
        total = variance = 0.0
        for slope, curvature in zip(self._slopes, self._curvatures, strict=True):
            g, h = np.bincount(cells, slope), np.bincount(cells, curvature)
            expected = self._dispersion * h / (h + RIDGE)
            total += 0.5 * float((g * g / (h + RIDGE) - expected).sum())
            variance += 0.5 * float((expected**2).sum())
        return total, math.sqrt(variance)

    def pairs(self) -> dict[Block, tuple[float, float]]:
        """Return the gains of all pairs, those of one feature with the later ones together."""
        features = self.features
        sizes = self._sizes[list(features)]
        begins = np.concatenate([[0], np.cumsum(sizes)])
        cells = begins[:-1] + self._codes[:, features]
        found: dict[Block, tuple[float, float]] = {}
        for k, i in enumerate(features[:-1], 1):
            n, width = len(features) - k, int(begins[-1] - begins[k])
            both = (self._codes[:, [i]] * width + cells[:, k:] - begins[k]).ravel()
            total, variance = np.zeros(n), np.zeros(n)
            for slope, curvature in zip(self._slopes, self._curvatures, strict=True):
                g, h = (
                    np.bincount(both, np.repeat(own, n), int(self._sizes[i]) * width).reshape(-1, width)
                    for own in (slope, curvature)
                )
                expected = self._dispersion * h / (h + RIDGE)
                gains = 0.5 * (g * g / (h + RIDGE) - expected).sum(axis=0)
                total += np.add.reduceat(gains, begins[k:-1] - begins[k])
                variance += np.add.reduceat(0.5 * (expected**2).sum(axis=0), begins[k:-1] - begins[k])
            for j, gain, deviation in zip(features[k:], total, np.sqrt(variance), strict=True):
                found[i, j] = float(gain), float(deviation)
        return found

    def beyond_chance(self) -> list[Block]:
        """Return the pairs and triples that gain more than the largest of all without an interaction would.

        The one with the largest difference is first.
        """
        pairs = self.pairs()
        best = dict.fromkeys(self.features, -math.inf)
        for pair, (gain, deviation) in pairs.items():
            for i in pair:
                best[i] = max(best[i], gain - deviation)
        some = sorted(sorted(best, key=lambda i: (-best[i], i))[:MOST_IN_TRIPLES])
        triples = {triple: self.gain(triple) for triple in combinations(some, 3)}
        more: dict[Block, float] = {}
        for gains in (pairs, triples):
            times = math.sqrt(2.0 * math.log(max(2, len(gains))))
            more |= {block: gain - times * deviation for block, (gain, deviation) in gains.items()}
        return sorted((block for block, value in more.items() if value > 0.0), key=lambda b: (-more[b], b))


@dataclass(frozen=True)
class Room:
    """How large a network of interactions may be."""

    #: Parents of a feature, the class included.
    most_parents: int = 2
    #: Numbers in tables; None means the limit that `MOST_NUMBERS` describes.
    most_numbers: float | None = None

    def holds(self, data: Dataset, features: Sequence[int], blocks: Sequence[Block]) -> bool:
        """Return whether the network of tables over these features is small enough."""
        structure, numbers = network_of_blocks(data, features, blocks)
        most = self.most_numbers or max(MOST_NUMBERS, NUMBERS_OF_CLASS * data.n_classes)
        return numbers <= most and max(map(len, structure.parents)) <= self.most_parents


def residual_forest(model: Additive) -> list[Block]:
    """Return the pairs of features of the forest with the largest sum of positive gains, beside fitted main effects.

    `model` has main effects only.
    """
    gains = np.zeros((model.data.n_features, model.data.n_features))
    for pair, (gain, _) in Residuals(model, model.fit(Penalty())).pairs().items():
        gains[pair] = max(0.0, gain)
    tree = minimum_spanning_tree(csr_array(-gains)).tocoo()
    return sorted((int(min(pair)), int(max(pair))) for pair in zip(tree.row, tree.col, strict=True))


def all_pairs(model: Additive) -> list[Block]:
    """Return all pairs of features, those first that gain most beside fitted main effects.

    `model` has main effects only.
    """
    gains = Residuals(model, model.fit(Penalty())).pairs()
    return sorted(gains, key=lambda pair: (-gains[pair][0], pair))


def grown(data: Dataset, first: Sequence[Block], room: Room, budget: Budget) -> list[Block]:
    """Return those of the first interactions that there is room for, and pairs and triples that gain beside them.

    Tables are added while they gain more than chance and the time lasts, the largest gains first.
    """
    features = coarse_features(data)
    blocks: list[Block] = list(first)
    if not room.holds(data, features, blocks):
        blocks = []
        for block in first:
            if room.holds(data, features, [*blocks, block]):
                blocks.append(block)
    for _ in range(ROUNDS):
        model = Additive(data, blocks)
        weights = model.fit(Penalty(), None, budget)
        if budget.over():
            break
        before = len(blocks)
        for block in Residuals(model, weights).beyond_chance():
            if block not in blocks and room.holds(data, features, [*blocks, block]):
                blocks.append(block)
            if len(blocks) == before + AT_ONCE:
                break
        if len(blocks) == before:
            break
    return blocks


def network_of_blocks(
    data: Dataset, features: Sequence[int], blocks: Sequence[Block]
) -> tuple[Structure, float]:
    """Return a structure that has a family for each block, and how many numbers its tables have.

    It is over these features and the class, a parent of each. The parents of a feature are those of its neighbours that
    a good elimination order takes later, so that they are adjacent to each other.
    """
    place = {i: k for k, i in enumerate(features)}
    target = len(features)
    scopes = [[place[i] for i in block] for block in blocks]
    order = elimination_order(scopes, {k: int(data.n_states[i]) for i, k in place.items()})
    near: dict[int, set[int]] = {k: set() for k in place.values()}
    for scope in scopes:
        for k in scope:
            near[k] |= {*scope} - {k}
    parents: list[tuple[int, ...]] = [()] * (target + 1)
    for k in order.variables:
        own = near.pop(k)
        for j in own:
            near[j] = (near[j] | own) - {j, k}
        parents[k] = (*sorted(own), target)
    all_names = data.names  # a property that makes a tuple each time
    names = (*(all_names[i] for i in features), all_names[-1])
    return Structure(names, tuple(parents)), order.total * data.n_classes
