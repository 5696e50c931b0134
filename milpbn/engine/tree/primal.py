"""The incumbent, the K best structures, and climbs from the oracle's answers and from near the incumbent."""

from __future__ import annotations

from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.dual.point import Point, score_of
from milpbn.engine.events import Events
from milpbn.engine.pool import choices_of, saved_choices
from milpbn.engine.root import Root
from milpbn.engine.tuning import TUNING
from milpbn.heuristics.local_search import LocalSearch
from milpbn.heuristics.tuning import TUNING as CLIMBS
from milpbn.network.structure import Structure
from milpbn.util.saved_arrays import SavedArrays, count, number


class PrimalState(NamedTuple):
    """The incumbent, and what decides about the next climbs."""

    #: The incumbent and its score.
    structure: Structure
    value: float
    #: The structure that the next climb near the incumbent perturbs, and its score.
    base: Structure
    base_value: float
    #: Number of climbs near the incumbent.
    climbs: int = 0
    #: The branching at which the next of them may come, and the pause after it, in branchings.
    next_climb: float = 0.0
    pause: float = 1.0
    #: Passes over parent sets by climbs near the incumbent that found nothing better, after the longest pause.
    passes: int = 0
    #: Number of the oracle's answers from which a climb had begun.
    answers: int = 0


