"""The input of one run. Nothing in it changes during the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from milpbn.data import Dataset
from milpbn.engine.tree.dispatch import Dispatcher
from milpbn.problem.problem import Problem
from milpbn.solving.checkpoint import SavedSearch
from milpbn.solving.engines.base import Engine
from milpbn.solving.enlarging import Enlargement
from milpbn.solving.options import Options
from milpbn.util.budget import Budget
from milpbn.util.clock import ALL_SAMPLES_SHARE, PARAMETERS_SHARE


@dataclass(frozen=True)
class Job:
    """One search for the best structure of a problem.

    If there are `steps`, the problem is over fewer parent sets, and they enlarge it to the one that is maximised.
    `version` is what `Engine.version` returned, and `described` what `milpbn.solving.checkpoint.describe` did (empty
    without a checkpoint). `budget` is that of the whole run; `earlier` is a run from which this one goes on, and
    `dispatcher` is what `Engine.dispatcher` gave.
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
    dispatcher: Dispatcher | None = None

    @property
    def continues_root(self) -> bool:
        """Whether the engine branches from the root bound."""
        return self.engine.capabilities.continues_root

    def search_budget(self, *, on_all: bool = False) -> Budget:
        """Return the budget of the search: that of the run less the time that is kept for later work.

        Time is kept for parameters that are fitted and, after a search over a subset, for the bound over all samples;
        with `on_all`, which asks for the budget of that bound, only for the parameters.
        """
        options, seconds = self.options, self.options.time_limit
        if seconds is not None:
            later = 0.0 if options.method == "ml" else PARAMETERS_SHARE
            later += 0.0 if on_all or self.problem.sample_weights is None else ALL_SAMPLES_SHARE
            seconds *= 1.0 - later
        return Budget(seconds, began=self.budget.began, cancelled=options.interrupted, whole=self.budget)
