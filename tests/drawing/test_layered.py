"""Layered drawings."""

from __future__ import annotations

import numpy as np
from graphs import dag

from milpbn.drawing.layered import layered


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
