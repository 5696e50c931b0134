"""Pictures of points with the lower parts of their convex hulls."""

from __future__ import annotations

import numpy as np
import pytest
from pictures import of_kind, texts
from scipy.spatial import ConvexHull

from milpbn.drawing.scene import Box, Path
from milpbn.plotting import draw_points
from milpbn.plotting.figures import lower_hull


@pytest.mark.parametrize("seed", range(5))
def test_the_lower_hull_is_that_of_qhull(seed):
    points = np.random.default_rng(seed).random((30, 2))
    hull = lower_hull(map(tuple, points.tolist()))
    corners = {tuple(points[k]) for k in ConvexHull(points).vertices}
    assert set(hull) <= corners
    assert (hull[0][0], hull[-1][0]) == (points[:, 0].min(), points[:, 0].max())
    line = np.interp(points[:, 0], *np.array(hull).T)
    assert (points[:, 1] >= line - 1e-12).all()
    # Every corner of the hull below the line between its ends is on the lower part.
    ends = np.interp(points[:, 0], *np.array([hull[0], hull[-1]]).T)
    assert {
        c for c, y in zip(map(tuple, points.tolist()), ends, strict=True) if c in corners and c[1] < y
    } <= set(hull)


def test_points_of_one_x_and_one_point():
    assert lower_hull([(1.0, 3.0), (1.0, 2.0)]) == [(1.0, 2.0)]
    assert lower_hull([]) == []


def test_every_colour_has_its_points_and_its_line_and_high_points_are_counted():
    series = {
        "few": [(0.0, 1.0), (1.0, 2.0)],
        "many": [(x / 20, 3.0) for x in range(20)],
        "one": [(0.5, 99.0)],
    }
    scene = draw_points(series, title="all", labels=("x", "y"))
    dots = [item.fill for item in of_kind(scene, Box, radius=2.0) if item.width == 4.0]
    assert [dots.count(role) for role in ("feature-edge", "class-edge", "green")] == [2, 20, 0]
    assert [item.edge for item in of_kind(scene, Path, width=1.5)] == ["feature-edge", "class-edge"]
    assert {"few", "many", "one", "x (1 above the picture)"} <= {*texts(scene)}
    assert draw_points({"one": [(0.5, 1.0)]}).items
