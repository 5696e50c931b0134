"""Factors and steps that the other tests reach only together."""

from __future__ import annotations

import math

import numpy as np

from milpbn.data.dataset import MISSING, UNKNOWN
from milpbn.network.cpt import Cpt
from milpbn.network.inference.elimination import LogTable, draw_forward, eliminate, factors_of, total_log


def test_a_free_variable_with_unseen_values_has_one_position_more() -> None:
    cpts = [
        Cpt(0, (), np.array([0.25, 0.75])),
        Cpt(1, (0,), np.array([[0.1, 0.9], [0.6, 0.4]])),
        Cpt(2, (), np.ones(2) / 2),
    ]
    tables = [LogTable.of(cpt, 2) for cpt in cpts]
    codes = np.array([[MISSING, 0, MISSING], [UNKNOWN, 0, MISSING], [1, 0, MISSING]])
    free = np.array([True, False, True])
    factors = factors_of(tables, codes, free)
    assert [factor.scope for factor in factors] == [(0,), (0,), (2,)]
    assert np.allclose(np.exp(factors[0].log), [[0.25, 0.75, 1.0]])
    assert np.allclose(np.exp(factors[1].log), [[0.1, 0.6, 0.5]] * 3)
    _, left = eliminate(factors, [0], codes, {0: 2, 2: 2}, keep=False)
    found = np.exp(total_log(left, (2,)))
    assert np.allclose(found, np.array([[0.25 * 0.1 + 0.75 * 0.6], [0.5], [0.75 * 0.6]]) / 2, rtol=1e-14)


def test_maxima_and_sums_leave_the_same_kind_of_steps() -> None:
    cpts = [Cpt(0, (), np.array([0.3, 0.7])), Cpt(1, (0,), np.array([[0.9, 0.1], [0.5, 0.5]]))]
    tables, codes = [LogTable.of(cpt, 1) for cpt in cpts], np.full((1, 2), MISSING)
    free = np.ones(2, dtype=bool)
    for reduction, value in (("sum", 1.0), ("max", 0.35)):
        steps, left = eliminate(
            factors_of(tables, codes, free), [1, 0], codes, {0: 2, 1: 2}, reduction=reduction
        )
        assert [(step.variable, step.separator) for step in steps] == [(1, (0,)), (0, ())]
        assert math.isclose(np.exp(total_log(left)[0]), value, rel_tol=1e-14)


def test_children_of_unseen_parents_are_drawn_uniformly() -> None:
    cpts = [Cpt(0, (), np.array([1.0, 0.0])), Cpt(1, (0,), np.array([[1.0, 0.0], [0.0, 1.0]]))]
    rows = np.full((4000, 2), MISSING)
    rows[:2000, 0] = UNKNOWN
    rows[2000:, 0] = 1
    draw_forward(cpts, rows, np.random.default_rng(0))
    assert abs(rows[:2000, 1].mean() - 0.5) < 0.06
    assert (rows[2000:, 1] == 1).all()
