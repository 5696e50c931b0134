"""Structures of learners start an exact search, and errors about infeasible starts name the option to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from running import random_data

from milpbn.errors import InputError
from milpbn.heuristics.starts import plain_starts
from milpbn.learners.base import Control
from milpbn.learners.registry import LEARNERS, get_learner
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score

#: Learners whose models are acyclic graphs; a multinet has one for each class.
GRAPHS = [name for name in LEARNERS if get_learner(name).is_network and name != "multinet"]


@pytest.mark.parametrize("name", GRAPHS)
def test_structures_start_a_search(name: str, tmp_path: Path) -> None:
    data = random_data(5, n_features=4, n_samples=60, n_classes=2)
    options: dict[str, Any] = {}
    if name == "parameters":
        path = tmp_path / "structure.txt"
        path.write_text("X2 -> X1\nC -> X2\nX1 -> X3\nC -> X3\n")
        options = {"structure_file": str(path), "epochs": 2}
    elif name == "differentiable-tan":
        options = {"epochs": 2}
    learned = get_learner(name)(**options).fit(data, Control(random_state=1, time_limit=600))
    assert learned.structure is not None
    width = max(len(parents) for parents in learned.structure.parents)
    for score in (
        Score(max_parents=max(1, width)),
        Score(name="mdl", max_parents=max(1, width), parent_sets="all"),
    ):
        problem = build_problem(data, score)
        assert next(plain_starts(problem, learned.structure)) == problem.adopted(learned.structure)


@pytest.mark.parametrize(
    ("parents", "options", "constraints", "says"),
    [
        (
            ((1, 2, 3), (3,), (3,), ()),
            {},
            Constraints(),
            "'X1' has the parents X2, X3, C.*--max-parents to 3",
        ),
        (
            ((), (3,), (3,), (0,)),
            {"class_parents": False},
            Constraints(),
            "'C' has the parents X1.*--class-parents",
        ),
        (
            ((1,), (3,), (3,), ()),
            {"name": "mdl"},
            Constraints(),
            "'X1' has the parents X2.*--parent-sets all",
        ),
        (
            ((1,), (3,), (3,), ()),
            {"hybrid": 0.1, "parent_sets": "paper"},
            Constraints(),
            "'X1' has the parents X2.*--parent-sets all",
        ),
        (
            ((), (3,), (3,), ()),
            {"name": "cll"},
            Constraints(required=(("C", "X1"),)),
            "\\(none\\).*relax the constr",
        ),
        (((3,), (3,), (3,), ()), {}, Constraints(max_children={"C": 2}), "'C' has more than 2 children"),
    ],
    ids=["width", "class parents", "class-free", "hybrid", "constraint", "children"],
)
def test_refusals_say_what_to_do(
    parents: Any, options: dict[str, Any], constraints: Constraints, says: str
) -> None:
    data = random_data(6, n_features=3)
    problem = build_problem(data, Score(**{"name": "sm", **options}), constraints)
    with pytest.raises(InputError, match=says):
        plain_starts(problem, Structure(data.names, parents))
