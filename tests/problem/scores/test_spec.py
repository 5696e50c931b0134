"""Scores, their options, and the words that say all that decides the value of a structure."""

from __future__ import annotations

import math
import pickle
from dataclasses import fields, replace
from itertools import combinations

import pytest
from running import random_data

from milpbn import solve
from milpbn.errors import InputError
from milpbn.network.prior import Prior
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.registry import SCORES, margin_scores
from milpbn.problem.scores.spec import DEFAULT_P, P_GRID, Score, gamma_from_p


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


def test_p_stays_as_it_was_typed() -> None:
    assert Score(p=0.9).p == 0.9
    assert Score().p == DEFAULT_P
    assert Score(gamma=2.0).p is None
    assert Score(name="mdl").p is None
    score = Score(name="sbm", p=0.123 + 0.7, max_parents=3)
    for copied in (pickle.loads(pickle.dumps(score)), replace(score), replace(score, max_parents=3)):
        assert copied == score
        assert hash(copied) == hash(score)
        assert copied.p == 0.823
    assert Score.from_dict(score.to_dict()) == score
    assert "p" not in score.to_dict()
    changed = replace(score, p=0.6, gamma=None)
    assert (changed.p, changed.gamma) == (0.6, gamma_from_p(0.6))
    assert replace(score, gamma=3.0, p=None).p is None


@pytest.mark.parametrize(
    ("score", "shown"),
    [
        (Score(), "Score(name='sm', p=0.99)"),
        (Score(p=0.9, max_parents=3), "Score(name='sm', p=0.9, max_parents=3)"),
        (
            Score(name="sbm", gamma=2.0, class_parents=False),
            "Score(name='sbm', gamma=2.0, class_parents=False)",
        ),
        (Score(name="bic", parent_sets="all"), "Score(name='mdl', parent_sets='all')"),
        (Score(name="cll", penalty="bic"), "Score(name='cll', penalty='bic')"),
    ],
)
def test_repr_shows_what_was_typed(score: Score, shown: str) -> None:
    assert repr(score) == shown
    assert eval(shown) == score


def test_bic_is_another_name_of_mdl() -> None:
    assert Score(name="bic") == Score(name="mdl")


@pytest.mark.parametrize("name", SCORES)
def test_scores_survive_a_round_trip(name: str) -> None:
    score = Score(name=name, max_parents=3, class_parents=False, smoothing=0.5)
    assert Score.from_dict(score.to_dict()) == score
    assert score.is_margin == (name in margin_scores())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "k9"}, "There is no score 'k9'"),
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
        ({"max_parents": 0}, "at least 1"),
        ({"smoothing": 0.0}, "smoothing"),
        ({"smoothing": float("inf")}, "smoothing"),
        ({"smoothing": 1e-305}, r"smoothing must be a positive number from 1e-12 to 1e\+12, got 1e-305"),
        ({"smoothing": 1e13}, "smoothing must be"),
        ({"gamma": 1e-10}, "at least 1e-09"),
        ({"hybrid": 1e13}, r"at most 1e\+12"),
        ({"penalty": 1e13}, r"at most 1e\+12"),
        ({"name": "bdeu", "equivalent_sample_size": 1e-13}, "from 1e-12"),
        ({"name": "ll", "parent_sets": "some"}, "'auto', 'paper' or 'all'"),
        ({"name": "bdeu", "equivalent_sample_size": 0.0}, "equivalent sample size"),
        ({"penalty": "bicc"}, "bic, aic or a number"),
        ({"penalty": -1.0}, "at least 0"),
        ({"penalty": float("nan")}, "at least 0"),
        ({"hybrid": -0.5}, "at least 0"),
        ({"name": "ll", "hybrid": 0.5}, "goes with the margin scores"),
        ({"name": "mdl", "penalty": "bic"}, "goes with the margin scores"),
        (
            {"name": "mdl", "leave_one_out": True},
            "scores sm, sbm, hard-margin, cll, ll, not with mdl, whose penalty",
        ),
        ({"name": "aicc", "leave_one_out": True}, "not with aicc"),
        ({"name": "bdeu", "leave_one_out": True}, "penalty or prior already makes up"),
        ({"penalty": "bic", "leave_one_out": True}, "The penalty bic makes up for .* as leave_one_out does"),
        ({"name": "cll", "penalty": "aic", "leave_one_out": True}, "give the penalty in nats"),
        ({"leave_one_out": 1.5}, "leave_one_out"),
        ({"smoothing_towards": "parents"}, "must be uniform, marginal or class, got 'parents'"),
        (
            {"name": "ll", "smoothing_towards": "class"},
            "margin scores sm, sbm, hard-margin, cll, not with ll",
        ),
        (
            {"name": "mdl", "smoothing_towards": "marginal"},
            "smoothing_towards goes with .* not with mdl; leave it",
        ),
    ],
)
def test_unusable_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Score(**options)


