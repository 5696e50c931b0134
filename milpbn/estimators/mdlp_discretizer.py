"""Discretisation by the criterion of Fayyad & Irani as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from milpbn.data.column import Column
from milpbn.data.mdlp import mdlp_cuts
from milpbn.estimators.inputs import in_pandas, labels, weights_of_rows


class MDLPDiscretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Cut numeric features into the intervals that the minimum description length principle accepts.

    The criterion is that of Fayyad & Irani (1993, `milpbn.data.mdlp`); it looks at the classes. A feature without an
    accepted cut has one interval.

    Attributes
    ----------
    cuts_ : list of float64 arrays, length N
        Ascending cuts of each feature. A value belongs to the interval whose number is the count of cuts strictly
        below it, so that intervals contain their upper end.
    n_bins_ : int64 array, shape (N,)
        Number of intervals of each feature.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str, shape (N,)
        Names of the features, if X has column names that are all text.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from milpbn.sklearn import MDLPDiscretizer
    >>> X, y = load_iris(return_X_y=True)
    >>> MDLPDiscretizer().fit(X, y).n_bins_
    array([3, 3, 3, 3])
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MDLPDiscretizer:
        """Find the cuts, and return the fitted transformer itself.

        Parameters
        ----------
        X : array-like or data frame, shape (M, N)
            Numbers.
        y : array-like, shape (M,)
            Class labels of any type.
        sample_weight : array-like, shape (M,), optional
            Weights. A weight of 2 is the same as two rows, and a weight of 0 the same as none.
        """
        X = in_pandas(X)
        if y is None:
            validate_data(self, X, y)  # raises
        given = X
        X = validate_data(self, X, dtype=np.float64)
        frame = pd.DataFrame(given if hasattr(given, "columns") else np.asarray(given)).reset_index(drop=True)
        for _, column in frame.items():
            if column.dtype.kind != "f":
                Column.of(column, "X").check_apart("X", nominal=False)
        y = labels(self, y, len(X))
        weights = weights_of_rows(sample_weight, X)
        present = weights > 0
        classes, codes = np.unique(y[present], return_inverse=True)
        self.cuts_ = [mdlp_cuts(column[present], codes, len(classes), weights[present]) for column in X.T]
        self.n_bins_ = np.array([len(cuts) + 1 for cuts in self.cuts_], dtype=np.int64)
        return self

    def transform(self, X: Any) -> NDArray[np.int64]:
        """Return the number of the interval of each value.

        Parameters
        ----------
        X : array-like or data frame, shape (M, N)
            Numbers.

        Returns
        -------
        int64 array, shape (M, N)
            Numbers from 0; a data frame after ``set_output(transform="pandas")``.
        """
        check_is_fitted(self)
        X = validate_data(self, in_pandas(X), dtype=np.float64, reset=False)
        columns = [
            np.searchsorted(cuts, column, side="left") for cuts, column in zip(self.cuts_, X.T, strict=True)
        ]
        return np.column_stack(columns).astype(np.int64)
