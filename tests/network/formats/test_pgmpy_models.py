from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from format_cases import assert_same, queries, random_classifier

from milpbn.errors import InputError
from milpbn.network.formats.pgmpy_models import from_pgmpy, to_pgmpy

models = pytest.importorskip("pgmpy.models")


@pytest.mark.parametrize("seed", range(5))
def test_pgmpy_has_the_same_joint_probabilities(seed):
    classifier = random_classifier(seed)
    model = to_pgmpy(classifier)
    assert model.check_model()
    assert_same(from_pgmpy(model), classifier)
    for states, probability in queries(classifier, 200):
        named = {classifier.variables[i].name: classifier.variables[i].states[k] for i, k in states.items()}
        assert model.get_state_probability(named) == pytest.approx(probability, rel=1e-12, abs=1e-15)


def test_a_model_without_tables_is_refused():
    with pytest.raises(InputError, match="has no table; fit the model"):
        from_pgmpy(models.DiscreteBayesianNetwork([("a", "b")]), "b")


@pytest.mark.parametrize("kind", ["int", "float", "bool", "str", "interval", "interval as text"])
def test_a_model_that_pgmpy_fitted_predicts_as_in_pgmpy(kind):
    """Names of states are numbers, truth values and intervals of pandas, some in the order of their texts."""
    rng = np.random.default_rng(0)
    number = rng.normal(size=200)
    values = {
        "int": rng.integers(0, 3, 200),
        "float": rng.choice([0.0, 1.0, 2.5], 200),
        "bool": rng.random(200) < 0.5,
        "str": rng.choice(["a b", "c"], 200),
        "interval": pd.cut(number, [-9, -1, 0, 0.5, 9]),
        "interval as text": pd.cut(number, [-9, -1, 0, 0.5, 9]).astype(str),
    }[kind]
    frame = pd.DataFrame({"v": values})
    y = np.where(rng.random(200) < 0.2, rng.random(200) < 0.5, frame["v"] == frame["v"][0])
    frame["y"] = pd.Series(y).astype({"int": int, "float": float, "bool": bool}.get(kind, str))
    model = pytest.importorskip("pgmpy.models").DiscreteBayesianNetwork([("y", "v")])
    model.fit(frame)
    classifier = from_pgmpy(model, target="y")
    expected = model.predict(frame[["v"]])["y"]
    assert (classifier.predict(frame) == expected).all()
    if kind.startswith("interval"):
        assert (classifier.predict(pd.DataFrame({"v": number})) == expected).all()
    back = from_pgmpy(to_pgmpy(classifier))
    assert back.variables == classifier.variables
    assert back.labels.dtype == classifier.labels.dtype


def test_labels_of_real_numbers_match_numbers():
    """pgmpy's states of a column of floats are 0.0, 1.0, whose texts are not those of the numbers."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"flag": rng.choice([0.0, 1.0], 200), "dose": rng.choice([0.5, 1.0, 2.0], 200)})
    frame["y"] = np.where(rng.random(200) < 0.2 + 0.6 * frame.flag * (frame.dose > 0.7), "sick", "ok")
    model = pytest.importorskip("pgmpy.models").DiscreteBayesianNetwork([("y", "flag"), ("y", "dose")])
    model.fit(frame)
    classifier = from_pgmpy(model, target="y")
    expected = model.predict(frame[["flag", "dose"]])["y"]
    for form in (frame, frame.astype({"flag": int}), frame.astype({"flag": bool}), frame.astype(str)):
        assert (classifier.predict(form) == expected).all()
