"""Parent sets and their costs as arrays, without the sets that no best structure needs.

A score that is a sum of one term per variable is maximised over acyclic choices of parent sets. The search minimises
costs: what a parent set loses against the best one of its variable. They are at least 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.problem.candidates import Candidates
from milpbn.util.compiled import kernel

#: Bits of a word of a set of variables.
WORD = 64
ONE, ZERO = np.uint64(1), np.uint64(0)


class ParentSets(NamedTuple):
    """The parent sets of all variables, those of a variable by ascending cost."""

    #: Start of each variable's block. Shape (V + 1,).
    offsets: NDArray[np.int64]
    #: The variable of each parent set. Shape (P,).
    child: NDArray[np.int64]
    #: The members as bits, 64 variables a word. Shape (P, W).
    masks: NDArray[np.uint64]
    #: What a set loses against the variable's best one, in nats, at least 0. Shape (P,).
    costs: NDArray[np.float64]

    @property
    def n_variables(self) -> int:
        """V."""
        return len(self.offsets) - 1

    @property
    def n_sets(self) -> int:
        """P."""
        return len(self.child)


class ListedSets(NamedTuple):
    """Parent sets of a search, and how they are numbered in the problem."""

    #: The parent sets.
    sets: ParentSets
    #: Index of each set in eta. Shape (P,).
    in_eta: NDArray[np.int64]
    #: Sum of the terms of the variables' best sets, in nats: a score is this minus a cost.
    best: float


def list_sets(candidates: Candidates, terms: NDArray[np.float64], *, dominated: bool = False) -> ListedSets:
    """Return the candidates with the terms of a score, shape (P,), in nats.

    Without `dominated` ones: a parent set with a subset among the candidates whose term is no smaller is in no better
    structure, because a structure stays acyclic, and obeys limits of children, if arcs are removed.
    """
    offsets, masks = candidates.offsets, masks_of(candidates)
    largest = np.maximum.reduceat(terms, offsets[:-1])
    costs = np.repeat(largest, np.diff(offsets)) - terms
    sizes = np.bitwise_count(masks).sum(axis=1)
    index = np.lexsort((sizes, costs, candidates.variable))
    sets = ParentSets(offsets, candidates.variable[index], masks[index], costs[index])
    if not dominated:
        kept = undominated(sets.offsets, sets.masks)
        index, sets = index[kept], selected(sets, kept)
    return ListedSets(sets, index, math.fsum(largest))


def masks_of(candidates: Candidates) -> NDArray[np.uint64]:
    """Return the members of all candidate sets as bits, shape (P, W)."""
    masks = np.zeros((candidates.n_sets, -(-candidates.n_variables // WORD)), dtype=np.uint64)
    parent, _, place = candidates.arcs
    np.bitwise_or.at(masks, (place, parent // WORD), ONE << (parent % WORD).astype(np.uint64))
    return masks


def selected(sets: ParentSets, kept: NDArray[np.bool_]) -> ParentSets:
    """Return the parent sets where `kept`, shape (P,), is true."""
    child = sets.child[kept]
    offsets = np.searchsorted(child, np.arange(sets.n_variables + 1)).astype(np.int64)
    return ParentSets(offsets, child, sets.masks[kept], sets.costs[kept])


class LinkedSets(NamedTuple):
    """Parent sets (see `ParentSets`) by their members, and by the variables that they hold.

    The members of set p are ``members[starts[p]:starts[p + 1]]``, and the sets that hold variable j, ascending,
    ``holding[first[j]:first[j + 1]]``.
    """

    offsets: NDArray[np.int64]
    child: NDArray[np.int64]
    costs: NDArray[np.float64]
    starts: NDArray[np.int64]
    members: NDArray[np.int64]
    first: NDArray[np.int64]
    holding: NDArray[np.int64]


def linked_sets(sets: ParentSets) -> LinkedSets:
    """Return parent sets with the lists of their members and of those that hold each variable."""
    starts = np.concatenate([[0], np.cumsum(np.bitwise_count(sets.masks).sum(axis=1, dtype=np.int64))])
    members = np.empty(starts[-1], dtype=np.int64)
    list_members(sets.masks, members)
    holding = np.repeat(np.arange(sets.n_sets), np.diff(starts))[np.argsort(members, kind="stable")]
    first = np.concatenate([[0], np.cumsum(np.bincount(members, minlength=sets.n_variables))])
    return LinkedSets(sets.offsets, sets.child, sets.costs, starts, members, first, holding)


def mask_of(members: Iterable[int], n_variables: int) -> NDArray[np.uint64]:
    """Return a set of variables as words, uint64 array of shape (W,)."""
    mask = np.zeros(-(-n_variables // WORD), dtype=np.uint64)
    for j in members:
        mask[j // WORD] |= ONE << np.uint64(j % WORD)
    return mask


def bits_of(masks: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which variables are members of sets that are words, shape (..., W), as an array of shape (..., 64 W)."""
    return np.unpackbits(np.ascontiguousarray(masks).view(np.uint8), axis=-1, bitorder="little").view(bool)


