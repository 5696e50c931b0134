"""Tables of other libraries are read as pandas reads the same data from Parquet, and masked values are missing."""

from __future__ import annotations

import datetime
import decimal
import io
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import milpbn
from milpbn.data import read_samples, read_table
from milpbn.data.frames import column_of, frame_of, unmasked
from milpbn.errors import DataWarning, InputError
from milpbn.learners.registry import get_learner
from milpbn.sklearn import MDLPDiscretizer, NaiveBayesClassifier

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
nw = pytest.importorskip("narwhals")

N = 40


@pytest.fixture
def typed() -> Any:
    rng = np.random.default_rng(0)
    code = rng.integers(0, 3, N)
    holes = [None if k % 9 == 0 else int(c) for k, c in enumerate(code)]
    words = [None if c is None else "uvw"[c] for c in holes]
    return pl.DataFrame(
        {
            "categorical": pl.Series(words, dtype=pl.Categorical),
            "enum": pl.Series(words, dtype=pl.Enum(["w", "v", "u", "z"])),
            "boolean": [None if c is None else c > 0 for c in holes],
            "date": [None if c is None else datetime.date(2024, 1, 1 + c) for c in holes],
            "decimal": pl.Series(
                [None if c is None else decimal.Decimal(c) / 2 for c in holes], dtype=pl.Decimal(10, 2)
            ),
            "integer": pl.Series(holes, dtype=pl.Int16),
            "real": [None if c is None else c + k / 100 for k, c in enumerate(holes)],
            "text": words,
            "y": ["no" if c + k % 2 else "yes" for k, c in enumerate(code.tolist())],
        }
    )


def forms(frame: Any) -> dict[str, Any]:
    table = pa.table(frame)
    return {
        "polars": frame,
        "pyarrow": table,
        "batch": table.combine_chunks().to_batches()[0],
        "narwhals": nw.from_native(frame),
        "dictionary": table.set_column(7, "text", table["text"].cast(pa.string()).dictionary_encode()),
    }


def parquet(frame: Any) -> pd.DataFrame:
    data = io.BytesIO()
    frame.write_parquet(data)
    found = pd.read_parquet(data)  # whose integers beside nulls are floats
    return found.astype({name: "Int16" for name in found if name == "integer"})


def test_every_function_that_takes_a_data_frame_takes_tables(typed: Any) -> None:
    pandas = parquet(typed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        expected = read_table(pandas, missing="state")
        classifier = get_learner("naive-bayes")().fit(expected.dataset()).predictor
        proba = classifier.predict_proba(pandas)
        for name, table in forms(typed).items():
            found = read_table(table, missing="state")
            assert found.kinds == expected.kinds, name
            np.testing.assert_array_equal(found.dataset().labels, expected.dataset().labels, err_msg=name)
            assert found.dataset().variables == expected.dataset().variables
            assert [v.label_type for v in found.dataset().variables] == [
                v.label_type for v in expected.dataset().variables
            ]
            np.testing.assert_array_equal(classifier.predict_proba(table), proba)
            assert milpbn.evaluate(classifier, table).accuracy == milpbn.evaluate(classifier, pandas).accuracy
            assert list(classifier.predict(table)) == list(classifier.predict(pandas))
            assert classifier.explain_local(table)[0].log_odds == classifier.explain_local(pandas)[0].log_odds
            np.testing.assert_array_equal(classifier.log_likelihood(table), classifier.log_likelihood(pandas))
            assert read_samples(table, classifier.variables).n_samples == N
            assert read_table(table, target="text", missing="state").target == "text"
        # What takes data to learn from reads them by `read_table`.
        assert milpbn.solve(typed[["boolean", "text", "y"]], "cll", threads=1, verbose=False).data.samples < N


@pytest.mark.parametrize("name", ["polars", "pyarrow", "batch", "narwhals"])
def test_estimators_take_tables_and_labels(name: str, typed: Any) -> None:
    features = typed.select("integer", "text", "boolean", "real")
    X = forms(typed)[name]
    X = X.select(features.columns)
    labels = {"polars": typed["y"], "pyarrow": pa.chunked_array([typed["y"].to_list()])}
    y = labels.get(name, typed["y"].to_list())
    expected = NaiveBayesClassifier(missing="state").fit(parquet(features), typed["y"].to_list())
    model = NaiveBayesClassifier(missing="state").fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(parquet(features)))
    assert list(model.feature_names_in_) == features.columns
    table = read_table(X, y, missing="state")
    assert table.features == tuple(features.columns)
    real = typed.select("real").fill_null(0.0)
    np.testing.assert_array_equal(
        MDLPDiscretizer().fit(real, y).transform(real),
        MDLPDiscretizer().fit(real.to_numpy(), y).transform(real),
    )


