"""Recommended settings under one name: a grid of options, and what decides between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from milpbn.errors import InputError
from milpbn.network.parameters.method import ParameterMethod
from milpbn.solving.grid import MISSING, MISSING_VALUES, NAMES, PARAMETERS, Grid
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

    Attributes
    ----------
    grid : str
        The options that held-out rows choose from, as for ``--select``.
    time_limit : float
        Seconds for the choice and the final search together, if the user gives no limit.
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

        Parameters
        ----------
        options : Options
            Those of the user. Parameters without values, such as ``ml`` or ``cll``, take the place of the recipe's in
            the grid; those with values are fitted after the final search only. Without a time limit the options get
            the recipe's.
        given : collection of str
            Attributes of `Score`, ``discretise`` or ``missing``, if the user has given single values.
        by : {'accuracy', 'log-loss'}, optional
            What decides; by default what the recipe says.
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


#: The recipes by name. How they were found, and what they bring, is in docs/accuracy.md.
RECIPES: Mapping[str, Recipe] = {
    "accurate": Recipe(
        purpose="accurate classes and calibrated probabilities",
        # The class-free parent sets that `paper` leaves out change no posterior of a complete row.
        grid="score=cll leave-one-out=yes hybrid=.1 max-parents=1,2,3 discretise=mdl,quantile:5 parameters=hybrid "
        "parent-sets=paper",
        by="log-loss",
        time_limit=600.0,
    ),
}


def find_recipe(name: str) -> Recipe:
    """Return a recipe by its name.

    Raise InputError if there is none.
    """
    if name not in RECIPES:
        raise InputError(f"There is no recipe {name!r}; choose from {', '.join(RECIPES)}.")
    return RECIPES[name]
