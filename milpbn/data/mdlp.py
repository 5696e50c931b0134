"""Discretisation by the minimum description length (MDL) principle of Fayyad and Irani.

Usama M. Fayyad and Keki B. Irani. Multi-interval discretization of continuous-valued attributes for
classification learning. IJCAI 1993, pages 1022-1027.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from milpbn.data.midpoints import midpoints
from milpbn.errors import InputError
from milpbn.util.compiled import kernel


def mdlp_cuts(
    values: ArrayLike, classes: ArrayLike, n_classes: int, weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    r"""Return the cut points that the MDL criterion accepts for one continuous feature.

    A set S of N samples with k classes is cut into S1 and S2 where the weighted class entropy
    :math:`(|S_1| Ent(S_1) + |S_2| Ent(S_2)) / N` is smallest; among equal cuts, the lowest wins. Both parts
    are cut again, as long as

    .. math::
        Gain > \frac{\log_2(N - 1)}{N} + \frac{\Delta}{N},\qquad
        \Delta = \log_2(3^k - 2) - [k\,Ent(S) - k_1 Ent(S_1) - k_2 Ent(S_2)].

    Only boundary points are tried: points between neighbouring distinct values whose samples do not all
    belong to one class. The best cut is always one of them (Theorem 1 of the paper). With N < 2 there is no cut.

    Parameters
    ----------
    values : float array, shape (M,)
        Finite values.
    classes : int array, shape (M,)
        Class codes in 0 .. n_classes - 1.
    weights : float array, shape (M,), optional
        Non-negative sample weights; an integer weight equals that many copies of the sample.

    Returns
    -------
    float64 array
        Ascending cuts: midpoints of neighbouring distinct values a < b. a <= cut < b holds even if float64
        has no number between a and b. Empty if no cut is accepted.

    Raises
    ------
    InputError
        If a value or a weight is not a finite number, or a weight is negative.
    """
    values = np.asarray(values, dtype=np.float64)
    classes = np.asarray(classes, dtype=np.int64)
    mass = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(values).all() and np.isfinite(mass).all() and (mass >= 0).all()):
        raise InputError("Only finite numbers can be cut into intervals, with weights that are not negative.")
    if not mass.all():
        values, classes, mass = values[mass > 0], classes[mass > 0], mass[mass > 0]
    distinct, rank = np.unique(values, return_inverse=True)
    if distinct.size < 2:
        return np.empty(0)
    counts = np.bincount(rank * n_classes + classes, weights=mass, minlength=distinct.size * n_classes)
    below = np.sort(_accepted_cuts(counts.reshape(distinct.size, n_classes)))
    return midpoints(distinct[below], distinct[below + 1])


@kernel
def _entropy(counts, total):  # type: ignore[no-untyped-def]
    """Return the entropy in bits of class counts with the given sum."""
    result = 0.0
    for count in counts:
        if count > 0.0:
            result -= count / total * np.log2(count / total)
    return result


@kernel
def _sums(counts, lo, hi):  # type: ignore[no-untyped-def]  # loops compile in a tenth of the time of counts.sum(axis=0)
    """Return the class counts of blocks lo .. hi - 1 together, and the sum of these."""
    sums, total = np.zeros(counts.shape[1]), 0.0
    for c in range(len(sums)):
        for i in range(lo, hi):
            sums[c] += counts[i, c]
        total += sums[c]
    return sums, total


@kernel
def _best_cut(counts, lo, hi):  # type: ignore[no-untyped-def]
    """Return the block below the best cut of blocks lo .. hi - 1, or -1 if there is no boundary point."""
    right, total = _sums(counts, lo, hi)
    left = np.zeros(len(right))
    left_total, best, best_sum = 0.0, -1, np.inf
    for i in range(lo, hi - 1):
        held = 0
        for c in range(left.size):
            left[c] += counts[i, c]
            right[c] -= counts[i, c]
            left_total += counts[i, c]
            held += counts[i, c] + counts[i + 1, c] > 0.0
        if held > 1:  # blocks i and i + 1 together hold more than one class
            right_total = total - left_total
            cost = left_total * _entropy(left, left_total) + right_total * _entropy(right, right_total)
            # The margin makes the lowest of equal cuts win, whatever their rounding errors.
            if cost < best_sum - 1e-11 * total:
                best, best_sum = i, cost
    return best


@kernel
def _is_accepted(counts, lo, middle, hi):  # type: ignore[no-untyped-def]
    """Return whether the MDL criterion accepts the cut of blocks lo .. hi - 1 into lo .. middle - 1 and the rest."""
    (left, n1), (right, n2) = _sums(counts, lo, middle), _sums(counts, middle, hi)
    n = n1 + n2
    if n < 2.0:  # possible with fractional weights; log2(N - 1) is the length of a code and not negative
        return False
    both, k, k1, k2 = np.empty(len(left)), 0, 0, 0
    for c in range(len(both)):
        both[c] = left[c] + right[c]
        k, k1, k2 = k + (both[c] > 0.0), k1 + (left[c] > 0.0), k2 + (right[c] > 0.0)
    ent, ent1, ent2 = _entropy(both, n), _entropy(left, n1), _entropy(right, n2)
    gain = ent - n1 / n * ent1 - n2 / n * ent2
    log_types = k * np.log2(3.0) + np.log2(1.0 - 2.0 * 3.0 ** (-k))  # log2(3^k - 2) without overflow
    delta = log_types - (k * ent - k1 * ent1 - k2 * ent2)
    return gain > (np.log2(n - 1.0) + delta) / n


@kernel
def _accepted_cuts(counts):  # type: ignore[no-untyped-def]
    """Return the blocks directly below the accepted cuts, unsorted.

    ``counts`` holds the class counts of each distinct value in ascending order, shape (K, C).
    """
    found = np.empty(counts.shape[0], dtype=np.int64)
    n_found = 0
    pending = [(0, counts.shape[0])]
    while pending:
        lo, hi = pending.pop()
        below = _best_cut(counts, lo, hi)
        if below >= 0 and _is_accepted(counts, lo, below + 1, hi):
            found[n_found] = below
            n_found += 1
            pending.append((lo, below + 1))
            pending.append((below + 1, hi))
    return found[:n_found]
