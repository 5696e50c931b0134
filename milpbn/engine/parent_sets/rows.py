"""Inequalities that every allowed structure satisfies, and the bound that their multipliers give.

A row says ``sum_i a(i, S_i) <= b`` over the parent sets S_i of its members i. There are six kinds:

- *cluster*: a set C of variables; a(i, S) = 1 if S meets C, b = |C| - 1 (P12 (7), Jaakkola et al. 2010).
- *block*: a set B of at most `LARGEST_BLOCK` variables and a function f on its subsets with f({}) = 0 and b = f(B).
  a(i, S) = min { f(U + i) - f(U) : S n B subset of U subset of B - i }. In an order of an acyclic structure let U_i be
  the members of B before i. They contain S_i n B, so that a(i, S_i) <= f(U_i + i) - f(U_i), whose sum over B is f(B).
- *limit*: at most b variables have the parent j; a(i, S) = 1 if S contains j.
- *closed*: a set C of variables with a descendant whose ancestor is not in C; a(i, S) = 1 if S lies in C, b = |C| - 1.
  A path from the ancestor enters C.
- *reached*: a set C of variables and a variable j that is no ancestor of one of them, d; a(i, S) = 1 if S meets C or
  contains j, b = |C| - 1. As j is no ancestor of d, the structure stays acyclic with the arc d -> j. The row of the
  cluster C + j then has the term 1 for j, and says this about the members of C.
- *arcs*: arcs that must not be there together; a(i, S) = 1 if S contains all of them into i, b = their children - 1.

f is nondecreasing here, so all a are at least 0. What all parent sets have, a(i, {}), is subtracted from both sides.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate import records
from milpbn.certificate.multiplier_proof import Key
from milpbn.data.sums import EPS
from milpbn.engine.parent_sets.sets import WORD, ParentSets, has, inside, mask_of, meets
from milpbn.util.compiled import kernel

CLUSTER, BLOCK, LIMIT, CLOSED, REACHED, ARCS = range(6)
#: How certificates mark the kinds; a limit has the number itself instead.
MARKS = {
    CLUSTER: records.CLUSTER,
    BLOCK: records.BLOCK,
    CLOSED: records.CLOSED,
    REACHED: records.REACHED,
    ARCS: records.ARCS,
}
#: Most members of a block.
LARGEST_BLOCK = 8


class Row(NamedTuple):
    """One inequality."""

    #: `CLUSTER`, `BLOCK`, `LIMIT`, `CLOSED`, `REACHED` or `ARCS`.
    kind: int
    #: The members, ascending; of a limit, the parent.
    members: tuple[int, ...]
    #: The values of f, subset by subset, a member's bit being its place in `members`; of a limit, b; of a reached set,
    #: j; of arcs, the parents in question of each member, as bits.
    numbers: tuple[int, ...] = ()

    @property
    def key(self) -> Key:
        """The inequality as a certificate has it."""
        if self.kind == LIMIT:
            return self.numbers[0], self.members, ()
        values = self.numbers
        if self.kind == ARCS:
            own = zip(self.members, self.numbers, strict=True)
            arcs = [(j, i) for i, bits in own for j in range(bits.bit_length()) if bits >> j & 1]
            values = (len(arcs), *chain.from_iterable(arcs))
        return MARKS[self.kind], self.members, values


class PackedRows(NamedTuple):
    """Rows as arrays for kernels."""

    #: Kind of each row. Shape (R,).
    kind: NDArray[np.int64]
    #: The variables whose parent sets have terms. Shape (R, W).
    masks: NDArray[np.uint64]
    #: Members of a block, -1 behind them; the parent of a limit; the variable before a reached set. Shape (R,
    #: LARGEST_BLOCK).
    members: NDArray[np.int64]
    #: Where the terms of a block begin in `terms`, 2**size for each member, and those of arcs, W for each member. Shape
    #: (R,).
    first: NDArray[np.int64]
    #: The right-hand sides. Shape (R,).
    right: NDArray[np.float64]
    #: The terms of all blocks, and words of the parents of arcs as they are.
    terms: NDArray[np.float64]

    def selected(self, kept: NDArray[np.bool_]) -> PackedRows:
        """Return some of the rows; the terms stay."""
        return PackedRows(
            self.kind[kept],
            self.masks[kept],
            self.members[kept],
            self.first[kept],
            self.right[kept],
            self.terms,
        )

    def followed_by(self, others: PackedRows) -> PackedRows:
        """Return these rows and others."""
        moved = others._replace(first=others.first + len(self.terms))
        return PackedRows(*map(np.concatenate, zip(self, moved, strict=True)))  # type: ignore[arg-type]


def pack(rows: Iterable[Row], n_variables: int) -> PackedRows:
    """Return rows as arrays."""
    rows = list(rows)
    n = len(rows)
    kind = np.array([row.kind for row in rows], dtype=np.int64)
    masks = np.zeros((n, len(mask_of((), n_variables))), dtype=np.uint64)
    members = np.full((n, LARGEST_BLOCK), -1, dtype=np.int64)
    first, right = np.zeros(n, dtype=np.int64), np.zeros(n)
    terms: list[NDArray[np.float64]] = [np.zeros(0)]
    used = 0
    for r, row in enumerate(rows):
        masks[r] = mask_of(range(n_variables) if row.kind == LIMIT else row.members, n_variables)
        if row.kind not in (BLOCK, LIMIT):
            right[r] = len(row.members) - 1
            if row.kind == REACHED:
                members[r, 0] = row.numbers[0]
            elif row.kind == ARCS:
                words = np.array([_words(bits, masks.shape[1]) for bits in row.numbers], dtype=np.uint64)
                first[r], used = used, used + words.size
                terms.append(words.ravel().view(np.float64))
            continue
        members[r, : len(row.members)] = row.members
        if row.kind == LIMIT:
            right[r] = row.numbers[0]
            continue
        table = block_terms(np.array(row.numbers, dtype=np.float64))
        shared = table[:, 0].copy()
        first[r], right[r] = used, row.numbers[-1] - shared.sum()
        terms.append((table - shared[:, None]).ravel())
        used += table.size
    return PackedRows(kind, masks, members, first, right, np.concatenate(terms))


def _words(bits: int, count: int) -> list[int]:
    """Return a set of variables, given as bits, as words."""
    return [bits >> WORD * w & (1 << WORD) - 1 for w in range(count)]


@kernel
def block_terms(f):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return a(i, S) of a block for the values f, shape (2**b,); float64 array, shape (b, 2**b).

    Where S contains i, which no parent set does, the number is a({i}, S - i).
    """
    n = len(f)
    b = 0
    while 1 << b < n:
        b += 1
    terms = np.empty((b, n))
    for k in range(b):
        bit = 1 << k
        for s in range(n):
            terms[k, s] = f[s | bit] - f[s & ~bit]
        for j in range(b):
            if j == k:
                continue
            for s in range(n):
                if not s >> j & 1:
                    terms[k, s] = min(terms[k, s], terms[k, s | 1 << j])
    return terms


