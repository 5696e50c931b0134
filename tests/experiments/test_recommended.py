"""The recipe as a method of the experiments: the same classifier as `solve_selected`, on the part's own test rows."""

from __future__ import annotations

import pytest

from milpbn.data import read_table
from milpbn.experiments.base import MethodInput
from milpbn.experiments.protocol import parts
from milpbn.experiments.recommended import RecommendedMethod
from milpbn.network.evaluation import evaluate
from milpbn.problem.scores.spec import Score
from milpbn.solving.recipes import RECIPES
from milpbn.solving.selection import solve_selected

GRID = "score=cll leave-one-out=yes max-parents=1 discretise=mdl,quantile:3 parameters=temperature"


def test_the_method_is_a_selection_with_its_grid(catalog) -> None:
    part = parts(read_table("folded", data_dir=catalog), 0)[0]
    method = RecommendedMethod(title="small", grid=GRID, by="log-loss", seconds=600.0)
    found = method.run(MethodInput(part, 0, 1, {}))
    told = solve_selected(part.training, grid=GRID, by="log-loss", time_limit=600.0, threads=1, verbose=False)
    assert found["structure"] == told.structure.to_mapping()
    assert found["choice"] == {"max_parents": told.selection.max_parents, **told.selection.options}
    figures = evaluate(told.classifier, part.table.frame.iloc[part.test_rows])
    assert found["figures"]["accuracy"] == pytest.approx(figures.accuracy)
    assert found["figures"]["log_loss"] == pytest.approx(figures.log_loss)


def test_recipes_can_be_read_and_leave_out_what_is_given() -> None:
    for recipe in RECIPES.values():
        assert recipe.choices().settings(Score())
        assert "hybrid" not in recipe.choices(["hybrid"]).others
        assert recipe.choices(["max_parents"]).max_parents == ()


def test_keys_of_cells_do_not_name_the_parent_sets_which_are_those_of_the_paper() -> None:
    """The recipe's grid names them since all sets can be searched; the kept cells are from before that."""
    method = RecommendedMethod.of("recipe", RECIPES["readable"], 60.0)
    assert method.grid.endswith(" parent-sets=paper")
    assert method.options["grid"].endswith(" parameters=hybrid")
    every = RecommendedMethod(
        title="all", grid="score=cll hybrid=.1 parent-sets=all", by="log-loss", seconds=1.0
    )
    assert every.options["grid"] == every.grid
