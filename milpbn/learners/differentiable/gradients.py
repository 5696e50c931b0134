"""Loss and gradients of one batch: Roth & Pernkopf (2020, R20), section 3.

A structure is sampled by the Gumbel-max trick (11). The gradient of the expected loss (10) is estimated by the
straight-through estimator (12), which replaces the argmax by the softmax (13) at a temperature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from milpbn.learners.differentiable.layout import Layout
from milpbn.learners.differentiable.losses import sample_loss
from milpbn.learners.differentiable.vectorised import REASSOCIATE, exponential, subtract_products, sum_states
from milpbn.util.compiled import kernel


class Work(NamedTuple):
    """Buffers of a step."""

    #: The batch, with one row per variable. Shape (V, B).
    codes: NDArray[np.int32]
    #: Factors of the samples' losses. Shape (B,).
    scale: NDArray[np.float64]
    #: log p(x, c), and the derivatives of the loss with respect to these values. Shape (B, C).
    logits: NDArray[np.floating]
    slopes: NDArray[np.floating]
    #: Position of each sample's first value in one table. Shape (B,).
    places: NDArray[np.uint32]
    #: Samples whose loss has a derivative for every class, and samples whose loss has one for the true class only.
    #: Shape (B,).
    doubtful: NDArray[np.int64]
    settled: NDArray[np.int64]
    #: The sampled family of each variable. Shape (V,).
    chosen: NDArray[np.int64]
    #: dL/ds, the derivatives of the loss with respect to the one-hot choice s of the families. Shape (F,).
    choice_slopes: NDArray[np.float64]
    #: Straight-through estimate of the derivative with respect to Phi. Shape (F,).
    phi_gradient: NDArray[np.float64]
    #: Derivative with respect to the unnormalised log-probabilities; 0 outside the chosen families. Shape (size,).
    gradient: NDArray[np.floating]
    #: One value per element of a table, and one value per distribution or class. As long as the largest tables of a
    #: variable.
    cells: NDArray[np.floating]
    sums: NDArray[np.floating]


def make_work(layout: Layout, batch_size: int, n_classes: int, dtype: DTypeLike) -> Work:
    """Return buffers for batches of up to `batch_size` samples."""
    V, F = len(layout.first) - 1, layout.n_families
    largest = int(np.diff(layout.start[layout.first]).max())
    return Work(
        codes=np.zeros((V, batch_size), dtype=np.int32),
        scale=np.zeros(batch_size),
        logits=np.zeros((batch_size, n_classes), dtype=dtype),
        slopes=np.zeros((batch_size, n_classes), dtype=dtype),
        places=np.zeros(batch_size, dtype=np.uint32),
        doubtful=np.zeros(batch_size, dtype=np.int64),
        settled=np.zeros(batch_size, dtype=np.int64),
        chosen=np.zeros(V, dtype=np.int64),
        choice_slopes=np.zeros(F),
        phi_gradient=np.zeros(F),
        gradient=np.zeros(layout.size, dtype=dtype),
        cells=np.zeros(largest, dtype=dtype),
        sums=np.zeros(max(largest, n_classes), dtype=dtype),
    )


@kernel
def sample_families(layout, phi, noise, chosen):  # type: ignore[no-untyped-def]
    """Sample one family per variable by the Gumbel-max trick, R20 (11); `phi`, shape (F,), may be unnormalised."""
    for v in range(len(chosen)):
        best = layout.first[v]
        for f in range(best + 1, layout.first[v + 1]):
            if phi[f] + noise[f] > phi[best] + noise[best]:
                best = f
        chosen[v] = best


@kernel
def _find_places(layout, f, work, B):  # type: ignore[no-untyped-def]
    """Write the positions of the first values of B samples in the table of family f."""
    places = work.places
    places[:B] = 0
    for t in range(layout.length[f]):
        column, stride = work.codes[layout.members[f, t]], layout.strides[f, t]
        for b in range(B):
            places[b] += np.uint32(stride) * np.uint32(column[b])


@kernel(fastmath=REASSOCIATE)
def _add_logits(layout, theta, work, B):  # type: ignore[no-untyped-def]
    """Sum up log p(x, c) of the chosen families, R20 (9)."""
    C = np.uint64(work.logits.shape[1])
    work.logits[:B] = 0.0
    logits = work.logits
    for f in work.chosen:
        _find_places(layout, f, work, B)
        values = theta[layout.start[f] : layout.start[f + 1]]
        if layout.entries[f] == 1:
            for b in range(B):
                for c in range(C):  # loops compile sooner than slices
                    logits[b, c] += values[work.places[b]]
            continue
        for b in range(np.uint64(B)):
            place = np.uint64(work.places[b])
            for c in range(C):
                logits[b, c] += values[place + c]


@kernel
def _weigh_losses(loss, work, B):  # type: ignore[no-untyped-def]
    """Return the sum of the scaled losses; write their derivatives and the lists of doubtful and settled samples."""
    C = work.logits.shape[1]
    logits, slope = np.empty(C), np.empty(C)
    total, n_doubtful, n_settled = 0.0, 0, 0
    label = work.codes[-1]
    for b in range(B):
        for c in range(C):
            logits[c] = work.logits[b, c]
        value, others = sample_loss(loss, logits, label[b], slope)
        total += work.scale[b] * value
        for c in range(C):
            work.slopes[b, c] = work.scale[b] * slope[c]
        if others:
            work.doubtful[n_doubtful] = b
            n_doubtful += 1
        elif slope[label[b]] != 0.0:
            work.settled[n_settled] = b
            n_settled += 1
    return total, n_doubtful, n_settled


@kernel(fastmath=REASSOCIATE)
def _choice_slope(layout, f, theta, work, n_doubtful, n_settled):  # type: ignore[no-untyped-def]
    """Return dL/ds of family f: the sum of its log-probabilities times the derivatives of the loss."""
    C = np.uint64(work.logits.shape[1])
    label, slopes = work.codes[-1], work.slopes
    values, products = theta[layout.start[f] : layout.start[f + 1]], work.sums[:C]
    products[:] = 0.0
    for x in range(n_doubtful):
        b = np.uint64(work.doubtful[x])
        place = np.uint64(work.places[b])
        # With one sum per class the compiler uses vector instructions; with a single sum it does not.
        for c in range(C):
            products[c] += values[place + c] * slopes[b, c]
    total = 0.0
    for c in range(C):
        total += products[c]
    for x in range(n_settled):
        b = np.uint64(work.settled[x])
        y = np.uint64(label[b])
        total += values[np.uint64(work.places[b]) + y] * slopes[b, y]
    return total


@kernel
def _choice_slope_without_class(layout, f, theta, work, n_doubtful, n_settled):  # type: ignore[no-untyped-def]
    """Return dL/ds as `_choice_slope` does, for a family with one value per cell for all classes."""
    label, slopes = work.codes[-1], work.slopes
    values = theta[layout.start[f] : layout.start[f + 1]]
    total = 0.0
    for x in range(n_doubtful):
        b = work.doubtful[x]
        total += values[work.places[b]] * slopes[b].sum()
    for x in range(n_settled):
        b = work.settled[x]
        total += values[work.places[b]] * slopes[b, label[b]]
    return total


@kernel(fastmath=REASSOCIATE)
def _scatter(layout, f, work, n_doubtful, n_settled):  # type: ignore[no-untyped-def]
    """Add to the gradient the derivatives of the loss with respect to the normalised log-probabilities of family f."""
    C = np.uint64(work.logits.shape[1])
    shared = layout.entries[f] == 1
    label, slopes = work.codes[-1], work.slopes
    gradient = work.gradient[layout.start[f] : layout.start[f + 1]]
    for x in range(n_doubtful):
        b = np.uint64(work.doubtful[x])
        place = np.uint64(work.places[b])
        if shared:
            gradient[place] += slopes[b].sum()
            continue
        for c in range(C):
            gradient[place + c] += slopes[b, c]
    for x in range(n_settled):
        b = np.uint64(work.settled[x])
        y, place = np.uint64(label[b]), np.uint64(work.places[b])
        gradient[place if shared else place + y] += slopes[b, y]


@kernel(fastmath=REASSOCIATE, error_model="numpy")
def _through_normalisation(layout, f, theta, work):  # type: ignore[no-untyped-def]
    """Convert the gradient of family f to that of the unnormalised log-probabilities: subtract p times its sum."""
    begin, end, S, W = layout.start[f], layout.start[f + 1], layout.states[f], layout.lanes[f]
    values, gradient, probabilities = theta[begin:end], work.gradient[begin:end], work.cells[: end - begin]
    for k in range(len(values)):
        probabilities[k] = exponential(values[k])
    sum_states(gradient, S, W, work.sums)
    subtract_products(gradient, probabilities, work.sums, S, W)


@kernel
def _straight_through(layout, v, phi, noise, tau, work):  # type: ignore[no-untyped-def]
    """Write the derivative with respect to Phi_v, which is dL/ds times the Jacobian of the softmax (13)."""
    first, last = layout.first[v], layout.first[v + 1]
    shares = work.phi_gradient
    top = -np.inf
    for f in range(first, last):
        top = max(top, (phi[f] + noise[f]) / tau)
    mass, mean = 0.0, 0.0
    for f in range(first, last):
        shares[f] = np.exp((phi[f] + noise[f]) / tau - top)
        mass += shares[f]
        mean += shares[f] * work.choice_slopes[f]
    mean /= mass
    for f in range(first, last):
        work.phi_gradient[f] = shares[f] / mass * (work.choice_slopes[f] - mean) / tau


@kernel
def batch_gradients(layout, theta, phi, loss, noise, tau, work, B):  # type: ignore[no-untyped-def]
    """Sample a structure, return the loss of a batch under it, and write the gradients into `work`.

    Parameters
    ----------
    theta : float array, shape (size,)
        Normalised log-probabilities.
    phi : float64 array, shape (F,)
        Unnormalised log-probabilities of the families.
    noise : float64 array, shape (F,)
        Gumbel(0, 1) samples.
    tau : float
        Temperature of the softmax that replaces the argmax.
    work : Work
        Before the call, ``codes[:, :B]`` and ``scale[:B]`` contain the batch, and `gradient` is 0. The call writes
        `chosen`, `choice_slopes`, `phi_gradient` and `gradient`.
    """
    sample_families(layout, phi, noise, work.chosen)
    _add_logits(layout, theta, work, B)
    total, n_doubtful, n_settled = _weigh_losses(loss, work, B)
    for v in range(len(work.chosen)):
        first, last = layout.first[v], layout.first[v + 1]
        for f in range(first, last):
            if last - first > 1 or f == work.chosen[v]:
                _find_places(layout, f, work, B)
            if last - first > 1 and layout.entries[f] == 1:
                work.choice_slopes[f] = _choice_slope_without_class(
                    layout, f, theta, work, n_doubtful, n_settled
                )
            elif last - first > 1:
                work.choice_slopes[f] = _choice_slope(layout, f, theta, work, n_doubtful, n_settled)
            if f == work.chosen[v]:
                _scatter(layout, f, work, n_doubtful, n_settled)
                _through_normalisation(layout, f, theta, work)
        if last - first > 1:
            _straight_through(layout, v, phi, noise, tau, work)
    return total
