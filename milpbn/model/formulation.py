"""The MILP of problem (19) in P12, and the way between its columns and structures."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from milpbn.errors import InputError, SolverError
from milpbn.model.milp import Milp
from milpbn.model.rows import RowBlock, competing_rows, margin_block, stack
from milpbn.model.tangents import tangent_block
from milpbn.network.structure import Structure, topological_order
from milpbn.scores.candidates import Candidates
from milpbn.scores.problem import Problem

#: How acyclicity is enforced: P12's order rows (16), or cluster rows (7) that are added as they are violated.
ACYCLICITY = ("order", "cluster")


@dataclass(frozen=True)
class Formulation:
    """A MILP together with what its columns mean.

    Columns are, in this order: ``p_i_k`` (eta, binary, one per candidate parent set), ``tau_m`` (one per
    sample; one in all for the hard margin), ``k`` and ``t`` (AICc only: number of parameters, correction)
    and ``o_i`` (order variables, only with ``acyclicity='order'``).

    Attributes
    ----------
    problem : Problem
        What was formulated.
    milp : Milp
        The program, a maximisation.
    acyclicity : {"order", "cluster"}
        With ``cluster`` the program is a relaxation until the violated rows have been added.
    tau, curve, order : slice
        Places of the columns behind eta, empty where a kind does not occur.
    """

    problem: Problem
    milp: Milp
    acyclicity: str
    tau: slice
    curve: slice
    order: slice

    @property
    def n_sets(self) -> int:
        """Number P of eta columns; they come first."""
        return self.problem.candidates.n_sets

    @property
    def tangents(self) -> bool:
        """Whether the samples' rows are tangents, as for the conditional log-likelihood: again a relaxation."""
        return self.problem.margins is not None and self.problem.margins.likelihood

    def vector(self, structure: Structure) -> NDArray[np.float64]:
        """Return the full column vector of a structure: eta, tau, curve and order variables.

        Solvers get complete starts only: completing a partial one costs a sub-MIP and spoils some solvers'
        bounds.

        Raises
        ------
        InputError
            If the structure is outside the candidate sets.
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
        return x

    def choice(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the chosen entry of eta per variable of an integral point, shape (V,), cyclic or not.

        Raises
        ------
        SolverError
            If some variable has not exactly one chosen set within a tolerance of 0.1.
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
        """Return the formulation with one more row (7) for each cluster of variables."""
        return self.with_rows([cluster_block(self.problem.candidates, s) for s in clusters])

    def with_rows(self, blocks: list[RowBlock]) -> Formulation:
        """Return the formulation with more rows."""
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


def cluster_entries(candidates: Candidates, cluster: frozenset[int]) -> NDArray[np.int64]:
    """Return the entries of eta in the row (7) of a cluster: sets of its members that do not meet it."""
    return np.array(
        [
            int(candidates.offsets[i]) + k
            for i in sorted(cluster)
            for k, s in enumerate(candidates.sets[i])
            if cluster.isdisjoint(s)
        ],
        dtype=np.int64,
    )


def cluster_block(candidates: Candidates, cluster: frozenset[int]) -> RowBlock:
    """Row (7): in every cluster at least one variable's chosen parent set does not meet the cluster."""
    entries = cluster_entries(candidates, cluster)
    name = "c_" + "_".join(str(i) for i in sorted(cluster))
    if len(name) > 80:
        name = "c_" + hashlib.sha256(name.encode()).hexdigest()[:24]
    return RowBlock.from_coordinates(
        np.zeros(len(entries)), entries, np.ones(len(entries)), [1.0], [np.inf], [name]
    )


def _set_block(candidates: Candidates) -> RowBlock:
    """Rows (5): exactly one parent set per variable."""
    V, P = candidates.n_variables, candidates.n_sets
    names = [f"s_{i}" for i in range(V)]
    return RowBlock.from_coordinates(
        candidates.variable, np.arange(P), np.ones(P), np.ones(V), np.ones(V), names
    )


