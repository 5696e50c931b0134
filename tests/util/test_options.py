"""What is declared once is what the command line, the grids, the estimators and the pages have."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from milpbn.cli.app import app
from milpbn.cli.score_options import ScoreOptions, score_options
from milpbn.cli.sections import verb
from milpbn.data.options import ReadingOptions
from milpbn.errors import InputError
from milpbn.problem.scores.options import DeclaredScore
from milpbn.problem.scores.registry import SCORES, find_score
from milpbn.problem.scores.spec import Score
from milpbn.sklearn import MaxMarginBNClassifier
from milpbn.solving.declared import DeclaredOptions
from milpbn.solving.grid import NAMES, Grid
from milpbn.solving.options import Options
from milpbn.util.options import Range, check_choice, declared, listed, option, spelling, types_of

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide.md"


@dataclass(frozen=True)
class Thing:
    size: float | None = option(
        None, "How large.", range=Range(0, 1, "size must be at most {high}, got {value}.")
    )
    lambda_: int = option(1, "A number.")
    words: dict = option(dict, "Words.", spelling=("--word",))
    plain: int = 3


def test_a_declaration_has_name_type_default_and_spelling() -> None:
    assert [item.name for item in declared(Thing)] == ["size", "lambda_", "words"]
    assert [spelling(item) for item in declared(Thing)] == ["--size", "--lambda", "--word"]
    assert types_of(Thing, "size") == [float]
    assert Thing().words == {}


def test_ranges_and_choices_are_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="size must be at most 1, got 2"):
        declared(Thing)[0].metadata["range"].check(2)
    with pytest.raises(InputError, match=r"a must be 'x', 'y' or 'z', got 3\."):
        check_choice("a", 3, ("x", "y", "z"))
    assert listed(["x"], "or") == "x"


def test_scores_and_searches_have_what_is_declared() -> None:
    assert [item.name for item in fields(Score)] == [item.name for item in declared(DeclaredScore)]
    assert {item.name for item in fields(DeclaredOptions)} <= {item.name for item in fields(Options)}
    own = {item.name for kind in map(find_score, SCORES) for item in fields(kind)}
    assert own <= {item.name for item in declared(DeclaredScore)}
    for kind in map(find_score, SCORES):
        for item in fields(kind):
            if item.name != "gamma":  # which follows from p
                assert item.default == DeclaredScore.__dataclass_fields__[item.name].default


@pytest.mark.parametrize("kind", [DeclaredScore, DeclaredOptions, ReadingOptions])
def test_the_command_line_has_what_is_declared(kind: type) -> None:
    known = {parameter.name: parameter for parameter in app.commands["solve"].params}
    for item in declared(kind):
        parameter = known[item.name]
        assert spelling(item) == parameter.opts[0]
        if item.name != "name":
            assert parameter.help == item.metadata["help"]


def test_groups_have_their_values_in_the_order_of_the_declaration() -> None:
    kept: list[ScoreOptions] = []
    show = verb()(score_options(lambda score: kept.append(score)))
    show.main(
        ["--hybrid", "1", "--max-parents", "cv", "--smoothing", "2", "--p", "0.9"], standalone_mode=False
    )
    assert kept == [ScoreOptions({"p": 0.9, "smoothing": 2.0, "hybrid": 1.0}, choose_max_parents=True)]
    assert list(kept[0].given) == ["p", "smoothing", "hybrid"]


def test_the_estimator_has_the_declared_defaults_and_types() -> None:
    found = inspect.signature(MaxMarginBNClassifier).parameters
    for item in declared(DeclaredScore)[1:]:
        assert found[item.name].default == item.default
        plain = str(found[item.name].annotation)
        assert plain == item.type or (
            item.metadata["validation"] and plain.replace(" | str", "") == item.type
        )
        assert re.search(rf"^    (\w+, )*{item.name}(, \w+)* :", MaxMarginBNClassifier.__doc__ or "", re.M)


def test_grids_name_what_can_be_selected() -> None:
    names = "score p max-parents smoothing smoothing-towards class-parents parent-sets penalty hybrid leave-one-out"
    assert list(NAMES) == names.split()
    left = {item.name for item in declared(DeclaredScore)} - {*NAMES.values()}
    assert left == {"gamma", "equivalent_sample_size"}
    (help_of_select,) = (p.help for p in app.commands["solve"].params if p.name == "grid")
    for key in NAMES:
        assert key in help_of_select
    grid = Grid.parse(
        "class-parents=no,yes penalty=bic,2 smoothing-towards=class parent-sets=all max-parents=3"
    )
    assert grid.others["class-parents"] == (False, True)
    assert grid.others["penalty"] == ("bic", 2.0)
    assert tuple(grid.max_parents) == (3,)


def test_the_table_of_the_guide_has_the_options_that_scores_take() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `sm` \|.*\| (.*) \|$", text, re.M)
    taken = {spelling(item) for item in declared(DeclaredScore) if find_score("sm").takes(item.name)}
    assert set(re.findall(r"--[a-z-]+", row)) == taken | {"--p"}
    for item in declared(DeclaredScore):
        if "refused" in item.metadata:
            assert spelling(item) in text
