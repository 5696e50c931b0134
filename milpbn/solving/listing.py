"""What a result claims of structures, and the list of the best ones, made from a search's pool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from milpbn.claims.alternatives import Alternative, Alternatives
from milpbn.claims.gap import is_optimal
from milpbn.claims.reasons import Reason
from milpbn.data import Dataset
from milpbn.network.equivalence import markov_equivalent, posteriors_of, same_posteriors
from milpbn.network.structure import Structure
from milpbn.solving.options import Options
from milpbn.solving.state import Session

#: Scoring, checking and comparing a structure takes this many times as long as scoring it from the data alone. The
#: list may take this share of a time limit.
SCORINGS, MOST_RESERVED = 3.0, 0.5


class Listing:
    """Makes the claim about the best structures that are asked for, as often as it is needed.

    Posteriors are compared if there is a data set with a class.
    """

    def __init__(self, session: Session, dataset: Dataset | None, asked: int, within: float | None) -> None:
        self._session, self._dataset, self._asked, self._within = session, dataset, asked, within
        #: The structures that were scored so far.
        self._scores: dict[Structure, tuple[float, float]] = {}
        #: The structures that the search listed when the list was read.
        self._read: list[Structure] = []

    @classmethod
    def of(cls, session: Session, options: Options, dataset: Dataset | None = None) -> Listing | None:
        """Return what lists the structures that the options ask for; None if it is the best one only."""
        most = options.most_listed
        return cls(session, dataset, most, options.within) if most > 1 else None

    def keep_time(self) -> None:
        """Have the search stop early enough for scoring and comparing the list within the time limit."""
        session, budget = self._session, self._session.budget
        if budget.deadline is not None:
            listed = len(session.pool) or self._asked
            most = MOST_RESERVED * (budget.deadline - session.started)
            budget.reserve = min(most, SCORINGS * session.scoring_seconds / max(1, session.n_scored) * listed)

    def read(self) -> None:
        """Read the list of the search, and make its best structure the incumbent if that is not better."""
        candidates, listed = self._session.products.problem.candidates, self._session.pool.best()
        if listed:
            self._read = [candidates.structure(choice) for choice, _ in listed]
        if self._read:
            best = max(self._read, key=lambda structure: self._scored(structure)[0])
            self._session.prefer(best, *self._scored(best))

    def claim(
        self, rest: float, structure: Structure, objective: float, bound: float | None, *, final: bool
    ) -> Alternatives:
        """Return the list that was read, each structure with its own score, and what is proved of it.

        The search lists by scores from the coefficients, which differ from these scores by rounding.

        `rest` was `Pool.rest` before the proof for the certificate was read. Only at the end (`final`) are the
        structures compared with each other.
        """
        problem, pool = self._session.products.problem, self._session.pool
        others = [other for other in self._read if other != structure]
        scored = [Alternative(structure=structure, objective=objective)]
        scored += (Alternative(structure=other, objective=self._scored(other)[0]) for other in others)
        scored.sort(key=lambda one: -one.objective)
        kept, dropped = scored[: self._asked], scored[self._asked :]
        # The list was read before the bound on the others: whatever left it meanwhile counts as another one.
        choices = [problem.choice(one.structure) for one in dropped]
        most = pool.others(rest, [choice for choice in choices if choice is not None])
        exhausted = most == -np.inf and not dropped and not pool.selective
        claim = Alternatives(
            asked=self._asked,
            within=self._within,
            structures=tuple(kept),
            bound=None,
            exhausted=exhausted,
            optimal=exhausted,
        )
        cutoff = claim.cutoff
        if not exhausted and bound is not None:
            # Fixings leave out only what scores less than the list takes.
            proved = max(min(most, bound), -np.inf if cutoff is None else cutoff)
            last = kept[-1]
            error, tolerance = self._scored(last.structure)[1], self._session.tolerance(last.objective)
            optimal = cutoff is not None and is_optimal(cutoff, proved, error, tolerance)
            if len(kept) < self._asked:
                # A list by distance also has every structure at the distance itself: the others are below it.
                optimal = optimal and is_optimal(pool.cutoff, min(most, bound), error, tolerance)
            claim = replace(claim, bound=proved, optimal=optimal)
        return self._compared(claim) if final else claim

    def _compared(self, claim: Alternatives) -> Alternatives:
        """Return a claim that says which structures have the same posteriors, and which are Markov equivalent."""
        structures, data = [one.structure for one in claim.structures], self._dataset
        if data is not None and data.has_class:
            score = self._session.problem.score
            posteriors = posteriors_of(data.merged, structures, score.smoothing, score.smoothing_towards)
            claim = replace(claim, same_posteriors=same_posteriors(posteriors))
        return replace(claim, markov_equivalent=markov_equivalent(structures))

    def _scored(self, structure: Structure) -> tuple[float, float]:
        if structure not in self._scores:
            self._scores[structure] = self._session.scored(structure, "the list of the best")
        return self._scores[structure]


def claims_of(
    session: Session, listing: Listing | None, bound: float | None, rest: float, *, final: bool
) -> dict[str, Any]:
    """Return the fields of a result that are about structures, by name; the search may be running meanwhile.

    `bound` and `rest`, the session's best bound and `Pool.rest`, are read by the caller.
    """
    if listing is not None:
        listing.read()
    structure, objective, _, trace = session.snapshot()
    if bound is not None and objective is not None:
        bound = max(bound, objective)
    reason, limit = session.how_ended(objective, bound) if final else (Reason.RUNNING, None)
    alternatives = None
    if listing is not None and structure is not None and objective is not None:
        alternatives = listing.claim(rest, structure, objective, bound, final=final)
    return {
        "reason": reason,
        "limit": limit,
        "structure": structure,
        "objective": objective,
        "bound": bound,
        "tolerance": None if objective is None else session.tolerance(objective),
        # No point of the trace may be below `bound`, although another thread may have proved more since `bound` was
        # read, and a solver's bound may have been lifted to an incumbent.
        "trace": tuple((t, z, None if bound is None or b is None else max(b, bound)) for t, z, b in trace),
        "nodes": session.node_count,
        "alternatives": alternatives,
    }