def test_an_index_in_arrow_data_is_no_feature() -> None:
    frame = pd.DataFrame({"a": ["u", "v"] * 10, "y": list("ppqq") * 5}, index=np.arange(20) % 4)
    table = pa.Table.from_pandas(frame)
    with pytest.warns(DataWarning, match="'__index_level_0__' looks like a row index"):
        assert read_table(table).features == ("a",)
    model = NaiveBayesClassifier().fit(table.select(["a", "__index_level_0__"]), frame["y"])
    assert model.n_features_in_ == 1
    assert model.predict(frame[["a"]]).tolist() == model.predict(table.select(["a"])).tolist()
    broken = table.replace_schema_metadata({"pandas": "[1]"})
    assert frame_of(broken) is not None
    assert frame_of(table.replace_schema_metadata({"pandas": "no JSON"})) is not None


def test_tables_that_are_not_computed_are_refused(typed: Any) -> None:
    lazy = typed.lazy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NaiveBayesClassifier().fit(typed.select("real"), typed["y"].to_list())
        classifier = model.classifier_
    for call in (
        lambda: read_table(lazy),
        lambda: read_table(lazy, typed["y"]),
        lambda: milpbn.solve(lazy),
        lambda: classifier.predict(lazy),
        lambda: milpbn.evaluate(classifier, lazy),
        lambda: NaiveBayesClassifier().fit(lazy, typed["y"]),
        lambda: model.predict(lazy),
        lambda: read_table(nw.from_native(lazy)),
    ):
        with pytest.raises(
            InputError, match=r"A LazyFrame of (polars|narwhals) is not computed yet; .*collect\(\)"
        ):
            call()
    with pytest.raises(InputError, match="not from a Series"):
        read_table(typed["real"])


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(list("pq") * 10, name="k"),
        pd.DataFrame({"k": list("pq") * 10}),
        pl.Series("k", list("pq") * 10),
        pl.Series("k", list("pq") * 10, dtype=pl.Categorical),
        pl.DataFrame({"k": list("pq") * 10}),
        pd.Index(list("pq") * 10, name="k"),
    ],
)
def test_labels_keep_their_name(y: Any) -> None:
    table = read_table(np.arange(40).reshape(20, 2) % 3, y)
    assert (table.target, table.frame["k"].tolist()) == ("k", list("pq") * 10)
    assert column_of(y).name == "k"


def test_labels_of_several_columns_are_refused() -> None:
    for y in (pl.DataFrame({"k": [1], "l": [2]}), np.zeros((1, 2)), pd.DataFrame({"k": [1], "l": [2]})):
        with pytest.raises(InputError, match="one label per row"):
            column_of(y)


def test_masked_values_are_missing() -> None:
    values = np.c_[np.arange(40) % 3 - 1, np.arange(40) % 2]
    y = np.array(["p", "q"] * 20)
    masked = np.ma.masked_less(values, 0)
    hidden = masked.mask.any(axis=1)
    with pytest.warns(DataWarning, match="Rows dropped for missing values: 14 of 40"):
        table = read_table((masked, y))
    assert table.n_rows == 40 - np.count_nonzero(hidden) == 26
    with pytest.warns(DataWarning, match="14 of 40"):
        assert read_table(np.ma.masked_less(np.c_[values, np.arange(40) % 2], 0)).n_rows == 26
    with pytest.warns(DataWarning, match="missing class: 20 of 40"):
        assert read_table((values, np.ma.masked_where(y == "q", y)), missing="state").n_rows == 20
    with pytest.warns(DataWarning, match="14 of 40"):
        model = NaiveBayesClassifier(missing="drop").fit(masked, y)
    with pytest.warns(DataWarning, match="14 of 40"):
        plain = NaiveBayesClassifier(missing="drop").fit(np.where(masked.mask, np.nan, values), y)
    assert model.n_dropped_ == 14
    np.testing.assert_array_equal(
        model.predict_proba(masked), plain.predict_proba(np.where(masked.mask, np.nan, values))
    )
    with pytest.raises(ValueError, match="NaN"):
        NaiveBayesClassifier().fit(values, np.ma.masked_equal(np.arange(40) % 3, 2))
    with pytest.raises(ValueError, match="NaN"):
        NaiveBayesClassifier().fit(values, y, np.ma.masked_equal(np.arange(40) % 3 + 1.0, 2))
    assert unmasked(np.ma.array(["a", "b"], mask=[True, False])).tolist() == [None, "b"]
    assert unmasked(np.ma.array([1, 2])).tolist() == [1, 2]
