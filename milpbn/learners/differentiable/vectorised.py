"""Exponential, logarithm and sums over tables that the compiler translates to vector instructions.

Without them a training step would spend most of its time in calls of the C library.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from milpbn.util.compiled import kernel

#: LLVM's flags that allow sums and products to be rearranged; NaN and infinity keep their meaning.
REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}

# exp(x) = 2^n exp(r) with |r| <= log(2) / 2; log(2) is split in two parts so that r is exact to single precision.
_PER_LOG2 = np.float32(1.0 / math.log(2.0))
_LOG2_HIGH = np.float32(0.693359375)
_LOG2_LOW = np.float32(math.log(2.0) - 0.693359375)
#: Below this x, exp(x) is not a normal number in single precision; above `_MOST` it is too large.
_LEAST = np.float32(-87.0)
_MOST = np.float32(88.0)
_HALF, _ONE = np.float32(0.5), np.float32(1.0)
_TERMS = tuple(np.float32(1.0 / math.factorial(k)) for k in range(2, 8))

#: The bits of sqrt(1/2), and twice the coefficients 1/3, 1/5, ... of atanh: log(y) = 2 atanh((y - 1) / (y + 1)).
_ROOT_HALF = np.int32(np.float32(math.sqrt(0.5)).view(np.int32))
_ODD = tuple(np.float32(2.0 / k) for k in (3, 5, 7, 9))
_TWO = np.float32(2.0)


# Rearrangement is not allowed here: it would merge the two parts of log(2).
@kernel(fastmath={"contract"}, error_model="numpy")
def _exponential_single(x):  # type: ignore[no-untyped-def]
    x = min(max(x, _LEAST), _MOST)
    n = np.floor(x * _PER_LOG2 + _HALF)
    r = x - n * _LOG2_HIGH - n * _LOG2_LOW
    p = _TERMS[5]
    p = p * r + _TERMS[4]
    p = p * r + _TERMS[3]
    p = p * r + _TERMS[2]
    p = p * r + _TERMS[1]
    p = p * r + _TERMS[0]
    p = p * r * r + r + _ONE
    return p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


def exponential(x: Any) -> Any:
    """Return exp(x) in a kernel; in single precision with a relative error of 2e-7, and x clipped to [-87, 88]."""
    return np.exp(x)


@overload(exponential)
def _exponential(x):  # type: ignore[no-untyped-def]
    if x == types.float32:
        return lambda x: _exponential_single(x)
    return lambda x: math.exp(x)


@kernel(fastmath={"contract"}, error_model="numpy")
def _logarithm_single(x):  # type: ignore[no-untyped-def]
    bits = np.float32(x).view(np.int32)  # x = 2^n y with y in [sqrt(1/2), sqrt(2))
    n = np.int32(np.int32(bits - _ROOT_HALF) >> np.int32(23))
    y = np.int32(bits - np.int32(n << np.int32(23))).view(np.float32)
    s = (y - _ONE) / (y + _ONE)
    q = s * s
    p = _ODD[3]
    p = p * q + _ODD[2]
    p = p * q + _ODD[1]
    p = p * q + _ODD[0]
    log_y = s * (_TWO + q * p)
    return np.float32(n) * _LOG2_HIGH + (np.float32(n) * _LOG2_LOW + log_y)


def logarithm(x: Any) -> Any:
    """Return log(x) of a normal positive number in a kernel; in single precision with a relative error of 2e-7."""
    return np.log(x)


@overload(logarithm)
def _logarithm(x):  # type: ignore[no-untyped-def]
    if x == types.float32:
        return lambda x: _logarithm_single(x)
    return lambda x: math.log(x)


# Tables are flat arrays of shape (blocks, S, W). Indices are unsigned, which spares the check for negative ones.


@kernel(fastmath=REASSOCIATE)
def sum_states(values, S, W, sums):  # type: ignore[no-untyped-def]
    """Sum values of shape (blocks, S, W) over their middle axis into `sums`, shape (blocks, W)."""
    S, W = np.uint64(S), np.uint64(W)
    for block in range(np.uint64(len(values)) // (S * W)):
        total, place = block * W, block * S * W
        for w in range(W):
            sums[total + w] = values[place + w]
        for _ in range(np.uint64(1), S):
            place += W
            for w in range(W):
                sums[total + w] += values[place + w]


@kernel(fastmath=REASSOCIATE)
def subtract_sums(values, sums, S, W):  # type: ignore[no-untyped-def]
    """Subtract `sums`, shape (blocks, W), from every state of `values`, shape (blocks, S, W)."""
    S, W = np.uint64(S), np.uint64(W)
    place = np.uint64(0)
    for block in range(np.uint64(len(values)) // (S * W)):
        for _ in range(S):
            for w in range(W):
                values[place + w] -= sums[block * W + w]
            place += W


@kernel(fastmath=REASSOCIATE)
def subtract_products(values, factors, sums, S, W):  # type: ignore[no-untyped-def]
    """Subtract `factors` * `sums` from `values`, where `factors` has the shape of `values`; see `subtract_sums`."""
    S, W = np.uint64(S), np.uint64(W)
    place = np.uint64(0)
    for block in range(np.uint64(len(values)) // (S * W)):
        for _ in range(S):
            for w in range(W):
                values[place + w] -= factors[place + w] * sums[block * W + w]
            place += W
