"""Hill climbing over single arcs, for decomposable scores (Ihler's slides), with a tabu list (Glover 1989)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.heuristics.tuning import TUNING
from milpbn.learners.base import Control, setting
from milpbn.learners.generative.closed_form import Found
from milpbn.learners.generative.decomposable import Decomposable, choose_max_parents
from milpbn.network.structure import Structure
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score
from milpbn.util.budget import Budget
from milpbn.util.options import check_choice

#: Arcs to toggle, each (parent, child): one for an addition or deletion, two for a reversal.
Move = tuple[tuple[int, int], ...]


class Climber:
    """A structure, and the gain of every change of a single arc. A local score is computed when it is first needed.

    Parameters
    ----------
    score : Score
        A decomposable score, and the limits of the parent sets, which the first structure must obey.
    stopping : callable
        Called before the gains of each variable are first computed. When it returns True, the parents of the remaining
        variables stay as they are.
    """

    def __init__(
        self, data: Dataset, score: Score, structure: Structure, stopping: Callable[[], bool]
    ) -> None:
        merged = data.merged
        # The counts of a family read columns of codes, which are contiguous in Fortran order.
        self._data = replace(merged, codes=np.asfortranarray(merged.codes))
        self._score, self._kind = score, score.kind
        self._scores: dict[tuple[int, frozenset[int]], float] = {}
        self.names = structure.names
        self.parents = [frozenset(p) for p in structure.parents]
        V = len(self.parents)
        #: Gain of adding or deleting the arc from row to column; -inf if the new parent set is not allowed.
        self.toggles = np.full((V, V), -np.inf)
        self.value = math.fsum(self.family(i, p) for i, p in enumerate(self.parents))
        for i in range(V):
            if stopping():
                break
            self._refresh(i)

    @property
    def structure(self) -> Structure:
        """The current structure."""
        return Structure(self.names, tuple(tuple(p) for p in self.parents))

    def family(self, variable: int, parents: frozenset[int]) -> float:
        """Return the local score of a variable with its parents, in nats."""
        key = variable, parents
        if key not in self._scores:
            self._scores[key] = self._kind.family(self._data, variable, tuple(sorted(parents)))[0]
        return self._scores[key]

    def _allowed(self, variable: int, parents: frozenset[int]) -> bool:
        c = len(self.parents) - 1
        if len(parents) > (self._score.max_parents if variable < c or self._score.class_parents else 0):
            return False
        return variable == c or self._score.parent_sets == "all" or not parents or c in parents

    def _refresh(self, i: int) -> None:
        """Recompute the gains of the arcs into a variable."""
        now = self.family(i, self.parents[i])
        for j in range(len(self.parents)):
            other = self.parents[i] ^ {j}
            if j != i:
                allowed = self._allowed(i, other)
                self.toggles[j, i] = self.family(i, other) - now if allowed else -np.inf

    def _ancestors(self) -> NDArray[np.bool_]:
        """Return whether the variable of the column is an ancestor of the variable of the row, bool, shape (V, V)."""
        V = len(self.parents)
        above = np.zeros((V, V), dtype=bool)
        for i in self.structure.topological_order():
            for j in self.parents[i]:
                above[i] |= above[j]
                above[i, j] = True
        return above

    def best_move(self, tabu: Iterable[frozenset[int]], incumbent: float) -> tuple[float, Move] | None:
        """Return the gain and the arcs of the best change that keeps the graph acyclic, or None.

        Parameters
        ----------
        tabu : iterable of pairs of variables
            A change of an arc between them is allowed only if it leads to a score above the incumbent's.
        incumbent : float
            The best score so far.
        """
        above = self._ancestors()
        arcs = np.zeros(above.shape, dtype=bool)
        turns = np.zeros(above.shape, dtype=bool)
        for i, parents in enumerate(self.parents):
            for j in parents:
                arcs[j, i] = True
                turns[j, i] = not any(above[other, j] for other in parents if other != j)
        # An arc into an ancestor closes a cycle. A reversal closes a cycle if there is another path between the two.
        gains = np.stack(
            [np.where(above, -np.inf, self.toggles), np.where(turns, self.toggles + self.toggles.T, -np.inf)]
        )
        for i, j in map(tuple, tabu):
            for place in ((slice(None), i, j), (slice(None), j, i)):
                gains[place][self.value + gains[place] <= incumbent + TUNING.least_gain] = -np.inf
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
    """Repeatedly make the best change; return the best structure met, and the number of changes.

    Parameters
    ----------
    tabu : int
        Length of the tabu list: a pair of variables is tabu for this number of changes after a change of its arc. With
        0 the search ends at the first local optimum.
    patience : int
        The search with a tabu list ends after more than this number of changes without a new incumbent.
    stopping : callable
        Called before every change; the search ends when it returns True.
    """
    best, incumbent = climber.structure, climber.value
    recent: deque[frozenset[int]] = deque(maxlen=tabu)
    steps = idle = 0
    while not stopping() and idle <= patience:
        found = climber.best_move(recent, incumbent)
        if found is None or (tabu == 0 and found[0] <= TUNING.least_gain):
            break
        climber.apply(found[1])
        recent.append(frozenset(found[1][0]))
        steps, idle = steps + 1, idle + 1
        if climber.value > incumbent + TUNING.least_gain:
            best, incumbent, idle = climber.structure, climber.value, 0
            report(f"{incumbent:.6f} nats after {steps} changes")
    return best, steps


@dataclass(frozen=True, kw_only=True)
class HillClimbing(Decomposable):
    """Hill climbing: each step adds, deletes or reverses the arc with the largest gain that is not tabu."""

    name = "hill-climbing"
    summary = "Greedy search over single arcs, with a tabu list."
    reference = "Ihler's slides; Glover 1989."

    start: str = setting("naive-bayes", "The first structure.", choices=("naive-bayes", "empty"))
    tabu: int = setting(10, "Length of the tabu list, in changes; 0 for plain hill climbing.")
    patience: int = setting(20, "Number of changes without an improvement before the search ends.")
    holdout: float = setting(
        0.0, "Share of the rows held out to choose max_parents; 0 uses the value of --max-parents."
    )

    def unused(self) -> Mapping[str, str]:
        """Return the options that change nothing; see `Learner.unused`."""
        return {**super().unused(), **({"patience": "tabu 0"} if self.tabu == 0 else {})}

    def search(self, data: Dataset, control: Control, budget: Budget) -> Found:
        """Return the best structure met; its score is in the details."""
        check_choice("start", self.start, ("naive-bayes", "empty"))
        if self.tabu < 0 or self.patience < 0:
            raise InputError(f"tabu and patience must be at least 0, got {self.tabu} and {self.patience}.")
        self.additive_spec()
        first = (Structure.empty if self.start == "empty" else Structure.naive_bayes)(data.names)
        steps, stopped = 0, False

        def learn(rows: Dataset, max_parents: int, part: Budget) -> Structure:
            nonlocal steps, stopped
            score = self.additive_spec(max_parents)
            climber = Climber(rows, score, first, part.over)
            found, steps = climb(
                climber, tabu=self.tabu, patience=self.patience, stopping=part.over, report=control.report
            )
            stopped = stopped or part.over()
            return found

        most, chosen = choose_max_parents(learn, data, self, self.holdout, control, budget)
        structure = learn(data, most, budget)
        value = rescore(data, structure, self.spec())
        return structure, {"score": value, "changes": steps, "stopped_early": stopped, **chosen}
