"""Log-probability tables of all families, and the cell in which each sample looks them up.

The coefficient alpha(i, k, m, c), equation (12) of Peharz & Pernkopf (2012, P12), is a difference of two numbers in one
row of a small table. The table has a row, a *cell*, for every joint state of the family's variables other than the
class, and a column for every class. Families over the same variables form a *domain*: they share the numbering of the
cells, and a sample's cell follows from its codes. The bounds need products of the coefficients with eta and with the
dual weights. Both are computed from these tables in O(M N + P) memory. The tensor of all coefficients is built only for
a MILP.

Under leave-one-out scores a sample does not count in its own parameters. It only counts in those of its own class, so
only the first of the two numbers changes: it comes from a second table of the same size, whose entry for a class is
computed without one unit of weight of that class in that cell. `_Domain._left_out` has the formula.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.sums import log_share
from milpbn.problem.candidates import Candidates, ParentSet
from milpbn.problem.counts import cell_limit
from milpbn.problem.prior_counts import CoefficientPrior
from milpbn.problem.scores.spec import Score
from milpbn.util.budget import Budget


def active_columns(candidates: Candidates) -> NDArray[np.int64]:
    """Return the indices in eta of the parent sets whose margin coefficients are not all 0; int64 array, shape (K,).

    They are a feature's sets with the class, and every set of the class variable (P12, footnote 1).
    """
    c, (parent, _, of) = candidates.n_variables - 1, candidates.arcs
    return np.union1d(of[parent == c], np.flatnonzero(candidates.variable == c))


class _Arrays(NamedTuple):
    #: Shape (n_rows, M): the samples, one row per variable. Further rows hold the cell numbers of domains with too many
    #: joint states.
    codes: NDArray[np.int32]
    #: Shape (M,): the column of a table that belongs to the sample's true class.
    true: NDArray[np.int32]
    #: Shape (D, W), with `strides`: the rows of `codes` and the strides that number the cells of each domain; rows of
    #: -1 are padding.
    rows: NDArray[np.int64]
    strides: NDArray[np.int64]
    #: Shape (D,): number of cells of each domain.
    sizes: NDArray[np.int64]
    #: Shape (K,): index in eta of each column, ascending.
    columns: NDArray[np.int64]
    #: Shape (K,), with `start`: domain of each column, and the first row of its table in `values`.
    domain: NDArray[np.int64]
    start: NDArray[np.int64]
    #: Shape (cells, Q): log-probabilities in nats, Q = C. Under the binary margin Q = 2: the sample's class is part of
    #: the domain, a row is (0, -abar), and `true` is 0.
    values: NDArray[np.float64]
    #: Shapes (D + 1,) and (K,): the columns of each domain.
    first: NDArray[np.int64]
    members: NDArray[np.int64]
    #: Shape (M,): weights of the samples' margins.
    weights: NDArray[np.float64]
    #: Whether every table is followed by one of the same size for the true class, as leave-one-out scores need it but
    #: for the binary margin: there a cell belongs to one true class, and abar takes that into account.
    two_tables: bool


class Tables(_Arrays):  # a subclass, so that `MarginRows.alpha` can be kept in its `__dict__`
    """Tables of all families (*columns*) whose coefficients are not all 0, a tuple that kernels take.

    The cell of sample m in domain d is ``sum_t strides[d, t] * codes[rows[d, t], m]``, over the t with ``rows[d, t] >=
    0``. Column k has the table ``values[start[k] : start[k] + sizes[domain[k]]]``, and alpha(k, m, c) = table[cell,
    true[m]] - table[cell, c]. With `two_tables` the table of the true class, to which table[cell, true[m]] belongs,
    comes right after it in `values`, else it is the same table. The columns of domain d are ``members[first[d] :
    first[d + 1]]``.
    """

    @classmethod
    def of(cls, *, domain: NDArray[np.int64], sizes: NDArray[np.int64], **others: Any) -> Tables:
        """Return tables with the columns of each domain, `first` and `members`, filled in."""
        order = np.argsort(domain, kind="stable").astype(np.int64)
        first = np.searchsorted(domain[order], np.arange(len(sizes) + 1)).astype(np.int64)
        return cls(domain=domain, sizes=sizes, first=first, members=order, **others)

    @property
    def n_samples(self) -> int:
        """Number of (merged) samples M."""
        return self.codes.shape[1]

    def cells(self, domain: int) -> NDArray[np.int64]:
        """Return the cell of every sample in a domain, int64 array, shape (M,)."""
        used = self.rows[domain] >= 0
        return self.strides[domain, used] @ self.codes[self.rows[domain, used]].astype(np.int64)

    def apart(self, domain: int) -> int:
        """Return how many rows of `values` the true class's table of a column is after that of the other classes."""
        return int(self.sizes[domain]) if self.two_tables else 0

    def weighted(self, weights: NDArray[np.float64]) -> Tables:
        """Return the same tables for the samples with a weight, given the weights of all, shape (M,)."""
        samples = np.flatnonzero(weights)
        codes = np.ascontiguousarray(self.codes[:, samples])
        return self._replace(codes=codes, true=self.true[samples], weights=weights[samples])

    def keep(self, entries: NDArray[np.bool_]) -> Tables:
        """Return the tables of the parent sets marked in `entries`, bool array, shape (P,), with new indices."""
        kept = entries[self.columns]
        columns = (np.cumsum(entries) - 1)[self.columns[kept]]
        own = {"columns": columns, "domain": self.domain[kept], "start": self.start[kept]}
        derived = {"first", "members"}
        return Tables.of(**{k: v for k, v in self._asdict().items() if k not in derived} | own)


