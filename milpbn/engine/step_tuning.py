"""The search parameters of temperature, steps and multipliers; `milpbn.engine.tuning` has all parameters."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.util.parameters import parameter

WARMER = '"A node starts warmer than its parent ended, and cools by Newton\'s success."'
_NEWTON = '"Newton steps over parent sets."'


@dataclass(frozen=True)
class TemperatureTuning:
    """The temperature of the softened score, whose dual weights give the bounds (compiled into the steps).

    The *waste* is the part of the bound's distance to the score at the point that is due to the temperature. Further
    steps can remove the other part only. The temperature changes so that both parts stay in balance.
    """

    first: float = parameter(0.2, "share of gamma", "The first temperature, and the highest one of a node.")
    lowest: float = parameter(
        1e-6, "share of gamma", "The lowest temperature. The steps end if none of them gains at it."
    )
    good_step: float = parameter(
        0.6, "share of a Newton step", "A step that goes further than this is a good step.", WARMER
    )
    most_waste: float = parameter(
        0.5,
        "share of what steps can gain",
        "After a good step, the temperature falls if the waste exceeds this and `target_waste`.",
        WARMER,
    )
    target_waste: float = parameter(
        0.7,
        "share of the distance between bound and score at which the steps end",
        "After a good step, the temperature falls to where the waste is expected to be this.",
        WARMER,
    )
    fastest_fall: float = parameter(
        0.4, "factor", "The factor of the temperature after a good step is at least this."
    )
    high_waste: float = parameter(
        3.0, "times what steps can gain", "After any other step, a higher waste calls for `fast_fall`."
    )
    fast_fall: float = parameter(
        0.6, "factor", "Factor of the temperature if the waste is above `high_waste`."
    )
    slow_fall: float = parameter(
        0.85,
        "factor",
        "Factor of the temperature if the waste is below `high_waste` but above what steps can gain.",
    )
    low_waste: float = parameter(
        0.3,
        "times what steps can gain",
        "The temperature rises after a short step if the waste is below this.",
        WARMER,
    )
    short_step: float = parameter(
        0.1, "share of a Newton step", "A step that goes less far than this is a short step.", WARMER
    )
    rise: float = parameter(1.2, "factor", "Factor of the temperature when it rises.")
    converged_fall: float = parameter(
        0.2, "factor", "Factor of the temperature when no step gains at the current one."
    )
    warmer_start: float = parameter(
        1.5,
        "factor",
        "Children start at the parent's first temperature times this if its second step was poor.",
        WARMER,
    )
    colder_start: float = parameter(
        0.5,
        "factor",
        "Children start at the parent's first temperature times this if its second step was full.",
        WARMER,
    )
    poor_step: float = parameter(
        0.4, "share of a Newton step", "A second step that goes less far than this is poor.", WARMER
    )
    full_step: float = parameter(
        0.9, "share of a Newton step", "A second step that goes further than this is full.", WARMER
    )


@dataclass(frozen=True)
class StepTuning:
    """Newton and Frank-Wolfe steps, at the root and in the tree (compiled into the steps)."""

    left_to_branching: float = parameter(
        0.2,
        "share of the distance from the parent's bound to the score at the point",
        "The steps at a child end when they can gain less than this, because branching can gain more.",
        '"Steps end relative to what branching can gain."',
    )
    refresh: int = parameter(
        64,
        "steps",
        "The logits are computed anew after this number of steps, so that rounding errors do not add up.",
    )
    most_vertices: int = parameter(600, "vertices", "A point has at most this number of vertices.")
    most_new: int = parameter(100, "vertices", "One Newton step adds at most this number of vertices.")
    smallest_share: float = parameter(
        1e-12, "share of the point", "A vertex with a smaller share is dropped."
    )
    part_of_gain: float = parameter(
        0.05,
        "share of the first gap",
        "The pairwise steps on a Newton step's model end when its gap is smaller than this.",
        _NEWTON,
    )
    steps_per_vertex: int = parameter(
        20,
        "pairwise steps per vertex",
        "The pairwise steps on a Newton step's model end after this number.",
        _NEWTON,
    )
    newton_worth: int = parameter(
        120,
        "parent sets",
        "A Newton step over n parent sets is taken only if n^2 is at most this times the number of allowed ones.",
        _NEWTON,
    )
    curvature_block: int = parameter(
        4096, "dual weights", "The curvature is summed over blocks of this size, which stay in the cache."
    )
    line_steps: int = parameter(6, "steps", "A line search takes at most this number of steps.")
    line_accuracy: float = parameter(
        0.2, "share of the first slope", "A line search ends when the slope is at most this."
    )


@dataclass(frozen=True)
class MultiplierTuning:
    """Lagrange multipliers of inequalities: a linear program at the root, descent at the nodes."""

    sweeps: int = parameter(
        4, "rounds", "At a node, all multipliers are changed at most this number of times."
    )
    rows_at_a_time: int = parameter(16, "rows", "Multipliers changed between two checks of the clock.")
    trials: int = parameter(
        12, "evaluations", "At most this number for one change of a multiplier (compiled)."
    )
    least_fall: float = parameter(
        1e-9, "share of the bound", "A smaller fall of the bound is not worth another trial (compiled)."
    )
