"""Explanations of a whole classifier: importances, margins, and which samples are below gamma."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from milpbn.data.dataset import MISSING, UNKNOWN
from milpbn.errors import InputError
from milpbn.network import Classifier, Structure, evaluate
from milpbn.network.margins import log_margins


@pytest.fixture
def fitted(make_data, make_structure):
    data = make_data(2, weights=np.linspace(0.5, 2, 60))
    return Classifier.fit(data, make_structure(data.names, 2)), data


def test_importances_are_the_means_of_the_local_contributions(fitted):
    classifier, data = fitted
    explained = classifier.explain_global(data)
    local = classifier.explain_local(data)
    *features, base = explained.importances
    for importance in explained.importances:
        i = -1 if importance is base else data.names.index(importance.variable)
        absolute = [abs(found.contributions[i].log_odds) for found in local]
        assert importance.mean_absolute == pytest.approx(
            np.average(absolute, weights=data.weights), abs=1e-12
        )
    values = [importance.mean_absolute for importance in features]
    assert values == sorted(values, reverse=True)
    assert (base.part, base.variable) == ("base rate", "class")


def test_contributions_to_the_margin_add_up_to_the_mean_log_margin(fitted):
    classifier, data = fitted
    total = sum(importance.mean_margin for importance in classifier.explain_global(data).importances)
    assert total == pytest.approx(evaluate(classifier, data).mean_log_margin, abs=1e-12)


def test_missing_values_keep_the_sum_of_the_contributions(fitted):
    classifier, data = fitted
    codes = data.codes.copy()
    codes[:, :-1][np.random.default_rng(0).random(codes[:, :-1].shape) < 0.2] = MISSING
    data = replace(data, codes=codes)
    total = sum(importance.mean_margin for importance in classifier.explain_global(data).importances)
    assert total == pytest.approx(evaluate(classifier, data).mean_log_margin, abs=1e-12)


def test_margins_and_samples_below_gamma(fitted):
    classifier, data = fitted
    codes = data.codes.copy()
    codes[:5, -1] = UNKNOWN
    data = replace(data, codes=codes)
    explained = classifier.explain_global(data, gamma=0.3).margins
    margins = log_margins(classifier.predict_log_joint(data)[5:], data.y[5:])
    np.testing.assert_allclose(explained.log_margins, margins, rtol=0, atol=1e-12)
    assert explained.samples.tolist() == list(range(5, 60))
    low = {found.sample: found.log_margin for found in explained.below_gamma}
    assert sorted(low) == (np.flatnonzero(margins < 0.3) + 5).tolist()
    assert list(low.values()) == sorted(low.values())
    weights, edges = explained.histogram(7)
    assert len(edges) == 8
    assert weights.sum() == pytest.approx(data.weights[5:].sum())
    assert explained.soft_margin == pytest.approx(data.weights[5:] @ np.minimum(margins, 0.3))
    without = classifier.explain_global(data).margins
    assert {found.sample for found in without.below_gamma} == set((np.flatnonzero(margins <= 0) + 5).tolist())
    assert all(found.actual != found.predicted or found.log_margin == 0 for found in without.below_gamma)


def test_data_without_classes_have_importances_and_no_margins(fitted):
    classifier, data = fitted
    codes = data.codes.copy()
    codes[:, -1] = UNKNOWN
    explained = classifier.explain_global(replace(data, codes=codes))
    assert explained.margins is None
    assert all(importance.mean_margin is None for importance in explained.importances)


def test_infinite_margins_are_counted_in_the_outer_bars(make_data):
    data = make_data(0, samples=8)
    classifier = Classifier.fit(data, Structure.naive_bayes(data.names), smoothing=0.0)
    margins = classifier.explain_global(data, gamma=1.0).margins
    assert np.isinf(margins.log_margins).any()
    assert margins.histogram()[0].sum() == 8
    json.dumps(classifier.explain_global(data).to_dict(), allow_nan=False)


def test_features_that_no_prediction_depends_on_are_named(make_data):
    data = make_data(0)
    last = len(data.names) - 1
    parents = [(), (2,), (), (last,), ()]
    explained = Classifier.fit(data, Structure(data.names, tuple(parents))).explain_global()
    assert [table.variable for table in explained.tables] == ["class", "x3"]
    assert explained.unused == ("x0", "x1", "x2")
    assert "not used: x0, x1, x2" in str(explained)


def test_the_text_is_bounded_and_says_what_it_leaves_out(fitted):
    classifier, data = fitted
    text = classifier.explain_global(data, gamma=50.0).to_text(shown=2)
    assert "samples below gamma = 50: 60 of 60" in text
    assert "... 58 more samples" in text
    assert text.splitlines()[0] == "Classes of class: s0, s1, s2"


def test_bad_arguments_are_refused(fitted):
    classifier, data = fitted
    with pytest.raises(InputError, match="gamma must be a positive number of nats, got 0"):
        classifier.explain_global(data, gamma=0)
    with pytest.raises(InputError, match="no row with a positive weight"):
        classifier.explain_global(data.take(np.arange(0)))


def test_low_margins_name_the_most_probable_class_as_such(fitted):
    classifier, data = fitted
    explained = classifier.explain_global(data, gamma=50.0)
    low = explained.margins.below_gamma[0]
    line = f"sample {low.sample + 1}: {low.actual}, most probable {low.predicted}"
    assert line in explained.to_text()
    assert "without a positive margin" in classifier.explain_global(data).to_text()
