"""The recipes as learners on raw columns: what `milpbn solve --recipe` makes of the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import NoIncumbentError
from milpbn.learners.base import Control, Learned, Learner, solver_limits
from milpbn.learners.raw_rows import raw_data
from milpbn.network.predictor import Predictor, Source
from milpbn.solving.selection import solve_selected
from milpbn.util.budget import Budget


@dataclass(frozen=True, eq=False, repr=False)
class RecipeClassifier(Predictor):
    """A classifier that reads rows from the table; its cuts are not those of `variables`."""

    variables: tuple[Variable, ...]
    classifier: Any

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return int(self.classifier.n_parameters)

    def predict_codes(self, source: Source) -> NDArray[np.intp]:
        """Return the index of each sample's class, shape (M,)."""
        found: NDArray[np.intp] = self.predict_proba(source).argmax(axis=1)
        return found

    def predict_proba(self, source: Source) -> NDArray[np.float64]:
        """Return P(c | z_m), shape (M, C)."""
        found = self.classifier.predict_proba(raw_data(source).part)
        return found[:, [self.classifier.classes.index(label) for label in self.classes]]


class RecipeLearner(Learner):
    """Base of the recipes: choices on the training rows, the search, and parameters, all within the time limit."""

    reference = "milpbn solve --recipe."

    def _fit(self, data: Dataset, control: Control, budget: Budget) -> Learned:
        """Run the recipe; the details have the gap of its last search."""
        result = solve_selected(
            raw_data(data).part,
            recipe=self.name,
            **solver_limits(budget),
            threads=control.n_jobs,
            random_state=control.random_state,
            verbose=False,
        )
        if result.classifier is None:
            raise NoIncumbentError(
                "nothing was found within the time limit; allow more with --time-limit (time_limit)"
            )
        details = {"gap": result.gap.absolute}
        return Learned(
            predictor=RecipeClassifier(data.variables, result.classifier), structure=None, details=details
        )


@dataclass(frozen=True, kw_only=True)
class AccurateLearner(RecipeLearner):
    """Tables on fine cuts around an exact structure."""

    name = "accurate"
    summary = "milpbn solve --recipe accurate: fine tables, fitted around an exact structure."


@dataclass(frozen=True, kw_only=True)
class ReadableLearner(RecipeLearner):
    """One network on coarse cuts."""

    name = "readable"
    summary = "milpbn solve --recipe readable: one network on coarse cuts."
