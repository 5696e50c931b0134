"""Whether a classifier is monotone, against enumeration of all complete rows."""

from __future__ import annotations

import numpy as np
import pytest
from monotone_cases import numbered, random_structure, smallest_by_enumeration

from milpbn.data.dataset import Variable
from milpbn.errors import InputError
from milpbn.network import Classifier
from milpbn.network.monotone.check import MonotoneCheck, check_classifier, check_monotone
from milpbn.network.monotone.constraints import read_monotone
from milpbn.util.jsonable import Fields


@pytest.mark.parametrize("classes", [2, 3])
def test_the_smallest_change_is_that_of_all_complete_rows(make_data, classes) -> None:
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        states = (*rng.integers(1, 5, 5), classes)
        data = numbered(make_data(seed, 80, tuple(map(int, states))))
        classifier = Classifier.fit(data, random_structure(rng, data.names), 0.3)
        order = rng.permutation([*data.variables[0].states]).tolist()
        constraints = read_monotone({"x0": order, "x1": "+", "x2": -1}, data.variables)
        for check in check_monotone(classifier.variables, classifier.cpts, constraints):
            exact = smallest_by_enumeration(classifier, check.constraint)
            assert check.smallest == pytest.approx(exact, abs=1e-12)
            assert check.holds == (exact >= -1e-12)
            found.append(check.holds)
    assert 0.1 < np.mean(found) < 0.9  # both answers occur


def test_missing_values_have_no_place_in_the_order(make_data) -> None:
    plain = make_data(3, 90, (3, 2, 2))
    missing = Variable("x0", ("low", "high", "(missing)"), missing_state=True)
    data = numbered(plain, x0=missing)
    classifier = Classifier.fit(data, random_structure(np.random.default_rng(0), data.names))
    (up,) = check_classifier(classifier, {"x0": ["low", "high"]}, "1")
    (down,) = check_classifier(classifier, {"x0": ["high", "low"]}, "1")
    assert up.smallest == pytest.approx(smallest_by_enumeration(classifier, up.constraint), abs=1e-12)
    assert up.holds or down.holds
    values = up.to_dict()
    assert MonotoneCheck.read(Fields(values, "It")) == up
    values["wish"] = values.pop("constraint")  # the key of earlier versions
    assert MonotoneCheck.read(Fields(values, "It")) == up


def test_the_rarer_class_is_meant_and_what_does_not_hold_is_said(make_data) -> None:
    data = numbered(make_data(5, 200, (4, 3, 2)))
    codes = data.codes.copy()
    codes[:, 2] = (codes[:, 0] == 1).astype(np.int32)
    data = type(data)(data.name, data.variables, codes, data.weights)
    classifier = Classifier.fit(data, random_structure(np.random.default_rng(1), data.names))
    for asked in ({"x0": "+"}, {"x0": "-"}):
        (check,) = check_classifier(classifier, asked)
        assert check.constraint.classes == ("0", "1")
        assert not check.holds
        assert str(check).startswith("not true that the log-odds of '1' never")


def test_probabilities_of_0_are_refused(make_data) -> None:
    data = numbered(make_data(5, 9, (4, 3, 2)))
    classifier = Classifier.fit(data, random_structure(np.random.default_rng(1), data.names), 0.0)
    with pytest.raises(InputError, match="probabilities of 0"):
        check_classifier(classifier, {"x0": "+"})
