"""Checks the arrays and data frames of scikit-learn's users, and turns them into columns that the project reads."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from joblib import effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_array, check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from milpbn.data.column import Column
from milpbn.data.frames import column_of, frame_of, in_numbers, is_arrow, unmasked, warn_of_order
from milpbn.data.labels import MAX_EXACT, label_of
from milpbn.data.left_out import has_many_states, look_alikes
from milpbn.data.row_index import DECLARED_INDEX, may_name_rows, name_unnamed
from milpbn.data.variables import encode_column, learn_nominal
from milpbn.errors import DataWarning, InputError, warn

#: Columns that the user declares, by name or by position.
Columns = Collection[str | int] | None


def features_frame(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    allow_missing: bool,
    y: Any = None,
    drop: Columns = None,
    features: Columns = None,
) -> pd.DataFrame:
    """Check features as scikit-learn does, and return them as a data frame with text as column names.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_`` and ``feature_names_in_`` if `reset` is true; else they are compared.
    X : array-like or data frame, shape (M, N)
        Features. Columns of arrays are called ``x0``, ``x1``, ... as in `get_feature_names_out`.
    reset : bool
        Whether this is a fit.
    allow_missing : bool
        Whether missing values are allowed.
    y : object
        The target of a fit; None is refused then.
    drop, features : collection of str or int, optional
        Columns to leave out, or the only ones to use. What the other columns hold is not checked.

    Raises
    ------
    ValueError, TypeError
        With scikit-learn's own sentence for input that it refuses everywhere.
    """
    target = {"y": y} if reset else {}
    if reset:
        warn_of_order(X, y)
    X = in_pandas(X)
    if isinstance(X, list | tuple) and np.asarray(X).dtype.kind in "SU":
        X = np.asarray(X, dtype=object)  # NumPy would turn the numbers beside texts into texts
    if isinstance(X, pd.DataFrame) and not X.columns.is_unique:
        repeated = X.columns[X.columns.duplicated()][0]
        raise InputError(f"The column name {repeated!r} occurs more than once in X; names must differ.")
    if isinstance(X, pd.DataFrame):
        X = X.astype({name: t.subtype for name, t in X.dtypes.items() if isinstance(t, pd.SparseDtype)})
        try:
            validate_data(estimator, X, reset=reset, skip_check_array=True, **target)
        except ValueError as error:
            raise type(error)(f"{error}{_columns_hint(estimator, X)}") from None
        if X.shape[0] == 0 or X.shape[1] == 0:
            check_array(np.empty(X.shape), estimator=estimator, input_name="X")  # raises
        names = [str(c) if str(c).strip() else "" for c in X.columns]
        empty = [not name and bool(X.iloc[:, k].isna().all()) for k, name in enumerate(names)]
        frame = _inferred(X.set_axis(name_unnamed(names, empty, "X"), axis=1).reset_index(drop=True))
        used = frame.drop(columns=list(asked_out(frame, drop, features)))
        _check_finite(estimator, used, allow_missing)
    else:
        finite: bool | str = "allow-nan" if allow_missing else True
        if drop is not None or features is not None:
            finite = False  # the columns that are used are checked below
        options: dict[str, Any] = {"dtype": None, "ensure_all_finite": finite, "reset": reset}
        if reset and y is None:
            validate_data(estimator, X, y, **options)  # raises
        X = validate_data(estimator, X, **options)
        frame = _inferred(in_numbers(pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])))
        used = frame.drop(columns=list(asked_out(frame, drop, features)))
        if finite is False:
            _check_finite(estimator, used, allow_missing)
    for name, column in used.items():
        _check_scalars(str(name), column)
    return frame


def _inferred(frame: pd.DataFrame) -> pd.DataFrame:
    """Return columns of objects with the type of their values; integers beside missing values are not rounded."""
    found = frame.infer_objects()
    for k, (given, kind) in enumerate(zip(frame.dtypes, found.dtypes, strict=True)):
        if given != kind and kind == np.float64 and found.iloc[:, k].abs().max() > MAX_EXACT:
            present = frame.iloc[:, k].dropna()
            if all(isinstance(value, numbers.Integral) for value in present):
                exact = frame.iloc[:, k].astype("Int64" if max(present) < 2**63 else "UInt64")
                found.isetitem(k, exact.array)
    return found


def _columns_hint(estimator: Any, X: pd.DataFrame) -> str:
    """Return what to do about columns whose names are not those of the fit."""
    fitted = getattr(estimator, "feature_names_in_", ())
    if not len(fitted) or list(fitted) == list(X.columns):
        return ""
    if set(fitted) <= set(X.columns):
        return "Give the columns of the fit in their order: X[model.feature_names_in_].\n"
    if not hasattr(estimator, "classifier_"):
        return ""
    return "To predict without some columns, give the table to model.classifier_, which sums them out.\n"


def asked_out(frame: pd.DataFrame, drop: Columns, features: Columns) -> set[str]:
    """Return the names of the columns that the user leaves out, by name or by position."""
    left, used = set(named_columns(frame, drop)), set(named_columns(frame, features))
    return {name for name in frame.columns if name in left or (features is not None and name not in used)}


def in_pandas(X: Any) -> Any:
    """Return data frames of other libraries as pandas', without their index, and masked values as missing ones."""
    frame = frame_of(X)
    if frame is None:
        return unmasked(X)
    return frame if frame is X else frame.drop(columns=frame.attrs.get(DECLARED_INDEX, []))