@kernel(linked=True)
def _place(members, i):  # type: ignore[no-untyped-def]
    """Return the place of a variable among the members of a block."""
    k = 0
    while members[k] != i:
        k += 1
    return k


@kernel(linked=True)
def projected(mask, members):  # type: ignore[no-untyped-def]
    """Return the members of a block that are in a set, as bits by place."""
    found = 0
    for k in range(len(members)):
        if members[k] < 0:
            break
        if has(mask, members[k]):
            found |= 1 << k
    return found


@kernel(linked=True)
def _size(members):  # type: ignore[no-untyped-def]
    b = 0
    while b < len(members) and members[b] >= 0:
        b += 1
    return b


@kernel(linked=True)
def _term(kind, row, members, at, terms, mask):  # type: ignore[no-untyped-def]
    """Return a(i, S) of a row for the parent set `mask` of i; `at` is where the terms of i begin."""
    if kind == CLUSTER:
        return 1.0 if meets(mask, row) else 0.0
    if kind == LIMIT:
        return 1.0 if has(mask, members[0]) else 0.0
    if kind == CLOSED:
        return 1.0 if inside(mask, row) else 0.0
    if kind == REACHED:
        return 1.0 if meets(mask, row) or has(mask, members[0]) else 0.0
    if kind == ARCS:
        return 1.0 if inside(terms[at : at + len(mask)].view(np.uint64), mask) else 0.0
    return terms[at + projected(mask, members)]


@kernel(linked=True)
def _start(kind, row, members, first, i):  # type: ignore[no-untyped-def]
    """Return where the terms of variable i begin in a block, or its words among those of arcs; 0 for another row."""
    if kind == ARCS:
        place = 0
        for j in range(i):
            if has(row, j):
                place += 1
        return first + place * len(row)
    return first + (_place(members, i) << _size(members)) if kind == BLOCK else 0


