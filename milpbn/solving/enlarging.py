"""Steps from a problem over few parent sets to one over more of them, each made from a search over the few."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.root import Root
from milpbn.errors import InputError, NoIncumbentError
from milpbn.heuristics.local_search import search
from milpbn.heuristics.starts import plain_starts
from milpbn.network.cpt import require_match
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Admitted, Candidates
from milpbn.problem.problem import Problem, build_problem, require_usable
from milpbn.problem.ranking import Ranking, best_sets, criterion
from milpbn.problem.screening import Screened
from milpbn.solving.options import Options
from milpbn.solving.state import BRIEF_SECONDS, Session
from milpbn.solving.warm_up import Kernels
from milpbn.util import stages
from milpbn.util.budget import Budget

#: Shares of the remaining time at which the bound over the small sets ends, and at which the ranking ends.
BOUND_SHARE, RANKING_SHARE = 0.15, 0.35
#: Time for local search over the small parent sets, as a share of the expected time to build the larger problem.
SMALL_SETS_SHARE = 0.2


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


class Enlargement(ABC):
    """The next problem of a run, over more parent sets than the present one."""

    #: Whether the search over the present parent sets needs the kernels of the root bound.
    bounds: ClassVar[bool] = False

    @abstractmethod
    def enlarge(self, session: Session, kernels: Kernels, options: Options, budget: Budget) -> bool:
        """Search over the present parent sets, then give the session the next problem.

        Return whether the time sufficed. If not, the run has to stop. `budget` is that for building the problem.
        """

    @staticmethod
    def follow(session: Session, make: Callable[[], Problem]) -> bool:
        """Build the next problem, and give it to the session; return whether the time sufficed."""
        try:
            made = make()
        except NoIncumbentError:
            return False
        session.produce(problem=made, reduced=made, coefficient_seconds=session.elapsed())
        return True


@dataclass(frozen=True)
class LargerSets(Enlargement):
    """The same problem over larger parent sets, where the tables of all take long.

    A local search comes first, so that there is a good structure even if the time limit comes soon.

    `make` builds the problem, which is expected to take so many `seconds`; it has `n_sets` parent sets.
    """

    make: Callable[[], Problem]
    seconds: float
    n_sets: int

    def enlarge(self, session: Session, kernels: Kernels, options: Options, budget: Budget) -> bool:
        """Run local search over the present parent sets, which needs no compiled kernels, then build the problem."""
        problem, start = session.problem, options.start
        if start is not None:
            require_match(problem.data, start)
            start = problem.adopted(start)
            start = start if problem.obeys(start) else None
        starts = offer(session, plain_starts(problem, start))
        climb(session, starts, options.random_state, most=SMALL_SETS_SHARE * self.seconds)
        return not session.budget.stop() and self.follow(session, self.make)


@dataclass(frozen=True)
class BestSets(Enlargement):
    """The problem over the best parent sets of every variable; the present one is over the small ones.

    A time limit ends the ranking early; what is ranked by then is kept.

    `k` is the number of parent sets to keep per variable, and `admitted`, of length V, what rules and options admit.
    """

    k: int
    admitted: tuple[Admitted, ...]
    for_milp: bool

    bounds: ClassVar[bool] = True

    def enlarge(self, session: Session, kernels: Kernels, options: Options, budget: Budget) -> bool:
        """Search and bound over the small sets, rank the others there, and build the problem over the best."""
        building, budget = budget, session.budget
        starts = offer(session, plain_starts(session.problem, options.start))
        stages.enter("kernels")
        if budget.stop() or not kernels.ready("search"):
            return False
        climb(session, starts, options.random_state)
        if budget.stop():
            return False
        bounded = kernels.ready("root")
        bounding, ranking = budget.share(BOUND_SHARE), budget.share(RANKING_SHARE)
        problem = session.problem
        eta, temperature = _point(problem, session, bounding, bounded, options.n_threads)
        if budget.stop():
            return False
        ranked = Ranking(problem, eta, temperature)
        candidates, count = best_sets(ranked, self.admitted, self.k, ranking.over)
        return not budget.stop() and self.follow(
            session, lambda: self.built(problem, candidates, count, building)
        )

    def built(self, problem: Problem, candidates: Candidates, ranked: int, budget: Budget) -> Problem:
        """Return the problem over kept parent sets, from the one over the small sets.

        `ranked` is the number of parent sets that were ranked. Raise InputError if their tables are too large. Raise
        NoIncumbentError if the budget is used up.
        """
        try:
            require_usable(problem.data, problem.score, candidates, problem.rules, for_milp=self.for_milp)
        except InputError as error:
            raise InputError(
                f"{str(error).rstrip('.')}, or keep fewer parent sets with --screen (screen)."
            ) from None
        made = build_problem(
            problem.data,
            problem.score,
            problem.constraints,
            merge=False,
            for_milp=self.for_milp,
            budget=budget,
            listed=(problem.rules, candidates),
        )
        total = sum(own.count(problem.data.n_features) for own in self.admitted)
        if candidates.n_sets == total:
            return made
        return replace(made, screened=Screened(self.k, criterion(problem), total, ranked))


def _point(
    problem: Problem, session: Session, budget: Budget, bounded: bool, threads: int
) -> tuple[NDArray[np.float64], float | None]:
    """Return the point at which parent sets are ranked, and its temperature (None for the default).

    It is the point of the best bound over the small sets where such a bound is computed (`bounded`: its kernels are
    ready), else the incumbent.
    """
    structure = session.structure
    choice = None if structure is None else problem.choice(structure)
    if structure is None or choice is None:  # under AICc, no small structure may have a score
        return np.zeros(problem.candidates.n_sets), None
    eta = problem.indicator(choice)
    if not bounded or problem.margins is None or problem.margins.smallest:
        return eta, None
    stages.enter("bound over small parent sets")
    root = Root(problem, structure, threads=threads)
    # The bound does not hold for all structures.
    root.run(structure, session.events("screening", None, budget), reduce=False)
    if root.weights is None:
        return eta, None
    eta = np.zeros_like(eta)
    eta[root.weights.parent_sets] = root.weights.eta
    return eta, root.weights.temperature
