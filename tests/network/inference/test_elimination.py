"""Draws from tables; `test_queries` and `test_rows_missing` compare sums and maxima with enumerations."""

from __future__ import annotations

import numpy as np

from milpbn.data.dataset import MISSING, UNKNOWN
from milpbn.network.cpt import Cpt
from milpbn.network.inference.elimination import draw_forward


def test_children_of_unseen_parents_are_drawn_uniformly() -> None:
    cpts = [Cpt(0, (), np.array([1.0, 0.0])), Cpt(1, (0,), np.array([[1.0, 0.0], [0.0, 1.0]]))]
    rows = np.full((4000, 2), MISSING)
    rows[:2000, 0] = UNKNOWN
    rows[2000:, 0] = 1
    draw_forward(cpts, rows, np.random.default_rng(0))
    assert abs(rows[:2000, 1].mean() - 0.5) < 0.06
    assert (rows[2000:, 1] == 1).all()