def _check_finite(estimator: Any, frame: pd.DataFrame, allow_missing: bool) -> None:
    """Refuse missing values, unless they are allowed, and infinite ones with scikit-learn's sentences."""
    named = {"estimator_name": type(estimator).__name__, "input_name": "X"}
    for _, column in frame.items():
        if pd.api.types.is_float_dtype(column.dtype):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            assert_all_finite(values, allow_nan=allow_missing, **named)
        elif column.dtype == object and any(isinstance(v, float) and math.isinf(v) for v in column):
            assert_all_finite(np.array([np.inf]), **named)
        elif not allow_missing and column.isna().any():
            assert_all_finite(np.array([np.nan]), **named)


def _check_scalars(name: str, column: pd.Series) -> None:
    """Refuse complex numbers, and cells that hold containers; one cell of every type is looked at."""
    if pd.api.types.is_complex_dtype(column.dtype):
        raise ValueError(f"Complex data not supported: column {name!r} of X holds complex numbers.")
    if column.dtype != object:
        return
    for kind, value in {type(v): v for v in column}.items():
        if not pd.api.types.is_scalar(value):
            raise TypeError(
                f"Column {name!r} of X holds a {kind.__name__}, but every argument must be a string, a boolean or a "
                "number."
            )


def labels(estimator: Any, y: Any, n_rows: int) -> NDArray[Any]:
    """Return class labels as an array of shape (M,) with the type that NumPy gives them.

    Missing or continuous labels, or another number of them, raise ValueError with scikit-learn's own sentence.
    """
    y = column_of(y) if is_arrow(y) else unmasked(y)
    if isinstance(getattr(y, "dtype", None), pd.api.extensions.ExtensionDtype):
        kind = getattr(y.dtype, "numpy_dtype", None)  # of nullable integers and booleans
        y = np.asarray(y) if kind is None or y.isna().any() else y.to_numpy(dtype=kind)
    y = column_or_1d(y, warn=True)
    named = {"estimator_name": type(estimator).__name__, "input_name": "y"}
    if y.dtype.kind == "f":
        assert_all_finite(y, **named)
    elif y.dtype == object and pd.isna(y).any():
        assert_all_finite(np.array([np.nan]), **named)
    check_consistent_length(np.empty(n_rows), y)
    if y.dtype == object and not all(isinstance(label, str) for label in y):
        kinds = ", ".join(sorted({type(label).__name__ for label in y}))
        raise InputError(  # its first words are those that scikit-learn's rules ask for
            f"Unknown label type: y holds objects of the type {kinds}; give labels of one type: y.astype(str)."
        )
    check_classification_targets(y)
    return y


