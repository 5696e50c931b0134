"""Points of the hull of all structures, as convex combinations, and their bounds: what Frank-Wolfe steps move."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from milpbn.bounds.kernels import Duals, add_gradient, empty_duals, weigh
from milpbn.bounds.oracle import Oracle, heaviest_structure
from milpbn.scores.products import Softening, Tables, add_columns, total_score

#: Most vertices that a point keeps.
MOST_VERTICES = 600
#: Places in `Point.numbers` and `Point.counts`.
TEMPERATURE, BOUND, CONSTANT, RELAXED, BEST_TEMPERATURE, LINEAR, MOVED = 0, 1, 2, 3, 4, 5, 6
VERTICES, BEST_VERTICES, STEPS, FOUND = 0, 1, 2, 3


class Model(NamedTuple):
    """What is maximised, as the kernels take it.

    Attributes
    ----------
    tables : Tables
        Coefficients.
    softening : Softening
        gamma, and whether the score is the conditional log-likelihood.
    oracle : Oracle
        Candidate sets.
    linear : float64 array, shape (P,)
        Terms linear in eta.
    slack : float
        What rounding can take from the dual bound's sums.
    offset : float
        What samples that are left out add to every score, gamma each.
    """

    tables: Tables
    softening: Softening
    oracle: Oracle
    linear: NDArray[np.float64]
    slack: float
    offset: float


class Node(NamedTuple):
    """What a part of the search space allows: entries, and undirected edges that must be there (see `Oracle`)."""

    allowed: NDArray[np.bool_]
    forced: NDArray[np.int64]
    n_forced: int


class Point(NamedTuple):
    """A convex combination of structures, and the best bound met on the way to it.

    Attributes
    ----------
    vertices, shares : arrays, shapes (room, V) and (room,)
        One entry of eta per variable, and the vertex's part of the point.
    logits : float64 array, shape (M, Q)
        Joint log-probabilities at the point.
    numbers, counts : float64 and int64 arrays
        See the constants of this module.
    gradient : float64 array, shape (P,)
        The bound is ``numbers[CONSTANT] + max gradient @ eta``.
    best_vertices, best_shares : arrays
        The point whose weights, at ``numbers[BEST_TEMPERATURE]``, gave the bound.
    found : int64 array, shape (V,)
        The last answer of the oracle that is a structure; ``counts[FOUND]`` says whether there is one.
    direction : float64 array, shape (M, Q)
        Room for a step.
    duals : Duals
        Room for the weights.
    """

    vertices: NDArray[np.int64]
    shares: NDArray[np.float64]
    logits: NDArray[np.float64]
    numbers: NDArray[np.float64]
    counts: NDArray[np.int64]
    gradient: NDArray[np.float64]
    best_vertices: NDArray[np.int64]
    best_shares: NDArray[np.float64]
    found: NDArray[np.int64]
    direction: NDArray[np.float64]
    duals: Duals


def empty_point(model: Model) -> Point:
    """Return room for a point; `place` puts one there."""
    V = len(model.oracle.offsets) - 1
    P = len(model.linear)
    M, Q = model.tables.codes.shape[1], model.tables.values.shape[1]
    return Point(
        np.empty((MOST_VERTICES, V), dtype=np.int64),
        np.empty(MOST_VERTICES),
        np.empty((M, Q)),
        np.zeros(7),
        np.zeros(4, dtype=np.int64),
        np.empty(P),
        np.empty((MOST_VERTICES, V), dtype=np.int64),
        np.empty(MOST_VERTICES),
        np.empty(V, dtype=np.int64),
        np.empty((M, Q)),
        empty_duals(model.tables),
    )


@njit(cache=True, nogil=True)
def column_of(model, entry):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the column of an entry of eta, or -1 if its coefficients are 0."""
    columns = model.tables.columns
    k = np.searchsorted(columns, entry)
    return k if k < len(columns) and columns[k] == entry else -1


@njit(cache=True, nogil=True)
def combine(model, entries, factors, logits, parallel):  # type: ignore[no-untyped-def]
    """Write sum_n factors[n] table(entries[n]) to `logits`."""
    columns = np.empty(len(entries), dtype=np.int64)
    used = np.empty(len(entries))
    n = 0
    for x in range(len(entries)):
        k = column_of(model, entries[x])
        if k >= 0 and factors[x] != 0.0:
            columns[n] = k
            used[n] = factors[x]
            n += 1
    logits[:] = 0.0
    add_columns(model.tables, columns[:n], used[:n], logits, parallel)


@njit(cache=True, nogil=True)
def refresh(model, point, parallel):  # type: ignore[no-untyped-def]
    """Recompute the logits and the linear part of a point from its vertices."""
    eta = np.zeros(len(model.linear))
    n = point.counts[VERTICES]
    for v in range(n):
        for i in range(point.vertices.shape[1]):
            eta[point.vertices[v, i]] += point.shares[v]
    entries = np.flatnonzero(eta)
    combine(model, entries, eta[entries], point.logits, parallel)
    point.numbers[LINEAR] = np.dot(model.linear[entries], eta[entries])


