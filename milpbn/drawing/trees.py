"""Tidy drawings of trees, after Reingold and Tilford (1981), for boxes of any size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def tidy(
    parents: Sequence[int | None], sizes: Sequence[float], gap: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Place the n nodes of a tree: children side by side, their parent in the middle above them, subtrees close.

    The places of a subtree do not depend on what is beside it, and the boxes of one level are at least a gap apart.
    Sizes and gap are across the tree's direction of growth.

    Parameters
    ----------
    parents : sequence of int or None, length n
        Each node's parent; None for the root.

    Returns
    -------
    level : int64 array, shape (n,)
        Number of arcs from the root.
    centre : float64 array, shape (n,)
        Centres of the boxes across the direction of growth.
    """
    n = len(parents)
    children: list[list[int]] = [[] for _ in range(n)]
    for i, above in enumerate(parents):
        if above is not None:
            children[above].append(i)
    order = [parents.index(None)]  # parents before children
    for i in order:
        order.extend(children[i])
    offset = np.zeros(n)  # of each node from its parent
    #: Contours of each subtree by level, relative to its root: least and largest coordinate.
    low: list[list[float]] = [[] for _ in range(n)]
    high: list[list[float]] = [[] for _ in range(n)]
    for i in reversed(order):
        left: list[float] = []
        right: list[float] = []
        for child in children[i]:
            shift = max((r - c for r, c in zip(right, low[child], strict=False)), default=-gap) + gap
            shift = shift if right else 0.0
            offset[child] = shift
            right = [c + shift for c in high[child]] + right[len(high[child]) :]
            left += [c + shift for c in low[child][len(left) :]]
        middle = (offset[children[i][0]] + offset[children[i][-1]]) / 2 if children[i] else 0.0
        for child in children[i]:
            offset[child] -= middle
            low[child], high[child] = [], []  # no longer needed
        low[i] = [-sizes[i] / 2, *(value - middle for value in left)]
        high[i] = [sizes[i] / 2, *(value - middle for value in right)]
    level, centre = np.zeros(n, dtype=np.int64), np.zeros(n)
    for i in order[1:]:
        above = parents[i]
        assert above is not None
        level[i], centre[i] = level[above] + 1, centre[above] + offset[i]
    return level, centre
