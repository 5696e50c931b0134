"""Maximum-weight structures by dynamic programming over the sets of variables that come first in an order.

f(U) = max_{i in U} f(U - i) + best_i(U - i), where best_i(W) is the heaviest parent set of variable i within W
(Silander & Myllymaki 2006; here the weights differ in every call). For one search over more variables see
`milpbn.engine.parent_sets.subsets`.
"""

from __future__ import annotations

import numpy as np

from milpbn.util.compiled import kernel


@kernel(inner=True)
def _ordered(offsets, masks):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the number of variables to order: all, or all but the last one if no arc enters or leaves it."""
    V = len(offsets) - 1
    for p in range(offsets[V - 1], offsets[V]):
        if masks[p]:
            return V
    for p in range(offsets[V - 1]):
        if masks[p] >> (V - 1):
            return V
    return V - 1


@kernel(inner=True)
def _best_sets(offsets, masks, weights, allowed, n, weight, entry):  # type: ignore[no-untyped-def]
    """Fill best_i(W), as weight and index, for all W and i < n."""
    full = 1 << n
    for i in range(n):
        w, e = weight[i], entry[i]
        for W in range(full):
            w[W] = -np.inf
            e[W] = -1
        for p in range(offsets[i], offsets[i + 1]):
            if allowed[p] and weights[p] > w[masks[p]]:
                w[masks[p]] = weights[p]
                e[masks[p]] = p
        for b in range(n):
            if b == i:
                continue
            bit = 1 << b
            for W in range(full):
                if W & bit and w[W ^ bit] > w[W]:
                    w[W] = w[W ^ bit]
                    e[W] = e[W ^ bit]


@kernel(inner=True)
def _prefixes(n, weight, total, last):  # type: ignore[no-untyped-def]
    """Fill f(U), and the variable that comes last in U."""
    total[0] = 0.0
    for U in range(1, 1 << n):
        total[U] = -np.inf
        last[U] = -1
        for i in range(n):
            if U >> i & 1:
                W = U ^ (1 << i)
                value = total[W] + weight[i, W]
                if value > total[U]:
                    total[U] = value
                    last[U] = i


@kernel(inner=True)
def _read_off(offsets, weights, allowed, n, entry, total, last, choice):  # type: ignore[no-untyped-def]
    """Write the parent sets of the best order of all variables to `choice`; return their weight."""
    V = len(offsets) - 1
    U = (1 << n) - 1
    value = total[U]
    if value == -np.inf:
        return value
    while U:
        i = last[U]
        U ^= 1 << i
        choice[i] = entry[i, U]
    if n < V:
        top = -1
        for p in range(offsets[V - 1], offsets[V]):
            if allowed[p] and (top < 0 or weights[p] > weights[top]):
                top = p
        if top < 0:
            return -np.inf
        choice[V - 1] = top
        value += weights[top]
    return value


@kernel
def best_order(offsets, masks, weights, allowed, choice):  # type: ignore[no-untyped-def]
    """Write the parent sets of a heaviest structure to `choice`, shape (V,); return its weight, -inf if there is none.

    `offsets`, shape (V + 1,), are the starts of the variables' blocks in eta, `masks`, shape (P,), the parent sets as
    bits, `weights` and `allowed`, shape (P,), their weights, and which of them may be chosen.
    """
    n = _ordered(offsets, masks)
    weight = np.empty((n, 1 << n))
    entry = np.empty((n, 1 << n), dtype=np.int32)
    _best_sets(offsets, masks, weights, allowed, n, weight, entry)
    total = np.empty(1 << n)
    last = np.empty(1 << n, dtype=np.int8)
    _prefixes(n, weight, total, last)
    return _read_off(offsets, weights, allowed, n, entry, total, last, choice)


@kernel
def heaviest_orders(offsets, masks, weights, allowed, out):  # type: ignore[no-untyped-def]
    """Write the weight of the heaviest structure with each allowed parent set to `out`, shape (P,).

    A heaviest structure in which variable i has the parent set S consists of the best order of some set W that contains
    S but not i, then i, then the best completion of W + i. The parameters are those of `best_order`.
    """
    V = len(offsets) - 1
    n = _ordered(offsets, masks)
    full = 1 << n
    weight = np.empty((n, full))
    entry = np.empty((n, full), dtype=np.int32)
    _best_sets(offsets, masks, weights, allowed, n, weight, entry)
    total = np.empty(full)
    last = np.empty(full, dtype=np.int8)
    _prefixes(n, weight, total, last)
    after = np.full(full, -np.inf)
    after[full - 1] = 0.0
    for U in range(full - 2, -1, -1):
        for i in range(n):
            if not U >> i & 1:
                after[U] = max(after[U], weight[i, U] + after[U | (1 << i)])
    top = 0.0
    if n < V:
        top = -np.inf
        for p in range(offsets[V - 1], offsets[V]):
            if allowed[p]:
                top = max(top, weights[p])
                out[p] = total[full - 1] + weights[p]
    around = np.empty(full)
    for i in range(n):
        bit = 1 << i
        for W in range(full):
            around[W] = -np.inf if W & bit else total[W] + after[W | bit]
        for b in range(n):
            for W in range(full):
                if not W >> b & 1:
                    around[W] = max(around[W], around[W | (1 << b)])
        for p in range(offsets[i], offsets[i + 1]):
            if allowed[p]:
                out[p] = around[masks[p]] + weights[p] + top
