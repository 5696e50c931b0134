"""One level of the parent sets of all variables: the sets of one size are scored, and dominated ones left out.

`milpbn.problem.undominated` says which these are, and why.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.problem.joint_counts import refine, total, total_of
from milpbn.util.compiled import kernel

#: Standing of a set as the parents of a variable: neither it nor any larger set is admitted; it is not, but a larger
#: set may be; it is admitted.
NEVER, LATER, NOW = 0, 1, 2
#: Factor of penalties in bounds; it is below 1 to cover rounding errors.
SPARE = 1.0 - 1e-9


class Admission(NamedTuple):
    """What rules and options admit, and the terms beside F; variables in the order of `WeightedRows`."""

    #: By variable and parent, shape (V, V): 0 if it is never a parent, 1 if it may be one, 2 if it is in every set.
    role: NDArray[np.int8]
    #: By variable and parent: whether every admitted set with the parent is also admitted without it.
    removable: NDArray[np.bool_]
    #: By variable and parent: arc weights, in nats.
    gain: NDArray[np.float64]
    #: The sum of each variable's positive arc weights.
    positive: NDArray[np.float64]
    #: The most free features in a set without and with the class, -1 if there is no such set, shape (V, 2).
    room: NDArray[np.int64]
    #: The number of features that are in every set.
    required: NDArray[np.int64]
    #: The class.
    last: int
    #: Nats per free parameter.
    penalty: float
    #: Another parent multiplies the number of free parameters by at least this.
    growth: float
    #: For ranks of sets in colexicographic order, shape (V + 1, largest number of parents + 1).
    binomials: NDArray[np.int64]


class Known(NamedTuple):
    """Results for smaller sets, by size: parent sets whose supersets may be needed, and F of sets of variables.

    A parent set of rank p of variable i has the key p V + i; `best` is a lower bound on the largest term of the sets
    inside it. Keys and ranks of a size ascend; those of size s are from `start[s]` to `start[s + 1]`.
    """

    keys: NDArray[np.int64]
    best: NDArray[np.float64]
    key_start: NDArray[np.int64]
    ranks: NDArray[np.int64]
    sums: NDArray[np.float64]
    errors: NDArray[np.float64]
    rank_start: NDArray[np.int64]


@kernel(linked=True)
def _rank(binomials, members, n, a, b):  # type: ignore[no-untyped-def]  # numba infers the types
    """Return the rank of the first n members, which descend, without those at a and b."""
    rank, t = 0, 0
    for k in range(n - 1, -1, -1):
        if k != a and k != b:
            t += 1
            rank += binomials[members[k], t]
    return rank


@kernel(linked=True)
def _find(values, begin, end, value):  # type: ignore[no-untyped-def]
    """Return the first place in an ascending part whose value is not smaller; `end` if there is none."""
    while begin < end:
        middle = (begin + end) // 2
        if values[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel(linked=True)
def _place_of(values, start, size, value):  # type: ignore[no-untyped-def]
    """Return the place of a value among those of a size, or -1."""
    p = _find(values, start[size], start[size + 1], value)
    return p if p < start[size + 1] and values[p] == value else -1


@kernel(inner=True)
def _standing(admission, members, a):  # type: ignore[no-untyped-def]
    """Return whether the other members are admitted as the parents of member a: `NEVER`, `LATER` or `NOW`."""
    i, free, required, own = members[a], 0, 0, 0
    for b in range(len(members)):
        j = members[b]
        if b == a:
            continue
        if admission.role[i, j] == 0:
            return NEVER
        if j == admission.last:
            own = 1
        elif admission.role[i, j] == 1:
            free += 1
        else:
            required += 1
    if required == admission.required[i] and free <= admission.room[i, own]:
        return NOW
    most = admission.room[i, 1] if own == 1 else max(admission.room[i, 0], admission.room[i, 1])
    return LATER if free <= most else NEVER


@kernel(inner=True)
def _inherit(admission, known, members, standing, best):  # type: ignore[no-untyped-def]
    """Fill in for each member the standing of the others as its parents, and the best term of sets inside them."""
    size, n = len(members), len(admission.required)
    for a in range(size):
        standing[a], best[a] = _standing(admission, members, a), -np.inf
        for b in range(size):
            if b != a and standing[a] != NEVER:
                key = _rank(admission.binomials, members, size, a, b) * n + members[a]
                p = _place_of(known.keys, known.key_start, size - 2, key)
                if p < 0:
                    standing[a] = NEVER
                else:
                    best[a] = max(best[a], known.best[p])


@kernel(inner=True)
def _outweighed(rows, admission, known, members, a):  # type: ignore[no-untyped-def]
    """Whether member a has a parent among the others that adds no more than it costs, here and in larger sets."""
    size, i, binomials = len(members), members[a], admission.binomials
    whole = _place_of(known.ranks, known.rank_start, size - 1, _rank(binomials, members, size, a, a))
    for b in range(size):
        j = members[b]
        if b == a or not admission.removable[i, j]:
            continue
        gain = max(0.0, admission.gain[i, j])
        if gain == 0.0 and (rows.states[j] == 1 or rows.states[i] == 1):
            return True
        if admission.penalty <= 0.0 or whole < 0:
            continue
        rest = _place_of(known.ranks, known.rank_start, size - 2, _rank(binomials, members, size, a, b))
        both = _place_of(known.ranks, known.rank_start, size - 1, _rank(binomials, members, size, b, b))
        if rest < 0 or both < 0:
            continue
        cost = admission.penalty * SPARE * (rows.states[i] - 1) * (rows.states[j] - 1)
        for k in range(size):
            if k != a and k != b:
                cost *= rows.states[members[k]]
        less = known.sums[rest] - max(known.sums[both], known.sums[whole])
        if less + gain + known.errors[rest] + max(known.errors[both], known.errors[whole]) <= cost:
            return True
    return False


@kernel(inner=True)
def _leads_on(admission, known, members, n, below):  # type: ignore[no-untyped-def]
    """Whether a family may be needed that consists of the first n members and of variables below `below`."""
    if n < 2 or n > len(members) - 2:
        return True
    variables = len(admission.required)
    for a in range(n):
        key = _rank(admission.binomials, members, n, a, a) * variables + members[a]
        if _place_of(known.keys, known.key_start, n - 1, key) >= 0:
            return True
    # The children of a set of parents ascend, so that the first one is the smallest.
    key = _rank(admission.binomials, members, n, -1, -1) * variables
    p = _find(known.keys, known.key_start[n], known.key_start[n + 1], key)
    return p < known.key_start[n + 1] and known.keys[p] < key + below


@kernel(inner=True)
def _local_term(rows, admission, known, scratch, members, a, whole):  # type: ignore[no-untyped-def]
    """Return the term of member a with the others as parents, a bound on its error, and its number of parameters.

    `whole` has F of all members, and a bound on its error.
    """
    size, i = len(members), members[a]
    parameters, gain, heavy = rows.states[i] - 1.0, 0.0, 0.0
    for b in range(size):
        if b != a:
            parameters *= rows.states[members[b]]
            gain += admission.gain[i, members[b]]
            heavy += abs(admission.gain[i, members[b]])
    p = _place_of(known.ranks, known.rank_start, size - 1, _rank(admission.binomials, members, size, a, a))
    if p >= 0:
        above, error = known.sums[p], known.errors[p]
    else:
        above, error = total_of(rows, scratch, members, a)
    error += whole[1] + rows.slack * heavy
    if rows.alpha == 0.0:
        error += rows.slack * (abs(admission.penalty) + 1.0) * parameters
    return whole[0] - above - admission.penalty * parameters + gain, error, parameters


@kernel(inner=True)
def _most_above(rows, admission, i, parameters, error, occurring):  # type: ignore[no-untyped-def]
    """Return a bound on the terms of variable i with any larger set of parents."""
    if rows.alpha > 0:
        return error + admission.positive[i] - SPARE * occurring * math.log(rows.states[i])
    if admission.penalty > 0:
        return error + admission.positive[i] - admission.penalty * SPARE * admission.growth * parameters
    return np.inf


@kernel
def score_level(rows, admission, known, scratch, prefix, size, last):  # type: ignore[no-untyped-def]
    """Score the parent sets in the sets of `size` variables that begin with a prefix, which descend.

    Each member of such a set is the child once, with the other members as its parents. If `last`, no larger sets are
    scored. Return the families that may be needed, int64 array of shape (K size,), each as the child and its parents,
    and then keys, terms, ranks, sums and errors as in `Known`, the keys not sorted.
    """
    n, length = len(admission.required), len(prefix)
    members, following = np.empty(size, np.int64), np.zeros(size, np.int64)
    standing, best, whole = np.empty(size, np.int64), np.empty(size), np.empty(2)
    scored, keys, ranks = [members[0]][:0], [members[0]][:0], [members[0]][:0]
    terms, sums, errors = [0.0][:0], [0.0][:0], [0.0][:0]
    product = np.ones(size)  # of the states of the members before each one
    for k in range(length):
        members[k] = prefix[k]
        product[k + 1] = product[k] * rows.states[prefix[k]]
        if not _leads_on(admission, known, members, k + 1, prefix[k]):
            length = size
            break
        refine(rows, scratch, k, k + 1, prefix[k])
    depth = length if length < size else -1
    while depth >= len(prefix):
        v, end = following[depth], members[depth - 1] if depth > 0 else n
        if v >= end:
            following[depth] = 0
            depth -= 1
            continue
        following[depth] += 1
        members[depth] = v
        if depth < size - 1:
            if v >= size - 1 - depth and _leads_on(admission, known, members, depth + 1, v):
                refine(rows, scratch, depth, depth + 1, v)
                product[depth + 1] = product[depth] * rows.states[v]
                depth += 1
            continue
        _inherit(admission, known, members, standing, best)
        wanted = False
        for a in range(size):
            if standing[a] == NEVER:
                continue
            if (last and standing[a] == LATER) or _outweighed(rows, admission, known, members, a):
                standing[a] = NEVER
            wanted |= standing[a] != NEVER
        if not wanted:
            continue
        whole[0], whole[1], occurring = total(rows, scratch, depth, v, product[depth] * rows.states[v])
        if not last:
            ranks.append(_rank(admission.binomials, members, size, -1, -1))
            sums.append(whole[0])
            errors.append(whole[1])
        for a in range(size):
            if standing[a] == NEVER:
                continue
            term, error, parameters = _local_term(rows, admission, known, scratch, members, a, whole)
            if standing[a] == NOW:
                if not term + error <= best[a]:
                    for b in range(size):
                        scored.append(members[(a + b) % size])
                best[a] = max(best[a], term - error)
            most = _most_above(rows, admission, members[a], parameters, error, occurring)
            if not last and not most <= best[a]:
                keys.append(_rank(admission.binomials, members, size, a, a) * n + members[a])
                terms.append(best[a])
    results = np.array(keys), np.array(terms), np.array(ranks), np.array(sums), np.array(errors)
    return np.array(scored), results
