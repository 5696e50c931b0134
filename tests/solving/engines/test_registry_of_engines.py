"""Finding engines by name, and what their capabilities decide."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

import milpbn
from milpbn.errors import InputError
from milpbn.problem.scores.registry import SCORES
from milpbn.problem.scores.spec import Score
from milpbn.solvers.registry import SOLVERS
from milpbn.solving.engines import registry
from milpbn.solving.engines.base import Engine
from milpbn.solving.engines.registry import (
    automatic,
    check_engine,
    engine_names,
    get_engine,
    without_root,
)
from milpbn.solving.options import OptionKeywords, Options

#: For each option that some engine cannot do: a search that asks for it, and the engines that can, by capability.
ASKED = {
    "solver_options": ({"solver_options": {"depth": "3"}}, "milp", "leave out --solver-option"),
    "warm_start": ({"warm_start": False}, "milp", "no use for --no-warm-start"),
    "root_bound": ({"root_bound": False}, "milp", "no use for --no-root-bound"),
    "acyclicity": ({"acyclicity": "cluster"}, "milp", "no use for --acyclicity cluster"),
    "log": ({"log": "solver.log"}, "milp", "no use for --log"),
    "n_best": ({"n_best": 3}, "n_best", "comes with the backends native and branch-and-cut"),
    "certificate": ({"certificate": "c.npz"}, "certificate", "A certificate comes with the backends native"),
}


def test_every_name_gives_an_engine() -> None:
    names = engine_names()
    assert {"native", "branch-and-cut", "highs", "cbc", "cpsat", "scip", "pulp:GUROBI"} <= set(names)
    for name in names:
        engine = get_engine(name)
        assert isinstance(engine, Engine)
        assert engine.name.lower() == name.lower()


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        InputError,
        match=r"no backend 'cplex'; choose one of auto, native, branch-and-cut, highs, .* or pulp:NAME",
    ):
        get_engine("cplex")


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("name", ["native", "branch-and-cut", "highs", "cbc", "cpsat", "scip", "pulp:HiGHS"])
def test_what_an_engine_cannot_do_is_refused(name: str, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options, capability, words = ASKED[asked]
    engine = get_engine(name)
    monkeypatch.setattr(type(engine), "check_options", lambda self, options: None)
    score = Score(name=engine.capabilities.scores[0])
    if getattr(engine.capabilities, capability):
        check_engine(engine, Options(**options), score)
        return
    with pytest.raises(InputError, match=words):
        check_engine(engine, Options(**options), score)


@pytest.mark.parametrize("score", SCORES)
def test_auto_chooses_by_the_score(score: str) -> None:
    chosen = automatic("auto", Score(name=score))
    own = [name for name in ("native", "branch-and-cut") if score in get_engine(name).capabilities.scores]
    assert [chosen] == (own or ["highs"])
    assert automatic("cbc", Score(name=score)) == "cbc"


def test_without_a_root_an_engine_that_needs_none_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    cbc = get_engine("cbc")
    assert without_root(cbc, Score()) is cbc
    assert without_root(get_engine("native"), Score()).name == "highs"
    monkeypatch.setattr(registry, "AUTOMATIC", ("native", "cbc", "highs"))
    assert without_root(get_engine("native"), Score()).name == "cbc"


def test_no_code_names_a_solver() -> None:
    """What an engine is asked to do is decided by its capabilities; a default has its name in one place."""
    package = Path(milpbn.__file__).parent
    # Here the names are those of other programs, whose solution files are read.
    others = {package / "solving" / "imported_bound.py"}
    for folder in ("engine", "solving", "learners", "estimators"):
        for path in {*(package / folder).rglob("*.py")} - others:
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            named = [n.lineno for n in nodes if isinstance(n, ast.Constant) and n.value in SOLVERS]
            assert not named, f"{path}, lines {named}"


@pytest.mark.parametrize("function", [milpbn.solve, milpbn.select, milpbn.solve_selected])
def test_public_functions_have_all_options_as_arguments(function) -> None:
    """Names, order and defaults are those of `Options`, so that editors complete them."""
    assert get_type_hints(OptionKeywords).keys() == get_type_hints(Options).keys()
    found = inspect.signature(function).parameters
    assert all(parameter.kind is not parameter.VAR_KEYWORD for parameter in found.values())
    names = [field.name for field in fields(Options)]
    assert [name for name in found if name in names] == names
    for name in names:
        default = getattr(Options(), name)
        assert found[name].default == (default or None if name == "solver_options" else default)
        expected = inspect.signature(Options).parameters[name].annotation
        assert str(found[name].annotation).removesuffix(" | None") == str(expected).removesuffix(" | None")
        keyword = str(get_type_hints(OptionKeywords)[name]).removesuffix(" | None")
        assert keyword == str(get_type_hints(Options)[name]).removesuffix(" | None")
