"""A score in words says all that decides the value of a structure."""

from __future__ import annotations

from dataclasses import fields
from itertools import combinations

import pytest

from milpbn.problem.scores.spec import Score

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
