"""Points of the hull of all structures, which Frank-Wolfe steps move: convex combinations of structures, and bounds.

The functions of a step (`combine`, `refresh`, and more in `newton` and `frank_wolfe`) are used in two ways (see
`also_kernel`): compiled into steps on one thread, and as Python functions that call kernels in several threads when the
products are large.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.dual.pairs import Pairs, add_rows, pairs_of
from milpbn.engine.relaxation.oracle import Oracle, heaviest_structure
from milpbn.engine.tuning import TUNING
from milpbn.problem.duals import Duals, add_gradient, empty_duals, weigh
from milpbn.problem.family_tables import Tables
from milpbn.problem.products import Softening, add_columns, total_score
from milpbn.problem.rounding import BoundErrors, bound_slack, drift_slack
from milpbn.util.compiled import also_kernel, kernel
from milpbn.util.records import Record

#: Largest number of vertices of a point.
MOST_VERTICES = TUNING.steps.most_vertices


class Model(NamedTuple):
    """The problem as the kernels take it."""

    tables: Tables
    #: Gamma, and whether the score is the conditional log-likelihood.
    softening: Softening
    oracle: Oracle
    #: Terms linear in eta, shape (P,).
    linear: NDArray[np.float64]
    #: Bounds on the rounding errors of dual bounds, the verifier's included.
    errors: BoundErrors
    #: Bound on the rounding error of a structure's score.
    score_error: float
    #: The part of every score that samples left out of the tables add, gamma times their weight.
    offset: float
    #: Column of the tables of each parent set, or row of the matrix of pairs; -1 for one whose coefficients are 0.
    #: Shape (P,).
    column: NDArray[np.int64]
    #: What steps use in place of the tables, if it has samples; logits are then their log-margins, shape (1, N).
    pairs: Pairs


class Subproblem(NamedTuple):
    """A node as the kernels take it, with its multipliers (`inequalities.subproblem_of`)."""

    #: Parent sets that may be chosen, shape (P,).
    allowed: NDArray[np.bool_]
    #: Forced edges, by the nodes of a branching; symmetric (see `heaviest_structure`). Their number is `n_forced`.
    #: Shape (n, n).
    forced: NDArray[np.int64]
    n_forced: int
    #: Terms linear in eta: those of the score and of the multipliers, shape (P,).
    linear: NDArray[np.float64]
    #: The constant terms of the multipliers, and a bound on the rounding errors of all their terms.
    constant: float


class State(Record):
    """The state of the steps at a point."""

    #: Temperature of the next step, in nats.
    temperature: float
    bound: float
    #: The part of the best bound that does not depend on the structure.
    constant: float
    #: The best score at a point so far, which may be between structures.
    relaxed: float
    #: The temperature of the dual weights that gave the best bound.
    best_temperature: float
    #: The linear part of the score at the point.
    linear: float
    #: Length of the last Newton step, in shares of the way to the model's maximum; 0 after a pairwise step.
    moved: float
    #: The children of a node start at this temperature or at the last one, whichever is higher; 0 until it is set.
    child_temperature: float
    #: Numbers of vertices of the point, and of the point that gave the best bound.
    vertices: int
    best_vertices: int
    steps: int
    #: Whether the oracle has answered with a structure.
    found: bool


class Point(NamedTuple):
    """A convex combination of structures, and the best bound found by the steps to it."""

    #: The index of one parent set per variable, and the vertex's share of the point, shapes (room, V) and (room,).
    vertices: NDArray[np.int64]
    shares: NDArray[np.float64]
    #: Joint log-probabilities at the point, shape (M, Q).
    logits: NDArray[np.float64]
    state: State
    #: Gradient of the best bound, which is ``state.constant + max gradient @ eta``, shape (P,).
    gradient: NDArray[np.float64]
    #: The point whose dual weights, at ``state.best_temperature``, gave the best bound.
    best_vertices: NDArray[np.int64]
    best_shares: NDArray[np.float64]
    #: The oracle's last answer that is a structure; ``state.found`` says whether there is one. Shape (V,).
    found: NDArray[np.int64]
    #: Working memory: the change of the logits per unit step, shape (M, Q).
    direction: NDArray[np.float64]
    duals: Duals


def empty_point(model: Model) -> Point:
    """Return the arrays of a point, not initialised; `place` fills them."""
    V = len(model.oracle.offsets) - 1
    P = len(model.linear)
    M, Q = model.tables.codes.shape[1], model.tables.values.shape[1]
    return Point(
        np.empty((MOST_VERTICES, V), dtype=np.int64),
        np.empty(MOST_VERTICES),
        np.empty((M, Q)),
        State.zeros(),
        np.empty(P),
        np.empty((MOST_VERTICES, V), dtype=np.int64),
        np.empty(MOST_VERTICES),
        np.empty(V, dtype=np.int64),
        np.empty((M, Q)),
        empty_duals(model.tables),
    )


@kernel(linked=True)
def copy(out, values):  # type: ignore[no-untyped-def]  # numba infers the types
    """Copy a vector. One loop in one kernel compiles in a tenth of the time of slice assignments in many."""
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
    """Return columns and factors of the parent sets that have coefficients and a factor other than 0."""
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
    """Return the parent sets of the first n vertices, their values of eta, and linear @ eta."""
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


@also_kernel
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
    if len(model.pairs.weights):
        add_rows(model.pairs, columns, used, logits)
    else:
        add_columns(model.tables, columns, used, logits, parallel)


@also_kernel
def refresh(model: Model, node: Subproblem, point: Point, parallel: bool) -> None:
    """Recompute the logits and the linear part of a point from its vertices."""
    entries, factors, linear = _entries_of(node.linear, point.vertices, point.shares, point.state.vertices)
    combine(model, entries, factors, point.logits, parallel)
    point.state.linear = linear


def place(
    model: Model,
    node: Subproblem,
    point: Point,
    vertices: NDArray[np.int64],
    shares: NDArray[np.float64],
    temperature: float,
    parallel: bool,
) -> bool:
    """Set the point to the part of a convex combination that lies in a node; return False if it has no structure.

    The combination has vertices and shares, shapes (k, V) and (k,). Those outside the node are left out, and the other
    shares are scaled to sum to 1. If none is inside, the point becomes the oracle's answer to `point.gradient`.
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
    state = point.state
    state.vertices, state.best_vertices = n, 0
    state.steps, state.found = 0, False
    state.temperature = temperature
    state.bound, state.relaxed = np.inf, -np.inf
    state.moved = 0.5
    state.child_temperature = 0.0
    refresh(model, node, point, parallel)
    return True