def family_tables(
    data: Dataset, candidates: Candidates, score: Score, budget: Budget | None = None
) -> Tables:
    """Count the data, and return the tables of all families under a margin score; NoIncumbentError if the budget ends.

    The smoothed ML parameters are theta_{j|h} = (n_{j|h} + a) / (n_h + a sp(X_i)), P12 (2) with Laplace smoothing;
    `milpbn.network.prior` has the general formula. Under a binary margin the class is re-read as {c, not c} in the
    counts, P12 (20)-(23). The counts are sums of the data's weights; merged samples save time.
    """
    budget = budget or Budget()
    binary, c = score.kind.binary, candidates.n_variables - 1
    columns = active_columns(candidates)
    members = _columns_by_domain(candidates, columns, budget)
    codes = [np.ascontiguousarray(data.codes[:, j]) for j in range(data.n_variables)]
    width = max((len(d) for d in members), default=0) + binary
    rows = np.full((len(members), max(1, width)), -1, dtype=np.int64)
    strides, sizes = np.zeros_like(rows), np.empty(len(members), dtype=np.int64)
    domain_of, start = np.empty((2, len(columns)), dtype=np.int64)
    factor, n_entries = (data.n_classes, 2) if binary else (1, data.n_classes)
    two_tables = score.kind.unit > 0 and not binary
    prior = CoefficientPrior(data, score.prior, binary=binary, unit=score.kind.unit)
    # Written in place: a list of tables that is stacked in the end would take the memory and its first use twice.
    most = sum(largest_size(data, domain) * factor * len(inside) for domain, inside in members.items())
    values = np.empty((most * (2 if two_tables else 1), n_entries))
    filled = filled_columns = 0
    for number, (domain, inside) in enumerate(members.items()):
        if number % 64 == 0:
            budget.check(
                f"the tables of {len(columns)} parent sets were computed",
                f"tables {filled_columns} of {len(columns)} parent sets",
            )
        counted = _Domain(data, domain, codes, prior)
        own_rows, own_strides = domain, counted.strides
        if counted.numbers is not None:
            codes.append(counted.numbers.astype(np.int32))
            own_rows, own_strides = (len(codes) - 1,), (1,)
        rows[number, : len(own_rows)] = own_rows
        strides[number, : len(own_rows)] = [factor * s for s in own_strides]
        if binary:
            rows[number, len(own_rows)], strides[number, len(own_rows)] = c, 1
        sizes[number] = counted.size * factor
        for k in inside:
            child = int(candidates.variable[columns[k]])
            domain_of[k], start[k] = number, filled
            for table in counted.tables(None if child == c else child):
                values[filled : filled + len(table)] = table
                filled += len(table)
            filled_columns += 1
    return Tables.of(
        codes=np.stack(codes),
        true=np.zeros(data.n_samples, dtype=np.int32) if binary else np.ascontiguousarray(data.y),
        rows=rows,
        strides=strides,
        sizes=sizes,
        columns=columns,
        domain=domain_of,
        start=start,
        values=values[:filled],
        weights=data.weights,
        two_tables=two_tables,
    )


def _columns_by_domain(
    candidates: Candidates, columns: NDArray[np.int64], budget: Budget
) -> dict[ParentSet, list[int]]:
    """Return the domains, each with the positions of its columns."""
    c, members = candidates.n_variables - 1, dict[ParentSet, list[int]]()
    for k, p in enumerate(columns.tolist()):
        if k % 4096 == 0:
            budget.check("parent sets were listed", "parent sets")
        domain = tuple(sorted({int(candidates.variable[p]), *candidates.flat[p]} - {c}))
        members.setdefault(domain, []).append(k)
    return members


def largest_size(data: Dataset, domain: ParentSet) -> int:
    """Return the number of cells of a domain, or a bound on it where only the joint states that occur have one."""
    full = prod(int(data.n_states[j]) for j in domain)
    return full if full <= cell_limit(data.n_samples) else data.n_samples


