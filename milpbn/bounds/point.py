"""Points of the hull of all structures, as convex combinations, and their bounds: what Frank-Wolfe steps move.

What steps are made of (`combine`, `refresh`, and more in `newton` and `frank_wolfe`) is `register_jitable`: part of
the compiled steps that one thread takes, and ordinary Python over kernels and threads where the products are large.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from milpbn.bounds.kernels import Duals, add_gradient, empty_duals, weigh
from milpbn.bounds.oracle import Oracle, heaviest_structure
from milpbn.compiled import kernel
from milpbn.scores.products import Softening, Tables, add_columns, total_score

#: Most vertices that a point keeps.
MOST_VERTICES = 600
#: Places in `Point.numbers` and `Point.counts`. MOVED is how far the last Newton step went, 0 after a pairwise one,
#: HALVES the temperature at which the halves of the part start if that is above the last one, 0 until it is known.
TEMPERATURE, BOUND, CONSTANT, RELAXED, BEST_TEMPERATURE, LINEAR, MOVED, HALVES = 0, 1, 2, 3, 4, 5, 6, 7
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
    slack, per_weight : float
        What rounding can take from the dual bound's sums, and more of it for every unit of dual weight on margins.
    offset : float
        What samples that are left out add to every score, gamma each.
    column : int64 array, shape (P,)
        Column of the tables of each entry, -1 for one whose coefficients are 0.
    """

    tables: Tables
    softening: Softening
    oracle: Oracle
    linear: NDArray[np.float64]
    slack: float
    per_weight: float
    offset: float
    column: NDArray[np.int64]


class Node(NamedTuple):
    """A part of the search space, and the multipliers of the inequalities that bound it (`inequalities.node_of`).

    Attributes
    ----------
    allowed : bool array, shape (P,)
        Entries that may be chosen.
    forced : int64 array, shape (n, n)
        Undirected edges that must be there (see `Oracle`),
    n_forced : int
        and their number.
    linear : float64 array, shape (P,)
        Terms linear in eta: the score's and the multipliers'.
    constant : float
        The multipliers' terms that no structure changes, with what rounding can take from all of them.
    """

    allowed: NDArray[np.bool_]
    forced: NDArray[np.int64]
    n_forced: int
    linear: NDArray[np.float64]
    constant: float


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
        np.zeros(8),
        np.zeros(4, dtype=np.int64),
        np.empty(P),
        np.empty((MOST_VERTICES, V), dtype=np.int64),
        np.empty(MOST_VERTICES),
        np.empty(V, dtype=np.int64),
        np.empty((M, Q)),
        empty_duals(model.tables),
    )


@kernel
def copy(out, values):  # type: ignore[no-untyped-def]  # numba infers the types
    """Copy a vector: a loop in one place compiles in a tenth of the time that slices take wherever they are."""
    for x in range(len(values)):
        out[x] = values[x]


@kernel
def copy_vertices(vertices, shares, n, to_vertices, to_shares):  # type: ignore[no-untyped-def]
    """Copy the first n vertices and their shares."""
    for v in range(n):
        copy(to_vertices[v], vertices[v])
        to_shares[v] = shares[v]


@kernel
def _columns_of(column, entries, factors):  # type: ignore[no-untyped-def]
    """Return the columns, and their factors, of the entries that have coefficients and a factor."""
    columns = np.empty(len(entries), dtype=np.int64)
    used = np.empty(len(entries))
    n = 0
    for x in range(len(entries)):
        if column[entries[x]] >= 0 and factors[x] != 0.0:
            columns[n], used[n] = column[entries[x]], factors[x]
            n += 1
    return columns[:n], used[:n]


@kernel
def _entries_of(linear, vertices, shares, n):  # type: ignore[no-untyped-def]
    """Return the entries of the first n vertices, their shares, and the product of these with `linear`."""
    eta = np.zeros(len(linear))
    for v in range(n):
        for i in range(vertices.shape[1]):
            eta[vertices[v, i]] += shares[v]
    entries = np.empty(len(linear), dtype=np.int64)
    factors = np.empty(len(linear))
    used = 0
    total = 0.0
    for p in range(len(linear)):
        if eta[p] != 0.0:
            entries[used], factors[used] = p, eta[p]
            total += eta[p] * linear[p]
            used += 1
    return entries[:used], factors[:used], total


@kernel
def _clear(logits):  # type: ignore[no-untyped-def]
    for m in range(logits.shape[0]):
        for c in range(logits.shape[1]):
            logits[m, c] = 0.0


