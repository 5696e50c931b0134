"""What the user gives wins over what a recipe chooses from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from milpbn.problem.scores.spec import Score
from milpbn.solving.options import Options
from milpbn.solving.recipes import find_recipe

RECIPE = find_recipe("readable")


def test_without_options_the_recipe_is_as_it_is() -> None:
    grid, options = RECIPE.applied(Options())
    assert grid == replace(RECIPE.choices(), others={**RECIPE.choices().others, "missing": ("drop", "state")})
    assert RECIPE.applied(Options(), ["missing"])[0] == RECIPE.choices()
    assert options == Options(time_limit=RECIPE.time_limit)
    assert grid.others["parameters"] == ("hybrid",)


@pytest.mark.parametrize("method", ["ml", "cll", "temperature", "hybrid"])
def test_given_parameters_take_the_place_of_the_recipes(method: str) -> None:
    grid, options = RECIPE.applied(Options(parameters=method, time_limit=5.0), ["discretise", "max_parents"])
    assert grid.others["parameters"] == (method,)
    assert "discretise" not in grid.others
    assert grid.max_parents == ()
    assert options == Options(time_limit=5.0)
    assert {setting.parameters for setting in grid.settings(Score())} == {method}


def test_parameters_with_values_are_left_to_the_final_fit() -> None:
    grid, options = RECIPE.applied(Options(parameters="hybrid:0.5:10"))
    assert "parameters" not in grid.others
    assert options.parameters == options.method == "hybrid:0.5:10"
    assert Options().method == "ml"
