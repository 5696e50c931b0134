from __future__ import annotations

import datetime as dt
import re
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import milpbn
from milpbn.errors import DataWarning, InputError
from milpbn.estimators.inputs import class_texts
from milpbn.sklearn import (
    BayesianNetworkStructure,
    MaxMarginBNClassifier,
    NaiveBayesClassifier,
    TANClassifier,
)


def mixed(n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a frame with a column of every type, and classes 0 and 1 that depend on most of them."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, n)
    noise = rng.random((n, 6)) < 0.2
    bits = np.where(noise, 1 - y[:, None], y[:, None])
    return pd.DataFrame(
        {
            "category": pd.Categorical(
                np.where(bits[:, 0], "high", "low"), categories=["low", "high", "never"]
            ),
            "flag": bits[:, 1].astype(bool),
            "count": np.arange(n) + 100 * y,
            "level": bits[:, 2] + 2 * rng.integers(0, 2, n),
            "text": np.where(bits[:, 3], "u", "v"),
            "nullable": pd.array(bits[:, 4], dtype="Int64"),
            "real": bits[:, 5] + rng.random(n) / 4,
        }
    ), y


LABELS: list[Any] = [
    np.array([3, 7], dtype=np.int64),
    np.array([3, 7], dtype=np.uint8),
    np.array([-1, 1], dtype=np.int32),
    np.array([1.0, 2.0]),
    np.array([1.0, 2.0], dtype=np.float32),
    np.array([False, True]),
    np.array(["no", "yes"]),
    np.array(["no", "yes"], dtype=object),
    np.array(["01", "1"]),
    np.array(["NA", "?"]),
    np.array([" a", "a"], dtype=object),
]


@pytest.mark.parametrize("classes", LABELS, ids=lambda c: f"{c.dtype}-{c.tolist()}")
def test_labels_come_back_as_they_went_in(classes: np.ndarray) -> None:
    X, y = mixed()
    model = NaiveBayesClassifier().fit(X, classes[y])
    assert model.classes_.dtype == classes.dtype
    assert model.classes_.tolist() == sorted(classes.tolist())
    predicted = model.predict(X)
    assert predicted.dtype == classes.dtype
    assert np.mean(predicted == classes[y]) > 0.9
    assert model.predict_proba(X).argmax(axis=1).tolist() == [
        sorted(classes.tolist()).index(label) for label in predicted.tolist()
    ]


@pytest.mark.parametrize(
    "target",
    [
        lambda y: y.tolist(),
        lambda y: pd.Series(np.where(y, "yes", "no"), name="count", index=np.arange(len(y))[::-1]),
        lambda y: pd.Series(pd.Categorical(np.where(y, "yes", "no"))),
        lambda y: pd.Series(np.where(y, "yes", "no"), dtype="string"),
        lambda y: pd.Series(y, dtype="Int64"),
        lambda y: pd.Series(y, dtype="boolean"),
    ],
    ids=["list", "series", "categorical", "string", "Int64", "boolean"],
)
def test_targets_of_pandas(target: Any) -> None:
    X, y = mixed()
    model = NaiveBayesClassifier().fit(X, target(y))
    assert len(model.classes_) == 2
    assert (model.predict(X) == model.classes_[y]).mean() > 0.9
    assert len(model.structure_) == X.shape[1] + 1  # a name of y that a feature has is changed


@pytest.mark.parametrize(
    ("name", "target"), [(" a ", "a"), ("", "class"), (None, "class"), (0, "0"), ("real", "real_")]
)
def test_the_name_of_the_class(name: Any, target: str) -> None:
    X, y = mixed()
    assert list(NaiveBayesClassifier().fit(X, pd.Series(y, name=name)).structure_) == [*X.columns, target]


def test_ten_classes_are_in_numeric_order() -> None:
    y = np.repeat(np.arange(12), 4)
    model = NaiveBayesClassifier().fit(y[:, None], y)
    assert model.classes_.tolist() == list(range(12))
    assert (model.predict(y[:, None]) == y).mean() > 0.5
    assert class_texts(np.array([10, 9])) == ["10", "9"]
    assert class_texts(np.array(["NA", "b"])) == ["'NA'", "'b'"]


def test_the_type_of_a_column_decides_its_kind() -> None:
    X, y = mixed()
    model = NaiveBayesClassifier().fit(X, y)
    kinds = {v.name: "nominal" if v.cuts is None else "continuous" for v in model.classifier_.variables}
    continuous = {name for name, kind in kinds.items() if kind == "continuous"}
    assert continuous == {"count", "real"}
    assert model.feature_names_in_.tolist() == list(X.columns)
    assert model.n_features_in_ == X.shape[1]

    model = NaiveBayesClassifier(continuous=["level", 5], nominal=["real", 2]).fit(X, y)
    cuts = {v.name for v in model.classifier_.variables if v.cuts is not None}
    assert cuts == {"level", "nullable"}


def test_declarations_of_arrays_are_positions() -> None:
    X, y = mixed()
    numbers = X[["real", "level", "count"]].to_numpy(dtype=float)
    assert [v.cuts is None for v in NaiveBayesClassifier().fit(numbers, y).classifier_.variables] == [
        False,
        False,
        False,
        True,
    ]
    model = NaiveBayesClassifier(nominal=[1]).fit(numbers, y)
    assert [v.cuts is None for v in model.classifier_.variables] == [False, True, False, True]
    assert list(model.structure_) == ["x0", "x1", "x2", "class"]
    with pytest.raises(milpbn.InputError, match="no column 3 in X; positions are 0 to 2"):
        NaiveBayesClassifier(nominal=[3]).fit(numbers, y)
    with pytest.raises(milpbn.InputError, match="'level', which is not a column"):
        NaiveBayesClassifier(nominal="level").fit(numbers, y)


def test_an_array_of_objects_is_read_like_a_frame() -> None:
    X, y = mixed()
    frame, array = (TANClassifier().fit(data, y) for data in (X, X.to_numpy(dtype=object)))
    assert np.array_equal(frame.predict_proba(X), array.predict_proba(X.to_numpy(dtype=object)))


def test_text_in_an_array() -> None:
    y = np.repeat([0, 1], 10)
    X = np.where(y, "1", "0")[:, None]
    model = NaiveBayesClassifier().fit(X, y)
    assert (model.predict(X) == y).all()
    assert model.classifier_.variables[0].cuts is None


def test_integers_beside_nulls_of_arrow_stay_integers() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    cells, y = [0, 1, None, 2, 3, 1] * 5, [0, 1] * 15
    for kind in ("Int8", "UInt16", "Int64"):
        frame = pd.DataFrame({"x": pd.array(cells, dtype=kind)})
        table = pyarrow.table({"x": pyarrow.array(cells, kind.lower())})
        given, other = (NaiveBayesClassifier(missing="state").fit(X, y) for X in (frame, table))
        assert other.classifier_.variables == given.classifier_.variables
        assert other.classifier_.variables[0].cuts is None
        np.testing.assert_array_equal(given.predict_proba(frame), other.predict_proba(table))


def test_classes_that_may_stand_for_missing_ones_are_said() -> None:
    """As numpy.where(known, label, numpy.nan) makes them."""
    X, y = mixed()
    words = np.where(np.arange(len(y)) < 9, "nan", np.where(np.asarray(y) == np.unique(y)[0], "a", "b"))
    with pytest.warns(
        DataWarning, match=r"may stand for missing ones, taken as they are: 'nan' in column 'class'"
    ):
        model = NaiveBayesClassifier().fit(X, words)
    assert model.classes_.tolist() == ["a", "b", "nan"]


def test_lists_of_rows_keep_the_numbers_beside_texts() -> None:
    """NumPy would turn them into texts."""
    X, y = mixed()
    X = X[["text", "real", "level"]]
    rows = X.to_numpy(dtype=object).tolist()
    model, other = NaiveBayesClassifier().fit(X, y), NaiveBayesClassifier().fit(rows, y)
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(rows))
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(list(map(tuple, rows))))
    assert other.classifier_.variables[1].cuts is not None


