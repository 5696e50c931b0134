"""Factorised columns: values that pandas takes for the same, or cannot factorise."""

import numpy as np
import pandas as pd
import pytest

from milpbn.data.column import Column
from milpbn.data.kinds import detect_kind
from milpbn.data.left_out import looks_like
from milpbn.errors import InputError


def test_booleans_and_numbers_are_different_states():
    values = [True, 1, False, 0, 1.0, None, "u"]
    for order in (values, values[::-1]):
        column = Column.of(pd.Series(order, dtype=object, name="x"))
        assert sorted(set(column.labels)) == ["0", "1", "False", "True", "u"]
        labels = [None if code < 0 else column.labels[code] for code in column.codes]
        assert labels == [
            None if v is None else str(int(v)) if v == 1.0 and v is not True else str(v) for v in order
        ]


def test_booleans_with_missing_values_stay_booleans():
    column = Column.of(pd.Series([True, None, False, np.nan], dtype=object, name="x"))
    assert column.label_type == "boolean"
    assert column.missing.tolist() == [False, True, False, True]


def test_bytes_that_are_no_text_stay_apart():
    assert len(set(Column.of(pd.Series([b"\xff", b"\xfe"], dtype=object, name="x")).labels)) == 2


@pytest.mark.parametrize("dtype", [">f8", ">i4"])
def test_the_byte_order_does_not_matter(dtype):
    column = Column.of(pd.Series(np.array([3, 1, 3], dtype), name="x"))
    assert column.numbers.tolist() == [3.0, 1.0]
    assert column.codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize("dtype", ["Float32", "double[pyarrow]"])
def test_nan_beside_nulls_is_missing(dtype):
    pa = pytest.importorskip("pyarrow")
    if dtype == "Float32":
        cells = np.array([1.5, np.nan, 0, -2], "float32")
        series = pd.Series(pd.arrays.FloatingArray(cells, np.array([False, False, True, False])))
    else:  # as columns of Parquet files that are read with Arrow's types
        series = pd.Series(pd.arrays.ArrowExtensionArray(pa.array([1.5, np.nan, None, -2.0])))
    assert series.isna().sum() == 1
    column = Column.of(series.rename("x"))
    assert column.codes.tolist() == [0, -1, -1, 1]
    assert column.values.tolist() == [1.5, -2]


def test_lists_of_pyarrow_are_refused_with_the_column():
    pa = pytest.importorskip("pyarrow")
    lists = pd.array([[1], [2]], dtype=pd.ArrowDtype(pa.list_(pa.int64())))
    with pytest.raises(InputError, match=r"Column 'x' .* containers"):
        Column.of(pd.Series(lists, name="x"))


@pytest.mark.parametrize("first", [1, 2**53, 17 * 10**17, 10**50])
@pytest.mark.parametrize("as_text", [False, True])
def test_consecutive_integers_of_any_size_are_identifiers(first, as_text):
    numbers = [first + int(i) for i in np.random.default_rng(0).permutation(100)]
    values = [str(number) for number in numbers] if as_text else numbers
    column = Column.of(pd.Series(values, dtype=object, name="x"), untyped=as_text)
    assert column.integers is not None
    assert [int(column.integers[code]) for code in column.codes] == numbers
    assert detect_kind(column) == "continuous"
    assert looks_like(column) == "identifier"
    two = Column.of(pd.Series(values[:2] * 50, dtype=object, name="x"), untyped=as_text)
    assert detect_kind(two) == "nominal"
    assert looks_like(two) is None


def test_fractions_and_infinities_are_no_integers():
    assert Column.of(pd.Series([1.5, 2.0], name="x")).integers is None
    assert Column.of(pd.Series([np.inf, 2.0], name="x")).integers is None


@pytest.mark.parametrize(("n", "dtype"), [(120, "int8"), (127, "int16"), (40_000, "int32")])
def test_codes_have_the_smallest_type_that_holds_their_number(n: int, dtype: str) -> None:
    column = Column.of(pd.Series([*map(str, range(n)), "?"], name="x"), untyped=True)
    assert column.codes.dtype == dtype
    assert column.codes.tolist() == [*range(n), -2]
