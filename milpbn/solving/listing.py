"""The K best structures of a run: each scored from the data, with the bound on all others, and which are the same."""

from __future__ import annotations

import numpy as np

from milpbn.claims.alternatives import Alternative, Alternatives, Group
from milpbn.claims.gap import is_optimal
from milpbn.data import Dataset
from milpbn.network.equivalence import markov_equivalent, posteriors_of, same_posteriors
from milpbn.network.structure import Structure
from milpbn.solving.state import Session

#: Scoring, checking and comparing a structure takes this many times as long as scoring it from the data alone. The
#: list may take this share of a time limit.
SCORINGS, MOST_RESERVED = 3.0, 0.5


class Listing:
    """Makes the claim about the K best structures, as often as it is asked for.

    Parameters
    ----------
    asked : int
        K.
    """

    def __init__(self, session: Session, dataset: Dataset, asked: int) -> None:
        self._session, self._dataset, self._asked = session, dataset, asked
        #: The structures that were scored so far.
        self._scores: dict[Structure, tuple[float, float]] = {}
        #: The structures that the search listed when the list was read.
        self._read: list[Structure] = []

    def keep_time(self) -> None:
        """Have the search stop early enough for scoring and comparing the list within the time limit."""
        session, budget = self._session, self._session.budget
        if budget.deadline is not None:
            root = session.made.root
            listed = self._asked if root is None else root.pool.known
            most = MOST_RESERVED * (budget.deadline - session.started)
            budget.reserve = min(most, SCORINGS * session.scoring_seconds / max(1, session.n_scored) * listed)

    def rest(self) -> float:
        """Return the bound on all structures outside the list that the tree has proved so far."""
        root = self._session.made.root
        return np.inf if root is None else root.pool.rest

    def read(self) -> None:
        """Read the list of the search, and make its best structure the incumbent if that is not better."""
        root, candidates = self._session.made.root, self._session.made.problem.candidates
        if root is not None:
            self._read = [candidates.structure(choice) for choice, _ in root.pool.best()]
        if self._read:
            best = max(self._read, key=lambda structure: self._scored(structure)[0])
            self._session.prefer(best, *self._scored(best))

    def claim(
        self, rest: float, structure: Structure, objective: float, bound: float | None, *, final: bool
    ) -> Alternatives:
        """Return the list that was read, each structure with its own score, and what is proved of it.

        The search lists by scores from the coefficients, which differ from these scores by rounding.

        Parameters
        ----------
        rest : float
            What `rest` returned, before the proof for the certificate was read.
        final : bool
            Whether the search has ended. Only then the structures are compared with each other.
        """
        made = self._session.made
        others = [other for other in self._read if other != structure]
        scored = [Alternative(structure=structure, objective=objective)]
        scored += (Alternative(structure=other, objective=self._scored(other)[0]) for other in others)
        scored.sort(key=lambda one: -one.objective)
        kept, dropped = scored[: self._asked], scored[self._asked :]
        last = kept[-1].objective
        most, full = rest, False
        if made.root is not None:
            # The list was read before the bound on the others: whatever left it meanwhile counts as another one.
            choices = [made.problem.choice(one.structure) for one in dropped]
            left_out = [choice for choice in choices if choice is not None]
            most, full = made.root.pool.others(rest, left_out), made.root.pool.full
        exhausted = most == -np.inf and not dropped and not full
        if exhausted or bound is None:
            proved = None
        else:
            # Fixings leave out only what scores less than a full list.
            proved = max(min(most, bound), last if len(kept) == self._asked else -np.inf)
        whole, error = len(kept) == self._asked, self._scored(kept[-1].structure)[1]
        tolerance = self._session.tolerance(last)
        optimal = exhausted or (whole and proved is not None and is_optimal(last, proved, error, tolerance))
        structures = [one.structure for one in kept]
        alike, equivalent = self._groups(structures) if final else ((), ())
        return Alternatives(
            asked=self._asked,
            structures=tuple(kept),
            bound=proved,
            exhausted=exhausted,
            optimal=optimal,
            same_posteriors=alike,
            markov_equivalent=equivalent,
        )

    def _groups(self, structures: list[Structure]) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
        """Return which structures have the same posteriors, and which are Markov equivalent."""
        score = self._session.problem.score
        posteriors = posteriors_of(self._dataset.merged, structures, score.smoothing, score.smoothing_towards)
        return same_posteriors(posteriors), markov_equivalent(structures)

    def _scored(self, structure: Structure) -> tuple[float, float]:
        if structure not in self._scores:
            self._scores[structure] = self._session.scored(structure, "the list of the best")
        return self._scores[structure]