def test_many_numbers_as_text_are_said() -> None:
    X = pd.DataFrame({"x": np.random.default_rng(0).normal(size=60).astype(str)})
    y = np.repeat([0, 1], 30)
    with pytest.warns(
        milpbn.DataWarning, match=r"'x' of X holds 60 different numbers as text, and each is a state"
    ):
        NaiveBayesClassifier().fit(X, y)
    assert NaiveBayesClassifier(continuous=["x"]).fit(X, y).classifier_.variables[0].cuts is not None


@pytest.mark.parametrize("column", ["real", "text", "nullable", "category"])
def test_missing_values(column: str) -> None:
    X, y = mixed()
    holes = X.copy()
    holes.loc[::5, column] = None
    with pytest.raises(
        ValueError, match=r"Input X contains NaN.\nNaiveBayesClassifier does not accept missing"
    ):
        NaiveBayesClassifier(missing="error").fit(holes, y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        NaiveBayesClassifier(missing="error").fit(X, y).predict(holes)

    own = NaiveBayesClassifier(missing="state").fit(holes, y)
    assert next(v for v in own.classifier_.variables if v.name == column).missing_state
    assert np.isfinite(own.predict_joint_log_proba(holes)).all()

    dropping = NaiveBayesClassifier()
    with pytest.warns(milpbn.DataWarning, match="12 of 60"):
        dropping.fit(holes, y)
    whole = np.arange(60) % 5 != 0
    same = NaiveBayesClassifier().fit(X[whole], y[whole])
    assert np.array_equal(dropping.predict_proba(X), same.predict_proba(X))
    assert dropping.n_dropped_ == 12
    # Without the column, naive Bayes has the product of the other factors.
    others = NaiveBayesClassifier().fit(X[whole].drop(columns=column), y[whole])
    expected = np.where(whole[:, None], same.predict_proba(X), others.predict_proba(X.drop(columns=column)))
    assert np.allclose(dropping.predict_proba(holes), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA])
