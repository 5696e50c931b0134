"""First structures and local search, the stages that several parts of a run begin with."""

from __future__ import annotations

from collections.abc import Iterable

from milpbn.heuristics.local_search import search
from milpbn.network.structure import Structure
from milpbn.solving.state import BRIEF_SECONDS, Session
from milpbn.util import stages


def offer(session: Session, starts: Iterable[Structure]) -> list[Structure]:
    """Offer each structure to the session as soon as it is found, and return them all."""
    stages.enter("first structures")
    offered = []
    for structure in starts:
        session.offer(structure, "start")
        offered.append(structure)
        if session.budget.stop():
            break
    return offered


def climb(
    session: Session,
    starts: list[Structure],
    random_state: int,
    *,
    restarts: int = 0,
    most: float = BRIEF_SECONDS,
) -> None:
    """Run local search from some structures for at most `most` seconds, and offer what it finds."""
    stages.enter("local search")
    search(
        session.problem,
        starts,
        random_state=random_state,
        restarts=restarts,
        stopping=session.brief(most).over,
        found=session.events("local search").offer,
    )
