"""Monotone features on random networks, against enumeration and against a general solver."""

from __future__ import annotations

import numpy as np
import pytest
from monotone_cases import numbered, random_structure, smallest_by_enumeration
from scipy.optimize import minimize

from milpbn.network import Classifier
from milpbn.network.monotone import inequalities as module
from milpbn.network.monotone.changes import lifted, pooled, smallest_changes
from milpbn.network.monotone.constraints import StateOrder, read_monotone
from milpbn.network.parameters.conditional import curvature, objective
from milpbn.network.parameters.log_linear import LogLinear
from milpbn.network.parameters.normalised import completed
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.parameters.refit import refit_classifier
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget
from milpbn.util.jsonable import Fields

METHODS = ("cll:1", "hybrid:0.5:3", "ml", "hybrid:1:30")


def drawn(make_data, seed: int, classes: int = 2, samples: int = 60):
    """Return data whose class depends on all features, and a classifier of a random network."""
    rng = np.random.default_rng(seed)
    plain = numbered(make_data(seed, samples, (*map(int, rng.integers(2, 4, 4)), classes)))
    codes = plain.codes.copy()
    sums = sum(rng.normal(size=3)[codes[:, k]] for k in range(4)) + rng.logistic(size=samples)
    codes[:, -1] = np.searchsorted(np.quantile(sums, np.arange(1, classes) / classes), sums)
    data = type(plain)(plain.name, plain.variables, codes, plain.weights)
    return data, Classifier.fit(data, random_structure(rng, data.names), 0.5)


@pytest.mark.parametrize(
    "part", [*range(4), *(pytest.param(part, marks=pytest.mark.slow) for part in range(4, 20))]
)
def test_fitted_networks_are_monotone_in_all_complete_rows(make_data, part) -> None:
    fitted = 0
    for seed in range(10 * part, 10 * part + 10):
        data, before = drawn(make_data, seed, classes=2 + (seed % 5 == 0))
        constraints = read_monotone({"x0": "+", "x1": "-"}, data.variables)
        budget = Budget(0.0) if seed % 10 == 1 else None
        method = METHODS[part % len(METHODS)]
        after, record = refit_classifier(before, data, method, monotone=constraints, budget=budget)
        assert ParameterFit.read(Fields(record.to_dict(), "it")) == record
        found = [smallest_by_enumeration(after, constraint) for constraint in constraints]
        assert [check.smallest for check in record.monotone.features] == pytest.approx(found, abs=1e-12)
        if completed(before.structure, data.n_states)[2] is None:
            assert min(found) >= -1e-12
            assert record.monotone.holds
            fitted += 1
    assert fitted >= 8


@pytest.mark.parametrize("seed", range(3))
def test_the_fit_is_the_optimum_of_all_inequalities(make_data, seed) -> None:
    data, _ = drawn(make_data, seed, samples=90)
    structure = Structure(data.names, ((4,), (0, 4), (0, 1, 4), (0, 4), ()))
    constraints = read_monotone({"x0": "+", "x1": "-"}, data.variables)
    orders = [StateOrder.of(constraint, data.variables) for constraint in constraints]
    model = LogLinear(Classifier.fit(data, structure), data, None, (0, 1))
    rows, joint = model.rows
    offset, shape = 0.5 * joint, model.origin().shape

    def loss(point):
        value, gradient = objective(point.reshape(shape), rows, offset, 1.0)
        return value, gradient.ravel()

    def least(point):
        """Return the changes of log-odds in every cell that the elimination makes of weights, without auxiliaries."""
        weights = model.weights(0.5, point.reshape(shape))
        return np.concatenate([smallest_changes(one, data.variables, weights)[0].ravel() for one in orders])

    terms = [
        module.Term(
            tuple(i for i in (*cpt.parents, cpt.variable) if i != 4),
            np.moveaxis(cpt.table, (*cpt.parents, cpt.variable).index(4), -1).reshape(-1, 2),
            model.design.first(cpt.variable),
        )
        for cpt in model.weights(0.5, None)
    ]
    inequalities = module.MonotoneRows.of(orders, terms, data.variables, shape)
    found = module.constrained_minimum(
        lambda point: objective(point, rows, offset, 1.0),
        model.origin(),
        curvature(rows, 1.0),
        inequalities,
        tolerance=1e-5,
    )
    n, g = np.prod(shape), inequalities.minima.shape[1]
    cells, minima = inequalities.cells.toarray(), inequalities.minima.toarray()
    matrix = np.hstack([np.kron(cells, inequalities.contrast.T), minima])
    general = minimize(
        lambda z: (loss(z[:n])[0], np.append(loss(z[:n])[1], np.zeros(g))),
        np.zeros(n + g),
        jac=True,
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda z: matrix @ z + inequalities.constants[:, 0],
            "jac": lambda z: matrix,
        },
        options={"maxiter": 500, "ftol": 1e-10},
    )
    assert least(general.x[:n]).min() >= -1e-6
    assert least(found.ravel()).min() >= -2 * module.TOLERANCE
    assert loss(found.ravel())[0] == pytest.approx(general.fun, abs=0.02)
    assert (
        loss(general.x[:n])[0]
        > loss(model.deviations(0.5, 1.0, model.origin(), 1e-6, lambda: False).ravel())[0] + 0.1
    )


def test_joined_and_lifted_weights_change_nothing_that_is_monotone(make_data) -> None:
    data, before = drawn(make_data, 7)
    constraints = read_monotone({"x0": "+", "x1": "-"}, data.variables)
    after, record = refit_classifier(before, data, "cll:1", monotone=constraints)
    assert record.monotone.log_loss >= record.monotone.free_log_loss - 1e-6
    orders = [StateOrder.of(constraint, data.variables) for constraint in constraints]
    logs = [type(cpt)(cpt.variable, cpt.parents, np.log(cpt.table)) for cpt in after.cpts]
    shares = {order.finest: np.ones(data.n_states[order.finest]) for order in orders}
    again = lifted(pooled(logs, data.variables, orders, shares), data.variables, orders)
    assert all(np.abs(one.table - other.table).max() < 1e-11 for one, other in zip(again, logs, strict=True))


def test_what_it_costs_on_held_out_rows_is_in_the_record(make_data) -> None:
    data, before = drawn(make_data, 11, samples=100)
    constraints = read_monotone({"x0": "-", "x1": "+"}, data.variables)
    _, record = refit_classifier(before, data, "hybrid", monotone=constraints)
    costs = record.monotone
    assert record.folds == 5
    assert costs.free_held_out_log_loss == pytest.approx(record.held_out_log_loss, abs=0.02)
    assert None not in (costs.held_out_log_loss, costs.log_loss, costs.free_log_loss)
    assert "what monotone costs: log-loss" in "\n".join(record.describe())


def test_what_is_free_of_the_constraint_is_the_fit_without_it(make_data) -> None:
    data, before = drawn(make_data, 11, samples=100)
    constraints = read_monotone({"x0": "-", "x1": "+"}, data.variables)
    _, record = refit_classifier(before, data, "hybrid:0.5:3", monotone=constraints)
    free, _ = refit_classifier(before, data, "hybrid:0.5:3")
    posterior = free.predict_proba(data)[np.arange(len(data.y)), data.y]
    expected = np.average(-np.log(posterior), weights=data.weights)
    assert record.monotone.free_log_loss == pytest.approx(expected, abs=1e-9)
