"""The settings of a selection: from text, in combination, refused where they mean nothing, left out where equal."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from milpbn.data import read_table
from milpbn.errors import InputError
from milpbn.problem.candidates import count_candidates
from milpbn.problem.scores.spec import P_GRID, Score
from milpbn.solving.grid import DEFAULT_GRID, Grid, affordable, applicable, source_of
from milpbn.trials.parts import splits_of


def test_the_grid_of_the_paper_is_the_default() -> None:
    settings = Grid().settings(Score())
    assert [(s.p, s.score.max_parents) for s in settings] == [(p, k) for k in (1, 2) for p in P_GRID]
    assert all(s.options == {} and s.score.p == s.p for s in settings)
    assert not Grid().halving


def test_values_that_are_not_chosen_stay_as_they_are() -> None:
    (only,) = Grid(None, (2,)).settings(Score(p=0.7, smoothing=3.0))
    assert (only.p, only.score) == (None, Score(p=0.7, smoothing=3.0))


def test_all_combinations_are_settings_once() -> None:
    grid = Grid.parse(
        "score=sm,mdl p=.6,.9 max-parents=1,3 smoothing=1,2 penalty=0,bic discretise=mdl,quantile:4"
    )
    settings = grid.settings(Score())
    margin = [s for s in settings if s.score.name == "sm"]
    linear = [s for s in settings if s.score.name == "mdl"]
    assert len(margin) == len(set(margin)) == 2 * 2 * 2 * 2 * 2
    # mdl takes neither p nor a penalty; smoothing is that of its parameters.
    assert len(linear) == 2 * 2 * 2
    assert {s.p for s in linear} == {None}
    assert {str(s.discretisation) for s in settings} == {"mdl", "quantile:4"}
    assert margin[0].options == {"score": "sm", "smoothing": 1.0, "penalty": 0.0, "discretise": "mdl"}
    assert margin[0].describe() == (
        "score = sm, smoothing = 1.0, penalty = 0.0, discretise = mdl, p = 0.6, max-parents = 1"
    )


def test_settings_with_the_same_coefficients_follow_one_another() -> None:
    settings = Grid.parse("p=.6,.9 smoothing=1,2 discretise=mdl,uniform:3").settings(Score())
    keys = [(str(s.discretisation), s.score.smoothing) for s in settings]
    assert keys == [k for key in dict.fromkeys(keys) for k in (key, key)]


def test_priors_are_settings_of_the_scores_that_have_them() -> None:
    settings = Grid.parse("score=sm,mdl smoothing-towards=uniform,class smoothing=1,2").settings(Score())
    found = {(s.score.name, s.score.smoothing_towards, s.score.smoothing) for s in settings}
    priors = {("sm", towards, a) for towards in ("uniform", "class") for a in (1.0, 2.0)}
    assert found == priors | {("mdl", "uniform", 1.0), ("mdl", "uniform", 2.0)}
    with pytest.raises(InputError, match=r"smoothing-towards belongs to the scores sm and sbm .* not to mdl"):
        Grid.parse("score=mdl smoothing-towards=class").settings(Score())


def test_the_default_grid_can_be_parsed() -> None:
    assert Grid.parse("default").others == Grid.parse(DEFAULT_GRID).others
    assert len(Grid.parse("default").settings(Score())) > 8


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("gamma=1", "OPTION=VALUE"),
        ("p", "OPTION=VALUE"),
        ("p=", "OPTION=VALUE"),
        ("p=.6 p=.9", "twice"),
        ("p=much", "p is a number"),
        ("leave-one-out=1", "yes or no"),
        ("smoothing-towards=parents", "must be uniform, marginal or class"),
        ("discretise=often", "must be mdl"),
    ],
)
def test_other_texts_are_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Grid.parse(text)


def test_values_are_checked_as_the_score_checks_them() -> None:
    with pytest.raises(InputError, match="p must lie strictly between"):
        Grid.parse("p=.4,.9").settings(Score())
    with pytest.raises(InputError, match=r"p belongs to the scores sm and sbm, not to mdl"):
        Grid.parse("p=.6,.9").settings(Score(name="mdl"))
    with pytest.raises(InputError, match="not by 'luck'"):
        Grid(by="luck")
    with pytest.raises(InputError, match="'threads' cannot be selected"):
        Grid(others={"threads": (1, 2)})


def test_an_option_that_is_given_twice_is_refused() -> None:
    grid = Grid.parse("p=.6,.9 smoothing=1,2")
    assert grid.joined(Grid(None, (3,)), ()).max_parents == (3,)
    for other, given in (
        (Grid(None, (2,)), ("smoothing",)),
        (Grid((0.9,), (2,)), ()),
        (Grid(None, (2,)), ("p",)),
    ):
        with pytest.raises(InputError, match="keep one of them"):
            grid.joined(other, given)


def test_settings_with_too_many_parent_sets_are_left_out() -> None:
    settings = Grid(None, (1, 2, 3)).settings(Score(name="cll"))
    assert [s.score.max_parents for s in affordable(settings, 10, 100, math.inf)] == [1, 2, 3]
    work = 100 * count_candidates(10, settings[1].score)
    assert [s.score.max_parents for s in affordable(settings, 10, 100, work)] == [1, 2]
    assert [s.score.max_parents for s in affordable(settings, 10, 100, 1.0)] == [1]


CUTS = "discretise=mdl,quantile:5"


def frame(*, continuous: bool, missing: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    values = rng.normal(size=60) if continuous else rng.choice(["u", "v"], 60)
    found = pd.DataFrame({"a": rng.choice(["x", "y"], 60), "b": values, "class": rng.choice(["c", "d"], 60)})
    found.loc[: missing - 1, "a"] = None
    return found


def described(words: str, data: pd.DataFrame) -> list[str]:
    grid = Grid.parse(words)
    source = source_of(data, grid)
    return [s.describe() for s in applicable(grid, Score(), source, splits_of(source, 0)[0])]


@pytest.mark.parametrize(("continuous", "expected"), [(True, 4), (False, 2)])
def test_cuts_are_compared_if_there_is_something_to_cut(continuous: bool, expected: int) -> None:
    assert len(described(f"p=.6,.9 {CUTS}", frame(continuous=continuous, missing=0))) == expected


@pytest.mark.parametrize(("missing", "expected"), [(0, 2), (5, 4), (59, 2)])
def test_policies_are_compared_if_rows_can_be_dropped(missing: int, expected: int) -> None:
    found = described("p=.6,.9 missing=drop,state", frame(continuous=False, missing=missing))
    assert len(set(found)) == len(found) == expected
    assert any("missing" in text for text in found) == (missing > 0)


def test_a_dataset_cannot_be_cut_anew() -> None:
    dataset = read_table(frame(continuous=True, missing=0)).dataset("train")
    with pytest.raises(InputError, match="give the selection a table"):
        applicable(Grid.parse(CUTS), Score(), dataset, splits_of(dataset, 0)[0])


def test_small_weights_are_refused_before_any_trial_of_leave_one_out() -> None:
    frame = pd.DataFrame({"a": [*"xyxyxyxy"], "w": [1, 1, 1, 1, 1, 1, 0.5, 2], "y": [*"ppqqppqq"]})
    frame.loc[6, "a"] = None
    table = read_table(frame, target="y", weights="w", missing="state")
    splits, _ = splits_of(table, 0)
    with pytest.raises(InputError, match=r"samples of weight 0\.5; multiply all weights by 2"):
        applicable(Grid.parse("leave-one-out=no,yes"), Score("cll"), table, splits)
    assert applicable(Grid.parse("leave-one-out=no"), Score("cll"), table, splits)
    # The row of that weight is dropped.
    assert applicable(Grid.parse("missing=drop leave-one-out=no,yes"), Score("cll"), table, splits)