@register_jitable
def combine(
    model: Model,
    entries: NDArray[np.int64],
    factors: NDArray[np.float64],
    logits: NDArray[np.float64],
    parallel: bool,
) -> None:
    """Write sum_n factors[n] table(entries[n]) to `logits`, shape (M, Q)."""
    columns, used = _columns_of(model.column, entries, factors)
    _clear(logits)
    add_columns(model.tables, columns, used, logits, parallel)


@register_jitable
def refresh(model: Model, node: Node, point: Point, parallel: bool) -> None:
    """Recompute the logits and the linear part of a point from its vertices."""
    entries, factors, linear = _entries_of(node.linear, point.vertices, point.shares, point.counts[VERTICES])
    combine(model, entries, factors, point.logits, parallel)
    point.numbers[LINEAR] = linear


def place(
    model: Model,
    node: Node,
    point: Point,
    vertices: NDArray[np.int64],
    shares: NDArray[np.float64],
    temperature: float,
    parallel: bool,
) -> bool:
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
    inside = node.allowed[vertices].all(axis=1)
    if node.n_forced:
        oracle, arcs = model.oracle, vertices[:, :-1]
        inside &= node.forced[oracle.tail[arcs], oracle.head[arcs]].sum(axis=1) == node.n_forced
    n = int(inside.sum())
    if n:
        point.vertices[:n] = vertices[inside]
        point.shares[:n] = shares[inside] / shares[inside].sum()
    else:
        value, _, _ = heaviest_structure(
            model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, point.vertices[0]
        )
        if value == -np.inf:
            return False
        point.shares[0] = 1.0
        n = 1
    point.counts[:] = 0
    point.counts[VERTICES] = n
    point.numbers[TEMPERATURE] = temperature
    point.numbers[BOUND] = np.inf
    point.numbers[RELAXED] = -np.inf
    point.numbers[MOVED] = 0.5
    point.numbers[HALVES] = 0.0
    refresh(model, node, point, parallel)
    return True


@kernel
def rounding(model, duals):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return what rounding can take from the bound by some dual weights."""
    weight = 0.0
    for a in range(duals.size[0]):
        weight += duals.value[duals.first[a + 1] - 1]
    return model.slack + model.per_weight * weight


def near_the_cap(model: Model, logits: NDArray[np.float64], width: float) -> NDArray[np.bool_]:
    """Return which samples have a margin of less than gamma + `width`, bool array, shape (M,)."""
    true = model.tables.true
    every = np.arange(len(logits))
    margins = logits[every, true, None] - logits
    margins[every, true] = np.inf
    inside: NDArray[np.bool_] = margins.min(axis=1) < model.softening.cap + width
    return inside


def on_samples(model: Model, inside: NDArray[np.bool_]) -> Model:
    """Return the model on some samples.

    All others count with gamma, the most that they can add: any bound of the smaller model is one of the model, and
    the same one as long as their dual weights would lie on gamma alone.
    """
    tables = model.tables
    few = tables._replace(
        codes=np.ascontiguousarray(tables.codes[:, inside]),
        true=tables.true[inside],
        weights=tables.weights[inside],
    )
    offset = model.softening.cap * float(tables.weights[~inside].sum())
    return model._replace(tables=few, offset=offset)


def evaluate(model: Model, node: Node, point: Point, parallel: bool) -> None:
    """Go to the point that gave the best bound, and bound the node there anew by the whole model."""
    n = int(point.counts[BEST_VERTICES])
    if n:
        point.vertices[:n] = point.best_vertices[:n]
        point.shares[:n] = point.best_shares[:n]
        point.counts[VERTICES] = n
    refresh(model, node, point, parallel)
    temperature = float(point.numbers[BEST_TEMPERATURE])
    _, constant = weigh(model.tables, model.softening, point.logits, temperature, point.duals)
    point.gradient[:] = node.linear
    add_gradient(model.tables, point.duals, node.allowed, point.gradient, parallel)
    choice = np.empty(point.vertices.shape[1], dtype=np.int64)
    _, most, _ = heaviest_structure(
        model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, choice
    )
    point.numbers[CONSTANT] = constant + node.constant + rounding(model, point.duals)
    point.numbers[BOUND] = point.numbers[CONSTANT] + most


def score_of(model: Model, choice: NDArray[np.int64], logits: NDArray[np.float64], parallel: bool) -> float:
    """Return the score of one choice of entries, by the tables; `logits`, shape (M, Q), is overwritten."""
    combine(model, choice, np.ones(len(choice)), logits, parallel)
    samples = total_score(model.tables, model.softening, logits, False)
    return float(samples + model.linear[choice].sum())
