"""Gaps between incumbent and bound, and the test whether the two prove an optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass

#: A structure is proved optimal when b - z <= OPTIMALITY * max(1, |z|).
OPTIMALITY = 1e-6


def is_optimal(objective: float, bound: float, error: float = 0.0) -> bool:
    """Whether the bound proves that the objective is optimal, even if the objective is `error` nats too high."""
    return math.isfinite(objective) and bound - objective + error <= OPTIMALITY * max(1.0, abs(objective))


@dataclass(frozen=True)
class Gap:
    """Distance between incumbent z and bound b.

    Attributes
    ----------
    absolute : float or None
        b - z in nats.
    relative_to_bound : float or None
        (b - z) / |b|. Table 1 of Peharz and Pernkopf (2012) prints it in percent.
    relative_to_incumbent : float or None
        (b - z) / |z|, what HiGHS and Gurobi print.
    """

    absolute: float | None = None
    relative_to_bound: float | None = None
    relative_to_incumbent: float | None = None

    @classmethod
    def between(cls, objective: float | None, bound: float | None) -> Gap:
        """Return the gaps between two numbers; a gap that they do not define is None."""
        if objective is None or bound is None:
            return cls()
        absolute = max(0.0, bound - objective)

        def ratio(denominator: float) -> float | None:
            if absolute == 0.0:
                return 0.0
            return absolute / abs(denominator) if abs(denominator) > 1e-9 else None

        return cls(absolute, ratio(bound), ratio(objective))
