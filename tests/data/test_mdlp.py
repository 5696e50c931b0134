"""The MDL discretisation against a brute-force implementation of Fayyad and Irani (1993)."""

import itertools
from collections import Counter
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milpbn.data import mdlp_cuts


def entropy(labels):
    return -sum(n / len(labels) * log2(n / len(labels)) for n in Counter(labels).values())


def oracle(samples):
    """Return the cuts of a list of (value, class) by trying every midpoint with the full definition."""
    values = sorted({v for v, _ in samples})
    labels, n = [c for _, c in samples], len(samples)
    best = None
    for a, b in itertools.pairwise(values):
        left = [c for v, c in samples if v <= a]
        right = [c for v, c in samples if v > a]
        cost = len(left) / n * entropy(left) + len(right) / n * entropy(right)
        if best is None or cost < best[0] - 1e-11:
            best = cost, a, b, left, right
    if best is None:
        return []
    cost, a, b, left, right = best
    k, k1, k2 = len(set(labels)), len(set(left)), len(set(right))
    delta = log2(3**k - 2) - (k * entropy(labels) - k1 * entropy(left) - k2 * entropy(right))
    if entropy(labels) - cost <= (log2(n - 1) + delta) / n:
        return []
    lower = oracle([s for s in samples if s[0] <= a])
    upper = oracle([s for s in samples if s[0] > a])
    return [*lower, (a + b) / 2, *upper]


# Classes that depend on the value lead to several levels of accepted cuts, not only to rejected ones.
structured = st.tuples(st.integers(0, 15), st.integers(0, 9)).map(
    lambda t: (t[0], (t[0] // 4) % 3 if t[1] else t[0] % 2)
)
anything = st.tuples(st.integers(0, 6), st.integers(0, 2))


@settings(deadline=None)  # the first call imports or compiles
@given(st.one_of(st.lists(structured, min_size=1, max_size=120), st.lists(anything, min_size=1, max_size=30)))
def test_agrees_with_brute_force(samples):
    values, classes = zip(*samples, strict=True)
    assert mdlp_cuts(values, classes, 3).tolist() == oracle(samples)


def test_deep_recursion_agrees_with_brute_force():
    rng = np.random.default_rng(7)
    values = rng.integers(0, 60, 600)
    classes = np.where(rng.random(600) < 0.9, (values // 8) % 3, rng.integers(0, 3, 600))
    expected = oracle(list(zip(values.tolist(), classes.tolist(), strict=True)))
    assert len(expected) >= 6
    assert mdlp_cuts(values, classes, 3).tolist() == expected


@settings(deadline=None)  # the first call imports or compiles
@given(st.lists(structured, min_size=2, max_size=60), st.data())
def test_integer_weights_are_copies(samples, data):
    values, classes = (np.array(x) for x in zip(*samples, strict=True))
    weights = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(values), max_size=len(values))))
    copies = np.repeat(np.arange(len(values)), weights)
    expected = mdlp_cuts(values[copies], classes[copies], 3)
    np.testing.assert_array_equal(mdlp_cuts(values, classes, 3, weights), expected)


@settings(deadline=None)  # the first call imports or compiles
@given(st.lists(structured, min_size=2, max_size=80), st.permutations(range(3)), st.randoms())
def test_order_of_samples_and_names_of_classes_do_not_matter(samples, names, random):
    values, classes = zip(*samples, strict=True)
    shuffled = [(v, names[c]) for v, c in samples]
    random.shuffle(shuffled)
    other_values, other_classes = zip(*shuffled, strict=True)
    expected = mdlp_cuts(values, classes, 3)
    np.testing.assert_array_equal(mdlp_cuts(other_values, other_classes, 3), expected)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1.0, np.nextafter(1.0, 2.0)),
        (np.nextafter(1.0, 0.0), 1.0),
        (-5e-324, 0.0),
        (0.0, 5e-324),
        (-1.7e308, 1.7e308),
        (1.6e308, 1.7e308),
        (0.1, 0.2),
    ],
)
def test_cuts_separate_strictly_in_float64(low, high):
    cuts = mdlp_cuts([low] * 20 + [high] * 20, [0] * 20 + [1] * 20, 2)
    assert np.searchsorted(cuts, [low, high], side="left").tolist() == [0, 1]


def test_no_cut_where_there_is_nothing_to_separate():
    assert mdlp_cuts([], [], 2).size == 0
    assert mdlp_cuts([3.0] * 10, [0, 1] * 5, 2).size == 0
    assert mdlp_cuts(np.arange(50.0), [0] * 50, 2).size == 0
    for weight in (0.2, 0.5, np.nextafter(0.5, 1), 0.9):  # log2(N - 1) falls without limit as N falls to 1
        assert mdlp_cuts([0.0, 1.0], [0, 1], 2, [weight, weight]).size == 0


def test_many_classes_do_not_overflow():
    classes = np.arange(1000)
    cuts = mdlp_cuts(classes.astype(float), classes, 1000)
    assert np.isfinite(cuts).all()
