"""The input of one run. Nothing in it changes during the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from milpbn.data import Dataset
from milpbn.problem.problem import Problem
from milpbn.solving.checkpoint import SavedSearch
from milpbn.solving.engines.base import Engine
from milpbn.solving.enlarging import Enlargement
from milpbn.solving.options import Options
from milpbn.util.budget import Budget


@dataclass(frozen=True)
class Job:
    """One search for the best structure of a problem.

    Attributes
    ----------
    problem : Problem
        What to maximise, with its coefficients; or, if there are `steps`, the same over fewer parent sets.
    dataset : Dataset
        The training data of the problem, for the classifier's parameters.
    options : Options
        How to search.
    engine : Engine
        The engine that searches.
    version : str
        Return value of `Engine.version`.
    budget : Budget
        Time and memory of the whole run.
    steps : tuple of Enlargement
        Make the problem to maximise from the one over fewer parent sets.
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
    budget: Budget
    steps: tuple[Enlargement, ...] = ()
    described: Mapping[str, Any] = field(default_factory=dict)
    earlier: SavedSearch | None = None

    @property
    def continues_root(self) -> bool:
        """Whether the engine branches from the root bound."""
        return self.engine.capabilities.continues_root

    def search_budget(self) -> Budget:
        """Return the budget of the search: a part of the run's, which leaves time for the parameters."""
        end = self.options.search_deadline(self.budget.began)
        seconds = None if end is None else end - self.budget.began
        return Budget(seconds, began=self.budget.began, cancelled=self.options.interrupted, whole=self.budget)
