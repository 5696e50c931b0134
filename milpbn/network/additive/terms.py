r"""The terms of an additive model, the cells of rows in them, and the penalty on their weights.

A term is a tuple of variables; it has one weight per class for each of their joint states, a cell. The penalty of a
term with weights w is

.. math:: \tfrac{1}{2} \, w^T P w, \qquad P = \lambda I + \sigma \sum_k I \otimes D_k^T D_k \otimes I

where D_k takes the differences between neighbouring states along the k-th variable if these have an order: intervals,
and if so chosen three or more integers. Main effects and interactions have strengths of their own. On the curve of a
variable with K states in order, the ridge is a tenth, so that a trend is not flattened, and the smoothness K / 8, so
that it does not depend on how fine the cuts are.

If so chosen, the curve of a variable with cuts is penalised by its curvature instead, the integral of its squared
second derivative by divided differences. The K intervals then stand on a scale of length 8: half of each distance is
8 / K, the other half that of their middles, of which the inner eight tenths have the length 6.4. So a trend costs
nothing, and neither do long tails.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from milpbn.data.dataset import Variable

#: Factor on the ridge of the main effect of a variable with an order.
CURVE_RIDGE = 0.1
#: Added to the size of a term's weights where it divides the penalty, so that a term without any may get some.
SMALL_GROUP = 0.1
#: Number of states for which the smoothness of a main effect is that of `Strengths`.
CURVE_INTERVALS = 8


@dataclass(frozen=True)
class Strengths:
    """Strengths of the penalty: ridge and smoothness of main effects, and those of interactions."""

    main_ridge: float = 1.0
    main_smoothness: float = 3.0
    pair_ridge: float = 3.0
    pair_smoothness: float = 3.0

    @property
    def values(self) -> tuple[float, ...]:
        """The four numbers in order."""
        return astuple(self)


class AdditiveTerms:
    """The terms of a model over the variables of data. The first one is the intercept, which has no variables.

    `integers` are the columns of few integers, which have an order or none (`penalty`).
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        blocks: Sequence[tuple[int, ...]],
        integers: Collection[str] = (),
    ) -> None:
        #: The variables of each term.
        self.blocks: tuple[tuple[int, ...], ...] = ((), *blocks)
        self._variables = tuple(variables)
        self._integers = integers
        self._known: dict[tuple[bool, bool], tuple[sparse.csr_array, list[NDArray[np.float64]]]] = {}
        sizes = [math.prod(self.shape(block)) for block in self.blocks]
        #: The first cell of each term, shape (T + 1,); the last entry is the number of all cells, d.
        self.first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def n_cells(self) -> int:
        """Number of cells of all terms, d."""
        return int(self.first[-1])

    def shape(self, block: tuple[int, ...]) -> tuple[int, ...]:
        """Return the numbers of states of a term's variables."""
        return tuple(self._variables[i].n_states for i in block)

    def slice(self, number: int) -> slice:
        """Return the cells of the term of this number."""
        return slice(int(self.first[number]), int(self.first[number + 1]))

    def cells(self, codes: NDArray[np.int32]) -> NDArray[np.uint32]:
        """Return the cell of each row in each term, shape (M, T); d where a value has no state."""
        found = np.empty((len(codes), len(self.blocks)), dtype=np.uint32)
        for number, (block, first) in enumerate(zip(self.blocks, self.first, strict=False)):
            cell = np.zeros(len(codes), dtype=np.int64)
            known = np.ones(len(codes), dtype=bool)
            for i in block:
                known &= codes[:, i] >= 0
                cell = cell * self._variables[i].n_states + codes[:, i]
            found[:, number] = np.where(known, first + cell, self.n_cells)
        return found

    def _neighbours(self, i: int, ordered: bool) -> int:
        """Return how many of the first states of a variable have an order: all but that of missing values, or none."""
        variable = self._variables[i]
        states = variable.n_states - variable.missing_state
        integers = ordered and states > 2 and variable.raw_column in self._integers
        return states if variable.cuts is not None or integers else 0

    def _parts(self, ordered: bool, curvature: bool) -> tuple[sparse.csr_array, list[NDArray[np.float64]]]:
        """Return the places where P is not 0, and the values there that each of the `Strengths` is a factor of."""
        key = ordered, curvature
        if key in self._known:
            return self._known[key]
        # For main effects and for interactions: the diagonals of the ridge and the matrices of the smoothness.
        ridges = [np.zeros(self.n_cells), np.zeros(self.n_cells)]
        smooth: list[list[sparse.csr_array]] = [[], []]
        for number, block in enumerate(self.blocks):
            shape = self.shape(block)
            in_order = tuple(self._neighbours(i, ordered) for i in block)
            rough = _roughness(shape, in_order)
            kind, factor, scale = int(len(block) > 1), 1.0, 1.0
            if len(block) == 1 and in_order[0]:
                factor, scale = CURVE_RIDGE, shape[0] / CURVE_INTERVALS
                cuts = self._variables[block[0]].cuts
                if curvature and cuts is not None and len(cuts) > 1:
                    rough, scale = _curvature(shape[0], tuple(cuts)), 1.0
            if block:
                ridges[kind][self.slice(number)] = factor
            smooth[kind].append(scale * rough)
            smooth[1 - kind].append(sparse.csr_array(rough.shape))
        parts = []
        for ridge, matrices in zip(ridges, smooth, strict=True):
            parts += [sparse.diags_array(ridge).tocsr(), sparse.block_diag(matrices, format="csr")]
        places = sparse.csr_array(sum(abs(part) for part in parts))
        rows, columns = places.nonzero()
        # SciPy's choice of no entries is no array.
        values = [np.asarray(part[rows, columns]).ravel() if len(rows) else np.empty(0) for part in parts]
        self._known[key] = places, values
        return self._known[key]

    def penalty(
        self, strengths: Strengths, ordered: bool = False, curvature: bool = False
    ) -> sparse.csr_array:
        """Return P over all cells, shape (d, d).

        `ordered` says whether integers have an order, `curvature` whether curves are penalised by theirs.
        """
        places, parts = self._parts(ordered, curvature)
        data = sum((s * part for s, part in zip(strengths.values, parts, strict=True)), np.zeros(places.nnz))
        return sparse.csr_array((data, places.indices, places.indptr), shape=places.shape)

    def by_groups(self, penalty: sparse.csr_array, weights: NDArray[np.float64]) -> sparse.csr_array:
        """Return P with a factor for each term t with S cells, by its weights w, of shape (S, C').

        It is sqrt((S - 1) C') / (sqrt(w'P w) + `SMALL_GROUP`). Fits that repeat this approach a group lasso: terms with
        small weights are penalised more, and those of no use become nearly 0.
        """
        pulls = np.add.reduceat((weights * (penalty @ weights)).sum(axis=1), self.first[:-1])
        sizes = np.diff(self.first)
        wanted = np.sqrt(np.maximum(sizes - 1, 1) * weights.shape[1])
        cells = np.repeat(wanted / (np.sqrt(np.maximum(pulls, 0.0)) + SMALL_GROUP), sizes)
        data = penalty.data * np.repeat(cells, np.diff(penalty.indptr))
        return sparse.csr_array((data, penalty.indices, penalty.indptr), shape=penalty.shape)