class PrimalHeuristic:
    """The incumbent, and local searches for better structures. Any thread may call its methods.

    The `root` is the whole problem, bounded; its pool has the K best structures, with K = 1 the incumbent, at first
    `best`. The `events` receive better structures; their budget may stop climbs. The reentrant `lock` is held while
    attributes change. `random_state` is the seed of the climbs. `saved` is the state of an earlier search (`state`),
    which this one continues instead of beginning at `best`. Raise UnfitError if it is not the state of a search on this
    problem.
    """

    def __init__(
        self,
        root: Root,
        best: Structure,
        events: Events,
        lock: AbstractContextManager[bool],
        random_state: int,
        saved: SavedArrays | None = None,
    ) -> None:
        self.root, self.problem, self.pool = root, root.problem, root.pool
        self.random_state = random_state
        self._events, self._lock = events, lock
        #: The oracle's answers from which a climb has begun, in this order.
        self._climbed: dict[bytes, None] = {}
        #: Where climbs ended (`LocalSearch`).
        self._optima: dict[bytes, int] = {}
        model, tuned = root.model, TUNING.primal
        size = model.tables.codes.shape[1] * len(model.linear)
        self._stray = tuned.stray * max(1.0, model.softening.cap) if size <= tuned.medium_data else 0.0
        value = root.value(best)
        self._state = PrimalState(best, value, best, value)
        if saved is None:
            root.list_structure(best, value)
        else:
            self._restore(saved)

    @property
    def structure(self) -> Structure:
        """The incumbent."""
        return self._state.structure

    @property
    def value(self) -> float:
        """The score of the incumbent."""
        return self._state.value

    def _set(self, **values: Any) -> None:
        """Change some attributes of the state; the lock must be held."""
        self._state = self._state._replace(**values)

    @property
    def cutoff(self) -> float:
        """The score that a structure must exceed to be listed: the incumbent's, or that of the K-th best."""
        return self.pool.cutoff

    def offer(self, structure: Structure, value: float) -> None:
        """Make a structure the incumbent if its score is better, and list it if it is among the K best."""
        self._keep(structure, value)
        if value > self.cutoff:
            self.root.list_structure(structure, value)

    def _keep(self, structure: Structure, value: float) -> None:
        """Make a structure the incumbent if its score is better."""
        with self._lock:
            if value > self.value:
                best = self._events.offer(structure)
                # At a moment that the clock decides, the run may prefer another structure of a list to this one.
                kept = best if self.pool.size == 1 else structure
                self._set(structure=kept, value=value, base=kept, base_value=value)

    def explore_list(self) -> None:
        """With K > 1, list the best neighbours of some listed structures; one of these may be the new incumbent.

        Every expansion of a node calls this, so that neither the list nor the bound waits for the other.
        """
        if self.pool.size > 1 and self.root.list_neighbours(
            TUNING.primal.explored, self._events.budget, parallel=False
        ):
            best, value = self.pool.best()[0]
            self._keep(self.problem.candidates.structure(best), value)

    def climb_from_answer(self, point: Point) -> None:
        """Climb from the oracle's last answer at a point, if that is a good and new structure.

        The point's `direction` is overwritten.
        """
        value = score_of(self.root.model, point.found, point.direction, False)
        if self.pool.size > 1 and value > self.cutoff:
            found = self.problem.candidates.structure(point.found)
            if self.problem.obeys(found):
                self.offer(found, value)
        if not is_worth_a_climb(value, self.value, self.root.bound):
            return
        key = point.found.tobytes()
        with self._lock:
            if key in self._climbed:
                return
            self._climbed[key] = None
            n_climbed = len(self._climbed)
        structure = self.problem.candidates.structure(point.found)
        if not self.problem.obeys(structure):
            return
        search = LocalSearch(self.problem, structure, parallel=False, optima=self._optima)
        rng = np.random.default_rng([self.random_state, n_climbed])
        value = search.climb(rng, self._events.budget.over)
        self.offer(search.structure, value)

    def climb_near_incumbent(self, branchings: int, steps: int) -> None:
        """Climb from near the incumbent if the pause is over and such climbs took only a small part of the work.

        Work is counted, not timed, so that searches on one thread can be repeated: by the numbers of branchings and of
        steps in the tree so far.
        """
        tuned = TUNING.primal
        with self._lock:
            now = self._state
            rare = now.pause >= tuned.longest_pause
            if branchings < now.next_climb or (rare and now.passes > tuned.passes * steps):
                return
            self._set(next_climb=branchings + now.pause, climbs=now.climbs + 1)
            rng = np.random.default_rng([self.random_state, 1, now.climbs + 1])
        search = LocalSearch(self.problem, now.base, parallel=False, optima=self._optima)
        search.perturb(rng, int(rng.integers(CLIMBS.fewest_changes, CLIMBS.most_changes)))
        value = search.climb(rng, self._events.budget.over)
        with self._lock:
            share = self._climb_share()
            if steps and self._state.climbs > share * tuned.first_climbs:
                # On large data a climb takes as long as some branchings.
                wait = search.passes * branchings / (share * tuned.later_passes * steps)
                self._set(next_climb=max(self._state.next_climb, branchings + wait))
            if value >= self._state.base_value - self._stray * rng.exponential():
                self._set(base=search.structure, base_value=value)
            if self._state.base_value < self.value - tuned.return_after * self._stray:
                self._set(base=self.structure, base_value=self.value)
            if value > self.value + CLIMBS.least_gain:
                self._set(pause=1.0)
                self.offer(search.structure, value)
            else:
                now = self._state
                pause = min(tuned.longest_pause, now.pause * tuned.pause_growth)
                self._set(pause=pause, passes=now.passes + (search.passes if rare else 0))

    def _climb_share(self) -> float:
        """Return the share of climbs that is left where the root's bound is far from the incumbent, 1/2 to 1."""
        tuned, gap = TUNING.primal, self.root.bound - self.value
        close = tuned.close_bound * abs(self.value)
        return max(0.5, close / gap) if close < gap < np.inf else 1.0

    def mark(self) -> PrimalState:
        """Return the state of this moment."""
        with self._lock:
            return self._state._replace(answers=len(self._climbed))

    def state(self, mark: PrimalState) -> dict[str, NDArray[Any]]:
        """Return the state of an earlier moment as arrays."""
        with self._lock:
            climbed = list(islice(self._climbed, mark.answers))
        return {
            "structure": _arcs(mark.structure),
            "here": _arcs(mark.base),
            "value": number(mark.value),
            "here_value": number(mark.base_value),
            "climbs": count(mark.climbs),
            "next_climb": number(mark.next_climb),
            "pause": number(mark.pause),
            "passes": count(mark.passes),
            "climbed": choices_of(climbed),
        }

    def _restore(self, saved: SavedArrays) -> None:
        """Take the state that `state` returned."""
        names = self.problem.candidates.names
        self._climbed = dict.fromkeys(saved_choices(saved, "climbed", self.problem))
        self._state = PrimalState(
            structure=_structure(names, saved, "structure"),
            value=saved.number("value"),
            base=_structure(names, saved, "here"),
            base_value=saved.number("here_value"),
            climbs=saved.count("climbs"),
            next_climb=saved.number("next_climb"),
            pause=saved.number("pause"),
            passes=saved.count("passes"),
        )


def is_worth_a_climb(value: float, incumbent: float, bound: float) -> bool:
    """Return whether an answer of the oracle scores nearly as much as the incumbent, by the distance to a bound."""
    return value >= incumbent - TUNING.primal.answer_distance * max(0.0, bound - incumbent)


def _arcs(structure: Structure) -> NDArray[np.bool_]:
    """Return whether there is an arc from each variable (row) to each (column), shape (V, V)."""
    out = np.zeros((len(structure.names), len(structure.names)), dtype=bool)
    for parent, child in structure.arcs:
        out[parent, child] = True
    return out


def _structure(names: tuple[str, ...], saved: SavedArrays, name: str) -> Structure:
    """Return the structure of which `_arcs` returned the arcs."""
    arcs = saved.array(name, np.bool_, len(names), len(names))
    return Structure(names, tuple(tuple(np.flatnonzero(column).tolist()) for column in arcs.T))
