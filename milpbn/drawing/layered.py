"""Places of the nodes of a graph on levels.

Directed acyclic graphs are drawn after Sugiyama, Tagawa and Toda (1981), trees after Reingold and Tilford (1981), for
boxes of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import TopologicalSorter
from itertools import pairwise

import numpy as np
import scipy
from numpy.typing import NDArray

#: Sweeps over all levels that order the nodes, and sweeps that place them.
_ORDERING, _PLACING = 12, 16
#: Size, across the levels, of the lane in which a long arc passes a level.
LANE = 6.0

Arc = tuple[int, int]


def layered(
    n: int, arcs: Sequence[Arc], sizes: Sequence[float], gap: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], dict[Arc, list[float]]]:
    """Place the n nodes of an acyclic graph on levels, so that arcs lead to later levels and few of them cross.

    Sizes of boxes and the least distance between two boxes of a level are across the levels' direction. Returned are
    the level of each node from 0, shape (n,); the centre of its box, shape (n,); and by arc, where it passes the levels
    between those of its ends, in lanes that are free of boxes.
    """
    level = _levels(n, arcs)
    size, lanes, links = list(sizes), {}, []
    levels = list(level)
    for parent, child in arcs:
        chain = [parent]
        for between in range(level[parent] + 1, level[child]):
            chain.append(len(size))
            size.append(LANE)
            levels.append(between)
        lanes[parent, child] = chain[1:]
        links += list(zip(chain, [*chain[1:], child], strict=True))
    above: list[list[int]] = [[] for _ in size]
    below: list[list[int]] = [[] for _ in size]
    for a, b in links:
        above[b].append(a)
        below[a].append(b)
    rows = [[i for i, at in enumerate(levels) if at == k] for k in range(max(levels, default=0) + 1)]
    rows = _ordered(rows, above, below)
    centre = _placed(rows, above, below, np.array(size), gap)
    return level, centre[:n], {arc: [float(centre[i]) for i in chain] for arc, chain in lanes.items()}


def _levels(n: int, arcs: Sequence[Arc]) -> NDArray[np.int64]:
    """Return the level of each node: behind its last parent; nodes without parents stand just before their children."""
    parents: dict[int, list[int]] = {i: [] for i in range(n)}
    children: dict[int, list[int]] = {i: [] for i in range(n)}
    for parent, child in arcs:
        parents[child].append(parent)
        children[parent].append(child)
    level = np.zeros(n, dtype=np.int64)
    for i in TopologicalSorter(parents).static_order():
        level[i] = max((level[j] + 1 for j in parents[i]), default=0)
    for i in range(n):
        if not parents[i] and children[i]:
            level[i] = min(level[j] for j in children[i]) - 1
    return level


def _ordered(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> list[list[int]]:
    """Return the order of every level with the fewest crossings that sweeps by mean places of neighbours reach."""
    best, fewest = rows, _crossings(rows, below)
    for sweep in range(_ORDERING):
        if not fewest:
            break
        down = sweep % 2 == 0
        rows = [list(row) for row in rows]
        order = range(1, len(rows)) if down else range(len(rows) - 2, -1, -1)
        for k in order:
            place = {i: p for p, i in enumerate(rows[k - 1 if down else k + 1])}
            near = above if down else below
            here = {i: p for p, i in enumerate(rows[k])}
            mean = {i: sum(place[j] for j in near[i]) / len(near[i]) if near[i] else here[i] for i in rows[k]}
            rows[k] = [i for _, _, i in sorted((mean[i], here[i], i) for i in rows[k])]
        found = _crossings(rows, below)
        if found < fewest:
            best, fewest = rows, found
    return best


def _crossings(rows: list[list[int]], below: list[list[int]]) -> int:
    total = 0
    for row, after in pairwise(rows):
        place = {i: p for p, i in enumerate(after)}
        ends = np.array([(p, place[j]) for p, i in enumerate(row) for j in below[i]]).reshape(-1, 2)
        x, y = ends[:, 0], ends[:, 1]
        total += int(((x[:, None] < x) & (y[:, None] > y)).sum())
    return total


def _placed(
    rows: list[list[int]],
    above: list[list[int]],
    below: list[list[int]],
    size: NDArray[np.float64],
    gap: float,
) -> NDArray[np.float64]:
    """Return the centres: each level as near to its neighbours' means as its order and the gaps allow."""
    # With the least distances taken off, the order is a monotone sequence, and the nearest one an isotonic regression.
    centre = np.zeros(len(size))
    apart = []
    for row in rows:
        distances = (size[row][:-1] + size[row][1:]) / 2 + gap
        apart.append(np.concatenate([[0.0], np.cumsum(distances)]))
        centre[row] = apart[-1] - apart[-1][-1] / 2
    for sweep in range(_PLACING):
        down = sweep % 2 == 0
        both = sweep >= _PLACING - 4
        for k in range(len(rows)) if down else range(len(rows) - 1, -1, -1):
            wanted, weights = [], []
            for i in rows[k]:
                near = above[i] + below[i] if both else (above[i] if down else below[i])
                wanted.append(sum(centre[j] for j in near) / len(near) if near else centre[i])
                weights.append(max(1e-3, len(near)))
            fit = scipy.optimize.isotonic_regression(np.array(wanted) - apart[k], weights=np.array(weights))
            centre[rows[k]] = fit.x + apart[k]
    return centre


def tidy(
    parents: Sequence[int | None], sizes: Sequence[float], gap: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Place the n nodes of a tree: children side by side, their parent in the middle above them, subtrees close.

    The places of a subtree do not depend on what is beside it, and the boxes of one level are at least a gap apart.
    Sizes and gap are across the tree's direction of growth. The root has no parent (None). Returned are the level of
    each node, the number of arcs from the root, and the centre of its box across the direction of growth; both have the
    shape (n,).
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
