"""The parameters of the local search; docs/tuning.md shows them beside those of the engine."""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.util.parameters import parameter


@dataclass(frozen=True)
class ClimbTuning:
    """The parameters of a climb and of the restarts."""

    least_gain: float = parameter(
        1e-9,
        "nats (sample weights, under the classification rate)",
        "A change is made only if it gains more. With 0, rounding errors could let a climb cycle for ever.",
    )
    fewest_changes: int = parameter(
        2, "variables", "A restart gives at least this number of variables a random parent set."
    )
    most_changes: int = parameter(
        6, "variables", "A restart gives fewer than this number of variables a random parent set."
    )
    restarts: int = parameter(
        20, "climbs", "Number of perturbations of the best structure, unless the caller states another."
    )
    parallel_from: int = parameter(
        10_000_000,
        "coefficients",
        "A problem with more coefficients scores the changes of a variable in threads.",
    )
    sort_from: int = parameter(
        4,
        "pairs of states per sample",
        "Two columns with more pairs of states are counted by sorting instead of in a table.",
    )


TUNING = ClimbTuning()
