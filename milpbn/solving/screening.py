"""A search over the k best parent sets of every variable: a problem over small sets, and the stage that screens."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.claims.reasons import Limit
from milpbn.data.dataset import Dataset
from milpbn.engine.root import Root
from milpbn.errors import InputError, NoIncumbentError
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Admitted, Candidates
from milpbn.problem.conflicts import resolve
from milpbn.problem.constraints import Constraints
from milpbn.problem.forecast import require_kept_room
from milpbn.problem.problem import Problem, build_problem, checked_constraints, require_usable
from milpbn.problem.ranking import Ranking, best_sets, criterion
from milpbn.problem.scores.spec import Score
from milpbn.problem.screening import Screen, Screened, small_sets
from milpbn.solving.checkpoint import SavedSearch
from milpbn.solving.state import Session, SessionEvents
from milpbn.util import stages
from milpbn.util.checkpoints import incomplete

#: Shares of the remaining time at which the bound over the small sets ends, and at which the ranking ends.
BOUND_SHARE, RANKING_SHARE = 0.15, 0.35


class Screening(NamedTuple):
    """A screening that a run has to do.

    Attributes
    ----------
    k : int
        Number of parent sets to keep per variable.
    admitted : tuple of Admitted, length V
        What rules and options admit.
    for_milp : bool
        Whether the problem is for a MILP solver, as in `build_problem`.
    deadline : float or None
        `time.monotonic` value at which the run has to stop.
    """

    k: int
    admitted: tuple[Admitted, ...]
    for_milp: bool
    deadline: float | None


def small_problem(
    dataset: Dataset,
    score: Score,
    constraints: Constraints | None,
    screen: Screen,
    *,
    merge: bool = True,
    for_milp: bool = False,
    start: Structure | None = None,
    deadline: float | None = None,
) -> tuple[Problem, Screening] | None:
    """Return the problem over the small parent sets, and the screening of the others; None if all sets are kept.

    Parameters
    ----------
    dataset, score, constraints, merge, for_milp, deadline
        As for `build_problem`.
    screen : Screen
        How many parent sets to keep per variable.
    start : Structure, optional
        The user's start, whose parent sets are kept.

    Raises
    ------
    InputError, NoIncumbentError
        As for `build_problem`.
    """
    data = dataset.merged if merge else dataset
    constraints = checked_constraints(constraints)
    rules, admitted = resolve(constraints, data.names, score)
    small = small_sets(data.names, admitted, screen.k, start)
    counts = [own.count(data.n_features) for own in admitted]
    if max(counts) <= screen.k:
        return None
    kept = [max(len(sets), min(screen.k, n)) for sets, n in zip(small.sets, counts, strict=True)]
    require_kept_room(data, score, sum(kept), for_milp=for_milp)
    require_usable(data, score, small, rules, for_milp=for_milp)
    problem = build_problem(
        dataset, score, constraints, merge=merge, for_milp=for_milp, deadline=deadline, listed=(rules, small)
    )
    return problem, Screening(screen.k, tuple(admitted), for_milp, deadline)


def screen(
    session: Session,
    screening: Screening,
    *,
    bounded: bool,
    threads: int,
) -> bool:
    """Rank the parent sets that are not small, and make the problem over the best; return whether the time sufficed.

    A time limit ends the ranking early; what is ranked by then is kept.

    Parameters
    ----------
    session : Session
        A run over the small sets.
    screening : Screening
        What to do.
    bounded : bool
        Whether the kernels of the root bound are ready. Without them, sets are ranked at the incumbent.
    threads : int
        Threads of the bound over the small sets.
    """
    problem, structure, began = session.problem, session.structure, time.monotonic()
    eta, temperature = _point(
        problem, structure, _SmallEvents(session, _until(session, began, BOUND_SHARE)), bounded, threads
    )
    if session.stopping():
        return False
    candidates, ranked = best_sets(
        Ranking(problem, eta, temperature),
        screening.admitted,
        screening.k,
        _until(session, began, RANKING_SHARE),
    )
    if session.stopping():
        return False
    try:
        made = _kept_problem(problem, candidates, screening, ranked)
    except NoIncumbentError:
        session.stop(Limit.TIME)
        return False
    session.make(problem=made, reduced=made, coefficient_seconds=session.elapsed())
    return True


def restored_problem(problem: Problem, screening: Screening, earlier: SavedSearch) -> Problem:
    """Return the problem over the parent sets that an earlier run kept; `problem` is the one over the small sets.

    Raises
    ------
    InputError
        If there are none, or one of them breaks an option or a constraint.
    NoIncumbentError
        If the deadline has passed.
    """
    candidates = earlier.candidates
    if candidates is None:
        raise incomplete(earlier.path)
    c = candidates.n_variables - 1
    pairs = zip(screening.admitted, candidates.sets, strict=True)
    if not all(own.contains(parents, c) for own, sets in pairs for parents in sets):
        raise incomplete(earlier.path)
    return _kept_problem(problem, candidates, screening, earlier.ranked)


def _kept_problem(problem: Problem, candidates: Candidates, screening: Screening, ranked: int) -> Problem:
    """Build the problem over the kept parent sets; `problem` is the one over the small sets."""
    try:
        require_usable(problem.data, problem.score, candidates, problem.rules, for_milp=screening.for_milp)
    except InputError as error:
        raise InputError(
            f"{str(error).rstrip('.')}, or keep fewer parent sets with --screen (screen)."
        ) from None
    made = build_problem(
        problem.data,
        problem.score,
        problem.constraints,
        merge=False,
        for_milp=screening.for_milp,
        deadline=screening.deadline,
        listed=(problem.rules, candidates),
    )
    total = sum(own.count(problem.data.n_features) for own in screening.admitted)
    if candidates.n_sets == total:
        return made
    return replace(made, screened=Screened(screening.k, criterion(problem), total, ranked))


def _point(
    problem: Problem, structure: Structure | None, events: SessionEvents, bounded: bool, threads: int
) -> tuple[NDArray[np.float64], float | None]:
    """Return the point at which parent sets are ranked, and its temperature (None for the default).

    It is the point of the best bound over the small sets where such a bound is computed, else the incumbent.
    """
    choice = None if structure is None else problem.choice(structure)
    if structure is None or choice is None:  # under AICc, no small structure may have a score
        return np.zeros(problem.candidates.n_sets), None
    eta = problem.indicator(choice)
    if not bounded or problem.margins is None or problem.margins.smallest:
        return eta, None
    stages.enter("bound over small parent sets")
    root = Root(problem, structure, threads=threads)
    root.run(structure, events, reduce=False)
    if root.weights is None:
        return eta, None
    eta = np.zeros_like(eta)
    eta[root.weights.parent_sets] = root.weights.eta
    return eta, root.weights.temperature


def _until(session: Session, began: float, share: float) -> Callable[[], bool]:
    """Return a function that says whether the run has to stop, or the stage, which has a share of the time left."""
    if session.deadline is None:
        return session.stopping
    end = began + share * (session.deadline - began)
    return lambda: session.stopping() or time.monotonic() >= end


class _SmallEvents(SessionEvents):
    """The events of the bound over the small parent sets, which does not hold for all structures."""

    def __init__(self, session: Session, stopping: Callable[[], bool]) -> None:
        super().__init__(session, "screening", session.bound_source, stopping)

    def bound(self, value: float) -> None:
        """Leave the bound out of the run: it does not hold for all structures."""
