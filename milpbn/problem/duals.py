"""The softened margins: dual weights at a point, their product with all coefficients, and slopes along a line.

The dual weights are a sparse list. A sample whose margin is well above gamma has all its weight on gamma and is not in
the list. Of the other samples, only the classes near the minimum are. The product of the list with all coefficients
costs one addition for each dual weight and domain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from milpbn.problem.family_tables import Tables
from milpbn.problem.products import Softening, apart
from milpbn.util.compiled import kernel
from milpbn.util.extrema import maximum
from milpbn.util.threads import in_parts

#: Dual weights below exp(-SPARSE) times the largest are left out, and the others are scaled to sum to 1. Under the
#: conditional log-likelihood they are probabilities, and omitted ones change the score, so that fewer are left out.
SPARSE, SPARSE_LIKELY = 16.0, 36.0
#: Dual weights that are multiplied with the coefficients at a time.
PLACES = 1 << 15
#: Temperature, in nats, at which the soft minimum is the minimum.
HARD = 1e-9


def score_temperature(softening: Softening) -> float:
    """Return the temperature at which the soft minimum is the score: 1 if that is smooth, else `HARD`."""
    return 1.0 if softening.smooth else HARD


class Duals(NamedTuple):
    """Sparse dual weights, as factors of the joint log-probabilities.

    Group a consists of the places first[a] <= t < first[a + 1] and belongs to one sample. Each competing class near the
    minimum has a place with the value -w lambda_c. The last place has the true class and the sum of the w lambda_c.
    `size` holds the number of groups and the number of places.
    """

    sample: NDArray[np.uint32]
    label: NDArray[np.uint32]
    value: NDArray[np.float64]
    first: NDArray[np.int64]
    size: NDArray[np.int64]


def empty_duals(tables: Tables) -> Duals:
    """Return arrays large enough for the dual weights of all samples."""
    M, Q = tables.codes.shape[1], tables.values.shape[1]
    return Duals(
        np.empty(M * Q, dtype=np.uint32),
        np.empty(M * Q, dtype=np.uint32),
        np.empty(M * Q),
        np.zeros(M + 1, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )


@kernel
def weigh(tables, softening, logits, temperature, duals):  # type: ignore[no-untyped-def]
    """Write the dual weights of the soft minimum at a point to `duals`, and return score, constant and soft weight.

    The score is the samples' part. The constant is the bound's: sum_m w_m lambda_{m,0} gamma; under CLL minus the
    weighted entropies of the lambda_m. The soft weight is what is not on its sample's largest lambda.
    """
    M, Q = logits.shape
    cap = softening.cap
    score = 0.0
    constant = 0.0
    soft = 0.0
    n_active = 0
    n = 0
    reach = (SPARSE_LIKELY if softening.smooth else SPARSE) * temperature
    for m in range(M):
        y = tables.true[m]
        own = logits[m, y]
        w = tables.weights[m]
        highest = -np.inf
        for c in range(Q):
            highest = maximum(highest, -np.inf if c == y else logits[m, c])
        if not softening.smooth and own - highest - cap >= reach:  # all weight is on gamma
            score += w * cap
            constant += w * cap
            continue
        low = cap
        least = y
        for c in range(Q):
            if c != y and own - logits[m, c] < low:
                low = own - logits[m, c]
                least = c
        begin = n
        # The smallest margin, or gamma, has the exponential 1; the sum of the others is kept apart for precision.
        rest = 0.0
        spread = 0.0
        for c in range(Q):
            if c == y:
                continue
            away = own - logits[m, c] - low
            if away < reach:
                e = 1.0
                if c != least:
                    e = np.exp(-away / temperature)
                    rest += e
                    spread += e * away
                duals.sample[n] = m
                duals.label[n] = c
                duals.value[n] = e
                n += 1
        zero = 1.0 if least == y else 0.0
        if least != y and cap - low < reach:
            zero = np.exp((low - cap) / temperature)
            rest += zero
            spread += zero * (cap - low)
        total = 1.0 + rest
        soft += w * rest / total
        if n > begin:
            mass = 0.0
            for t in range(begin, n):
                part = duals.value[t] * w / total
                duals.value[t] = -part
                mass += part
            duals.sample[n] = m
            duals.label[n] = y
            duals.value[n] = mass
            duals.first[n_active] = begin
            n_active += 1
            n += 1
        if softening.smooth:
            # H(lambda) = log total + sum lambda away / T: at T = 1 the score is low - log total.
            log_total = np.log1p(rest)
            score += w * (low - temperature * log_total)
            constant += w * (cap * zero / total - temperature * log_total - spread / total)
        else:
            score += w * low
            constant += w * cap * zero / total
    duals.first[n_active] = n
    duals.size[0] = n_active
    duals.size[1] = n
    return score, constant, soft


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _gradient_range(tables, duals, alive, out, begin, end):  # type: ignore[no-untyped-def]
    # Indices are unsigned: a check for negative ones would prevent the vectorisation of the loops.
    for first in range(0, duals.size[1], PLACES):
        _add_places(tables, duals, alive, out, begin, end, first, min(PLACES, duals.size[1] - first))


@kernel(inner=True, fastmath={"reassoc", "contract", "nsz"})
def _add_places(tables, duals, alive, out, begin, end, start, n):  # type: ignore[no-untyped-def]
    """Add the product of n dual weights from `start` on with the coefficients of the domains `begin` to `end` - 1."""
    Q = tables.values.shape[1]
    label, value = duals.label[start : start + n], duals.value[start : start + n]
    # The codes of the places in order: a domain would look each of them up again.
    codes = np.empty((tables.codes.shape[0], n), dtype=np.uint32)
    for row in range(len(codes)):
        for t in range(n):
            codes[row, t] = tables.codes[row, duals.sample[start + t]]
    own = np.zeros(n, dtype=np.uint32)
    if tables.two_tables:
        for a in range(duals.size[0]):
            t = duals.first[a + 1] - 1 - start
            if 0 <= t < n:
                own[t] = Q
    place = np.empty(n, dtype=np.uint32)
    mass = np.empty(0)
    flat = tables.values.reshape(tables.values.size)
    for d in range(begin, end):
        wanted = 0
        for x in range(tables.first[d], tables.first[d + 1]):
            if alive[tables.columns[tables.members[x]]]:
                wanted += 1
        if not wanted:
            continue
        far = apart(tables.two_tables, tables.sizes[d]) * Q
        size = tables.sizes[d] * Q + far
        for t in range(n):
            place[t] = label[t] + own[t] * np.uint32(tables.sizes[d])
        for w in range(tables.rows.shape[1]):
            row = tables.rows[d, w]
            if row < 0:
                break
            coded = codes[row]
            stride = np.uint32(tables.strides[d, w] * Q)
            for t in range(n):
                place[t] += stride * coded[t]
        # Gathering costs n look-ups for every column. Scattering costs n once, and then the table's size per column.
        scatter = wanted * n > n + n + wanted * size // 2
        if scatter:
            if len(mass) < size:
                mass = np.empty(size)
            for z in range(size):
                mass[z] = 0.0
            for t in range(n):
                mass[place[t]] += value[t]
        for x in range(tables.first[d], tables.first[d + 1]):
            k = tables.members[x]
            if not alive[tables.columns[k]]:
                continue
            table = np.uint64(tables.start[k] * Q)
            product = 0.0
            if scatter:
                for z in range(size):
                    product += mass[z] * flat[table + np.uint64(z)]
            else:
                for t in range(n):
                    product += value[t] * flat[table + np.uint64(place[t])]
            out[tables.columns[k]] += product


def add_gradient(
    tables: Tables, duals: Duals, alive: NDArray[np.bool_], out: NDArray[np.float64], parallel: bool
) -> None:
    """Add sum_{m,c} w_m lambda_{m,c} alpha_{m,c} to `out`, shape (P,), at the parent sets that are `alive`."""
    # Each column belongs to one domain, so no two threads write to the same place.
    in_parts(
        lambda begin, end: _gradient_range(tables, duals, alive, out, begin, end), len(tables.sizes), parallel
    )


@overload(add_gradient)
def _add_gradient(tables, duals, alive, out, parallel):  # type: ignore[no-untyped-def]
    return lambda tables, duals, alive, out, parallel: _gradient_range(
        tables, duals, alive, out, np.int64(0), len(tables.sizes)
    )


@kernel(inner=True)
def curvature_here(tables, duals, direction, temperature):  # type: ignore[no-untyped-def]
    """Return minus the second derivative of the softened score along `direction`, at the point of `duals`."""
    total = 0.0
    for a in range(duals.size[0]):
        last = duals.first[a + 1] - 1
        m = duals.sample[last]
        own = direction[m, duals.label[last]]
        mean = 0.0
        square = 0.0
        for t in range(duals.first[a], last):
            slope = own - direction[m, duals.label[t]]
            mean -= duals.value[t] * slope
            square -= duals.value[t] * slope * slope
        total += square - mean * mean / tables.weights[m]
    return total / temperature


@kernel(inner=True)
def slope_at(tables, softening, logits, direction, step, temperature):  # type: ignore[no-untyped-def]
    """Return the first and minus the second derivative of the softened score along `direction`, after a step."""
    M, Q = logits.shape
    cap = softening.cap
    reach = (SPARSE_LIKELY if softening.smooth else SPARSE) * temperature
    first = 0.0
    second = 0.0
    for m in range(M):
        y = tables.true[m]
        own = logits[m, y] + step * direction[m, y]
        low = np.inf
        for c in range(Q):
            if c != y:
                v = own - logits[m, c] - step * direction[m, c]
                if v < low:
                    low = v
        if low > cap + reach:
            continue
        low = min(low, cap)
        own_slope = direction[m, y]
        total = np.exp(max(-700.0, (low - cap) / temperature))
        mean = 0.0
        square = 0.0
        for c in range(Q):
            if c == y:
                continue
            away = own - logits[m, c] - step * direction[m, c] - low
            if away < reach:
                e = np.exp(-away / temperature)
                slope = own_slope - direction[m, c]
                total += e
                mean += e * slope
                square += e * slope * slope
        mean /= total
        first += tables.weights[m] * mean
        second += tables.weights[m] * (square / total - mean * mean)
    return first, second / temperature
