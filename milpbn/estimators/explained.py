"""Explanations of fitted classifiers and of their predictions, asked for with labels of y's own type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from milpbn.data.dataset import UNKNOWN, Dataset
from milpbn.data.encodings import Encodings, encodings_of
from milpbn.errors import InputError
from milpbn.estimators.inputs import labels


class ExplainedEstimator:
    """Base of classifiers that explain themselves; a subclass fits `classifier_` and reads X with `_encoded`."""

    classifier_: Any
    classes_: NDArray[Any]
    _class_states: NDArray[Any]

    def _encoded(self, X: Any) -> Any:
        """Return checked features as the model reads them."""
        raise NotImplementedError

    def explain_local(self, X: Any, *, label: Any = None, against: Any = None) -> tuple[Any, ...]:
        """Explain the prediction of every sample: the log-odds of two classes as an exact sum over features.

        Parameters
        ----------
        X : array-like or data frame, shape (M, N)
            Features.
        label, against : optional
            The classes to compare, of the type of y; by default the most probable ones of the sample.

        Returns
        -------
        tuple of `milpbn.network.explanation.LocalExplanation`, length M
            `print` shows one as text. Class labels are text there. Of an average of networks, the explanations of its
            networks.

        Raises
        ------
        ValueError
            If X is unusable, or a label is not a class.
        """
        data = self._encoded(X)
        return self.classifier_.explain_local(
            data, label=self._text_of(label), against=self._text_of(against)
        )

    def explain_global(self, X: Any = None, y: Any = None, *, gamma: float | None = None) -> Any:
        """Explain the model: the log-ratios of every family, and on data also importances and margins.

        Parameters
        ----------
        X : array-like or data frame, shape (M, N), optional
            Features, for importances.
        y : array-like, shape (M,), optional
            Class labels, for margins.
        gamma : float, optional
            Desired log-margin in nats; samples below it are listed. By default the one of the fit, if it had one.

        Returns
        -------
        `milpbn.network.explanation.GlobalExplanation`
            `print` shows it as text. Of an average of networks, the explanations of its networks.

        Raises
        ------
        ValueError
            If X or y are unusable.
        """
        check_is_fitted(self)
        if X is None:
            if y is not None:
                raise InputError("y without X explains nothing; give the features, too.")
            return self.classifier_.explain_global()
        data = self._encoded(X)
        if y is not None:
            states = self._states()
            codes = [states.get(label, UNKNOWN) for label in labels(self, y, data.n_samples).tolist()]
            data = Encodings.of([_with_classes(part, codes) for part in encodings_of(data)])
        return self.classifier_.explain_global(data, gamma=gamma)

    def _states(self) -> dict[Any, int]:
        """Return the state in the model of each class label."""
        return dict(zip(self.classes_.tolist(), self._class_states.tolist(), strict=True))

    def _text_of(self, label: Any) -> str | None:
        """Return the text of a class label in the model; None for None."""
        if label is None:
            return None
        states = self._states()
        if label not in states:
            raise InputError(f"{label!r} is not a class; the classes are {list(states)}.")
        return str(self.classifier_.classes[states[label]])


def _with_classes(data: Dataset, codes: list[int]) -> Dataset:
    """Return samples with other class codes."""
    changed = data.codes.copy()
    changed[:, -1] = codes
    return replace(data, codes=changed)
