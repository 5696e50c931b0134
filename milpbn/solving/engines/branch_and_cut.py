"""Branch and cut over parent sets, for scores that are sums of one term per variable and its parent set."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.multiplier_proof import MultiplierProof
from milpbn.engine.events import Events
from milpbn.engine.parent_sets.climbing import OrderClimber, greedy_order
from milpbn.engine.parent_sets.cutting import FIRST_PERTURBATIONS, Cutting
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

#: Problems of more variables get fewer perturbations before the first linear program.
USUAL = 40


class BranchAndCutEngine(Engine):
    """Branch and cut over parent sets (`milpbn.engine.parent_sets`); no bound rests on a solver."""

    name = "branch-and-cut"
    source = "branch and cut"
    capabilities = Capabilities(local_only=True, certificate=True, milp=False, own_bounds=True, threads=False)

    def version(self) -> str:
        """Return the project's own version."""
        return f"milpbn {__version__} branch and cut"

    def run(self, problem: Problem, start: Start, settings: Settings, events: Events) -> Outcome:
        """Maximise a sum of local terms; see `Engine.run`."""
        stages.enter("branch and cut")
        run = _Maximisation(problem, settings, events, start.proof)
        return run.search(start.structure)


class _Maximisation:
    """One search: costs of the parent sets on one side, scores and structures on the other."""

    def __init__(
        self, problem: Problem, settings: Settings, events: Events, proof: MultiplierProof | None
    ) -> None:
        self.problem, self.settings, self.events, self.proof = problem, settings, events, proof
        self._cutting: Cutting | None = None
        self.listed: ListedSets = list_sets(
            problem.candidates,
            problem.linear + CAREFUL * problem.linear_error,
            dominated=bool(problem.rules.ancestors),  # a path may need the arcs
        )
        if proof is not None:
            proof.begin(problem.candidates, self.listed.in_eta)

    def search(self, known: Structure | None) -> Outcome:
        """Search from a structure or without one."""
        problem, events, settings = self.problem, self.events, self.settings
        sets, budget = self.listed.sets, events.budget
        climber = OrderClimber(sets, settings.seed)
        climber.start(greedy_order(sets, np.ones(sets.n_sets)))
        self._tell(0.0)
        climber.perturb(FIRST_PERTURBATIONS * USUAL // max(USUAL, sets.n_variables), budget)
        margin = -fixing_threshold(0.0, problem.score_error) if settings.reduce else math.inf
        limits = [Row(LIMIT, (j,), (limit,)) for j, limit in problem.rules.max_children.items()]
        cutting = Cutting(
            sets, climber, limits, self._found, margin, budget, settings.seed, self.proof, rules=problem.rules
        )
        self._cutting = cutting
        if known is not None:
            cutting.offer(self._choice(known))
        if not cutting.begin():
            return Outcome(infeasible=True)

        def proved() -> bool:
            return cutting.bound >= cutting.cost - self._tolerance(cutting)

        cutting.run(lambda: self._tell(cutting.bound), proved)
        self._tell(cutting.bound)
        if proved():
            return Outcome(finished=True)
        if budget.over():
            return Outcome()
        search = Search(cutting, lambda: self._tolerance(cutting), self._tell)
        search.run()
        if not search.finished:
            full = self.proof is not None and self.proof.full
            return Outcome(limit="memory", detail=CERTIFICATE_FULL) if full else Outcome()
        return Outcome(finished=cutting.best is not None, infeasible=search.bound == math.inf)

    def _tolerance(self, cutting: Cutting) -> float:
        """Return by how much a bound may be below the best cost and still prove it, in nats."""
        score = self.listed.best - cutting.cost
        if not np.isfinite(score):
            return 0.0
        return pruning_threshold(score, self.problem.score_error) - score

    def _tell(self, cost: float, nodes: int | None = None) -> None:
        """Report a lower bound on costs as an upper bound on scores, rounded up."""
        if nodes is not None:
            self.events.nodes(nodes)
        if np.isfinite(cost):
            best = self.listed.best
            self.events.bound(best - cost + 4 * EPS * (abs(best) + cost))

    def _found(self, choice: NDArray[np.int64]) -> bool:
        """Offer the structure of some parent sets if it obeys the rules; return whether it does."""
        candidates = self.problem.candidates
        structure = candidates.structure(self.listed.in_eta[choice])
        if not self.problem.obeys(structure):
            self._offer_near(structure)
            return False
        self.events.offer(structure)
        return True

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
