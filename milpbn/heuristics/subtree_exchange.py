"""Subtree exchange: moves of a forest of features that no sequence of improving single-variable changes can make.

A subtree with the root y is cut off, re-rooted at another of its features u, and attached to a parent outside. In the
undirected forest this replaces one edge by another. To re-root a subtree reverses the arcs between y and u. If the
class is a parent of all these features, the two directions are Markov equivalent, so that re-rooting alone hardly
changes the score; the gain comes from the new parent of u.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from milpbn.heuristics.tuning import TUNING
from milpbn.network.structure import topological_order
from milpbn.problem.candidates import SEVERAL, Candidates
from milpbn.problem.changes import add_up_margins, within_reach
from milpbn.problem.problem import Problem

#: Bound on the gain, indices of the parent sets on the reversed path, new root, and its candidate sets to score.
Move = tuple[float, list[int], int, NDArray[np.bool_]]
#: Returns the score with each wanted parent set of a variable, given the wanted sets and the other variables' sets.
Scores = Callable[[int, NDArray[np.bool_], NDArray[np.int64]], NDArray[np.float64]]
#: The fewest samples between two looks at what a change can still gain.
PART = 512


class SubtreeExchange:
    """The subtree exchanges of one structure whose features have at most one feature parent each.

    No change of a single variable improves the structure, whose parent sets have the indices `choice`, shape (V,). The
    candidate sets have a `forest_parent`. A supergradient of the score at the structure, shape (P,), bounds the gain of
    every other structure.
    """

    def __init__(
        self, candidates: Candidates, choice: NDArray[np.int64], supergradient: NDArray[np.float64]
    ) -> None:
        self._candidates, self._choice = candidates, choice
        self._supergradient = supergradient
        self._n = candidates.n_variables - 1
        #: Number of moves that were scored.
        self.tried = 0
        assert candidates.forest_parent is not None
        self._feature = candidates.forest_parent
        self._parent = self._feature[choice[: self._n]].tolist()
        #: For each feature the parent set that its feature parent gets if the arc between them is reversed.
        self._reversed = [self._reversed_set(i) for i in range(self._n)]

    def _reversed_set(self, child: int) -> int | None:
        """Return the index of the parent set of `child`'s feature parent after a reversal, None if there is none."""
        i = self._parent[child]
        if i < 0:
            return None
        kept = tuple(j for j in self._candidates.flat[self._choice[i]] if j == self._n)
        return self._candidates.position(i, (child, *kept))

    def first_gain(
        self, value: float, scores: Scores, least: float, stopping: Callable[[], bool]
    ) -> NDArray[np.int64] | None:
        """Return the parent sets of the first structure found that gains more than `least`, shape (V,), or None.

        `value` is the score of the structure, to which gains are relative. Moves are tried in the order of their bounds
        on the gain, the largest first.
        """
        for _, path, u, allowed in self._moves(least, stopping):
            if stopping():
                return None
            choice = self._choice.copy()
            for parent_set in path:
                choice[self._candidates.variable[parent_set]] = parent_set
            self.tried += 1
            values = scores(u, allowed, choice)
            for best in np.argsort(-values, kind="stable"):
                if values[best] <= value + least:
                    break
                choice[u] = int(self._candidates.offsets[u]) + best
                # No cycle runs through features only, but one can run through the class if it has parents.
                if topological_order([self._candidates.flat[p] for p in choice]) is not None:
                    return choice
        return None

    def _moves(self, least: float, stopping: Callable[[], bool]) -> list[Move]:
        """Return all moves that may gain more than `least`, in the order of their bounds, the largest first."""
        candidates, choice, supergradient = self._candidates, self._choice, self._supergradient
        children: list[list[int]] = [[] for _ in range(self._n)]
        for i, j in enumerate(self._parent):
            if j >= 0:
                children[j].append(i)
        moves = []
        for y in range(self._n):
            if stopping():
                return []
            inside = np.zeros(self._n + 1, dtype=bool)  # index -1, "no feature parent", is the last element
            below: list[tuple[int, float, list[int]]] = []
            # The path is None below an arc that cannot be reversed: such features cannot become the root.
            stack: list[tuple[int, float, list[int] | None]] = [(y, 0.0, [])]
            while stack:
                i, gain, path = stack.pop()
                inside[i] = True
                for k in children[i]:
                    parent_set = self._reversed[k]
                    if path is None or parent_set is None:
                        stack.append((k, 0.0, None))
                        continue
                    more = gain + supergradient[parent_set] - supergradient[choice[i]]
                    below.append((k, more, [*path, parent_set]))
                    stack.append(below[-1])
            for u, gain, path in below:
                a, b = candidates.offsets[u : u + 2]
                bounds = gain + supergradient[a:b] - supergradient[choice[u]]
                feature = self._feature[a:b]
                allowed = (feature != SEVERAL) & ~inside[feature] & (bounds > least)
                if allowed.any():
                    moves.append((float(bounds[allowed].max()), path, u, allowed))
        moves.sort(key=lambda move: -move[0])
        return moves