def test_every_mark_of_a_missing_value_is_marginalised(nothing: object) -> None:
    X, y = mixed()
    model = NaiveBayesClassifier().fit(X[["text"]].assign(more=X["text"]), y)
    holes = pd.DataFrame({"text": X["text"], "more": pd.Series([nothing] * len(X), dtype=object)})
    assert np.allclose(
        model.predict_proba(holes), NaiveBayesClassifier().fit(X[["text"]], y).predict_proba(X[["text"]])
    )
    assert np.allclose(model.predict_proba(holes.to_numpy(dtype=object)), model.predict_proba(holes))


def test_absent_columns_are_marginalised_if_asked_for() -> None:
    X, y = mixed()
    with pytest.raises(ValueError, match="yet now missing"):
        NaiveBayesClassifier().fit(X, y).predict(X.drop(columns="text"))
    model = NaiveBayesClassifier(absent_columns="marginalise", missing="state").fit(X, y)
    with pytest.warns(milpbn.DataWarning, match=rf"1 of {X.shape[1]} columns is absent \('text'\)"):
        found = model.predict_proba(X.drop(columns="text")[::-1])
    others = NaiveBayesClassifier().fit(X.drop(columns="text"), y)
    assert np.allclose(found, others.predict_proba(X.drop(columns="text")[::-1]), rtol=0, atol=1e-14)
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.predict(X.drop(columns="text").assign(other=0))
    with pytest.raises(milpbn.InputError, match="none of the columns"):
        model.predict(X[[]])
    with pytest.raises(milpbn.InputError, match="absent_columns must be one of"):
        NaiveBayesClassifier(absent_columns="ignore").fit(X, y)


def test_samples_and_their_log_likelihood() -> None:
    X, y = mixed()
    model = NaiveBayesClassifier().fit(X[["text", "nullable"]], y)
    drawn, classes = model.sample(500, random_state=1)
    assert drawn.shape == (500, 2)
    assert set(classes) == set(y)
    again, _ = model.sample(500, random_state=1)
    assert drawn.equals(again)
    # The shares of the classes are those of the model, and the drawn features are its states.
    prior = model.classifier_.posterior(model.classifier_.variables[-1].name)
    assert np.mean(classes == y[0]) == pytest.approx(prior[str(y[0])], abs=0.1)
    joint = model.predict_joint_log_proba(X[["text", "nullable"]])
    assert np.allclose(model.score_samples(X[["text", "nullable"]]), np.logaddexp.reduce(joint, axis=1))


