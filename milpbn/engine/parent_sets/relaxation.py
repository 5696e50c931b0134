"""The linear program over some parent sets and rows, solved by HiGHS, and the bound that its dual values give.

Columns and rows are added and removed as the search goes on. No bound rests on the solver's status: the bound is that
of its dual values as multipliers (`milpbn.engine.parent_sets.rows.lagrangian`), over all allowed parent sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.multiplier_proof import MultiplierProof, ProofStep
from milpbn.data.sums import EPS
from milpbn.engine.parent_sets.clusters import Support, support_of
from milpbn.engine.parent_sets.rows import PackedRows, Row, entries, lagrangian, matrix_of, pack
from milpbn.engine.parent_sets.sets import ParentSets, bits_of

#: Rows are packed anew if so many terms of blocks are kept.
MOST_TERMS = 5_000_000
#: A multiplier up to this counts as 0.
NO_WEIGHT = 1e-9
#: HiGHS's tolerance of reduced costs, in nats; the bound can be below the optimum by as much for each variable.
DUAL_TOLERANCE = 1e-9


class Priced(NamedTuple):
    """What multipliers say of the structures of some allowed parent sets."""

    #: A lower bound on their costs, in nats.
    bound: float
    #: The reduced costs of the parent sets, inf for others. Shape (P,).
    reduced: NDArray[np.float64]
    #: A lower bound on the costs of the structures with each parent set, in nats. Shape (P,).
    with_set: NDArray[np.float64]


class RestrictedProgram:
    """Minimise the cost of the parent sets in it, one per variable, under its rows.

    Parameters
    ----------
    sets : ParentSets
        The parent sets.

    Attributes
    ----------
    columns : int64 array, shape (K,)
        Parent sets of the columns.
    rows : list of Row
        The rows; `packed` has them as arrays.
    values, multipliers : float64 arrays, shapes (K,) and (R,)
        The last solution, and the dual values of the rows, at least 0; 0 for what was added since.
    artificial, objective : float
        The largest share of a variable without a parent set in the last solution, and its value.
    age : int64 array, shape (R,)
        How many solutions ago a row's multiplier was positive.
    """

    def __init__(self, sets: ParentSets) -> None:
        import highspy  # a process that has loaded it cannot load OR-Tools

        n = sets.n_variables
        self.sets, self._highs = sets, highspy
        self.solver = highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),
            ("solver", "simplex"),
        ):
            self.solver.setOptionValue(option, value)
        self.solver.setOptionValue("dual_feasibility_tolerance", DUAL_TOLERANCE)
        nothing = np.zeros(0, dtype=np.int32)
        self.solver.addRows(n, np.ones(n), np.ones(n), 0, np.zeros(n, dtype=np.int32), nothing, np.zeros(0))
        # One column a variable stands for no parent set, and costs more than any structure. So every linear program has
        # a solution, and its multipliers give a bound even where the allowed parent sets hold no structure.
        self.penalty = 1.0 + float(sets.costs[sets.offsets[1:] - 1].sum())
        each = np.arange(n, dtype=np.int32)
        self.solver.addCols(
            n, np.full(n, self.penalty), np.zeros(n), np.full(n, np.inf), n, each, each, np.ones(n)
        )
        self.columns = np.zeros(0, dtype=np.int64)
        self.place = np.full(sets.n_sets, -1, dtype=np.int64)
        self.rows: list[Row] = []
        self.present: set[Row] = set()
        self.packed: PackedRows = pack([], n)
        self._side = self.packed.masks.copy()
        self.age = np.zeros(0, dtype=np.int64)
        self.values, self.multipliers = np.zeros(0), np.zeros(0)
        self.artificial, self.objective = 0.0, 0.0
        self._upper = np.zeros(0)

    def add_columns(self, new: NDArray[np.int64]) -> None:
        """Add parent sets that are not there yet."""
        k, n = len(new), self.sets.n_variables
        if not k:
            return
        size = len(self.rows) * k + 1
        place, value, starts = np.empty(size, np.int32), np.empty(size), np.zeros(k, np.int32)
        count = entries(self.sets, new, self.packed, self._side, False, place, value, starts)
        # The row of the variable comes before the others.
        place = np.insert(place[:count] + n, starts, self.sets.child[new])
        value = np.insert(value[:count], starts, 1.0)
        starts += np.arange(k, dtype=np.int32)
        self.solver.addCols(
            k,
            self.sets.costs[new],
            np.zeros(k),
            np.full(k, np.inf),
            len(place),
            starts,
            place.astype(np.int32),
            value,
        )
        self.place[new] = len(self.columns) + np.arange(k)
        self.columns = np.concatenate([self.columns, new])
        self._upper = np.concatenate([self._upper, np.full(k, np.inf)])
        self.values = np.concatenate([self.values, np.zeros(k)])

    def add_rows(self, new: Iterable[Row]) -> int:
        """Add the rows that are not there yet; return their number."""
        rows = [row for row in dict.fromkeys(new) if row not in self.present]
        k = len(rows)
        if not k:
            return 0
        packed = pack(rows, self.sets.n_variables)
        places, values, starts, right, side = matrix_of(self.sets, self.columns, packed)
        # Without a parent set, a variable adds 0 to a row, like a set outside it: so every program has a solution.
        row, member = np.nonzero(bits_of(side)[:, : self.sets.n_variables])
        places = np.insert(places + np.int32(self.sets.n_variables), starts[row], member)
        values = np.insert(values, starts[row], -1.0)
        starts += np.cumsum(np.bincount(row + 1, minlength=k + 1)[:k]).astype(np.int32)
        self.solver.addRows(
            k, np.full(k, -np.inf), right, len(places), starts, places.astype(np.int32), values
        )
        self.rows += rows
        self.present.update(rows)
        self.packed = self.packed.followed_by(packed)
        self._side = np.concatenate([self._side, side])
        self.age = np.concatenate([self.age, np.zeros(k, dtype=np.int64)])
        self.multipliers = np.concatenate([self.multipliers, np.zeros(k)])
        return k

    def drop_rows(self, gone: NDArray[np.bool_]) -> None:
        """Remove rows."""
        if not gone.any():
            return
        which = np.flatnonzero(gone).astype(np.int32) + np.int32(self.sets.n_variables)
        self.solver.deleteRows(len(which), which)
        self.present.difference_update(row for row, drops in zip(self.rows, gone, strict=True) if drops)
        self.rows = [row for row, drops in zip(self.rows, gone, strict=True) if not drops]
        self.packed = self.packed.selected(~gone)
        if len(self.packed.terms) > MOST_TERMS:  # most of which may be those of rows that are gone
            self.packed = pack(self.rows, self.sets.n_variables)
        self._side, self.age, self.multipliers = self._side[~gone], self.age[~gone], self.multipliers[~gone]

    def drop_columns(self, gone: NDArray[np.bool_]) -> None:
        """Remove columns."""
        if not gone.any():
            return
        which = np.flatnonzero(gone).astype(np.int32) + np.int32(self.sets.n_variables)
        self.solver.deleteCols(len(which), which)
        self.place[self.columns[gone]] = -1
        self.columns, self._upper, self.values = self.columns[~gone], self._upper[~gone], self.values[~gone]
        self.place[self.columns] = np.arange(len(self.columns))

    def allow(self, allowed: NDArray[np.bool_]) -> None:
        """Fix the columns of other parent sets to 0; `allowed` has shape (P,)."""
        upper = np.where(allowed[self.columns], np.inf, 0.0)
        changed = np.flatnonzero(upper != self._upper).astype(np.int32)
        if len(changed):
            places = changed + np.int32(self.sets.n_variables)
            self.solver.changeColsBounds(len(changed), places, np.zeros(len(changed)), upper[changed])
            self._upper = upper

    def solve(self, *, iterations: int | None = None) -> bool:
        """Solve the linear program; return whether HiGHS found an optimum and its dual values.

        With `iterations` it stops after so many; the dual values are then those of the last basis.
        """
        limit = 2**31 - 1 if iterations is None else iterations
        self.solver.setOptionValue("simplex_iteration_limit", limit)
        self.solver.run()
        status = self.solver.getModelStatus()
        statuses = self._highs.HighsModelStatus
        good = {statuses.kOptimal} | ({statuses.kIterationLimit} if iterations is not None else set())
        if status not in good:
            return False
        solution = self.solver.getSolution()
        n = self.sets.n_variables
        values, duals = np.array(solution.col_value), np.array(solution.row_dual)[n:]
        self.artificial, self.values = float(values[:n].max()), values[n:]
        self.multipliers = np.maximum(0.0, -duals)
        self.objective = float(self.solver.getInfo().objective_function_value)
        return True

    def recover(self) -> bool:
        """Solve the linear program once more from the beginning, after HiGHS failed; return whether that helped."""
        self.solver.clearSolver()
        return self.solve()

    def grow_older(self) -> None:
        """Count the solutions since a row had a multiplier."""
        self.age = np.where(self.multipliers > NO_WEIGHT, 0, self.age + 1)

    def support(self) -> Support:
        """Return the parent sets in use at the last solution."""
        return support_of(self.sets, self.columns, self.values)

    def price(self, allowed: NDArray[np.bool_]) -> Priced:
        """Return the bound and the reduced costs of the multipliers, if only some parent sets are allowed."""
        reduced, least = np.empty(self.sets.n_sets), np.empty(self.sets.n_variables)
        bound = lagrangian(self.sets, self.packed, self.multipliers, allowed, reduced, least)
        # The rounding errors of two sums, relative to their terms, all of which are at least 0.
        slack = (4 * len(self.rows) + 16) * EPS
        with_set = bound + (reduced * (1 - slack) - least[self.sets.child] * (1 + slack)) - slack * abs(bound)
        return Priced(float(bound), reduced, with_set)

    def step(self, proof: MultiplierProof) -> ProofStep:
        """Return the multipliers as a step of a proof."""
        used = np.flatnonzero(self.multipliers)
        return proof.step((self.rows[r].key for r in used), self.multipliers[used])

    def missing(
        self, allowed: NDArray[np.bool_], reduced: NDArray[np.float64], most: int
    ) -> NDArray[np.int64]:
        """Return allowed parent sets that are no columns but cheaper than all columns of their variable."""
        sets, outside = self.sets, np.flatnonzero(allowed & (self.place < 0))
        if not len(outside):
            return outside
        cheapest = np.full(sets.n_variables, self.penalty)
        there = self.columns[allowed[self.columns]]
        np.minimum.at(cheapest, sets.child[there], reduced[there])
        excess = reduced[outside] - cheapest[sets.child[outside]]
        cheaper = excess < -DUAL_TOLERANCE
        return outside[cheaper][np.argsort(excess[cheaper], kind="stable")[:most]]

    def basis(self) -> Any:
        """Return the basis of the last solution."""
        return self.solver.getBasis()

    def add_used(self, basis: Any, rows: Sequence[Row], columns: NDArray[np.int64]) -> None:
        """Add the rows that are tight in a basis of another linear program, and its basic columns."""
        status, n = self._highs.HighsBasisStatus, self.sets.n_variables
        used = [own == status.kBasic for own in list(basis.col_status)[n:]]
        tight = [own != status.kBasic for own in list(basis.row_status)[n:]]
        self.add_rows(compress(rows, tight))
        basic = columns[np.array(used, dtype=bool)]
        self.add_columns(basic[self.place[basic] < 0])

    def restore(self, basis: Any, rows: Sequence[Row], columns: NDArray[np.int64]) -> None:
        """Begin the next solution with a basis of the linear program with `rows` and `columns`.

        What has been added since is basic (rows) or at 0 (columns); what is gone is left out.
        """
        if columns is self.columns and rows == self.rows:
            self.solver.setBasis(basis)
            return
        status = self._highs.HighsBasisStatus
        n = self.sets.n_variables
        old_columns = dict(zip(columns.tolist(), list(basis.col_status)[n:], strict=True))
        old_rows = dict(zip(rows, list(basis.row_status)[n:], strict=True))
        new = self._highs.HighsBasis()
        new.col_status = list(basis.col_status)[:n] + [
            old_columns.get(p, status.kLower) for p in self.columns.tolist()
        ]
        new.row_status = list(basis.row_status)[:n] + [old_rows.get(row, status.kBasic) for row in self.rows]
        new.valid = True
        self.solver.setBasis(new)
