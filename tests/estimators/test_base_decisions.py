"""What scikit-learn's selectors, threshold tuners and scorers need of the classifiers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import TunedThresholdClassifierCV

from milpbn.errors import DataWarning
from milpbn.sklearn import MaxMarginBNClassifier, NaiveBayesClassifier, TANClassifier


@pytest.fixture(scope="module")
def ward():
    """Three features that tell the class, the first most clearly, three of noise, and an identifier."""
    rng = np.random.default_rng(1)
    y = rng.random(500) < 0.3
    X = pd.DataFrame({f"x{i}": rng.random(500) < np.where(y, 0.5 + d, 0.5 - d) for i, d in enumerate((0.4, 0.3, 0.2))})
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
    model = TANClassifier(missing="drop", absent_columns="marginalise").fit(X.assign(x1=X["x1"].astype(str)), y, weights)
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
    tuned = TunedThresholdClassifierCV(TANClassifier(), scoring="balanced_accuracy", response_method=response, cv=3)
    tuned.fit(X, y)
    plain = get_scorer("balanced_accuracy")(TANClassifier().fit(X, y), X, y)
    assert get_scorer("balanced_accuracy")(tuned, X, y) > plain - 0.02
    assert set(tuned.predict(X)) == {"sick", "well"}
