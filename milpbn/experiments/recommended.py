"""The recommended settings of the project as methods of the experiments."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from milpbn.claims.reasons import Limit
from milpbn.data.encodings import Encodings
from milpbn.errors import NoIncumbentError
from milpbn.experiments.base import Figures, Method, MethodInput
from milpbn.experiments.networks import described
from milpbn.experiments.protocol import Part
from milpbn.problem.scores.options import PAPER
from milpbn.problem.scores.spec import Score
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.recipes import Recipe
from milpbn.solving.selection import maximise_selected


@dataclass(frozen=True, kw_only=True)
class RecommendedMethod(Method):
    """A grid of options, from which held-out rows of the training rows choose.

    Grid and `by` are those of a `milpbn.solving.recipes.Recipe`, `average` is that of a `milpbn.solving.grid.Grid`. The
    seconds are those of everything together.
    """

    title: str
    grid: str
    by: str
    seconds: float
    average: int = 1

    @classmethod
    def of(cls, title: str, recipe: Recipe, seconds: float, average: int = 1) -> RecommendedMethod:
        """Return the method of a recipe."""
        return cls(title=title, grid=recipe.grid, by=recipe.by, seconds=seconds, average=average)

    @property
    def name(self) -> str:
        """Name in the tables."""
        return self.title

    @property
    def options(self) -> dict[str, Any]:
        """All settings but the budget.

        What the keys of older cells lack is left out: the number of networks if it is 1, and the parent sets, which are
        those of the paper in all cells.
        """
        found = {key: value for key, value in super().options.items() if (key, value) != ("average", 1)}
        return found | {"grid": self.grid.removesuffix(f" parent-sets={PAPER}")}

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Choose, search and fit; the test rows are encoded with the states and cuts of the chosen discretisation."""
        part = given.part
        assert isinstance(part, Part)  # its cuts are chosen
        options = Options(
            time_limit=self.seconds, threads=given.threads, random_state=given.seed, verbose=False
        )
        recipe = Recipe(purpose=self.title, grid=self.grid, by=self.by, time_limit=self.seconds)
        grid = replace(recipe.choices(), average=self.average)
        result = maximise_selected(Question(part.training, Score(parent_sets=PAPER)), options, grid)
        if result.limit is Limit.USER or (result.average is not None and result.average.interrupted):
            raise KeyboardInterrupt
        if result.structure is None or result.classifier is None:
            raise NoIncumbentError(f"No structure was found within {self.seconds:g} s; allow more time.")
        assert result.selection is not None
        test = Encodings.of(
            [part.table.encode(variables, part.test_rows) for variables in result.classifier.variable_sets]
        )
        return {
            "figures": Figures.of(result.classifier, test).to_dict(),
            "choice": {"max_parents": result.selection.max_parents, **result.selection.options},
            "search": described(result) | {"certified": True, "verified": None},
            "parameters": None if result.parameters is None else result.parameters.to_dict(),
            "structure": result.structure.to_mapping(),
            **({} if result.average is None else {"average": result.average.to_dict()}),
            "trials": [{**vars(trial), "options": dict(trial.options)} for trial in result.selection.trials],
        }