@kernel
def lagrangian(sets, rows, multipliers, allowed, reduced, least):  # type: ignore[no-untyped-def]
    """Fill the reduced costs of all sets and the least ones of all variables; return a lower bound on every cost.

    The bound holds for every acyclic structure of allowed sets and all multipliers y >= 0 in exact arithmetic:
    sum_i min_p (cost_p + sum_r y_r a_rp) - sum_r y_r b_r. All terms are at least 0, so the relative error of a sum of n
    terms is at most n - 1 eps, which is subtracted.

    Parameters
    ----------
    multipliers : float64 array, shape (R,)
        The multipliers, at least 0.
    allowed : bool array, shape (P,)
        Other sets have the reduced cost inf.
    reduced, least : float64 arrays, shapes (P,) and (V,)
        Overwritten.
    """
    V, R = len(least), len(multipliers)
    own, at = np.empty(R, dtype=np.int64), np.empty(R, dtype=np.int64)
    right = total = 0.0
    for r in range(R):
        right += multipliers[r] * rows.right[r]
    for i in range(V):
        n = 0
        for r in range(R):
            if multipliers[r] > 0 and has(rows.masks[r], i):
                own[n], at[n] = r, _start(rows.kind[r], rows.masks[r], rows.members[r], rows.first[r], i)
                n += 1
        least[i] = np.inf
        for p in range(sets.offsets[i], sets.offsets[i + 1]):
            if not allowed[p]:
                reduced[p] = np.inf
                continue
            cost = sets.costs[p]
            for q in range(n):
                r = own[q]
                cost += multipliers[r] * _term(
                    rows.kind[r], rows.masks[r], rows.members[r], at[q], rows.terms, sets.masks[p]
                )
            reduced[p] = cost
            least[i] = min(least[i], cost)
        total += least[i] * (1.0 - (2 * n + 4) * EPS)
    return total * (1.0 - (V + 4) * EPS) - right * (1.0 + (2 * R + 4) * EPS)


@kernel
def entries(sets, columns, rows, side, by_row, place, value, starts):  # type: ignore[no-untyped-def]
    """Fill the matrix of rows and columns of a linear program, row by row or column by column; return its entries.

    Parameters
    ----------
    columns : int64 array, shape (K,)
        The parent sets of the columns.
    side : uint64 array, shape (R, W)
        The members of a cluster whose terms are a(i, S) - 1 instead of a(i, S).
    by_row : bool
        The order of the entries.
    place, value, starts : int32, float64 and int32 arrays
        Columns (or rows) and values of the entries, and where each row (or column) begins; overwritten.
    """
    n = 0
    R, K = len(rows.kind), len(columns)
    for outer in range(R if by_row else K):
        starts[outer] = n
        for inner in range(K if by_row else R):
            r = outer if by_row else inner
            p = columns[inner if by_row else outer]
            i = sets.child[p]
            if not has(rows.masks[r], i):
                continue
            at = _start(rows.kind[r], rows.masks[r], rows.members[r], rows.first[r], i)
            a = _term(rows.kind[r], rows.masks[r], rows.members[r], at, rows.terms, sets.masks[p])
            if has(side[r], i):
                a -= 1.0
            if a != 0.0:
                place[n], value[n] = inner, a
                n += 1
    return n


@kernel
def activities(sets, used, shares, rows):  # type: ignore[no-untyped-def]
    """Return by how much a point violates each row, float64 array, shape (R,).

    `used`, int64 of shape (K,), are the parent sets whose `shares` are positive.
    """
    out = np.empty(len(rows.kind))
    for r in range(len(rows.kind)):
        total = -rows.right[r]
        for t in range(len(used)):
            i = sets.child[used[t]]
            if has(rows.masks[r], i):
                at = _start(rows.kind[r], rows.masks[r], rows.members[r], rows.first[r], i)
                total += shares[t] * _term(
                    rows.kind[r], rows.masks[r], rows.members[r], at, rows.terms, sets.masks[used[t]]
                )
        out[r] = total
    return out


class RowMatrix(NamedTuple):
    """Rows of a linear program: places and values of the entries, where each row begins, right-hand sides, sides."""

    places: NDArray[np.int32]
    values: NDArray[np.float64]
    starts: NDArray[np.int32]
    right: NDArray[np.float64]
    side: NDArray[np.uint64]


def matrix_of(sets: ParentSets, columns: NDArray[np.int64], rows: PackedRows) -> RowMatrix:
    """Return rows over the parent sets `columns`; `cheaper_sides` says which terms they have."""
    side, size = cheaper_sides(sets, columns, rows), len(rows.kind) * len(columns) + 1
    place, value = np.empty(size, dtype=np.int32), np.empty(size)
    starts = np.zeros(len(rows.kind), dtype=np.int32)
    count = entries(sets, columns, rows, side, True, place, value, starts)
    right = rows.right - np.bitwise_count(side).sum(axis=1)
    return RowMatrix(place[:count], value[:count], starts, right, side)


def cheaper_sides(sets: ParentSets, columns: NDArray[np.int64], rows: PackedRows) -> NDArray[np.uint64]:
    """Return for each cluster the members more than half of whose columns meet it (`entries`), uint64, shape (R, W).

    With the terms a(i, S) - 1 for these, the row has fewer entries.
    """
    n, side = sets.n_variables, np.zeros_like(rows.masks)
    child, masks = sets.child[columns], sets.masks[columns]
    total = np.bincount(child, minlength=n)
    for r in np.flatnonzero(rows.kind == CLUSTER):
        hit = (masks & rows.masks[r]).any(axis=1)
        many = np.flatnonzero(2 * np.bincount(child[hit], minlength=n) > total)
        np.bitwise_or.at(side[r], many // 64, np.uint64(1) << (many % 64).astype(np.uint64))
        side[r] &= rows.masks[r]
    return side
