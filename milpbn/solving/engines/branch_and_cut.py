"""Branch and cut over parent sets, for scores that are sums of one term per variable and its parent set."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.events import Events
from milpbn.engine.parent_sets.climbing import OrderClimber
from milpbn.engine.parent_sets.cutting import Cutting
from milpbn.engine.parent_sets.rows import LIMIT, Row
from milpbn.engine.parent_sets.search import Search
from milpbn.engine.parent_sets.sets import ListedSets, list_sets, mask_of
from milpbn.engine.thresholds import fixing_threshold, pruning_threshold
from milpbn.heuristics.paths import repaired
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem
from milpbn.problem.rounding import CAREFUL, EPS
from milpbn.solvers.base import Capabilities, Outcome, Settings
from milpbn.solving.engines.base import CERTIFICATE_FULL, Engine, Start
from milpbn.util import stages
from milpbn.version import __version__

#: With several best structures, the neighbours of so many of the list are offered with every structure found.
EXPLORED = 10


class BranchAndCutEngine(Engine):
    """Branch and cut over parent sets (`milpbn.engine.parent_sets`); no bound rests on a solver."""

    name = "branch-and-cut"
    source = "branch and cut"
    capabilities = Capabilities(
        local_only=True, n_best=True, certificate=True, milp=False, own_bounds=True, threads=False
    )

    def version(self) -> str:
        """Return the project's own version."""
        return f"milpbn {__version__} branch and cut"

    def run(self, problem: Problem, start: Start, settings: Settings, events: Events) -> Outcome:
        """Maximise a sum of local terms; see `Engine.run`."""
        stages.enter("branch and cut")
        run = _Maximisation(problem, start, settings, events)
        return run.search(start.structure)


class _Maximisation:
    """One search: costs of the parent sets on one side, scores and structures on the other."""

    def __init__(self, problem: Problem, start: Start, settings: Settings, events: Events) -> None:
        self.problem, self.settings, self.events = problem, settings, events
        self.pool, self.proof = start.pool, start.proof
        self._cutting: Cutting | None = None
        # The second best structure may have a parent set with a better subset, and a path may need the arcs.
        self.listed: ListedSets = list_sets(
            problem.candidates,
            problem.linear + CAREFUL * problem.linear_error,
            dominated=self.pool.size > 1 or bool(problem.rules.ancestors),
        )
        if self.proof is not None:
            self.proof.begin(problem.candidates, self.listed.in_eta)

    def search(self, known: Structure | None) -> Outcome:
        """Search from a structure or without one."""
        problem, events, settings = self.problem, self.events, self.settings
        sets, budget = self.listed.sets, events.budget
        self._tell(0.0)
        climber = OrderClimber.climbed(sets, settings.seed, budget)
        margin = -fixing_threshold(0.0, problem.score_error) if settings.reduce else math.inf
        limits = [Row(LIMIT, (j,), (limit,)) for j, limit in problem.rules.max_children.items()]
        proof, several = self.proof, self.pool.size > 1
        cutting = Cutting(
            *(sets, climber, limits, self._found, margin, budget, settings.seed, proof),
            rules=problem.rules,
            several=several,
        )
        self._cutting = cutting
        if known is not None:
            cutting.offer(self._choice(known))
        if not cutting.begin():
            self.pool.rest = -math.inf
            return Outcome(infeasible=True)

        def tell(cost: float, nodes: int | None = None) -> None:
            self._tell(min(cost, cutting.best_cost), nodes)
            self.pool.rest = self._score(cost)

        def proved() -> bool:
            return cutting.bound >= cutting.cost - self._tolerance(cutting)

        cutting.run(lambda: tell(cutting.bound), proved)
        tell(cutting.bound)
        if proved():
            return Outcome(finished=True)
        if budget.over():
            return Outcome()
        if settings.root_only:
            return Outcome(limit="node")
        search = Search(cutting, lambda: self._tolerance(cutting), tell)
        search.run()
        if not search.finished:
            full = proof is not None and proof.full
            return Outcome(limit="memory", detail=CERTIFICATE_FULL) if full else Outcome()
        found = cutting.best is not None
        return Outcome(finished=found, infeasible=not found and search.bound == math.inf)

    def _tolerance(self, cutting: Cutting) -> float:
        """Return by how much the bound of a pruned node may be below the cost of use, in nats."""
        score = self.listed.best - cutting.cost
        if not np.isfinite(score):
            return 0.0
        return pruning_threshold(score, self.problem.score_error) - score

    def _tell(self, cost: float, nodes: int | None = None) -> None:
        """Report a lower bound on costs as an upper bound on scores, rounded up."""
        if nodes is not None:
            self.events.nodes(nodes)
        if np.isfinite(cost):
            self.events.bound(self._score(cost))

    def _score(self, cost: float) -> float:
        """Return the score of a cost, rounded up; -inf for an infinite cost."""
        best = self.listed.best
        return best - cost + 4 * EPS * (abs(best) + cost) if np.isfinite(cost) else -math.inf

    def _found(self, choice: NDArray[np.int64]) -> float | None:
        """Offer the structure of some parent sets if it obeys the rules; see `Cutting`."""
        problem, pool, in_eta = self.problem, self.pool, self.listed.in_eta[choice]
        structure = problem.candidates.structure(in_eta)
        if not problem.obeys(structure):
            self._offer_near(structure)
            return None
        pool.offer(in_eta, self._value(in_eta))
        self.events.offer(structure)
        if pool.size > 1:
            pool.explore(problem, self._value, EXPLORED, self.events.budget, parallel=False)
            self.events.offer(problem.candidates.structure(pool.best()[0][0]))
        return self.listed.best - pool.cutoff if pool.selective else math.inf

    def _value(self, in_eta: NDArray[np.int64]) -> float:
        """Return the score of a structure by the coefficients."""
        return math.fsum(self.problem.linear[in_eta])

    def _offer_near(self, structure: Structure) -> None:
        """Offer a structure that obeys the rules on paths in place of one that does not."""
        if self._cutting is not None and self.problem.rules.on_paths:
            other = repaired(self.problem, structure)
            if other is not None:
                self._cutting.offer(self._choice(other))

    def _choice(self, structure: Structure) -> NDArray[np.int64]:
        """Return the cheapest sets inside a structure's parent sets: another structure that costs no more.

        With constraints on ancestors the structure itself, since a path may need the other arcs.
        """
        if self.problem.rules.ancestors:
            chosen = self.problem.candidates.choice(structure)
            assert chosen is not None  # it was offered before
            return np.argsort(self.listed.in_eta)[chosen]
        sets, n = self.listed.sets, self.problem.candidates.n_variables
        choice = np.empty(n, dtype=np.int64)
        for i, parents in enumerate(structure.parents):
            outside = ~mask_of(parents, n)
            block = slice(sets.offsets[i], sets.offsets[i + 1])
            choice[i] = sets.offsets[i] + int(np.argmin((sets.masks[block] & outside).any(axis=1)))
        return choice
