"""What validation is asked to choose: p, the number of parents, the options of a grid, or those of a recipe.

A recipe is a recommended grid under a name, with what decides, or the choice of `milpbn.solving.accurate`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from milpbn.errors import InputError
from milpbn.network.parameters.method import ParameterMethod
from milpbn.problem.scores.spec import P_GRID, Score
from milpbn.solving.grid import MAX_PARENTS_GRID, MISSING, MISSING_VALUES, NAMES, PARAMETERS, Grid
from milpbn.solving.options import Options

#: Candidate parent sets times training rows above which a recipe leaves out a setting: building its tables takes some
#: ten seconds. With three parents that is 3,000 rows of 60 features, or 15,000 rows of 34.
MOST_WORK = 3e8

#: What recipes compare where a table has missing values, beside their grids. The experiments of the papers read tables
#: as the papers do, and leave it out.
POLICIES = f"{MISSING}={','.join(MISSING_VALUES)}"


@dataclass(frozen=True)
class Recipe:
    """A setting that is recommended for a purpose.

    Held-out rows choose from the options of `grid`, as for ``--select``. `time_limit` are the seconds for the choice
    and the final search together, if the user gives no limit.
    """

    purpose: str
    grid: str
    by: str
    time_limit: float

    def choices(self, given: Collection[str] = ()) -> Grid:
        """Return the grid without the options that the user has given as single values."""
        return self._grid([word for word in self.grid.split() if _option(word) not in given])

    def applied(
        self, options: Options, given: Collection[str] = (), by: str | None = None
    ) -> tuple[Grid, Options]:
        """Return the grid and the options of a selection by this recipe. What the user has given wins.

        Parameters without values, such as ``ml`` or ``cll``, take the place of the recipe's in the grid; those with
        values are fitted after the final search only. Without a time limit the options get the recipe's. `given` has
        attributes of `Score`, ``discretise`` or ``missing`` for which the user has given single values.
        """
        if options.time_limit is None:
            options = replace(options, time_limit=self.time_limit)
        words = [word for word in (*self.grid.split(), POLICIES) if _option(word) not in given]
        if options.parameters is None:
            return self._grid(words, by), options
        words = [word for word in words if _option(word) != PARAMETERS]
        if ParameterMethod.parse(options.parameters).kappa is None:
            words.append(f"{PARAMETERS}={options.parameters}")
            options = replace(options, parameters=None)
        return self._grid(words, by), options

    def _grid(self, words: Sequence[str], by: str | None = None) -> Grid:
        grid = Grid.parse(" ".join(words), self.by if by is None else by)
        return replace(grid, smallest_first=True, most_work=MOST_WORK)


def _option(word: str) -> str:
    """Return the option that a word of a grid is about, as it is called in Python."""
    key = word.partition("=")[0]
    return NAMES.get(key, key)


#: The recipe that is no grid (`milpbn.solving.accurate`), and the names of all.
ACCURATE, READABLE = "accurate", "readable"
RECIPE_NAMES = (ACCURATE, READABLE)
#: The grids of the recipes that have one, by name. How they were found, and what they bring, is in docs/accuracy.md.
RECIPES: Mapping[str, Recipe] = {
    READABLE: Recipe(
        purpose="one network on coarse intervals, whose tables a person can read",
        # The class-free parent sets that `paper` leaves out change no posterior of a complete row.
        grid="score=cll leave-one-out=yes hybrid=.1 max-parents=1,2,3 discretise=mdl,quantile:5 parameters=hybrid "
        "parent-sets=paper",
        by="log-loss",
        time_limit=600.0,
    ),
}


def find_recipe(name: str) -> Recipe:
    """Return the grid of a recipe by its name; raise InputError if there is none."""
    if name not in RECIPE_NAMES:
        raise InputError(f"There is no recipe {name!r}; choose from {', '.join(RECIPE_NAMES)}.")
    if name not in RECIPES:
        raise InputError(
            f"The recipe {name} has no grid of settings to compare; take {READABLE}, or leave out what goes with grids."
        )
    return RECIPES[name]


@dataclass(frozen=True)
class Choices:
    """What a user wants validation to choose; not both a grid and a recipe, nor an average of nothing that is chosen.

    With `p` or `max_parents`, they are chosen from `P_GRID` and `MAX_PARENTS_GRID`, as Peharz and Pernkopf (2012) do.
    `grid` is as for `Grid.parse`. `by`, one of `CRITERIA`, is what is compared; without it, accuracy or the
    criterion of the recipe. `average` is the number of the best settings whose networks are averaged.
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
        if self.additive:
            unfit = {"--average (average)": self.average not in (None, 1), "--p cv (p='cv')": self.p}
            unfit["--max-parents cv (max_parents='cv')"] = self.max_parents
            unfit["--select-by (select_by)"] = self.by not in (None, "log-loss")
            for option, given in unfit.items():
                if given:
                    raise InputError(
                        f"The recipe {ACCURATE} chooses by log-loss and fits one network: leave out {option}, or take "
                        f"the recipe {READABLE}."
                    )
        elif self.recipe is not None:
            find_recipe(self.recipe)
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
    def additive(self) -> bool:
        """Whether the tables on finer cuts are chosen that `milpbn.solving.accurate` fits."""
        return self.recipe == ACCURATE

    @property
    def of_missing(self) -> bool:
        """Whether validation chooses between dropping rows with missing values and a state for these."""
        if self.recipe is not None:
            return True
        return self.grid is not None and MISSING in Grid.parse(self.grid).others

    def applied(self, score: Score, options: Options, given: Collection[str] = ()) -> tuple[Grid, Options]:
        """Return the values to compare, and the options of the search with those of the recipe.

        What is `given`, attributes of `Score`, ``discretise`` or ``missing`` for which the user has given single
        values, wins over a recipe, and contradicts a grid that names it. Raise InputError if the grid or the recipe
        cannot be read, or an option is given twice.
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
