"""The input of one run. Nothing in it changes during the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from milpbn.data import Dataset
from milpbn.problem.problem import Problem
from milpbn.solving.checkpoint import SavedSearch
from milpbn.solving.engines.base import Engine
from milpbn.solving.options import Options
from milpbn.solving.screening import Screening
from milpbn.solving.state import Session

#: Each stage before the engine may take this share of the remaining time, and at most this many seconds.
BRIEF_SHARE, BRIEF_SECONDS = 0.1, 20.0


class LargerProblem(NamedTuple):
    """The problem over more parent sets, not built yet.

    Attributes
    ----------
    make : callable
        Builds the problem.
    seconds : float
        Seconds that this is expected to take.
    n_sets : int
        Number of its parent sets.
    """

    make: Callable[[], Problem]
    seconds: float
    n_sets: int


@dataclass(frozen=True)
class Job:
    """One search for the best structure of a problem.

    Attributes
    ----------
    problem : Problem
        What to maximise, with its coefficients; or, if there are `larger` problems, the same over small parent sets.
    dataset : Dataset
        The training data of the problem, for the classifier's parameters.
    options : Options
        How to search.
    engine : Engine
        The engine that searches.
    version : str
        Return value of `Engine.version`.
    started : float
        `time.monotonic` value from which the time limit counts.
    larger : tuple of LargerProblem
        The same over larger and larger parent sets, where the tables of all take long; the last one is the problem to
        maximise. A local search over the smaller ones comes first, so that there is a good structure even if the time
        limit comes soon. If it comes before the last one is built, the bound is `loose_bound`, which needs no
        coefficients.
    screening : Screening or None
        How to choose the parent sets of the problem, if `problem` is over the small ones of a screening only.
    described : mapping
        What a search must have in common with this one to go on from its checkpoint; empty without a checkpoint.
    earlier : SavedSearch or None
        The run from which this one goes on; None to begin anew.
    """

    problem: Problem
    dataset: Dataset
    options: Options
    engine: Engine
    version: str
    started: float
    larger: tuple[LargerProblem, ...] = ()
    screening: Screening | None = None
    described: Mapping[str, Any] = field(default_factory=dict)
    earlier: SavedSearch | None = None

    def brief(self, session: Session, most: float = BRIEF_SECONDS) -> Callable[[], bool]:
        """Return a function that tells a stage to stop after a share of the remaining time, or `most` seconds.

        Without a time limit, and with an engine that continues from the root, it tells a stage to stop only when the
        run stops. Stages then end by themselves, and the run is deterministic.
        """
        deadline = session.deadline
        if deadline is None and self.engine.capabilities.continues_root and not self.options.root_only:
            return session.stopping
        now = time.monotonic()
        end = now + most
        if deadline is not None:
            end = min(end, now + BRIEF_SHARE * max(0.0, deadline - now))
        return lambda: session.stopping() or time.monotonic() > end