@lru_cache(maxsize=1024)
def _roughness(sizes: tuple[int, ...], intervals: tuple[int, ...]) -> sparse.csr_array:
    """Return the sum of squared differences between neighbouring states, as a matrix over the joint states.

    Of the states of each variable the first so many have an order.
    """
    total = sparse.csr_array((math.prod(sizes), math.prod(sizes)))
    for axis, (n, ordered) in enumerate(zip(sizes, intervals, strict=True)):
        if ordered < 2:
            continue
        steps = sparse.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(ordered - 1, n))
        before, after = math.prod(sizes[:axis]), math.prod(sizes[axis + 1 :])
        one = sparse.kron(sparse.eye_array(before), steps.T @ steps)
        total = total + sparse.kron(one, sparse.eye_array(after))
    return sparse.csr_array(total)


@lru_cache(maxsize=1024)
def _curvature(n_states: int, cuts: tuple[float, ...]) -> sparse.csr_array:
    """Return the squared curvature of a function of intervals, as a matrix over all states, the intervals first."""
    inner = np.asarray(cuts) / np.abs(cuts).max()  # of which differences are finite
    ends = [1.5 * inner[0] - 0.5 * inner[1], 1.5 * inner[-1] - 0.5 * inner[-2]]
    middles = np.concatenate([ends[:1], 0.5 * (inner[1:] + inner[:-1]), ends[1:]])
    n = len(middles)
    low, high = np.quantile(middles, (0.1, 0.9))
    with np.errstate(over="ignore"):
        steps = 0.5 * CURVE_INTERVALS * (0.8 * np.diff(middles) / (high - low) + 1.0 / n)
    before, after = 1.0 / steps[:-1], 1.0 / steps[1:]
    shape = (n - 2, n_states)
    slopes = sparse.diags_array([before, -(before + after), after], offsets=[0, 1, 2], shape=shape)
    return sparse.csr_array(slopes.T @ sparse.diags_array(2.0 / (steps[:-1] + steps[1:])) @ slopes)
