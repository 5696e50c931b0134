"""What a node's parent sets say about the order of the variables, and which sets that excludes."""

from __future__ import annotations

import numpy as np

from milpbn.engine.parent_sets.sets import has, put
from milpbn.util.compiled import kernel


@kernel(inner=True)
def _join(before, i, mask):  # type: ignore[no-untyped-def]  # numba infers the types
    """Put the members of a set, and what comes before them, before variable i; return whether that is no cycle."""
    n = len(before)
    added = mask.copy()
    for j in range(n):
        if has(mask, j):
            added |= before[j]
    before[i] |= added
    if has(before[i], i):
        return False
    for k in range(n):
        if has(before[k], i):
            before[k] |= before[i]
            if has(before[k], k):
                return False
    return True


@kernel
def put_before(before, a, b):  # type: ignore[no-untyped-def]
    """Put variable a before b; return whether that is no cycle.

    `before`, uint64 of shape (V, W), has what comes before each variable, transitively closed.
    """
    only = np.zeros_like(before[a])
    put(only, a)
    return _join(before, b, only)


@kernel
def propagate(sets, allowed, before):  # type: ignore[no-untyped-def]
    """Exclude sets with a member that comes later, and put members of all sets of a variable before it, to the end.

    Return whether every variable has a set left and the order has no cycle; `allowed`, shape (P,), and `before` are
    changed.
    """
    n, words = before.shape
    changed = True
    while changed:
        changed = False
        for i in range(n):
            later = np.zeros_like(before[i])
            for j in range(n):
                if has(before[j], i):
                    put(later, j)
            shared = ~np.zeros_like(before[i])
            left = False
            for p in range(sets.offsets[i], sets.offsets[i + 1]):
                if not allowed[p]:
                    continue
                excluded = False
                for w in range(words):
                    if sets.masks[p, w] & later[w]:
                        excluded = True
                if excluded:
                    allowed[p] = False
                    continue
                left = True
                shared &= sets.masks[p]
            if not left:
                return False
            new = False
            for w in range(words):
                if shared[w] & ~before[i, w]:
                    new = True
            if new:
                changed = True
                if not _join(before, i, shared):
                    return False
    return True
