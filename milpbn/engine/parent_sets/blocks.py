"""Block rows (`milpbn.engine.parent_sets.rows`) that a fractional point violates.

The point is projected to a block B: a family (i, S) is a member i of B and a set S of other members, X is the share
of the parent sets of i whose members in B are S. An acyclic structure of B is a vertex v: 1 for its families. The
block has a violated row if the gauge of X,

    min sum_v lambda_v   subject to   sum_v lambda_v v >= X, lambda >= 0,

exceeds 1. The dual values of this linear program are the terms a of the most violated row. Columns are generated: the
order with the largest sum of a is found by dynamic programming over the subsets of B, whose values are f.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from milpbn.engine.parent_sets.clusters import Support, arc_weights
from milpbn.engine.parent_sets.rows import BLOCK, LARGEST_BLOCK, Row, block_terms, projected
from milpbn.util.compiled import kernel
from milpbn.util.threads import in_parts

#: A row is violated if the gauge exceeds 1 by at least this much.
LEAST_VIOLATION = 1e-3
#: Most pivots of the linear program.
PIVOTS = 2000
#: f is scaled to integers by a factor up to this, if that changes no value by more than this relative error.
LARGEST_SCALE, SCALE_ERROR = 60, 1e-5
#: Otherwise f is rounded at this scale.
ROUGH_SCALE = 1000
#: Random factor, up to this, of the weights by which a block grows.
NOISE = 2.0
#: Most families of a block: its members, each with any of the other members.
MOST_FAMILIES = LARGEST_BLOCK << LARGEST_BLOCK - 1


@kernel
def families_of(point, members, variable, subset, shares):  # type: ignore[no-untyped-def]  # numba infers the types
    """Fill the families of a block with a share and at least one parent; return their number."""
    n = 0
    for k in range(len(members)):
        if members[k] < 0:
            break
        begin = n
        for t in range(point.offsets[members[k]], point.offsets[members[k] + 1]):
            s = projected(point.masks[t], members)
            if s == 0:
                continue
            at = begin
            while at < n and subset[at] != s:
                at += 1
            if at == n:
                variable[n], subset[n], shares[n] = k, s, 0.0
                n += 1
            shares[at] += point.shares[t]
    return n


@kernel(inner=True)
def _heaviest_order(b, variable, subset, a, best, family, f, last):  # type: ignore[no-untyped-def]
    """Fill f(U), the largest sum of a over the orders of each subset U of the block; return that of the block.

    `best` and `family`, shape (b, 2**b), get the largest a of each member among subsets, and its family, -1 for none;
    `last` gets the last member of the best order of each U.
    """
    n = 1 << b
    best[:], family[:] = 0.0, -1
    for t in range(len(a)):
        k, s = variable[t], subset[t]
        if a[t] > best[k, s]:
            best[k, s], family[k, s] = a[t], t
    for k in range(b):
        for j in range(b):
            if j == k:
                continue
            for s in range(n):
                if s >> j & 1 and best[k, s ^ 1 << j] > best[k, s]:
                    best[k, s], family[k, s] = best[k, s ^ 1 << j], family[k, s ^ 1 << j]
    f[0] = 0.0
    for s in range(1, n):
        f[s] = -1.0
        for k in range(b):
            if s >> k & 1:
                value = f[s ^ 1 << k] + best[k, s ^ 1 << k]
                if value > f[s]:
                    f[s], last[s] = value, k
    return f[n - 1]


@kernel(inner=True)
def _pivot(inverse, basic, price, column, cost):  # type: ignore[no-untyped-def]
    """Let a column with its cost enter the basis; return whether it could."""
    m = len(basic)
    change = inverse @ column
    leaving, ratio = -1, np.inf
    for q in range(m):
        if change[q] > 1e-9:
            r = basic[q] / change[q]
            if r < ratio - 1e-13 or (r < ratio + 1e-13 and leaving >= 0 and change[q] > change[leaving]):
                leaving, ratio = q, r
    if leaving < 0:
        return False
    inverse[leaving] /= change[leaving]
    for q in range(m):
        if q != leaving and change[q] != 0.0:
            inverse[q] -= change[q] * inverse[leaving]
            basic[q] -= change[q] * ratio
    basic[leaving], price[leaving] = ratio, cost
    return True


@kernel
def gauge(b, variable, subset, shares, f):  # type: ignore[no-untyped-def]
    """Return the gauge of a point in a block of b members, 0 if it is at most 1 or was not found, and fill f.

    Parameters
    ----------
    variable, subset : int64 arrays, shape (m,)
        The families: their variables by place in the block, and the members of their parent sets as bits.
    shares : float64 array, shape (m,)
        X.
    f : float64 array, shape (2**b,)
        Overwritten with the values of the most violated row.
    """
    m, n = len(shares), 1 << b
    inverse, price = np.eye(m), np.ones(m)
    basic = shares + 1e-9 * np.arange(1, m + 1)  # no two ratios are equal
    best, family = np.empty((b, n)), np.empty((b, n), dtype=np.int64)
    last, column = np.empty(n, dtype=np.int64), np.empty(m)
    for _ in range(PIVOTS):
        total = price @ basic
        if total <= 1 + LEAST_VIOLATION:
            return 0.0
        a = price @ inverse
        column[:] = 0.0
        cost = 0.0
        lowest = np.argmin(a)
        if a[lowest] < -1e-9:
            column[lowest] = -1.0  # the surplus of a row
        else:
            heaviest = _heaviest_order(b, variable, subset, a, best, family, f, last)
            if heaviest <= 1 + 1e-7:
                return total / heaviest
            s = n - 1
            while s:
                k = last[s]
                s ^= 1 << k
                if family[k, s] >= 0:
                    column[family[k, s]] = 1.0
            cost = 1.0
        if not _pivot(inverse, basic, price, column, cost):
            return 0.0
    return 0.0


def small_integers(f: NDArray[np.float64]) -> tuple[int, ...]:
    """Return multiples of f as small integers, or rounded ones if there are none."""
    for scale in range(1, LARGEST_SCALE + 1):
        if np.abs(scale * f - np.round(scale * f)).max() < SCALE_ERROR * scale:
            return tuple(np.round(scale * f).astype(np.int64).tolist())
    return tuple(np.round(ROUGH_SCALE * f).astype(np.int64).tolist())


def violated_block(point: Support, members: NDArray[np.int64]) -> tuple[Row, float] | None:
    """Return the most violated row of a block and its relative violation, or None if there is none.

    `members`, int64 of shape (LARGEST_BLOCK,), are ascending, with -1 behind them.
    """
    b = int((members >= 0).sum())
    variable, subset = np.empty(MOST_FAMILIES, dtype=np.int64), np.empty(MOST_FAMILIES, dtype=np.int64)
    shares = np.empty(MOST_FAMILIES)
    m = families_of(point, members, variable, subset, shares)
    if m < 2 or shares[:m].sum() <= 1 + LEAST_VIOLATION:
        return None
    f = np.empty(1 << b)
    if gauge(b, variable[:m], subset[:m], shares[:m], f) <= 1 + LEAST_VIOLATION:
        return None
    numbers = small_integers(f)
    terms = block_terms(np.array(numbers, dtype=np.float64))
    violation = float((terms[variable[:m], subset[:m]] - terms[variable[:m], 0]) @ shares[:m])
    right = numbers[-1] - float(terms[:, 0].sum())
    if violation <= (1 + LEAST_VIOLATION) * right:
        return None
    return Row(BLOCK, tuple(members[:b].tolist()), numbers), violation / max(right, 1e-9) - 1


def likely_blocks(
    point: Support, sizes: Iterable[int], number: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Return blocks whose members share many parents, each inside a strongly connected component of the arcs in use.

    A block grows from a random pair by the variable with the largest weight of arcs to its members, times a random
    factor. What is in no cycle with the rest is left out.
    """
    arcs = arc_weights(point)
    weight = arcs + arcs.T
    together = _components(arcs)
    weight = np.where(together[:, None] == together, weight, 0.0)
    first, second = np.nonzero(np.triu(weight > 1e-6))
    sizes, found, seen = tuple(sizes), [], set()
    if not len(first):
        return []
    pairs = rng.permutation(len(first))
    for t in range(3 * number):
        pair, size = pairs[t % len(pairs)], sizes[t % len(sizes)]
        block = [int(first[pair]), int(second[pair])]
        near = weight[block].sum(axis=0)
        while len(block) < size:
            noisy = near * (1 + NOISE * rng.random(len(near)))
            noisy[block] = 0.0
            best = int(noisy.argmax())
            if noisy[best] <= 1e-9:
                break
            block.append(best)
            near = near + weight[best]
        label = _components(arcs[np.ix_(block, block)])
        largest = np.bincount(label).argmax()
        members = sorted(v for v, own in zip(block, label, strict=True) if own == largest)
        if len(members) < 3 or tuple(members) in seen:
            continue
        seen.add(tuple(members))
        found.append(np.array(members + [-1] * (LARGEST_BLOCK - len(members)), dtype=np.int64))
        if len(found) == number:
            break
    return found


def _components(arcs: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the strongly connected component of every variable."""
    rows, columns = np.nonzero(arcs > 1e-9)
    starts = np.searchsorted(rows, np.arange(len(arcs) + 1))  # csr_array itself takes longer
    graph = csr_array((np.ones(len(rows)), np.ascontiguousarray(columns), starts), shape=arcs.shape)
    return np.asarray(connected_components(graph, connection="strong")[1])  # type: ignore[arg-type]  # SciPy's stubs


def violated_blocks(
    point: Support,
    sizes: Iterable[int],
    number: int,
    rng: np.random.Generator,
    *,
    most: int = 100,
    parallel: bool = False,
) -> list[Row]:
    """Return violated block rows, the most violated first; the same ones whether they are found in parallel or not."""
    likely = likely_blocks(point, sizes, number, rng)
    rows: list[tuple[Row, float] | None] = [None] * len(likely)

    def separate(begin: int, end: int) -> None:
        for k in range(begin, end):
            rows[k] = violated_block(point, likely[k])

    in_parts(separate, len(likely), parallel)
    found = dict(row for row in rows if row is not None)
    return sorted(found, key=lambda row: -found[row])[:most]
