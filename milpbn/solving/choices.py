"""What validation is asked to choose: p, the number of parents, the options of a grid, or those of a recipe."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from milpbn.errors import InputError
from milpbn.problem.scores.spec import P_GRID, Score
from milpbn.solving.grid import MAX_PARENTS_GRID, MISSING, Grid
from milpbn.solving.options import Options
from milpbn.solving.recipes import find_recipe


@dataclass(frozen=True)
class Choices:
    """What a user wants validation to choose, before the final search.

    Raise InputError if there is both a grid and a recipe, or an average of nothing that is chosen.

    Attributes
    ----------
    p, max_parents : bool
        Whether to choose them from `P_GRID` and `MAX_PARENTS_GRID`, as Peharz and Pernkopf (2012) do.
    grid : str or None
        Options and their values; see `Grid.parse`.
    by : {'accuracy', 'log-loss'} or None
        What is compared; None for accuracy, or for the criterion of the recipe.
    average : int or None
        Number of the best settings whose networks are averaged.
    """

    p: bool = False
    max_parents: bool = False
    grid: str | None = None
    recipe: str | None = None
    by: str | None = None
    average: int | None = None

    def __post_init__(self) -> None:
        if self.recipe is not None and self.grid is not None:
            raise InputError(
                "--recipe (recipe) has a grid of its own; leave out --select (select), or the recipe."
            )
        if self.average is not None:
            Grid(average=self.average)  # refuses an impossible number
        if self.average not in (None, 1) and not self:
            raise InputError(
                "--average (average) takes the best settings of a selection; add --recipe, --select, --p cv or "
                "--max-parents cv (recipe, select, p='cv' or max_parents='cv')."
            )

    def __bool__(self) -> bool:
        """Whether validation chooses anything."""
        return self.p or self.max_parents or self.grid is not None or self.recipe is not None

    @property
    def of_missing(self) -> bool:
        """Whether validation chooses between dropping rows with missing values and a state for these."""
        if self.recipe is not None:
            return True
        return self.grid is not None and MISSING in Grid.parse(self.grid).others

    def applied(self, score: Score, options: Options, given: Collection[str] = ()) -> tuple[Grid, Options]:
        """Return the values to compare, and the options of the search with those of the recipe.

        Raise InputError if the grid or the recipe cannot be read, or an option is given twice.

        Parameters
        ----------
        given : collection of str
            Attributes of `Score`, ``discretise`` or ``missing``, if the user has given single values. They win over
            a recipe, and contradict a grid that names them.
        """
        grid = Grid(
            P_GRID if self.p else None,
            MAX_PARENTS_GRID if self.max_parents else (score.max_parents,),
            by=self.by or "accuracy",
        )
        if self.grid is not None:
            grid = Grid.parse(self.grid, grid.by).joined(grid, given)
        if self.recipe is not None:
            chosen, options = find_recipe(self.recipe).applied(options, given, self.by)
            grid = chosen.joined(grid, given)
        return replace(grid, average=1 if self.average is None else self.average), options
