"""Stochastic search: climbs from random orders, and from random changes of the best structure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.heuristics.local_search import search
from milpbn.learners.base import Control, setting
from milpbn.learners.generative.closed_form import Found
from milpbn.learners.generative.decomposable import Decomposable, problem_of
from milpbn.learners.generative.orders import best_for_order
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem
from milpbn.util.budget import Budget


@dataclass(frozen=True, kw_only=True)
class Stochastic(Decomposable):
    """Local search with random restarts, for every generative score.

    A restart draws an order of the variables, takes the best parent sets for this order (for AICc those of AIC), and
    climbs by changing one variable's parent set at a time. Afterwards the best structure is repeatedly changed at
    random and climbed from again.
    """

    name = "stochastic"
    summary = "Local search from random orders and from random changes of the best structure."
    reference = "Ihler's slides."

    restarts: int = setting(20, "Number of random orders to climb from.")
    changes: int = setting(20, "Number of random changes of the best structure to climb from.")

    def search(self, data: Dataset, control: Control, budget: Budget) -> Found:
        """Return the best structure found; the details include its score."""
        if self.restarts < 0 or self.changes < 0:
            raise InputError(
                f"restarts and changes must be at least 0, got {self.restarts} and {self.changes}."
            )
        problem = problem_of(data, self.spec(), control, budget)
        found: list[float] = []

        def record(structure: Structure) -> None:
            choice = problem.choice(structure)
            assert choice is not None
            found.append(problem.value(problem.indicator(choice)))
            control.report(f"{found[-1]:.6f} nats")

        best = search(
            problem,
            self._starts(problem, control.random_state),
            random_state=control.random_state,
            restarts=self.changes,
            stopping=budget.over,
            found=record,
        )
        assert best is not None  # the empty structure is always feasible
        return best, {"score": found[-1], "stopped_early": budget.over()}

    def _starts(self, problem: Problem, random_state: int) -> Iterator[Structure]:
        # A separate random stream, because the search draws from the seed itself.
        rng = np.random.default_rng([random_state, 1])
        yield Structure.empty(problem.candidates.names)
        weights = problem.linear - (0.0 if problem.curve is None else problem.curve.parameters)
        for _ in range(self.restarts):
            order = rng.permutation(problem.candidates.n_variables)
            yield problem.candidates.structure(best_for_order(problem.candidates, weights, order))
