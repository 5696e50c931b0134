"""Gaps between incumbent and bound, and the test whether the two prove an optimum."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from milpbn.util.budget import Limit

#: A structure is proved optimal when b - z is at most this many nats, or what a proof can reach (`tolerance_of`).
OPTIMALITY = 1e-6
#: A bound that is proved with rounding errors may lie above the best score by this many times the error of a score: the
#: bound on a single structure is its score and four errors, and up to two count against the incumbent.
PROVABLE = 8.0


def tolerance_of(error: float) -> float:
    """Return the largest b - z in nats that counts as proved, where scores have rounding errors of up to `error`.

    It does not depend on the size of the scores: a number that all structures share, such as the likelihood of rows
    that no structure explains, must not hide a better structure.
    """
    return max(OPTIMALITY, PROVABLE * error)


def target_gap(objective: float, tolerance: float) -> float:
    """Return the b - z at which a search for a proof stops, in nats.

    With heavy rows the tolerance covers the largest possible rounding errors. Smaller gaps can often be proved, so that
    a search goes on until the gap is small beside the score, too.
    """
    return min(tolerance, OPTIMALITY * max(1.0, abs(objective)))


def solver_tolerance(error: float, objective: float, shared: float, span: float) -> float:
    """Return the largest b - z in nats that counts as proved by a MILP solver, whose rows hold up to tolerances.

    `error` bounds the rounding error of a score, and `objective` is the score z. `shared` does not exceed what all
    structures share (`milpbn.problem.problem.Problem.shifted`). By the `span`, the terms of a score that the MILP
    computes by rows can differ between structures.
    """
    return max(tolerance_of(error), OPTIMALITY * min(abs(objective - shared), span))


def is_optimal(objective: float, bound: float, error: float = 0.0, tolerance: float = OPTIMALITY) -> bool:
    """Whether the bound proves that the objective is optimal, even if the objective is `error` nats too high."""
    return math.isfinite(objective) and bound - objective + error <= tolerance


def proves(objective: float | None, bound: float | None, tolerance: float | None, error: float = 0.0) -> bool:
    """Whether the numbers of a file prove an optimum; without a tolerance, as in old ones, it is relative to the score.

    Without a score or a bound they prove nothing.
    """
    if objective is None or bound is None:
        return False
    relative = OPTIMALITY * max(1.0, abs(objective))
    return is_optimal(objective, bound, error, relative if tolerance is None else tolerance)


@dataclass(frozen=True)
class Gap:
    """Distance between incumbent z and bound b."""

    #: b - z in nats.
    absolute: float | None = None
    #: (b - z) / |b|. Table 1 of Peharz and Pernkopf (2012) prints it in percent.
    relative_to_bound: float | None = None
    #: (b - z) / |z|, what HiGHS and Gurobi print.
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


class Target(NamedTuple):
    """The gaps at which a search may stop before a proof; 0 asks for a proof.

    They are relative to the bound, in nats, and in standard errors of the score. None stands for an unknown error.
    """

    gap_rel: float = 0.0
    gap_abs: float = 0.0
    gap_se: float = 0.0

    def reached(self, objective: float, bound: float, standard_error: float | None) -> Limit | None:
        """Return the limit at which a search with these numbers stops, or None."""
        gap = Gap.between(objective, bound)
        assert gap.absolute is not None
        relative = math.inf if gap.relative_to_bound is None else gap.relative_to_bound
        if gap.absolute <= self.gap_abs or relative <= self.gap_rel:
            return Limit.GAP
        return Limit.GAP_SE if gap.absolute <= self.gap_se * (standard_error or 0.0) else None

    def relative(self, objective: float | None, standard_error: float | None) -> float:
        """Return the largest gap relative to the bound at which a search with this positive score stops; 0 for none."""
        nats = max(self.gap_abs, self.gap_se * (standard_error or 0.0))
        share = 0.0 if objective is None or objective <= 0 else nats / (objective + nats)
        return max(self.gap_rel, share)


#: Nothing but a proof ends the search.
PROOF = Target()


def integral_of(trace: Iterable[tuple[float, float | None, float | None]], end: float) -> float:
    """Return the integral of min(1, gap relative to the bound) from 0 to `end`, of (seconds, incumbent, bound).

    Where there is no incumbent or no bound, the gap counts as 1.
    """
    total, last_t, last_gap = 0.0, 0.0, 1.0
    for t, z, b in trace:
        total += last_gap * (t - last_t)
        ratio = Gap.between(z, b).relative_to_bound
        last_t, last_gap = t, 1.0 if ratio is None else min(1.0, ratio)
    return total + last_gap * max(0.0, end - last_t)
