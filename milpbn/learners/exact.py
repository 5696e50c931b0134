"""Exact generative networks: MDL, AIC, AICc, BDeu and likelihood through the MILP (P12, end of section 4)."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.data.dataset import Dataset
from milpbn.errors import NoIncumbentError
from milpbn.learners.base import Control, setting
from milpbn.learners.closed_form import Found
from milpbn.learners.decomposable import Decomposable


@dataclass(frozen=True, kw_only=True)
class Exact(Decomposable):
    """The network of the best generative score, with a proven bound: `milpbn.solve` as a learner.

    Attributes
    ----------
    backend : str
        Solver, as for `milpbn.solve`.
    """

    name = "exact"
    summary = "Exact network of a generative score, through the MILP."
    reference = "Peharz & Pernkopf 2012, section 4."

    backend: str = setting("auto", "Solver, as for milpbn solve.")

    def search(self, data: Dataset, control: Control) -> Found:
        """Return the incumbent when the gap is closed or the time is over."""
        from milpbn.solving import solve  # whose first incumbent is one of these learners' structures

        result = solve(
            data,
            self.spec(),
            backend=self.backend,
            acyclicity="cluster",
            time_limit=control.time_limit,
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
