"""How far to go along a line: the maximum of the softened score, found roughly."""

from __future__ import annotations

from numba import njit

from milpbn.bounds.kernels import curvature_here, slope_at


@njit(cache=True, nogil=True)
def step_length(model, point, temperature, slope, linear_slope, longest):  # type: ignore[no-untyped-def]
    """Return a step in (0, longest] that takes most of what the softened score gains along `direction`."""
    curvature = curvature_here(model.tables, point.duals, point.direction, temperature)
    step = longest if curvature * longest <= slope else slope / curvature
    low, high = 0.0, longest
    for _ in range(6):
        first, second = slope_at(
            model.tables, model.softening, point.logits, point.direction, step, temperature
        )
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