def changed_columns(
    variable: int, before: NDArray[np.int64], choice: NDArray[np.int64], column: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the columns, with their factors, that turn one choice's logits into another's without one variable."""
    changed = np.flatnonzero(choice != before)
    changed = changed[changed != variable]
    sets = np.concatenate([before[[variable]], before[changed], choice[changed]])
    signs = np.repeat([-1.0, 1.0], [1 + len(changed), len(changed)])
    added = column[sets]
    return added[added >= 0], signs[added >= 0]


def hopeful_scores(
    problem: Problem, before: NDArray[np.int64], logits: NDArray[np.float64], value: float
) -> Scores:
    """Return `Scores` that stop scoring a parent set, and return -inf for it, once it cannot gain any more.

    A gain is one over `value`, the score of the present choice `before`, shape (V,), whose logits are `logits`, shape
    (M, Q). Samples are scored in parts, those with the smallest margins first. A set is given up if it would not gain
    even with a margin of gamma for all samples of the later parts. The score must not be softened.
    """
    margins, linear = problem.margins, problem.linear
    assert margins is not None
    tables, cap, every = margins.tables, margins.softening.cap, np.arange(len(logits))
    own, others = logits[every, tables.true], logits.copy()
    others[every, tables.true] = -np.inf
    margin = own - others.max(axis=1)
    # Numbers of two bytes are sorted by radix; on adult the sorting took a third of all otherwise.
    rounded = np.clip(margin, -3 * cap - 1, 3 * cap + 1) * (32_000 / (3 * cap + 1))
    order = np.argsort(rounded.astype(np.int16), kind="stable")
    parts, most_gain = [], 0.0
    for some in np.split(order, range(step := max(PART, len(order) // 8), len(order), step)):
        part = tables._replace(
            codes=tables.codes.take(some, axis=1), true=tables.true[some], weights=tables.weights[some]
        )
        present = float(part.weights @ np.minimum(margin[some], cap))
        room = cap * float(part.weights.sum()) - present
        parts.append((part, logits[some], present, room))
        most_gain += room

    def scores(variable: int, wanted: NDArray[np.bool_], choice: NDArray[np.int64]) -> NDArray[np.float64]:
        sets = int(problem.candidates.offsets[variable]) + np.flatnonzero(wanted)
        columns, values = problem.column[sets], np.full(len(wanted), -np.inf)
        gains = linear[sets] - linear[choice[variable]] + (linear[choice] - linear[before]).sum()
        reach = cap + float(margins.spreads[columns[columns >= 0]].max(initial=0.0))
        added = changed_columns(variable, before, choice, problem.column)
        alive, attainable = np.arange(len(sets)), most_gain
        for part, its_logits, present, room in parts:
            near, decided = within_reach(part, its_logits, *added, reach)
            reached = np.empty(len(alive))
            add_up_margins(part, near, cap, False, columns[alive], reached)
            gains[alive] += reached + (decided * cap - present)
            attainable -= room
            hopeful = gains[alive] + attainable > TUNING.least_gain
            gains[alive[~hopeful]], alive = -np.inf, alive[hopeful]
            if not len(alive):
                break
        values[wanted] = value + gains
        return values

    return scores