def members_of(mask: NDArray[np.uint64]) -> tuple[int, ...]:
    """Return the members of a set that is words, ascending."""
    return tuple(np.flatnonzero(bits_of(mask)).tolist())


@kernel(linked=True)
def has(mask, j):  # type: ignore[no-untyped-def]  # numba infers the types
    """Whether variable j is in a set of variables."""
    return (mask[j >> 6] >> np.uint64(j & 63)) & ONE != ZERO


@kernel(linked=True)
def put(mask, j):  # type: ignore[no-untyped-def]
    """Add variable j to a set."""
    mask[j >> 6] |= ONE << np.uint64(j & 63)


@kernel(linked=True)
def drop(mask, j):  # type: ignore[no-untyped-def]
    """Remove variable j from a set."""
    mask[j >> 6] &= ~(ONE << np.uint64(j & 63))


@kernel(linked=True)
def inside(mask, others):  # type: ignore[no-untyped-def]
    """Whether a set is a subset of another one."""
    outside = ZERO
    for w in range(len(mask)):
        outside |= mask[w] & ~others[w]
    return outside == ZERO


@kernel(linked=True)
def meets(mask, others):  # type: ignore[no-untyped-def]
    """Whether two sets have a common member."""
    common = ZERO
    for w in range(len(mask)):
        common |= mask[w] & others[w]
    return common != ZERO


def generator(seed: int) -> NDArray[np.uint64]:
    """Return the state of a random generator for kernels, shape (1,)."""
    return np.array([np.random.default_rng(seed).integers(1, 2**63)], dtype=np.uint64)


@kernel(linked=True)
def next_random(state):  # type: ignore[no-untyped-def]
    """Return the next number of a xorshift generator (Marsaglia 2003); `state`, uint64 of shape (1,), is not 0."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return x


@kernel(linked=True)
def random_below(state, n):  # type: ignore[no-untyped-def]
    """Return a random integer in 0, ..., n - 1."""
    return np.int64((next_random(state) >> np.uint64(11)) % np.uint64(n))


@kernel(linked=True)
def random_share(state):  # type: ignore[no-untyped-def]
    """Return a random number in [0, 1)."""
    return np.float64(next_random(state) >> np.uint64(11)) / 9007199254740992.0


@kernel
def undominated(offsets, masks):  # type: ignore[no-untyped-def]
    """Return which sets have no subset before them in their variable's block; bool array, shape (P,)."""
    kept = np.ones(len(masks), dtype=np.bool_)
    found = np.empty(len(masks), dtype=np.int64)
    for i in range(len(offsets) - 1):
        n = 0
        for p in range(offsets[i], offsets[i + 1]):
            for k in range(n):
                if inside(masks[found[k]], masks[p]):
                    kept[p] = False
                    break
            if kept[p]:
                found[n] = p
                n += 1
    return kept


@kernel
def list_members(masks, members):  # type: ignore[no-untyped-def]
    """Fill the members of all sets, one set after the other."""
    k = 0
    for mask in masks:
        for w in range(len(mask)):
            word, j = mask[w], w << 6
            while word != ZERO:
                if word & ONE != ZERO:
                    members[k] = j
                    k += 1
                word >>= ONE
                j += 1
