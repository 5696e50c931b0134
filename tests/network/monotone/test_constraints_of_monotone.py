"""What a user asks for, and impossible constraints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from milpbn.data.dataset import Variable
from milpbn.errors import InputError
from milpbn.network.monotone.constraints import StateOrder, read_monotone

AGE = Variable("age", ("(-inf, 3]", "(3, inf)", "(missing)"), cuts=(3.0,), missing_state=True)
COUNT = Variable("count", ("10", "9", "2"), numeric=True)
GRADE = Variable("grade", ("low", "high", "mid"))
FLAG = Variable("flag", ("True", "False"), label_type="boolean")
TWO = Variable("class", ("no", "yes"))
FEATURES = (AGE, COUNT, GRADE, FLAG)


@pytest.mark.parametrize(
    ("asked", "codes"),
    [
        ({"age": "+"}, (0, 1)),
        ({"age": -1}, (1, 0)),
        ({"count": np.float64(1)}, (2, 1, 0)),
        ({"count": "-"}, (0, 1, 2)),
        ({"grade": "low:mid:high"}, (0, 2, 1)),
        ({"grade": ["high", "mid", "low"]}, (1, 2, 0)),
        ({" grade": "high:mid:low"}, (1, 2, 0)),
        ({"flag": "+"}, (1, 0)),
        ([0, -1, 0, 0], (0, 1, 2)),
    ],
)
def test_states_have_the_order_asked_for(asked, codes) -> None:
    (constraint,) = read_monotone(asked, (*FEATURES, TWO))
    assert StateOrder.of(constraint, (*FEATURES, TWO)).codes == codes
    assert StateOrder.of(constraint, (*FEATURES, TWO)).classes == (0, 1)


def test_states_may_have_colons() -> None:
    variables = (Variable("opens", ("10:30", "9:00")), TWO)
    (constraint,) = read_monotone({"opens": "9:00:10:30"}, variables)
    assert (constraint.states, constraint.word) == (("9:00", "10:30"), "9:00:10:30")


def test_classes_are_ordered_by_the_positive_one_or_as_numbers() -> None:
    (constraint,) = read_monotone({"age": "+", "count": 0, "positive": "no"}, (*FEATURES, TWO))
    assert constraint.classes == ("yes", "no")
    assert str(constraint) == "the log-odds of 'no' never fall in 'age'"
    named = (replace(FEATURES[0], name="positive"), TWO)
    (constraint,) = read_monotone({"positive": "+", "--positive": "no"}, named)
    assert (constraint.column, constraint.classes) == ("positive", ("yes", "no"))
    (constraint,) = read_monotone(
        {"age": "-"}, (*FEATURES, Variable("class", ("10", "2", "5"), numeric=True))
    )
    assert constraint.classes == ("2", "5", "10")


@pytest.mark.parametrize(
    ("asked", "target", "sentence"),
    [
        ({"weight": "+"}, TWO, "names 'weight', which is not among the features: 'age', 'count'"),
        ({"class": "+"}, TWO, "names 'class', which is not among the features"),
        ({"grade": "+"}, TWO, "no order of their own: 'low', 'high', 'mid'. Write them in their order"),
        ({"grade": "low:high"}, TWO, "name each of its states once"),
        ({"age": "up"}, TWO, "'age' are intervals, which have an order"),
        ({"count": "up"}, TWO, "gives 'count' the states 'up'"),
        ({"age": "+", "positive": "maybe"}, TWO, "must be one of 'no', 'yes', got 'maybe'"),
        ({"age": "+"}, Variable("class", ("a", "b", "c")), "need two classes, or classes that are numbers"),
        (["age"], TWO, "for each of the 4 features; got 1"),
    ],
)
def test_impossible_constraints_get_a_sentence(asked, target, sentence) -> None:
    with pytest.raises(InputError) as refused:
        read_monotone(asked, (*FEATURES, target))
    assert sentence in str(refused.value)
