"""How far to go along a line: the maximum of the softened score, found roughly."""

from __future__ import annotations

from milpbn.bounds.kernels import curvature_here, slope_at
from milpbn.compiled import kernel


@kernel
def step_length(  # type: ignore[no-untyped-def]  # numba infers the types
    tables, softening, duals, logits, direction, temperature, slope, linear_slope, longest
):
    """Return a step in (0, longest] that takes most of what the softened score gains along `direction`.

    Parameters
    ----------
    tables, softening
        Coefficients, and what is softened.
    duals : Duals
        Weights at the logits.
    logits, direction : float64 arrays, shape (M, Q)
        Where the line begins, and where it goes.
    temperature : float
        Of the softening.
    slope : float
        Of the softened score at the beginning,
    linear_slope : float
        and of its linear terms.
    longest : float
        Longest step.
    """
    curvature = curvature_here(tables, duals, direction, temperature)
    step = longest if curvature * longest <= slope else slope / curvature
    low, high = 0.0, longest
    for _ in range(6):
        first, second = slope_at(tables, softening, logits, direction, step, temperature)
        first += linear_slope
        if abs(first) <= 0.2 * slope or (first > 0 and step == longest):
            break
        if first > 0:
            low = step
        else:
            high = step
        newton = step + first / second if second > 0 else (low if first < 0 else high)
        inner = 0.1 * (high - low)
        step = newton if low + inner < newton < high - inner else 0.5 * (low + high)
        if first > 0 and high == longest and newton >= longest:
            step = longest
    return step