def test_infinity_is_refused() -> None:
    X, y = mixed()
    X.loc[3, "real"] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        NaiveBayesClassifier(missing="state").fit(X, y)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda X, y: (X, None), "requires y to be passed"),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
        (lambda X, y: (X, np.linspace(0, 1, len(y))), "Unknown label type: continuous"),
        (lambda X, y: (X, np.where(y, np.nan, 1.0)), "Input y contains NaN"),
        (lambda X, y: (X, np.where(y, None, "a")), "Input y contains NaN"),
        (lambda X, y: (X, np.where(y, "a", np.array(1, dtype=object))), "objects of the type int, str"),
        (lambda X, y: (X, np.zeros(len(y))), r"one class only in the training data \('0'\)"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (X.assign(real=[{}] * len(X)), y), "'real' of X holds a dict"),
    ],
)
def test_unusable_data_are_refused(change: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        NaiveBayesClassifier().fit(*change(*mixed()))


def test_columns_in_another_order_are_refused() -> None:
    X, y = mixed()
    numbered = X[["real"]].assign(other=-X["real"]).set_axis([0, 1], axis=1)
    with pytest.raises(ValueError, match="in another order"):  # scikit-learn does not look at numbers
        NaiveBayesClassifier(missing="state").fit(numbered, y).predict(numbered[[1, 0]])
    model = NaiveBayesClassifier().fit(X, y)
    with pytest.raises(ValueError, match="same order"):
        model.predict(X[X.columns[::-1]])


def test_numbers_of_other_columns_are_named_where_they_are_names() -> None:
    X, y = mixed()
    numbered = X[["real"]].assign(other=-X["real"]).set_axis([3, 4], axis=1)
    model = NaiveBayesClassifier(missing="state").fit(numbered, y)
    with pytest.warns(DataWarning, match="X has other columns than the fit, such as '4' in the place of '3'"):
        model.predict(numbered.set_axis([4, 5], axis=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = model.predict(numbered).tolist()
        assert model.predict(numbered.set_axis([0, 1], axis=1)).tolist() == expected
        of_array = NaiveBayesClassifier(missing="state").fit(numbered.to_numpy(), y)
        assert of_array.predict(numbered).tolist() == expected


@pytest.mark.parametrize(
    "model",
    [NaiveBayesClassifier(), NaiveBayesClassifier(discretise="kmeans:4"), TANClassifier(penalty="bic")],
    ids=repr,
)
def test_a_weight_is_a_number_of_rows(model: Any) -> None:
    X, y = mixed()
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 4, len(y))
    labels = np.where(np.arange(len(y)) < 5, 2, y)  # class 2 and one category only have the weight 0
    X["category"] = np.where(labels == 2, "rare", X["category"].astype(str))
    X["level"] = np.where(
        labels == 2, np.arange(60) + 40, X["level"]
    )  # with these rows it would be continuous
    weights[:5] = 0
    weighted = clone(model).fit(X, labels, sample_weight=weights)
    rows = rng.permutation(np.repeat(np.arange(len(y)), weights))
    repeated = clone(model).fit(X.iloc[rows], labels[rows])
    assert weighted.classes_.tolist() == [0, 1]
    assert weighted.classifier_.variables == repeated.classifier_.variables
    assert weighted.structure_ == repeated.structure_
    assert np.array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    assert any(v.cuts for v in weighted.classifier_.variables)


def test_class_weights_are_weights() -> None:
    X, y = mixed()
    weights = np.random.default_rng(1).integers(1, 4, len(y))
    for given, factors in (
        ({0: 2.0, 1: 5.0}, np.where(y, 5.0, 2.0)),
        ("balanced", weights.sum() / (2 * np.where(y, weights[y == 1].sum(), weights[y == 0].sum()))),
    ):
        # The MDL criterion counts rows, and class weights are no rows; the other methods know shares only.
        cut = {"discretise": "quantile:4"}
        one = NaiveBayesClassifier(class_weight=given, **cut).fit(X, y, sample_weight=weights)
        other = NaiveBayesClassifier(**cut).fit(X, y, sample_weight=weights * factors)
        assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    found = [
        NaiveBayesClassifier(class_weight={0: 2.0 * k, 1: 5.0 * k}).fit(X, y).classifier_.variables
        for k in (1.0, 1000.0)
    ]
    assert found[0] == found[1]
    with pytest.raises(
        ValueError, match=re.escape("Class weights must be positive numbers, got {0: 0, 1: 1}.")
    ):
        NaiveBayesClassifier(class_weight={0: 0, 1: 1}).fit(X, y)


def test_columns_of_data_frames_without_use_are_left_out() -> None:
    X, y = mixed()
    X = X.assign(customer_id=np.arange(len(X)), name=[f"n{i}" for i in range(len(X))])
    with pytest.warns(
        milpbn.DataWarning, match="'customer_id' looks like an identifier .*'name' looks like an"
    ):
        model = NaiveBayesClassifier().fit(X, y)
    assert model.n_features_in_ == X.shape[1]
    assert not {"customer_id", "name"} & set(model.structure_)
    plain = NaiveBayesClassifier().fit(X.drop(columns=["customer_id", "name"]), y)
    assert (model.predict_proba(X) == plain.predict_proba(X.drop(columns=["customer_id", "name"]))).all()
    first = X[["customer_id", *[c for c in X.columns if c != "customer_id"]]]
    with pytest.warns(milpbn.DataWarning):
        assert (NaiveBayesClassifier().fit(first, y).predict(first) == model.predict(X)).all()
    kept = NaiveBayesClassifier(nominal=["name"], continuous=["customer_id"]).fit(X, y)
    assert {"customer_id", "name"} <= set(kept.structure_)


def test_durations_are_numbers_and_columns_without_values_drop_no_rows() -> None:
    X, y = mixed()
    stay = pd.to_timedelta(np.arange(len(X)) % 7 + 10 * y, unit="D")
    X = X.assign(stay=stay).assign(none=np.nan, nothing=None)
    with pytest.warns(DataWarning, match="'none' has no values; 'nothing' has no values"):
        model = NaiveBayesClassifier().fit(X, y)
    assert model.n_dropped_ == 0
    (stay_variable,) = (v for v in model.classifier_.variables if v.name == "stay")
    assert stay_variable.cuts == (8 * 86400.0,)
    assert (model.predict(X) == model.predict(X.assign(none=1.0))).all()
    read = milpbn.read_table(X[["stay", "flag"]].assign(y=y), discretise="quantile:2")
    assert read.kinds["stay"] == "continuous"


def test_decimals_and_durations_among_objects_are_numbers() -> None:
    """What databases return for NUMERIC and INTERVAL: every different value was a state, and times free text."""
    X, y = mixed()
    real = X["real"].round(3)
    cells = {
        "decimal": [Decimal(str(value)) for value in real[:-1]] + [None],
        "fraction": [Fraction(str(value)) for value in real],
        "duration": [dt.timedelta(seconds=value) for value in real],
    }
    plain = pd.DataFrame(dict.fromkeys(cells, real))
    plain.loc[59, "decimal"] = np.nan
    objects = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in cells.items()})
    expected = NaiveBayesClassifier(missing="state").fit(plain, y)
    assert all(v.cuts for v in expected.classifier_.variables[:3])
    for table in (objects, milpbn.read_table(objects.assign(y=y), missing="state").frame.drop(columns="y")):
        model = NaiveBayesClassifier(missing="state").fit(table, y)
        assert [v.cuts for v in model.classifier_.variables] == [
            v.cuts for v in expected.classifier_.variables
        ]
        assert (model.predict_proba(table) == expected.predict_proba(plain)).all()
    kinds = milpbn.read_table((objects.to_numpy(), y), missing="state").kinds
    assert {kind for name, kind in kinds.items() if name != "class"} == {"continuous"}


