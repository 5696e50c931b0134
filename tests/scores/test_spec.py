"""Scores and their options."""

from __future__ import annotations

import math

import pytest

from milpbn.errors import InputError
from milpbn.scores.spec import DEFAULT_P, MARGIN_SCORES, P_GRID, SCORES, Score, gamma_from_p


def test_gamma_and_p() -> None:
    assert Score().gamma == pytest.approx(math.log(99))
    assert DEFAULT_P == 0.99
    assert Score(p=0.9) == Score(gamma=gamma_from_p(0.9))
    assert Score(gamma=4.595).gamma == 4.595
    assert [round(gamma_from_p(p), 3) for p in P_GRID] == [
        0.004,
        0.405,
        0.847,
        1.386,
        2.197,
        2.944,
        4.595,
        6.907,
    ]
    assert all(Score(name=name).gamma is None for name in SCORES if name not in ("sm", "sbm"))


def test_bic_is_mdl() -> None:
    assert Score(name="bic") == Score(name="mdl")


@pytest.mark.parametrize("name", SCORES)
def test_round_trip(name: str) -> None:
    score = Score(name=name, max_parents=3, class_parents=False, smoothing=0.5)
    assert Score.from_dict(score.to_dict()) == score
    assert score.is_margin == (name in MARGIN_SCORES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "k2"}, "There is no score 'k2'"),
        ({"p": 0.9, "gamma": 1.0}, "same thing"),
        ({"p": 0.5}, "strictly between 0.5 and 1"),
        ({"p": 1.0}, "strictly between 0.5 and 1"),
        ({"p": float("nan")}, "strictly between 0.5 and 1"),
        ({"gamma": 0.0}, "positive"),
        ({"gamma": float("inf")}, "positive"),
        ({"gamma": float("nan")}, "positive"),
        ({"gamma": 1e12}, r"at most 1e\+06"),
        ({"name": "mdl", "p": 0.9}, "belong to the scores sm and sbm"),
        ({"name": "hard-margin", "gamma": 1.0}, "belong to the scores sm and sbm"),
        ({"name": "cll", "gamma": 1.0}, "belong to the scores sm and sbm, not to cll"),
        ({"name": "cll", "p": 0.9}, "belong to the scores sm and sbm, not to cll"),
        ({"name": "cll", "parent_sets": "all"}, "for generative scores"),
        ({"max_parents": 0}, "at least 1"),
        ({"smoothing": 0.0}, "smoothing"),
        ({"smoothing": float("inf")}, "smoothing"),
        ({"name": "ll", "parent_sets": "some"}, "'paper' or 'all'"),
        ({"parent_sets": "all"}, "for generative scores"),
        ({"name": "bdeu", "equivalent_sample_size": 0.0}, "equivalent sample size"),
        ({"penalty": "bicc"}, "bic, aic or a number"),
        ({"penalty": -1.0}, "at least 0"),
        ({"penalty": float("nan")}, "at least 0"),
        ({"hybrid": -0.5}, "at least 0"),
        ({"name": "ll", "hybrid": 0.5}, "goes with the margin scores"),
        ({"name": "mdl", "penalty": "bic"}, "goes with the margin scores"),
    ],
)
def test_unusable_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Score(**options)


def test_local_weights() -> None:
    assert Score(name="ll").local_weights(50.0) == (1.0, 0.0)
    assert Score(name="mdl").local_weights(50.0) == (1.0, math.log(50) / 2)
    assert Score(name="aic").local_weights(50.0) == (1.0, 1.0)
    assert Score(penalty="bic", hybrid=0.5).local_weights(50.0) == (0.5, math.log(50) / 2)
    assert Score(penalty="2.5").local_weights(50.0) == (0.0, 2.5)
    assert Score().has_local_terms is False
    assert Score(hybrid=0.1).has_local_terms
    assert Score(name="bdeu").has_local_terms is False