class _Domain:
    """The counts n(x_D, c) of the joint states of some features D (ascending) and the class.

    `codes` has the samples' codes, one contiguous int32 array per variable, shape (M,).
    """

    def __init__(
        self, data: Dataset, members: ParentSet, codes: list[NDArray[np.int32]], prior: CoefficientPrior
    ) -> None:
        self.members = members
        self.data = data
        self.prior = prior
        n_states = data.n_states
        self.shape = tuple(int(n_states[j]) for j in members)
        self.strides = tuple(prod(self.shape[t + 1 :]) for t in range(len(members)))
        self.size = prod(self.shape)
        self.present: NDArray[np.int64] | None = None
        #: Cell numbers of the samples, if only the joint states that occur have a cell.
        self.numbers: NDArray[np.int64] | None = None
        index = np.zeros(data.n_samples, dtype=np.int64)
        for j, stride in zip(members, self.strides, strict=True):
            index += stride * codes[j].astype(np.int64)
        if self.size > cell_limit(data.n_samples):
            self.present, self.numbers = np.unique(index, return_inverse=True)
            index, self.size = self.numbers, len(self.present)
        C = data.n_classes
        self.counts = data.total_weights(index * C + data.y, self.size * C).reshape(self.size, C)

    def tables(self, child: int | None) -> list[NDArray[np.float64]]:
        """Return log theta of a child given the other members and the class, or of the class given all members.

        It is log(part / (part + rest)), where part = n_{j|h} + a and rest sums the same over the child's other states;
        a is the prior's pseudo-count. A child of None stands for the class. Leave-one-out scores that are not binary
        have a second table for the true class.
        """
        prior = self.prior
        counts = self.counts
        if child is None:
            rest = self.data.other_weights(counts)
            other, other_rest = rest, counts
            own_prior, other_prior = prior.of(None, self.members)
        else:
            rest = self._other_states(child)
            added = prior.of(child, tuple(j for j in self.members if j != child))
            own_prior, other_prior = added.by_state(self._states(child)) if prior.has_table else added
        if prior.unit:
            own = self._left_out(child, rest + own_prior.rest, own_prior.part)
        else:
            own = log_share(counts + own_prior.part, rest + own_prior.rest)
        if not prior.binary:
            if not prior.unit:
                return [own]
            return [log_share(counts + other_prior.part, rest + other_prior.rest), own]
        if child is not None:
            other, other_rest = self.data.other_weights(counts), self.data.other_weights(rest)
        # One cell per joint state and true class, the class varying fastest.
        pairs = np.zeros((own.size, 2))
        pairs[:, 1] = (log_share(other + other_prior.part, other_rest + other_prior.rest) - own).ravel()
        return [pairs]

    def _left_out(
        self, child: int | None, rest: NDArray[np.float64], part: float | NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return log theta of the cells and classes that occur, with one unit of weight of them left out; else 0.

        It is (n_{j|h} - 1 + a) / (n_h - 1 + a sp(X_i)): the rest of the row stays. The class given its parents has one
        row for all classes, and its n_h, with or without the unit, is in the denominators of all of them alike. It
        cancels in alpha; as the other classes' entries have n_h, theta of the true class is
        (n_{j|h} - 1 + a) / (n_h + a C) here.

        `rest`, shape (size, C), has the counts of the child's other states with their pseudo-counts, and `part` the
        pseudo-counts of its own state.
        """
        cells, left = self._occurring
        others = rest.ravel()[cells]
        added = np.broadcast_to(part, rest.shape).ravel()[cells] if isinstance(part, np.ndarray) else part
        out = np.zeros(self.counts.size)
        out[cells] = log_share(left + added, others + 1 if child is None else others)
        return out.reshape(self.counts.shape)

    def _states(self, child: int) -> NDArray[np.int64]:
        """Return the child's state in every cell, shape (size,)."""
        cells = np.arange(self.size) if self.present is None else self.present
        place = self.members.index(child)
        return cells // self.strides[place] % self.shape[place]

    @cached_property
    def _occurring(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The places in `counts`, flattened, of the cells and classes that occur, and their counts less 1."""
        cells = np.flatnonzero(self.counts > 0)
        return cells, self.counts.ravel()[cells] - 1

    def _other_states(self, child: int) -> NDArray[np.float64]:
        """Return for each cell the sum over the cells that differ only in the child's state, shape (size, C)."""
        place = self.members.index(child)
        if self.present is None:
            cube = self.counts.reshape(*self.shape, -1)
            return self.data.other_weights(cube, place).reshape(self.counts.shape)
        stride, states = self.strides[place], self.shape[place]
        state = self._states(child)
        kinds, number = np.unique(self.present - state * stride, return_inverse=True)
        cells = np.split(
            np.argsort(state, kind="stable"), np.cumsum(np.bincount(state, minlength=states))[:-1]
        )
        rest = np.zeros_like(self.counts)
        # Sums over the states before each one, then over those after it; without subtraction nothing cancels.
        for order in (cells, cells[::-1]):
            before = np.zeros((len(kinds), self.counts.shape[1]))
            for here in order:
                rest[here] += before[number[here]]
                before[number[here]] += self.counts[here]
        return rest