def test_columns_of_arrays_are_all_features() -> None:
    y = np.arange(60) % 2
    model = NaiveBayesClassifier().fit(np.column_stack([np.arange(60), y]), y)
    assert set(model.structure_) == {"x0", "x1", "class"}


def test_infinity_in_a_column_of_objects_is_refused_in_training() -> None:
    X = pd.DataFrame({"x": pd.Series([np.inf, "u"] * 10, dtype=object)})
    with pytest.raises(ValueError, match="Input X contains infinity"):
        NaiveBayesClassifier().fit(X, [0, 1] * 10)


@pytest.mark.parametrize("dtype", [">f8", ">i4"])
def test_arrays_of_the_other_byte_order_are_read(dtype: str) -> None:
    X, y = np.tile([[1, 5], [2, 7]], (20, 1)).astype(dtype), np.tile([0, 1], 20)
    model = NaiveBayesClassifier(nominal=[0, 1]).fit(X, y.astype(">i4"))
    assert model.score(X.astype(dtype[1:]), y) == model.score(X, y) == 1.0


def test_a_prediction_does_not_depend_on_the_other_rows_if_booleans_and_numbers_meet() -> None:
    X = pd.DataFrame({"x": pd.Series([True, 1, False, 0] * 10, dtype=object)})
    y = np.array([0, 1, 1, 0] * 10)
    model = NaiveBayesClassifier().fit(X, y)
    assert model.score(X, y) == 1.0
    alone = np.concatenate([model.predict_proba(X.iloc[[i]]) for i in range(4)])
    np.testing.assert_array_equal(alone, model.predict_proba(X)[:4])


