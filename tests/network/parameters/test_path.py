"""The path has the classifiers that `refit` fits with given values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from milpbn.network.classifier import Classifier
from milpbn.network.margins import log_posterior
from milpbn.network.parameters.conditional import Stopped
from milpbn.network.parameters.folds import STRENGTHS
from milpbn.network.parameters.refit import PATH_KAPPAS, fitted_path, refit_classifier
from milpbn.network.structure import Structure

TAN = ((4,), (0, 4), (0, 4), (2, 4), ())
#: Number of classifiers on the path, the generative one included.
LENGTHS = {
    "ml": 1,
    "cll": len(STRENGTHS),
    "hybrid": 1 + 5 * len(STRENGTHS) + 3,
    "temperature": len(PATH_KAPPAS["temperature"]),
}


@pytest.fixture
def before(make_data):
    data = make_data(3, samples=150)
    return Classifier.fit(data, Structure(data.names, TAN)), data


@pytest.mark.parametrize("method", LENGTHS)
def test_every_classifier_is_that_of_a_refit_with_its_values(before, method) -> None:
    classifier, data = before
    found = list(fitted_path(classifier, data, method))
    assert len(found) == len({how for how, _ in found}) == LENGTHS[method]
    for how, fitted in found[:: max(1, len(found) // 6)]:
        again, record = refit_classifier(classifier, data, str(how))
        assert (record.fitted, record.folds) == (how.name != "ml", None)
        posteriors = (log_posterior(c.predict_log_joint(data)) for c in (fitted, again))
        np.testing.assert_allclose(*map(np.exp, posteriors), rtol=0, atol=1e-2)


def test_the_generative_parameters_have_the_prior_of_the_classifier(before) -> None:
    _, data = before
    classifier = Classifier.fit(data, Structure(data.names, TAN), smoothing_towards="class")
    joint = classifier.predict_log_joint(data)
    for how, fitted in fitted_path(classifier, data, "temperature"):
        again, _ = refit_classifier(classifier, data, str(how))
        expected = log_posterior((how.kappa or 1.0) * joint)
        for found in (fitted, again):
            assert found.smoothing_towards == "class"
            np.testing.assert_allclose(log_posterior(found.predict_log_joint(data)), expected, atol=1e-9)


def test_rows_of_weight_0_have_no_part(before) -> None:

    classifier, data = before
    weights = np.ones(data.n_samples)
    weights[::3] = 0.0
    some = replace(data, weights=weights)
    taken = data.take(np.flatnonzero(weights))
    for (how, one), (other_how, other) in zip(
        fitted_path(classifier, some, "hybrid"), fitted_path(classifier, taken, "hybrid"), strict=True
    ):
        assert how == other_how
        np.testing.assert_allclose(one.predict_log_joint(data), other.predict_log_joint(data), atol=1e-9)


def test_a_structure_without_room_keeps_its_classifier(before) -> None:
    _, data = before
    classifier = Classifier.fit(data, Structure(data.names, ((), (0,), (0, 4), (4,), (1,))))
    found = list(fitted_path(classifier, data, "hybrid"))
    assert [how.name for how, _ in found] == ["ml"]
    assert found[0][1] is classifier


def test_a_stop_ends_the_path(before) -> None:
    classifier, data = before
    with pytest.raises(Stopped):
        list(fitted_path(classifier, data, "cll", stopping=lambda: True))
