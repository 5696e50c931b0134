"""Explanations of estimators: sums that equal `predict_log_proba`, with labels of y's own type."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from milpbn.estimators import NaiveBayesClassifier, TANClassifier
from milpbn.network import AveragedClassifier, evaluate


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"a": rng.normal(size=90), "b": rng.choice(["u", "v", "w"], 90), "n": rng.integers(0, 3, 90)}
    )
    y = np.where(X["a"] + (X["b"] == "u") + rng.normal(size=90) / 2 > 0.3, 10, np.where(X["n"] == 1, 2, 30))
    return X, y


@pytest.mark.parametrize("kind", [NaiveBayesClassifier, TANClassifier])
def test_contributions_add_up_to_differences_of_predict_log_proba(table, kind):
    X, y = table
    model = kind().fit(X, y)
    logs = model.predict_log_proba(X)
    place = {str(label): k for k, label in enumerate(model.classes_)}
    for m, found in enumerate(model.explain_local(X)):
        difference = logs[m, place[found.label]] - logs[m, place[found.against]]
        assert sum(c.log_odds for c in found.contributions) == pytest.approx(difference, abs=1e-12)
        assert found.predicted == str(model.predict(X)[m])
    first = model.explain_local(X[:1], label=30, against=2)[0]
    assert first.log_odds == pytest.approx(logs[0, 2] - logs[0, 0], abs=1e-12)
    with pytest.raises(ValueError, match="31 is not a class; the classes are"):
        model.explain_local(X, label=31)


def test_labels_give_margins(table):
    X, y = table
    model = NaiveBayesClassifier().fit(X, y)
    assert model.explain_global().importances is None
    assert model.explain_global(X).margins is None
    explained = model.explain_global(X, y, gamma=1.0)
    frame = X.assign(**{"class": y.astype(str)})
    expected = evaluate(model.classifier_, frame, gamma=1.0)
    assert explained.margins.soft_margin == pytest.approx(expected.soft_margin)
    assert sum(i.mean_margin for i in explained.importances) == pytest.approx(expected.mean_log_margin)
    with pytest.raises(ValueError, match="No label of y is one of the classes"):
        model.explain_global(X, y.astype(str))
    with pytest.raises(ValueError, match="y without X"):
        model.explain_global(y=y)


def test_an_average_is_explained_network_by_network(table):
    X, y = table
    models = [NaiveBayesClassifier(discretise=how).fit(X, y) for how in ("quantile:3", "uniform:4")]
    model = models[0]
    model.classifier_ = AveragedClassifier(tuple(m.classifier_ for m in models))
    explained = model.explain_global(X, y, gamma=1.0)
    assert len(explained.members) == 2
    assert all(member.margins is not None for member in explained.members)
    assert len(model.explain_local(X[:3])) == 3
