"""Columns that are left out of X by ``drop`` and ``features``."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from fine import refined
from sklearn.base import clone
from sklearn.datasets import load_iris

from milpbn.errors import InputError, MilpbnWarning
from milpbn.sklearn import MaxMarginBNClassifier, NaiveBayesClassifier, TANClassifier


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    return pd.DataFrame(
        {
            "id": np.arange(60),
            "x": y + rng.normal(0, 0.4, 60),
            "noise": rng.choice(["a", "b"], 60),
            "z": np.where(rng.random(60) < 0.2, 1 - y, y),
            "y": y,
        }
    )


def array(frame: pd.DataFrame) -> np.ndarray:
    return frame.drop(columns=["noise", "y"]).to_numpy(dtype=float)


@pytest.mark.parametrize("model", [MaxMarginBNClassifier(p=0.9), TANClassifier()])
def test_dropped_columns_count_as_absent(frame, model) -> None:
    X, y = frame.drop(columns="y"), frame["y"]
    plain = clone(model).fit(X[["x", "z"]], y).predict_proba(X[["x", "z"]])
    for options in (
        {"drop": ["id", "noise"]},
        {"drop": [0, "noise"]},
        {"features": ["x", "z"]},
        {"features": [1, 3]},
        {"features": ["x", 3], "drop": "id"},
    ):
        fitted = clone(model).set_params(**options).fit(X, y)
        assert {name: fitted.get_params()[name] for name in options} == options
        assert fitted.n_features_in_ == 4
        assert set(fitted.structure_) == {"x", "z", "y"}
        np.testing.assert_array_equal(fitted.predict_proba(X), plain)


@pytest.mark.parametrize("model", [MaxMarginBNClassifier(p=0.9), TANClassifier()])
def test_columns_that_were_left_out_need_not_come_at_prediction(frame, model) -> None:
    X, y = frame.drop(columns="y"), frame["y"]
    fitted = clone(model).set_params(drop=["noise"]).fit(X, y)
    expected = fitted.predict_proba(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(fitted.predict_proba(X[["x", "z"]]), expected)
        np.testing.assert_array_equal(fitted.predict_proba(X.drop(columns="id")), expected)
    with pytest.raises(ValueError, match=r"yet now missing:\n- z\nTo predict"):
        fitted.predict(X[["x"]])


def test_columns_of_arrays_are_named_or_numbered(frame) -> None:
    X, y = array(frame), frame["y"].to_numpy()
    plain = TANClassifier(continuous=[0], nominal=[1]).fit(X[:, 1:], y).predict_proba(X[:, 1:])
    kinds = {"continuous": [1], "nominal": [2]}
    for options in ({"drop": [0]}, {"drop": ["x0"]}, {"features": [1, 2]}, {"features": ["x1", 2]}):
        fitted = clone(TANClassifier(**options, **kinds)).fit(X, y)
        assert set(fitted.structure_) == {"x1", "x2", "class"}
        np.testing.assert_array_equal(fitted.predict_proba(X), plain)


def test_what_left_out_columns_hold_does_not_matter(frame) -> None:
    X, y = frame.drop(columns="y"), frame["y"]
    odd = X.assign(id=[np.inf, np.nan, *range(58)], noise=[None, *range(59)])
    model = NaiveBayesClassifier(missing="error", drop=["id", "noise"])
    expected = model.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(model.fit(odd, y).predict_proba(odd), expected)
    assert model.n_dropped_ == 0
    numbers = array(frame)
    holed = numbers.copy()
    holed[3, 0] = np.nan
    model = NaiveBayesClassifier(missing="error", drop=[0])
    np.testing.assert_array_equal(
        model.fit(numbers, y).predict_proba(numbers), model.fit(holed, y).predict_proba(holed)
    )
    holed[3, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(holed, y)


def test_a_column_that_looks_like_an_identifier_is_used_when_named(frame) -> None:
    X, y = frame.drop(columns="y"), frame["y"]
    assert "id" in NaiveBayesClassifier(features=["id", "x"]).fit(X, y).structure_


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"drop": ["q"]}, "The option 'drop' names 'q', which is not a column"),
        ({"features": [7]}, "There is no column 7 in X"),
        ({"features": []}, "features names no column"),
        ({"drop": ["x"], "features": ["x"]}, "in both 'drop' and 'features'"),
        ({"drop": ["id", "x", "noise", "z"]}, "is left as a feature"),
        ({"drop": ["x"], "continuous": ["x"]}, "leaves it out"),
    ],
)
def test_unusable_columns_are_refused(frame, options, said) -> None:
    with pytest.raises(InputError, match=said):
        NaiveBayesClassifier(**options).fit(frame.drop(columns="y"), frame["y"])


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (NaiveBayesClassifier(missing="select"), "missing must be one of drop, state, error; got 'select'"),
        (TANClassifier(missing="impute"), "missing must be one of drop, state, error; got 'impute'"),
        (MaxMarginBNClassifier(missing="impute"), "drop, state, error, select; got 'impute'"),
    ],
)
def test_an_unknown_policy_for_missing_values_is_refused(frame, model, said) -> None:
    X = frame.drop(columns="y")
    X.loc[X.index[0], "x"] = np.nan
    with pytest.raises(InputError, match=said):
        model.fit(X, frame["y"])


@pytest.mark.parametrize("model", [NaiveBayesClassifier(), TANClassifier(), MaxMarginBNClassifier(p=0.9)])
def test_declared_categories_are_states_when_asked_for(frame, model) -> None:
    X, y = frame[["x"]].assign(noise=pd.Categorical(frame["noise"], ["c", "a", "b"])), frame["y"]
    seen, declared = clone(model).fit(X, y), clone(model).set_params(states="declared").fit(X, y)
    assert seen.classifier_.variables[1].states == ("a", "b")
    assert declared.classifier_.variables[1].states == ("c", "a", "b")
    unseen = X.head(3).assign(noise=pd.Categorical(["c"] * 3, ["c", "a", "b"]))
    assert np.isfinite(declared.predict_log_proba(unseen)).all()
    with pytest.raises(InputError, match="states must be one of seen, declared"):
        clone(model).set_params(states="all").fit(X, y)


def test_a_fold_with_new_categories_only_is_predicted_with_a_warning(frame: pd.DataFrame) -> None:
    """Unlike elsewhere it is no error: scikit-learn's folds over groups hold such categories."""
    X = frame[["noise", "z"]]
    model = NaiveBayesClassifier().fit(X, frame["y"])
    new = X.assign(noise=np.where(X["z"] == 1, "c", "d"))
    with pytest.warns(
        MilpbnWarning, match="No value of the column 'noise' of 'table' occurs in the training data"
    ):
        shares = model.predict_proba(new)
    with pytest.warns(MilpbnWarning):
        np.testing.assert_array_equal(model.predict_proba(new.assign(noise="e")), shares)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict_proba(new[:1]), shares[:1])


