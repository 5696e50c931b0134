import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import RepeatedStratifiedKFold

from milpbn.data import stratified_folds, validation_split
from milpbn.data.folds import repeated_folds
from milpbn.errors import InputError

labels = st.lists(st.integers(0, 3), min_size=4, max_size=40)


@settings(deadline=None)  # the first call imports or compiles
@given(labels, st.integers(2, 4), st.integers(0, 5))
@pytest.mark.filterwarnings("error")
def test_folds_partition_the_rows(classes, n_folds, seed):
    folds = stratified_folds(classes, n_folds, seed)
    assert len(folds) == n_folds
    tests = np.concatenate([test for _, test in folds])
    assert sorted(tests) == list(range(len(classes)))
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(len(classes)))
        assert (np.diff(train) > 0).all()
        assert (np.diff(test) > 0).all()
    again = stratified_folds(classes, n_folds, seed)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(folds, again, strict=True))


def test_folds_are_stratified():
    classes = np.repeat([0, 1], [80, 20])
    for _, test in stratified_folds(classes, 5, 0):
        assert np.bincount(classes[test]).tolist() == [16, 4]


@settings(deadline=None)  # the first call imports or compiles
@given(labels, st.floats(0.05, 0.95), st.integers(0, 5))
@pytest.mark.filterwarnings("error")
def test_a_validation_split_has_the_given_share(classes, fraction, seed):
    train, held = validation_split(classes, fraction, seed)
    assert len(train)
    assert len(held)
    assert sorted([*train, *held]) == list(range(len(classes)))
    assert (np.diff(train) > 0).all()
    assert abs(len(held) - fraction * len(classes)) <= 1


def test_validation_split_is_stratified():
    classes = np.repeat([0, 1], [80, 20])
    _, held = validation_split(classes, 0.25, 0)
    assert np.bincount(classes[held]).tolist() == [20, 5]


def test_bad_arguments_are_refused():
    for n in (1, 0, 5):
        with pytest.raises(InputError, match="number of folds"):
            stratified_folds([0, 1, 0, 1], n, 0)
    for fraction in (0.0, 1.0, float("nan")):
        with pytest.raises(InputError, match="fraction"):
            validation_split([0, 1, 0, 1], fraction, 0)
    with pytest.raises(InputError, match="at least two rows"):
        validation_split([0], 0.5, 0)


def test_repeated_folds_are_those_of_scikit_learn():
    y = np.array([0, 1, 1] * 8)
    found = repeated_folds(y, 3, 2, 5)
    expected = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=5).split(y[:, None], y)
    for (fit, held), (their_fit, their_held) in zip(found, expected, strict=True):
        assert fit.tolist() == sorted(their_fit)
        assert held.tolist() == sorted(their_held)
    for k in (0, 3):
        assert sorted(np.concatenate([held for _, held in found[k : k + 3]])) == list(range(24))
    assert len(repeated_folds(np.arange(6), 3, 2, 0)) == 6  # not stratified
    with pytest.raises(InputError, match="repetitions must be at least 1, got 0"):
        repeated_folds(y, 3, 0)
