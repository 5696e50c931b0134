"""Line search: an approximate maximum of the softened score along a direction."""

from __future__ import annotations

from milpbn.engine.tuning import TUNING
from milpbn.problem.duals import curvature_here, slope_at
from milpbn.util.compiled import kernel

#: Parameters under names that kernels can read; see `milpbn.engine.tuning`.
LINE_STEPS, LINE_ACCURACY = TUNING.steps.line_steps, TUNING.steps.line_accuracy


@kernel
def step_length(  # type: ignore[no-untyped-def]  # numba infers the types
    tables, softening, duals, logits, direction, temperature, slope, linear_slope, longest
):
    """Return a step in (0, longest] that achieves most of the softened score's possible gain along `direction`.

    Parameters
    ----------
    tables, softening
        Coefficients, and the shape of a sample's part of the score.
    duals : Duals
        Dual weights at the logits.
    logits, direction : float64 arrays, shape (M, Q)
        Joint log-probabilities at the start of the line, and their change per unit step.
    temperature : float
        Temperature of the softening, in nats.
    slope : float
        Slope of the softened score at the start.
    linear_slope : float
        Slope of its linear terms.
    longest : float
        Longest step.
    """
    curvature = curvature_here(tables, duals, direction, temperature)
    step = longest if curvature * longest <= slope else slope / curvature
    low, high = 0.0, longest
    for _ in range(LINE_STEPS):
        first, second = slope_at(tables, softening, logits, direction, step, temperature)
        first += linear_slope
        if abs(first) <= LINE_ACCURACY * slope or (first > 0 and step == longest):
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
