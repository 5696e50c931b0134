"""Branch and cut over parent sets, for scores that are sums of one term per variable and its parent set.

Where few variables can be on cycles, dynamic programming over their subsets proves an optimum sooner. Its time can be
forecast, so it replaces further rounds of the root once these have taken about as long, or else the tree.
"""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.events import Events
from milpbn.engine.parent_sets.climbing import OrderClimber, greedy_order
from milpbn.engine.parent_sets.cutting import Cutting
from milpbn.engine.parent_sets.rows import LIMIT, Row
from milpbn.engine.parent_sets.saved_state import CutState, restore_cutting, restore_search, state_of
from milpbn.engine.parent_sets.search import Search
from milpbn.engine.parent_sets.sets import WORD, ListedSets, list_sets, mask_of
from milpbn.engine.parent_sets.subsets import SubsetProgram
from milpbn.engine.thresholds import fixing_threshold, pruning_threshold
from milpbn.heuristics.paths import repaired
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem
from milpbn.problem.rounding import CAREFUL, EPS
from milpbn.solvers.base import Capabilities, Outcome, Settings
from milpbn.solving.engines.base import BY_SUBSETS, CERTIFICATE_FULL, Engine, Start
from milpbn.util import stages
from milpbn.util.memory import available_memory
from milpbn.util.saved_arrays import SavedArrays
from milpbn.util.threads import threads_used
from milpbn.version import __version__

#: With several best structures, the neighbours of so many of the list are offered with every structure found.
EXPLORED = 10
#: About the seconds of a round of the root; most seconds, and share of the free memory, of dynamic programming.
ROUND_SECONDS, MOST_SECONDS, MOST_MEMORY = 0.05, 20.0, 0.5
#: Prefix of the pool's arrays in a saved state.
POOL = "pool."


class BranchAndCutEngine(Engine):
    """Branch and cut over parent sets (`milpbn.engine.parent_sets`); no bound rests on a solver."""

    name = "branch-and-cut"
    source = "branch and cut"
    capabilities = Capabilities(
        local_only=True, n_best=True, certificate=True, milp=False, own_bounds=True, resumes=True
    )

    def version(self) -> str:
        """Return the project's own version."""
        return f"milpbn {__version__} branch and cut"

    def run(self, problem: Problem, start: Start, settings: Settings, events: Events) -> Outcome:
        """Maximise a sum of local terms; see `Engine.run`."""
        stages.enter("branch and cut")
        with threads_used(settings.threads):
            return _Maximisation(problem, start, settings, events).search(start.structure, start.saved)