def test_truth_values_of_frames_files_and_arrays_are_the_same(frame: pd.DataFrame) -> None:
    X = pd.DataFrame({"flag": frame["z"] == 1, "noise": frame["noise"]})
    expected = NaiveBayesClassifier().fit(X, frame["y"]).predict_proba(X)
    for form in (
        X.astype({"flag": int}),
        X.astype({"flag": float}),
        X.astype({"flag": str}),
        X.convert_dtypes(),
    ):
        np.testing.assert_array_equal(NaiveBayesClassifier().fit(X, frame["y"]).predict_proba(form), expected)


def test_two_variables_of_a_column_are_read_from_it(frame) -> None:
    X, y = frame[["x", "noise", "z"]], frame["y"]
    for table in (X, X[["x", "z"]].to_numpy()):
        fitted = NaiveBayesClassifier(absent_columns="marginalise", continuous=[0]).fit(table, y)
        expected = fitted.predict_proba(table)
        names = [v.name for v in fitted.classifier_.variables[:-1]]
        lacking = X.drop(columns="x")
        without = fitted.predict_proba(lacking) if table is X else None
        fitted.classifier_ = refined(fitted.classifier_, names[0], (-0.5, 0.1, 0.3))
        np.testing.assert_allclose(fitted.predict_proba(table), expected, rtol=0, atol=1e-12)
        if table is X:
            np.testing.assert_allclose(fitted.predict_proba(lacking), without, rtol=0, atol=1e-12)
        explained = fitted.explain_local(table)[0]
        assert [c.variables for c in explained.contributions[:-1]] == [(name,) for name in names]
        assert list(fitted.sample(5, random_state=0)[0]) == names


def test_columns_under_other_names_get_a_sentence_about_what_to_do():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = NaiveBayesClassifier().fit(X, y)
    for other in (X[X.columns[::-1]], X.assign(more=1)):
        with pytest.raises(ValueError, match=r"names should match[\s\S]*X\[model\.feature_names_in_\]"):
            model.predict(other)
        assert (model.predict(other[model.feature_names_in_]) == model.predict(X)).all()
    with pytest.raises(ValueError, match=r"yet now missing[\s\S]*model\.classifier_"):
        model.predict(X.iloc[:, :3])
    assert len(model.classifier_.predict(X.iloc[:, :3])) == len(X)
