"""What all estimators of networks share: how rows are read at a fit and after it, and their log-likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from milpbn.data import Table, read_table
from milpbn.data.dataset import by_column
from milpbn.data.options import MISSING_POLICIES
from milpbn.data.weights import doubt_on_total
from milpbn.errors import DataWarning, InputError, warn
from milpbn.estimators.inputs import asked_out, declared_kinds, features_frame, in_pandas, named_columns
from milpbn.estimators.parameters import DataParameters
from milpbn.network.inference.queries import Queries
from milpbn.util.jsonable import shorten

#: What may be done after a fit with columns that a data frame lacks.
ABSENT = ("error", "marginalise")
#: Value of ``missing`` that leaves the choice between "drop" and "state" to a recipe.
SELECT = "select"
#: Values of ``missing`` under which features may lack values.
ALLOWING = ("state", "drop", SELECT)


def policy_of(model: Any) -> str:
    """Return what an estimator does with missing values: its `missing`; by default what a recipe chooses, or "drop"."""
    if model.missing is not None:
        return str(model.missing)
    return "drop" if getattr(model, "recipe", None) is None else SELECT


class NetworkEstimator(DataParameters, BaseEstimator):
    """Base of the estimators whose model is a network, `classifier_`; a subclass is an `estimator` with a `fit`."""

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram, which `_repr_html_` and notebooks show, and behind it the fitted network."""
        diagram: str = super()._html_repr()
        fitted = getattr(self, "classifier_", None)
        draw = getattr(fitted, "_repr_html_", None)
        return diagram if draw is None else diagram + draw()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = policy_of(self) in ALLOWING
        return tags

    def _features(self, X: Any, y: Any) -> pd.DataFrame:
        """Return the checked columns of training data; refuse unknown values of `missing` and `absent_columns`."""
        policies = (*MISSING_POLICIES, SELECT) if hasattr(self, "recipe") else MISSING_POLICIES
        for option, given, words in (
            ("absent_columns", self.absent_columns, ABSENT),
            ("missing", policy_of(self), policies),
        ):
            if given not in words:
                raise InputError(f"{option} must be one of {', '.join(words)}; got {shorten(given)}.")
        return self._checked(X, reset=True, y=y)

    def _checked(self, X: Any, *, reset: bool, y: Any = None) -> pd.DataFrame:
        allow_missing, asked = policy_of(self) in ALLOWING, {"drop": self.drop, "features": self.features}
        return features_frame(self, X, reset=reset, allow_missing=allow_missing, y=y, **asked)

    def _read(
        self, X: Any, frame: pd.DataFrame, weights: NDArray[np.float64], target: str | None = None
    ) -> Table:
        """Return checked columns, the class among them if there is a target, as a table with weights of its rows.

        Note which columns are features, and warn if the weights look like shares.
        """
        own = frame.drop(columns=[] if target is None else [target])
        drop, features = named_columns(own, self.drop), named_columns(own, self.features)
        if self.features is not None and not features:
            raise InputError("features names no column; name some, or leave it out.")
        if self.features is None and not hasattr(X, "columns"):  # the columns of an array are all features
            features = [name for name in own.columns if name not in drop]
        out = asked_out(own, self.drop, self.features)
        continuous, nominal = declared_kinds(own, self.continuous, self.nominal, out)
        table = read_table(
            frame,
            target=target,
            drop=[name.strip() for name in drop],
            features=[name.strip() for name in features],
            continuous=[name.strip() for name in continuous],
            nominal=[*(name.strip() for name in nominal), *([] if target is None else [target])],
            missing="state" if policy_of(self) == SELECT else policy_of(self),  # type: ignore[arg-type]
            states=self.states,  # type: ignore[arg-type]
            discretise=self.discretise,
        )
        self.n_dropped_ = len(frame) - table.n_rows
        names = [str(name).strip() for name in own.columns]
        self._kept = [k for k, name in enumerate(names) if name not in table.left_out]
        table = table.changed(weights=weights[np.asarray(table.frame.index)])
        for doubt in doubt_on_total(table.weights):
            warn(doubt, DataWarning)
        return table

    def _set(self, attributes: Mapping[str, Any]) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def _encoded(self, X: Any) -> Any:
        """Return checked features as the model reads them."""
        check_is_fitted(self)
        X = in_pandas(X)
        absent = self._absent(X)
        if absent:
            # Any value does for the checks of the others; the columns are taken out again below.
            others = [name for name in X.columns if name not in self.feature_names_in_]
            X = X.assign(**dict.fromkeys(absent, 0))
            X = X[[*(name for name in self.feature_names_in_ if name in X.columns), *others]]
        frame = self._checked(X, reset=False)
        columns = list(by_column(self.classifier_.variables))[: len(self._kept)]  # without the class
        places = [
            place for place in zip(self._kept, columns, strict=True) if frame.columns[place[0]] not in absent
        ]
        given, known = [str(frame.columns[k]).strip() for k, _ in places], [name for _, name in places]
        # scikit-learn compares the names of columns only if they are texts, not numbers or tuples.
        if given != known and sorted(given) == sorted(known):
            raise InputError(
                "X has the columns of the fit in another order; give them in the order of the fit."
            )
        # An array has no names, nor has a data frame whose columns are numbered from 0.
        nameless = not hasattr(X, "columns") or [*X.columns] == [*range(X.shape[1])]
        nameless |= known == [f"x{k}" for k, _ in places]
        if given != known and not nameless and not hasattr(self, "feature_names_in_"):
            other, own = next((one, name) for one, name in zip(given, known, strict=True) if one != name)
            warn(
                f"X has other columns than the fit, such as {other!r} in the place of {own!r}. Columns are compared "
                "by name only if all names are texts, and otherwise taken by their position.",
                DataWarning,
            )
        frame = frame.iloc[:, [k for k, _ in places]].set_axis(known, axis=1)
        # scikit-learn has predictions with unseen categories only, for instance in a fold of another season.
        return self.classifier_.encode(frame, ignore_unseen=True)

    def _absent(self, X: Any) -> list[str]:
        """Return the columns of the training data that a data frame lacks and may lack; always those left out."""
        if not isinstance(X, pd.DataFrame):
            return []
        names = list(getattr(self, "feature_names_in_", []))
        absent = [name for name in names if name not in X.columns]
        if self.absent_columns != "marginalise":
            kept = {names[k] for k in self._kept} if names else ()
            return [name for name in absent if name not in kept]
        if names and len(absent) == len(names):
            raise InputError(f"X has none of the columns of the training data, such as {names[0]!r}.")
        return absent

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the log-likelihood of every sample: what is missing, and a class, is summed over.

        Parameters
        ----------
        X : array-like or data frame, shape (M, N)
            Features, in the columns of the training data. A category that the training data lack contributes nothing;
            a missing value without a state of its own is marginalised.

        Returns
        -------
        float64 array, shape (M,)
            log P(x) in nats.

        Raises
        ------
        ValueError
            If the model is not one Bayesian network, such as an average.
        """
        data = self._encoded(X)
        return self._queries().log_likelihood(data)

    def _queries(self) -> Queries:
        """Return the model, if it can be asked for a joint distribution."""
        if isinstance(self.classifier_, Queries):
            return self.classifier_
        raise InputError(
            f"A {type(self.classifier_).__name__} is not one Bayesian network, and has no joint distribution."
        )
