"""The convex problem: its gradient, and its optimum beside scikit-learn's logistic regression."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression

from milpbn.network.parameters.conditional import Design, Stopped, fit_deviations, log_loss, objective
from milpbn.network.parameters.folds import generative_log_joint
from milpbn.network.prior import Prior
from milpbn.network.structure import Structure

PARENTS = ((4,), (0, 4), (), (0, 1, 4), (2,))


@pytest.fixture
def problem(make_data):
    weights = np.random.default_rng(2).integers(0, 4, 60) * 0.5
    data = make_data(3, weights=weights)
    design = Design(data, Structure(data.names, PARENTS))
    return data, design, design.rows(data)


def test_rows_are_distinct_and_keep_all_weight(problem) -> None:
    data, design, rows = problem
    assert len(np.unique(rows.codes[:, :-1], axis=0)) == len(rows.codes) < data.n_samples
    assert rows.weights.sum() == pytest.approx(data.weights.sum())
    for c in range(data.n_classes):
        assert rows.weights[:, c].sum() == pytest.approx(data.weights[data.y == c].sum())
    # Four families contain the class; each row has one joint state of each.
    assert (rows.indicators.sum(axis=1) == 4).all()
    assert rows.indicators.shape == (len(rows.codes), design.n_columns)


def test_gradient_is_that_of_finite_differences(problem) -> None:
    data, design, rows = problem
    rng = np.random.default_rng(0)
    offset = rng.standard_normal((len(rows.codes), data.n_classes))
    shape = design.n_columns, data.n_classes

    def value(point, strength):
        return objective(point.reshape(shape), rows, offset, strength)[0]

    def gradient(point, strength):
        return objective(point.reshape(shape), rows, offset, strength)[1].ravel()

    for strength in (0.0, 0.7):
        point = rng.standard_normal(shape).ravel()
        assert check_grad(value, gradient, point, strength) < 1e-5 * np.linalg.norm(gradient(point, strength))


def test_objective_is_the_penalised_log_loss(problem) -> None:
    data, design, rows = problem
    rng = np.random.default_rng(1)
    offset = rng.standard_normal((len(rows.codes), data.n_classes))
    point = rng.standard_normal((design.n_columns, data.n_classes))
    expected = log_loss(offset + rows.indicators @ point, rows.weights) + 1.5 * (point**2).sum()
    assert objective(point, rows, offset, 3.0)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("strength", [10.0, 0.5])
def test_optimum_without_offset_is_that_of_scikit_learn(problem, strength) -> None:
    data, design, rows = problem
    shape = design.n_columns, data.n_classes
    ours = fit_deviations(
        rows, np.zeros((len(rows.codes), data.n_classes)), strength, np.zeros(shape), tolerance=1e-9
    )
    used = data.take(np.flatnonzero(data.weights))
    each = [design.rows(used.take([m])).indicators.toarray()[0] for m in range(used.n_samples)]
    theirs = LogisticRegression(C=1 / strength, fit_intercept=False, tol=1e-12, max_iter=10_000)
    theirs.fit(np.array(each), used.y, sample_weight=used.weights)
    np.testing.assert_allclose(ours.T, theirs.coef_, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kappa", [1.0, 0.5])
def test_gradient_vanishes_at_the_optimum_around_an_offset(problem, kappa) -> None:
    data, design, rows = problem
    offset = kappa * generative_log_joint(rows, data, Structure(data.names, PARENTS), Prior(1.0))
    start = np.zeros((design.n_columns, data.n_classes))
    found = fit_deviations(rows, offset, 0.3, start, tolerance=1e-9)
    value, gradient = objective(found, rows, offset, 0.3)
    assert np.abs(gradient).max() < 1e-6
    assert value < objective(start, rows, offset, 0.3)[0]
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-9)  # the penalty centres the classes
    again = fit_deviations(rows, offset, 0.3, found + 1.0, tolerance=1e-9)
    np.testing.assert_allclose(again, found, atol=1e-5)


def test_a_fit_stops_when_asked_to(problem) -> None:
    data, design, rows = problem
    asked = []
    zero = np.zeros((design.n_columns, data.n_classes))
    with pytest.raises(Stopped):
        fit_deviations(
            rows,
            rows.weights * 0,
            1e-3,
            zero,
            tolerance=1e-9,
            stopping=lambda: asked.append(0) or len(asked) > 2,
        )
    assert len(asked) == 3