@njit(cache=True, nogil=True)
def place(model, node, point, vertices, shares, temperature, parallel):  # type: ignore[no-untyped-def]
    """Begin at the part of a point that lies in a node; an empty one begins at the oracle's answer to `gradient`.

    Parameters
    ----------
    model, node, point
        `point.gradient` must hold weights worth asking the oracle about.
    vertices, shares : arrays, shapes (k, V) and (k,)
        Vertices outside the node are left out, and the other shares scaled up.
    temperature : float
        First temperature.
    parallel : bool
        Use threads.

    Returns
    -------
    bool
        False if the node has no structure.
    """
    V = point.vertices.shape[1]
    n = 0
    choice = np.empty(V, dtype=np.int64)
    for v in range(len(shares)):
        inside = True
        for i in range(V):
            choice[i] = vertices[v, i]
            inside = inside and node.allowed[choice[i]]
        if inside and node.n_forced:
            met = 0
            for i in range(V - 1):
                met += node.forced[model.oracle.tail[choice[i]], model.oracle.head[choice[i]]]
            inside = met == node.n_forced
        if inside:
            point.vertices[n] = choice
            point.shares[n] = shares[v]
            n += 1
    if n == 0:
        value, _, _ = heaviest_structure(
            model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, choice
        )
        if value == -np.inf:
            return False
        point.vertices[0] = choice
        point.shares[0] = 1.0
        n = 1
    total = point.shares[:n].sum()
    point.shares[:n] /= total
    point.counts[VERTICES] = n
    point.counts[BEST_VERTICES] = 0
    point.counts[STEPS] = 0
    point.counts[FOUND] = 0
    point.numbers[TEMPERATURE] = temperature
    point.numbers[BOUND] = np.inf
    point.numbers[RELAXED] = -np.inf
    point.numbers[MOVED] = 1.0
    refresh(model, point, parallel)
    return True


@njit(cache=True, nogil=True)
def near_the_cap(model, logits, width):  # type: ignore[no-untyped-def]
    """Return the model and the logits of the samples whose margin is less than gamma + `width`.

    All other samples count with gamma, the most that they can add: any bound of the smaller model is one of the
    model, and the same one as long as their dual weights would lie on gamma alone.
    """
    M, Q = logits.shape
    tables = model.tables
    cap = model.softening.cap
    chosen = np.empty(M, dtype=np.int64)
    n = 0
    outside = 0.0
    for m in range(M):
        own = logits[m, tables.true[m]]
        inside = False
        for c in range(Q):
            if c != tables.true[m] and own - logits[m, c] < cap + width:
                inside = True
                break
        if inside:
            chosen[n] = m
            n += 1
        else:
            outside += tables.weights[m]
    chosen = chosen[:n]
    codes = np.empty((tables.codes.shape[0], n), dtype=np.int32)
    for row in range(tables.codes.shape[0]):
        for x in range(n):
            codes[row, x] = tables.codes[row, chosen[x]]
    few = Tables(
        codes,
        tables.true[chosen],
        tables.rows,
        tables.strides,
        tables.sizes,
        tables.columns,
        tables.domain,
        tables.start,
        tables.values,
        tables.first,
        tables.members,
        tables.weights[chosen],
    )
    small = Model(few, model.softening, model.oracle, model.linear, model.slack, cap * outside)
    return small, logits[chosen]


@njit(cache=True, nogil=True)
def evaluate(model, node, point, parallel):  # type: ignore[no-untyped-def]
    """Go to the point that gave the best bound, and bound the node there anew by the whole model."""
    n = point.counts[BEST_VERTICES]
    if n:
        point.vertices[:n] = point.best_vertices[:n]
        point.shares[:n] = point.best_shares[:n]
        point.counts[VERTICES] = n
    refresh(model, point, parallel)
    temperature = point.numbers[BEST_TEMPERATURE]
    _, constant = weigh(model.tables, model.softening, point.logits, temperature, point.duals)
    point.gradient[:] = model.linear
    add_gradient(model.tables, point.duals, node.allowed, point.gradient, parallel)
    choice = np.empty(point.vertices.shape[1], dtype=np.int64)
    _, most, _ = heaviest_structure(
        model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, choice
    )
    point.numbers[CONSTANT] = constant + model.slack
    point.numbers[BOUND] = point.numbers[CONSTANT] + most


@njit(cache=True, nogil=True)
def score_of(model, choice, logits, parallel):  # type: ignore[no-untyped-def]
    """Return the score of one choice of entries, by the tables; `logits`, shape (M, Q), is overwritten."""
    combine(model, choice, np.ones(len(choice)), logits, parallel)
    total = total_score(model.tables, model.softening, logits, False)
    for p in choice:
        total += model.linear[p]
    return total
