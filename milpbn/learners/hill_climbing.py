"""Hill climbing over single arcs with a tabu list, for decomposable scores (Ihler's slides; Glover 1989 for tabu)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.learners.base import Control, setting
from milpbn.learners.closed_form import Found
from milpbn.learners.decomposable import Decomposable, choose_max_parents
from milpbn.learners.local_search import MINIMAL_GAIN
from milpbn.network.structure import Structure
from milpbn.scores.candidates import ParentSet
from milpbn.scores.generative import bdeu, family_counts, log_likelihood, n_parameters
from milpbn.scores.rescore import rescore
from milpbn.scores.spec import Score

#: Arcs to toggle, each (parent, child): one for an addition or deletion, two for a reversal.
Move = tuple[tuple[int, int], ...]


class FamilyScores:
    """Local scores of families as they are asked for, each computed once.

    Parameters
    ----------
    data : Dataset
        Training data; identical rows are merged.
    score : Score
        A decomposable one.
    """

    def __init__(self, data: Dataset, score: Score) -> None:
        merged = data.merged
        # Families count columns of codes, one after the other.
        self._data = replace(merged, codes=np.asfortranarray(merged.codes))
        self._score = score
        self._weights = score.local_weights(float(data.weights.sum()))
        self._known: dict[tuple[int, ParentSet], float] = {}

    def __call__(self, variable: int, parents: frozenset[int]) -> float:
        """Return the local score of a variable with its parents, in nats."""
        key = variable, tuple(sorted(parents))
        if key not in self._known:
            self._known[key] = self._compute(*key)
        return self._known[key]

    def _compute(self, variable: int, parents: ParentSet) -> float:
        counts = family_counts(self._data, variable, parents)
        if self._score.name == "bdeu":
            q = math.prod(int(self._data.n_states[j]) for j in parents)
            return bdeu(counts, q, self._score.equivalent_sample_size)
        likelihood, per_parameter = self._weights
        parameters = n_parameters(self._data, variable, parents)
        return likelihood * log_likelihood(counts) - per_parameter * parameters


class Climber:
    """A structure, and what every change of a single arc would gain.

    Parameters
    ----------
    scores : FamilyScores
        Local scores.
    score : Score
        Limits of the parent sets: max_parents, class_parents, parent_sets.
    structure : Structure
        Where to start; it must be within these limits.
    stopping : callable
        Asked for every variable while the gains are computed first; True leaves the others' parents as they are.
    """

    def __init__(
        self, scores: FamilyScores, score: Score, structure: Structure, stopping: Callable[[], bool]
    ) -> None:
        self._scores, self._score = scores, score
        self.names = structure.names
        self.parents = [frozenset(p) for p in structure.parents]
        V = len(self.parents)
        #: What toggling the arc from row to column gains, -inf where the parent set would not be allowed.
        self.toggles = np.full((V, V), -np.inf)
        self.value = math.fsum(scores(i, p) for i, p in enumerate(self.parents))
        for i in range(V):
            if stopping():
                break
            self._refresh(i)

    @property
    def structure(self) -> Structure:
        """The current structure."""
        return Structure(self.names, tuple(tuple(p) for p in self.parents))

    def _allowed(self, variable: int, parents: frozenset[int]) -> bool:
        c = len(self.parents) - 1
        if len(parents) > (self._score.max_parents if variable < c or self._score.class_parents else 0):
            return False
        return variable == c or self._score.parent_sets == "all" or not parents or c in parents

    def _refresh(self, i: int) -> None:
        """Recompute what toggling the arcs into a variable gains."""
        now = self._scores(i, self.parents[i])
        for j in range(len(self.parents)):
            other = self.parents[i] ^ {j}
            if j != i:
                allowed = self._allowed(i, other)
                self.toggles[j, i] = self._scores(i, other) - now if allowed else -np.inf

    def _ancestors(self) -> NDArray[np.bool_]:
        """Return whether the column is an ancestor of the row, bool, shape (V, V)."""
        V = len(self.parents)
        above = np.zeros((V, V), dtype=bool)
        for i in self.structure.topological_order():
            for j in self.parents[i]:
                above[i] |= above[j]
                above[i, j] = True
        return above

    def best_move(self, tabu: Iterable[frozenset[int]], known: float) -> tuple[float, Move] | None:
        """Return the gain and the arcs of the best change that keeps the graph acyclic, or None.

        Parameters
        ----------
        tabu : iterable of pairs of variables
            Their arcs stay as they are, unless the change leads beyond the best score known.
        known : float
            That score.
        """
        above = self._ancestors()
        arcs = np.zeros(above.shape, dtype=bool)
        turns = np.zeros(above.shape, dtype=bool)
        for i, parents in enumerate(self.parents):
            for j in parents:
                arcs[j, i] = True
                turns[j, i] = not any(above[other, j] for other in parents if other != j)
        # An arc into an ancestor closes a cycle; a reversal does if there is another path.
        gains = np.stack(
            [np.where(above, -np.inf, self.toggles), np.where(turns, self.toggles + self.toggles.T, -np.inf)]
        )
        for i, j in map(tuple, tabu):
            for place in ((slice(None), i, j), (slice(None), j, i)):
                gains[place][self.value + gains[place] <= known + MINIMAL_GAIN] = -np.inf
        kind, j, i = (int(k) for k in np.unravel_index(int(gains.argmax()), gains.shape))
        if gains[kind, j, i] == -np.inf:
            return None
        return float(gains[kind, j, i]), ((j, i), (i, j)) if kind else ((j, i),)

    def apply(self, move: Move) -> None:
        """Toggle the arcs of a move."""
        for j, i in move:
            self.value += float(self.toggles[j, i])
            self.parents[i] ^= {j}
        for _, i in move:
            self._refresh(i)


def climb(
    climber: Climber,
    *,
    tabu: int,
    patience: int,
    stopping: Callable[[], bool],
    report: Callable[[str], None] = lambda line: None,
) -> tuple[Structure, int]:
    """Make the best change again and again; return the best structure met, and the number of changes.

    Parameters
    ----------
    climber : Climber
        Where to start.
    tabu : int
        So many changes long a pair of variables that was changed stays as it is. With 0 the search ends at the first
        local optimum.
    patience : int
        With a tabu list, changes without a new best structure before the search ends.
    stopping : callable
        Asked before every change.
    report : callable
        Told of every new best score.
    """
    best, known = climber.structure, climber.value
    recent: deque[frozenset[int]] = deque(maxlen=tabu)
    steps = idle = 0
    while not stopping() and idle <= patience:
        found = climber.best_move(recent, known)
        if found is None or (tabu == 0 and found[0] <= MINIMAL_GAIN):
            break
        climber.apply(found[1])
        recent.append(frozenset(found[1][0]))
        steps, idle = steps + 1, idle + 1
        if climber.value > known + MINIMAL_GAIN:
            best, known, idle = climber.structure, climber.value, 0
            report(f"{known:.6f} nats after {steps} changes")
    return best, steps


@dataclass(frozen=True, kw_only=True)
class HillClimbing(Decomposable):
    """Additions, deletions and reversals of single arcs, always the best one that is not tabu.

    Attributes
    ----------
    start : {"naive-bayes", "empty"}
        Where to start.
    tabu : int
        Length of the tabu list; 0 for plain hill climbing.
    patience : int
        Changes without a new best structure before the tabu search ends.
    holdout : float
        Share of the rows held out to choose max_parents, up to the one given; 0 does not choose.
    """

    name = "hill-climbing"
    summary = "Greedy search over single arcs, with a tabu list."
    reference = "Ihler's slides; Glover 1989."

    start: str = setting("naive-bayes", "Where to start.", choices=("naive-bayes", "empty"))
    tabu: int = setting(10, "Changes for which a changed pair stays as it is; 0 for none.")
    patience: int = setting(20, "Changes without a new best structure before the search ends.")
    holdout: float = setting(0.0, "Share of the rows held out to choose max_parents; 0 does not choose.")

    def unused(self) -> Mapping[str, str]:
        """Return the options that change nothing; see `Learner.unused`."""
        return {**super().unused(), **({"patience": "tabu 0"} if self.tabu == 0 else {})}

    def search(self, data: Dataset, control: Control) -> Found:
        """Return the best structure met; its score is in the details."""
        if self.start not in ("naive-bayes", "empty"):
            raise InputError(f"The start is naive-bayes or empty, not {self.start!r}.")
        if self.tabu < 0 or self.patience < 0:
            raise InputError("tabu and patience are numbers of changes, at least 0.")
        left = control.clock()
        self.additive_spec()
        first = (Structure.empty if self.start == "empty" else Structure.naive_bayes)(data.names)
        steps, stopped = 0, False

        def learn(rows: Dataset, max_parents: int, limits: Control) -> Structure:
            nonlocal steps, stopped
            stopping = limits.watch()
            score = self.additive_spec(max_parents)
            climber = Climber(FamilyScores(rows, score), score, first, stopping)
            found, steps = climb(
                climber, tabu=self.tabu, patience=self.patience, stopping=stopping, report=control.report
            )
            stopped = stopped or stopping()
            return found

        most, chosen = choose_max_parents(
            learn, data, self.max_parents, self.holdout, self.smoothing, control
        )
        structure = learn(data, most, left())
        value = rescore(data, structure, self.spec())
        return structure, {"score": value, "changes": steps, "stopped_early": stopped, **chosen}
