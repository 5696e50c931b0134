"""Exact networks for MDL, AIC, AICc, BDeu and the likelihood (Peharz & Pernkopf 2012, end of section 4)."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.data.dataset import Dataset
from milpbn.errors import NoIncumbentError
from milpbn.learners.base import Control, setting, solver_limits
from milpbn.learners.generative.closed_form import Found
from milpbn.learners.generative.decomposable import Decomposable
from milpbn.solving.api import solve
from milpbn.util.budget import Budget


@dataclass(frozen=True, kw_only=True)
class Exact(Decomposable):
    """The network with the best generative score and a proven bound, found by `milpbn.solve`."""

    name = "exact"
    summary = "Network with the best generative score, proven by milpbn solve."
    reference = "Peharz & Pernkopf 2012, section 4."

    backend: str = setting("auto", "Solver, as for milpbn solve.", takes="backend")

    def search(self, data: Dataset, control: Control, budget: Budget) -> Found:
        """Return the optimum, or the incumbent if the time limit or the user ends the search."""
        result = solve(
            data,
            self.spec(),
            backend=self.backend,
            **solver_limits(budget),
            threads=control.n_jobs,
            random_state=control.random_state,
            verbose=control.verbose,
        )
        if result.structure is None:
            raise NoIncumbentError("No network was found within the time limit; raise it.")
        return result.structure, {
            "score": result.objective,
            "bound": result.bound,
            "optimal": result.optimal,
            "limit": result.limit,
            "stopped_early": result.limit is not None,
        }
