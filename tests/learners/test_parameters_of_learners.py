"""Learners with other parameters than their own, alone and in a comparison."""

from __future__ import annotations

import json

import numpy as np
import pytest
from running import copied_feature

from milpbn.errors import InputError
from milpbn.learners.appraisal import appraise
from milpbn.learners.base import Control
from milpbn.learners.comparison import compare
from milpbn.learners.generative.forests import NaiveBayes, Tan
from milpbn.learners.generative.multinet import MultinetLearner
from milpbn.learners.parameters import learn_with_parameters
from milpbn.learners.registry import get_learner
from milpbn.learners.svm import Svm
from milpbn.network import Classifier, evaluate


@pytest.fixture(scope="module")
def data():
    return copied_feature()


@pytest.mark.parametrize("method", ["cll", "hybrid", "temperature"])
def test_the_structure_stays_and_the_parameters_change(data, method) -> None:
    own = learn_with_parameters(NaiveBayes(), data, Control())
    other = learn_with_parameters(NaiveBayes(), data, Control(parameters=method))
    assert other.structure == own.structure
    assert "parameters" not in own.details
    assert other.details["parameters"]["fitted"]
    assert evaluate(other.predictor, data).log_loss < evaluate(own.predictor, data).log_loss


def test_ml_is_the_closed_form(data) -> None:
    own = NaiveBayes(smoothing=0.5).fit(data)
    same = learn_with_parameters(NaiveBayes(smoothing=0.5), data, Control(parameters="ml"))
    assert np.array_equal(same.predictor.predict_log_joint(data), own.predictor.predict_log_joint(data))
    assert same.details["parameters"]["method"] == "ml"
    zeros = get_learner("tan-mm")(zero_probability=1e-5)
    kept = learn_with_parameters(zeros, data, Control(parameters="ml"))
    assert np.array_equal(
        kept.predictor.predict_log_joint(data), zeros.fit(data).predictor.predict_log_joint(data)
    )


def test_what_cannot_be_fitted_keeps_the_learners_parameters(data) -> None:
    several = learn_with_parameters(MultinetLearner(), data, Control(parameters="cll"))
    assert "not an acyclic graph" in several.details["parameters"]["note"]
    unsmoothed = learn_with_parameters(
        get_learner("tan-mm")(zero_probability=1e-5), data, Control(parameters="cll")
    )
    assert unsmoothed.details["parameters"]["note"].endswith("the learner's parameters are kept.")
    assert not unsmoothed.details["parameters"]["fitted"]
    with pytest.raises(InputError, match="The model of svm is not a Bayesian network"):
        appraise(Svm, data, control=Control(parameters="cll"))
    with pytest.raises(InputError, match="no parameters 'x'"):
        Control(parameters="x")


def test_the_time_limit_covers_both(data, monkeypatch) -> None:
    limits = []

    class Watched(NaiveBayes):
        def _fit(self, data, control, budget):
            limits.append(budget.left())
            return super()._fit(data, control, budget)

    learn_with_parameters(Watched(), data, Control(time_limit=100.0, parameters="cll"))
    learn_with_parameters(Watched(), data, Control(time_limit=100.0, parameters="ml"))
    learn_with_parameters(Watched(), data, Control(time_limit=100.0))
    assert limits == pytest.approx([80.0, 100.0, 100.0], abs=1.0)


def test_an_interrupt_after_learning_keeps_the_parameters(data) -> None:
    learned = []

    class Watched(NaiveBayes):
        def _fit(self, data, control, budget):
            found = super()._fit(data, control, budget)
            learned.append(1)
            return found

    control = Control(parameters="hybrid", interrupted=lambda: bool(learned))
    found = learn_with_parameters(Watched(), data, control)
    assert isinstance(found.predictor, Classifier)
    assert "interrupted" in found.details["parameters"]["note"]


def test_an_appraisal_has_the_record(data) -> None:
    found = appraise(Tan, data, control=Control(parameters="cll"))
    document = found.to_dict()
    assert document["parameters"] == found.learned.details["parameters"]
    assert "parameters" not in document["details"]
    assert found.parameters.fitted
    assert found.training == pytest.approx(evaluate(found.learned.predictor, data).accuracy)
    assert appraise(Tan, data).to_dict()["parameters"] is None


def test_a_comparison_notes_the_parameters_of_each(data, tmp_path) -> None:
    names = ("mdl", "naive-bayes", "multinet")
    names = ("sm", "naive-bayes", "multinet")
    control = Control(parameters="cll", time_limit=60.0)
    plain = compare(data, None, names, control=Control(time_limit=60.0))
    found = compare(data, None, names, control=control, output=tmp_path / "c.json")
    rows = {row.name: row for row in found.rows}
    for row in plain.rows:
        assert rows[row.name].score == row.score
    for name in ("sm", "naive-bayes"):
        assert "parameters cll, kappa 0, strength " in rows[name].note
        assert rows[name].details["parameters"]["fitted"]
    assert "the learner's parameters are kept" in rows["multinet"].note
    assert "not of the retrained classifier" in str(found)
    assert "retrained" not in str(plain)
    assert json.loads((tmp_path / "c.json").read_text())["parameters"] == "cll"
