from __future__ import annotations

import io
import os
import signal
import threading
import time
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score

import milpbn
from milpbn.learners.base import Control
from milpbn.learners.registry import get_learner
from milpbn.sklearn import DifferentiableTANClassifier, NaiveBayesClassifier, TANClassifier
from milpbn.util import interrupts
from milpbn.util.options import declared

IRIS = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    ("model", "name", "options"),
    [
        (NaiveBayesClassifier(smoothing=0.5), "naive-bayes", {"smoothing": 0.5}),
        (TANClassifier(penalty="bic"), "tan", {"penalty": "bic"}),
        (
            DifferentiableTANClassifier(epochs=3, margin_weight=2.0, structure="all"),
            "differentiable-tan",
            {"epochs": 3, "lambda_": 2.0, "structure": "all"},
        ),
        (DifferentiableTANClassifier(epochs=3, structure="pseudo-all"), "differentiable-tan", None),
    ],
    ids=["naive-bayes", "tan", "differentiable-tan", "pseudo-tan"],
)
def test_the_classifier_is_that_of_the_learner(model: Any, name: str, options: Any) -> None:
    X, y = IRIS
    if options is None:
        options = {"epochs": 3, "structure": "pseudo-all"}
    data = milpbn.read_table((X, y)).dataset()
    expected = get_learner(name)(**options).fit(data, Control(random_state=5))
    model.set_params(**({"random_state": 5} if hasattr(model, "random_state") else {})).fit(X, y)
    assert np.array_equal(model.predict_joint_log_proba(X), expected.predictor.predict_log_joint(data))
    if expected.structure is None:
        assert model.structure_ is None
    else:
        assert list(model.structure_.values())[:-1] == [
            [f"x{int(p[1:]) - 1}" if p != "class" else p for p in parents]
            for parents in list(expected.structure.to_mapping().values())[:-1]
        ]


def test_probabilities_agree() -> None:
    X, y = IRIS
    model = TANClassifier().fit(X, y)
    joint = model.predict_joint_log_proba(X)
    total = np.logaddexp.reduce(joint, axis=1)[:, None]
    assert np.allclose(model.predict_log_proba(X), joint - total)
    assert np.allclose(model.predict_proba(X), np.exp(joint - total))
    assert model.score(X, y) == np.mean(model.predict(X) == y)


def test_other_parameters() -> None:
    X, y = IRIS
    model = TANClassifier(parameters="cll").fit(X, y)
    assert model.details_["parameters"]["fitted"]
    assert not np.allclose(model.predict_proba(X), TANClassifier().fit(X, y).predict_proba(X))


def test_joblib_and_grid_search() -> None:
    X, y = IRIS
    search = GridSearchCV(TANClassifier(), {"penalty": ["none", "bic"], "smoothing": [0.1, 1.0]}, cv=3)
    search.fit(X, y)
    file = io.BytesIO()
    joblib.dump(search, file)
    file.seek(0)
    assert np.array_equal(joblib.load(file).predict_proba(X), search.predict_proba(X))
    assert cross_val_score(search.best_estimator_, X, y, cv=3).mean() > 0.85


def test_a_training_without_time_has_a_model() -> None:
    X, y = IRIS
    model = DifferentiableTANClassifier(time_limit=0).fit(X, y)
    assert model.details_["stopped_early"]
    assert np.isfinite(model.predict_joint_log_proba(X)).all()


def test_ctrl_c_keeps_what_is_trained() -> None:
    X, y = IRIS
    DifferentiableTANClassifier(epochs=1).fit(X, y)  # compiles

    def interrupt() -> None:
        while interrupts._depth == 0:
            time.sleep(0.01)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    model = DifferentiableTANClassifier(epochs=10**7, structure="naive-bayes").fit(X, y)
    assert model.details_["stopped_early"]
    assert model.score(X, y) > 0.5
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("kind", [NaiveBayesClassifier, TANClassifier, DifferentiableTANClassifier])
def test_defaults_and_docstring_are_those_of_the_learner(kind: Any) -> None:
    own = kind().get_params()
    shared = [item for item in declared(kind._kind) if item.name in own]
    assert len(shared) >= 2
    for item in shared:
        assert own[item.name] == item.default
        assert f"\n    {item.name} : " in kind.__doc__
    assert "{" not in kind.__doc__.replace('{"', "")