@kernel
def rounding(model, duals, constant, soft, temperature):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the bound on the rounding error of a dual bound; `constant` and `soft` are the results of `weigh`."""
    weight = 0.0
    if len(model.pairs.weights):
        for t in range(duals.size[1]):
            weight += duals.value[t]
    else:
        for a in range(duals.size[0]):
            weight += duals.value[duals.first[a + 1] - 1]
    slack = bound_slack(model.errors, constant, weight, duals.size[1])
    return slack + drift_slack(model.errors, soft, temperature)


def on_samples(model: Model, inside: NDArray[np.bool_]) -> Model:
    """Return the model restricted to some samples.

    All other samples count gamma, the most that they can add. So any bound of the smaller model is a bound of the
    model. The two bounds are equal if all dual weight of the other samples is on gamma.
    """
    tables = model.tables
    samples = np.flatnonzero(inside)
    restricted = tables._replace(
        codes=tables.codes.take(samples, axis=1),
        true=tables.true.take(samples),
        weights=tables.weights.take(samples),
    )
    offset = model.softening.cap * float(tables.weights[~inside].sum())
    return model._replace(tables=restricted, offset=offset)


def on_pairs(
    model: Model,
    inside: NDArray[np.bool_],
    chosen: NDArray[np.bool_],
    logits: NDArray[np.float64],
    room: NDArray[np.float32],
) -> tuple[Model, NDArray[np.float64]]:
    """Return the model restricted to some pairs of a sample and a class and to some parent sets, and its logits.

    The pairs are `inside`, bool of shape (M, Q), and the parent sets are `chosen`, bool of shape (P,); `logits`, shape
    (M, Q), are those of the point in the whole model. Dual weights of these pairs alone are dual weights of the model,
    so every bound is one of the model over these parent sets. If there are no pairs, or their matrix does not fit into
    `room`, the steps use the tables, and all classes.
    """
    Q = logits.shape[1]
    places = np.flatnonzero(inside)
    sample = places // Q
    entries = np.flatnonzero(chosen & (model.column >= 0))
    samples = np.zeros(len(logits), dtype=np.bool_)
    samples[sample] = True
    if not len(sample) or len(entries) * len(sample) > len(room):
        return on_samples(model, samples), logits[samples]
    pairs = pairs_of(model.tables, sample, places - Q * sample, entries, room)
    column = np.full(len(chosen), -1)
    column[pairs.entries] = np.arange(len(pairs.entries))
    margins = logits[sample, model.tables.true.take(sample)] - logits.take(places)
    offset = model.softening.cap * float(model.tables.weights[~samples].sum())
    return model._replace(column=column, pairs=pairs, offset=offset), margins[None, :]


def evaluate(model: Model, node: Subproblem, point: Point, parallel: bool) -> None:
    """Move to the point that gave the best bound, and compute the node's bound there from the whole model."""
    n = point.state.best_vertices
    if n:
        copy_vertices(point.best_vertices, point.best_shares, n, point.vertices, point.shares)
        point.state.vertices = n
    refresh(model, node, point, parallel)
    temperature = point.state.best_temperature
    _, constant, soft = weigh(model.tables, model.softening, point.logits, temperature, point.duals)
    copy(point.gradient, node.linear)
    add_gradient(model.tables, point.duals, node.allowed, point.gradient, parallel)
    choice = np.empty(point.vertices.shape[1], dtype=np.int64)
    _, most, _ = heaviest_structure(
        model.oracle, point.gradient, node.allowed, node.forced, node.n_forced, choice
    )
    slack = rounding(model, point.duals, constant, soft, temperature)
    point.state.constant = constant + node.constant + slack
    point.state.bound = point.state.constant + most


#: `evaluate` compiled as one kernel, for one thread.
evaluate_compiled = kernel(evaluate)


def score_of(model: Model, choice: NDArray[np.int64], logits: NDArray[np.float64], parallel: bool) -> float:
    """Return the score of one structure, computed from the tables; `logits`, shape (M, Q), is overwritten."""
    combine(model, choice, np.ones(len(choice)), logits, parallel)
    samples = total_score(model.tables, model.softening, logits, False)
    return float(samples + model.linear[choice].sum())