def test_local_weights_follow_from_penalty_and_hybrid() -> None:
    assert Score(name="ll").kind.local_weights(50.0) == (1.0, 0.0)
    assert Score(name="mdl").kind.local_weights(50.0) == (1.0, math.log(50) / 2)
    assert Score(name="aic").kind.local_weights(50.0) == (1.0, 1.0)
    assert Score(penalty="bic", hybrid=0.5).kind.local_weights(50.0) == (0.5, math.log(50) / 2)
    assert Score(penalty="2.5").kind.local_weights(50.0) == (0.0, 2.5)
    assert Score().kind.has_local_terms is False
    assert Score(hybrid=0.1).kind.has_local_terms
    assert Score(name="bdeu").kind.has_local_terms
    assert Score(name="bdeu").kind.local_weights(50.0) == (0.0, 0.0)


@pytest.mark.parametrize("name", [*margin_scores(), "ll"])
def test_margin_scores_and_ll_take_leave_one_out(name: str) -> None:
    options = {"penalty": 0.5, "hybrid": 0.1} if name != "ll" else {}
    score = Score(name=name, smoothing=0.5, leave_one_out=True, **options)
    assert Score.from_dict(score.to_dict()) == score != Score(name=name, smoothing=0.5, **options)
    assert ", leave-one-out, " in score.summary
    assert score.kind.leave_one_out
    assert score.kind.smoothing == 0.5


@pytest.mark.parametrize("name", margin_scores())
def test_a_prior_is_part_of_a_margin_score(name: str) -> None:
    score = Score(name=name, smoothing=0.5, smoothing_towards="class", leave_one_out=True)
    assert score.prior == score.kind.prior == Prior(0.5, "class")
    assert Score.from_dict(score.to_dict()) == score != Score(name=name, smoothing=0.5, leave_one_out=True)
    assert ", leave-one-out, smoothing 0.5 towards class, " in score.summary
    for later in ("smoothing_towards", "leave_one_out"):  # older files lack these options
        old = Score(name=name).to_dict()
        del old[later]
        assert Score.from_dict(old) == Score(name=name)


def test_numbers_beyond_float64_are_refused_in_a_sentence() -> None:
    for option in ("gamma", "smoothing", "hybrid"):
        with pytest.raises(InputError, match=f"{option} must be a number"):
            Score(**{option: 10**400})
    for weight in (10**400, "1.5", True, None, float("nan")):
        with pytest.raises(InputError, match="arc_weights"):
            Constraints.from_dict({"arc_weights": [["A", "B", weight]]})


def test_terms_that_overflow_are_refused_before_the_search() -> None:
    for options in ({"hybrid": 1e300}, {"penalty": 1e300}):
        with pytest.raises(InputError, match=r"smaller penalty|hybrid|penalty"):
            solve(random_data(0), Score(p=0.9, **options), verbose=False)


#: For every option of a score, one with another value than the default.
OTHERS = {
    "name": Score(name="cll"),
    "gamma": Score(gamma=2.0),
    "p": Score(p=0.9),
    "max_parents": Score(max_parents=3),
    "class_parents": Score(class_parents=False),
    "smoothing": Score(smoothing=2.0),
    "smoothing_towards": Score(smoothing_towards="class"),
    "parent_sets": Score(name="bdeu", parent_sets="all"),
    "equivalent_sample_size": Score(name="bdeu", equivalent_sample_size=10.0),
    "penalty": Score(penalty="bic"),
    "hybrid": Score(hybrid=0.1),
    "leave_one_out": Score(leave_one_out=True),
}


def test_every_option_is_named() -> None:
    assert set(OTHERS) == {item.name for item in fields(Score)}
    scores = [Score(), Score(name="bdeu"), Score(penalty=0.5), Score(penalty="aic"), *OTHERS.values()]
    for one, other in combinations(scores, 2):
        assert one.describe() != other.describe(), (one, other)


def test_words() -> None:
    assert Score().describe() == "sm, gamma = 4.59512, max_parents = 2"
    full = Score(
        name="cll",
        hybrid=0.1,
        penalty="bic",
        leave_one_out=False,
        smoothing=2.0,
        smoothing_towards="marginal",
        class_parents=False,
    )
    assert full.describe(arc_weights={("a", "b"): 1.5}, discretisation="quantile:5") == (
        "cll + 0.1 x log-likelihood - log(M)/2 (bic) per parameter + 1.5 for the arc a -> b, "
        "smoothing 2 towards marginal, max_parents = 2, no class parents, cuts by quantile:5"
    )
    assert "+ the weights of 2 arcs" in Score().describe(arc_weights={("a", "b"): 1.5, ("b", "c"): -1.0})


def test_the_name_may_be_given_by_position() -> None:
    assert Score("cll", max_parents=3) == Score(name="cll", max_parents=3)
    with pytest.raises(TypeError):
        Score("cll", 2.0)  # type: ignore[misc]
