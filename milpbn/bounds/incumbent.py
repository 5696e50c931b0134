"""The best structure that a search knows, and the climbs that look for better ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from milpbn.bounds.point import Point, score_of
from milpbn.bounds.root import Root
from milpbn.learners.local_search import CHANGES, MINIMAL_GAIN, LocalSearch
from milpbn.network.structure import Structure

#: A part is closed when its bound exceeds the incumbent by at most this share: half of what counts as optimal.
CLOSE = 5e-7
#: Splits between two climbs from near the incumbent, at most; fewer where samples times entries are at most `SMALL`,
#: and a climb costs a tenth of a split.
MOST_PAUSE, SMALL_PAUSE, SMALL = 10.0, 2.0, 1e5
#: The climbs go on from a structure that is worse than the one before by so many gammas, on average, at most; and
#: from the incumbent again once they are worse by ten times that. With more than `MEDIUM` samples times entries, where
#: climbs are few, they never go on from a worse one.
STRAY, MEDIUM = 0.1, 1e6
#: The oracle's answers are climbed from if they lack at most this share of the gap.
NEAR = 0.25


class Incumbent:
    """The best structure that is known; every method may be called from any thread.

    Parameters
    ----------
    root : Root
        The whole problem, bounded.
    best : Structure
        The first one.
    found : callable
        Told of better structures; returns the best one that is known then.
    stopping : callable
        Ends climbs.
    lock : context manager
        Held while something changes; reentrant.
    random_state : int
        Seed of the climbs.

    Attributes
    ----------
    structure : Structure
        The best one,
    value : float
        and its score.
    """

    def __init__(
        self,
        root: Root,
        best: Structure,
        found: Callable[[Structure], Structure | None],
        stopping: Callable[[], bool],
        lock: AbstractContextManager[bool],
        random_state: int,
    ) -> None:
        self.root, self.problem = root, root.problem
        self.structure, self.value = best, root.value(best)
        self.random_state = random_state
        self._found, self._stopping, self._lock = found, stopping, lock
        self._climbed: set[bytes] = set()
        self._searches = 0
        self._next_search, self._pause = 0.0, 1.0
        model = root.model
        size = model.tables.codes.shape[1] * len(model.linear)
        self._most_pause = SMALL_PAUSE if size <= SMALL else MOST_PAUSE
        self._stray = STRAY * max(1.0, model.softening.cap) if size <= MEDIUM else 0.0
        # Where the climbs near the incumbent have got to.
        self._here = best, self.value

    def offer(self, structure: Structure, value: float) -> None:
        """Take a structure of some score if it is better."""
        with self._lock:
            if value > self.value:
                self.structure = self._found(structure) or self.structure
                self.value = value
                self._here = self.structure, value

    def look_at(self, point: Point) -> None:
        """Climb from the oracle's answer if it is good, and not known."""
        value = score_of(self.root.model, point.found, point.direction, False)
        if value < self.value - NEAR * max(0.0, self.root.bound - self.value):
            return
        key = point.found.tobytes()
        if key in self._climbed:
            return
        self._climbed.add(key)
        structure = self.problem.candidates.structure(point.found)
        if not self.problem.obeys(structure):
            return
        search = LocalSearch(self.problem, structure, parallel=False)
        rng = np.random.default_rng([self.random_state, len(self._climbed)])
        value = search.climb(rng, self._stopping)
        self.offer(search.structure, value)

    def search_on(self, splits: int) -> None:
        """Climb from near the incumbent after so many splits, often while that brings something."""
        with self._lock:
            if splits < self._next_search:
                return
            self._searches += 1
            self._next_search = splits + self._pause
            rng = np.random.default_rng([self.random_state, 1, self._searches])
            start = self._here[0]
        search = LocalSearch(self.problem, start, parallel=False)
        search.perturb(rng, int(rng.integers(*CHANGES)))
        value = search.climb(rng, self._stopping)
        with self._lock:
            if value >= self._here[1] - self._stray * rng.exponential():
                self._here = search.structure, value
            if self._here[1] < self.value - 10 * self._stray:
                self._here = self.structure, self.value
            if value > self.value + MINIMAL_GAIN:
                self._pause = 1.0
                self.offer(search.structure, value)
            else:
                self._pause = min(self._most_pause, self._pause * 1.1)


def target_of(incumbent: float) -> float:
    """Return the bound up to which a part is closed."""
    return incumbent + CLOSE * max(1.0, abs(incumbent))