def weights_of_rows(sample_weight: Any, frame: pd.DataFrame) -> NDArray[np.float64]:
    """Return sample weights, shape (M,), 1 by default; ValueError has scikit-learn's own sentence."""
    weights = _check_sample_weight(unmasked(sample_weight), frame, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weights


def weights_of_classes(
    class_weight: Mapping[Any, float] | str | None, y: NDArray[Any], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return sample weights times class weights, shape (M,).

    'balanced' gives all classes the same weight and keeps the total: a class has the factor W / (C W_c), where W is
    the total weight, W_c the weight of the class, and C the number of classes. So a row of weight 2 counts as two rows.
    """
    if class_weight is None:
        return weights
    classes, codes = np.unique(y, return_inverse=True)
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weights=weights)
        factors = weights.sum() / (len(classes) * totals)
    else:
        factors = compute_class_weight(class_weight, classes=classes, y=y)
        if not (factors > 0).all():
            raise InputError(f"Class weights must be positive numbers, got {class_weight!r}.")
    return weights * factors[codes]


def declared_kinds(
    frame: pd.DataFrame, continuous: Columns, nominal: Columns, left_out: Collection[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the names of the continuous and of the nominal features; undeclared integers are in neither list.

    The type of a column decides: floats are continuous; text, booleans, categoricals and all else but integers are
    nominal. Integers are left to `milpbn.data.kinds.detect_kind`. What the user declares, by name or position, comes
    first. Other columns that look like row numbers, identifiers, dates or free text are not declared, so that
    `milpbn.data.read_table` leaves them out, nor are those of `left_out`; of floats, only those that look like row
    numbers. A warning names texts that are numbers and hardly repeat.
    """
    given = {"continuous": named_columns(frame, continuous), "nominal": named_columns(frame, nominal)}
    declared = {*given["continuous"], *given["nominal"], *left_out}
    floats = {str(name) for name, column in frame.items() if pd.api.types.is_float_dtype(column.dtype)}
    integers = {str(name) for name, column in frame.items() if pd.api.types.is_integer_dtype(column.dtype)}
    others = [str(name) for name in frame if str(name) not in declared | integers]
    judged = [
        name for name in others if name not in floats or may_name_rows(name) or frame[name].isna().all()
    ]
    columns = {str(name): Column.of(cells if name in judged else cells[:0]) for name, cells in frame.items()}
    found = look_alikes(columns, judged)
    for name in others:
        if name in floats and found.get(name) not in ("row index", "empty"):
            given["continuous"].append(name)
        elif name not in floats and name not in found:
            given["nominal"].append(name)
            column = columns[name]
            if column.is_numeric and column.declared is None and has_many_states(column):
                warn(
                    f"Column {name!r} of X holds {column.n_numbers} different numbers as text, and each is a state; if "
                    "they are numbers, name the column in continuous, or turn it into numbers.",
                    DataWarning,
                )
    return given["continuous"], given["nominal"]


def named_columns(frame: pd.DataFrame, columns: Columns) -> list[str]:
    """Return the names of columns that are given by name or by position; InputError if there is no such position."""
    if columns is None:
        return []
    names = []
    for column in [columns] if isinstance(columns, str) else columns:
        if isinstance(column, numbers.Integral) and not isinstance(column, bool):
            if not 0 <= int(column) < frame.shape[1]:
                raise InputError(
                    f"There is no column {column} in X; positions are 0 to {frame.shape[1] - 1}."
                )
            column = str(frame.columns[int(column)])
        names.append(str(column))
    return names


def class_texts(classes: NDArray[Any]) -> list[str]:
    """Return a name of each class for structures and files: its label as the project writes it.

    Labels that the project would not tell apart, such as ``"1"`` and ``"01"``, or would take for missing values, such
    as ``"NA"``, get quotation marks.
    """
    items = classes.tolist()
    texts = [label_of(label) for label in items]
    variable = learn_nominal(_column(texts), np.arange(len(texts)))
    return texts if variable.n_states == len(texts) else [repr(label) for label in items]


def label_type_of(classes: NDArray[Any]) -> str:
    """Return the type that `classifier_` gives its labels: that of the classes, text if it has none of its own."""
    return Column.of(pd.Series(classes, name="class")).label_type


def states_of_classes(variable: Any, texts: list[str]) -> NDArray[np.int32]:
    """Return the state code of each class name, shape (C,)."""
    return encode_column(variable, _column(texts))


def _column(texts: list[str]) -> Column:
    return Column.of(pd.Series(texts, name="class", dtype=object))


def seed(random_state: Any) -> int:
    """Return the seed that `random_state` stands for: itself, or a number that it draws."""
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def threads(n_jobs: int | None) -> int:
    """Return the number of threads for scikit-learn's `n_jobs`: None means 1, and -1 all cores. A Dask task has one."""
    if type(get_active_backend()[0]).__name__ != "DaskDistributedBackend":
        return int(effective_n_jobs(n_jobs))
    # joblib would count the threads of the whole cluster.
    try:
        import_module("distributed").get_worker()
    except ValueError:  # this process is no worker
        with parallel_config("threading"):
            return int(effective_n_jobs(1 if n_jobs is None else n_jobs))
    return 1
