"""The optimiser Adam (Kingma & Ba 2015) for all tables, in one pass that also normalises them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from milpbn.learners.differentiable.layout import Layout
from milpbn.learners.differentiable.vectorised import (
    REASSOCIATE,
    exponential,
    logarithm,
    subtract_sums,
    sum_states,
)
from milpbn.util.compiled import kernel

#: Decay rates and the small constant of Adam, with the values that its authors recommend.
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
#: Moments of at most this size are set to 0. They are too small to change a parameter, and would later become denormal
#: numbers, which are slow.
_VANISHING = 1e-30


class AdamState(NamedTuple):
    """Parameters and moments, which every step changes in place."""

    #: Log-probabilities, and their first and second moments. Roth & Pernkopf (2020) store unnormalised tables and
    #: normalise the values that they read. Here every step normalises all tables. The results are equal up to rounding,
    #: because a constant added to the log-probabilities of a distribution changes neither the loss nor the gradient.
    #: Shape (size,).
    theta: NDArray[np.floating]
    theta_first: NDArray[np.floating]
    theta_second: NDArray[np.floating]
    #: Unnormalised log-probabilities of the families, and their moments. Shape (F,).
    phi: NDArray[np.float64]
    phi_first: NDArray[np.float64]
    phi_second: NDArray[np.float64]
    #: -1 for a table that the next step changes. A table whose gradient and first moments are all 0 does not change and
    #: is skipped; the number counts the skipped steps. When the table changes again, its second moments are decayed for
    #: these steps. Shape (F,).
    idle: NDArray[np.int64]
    #: Number of steps taken. Shape (1,).
    steps: NDArray[np.int64]


def initial_state(layout: Layout, theta: NDArray[np.float64], dtype: DTypeLike) -> AdamState:
    """Return the state before the first step, with the given tables, Phi = 0 (uniform distributions) and moments 0."""
    F = layout.n_families
    return AdamState(
        theta=theta.astype(dtype),
        theta_first=np.zeros(layout.size, dtype=dtype),
        theta_second=np.zeros(layout.size, dtype=dtype),
        phi=np.zeros(F),
        phi_first=np.zeros(F),
        phi_second=np.zeros(F),
        idle=np.zeros(F, dtype=np.int64),
        steps=np.zeros(1, dtype=np.int64),
    )


@kernel(fastmath=REASSOCIATE, error_model="numpy")
def _move(values, first, second, gradient, decay, rate, root, exponentials):  # type: ignore[no-untyped-def]
    """Make one step of a table with a gradient, and write the exponentials of its values."""
    kind = values.dtype.type
    b1, b2, eps, least = kind(BETA1), kind(BETA2) * decay, kind(EPSILON), kind(_VANISHING)
    c1, c2 = kind(1.0 - BETA1), kind(1.0 - BETA2)
    for k in range(len(values)):
        g = gradient[k]
        gradient[k] = kind(0.0)
        m = b1 * first[k] + c1 * g
        u = b2 * second[k] + c2 * g * g
        m = m if abs(m) > least else kind(0.0)
        u = u if u > least else kind(0.0)
        first[k], second[k] = m, u
        values[k] -= rate * m / (np.sqrt(u) * root + eps)
        exponentials[k] = exponential(values[k])


@kernel(fastmath=REASSOCIATE, error_model="numpy")
def _drift(values, first, second, rate, root, exponentials):  # type: ignore[no-untyped-def]
    """Make one step of a table whose gradient is 0, and write the exponentials of its values.

    Returns the sum of the absolute first moments.
    """
    kind = values.dtype.type
    b1, b2, eps, least = kind(BETA1), kind(BETA2), kind(EPSILON), kind(_VANISHING)
    left = kind(0.0)
    for k in range(len(values)):
        m = b1 * first[k]
        u = b2 * second[k]
        m = m if abs(m) > least else kind(0.0)
        u = u if u > least else kind(0.0)
        first[k], second[k] = m, u
        left += abs(m)
        values[k] -= rate * m / (np.sqrt(u) * root + eps)
        exponentials[k] = exponential(values[k])
    return left


@kernel(fastmath=REASSOCIATE, error_model="numpy")
def _normalise(values, exponentials, S, W, sums):  # type: ignore[no-untyped-def]
    """Normalise: subtract from every distribution the logarithm of the sum of the exponentials of its S states."""
    sum_states(exponentials, S, W, sums)
    for k in range(len(values) // S):
        sums[k] = logarithm(sums[k])
    subtract_sums(values, sums, S, W)


@kernel
def _move_phi(layout, state, gradient, rate, first_share, root):  # type: ignore[no-untyped-def]
    for v in range(len(layout.first) - 1):
        if layout.first[v + 1] - layout.first[v] == 1:
            continue
        for f in range(layout.first[v], layout.first[v + 1]):
            g = gradient[f]
            state.phi_first[f] = BETA1 * state.phi_first[f] + (1.0 - BETA1) * g
            state.phi_second[f] = BETA2 * state.phi_second[f] + (1.0 - BETA2) * g * g
            move = rate * state.phi_first[f] / first_share
            state.phi[f] -= move / (np.sqrt(state.phi_second[f]) * root + EPSILON)


@kernel
def adam_step(layout, state, work, rate, structure_rate):  # type: ignore[no-untyped-def]
    """Make one step with the gradients in `work`, and set the gradient of Theta to 0.

    The state is changed in place. `batch_gradients` has written `chosen`, `gradient` and `phi_gradient` of the `Work`.
    The rates are those of Theta and Phi.
    """
    state.steps[0] += 1
    first_share = 1.0 - BETA1 ** state.steps[0]
    root = 1.0 / np.sqrt(1.0 - BETA2 ** state.steps[0])
    kind = state.theta.dtype.type
    step, scale = kind(rate / first_share), kind(root)
    for v in range(len(work.chosen)):
        f = layout.first[v]
        while f < layout.first[v + 1]:
            g = f + 1
            chosen = f == work.chosen[v]
            if not chosen and state.idle[f] >= 0:
                state.idle[f] += 1
                f = g
                continue
            # Neighbours without a gradient move together.
            while not chosen and g < layout.first[v + 1] and g != work.chosen[v] and state.idle[g] < 0:
                g += 1
            begin, end = layout.start[f], layout.start[g]
            values, exponentials = state.theta[begin:end], work.cells[: end - begin]
            first, second = state.theta_first[begin:end], state.theta_second[begin:end]
            if chosen:
                decay = kind(BETA2 ** max(state.idle[f], 0))
                state.idle[f] = -1
                gradient = work.gradient[begin:end]
                _move(values, first, second, gradient, decay, step, scale, exponentials)
            elif _drift(values, first, second, step, scale, exponentials) == 0.0:
                state.idle[f:g] = 0
            for h in range(f, g):
                here, there = layout.start[h] - begin, layout.start[h + 1] - begin
                _normalise(
                    values[here:there], exponentials[here:there], layout.states[h], layout.lanes[h], work.sums
                )
            f = g
    _move_phi(layout, state, work.phi_gradient, structure_rate, first_share, root)
