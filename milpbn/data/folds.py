"""Stratified splits of samples into folds, and into training and validation rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from milpbn.errors import InputError

Split = tuple[NDArray[np.int64], NDArray[np.int64]]
#: Held-out rows of other classes than the most frequent one below which chance decides between classifiers, and most
#: repetitions of folds for them.
FEW_ROWS, MOST_REPEATS = 100, 3


def rows_of_others(classes: NDArray[np.integer]) -> int:
    """Return how many rows, shape (M,), have another class than the most frequent one."""
    return len(classes) - int(np.unique(classes, return_counts=True)[1].max())


def repeats_of(classes: NDArray[np.integer]) -> int:
    """Return how often folds are repeated: until `FEW_ROWS` rows of other classes were held out."""
    return min(MOST_REPEATS, -(-FEW_ROWS // max(1, rows_of_others(classes))))


def stratified_folds(classes: ArrayLike, n_folds: int, random_state: int | None = None) -> list[Split]:
    """Return the (training, test) rows of a shuffled stratified k-fold cross-validation.

    A class with fewer members than folds occurs in some of the test folds only. If all classes are that small, the
    folds are not stratified. `classes` has class codes, shape (M,). Positions ascend, and every row is in exactly one
    test fold. Raises `InputError` if there are fewer than two folds, or more folds than rows.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    y = np.asarray(classes)
    kind = StratifiedKFold if _can_be_stratified(y, n_folds) else KFold
    return _splits(kind(n_folds, shuffle=True, random_state=random_state), y)


def repeated_folds(
    classes: ArrayLike, n_folds: int, n_repeats: int, random_state: int | None = None
) -> list[Split]:
    """Return the (training, test) rows of several stratified cross-validations, one after the other.

    The positions ascend. They are those of scikit-learn's `RepeatedStratifiedKFold`, with the exceptions of
    `stratified_folds`. Raises `InputError` if a number is out of range.
    """
    from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

    y = np.asarray(classes)
    kind = RepeatedStratifiedKFold if _can_be_stratified(y, n_folds) else RepeatedKFold
    if n_repeats < 1:
        raise InputError(f"The number of repetitions must be at least 1, got {n_repeats}.")
    return _splits(kind(n_splits=n_folds, n_repeats=n_repeats, random_state=random_state), y)


def _can_be_stratified(y: NDArray, n_folds: int) -> bool:
    """Return whether a class has a member for every fold; refuse an impossible number of folds."""
    if not 2 <= n_folds <= len(y):
        raise InputError(
            f"The number of folds must lie between 2 and the number of rows, {len(y)}; got {n_folds}."
        )
    return bool(np.unique(y, return_counts=True)[1].max() >= n_folds)


def _splits(splitter: Any, y: NDArray) -> list[Split]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about classes with fewer members than folds
        return [_sorted(split) for split in splitter.split(np.zeros((len(y), 1)), y)]


def validation_split(classes: ArrayLike, fraction: float, random_state: int | None = None) -> Split:
    """Return (training, validation) rows, stratified if possible.

    The positions ascend. They are not stratified if a class has only one member, or if one of the two has fewer rows
    than there are classes. Raises `InputError` if the fraction is not inside (0, 1), or there are fewer than two rows.
    """
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

    y = np.asarray(classes)
    if not 0.0 < fraction < 1.0:
        raise InputError(f"The validation fraction must lie between 0 and 1, both excluded; got {fraction}.")
    if len(y) < 2:
        raise InputError(f"A validation split needs at least two rows; there are {len(y)}.")
    sizes = np.unique(y, return_counts=True)[1]
    n_held = min(max(1, round(fraction * len(y))), len(y) - 1)
    stratify = sizes.min() >= 2 and min(n_held, len(y) - n_held) >= len(sizes)
    splitter = (StratifiedShuffleSplit if stratify else ShuffleSplit)(
        1, test_size=n_held, random_state=random_state
    )
    return _sorted(next(splitter.split(np.zeros((len(y), 1)), y)))


def _sorted(split: tuple[NDArray, NDArray]) -> Split:
    train, test = split
    return np.sort(train).astype(np.int64), np.sort(test).astype(np.int64)