def _order_block(candidates: Candidates, order: int) -> RowBlock:
    """Rows (16) over all V^2 - V ordered pairs, with Delta = V: o_j - o_i - 2 V a_ij >= 1 - 2 V."""
    V = candidates.n_variables
    parent, child, entry = candidates.arcs
    i, j = np.divmod(np.arange(V * V), V)
    pairs = np.flatnonzero(i != j)
    i, j = i[pairs], j[pairs]
    row_of = np.full(V * V, -1)
    row_of[pairs] = np.arange(len(pairs))
    r = np.arange(len(pairs))
    return RowBlock.from_coordinates(
        np.concatenate([row_of[parent * V + child], r, r]),
        np.concatenate([entry, order + j, order + i]),
        np.concatenate([np.full(len(entry), -2.0 * V), np.ones(len(r)), -np.ones(len(r))]),
        np.full(len(r), 1.0 - 2.0 * V),
        np.full(len(r), np.inf),
        [f"a_{a}_{b}" for a, b in zip(i.tolist(), j.tolist(), strict=True)],
    )


def _children_block(problem: Problem) -> RowBlock:
    """One row per child limit: the number of children is at most the limit."""
    parent, _, entry = problem.candidates.arcs
    limited = sorted(problem.rules.max_children)
    at = {j: k for k, j in enumerate(limited)}
    keep = np.isin(parent, limited)
    rows = np.array([at[int(j)] for j in parent[keep]], dtype=np.int64)
    upper = np.array([float(problem.rules.max_children[j]) for j in limited])
    names = [f"d_{j}" for j in limited]
    return RowBlock.from_coordinates(
        rows, entry[keep], np.ones(len(rows)), np.full(len(limited), -np.inf), upper, names
    )


def _curve_block(problem: Problem, curve: int) -> RowBlock:
    """AICc: k counts the parameters, and t lies above the chord between every two neighbouring integers.

    The correction is convex, so that the chords' maximum equals it at every integer k.
    """
    assert problem.curve is not None
    low, high = problem.curve.range(problem.candidates)
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

    The conditional log-likelihood is not piecewise linear: its samples get one tangent row each to begin with
    (`milpbn.model.tangents`), at equal shares of all candidate sets.

    Parameters
    ----------
    problem : Problem
        Coefficients and candidate sets.
    acyclicity : {"order", "cluster"}
        ``order`` writes the V^2 - V rows (16) over all variables, the class included; ``cluster`` writes only
        the rows (7) of all pairs of variables that can be each other's parents, the rest is separated.
    reduce : bool
        Leave out the samples' rows that no structure needs (`competing_rows`).

    Returns
    -------
    Formulation

    Raises
    ------
    InputError
        If `acyclicity` is none of these.
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
    if margins is not None and margins.likelihood:
        shares = 1.0 / np.repeat(np.diff(candidates.offsets), np.diff(candidates.offsets))
        blocks.append(tangent_block(margins, P, shares, np.arange(n_tau), 0))
    elif margins is not None:
        blocks.append(margin_block(margins, P, competing_rows(margins, candidates) if reduce else None))
    blocks.append(_set_block(candidates))
    if acyclicity == "order":
        blocks.append(_order_block(candidates, order.start))
    if problem.rules.max_children:
        blocks.append(_children_block(problem))
    if problem.curve is not None:
        blocks.append(_curve_block(problem, curve.start))
    rows = stack(blocks, order.stop)

    c = np.zeros(order.stop)
    c[:P] = problem.linear
    lower, upper = np.zeros(order.stop), np.ones(order.stop)
    names = [f"p_{i}_{k}" for i, sets in enumerate(candidates.sets) for k in range(len(sets))]
    if margins is not None:
        c[tau] = 1.0 if margins.smallest else margins.weights
        lower[tau] = -np.inf
        upper[tau] = margins.softening.cap
        names += [f"tau_{m}" for m in range(n_tau)]
    if problem.curve is not None:
        low, high = problem.curve.range(candidates)
        c[curve] = 0.0, -1.0
        lower[curve] = low, -np.inf
        upper[curve] = high, np.inf
        names += ["k", "t"]
    if n_order:
        upper[order] = float(V)
        names += [f"o_{i}" for i in range(V)]
    integer = np.zeros(order.stop, dtype=bool)
    integer[:P] = True
    milp = Milp(c, 0.0, rows.matrix, rows.lower, rows.upper, lower, upper, integer, names, rows.names)
    result = Formulation(problem, milp, acyclicity, tau, curve, order if n_order else slice(0, 0))
    return result if acyclicity == "order" else result.with_clusters(_pairs(candidates))


def _pairs(candidates: Candidates) -> list[frozenset[int]]:
    """Return the pairs of variables that can be each other's parents: the cycles of length two."""
    parent, child, _ = candidates.arcs
    arcs = set(zip(parent.tolist(), child.tolist(), strict=True))
    return [frozenset((j, i)) for j, i in sorted(arcs) if j < i and (i, j) in arcs]
