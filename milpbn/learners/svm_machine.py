"""A support vector machine with a Gaussian kernel on indicators of the features' states, and its probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC

from milpbn.data.dataset import Dataset, Variable
from milpbn.data.folds import stratified_folds
from milpbn.network.predictor import Predictor, Source, encode
from milpbn.trials.parts import FOLDS

#: MiB of rows of the kernel matrix that LIBSVM may keep instead of computing them again.
CACHE = 1000


@dataclass(frozen=True, eq=False)
class SvmClassifier(Predictor):
    """A fitted support vector machine, whose `predict` accepts the same data as that of a `Classifier`."""

    variables: tuple[Variable, ...]
    #: The machine on the indicators of the features' states. All indicators of a value without a state are 0.
    machine: SVC
    #: A machine with probabilities; None if there was no time for it, or a class has too few rows. Accuracy is that of
    #: `machine`.
    calibrated: CalibratedClassifierCV | None = None

    @property
    def n_parameters(self) -> int:
        """Number of dual variables of support vectors, and of intercepts."""
        return int(self.machine.dual_coef_.size + self.machine.intercept_.size)

    @property
    def predict_proba(self) -> Callable[[Source], NDArray[np.float64]] | None:
        """The function that returns P(c | z_m), shape (M, C); None without a `calibrated` machine."""
        return None if self.calibrated is None else self._probabilities

    def _probabilities(self, source: Source) -> NDArray[np.float64]:
        assert self.calibrated is not None
        found = self.calibrated.predict_proba(indicators(encode(source, self.variables)))
        return of_all_classes(found, self.calibrated.classes_, self.variables)

    def predict_codes(self, source: Source) -> NDArray[np.intp]:
        """Return the index of each sample's class, shape (M,); a class without training rows is never predicted."""
        return self.machine.predict(indicators(encode(source, self.variables)))


def calibrated(
    data: Dataset,
    sigma: float,
    cost: float,
    random_state: int,
    *,
    method: str = "sigmoid",
    folds: int = FOLDS,
) -> CalibratedClassifierCV:
    """Return a machine with probabilities: sigmoids of each class's decision values against the others, normalised.

    The decision values are those of a cross-validation on the training rows (`CalibratedClassifierCV` of scikit-learn,
    ``ensemble=False``; Platt 1999).

    `method` is the curve from decision values to probabilities, ``sigmoid`` or ``isotonic``.
    """
    model = CalibratedClassifierCV(
        MergingSVC(C=cost, gamma=width(sigma), cache_size=CACHE),
        method=method,
        cv=stratified_folds(data.y, min(folds, data.n_samples), random_state),
        ensemble=False,
    )
    weights = None if (data.weights == 1.0).all() else data.weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about classes that are not in every fold
        return model.fit(indicators(data), data.y, sample_weight=weights)


def of_all_classes(
    probabilities: NDArray[np.float64], classes: NDArray[np.integer], variables: tuple[Variable, ...]
) -> NDArray[np.float64]:
    """Return probabilities of some class codes as columns of all classes, shape (M, C), 0 for the others."""
    full = np.zeros((len(probabilities), variables[-1].n_states))
    full[:, classes] = probabilities
    return full


def indicators(data: Dataset) -> csr_array:
    """Return one column per state of every feature, shape (M, states), with 1 for the samples in the state."""
    states = [np.arange(v.n_states) for v in data.variables[:-1]]
    return csr_array(OneHotEncoder(categories=states, handle_unknown="ignore").fit_transform(data.X))


def width(sigma: float) -> float:
    """Return scikit-learn's parameter of the kernel: exp(-width |x - x'|^2) is exp(-|x - x'|^2 / (2 sigma^2))."""
    return 1.0 / (2.0 * sigma**2)


class MergingSVC(SVC):
    """scikit-learn's machine, fitted to merged rows: equal indicators of one class become one row with their weight.

    It is the same machine, since the dual variables of equal rows add. Fitted by `CalibratedClassifierCV`, it merges
    the rows of each training fold; so the folds are of rows that are not merged.
    """

    def fit(
        self, X: csr_array, y: NDArray[np.integer], sample_weight: NDArray[np.float64] | None = None
    ) -> MergingSVC:
        """Fit to indicators, shape (M, states), of the classes y with the given weights, both of shape (M,)."""
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        bits = np.packbits(X.toarray().astype(bool), axis=1)
        coded = np.column_stack([bits, np.asarray(y, dtype=">i4").view(np.uint8).reshape(-1, 4)])
        _, first, group = np.unique(coded, axis=0, return_index=True, return_inverse=True)
        super().fit(X[first], y[first], sample_weight=np.bincount(group.ravel(), weights=weights))
        return self


class DecisionValues(ClassifierMixin, BaseEstimator):
    """Stands for a machine where several curves are fitted to its decision values, which are the rows of X here."""

    def __init__(self, classes: NDArray[np.integer]) -> None:
        self.classes = classes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DecisionValues:
        """Learn nothing: also where a fold lacks a class, there is a value of each."""
        self.classes_ = self.classes
        return self

    def decision_function(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values."""
        return X

    predict = decision_function  # scikit-learn asks for it


def fit_machine(data: Dataset, sigma: float, cost: float) -> SvmClassifier:
    """Fit scikit-learn's LIBSVM with the kernel exp(-|x - x'|^2 / (2 sigma^2)); slacks are multiplied by weights.

    Parameters
    ----------
    sigma : float
        Width of the kernel. Two samples that differ in d features have the squared distance 2 d.
    cost : float
        C, the cost of a unit of slack.
    """
    machine = SVC(C=cost, gamma=width(sigma), cache_size=CACHE)
    # The machine of the merged samples is the same: their dual variables add. On adult it takes a fifth of the time.
    samples = data.merged
    machine.fit(indicators(samples), samples.y, sample_weight=samples.weights)
    return SvmClassifier(data.variables, machine)