def test_a_column_of_complex_numbers_is_refused() -> None:
    X = pd.DataFrame({"x": [1.0, 2.0] * 10, "z": [1j, 2j] * 10})
    with pytest.raises(ValueError, match="Complex data not supported: column 'z'"):
        NaiveBayesClassifier().fit(X, [0, 1] * 10)


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "index"])
@pytest.mark.parametrize("kind", [int, float, str])
def test_row_numbers_in_data_frames_are_no_features(name, kind):
    """Rows are sorted by class; the column may be absent later."""
    y = np.repeat(["p", "q"], 30)
    X = pd.DataFrame({name: np.arange(60).astype(kind), "a": np.where(np.arange(60) % 4 > 0, y, "p")})
    order = np.random.default_rng(0).permutation(60)
    with pytest.warns(DataWarning, match=f"Left out: '{name or 'Unnamed: 0'}'"):
        model = NaiveBayesClassifier().fit(X.iloc[order], y[order])
    assert model.classifier_.variables[0].name == "a"
    assert len(model.classifier_.variables) == 2
    assert model.predict(X).tolist() == model.predict(X[["a"]]).tolist()
    assert model.score(X, y) < 1


@pytest.mark.parametrize(
    "model", [NaiveBayesClassifier(), MaxMarginBNClassifier(), BayesianNetworkStructure()], ids=repr
)
def test_tiny_and_huge_weights_are_treated_alike_by_all(model: Any) -> None:
    X, y = pd.DataFrame({"a": [0, 1, 0, 1] * 10, "b": [0, 1, 1, 1] * 10}), np.array([0, 1, 1, 0, 1] * 8)
    weights = np.full(40, 1 / 40)
    with pytest.warns(
        DataWarning, match=r"40 rows sum to 1, .* if the weights are shares, multiply them by 40"
    ):
        model.fit(X, y, sample_weight=weights)
    for weight, said in ((1e-20, "go down to 1e-20, below 1e-15"), (1e16, r"sum to more than 1e\+15")):
        weights[0] = weight
        with pytest.raises(InputError, match=said):
            model.fit(X, y, sample_weight=weights)


def test_integers_beside_missing_values_keep_their_digits() -> None:
    cells = np.array([[2**60 + 1], [2**60], [None]] * 10, dtype=object)
    model = NaiveBayesClassifier(missing="state", nominal=[0]).fit(cells, [0, 1, 1] * 10)
    assert model.classifier_.variables[0].states == (str(2**60), str(2**60 + 1), "?")
    assert model.predict(cells[:2]).tolist() == [0, 1]


def test_row_labels_of_y_in_another_order_are_said():
    """Rows go together by position, as in scikit-learn."""
    X = pd.DataFrame({"a": np.arange(40) % 3 == 0, "b": np.arange(40) % 2 == 0}, index=[*"xy", *range(38)])
    y = pd.Series(np.where(X["a"] ^ (np.arange(40) < 9), "p", "q"), index=X.index)
    for read in (NaiveBayesClassifier().fit, milpbn.read_table):
        with pytest.warns(DataWarning, match=r"give y\.loc\[X\.index\]"):
            read(X, y[::-1])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(X, y.to_numpy())
            read(X, y.reset_index(drop=True))
            read(X.set_index("a", drop=False), y.rename(index=dict(zip(y.index, X["a"], strict=True))))
    with pytest.warns(DataWarning, match=r"give sample_weight\.loc\[X\.index\]"):
        NaiveBayesClassifier().fit(X, y, sample_weight=pd.Series(np.arange(40.0), index=X.index[::-1]))


def test_frames_with_sparse_columns_keep_their_names():
    frame, y = mixed()
    dense = pd.get_dummies(frame[["category", "text"]])
    sparse = pd.get_dummies(frame[["category", "text"]], sparse=True)
    expected = NaiveBayesClassifier().fit(dense, y)
    found = NaiveBayesClassifier(nominal=["text_u"]).fit(sparse, y)
    assert found.structure_ == expected.structure_
    assert found.predict_proba(sparse) == pytest.approx(expected.predict_proba(sparse))
