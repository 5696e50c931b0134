"""Prediction sets: their numbers against loops, and the promise in simulations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import DataWarning, InputError
from milpbn.network.conformal import Conformal
from milpbn.util.jsonable import Fields

CLASSES = ("a", "b", "c")


def _rows(y, weights=None):
    variables = (Variable("x", ("s",)), Variable("y", CLASSES))
    codes = np.column_stack([np.zeros(len(y), dtype=np.int32), y]).astype(np.int32)
    return Dataset("rows", variables, codes, np.ones(len(y)) if weights is None else weights)


def _probabilities(rng, n, digits=2):
    p = rng.dirichlet(np.ones(3), n).round(digits)  # few digits bring ties
    return p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("by_class", [False, True])
def test_sets_are_those_of_loops_over_folds_and_rows(by_class):
    """Romano, Sesia and Candes (2020), (15), with weights; an unseen class has the probability 0."""
    rng = np.random.default_rng(0)
    y, w = rng.integers(-1, 3, 40), rng.integers(1, 4, 40).astype(float)
    p, held = _probabilities(rng, 40), np.arange(40) % 2
    rows = _rows(y, w)
    found = Conformal.of(rows, p, held, [(), ()])
    new = [_probabilities(rng, 30), _probabilities(rng, 30)]
    own = _probabilities(rng, 30)
    inside = found.sets(new, own, CLASSES, 0.3, by_class=by_class)
    for m in range(30):
        for c in range(3):
            compared = [i for i in range(40) if not by_class or y[i] == c]
            likely = [0.0 if y[i] < 0 else p[i, y[i]] for i in range(40)]
            below = sum(w[i] for i in compared if likely[i] <= new[held[i]][m, c] + 1e-9)
            largest = max(w[i] for i in compared)
            share = (below + largest) / (sum(w[i] for i in compared) + largest)
            assert inside[m, c] == (share > 0.3 or c == own[m].argmax())
    # Without a class: its rows are compared with nothing, so that it is in every set.
    none = Conformal.of(_rows(y[y != 2]), p[y != 2])
    with pytest.warns(DataWarning, match="too few calibration rows of c, which is in every set"):
        assert none.sets(new[:1], own, CLASSES, 0.3, by_class=True)[:, 2].all()


@pytest.mark.parametrize(("n", "error"), [(14, 0.1), (19, 0.1), (40, 0.25)])
@pytest.mark.parametrize("digits", [15, 1])
def test_the_true_class_is_ruled_out_as_seldom_as_promised(n, error, digits):
    """Exactly floor(error (n + 1)) / (n + 1) without ties, and at most that with ties."""
    rng = np.random.default_rng(n)
    outside, draws = [], 700
    for _ in range(draws):
        p, y = _probabilities(rng, n + 1, digits), rng.integers(0, 3, n + 1)
        rows = _rows(y[:n])
        found = Conformal.of(rows, p[:n])
        outside.append(found.shares([p[n:]], by_class=False)[0, y[n]] <= error)
    expected = np.floor(error * (n + 1) + 1e-9) / (n + 1)
    spread = 3 * np.sqrt(expected * (1 - expected) / draws)
    assert np.mean(outside) < expected + spread
    if digits == 15:
        assert np.mean(outside) > expected - spread


def test_the_promise_holds_for_rows_that_were_selected_by_their_weights():
    """Rows are selected with unequal chances and weighed by the inverse; new rows are not selected."""
    rng = np.random.default_rng(5)
    weighted, plain, draws = [], [], 1500
    for _ in range(draws):
        x, y = rng.random(400), rng.integers(0, 3, 400)
        own = np.where(rng.random(400) < 0.7, 0.5 + x / 2, (1 - x) / 2)  # the probability of the true class
        p = np.repeat((1 - own)[:, None] / 2, 3, axis=1)
        p[np.arange(400), y] = own
        chance = 0.1 + 0.8 * x
        chosen = np.flatnonzero(rng.random(399) < chance[:399])[:100]
        for kept, w in ((weighted, 1 / chance[chosen]), (plain, None)):
            rows = _rows(y[chosen], w)
            found = Conformal.of(rows, p[chosen])
            kept.append(found.shares([p[399:]], by_class=False)[0, y[399]] <= 0.2)
    spread = 3 * np.sqrt(0.2 * 0.8 / draws)
    assert 0.2 - 0.05 - spread < np.mean(weighted) < 0.2 + spread
    assert abs(np.mean(plain) - 0.2) > np.mean(weighted) - 0.2


def test_errors_that_nothing_can_keep_are_refused():
    rows = _rows(np.arange(9) % 3)
    p = np.full((9, 3), 1 / 3)
    found = Conformal.of(rows, p)
    assert found.least_errors(by_class=False) == pytest.approx([0.1] * 3)
    assert found.least_errors(by_class=True) == pytest.approx([0.25] * 3)
    for error, sentence in ((0.1, "Give more than 0.1 "), (0.0, "above 0 and below 1"), (1.0, "below 1")):
        with pytest.raises(InputError, match=sentence):
            found.sets([p], p, CLASSES, error, by_class=False)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d.update(weights=[1.0]), "lists differ in length"),
        (lambda d: d.update(classes=[7] * 3), "from -1 to 2"),
        (lambda d: d.update(folds=[1] * 3), "from 0 to 0"),
        (lambda d: d.update(folds=[], classes=[], probabilities=[], weights=[]), "no calibration rows"),
        (lambda d: d.update(largest=[1.0]), "other classes"),
        (lambda d: d.update(tables=[[[[1.0]]]]), "tables do not fit"),
        (lambda d: d.update(tables=[[[["x"], [1.0]]]]), "no numbers"),
    ],
)
def test_damaged_calibrations_are_refused(change, sentence):
    rows = replace(_rows(np.arange(3)), weights=np.array([1.0, 2.0, 0.5]))
    p = np.array([[0.2, 0.8, 0.0], [0.1, 0.3, 0.6], [0.5, 0.1, 0.4]])
    whole = Conformal.of(rows, p)
    document = whole.to_dict()
    shapes = [[(1,), (3,)]]
    again = Conformal.read(Fields(document, "It"), shapes)
    assert again.to_dict() == document
    change(document)
    with pytest.raises(InputError, match=sentence):
        Conformal.read(Fields(document, "It"), shapes)