class _Maximisation:
    """One search: costs of the parent sets on one side, scores and structures on the other."""

    def __init__(self, problem: Problem, start: Start, settings: Settings, events: Events) -> None:
        self.problem, self.settings, self.events = problem, settings, events
        self.pool, self.proof = start.pool, start.proof
        self._cutting: Cutting | None = None
        self._search: Search | None = None
        self._state: CutState | None = None
        # The second best structure may have a parent set with a better subset, and a path may need the arcs.
        self.listed: ListedSets = list_sets(
            problem.candidates,
            problem.linear + CAREFUL * problem.linear_error,
            dominated=self.pool.size > 1 or bool(problem.rules.ancestors),
        )
        if self.proof is not None:
            self.proof.begin(problem.candidates, self.listed.in_eta)

    def search(self, known: Structure | None, saved: SavedArrays | None) -> Outcome:
        """Search from a structure or without one, or go on from a saved state."""
        events = self.events
        self._tell(0.0)
        if saved is not None:
            self.pool.restore(saved.under(POOL), self.problem)
        cutting = self._cutting = self._root(saved)
        if known is not None:
            cutting.offer(self._choice(known))
        in_tree = saved is not None and restore_cutting(saved, cutting, self.listed.in_eta)
        rounds = count(2)
        program = None if in_tree else self._program(1)
        if saved is None and program is None and not cutting.begin():
            self.pool.rest = -math.inf
            return Outcome(infeasible=True)
        events.resumable(lambda: self._state)

        def tell(cost: float, nodes: int | None = None) -> None:
            self.pool.rest = self._score(cost)
            # Before the bound is told, which the proof of a saved state has to have.
            if self.settings.resumable:
                self._keep()
            self._tell(min(cost, cutting.best_cost), nodes)

        def proved() -> bool:
            return cutting.bound >= cutting.cutoff - self._tolerance(cutting)

        if not in_tree:
            if program is None:
                cutting.run(
                    lambda: tell(cutting.bound), lambda: proved() or self._program(next(rounds)) is not None
                )
                program = None if proved() else self._program()
            if program is not None:
                self._solve_by_subsets(cutting, program)
            tell(cutting.bound)
            if cutting.bound == math.inf:
                return Outcome(infeasible=True)
            if proved():
                return Outcome(finished=True, proved_by="" if program is None else BY_SUBSETS)
            if events.budget.over():
                return Outcome()
            if self.settings.root_only:
                return Outcome(limit="node")
        search = self._search = Search(cutting, lambda: self._tolerance(cutting), tell)
        if saved is not None and in_tree:
            restore_search(saved, search)
        else:
            search.begin()
        if saved is not None:
            saved.drop()
        search.run(self.settings.threads)
        if not search.open.finished:
            full = self.proof is not None and self.proof.full
            return Outcome(limit="memory", detail=CERTIFICATE_FULL) if full else Outcome()
        found = cutting.best is not None
        return Outcome(finished=found, infeasible=not found and search.open.bound == math.inf)

    def _root(self, saved: SavedArrays | None) -> Cutting:
        """Return the root with a first structure: that of climbing, or the best one of a saved state."""
        problem, settings, several = self.problem, self.settings, self.pool.size > 1
        sets, budget = self.listed.sets, self.events.budget
        margin = -fixing_threshold(0.0, problem.score_error) if settings.reduce else math.inf
        limits = [Row(LIMIT, (j,), (limit,)) for j, limit in problem.rules.max_children.items()]
        climber = OrderClimber(sets, settings.seed)
        if saved is None:
            climber = OrderClimber.climbed(sets, settings.seed, budget)
        cutting = Cutting(
            *(sets, climber, limits, self._found, margin, budget, settings.seed, self.proof),
            rules=problem.rules,
            several=several,
        )
        if saved is not None and len(self.pool):
            best = self._choice(problem.candidates.structure(self.pool.best()[0][0]))
            climber.start(greedy_order(sets, np.isin(np.arange(sets.n_sets), best).astype(np.float64)))
            cutting.offer(best)
        return cutting

    def _program(self, rounds: float = math.inf) -> SubsetProgram | None:
        """Return the dynamic program of the allowed parent sets if it takes no longer than so many rounds of the root.

        None also if it would take too much, or cannot give what is wanted.
        """
        cutting, rules = self._cutting, self.problem.rules
        assert cutting is not None
        excluded = self.pool.size > 1 or rules.max_children or rules.on_paths
        if excluded or self.proof is not None or cutting.sets.n_variables > WORD:
            return None
        program, free = SubsetProgram(cutting.sets, cutting.allowed), available_memory()
        most = min(ROUND_SECONDS * rounds, MOST_SECONDS, self.events.budget.left())
        fits = free is None or program.nbytes <= MOST_MEMORY * free
        return program if fits and program.seconds <= most else None

    def _solve_by_subsets(self, cutting: Cutting, program: SubsetProgram) -> None:
        """Find a cheapest structure of the allowed parent sets, and bound all costs by it."""
        solution = program.solve(self.events.budget, parallel=self.settings.threads > 1)
        if solution is not None:
            if solution.bound < math.inf:
                cutting.offer(solution.choice)
            # Structures with parent sets that were fixed before cost more than the cutoff.
            cutting.bound = max(cutting.bound, min(solution.bound, cutting.cutoff))

    def _keep(self) -> None:
        """Keep the state of this moment, between two rounds or nodes, for a checkpoint."""
        assert self._cutting is not None
        pool, mark = self.pool, self.pool.mark()

        def best() -> dict[str, NDArray[Any]]:
            return {POOL + name: array for name, array in pool.state(mark).items()}

        self._state = state_of(self._cutting, self._search, self.listed.in_eta, best)

    def _tolerance(self, cutting: Cutting) -> float:
        """Return by how much the bound of a pruned node may be below the cutoff, in nats."""
        score = self.listed.best - cutting.cutoff
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
            # If it leaves the list, the bound on all others counts it with its rounding errors, as a verifier does.
            pool.leaf(in_eta, self._score(float(self.listed.sets.costs[choice].sum())))
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
