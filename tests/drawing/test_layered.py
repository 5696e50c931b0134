"""Layered drawings, and tidy trees."""

from __future__ import annotations

import numpy as np
from graphs import dag

from milpbn.drawing.layered import layered, tidy


def test_arcs_lead_to_later_levels_and_lanes_are_free():
    for seed in range(5):
        parents = dag(25, seed, 3)
        arcs = [(j, i) for i, above in enumerate(parents) for j in above if j != 25]
        sizes = np.random.default_rng(seed).uniform(20, 80, 25)
        level, centre, bends = layered(25, arcs, sizes.tolist(), 10.0)
        assert all(level[j] < level[i] for j, i in arcs)
        for (j, i), lanes in bends.items():
            assert len(lanes) == level[i] - level[j] - 1
            for at, lane in enumerate(lanes, start=int(level[j]) + 1):
                here = np.flatnonzero(level == at)
                assert (np.abs(centre[here] - lane) >= sizes[here] / 2).all()


def test_crossings_that_can_be_avoided_are_avoided():
    """Two pairs whose children stand in the wrong order at first."""
    _, centre, _ = layered(4, [(0, 3), (1, 2)], [20.0] * 4, 10.0)
    assert (centre[0] - centre[1]) * (centre[3] - centre[2]) > 0


def test_parents_stand_in_the_middle_of_their_children():
    rng = np.random.default_rng(0)
    parents = [None, *(int(rng.integers(0, i)) for i in range(1, 60))]
    sizes = rng.uniform(10, 90, 60)
    level, centre = tidy(parents, sizes.tolist(), 10.0)
    for i in range(60):
        children = [j for j in range(60) if parents[j] == i]
        assert all(level[j] == level[i] + 1 for j in children)
        if children:
            assert np.isclose(centre[i], (centre[children].min() + centre[children].max()) / 2)
    for k in range(level.max() + 1):
        row = np.flatnonzero(level == k)
        row = row[np.argsort(centre[row])]
        free = np.diff(centre[row]) - (sizes[row][:-1] + sizes[row][1:]) / 2
        assert (free >= 10.0 - 1e-9).all()


def test_equal_subtrees_look_alike():
    """A subtree's inner distances do not depend on its place (Reingold and Tilford's third condition)."""
    parents = [None, 0, 0, 1, 1, 2, 2, 0]
    _, centre = tidy(parents, [20.0] * 8, 10.0)
    assert np.isclose(centre[4] - centre[3], centre[6] - centre[5])
    assert np.isclose(centre[3] - centre[1], centre[5] - centre[2])


def test_a_deep_chain_needs_no_recursion():
    level, centre = tidy([None, *range(1199)], [20.0] * 1200, 10.0)
    assert level[-1] == 1199
    assert not centre.any()
