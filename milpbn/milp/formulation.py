"""The MILP of problem (19) in Peharz & Pernkopf (2012, P12), and the conversion between its columns and structures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from milpbn.errors import InputError, SolverError
from milpbn.milp.milp import Milp
from milpbn.milp.path_rows import PathRows
from milpbn.milp.sample_rows import competing_rows, margin_block, margin_span, tangent_block
from milpbn.network.structure import Structure, topological_order
from milpbn.problem.candidates import Candidates
from milpbn.problem.problem import Problem
from milpbn.problem.rows import (
    RowBlock,
    children_block,
    cluster_block,
    features_block,
    order_block,
    set_block,
    stack,
)
from milpbn.problem.scores.base import Shape

#: How acyclicity is enforced: by P12's order rows (16), or by cluster rows (7) that are added when they are violated.
ACYCLICITY = ("order", "cluster")


@dataclass(frozen=True)
class Formulation:
    """A MILP, a maximisation, together with the meaning of its columns.

    The columns are, in this order: ``p_i_k`` (eta, binary, one per candidate parent set), ``tau_m`` (one per sample; a
    single one for the hard margin), ``k`` and ``t`` (AICc only: number of parameters, correction), ``o_i`` (order
    variables, only with ``acyclicity='order'``), ``u_j`` (whether predictions depend on feature j, only with a limit of
    such features) and ``r_n`` (what can be reached, only with constraints on paths). `tau`, `curve`, `order` and
    `features` are the columns of each kind after eta, an empty slice if there is none. With the
    acyclicity "cluster" the program is a relaxation until all violated rows are added.
    """

    problem: Problem
    milp: Milp
    acyclicity: str
    tau: slice
    curve: slice
    order: slice
    features: slice
    paths: PathRows | None = None

    @property
    def n_sets(self) -> int:
        """Number P of eta columns, which are the first columns."""
        return self.problem.candidates.n_sets

    @property
    def tangents(self) -> bool:
        """Whether the samples' rows are tangents of a concave score, which makes the program a relaxation."""
        return self.problem.score.kind.shape is Shape.CONCAVE

    @cached_property
    def span(self) -> float:
        """By how much the terms that rows define can differ between structures, in nats: margins and AICc's correction.

        A solver takes its rows within a tolerance, but adds up the terms of parent sets exactly but for rounding.
        """
        problem, total = self.problem, 0.0
        if problem.margins is not None:
            total += margin_span(problem.margins, problem.candidates)
        if problem.curve is not None:
            low, high = problem.curve.range(problem.candidates.offsets)
            total += problem.curve.correction(high) - problem.curve.correction(low)
        return total

    def vector(self, structure: Structure) -> NDArray[np.float64]:
        """Return the full column vector of a structure: eta, tau, curve and order variables.

        Solvers are given complete starts only. To complete a partial start, a solver runs a sub-MIP, and some solvers
        then report the bounds of the sub-MIP as bounds of the program. InputError if the structure is outside the
        candidate sets.
        """
        choice = self.problem.choice(structure)
        if choice is None:
            raise InputError("The structure is outside the candidate parent sets of the model.")
        x = np.zeros(self.milp.n_columns)
        x[choice] = 1.0
        eta = x[: self.n_sets]
        if self.problem.margins is not None:
            parts = self.problem.margins.parts(eta)
            x[self.tau] = parts.min() if self.problem.margins.smallest else parts
        if self.problem.curve is not None:
            k = float(self.problem.curve.parameters @ eta)
            x[self.curve] = k, self.problem.curve.correction(k)
        if self.order != slice(0, 0):
            rank = np.empty(len(structure.names))
            rank[structure.topological_order()] = np.arange(len(structure.names))
            x[self.order] = rank
        if self.features != slice(0, 0):
            x[self.features] = np.isin(np.arange(len(structure.names) - 1), [*structure.markov_blanket])
        if self.paths is not None:
            x[self.paths.first :] = self.paths.values(structure.parents)
        return x

    def choice(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the index of each variable's parent set at an integral point, shape (V,); the graph may be cyclic.

        SolverError if the point does not choose exactly one parent set for every variable, within a tolerance of 0.1.
        """
        eta = x[: self.n_sets]
        chosen = self.problem.candidates.heaviest(eta)
        residual = eta.copy()
        residual[chosen] -= 1.0
        if np.abs(residual).max() > 0.1:
            raise SolverError("The solver returned a point that does not choose one parent set per variable.")
        return chosen

    def structure(self, x: NDArray[np.float64]) -> Structure | None:
        """Return the structure of an integral point, or None if its graph has a cycle."""
        chosen = self.choice(x)
        parents = [self.problem.candidates.flat[p] for p in chosen]
        if topological_order(parents) is None:
            return None
        return self.problem.candidates.structure(chosen)

    def with_clusters(self, clusters: list[frozenset[int]]) -> Formulation:
        """Return the formulation with one additional row (7) for each cluster of variables."""
        return self.with_rows([cluster_block(self.problem.candidates, s) for s in clusters])

    def with_rows(self, blocks: list[RowBlock]) -> Formulation:
        """Return the formulation with additional rows."""
        if not blocks:
            return self
        added = stack(blocks, self.milp.n_columns)
        milp = replace(
            self.milp,
            A=sp.vstack([self.milp.A, added.matrix], format="csr"),
            row_lower=np.concatenate([self.milp.row_lower, added.lower]),
            row_upper=np.concatenate([self.milp.row_upper, added.upper]),
            row_names=self.milp.row_names + added.names,
        )
        return replace(self, milp=milp)


def _curve_block(problem: Problem, curve: int) -> RowBlock:
    """Return the rows of AICc: k equals the number of parameters, and t is at least the correction at k.

    The correction is convex. The largest of its chords between neighbouring integers therefore equals it at every
    integer k, and there is one row per chord.
    """
    assert problem.curve is not None
    low, high = problem.curve.range(problem.candidates.offsets)
    P = problem.candidates.n_sets
    k = np.arange(low, high + 1, dtype=np.float64)
    values = np.array([problem.curve.correction(v) for v in k])
    if len(k) == 1:
        slopes, intercepts = np.zeros(1), values
    else:
        slopes = np.diff(values)
        intercepts = values[:-1] - slopes * k[:-1]
    n = len(slopes)
    rows = np.arange(1, n + 1)
    return RowBlock.from_coordinates(
        np.concatenate([np.zeros(P + 1), rows, rows]),
        np.concatenate([np.arange(P), [curve], np.full(n, curve), np.full(n, curve + 1)]),
        np.concatenate([problem.curve.parameters, [-1.0], -slopes, np.ones(n)]),
        np.concatenate([[0.0], intercepts]),
        np.concatenate([[0.0], np.full(n, np.inf)]),
        ["k", *(f"t_{r}" for r in rows)],
    )


def formulate(problem: Problem, acyclicity: str = "order", *, reduce: bool = False) -> Formulation:
    """Formulate a problem as the MILP (19) of P12.

    The conditional log-likelihood is not piecewise linear. Each of its samples begins with one tangent row
    (`milpbn.milp.sample_rows`), at the point that gives all candidate sets of a variable equal shares.

    The acyclicity "order" writes the V^2 - V rows (16) over all variables, the class included. "cluster" writes the
    rows (7) of those pairs of variables that can be each other's parents; the other rows (7) are added by separation.
    `reduce` leaves out the samples' rows that are redundant for every structure (`competing_rows`).
    InputError for another acyclicity.
    """
    if acyclicity not in ACYCLICITY:
        raise InputError(f"There is no acyclicity {acyclicity!r}; choose one of {', '.join(ACYCLICITY)}.")
    candidates, margins = problem.candidates, problem.margins
    P, V = candidates.n_sets, candidates.n_variables
    n_tau = 0 if margins is None else (1 if margins.smallest else margins.n_samples)
    n_curve = 0 if problem.curve is None else 2
    n_order = V if acyclicity == "order" else 0
    tau, curve = slice(P, P + n_tau), slice(P + n_tau, P + n_tau + n_curve)
    order = slice(curve.stop, curve.stop + n_order)

    blocks = []
    if margins is not None and problem.score.kind.shape is Shape.CONCAVE:
        shares = 1.0 / np.repeat(np.diff(candidates.offsets), np.diff(candidates.offsets))
        blocks.append(tangent_block(margins, P, shares, np.arange(n_tau), 0))
    elif margins is not None:
        blocks.append(margin_block(margins, P, competing_rows(margins, candidates) if reduce else None))
    blocks.append(set_block(candidates))
    if acyclicity == "order":
        blocks.append(order_block(candidates, order.start))
    if problem.rules.max_children:
        blocks.append(children_block(candidates, problem.rules.max_children))
    features = slice(order.stop, order.stop)
    if problem.rules.max_features is not None:
        features = slice(order.stop, order.stop + V - 1)
        blocks.append(features_block(candidates, problem.rules.max_features, features.start))
    if problem.curve is not None:
        blocks.append(_curve_block(problem, curve.start))
    paths = PathRows(candidates, problem.rules, features.stop) if problem.rules.on_paths else None
    blocks += [] if paths is None else [paths.block()]
    n_columns = features.stop + (0 if paths is None else paths.n_columns)
    rows = stack(blocks, n_columns)

    c = np.zeros(n_columns)
    c[:P] = problem.linear
    lower, upper = np.zeros(n_columns), np.ones(n_columns)
    names = [f"p_{i}_{k}" for i, sets in enumerate(candidates.sets) for k in range(len(sets))]
    if margins is not None:
        c[tau] = 1.0 if margins.smallest else margins.weights
        lower[tau] = -np.inf
        upper[tau] = margins.softening.cap
        names += [f"tau_{m}" for m in range(n_tau)]
    if problem.curve is not None:
        low, high = problem.curve.range(candidates.offsets)
        c[curve] = 0.0, -1.0
        lower[curve] = low, -np.inf
        upper[curve] = high, np.inf
        names += ["k", "t"]
    if n_order:
        upper[order] = float(V)
        names += [f"o_{i}" for i in range(V)]
    names += [f"u_{j}" for j in range(features.stop - features.start)]
    names += [f"r_{n}" for n in range(n_columns - features.stop)]
    integer = np.zeros(n_columns, dtype=bool)
    integer[:P] = True
    milp = Milp(c, 0.0, rows.matrix, rows.lower, rows.upper, lower, upper, integer, names, rows.names)
    order, features = (part if part.stop > part.start else slice(0, 0) for part in (order, features))
    result = Formulation(problem, milp, acyclicity, tau, curve, order, features, paths)
    return result if acyclicity == "order" else result.with_clusters(_pairs(candidates))


def _pairs(candidates: Candidates) -> list[frozenset[int]]:
    """Return the pairs of variables that can be each other's parents: the cycles of length two."""
    parent, child, _ = candidates.arcs
    arcs = set(zip(parent.tolist(), child.tolist(), strict=True))
    return [frozenset((j, i)) for j, i in sorted(arcs) if j < i and (i, j) in arcs]
