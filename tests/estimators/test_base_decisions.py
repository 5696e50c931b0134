"""What scikit-learn's selectors, threshold tuners and scorers need of the classifiers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.metrics import get_scorer, make_scorer, roc_auc_score
from sklearn.model_selection import TunedThresholdClassifierCV

from milpbn.errors import DataWarning
from milpbn.sklearn import MaxMarginBNClassifier, NaiveBayesClassifier, TANClassifier


@pytest.fixture(scope="module")
def ward():
    """Three features that tell the class, the first most clearly, three of noise, and an identifier."""
    rng = np.random.default_rng(1)
    y = rng.random(500) < 0.3
    X = pd.DataFrame(
        {f"x{i}": rng.random(500) < np.where(y, 0.5 + d, 0.5 - d) for i, d in enumerate((0.4, 0.3, 0.2))}
    )
    X = X.assign(**{f"noise{i}": rng.random(500) < 0.5 for i in range(3)})
    return X.assign(id=[f"patient {k}" for k in range(500)]), np.where(y, "sick", "well")


@pytest.mark.parametrize(
    "model",
    [
        NaiveBayesClassifier(),
        TANClassifier(),
        MaxMarginBNClassifier(p=0.9, max_parents=1),
        MaxMarginBNClassifier(select="max-parents=1,2", average=2, time_limit=5.0),
    ],
)
def test_importances_tell_features_from_noise(ward, model):
    X, y = ward
    found = model.fit(X, y).feature_importances_
    assert found.shape == (7,)
    assert found[0] == found.max()
    assert found[:3].min() > 2 * found[3:6].max()
    assert found[6] == 0  # the identifier is no feature
    chosen = SelectFromModel(model, threshold=float(found[:3].min())).fit(X, y).get_support()
    assert chosen.tolist() == [True] * 3 + [False] * 4


def test_importances_are_the_changes_of_the_probabilities(ward):
    """They are what predictions without a column differ by."""
    X, y = ward
    weights = np.random.default_rng(2).exponential(size=500)
    model = TANClassifier(missing="drop", absent_columns="marginalise").fit(
        X.assign(x1=X["x1"].astype(str)), y, weights
    )
    for k, name in enumerate(X.columns[:6]):
        rows = X.assign(x1=X["x1"].astype(str))
        with pytest.warns(DataWarning):
            without = model.predict_proba(rows.drop(columns=name))
        change = np.abs(model.predict_proba(rows) - without).sum(axis=1) / 2
        assert model.feature_importances_[k] == pytest.approx(np.average(change, weights=weights))


def test_rfe_drops_the_noise(ward):
    X, y = ward
    chosen = RFE(NaiveBayesClassifier(), n_features_to_select=3).fit(X.drop(columns="id"), y)
    assert chosen.support_.tolist() == [True] * 3 + [False] * 3


def test_the_decision_function_is_the_log_odds(ward):
    X, y = ward
    model = TANClassifier().fit(X, y)
    odds, p = model.decision_function(X), model.predict_proba(X)
    assert odds == pytest.approx(np.log(p[:, 1] / p[:, 0]))
    assert (model.classes_[(odds > 0).astype(int)] == model.predict(X)).all()
    assert get_scorer("roc_auc")(model, X, y) == pytest.approx(roc_auc_score(y == "well", p[:, 1]))
    three = NaiveBayesClassifier().fit(X, np.where(X["x0"], "a", y))
    assert three.decision_function(X) == pytest.approx(three.predict_log_proba(X))


def test_certain_rows_have_finite_log_odds():
    X, y = pd.DataFrame({"x": ["a", "a", "b", "b"]}), [0, 0, 1, 1]
    odds = NaiveBayesClassifier(smoothing=0.0).fit(X, y).decision_function(X)
    assert np.isfinite(odds).all()
    assert (odds < 0).tolist() == [True, True, False, False]


@pytest.mark.parametrize("response", ["predict_proba", "decision_function"])
def test_thresholds_can_be_tuned(ward, response):
    X, y = ward
    tuned = TunedThresholdClassifierCV(
        TANClassifier(), scoring="balanced_accuracy", response_method=response, cv=3
    )
    tuned.fit(X, y)
    plain = get_scorer("balanced_accuracy")(TANClassifier().fit(X, y), X, y)
    assert get_scorer("balanced_accuracy")(tuned, X, y) > plain - 0.02
    assert set(tuned.predict(X)) == {"sick", "well"}


COSTS = {"missed": 9, "false_alarm": 1}


@pytest.mark.parametrize(
    "model", [TANClassifier(costs=COSTS), MaxMarginBNClassifier(p=0.9, max_parents=1, costs=COSTS)]
)
def test_costs_decide_and_leave_the_probabilities_as_they_are(ward, model):
    X, y = ward
    decided = model.fit(X, y)
    plain = clone(model).set_params(costs=None).fit(X, y)
    p = decided.predict_proba(X)[:, 0]
    assert (p == plain.predict_proba(X)[:, 0]).all()
    assert (decided.predict(X) == np.where(p > 0.1, "sick", "well")).all()
    assert (plain.predict(X) == np.where(p >= 0.5, "sick", "well")).all()
    frame = pd.DataFrame([[0, 9], [1, 0]], index=["sick", "well"], columns=["sick", "well"])
    assert (clone(model).set_params(costs=frame).fit(X, y).predict(X) == decided.predict(X)).all()
    with pytest.raises(ValueError, match="one of 'sick', 'well'; got 'ill'"):
        clone(model).set_params(costs={**COSTS, "positive": "ill"}).fit(X, y)


def test_costs_of_numbers_as_labels_and_of_three_classes(ward):
    X, _ = ward
    y = np.random.default_rng(3).choice([10, 9, 100], 500)
    costs = {t: {d: abs(t - d) for d in (9, 10, 100)} for t in (9, 10, 100)}
    model = NaiveBayesClassifier(costs=costs).fit(X, y)
    p = model.predict_proba(X)
    matrix = np.array([[costs[t][d] for d in model.classes_] for t in model.classes_])
    assert (model.predict(X) == model.classes_[(p @ matrix).argmin(axis=1)]).all()


def test_a_threshold_tuned_for_a_cost_is_near_that_of_the_costs(ward):
    X, y = ward

    def gain(truth, predicted):
        return -np.mean(
            9 * ((truth == "sick") & (predicted == "well")) + ((truth == "well") & (predicted == "sick"))
        )

    tuned = TunedThresholdClassifierCV(TANClassifier(costs=COSTS), scoring=make_scorer(gain), cv=5).fit(X, y)
    ours = TANClassifier(costs=COSTS).fit(X, y)
    assert gain(y, ours.predict(X)) > gain(y, TANClassifier().fit(X, y).predict(X))
    assert gain(y, ours.predict(X)) > gain(y, tuned.predict(X)) - 0.1
    assert 1 - tuned.best_threshold_ == pytest.approx(0.1, abs=0.1)


@pytest.mark.parametrize("by", ["roc-auc", pytest.param("average-precision", marks=pytest.mark.slow), "cost"])
def test_a_selection_takes_what_is_best_on_held_out_rows(ward, by):
    X, y = ward
    model = MaxMarginBNClassifier(
        objective="cll",
        select="max-parents=1,2",
        select_by=by,
        costs=COSTS,
        time_limit=60.0,
    ).fit(X, y)
    trials, chosen = model.result_.selection.trials, model.result_.selection.chosen
    values = [getattr(trial, by.replace("-", "_")) for trial in trials]
    best = min if by == "cost" else max
    assert getattr(chosen, by.replace("-", "_")) == pytest.approx(best(values), abs=1e-12)
    assert len(set(values)) > 1


@pytest.mark.parametrize("balanced", [None, "balanced"])
def test_sets_of_folds_and_of_new_rows(ward, balanced):
    X, y = ward
    weights = np.random.default_rng(7).integers(0, 3, 500).astype(float)
    codes = np.where(y == "sick", 7, 3)
    model = TANClassifier(class_weight=balanced).fit(X, codes, weights)
    with pytest.raises(ValueError, match="not calibrated"):
        model.predict_set(X)
    for on, rows in (("folds", slice(None)), ("leave-one-out", slice(None)), ("new", slice(0, 200))):
        found = model.calibrate_sets(X[rows], codes[rows], weights[rows], on=on).predict_set(X, 0.03)
        assert found.shape == (500, 2)
        own = np.searchsorted(model.classes_, codes)
        assert np.average(found[np.arange(500), own], weights=weights) > 0.93
        top = model.predict_proba(X).argmax(axis=1)
        assert found[np.arange(500), top].all()
        assert 1 < found.sum(axis=1).mean() < 1.9
    low, high = model.predict_interval(X[:20], 0.9, draws=200)
    p = model.predict_proba(X[:20])
    assert ((low <= p) & (p <= high) & (low < high)).all()
    both = model.set_params(parameters="cll").fit(X, codes, weights)
    with pytest.raises(ValueError, match="fitted to the classes"):
        both.predict_interval(X)


def test_no_answer_is_an_object(ward):
    X, y = ward
    codes = np.where(y == "sick", 7, 3)
    model = NaiveBayesClassifier(costs={"abstain": 0.2}).fit(X, codes)
    p = model.predict_proba(X)
    expected = [7 if b > 0.8 else 3 if a > 0.8 else "do not know" for a, b in p]
    assert model.predict(X).tolist() == expected
    assert len({*expected}) == 3
