"""Points of the hull of all structures, as convex combinations, and their bounds: what Frank-Wolfe steps move."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
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
    column : int64 array, shape (P,)
        Column of the tables of each entry, -1 for one whose coefficients are 0.
    """

    tables: Tables
    softening: Softening
    oracle: Oracle
    linear: NDArray[np.float64]
    slack: float
    offset: float
    column: NDArray[np.int64]


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


def combine(
    model: Model,
    entries: NDArray[np.int64],
    factors: NDArray[np.float64],
    logits: NDArray[np.float64],
    parallel: bool,
) -> None:
    """Write sum_n factors[n] table(entries[n]) to `logits`, shape (M, Q)."""
    columns = model.column[entries]
    used = (columns >= 0) & (factors != 0.0)
    logits.fill(0.0)
    add_columns(model.tables, columns[used], factors[used], logits, parallel)


def refresh(model: Model, point: Point, parallel: bool) -> None:
    """Recompute the logits and the linear part of a point from its vertices."""
    n = int(point.counts[VERTICES])
    vertices = point.vertices[:n]
    shares = np.repeat(point.shares[:n], vertices.shape[1])
    eta = np.bincount(vertices.ravel(), weights=shares, minlength=len(model.linear))
    entries = np.flatnonzero(eta)
    combine(model, entries, eta[entries], point.logits, parallel)
    point.numbers[LINEAR] = model.linear @ eta


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
    point.numbers[MOVED] = 1.0
    refresh(model, point, parallel)
    return True


def near_the_cap(
    model: Model, logits: NDArray[np.float64], width: float
) -> tuple[Model, NDArray[np.float64]]:
    """Return the model and the logits of the samples whose margin is less than gamma + `width`.

    All other samples count with gamma, the most that they can add: any bound of the smaller model is one of the
    model, and the same one as long as their dual weights would lie on gamma alone.
    """
    tables = model.tables
    every = np.arange(len(logits))
    margins = logits[every, tables.true, None] - logits
    margins[every, tables.true] = np.inf
    inside = margins.min(axis=1) < model.softening.cap + width
    few = tables._replace(
        codes=np.ascontiguousarray(tables.codes[:, inside]),
        true=tables.true[inside],
        weights=tables.weights[inside],
    )
    offset = model.softening.cap * float(tables.weights[~inside].sum())
    return model._replace(tables=few, offset=offset), logits[inside]


def evaluate(model: Model, node: Node, point: Point, parallel: bool) -> None:
    """Go to the point that gave the best bound, and bound the node there anew by the whole model."""
    n = int(point.counts[BEST_VERTICES])
    if n:
        point.vertices[:n] = point.best_vertices[:n]
        point.shares[:n] = point.best_shares[:n]
        point.counts[VERTICES] = n
    refresh(model, point, parallel)
    temperature = float(point.numbers[BEST_TEMPERATURE])
    _, constant = weigh(model.tables, model.softening, point.logits, temperature, point.duals)
    point.gradient[:] = model.linear
    add_gradient(model.tables, point.duals, node.allowed, point.gradient, parallel)
    choice = np.empty(point.vertices.shape[1], dtype=np.int64)
    _, most, _ = heaviest_structure(
        model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, choice
    )
    point.numbers[CONSTANT] = constant + model.slack
    point.numbers[BOUND] = point.numbers[CONSTANT] + most


def score_of(model: Model, choice: NDArray[np.int64], logits: NDArray[np.float64], parallel: bool) -> float:
    """Return the score of one choice of entries, by the tables; `logits`, shape (M, Q), is overwritten."""
    combine(model, choice, np.ones(len(choice)), logits, parallel)
    samples = total_score(model.tables, model.softening, logits, False)
    return float(samples + model.linear[choice].sum())
