"""The thresholds for pruning a node and for fixing a parent set to 0, in nats from the incumbent.

The search and the verifier each compute scores both from the coefficients and from the data. All four have bounded
rounding errors (`milpbn.problem.rounding`). A pruned node or a fixed parent set must not lose a structure that is
better than the incumbent by any of these scores.
"""

from __future__ import annotations

from milpbn.claims.gap import target_gap, tolerance_of

#: A parent set is fixed to 0 if its bound is below the incumbent by at least this, and four errors.
FIXING_MARGIN = 1e-9
#: A node is pruned if its bound exceeds the incumbent by at most this share of the gap at which a search stops.
PRUNING_SHARE = 0.5


def fixing_threshold(incumbent: float, error: float) -> float:
    """Return the bound below which a parent set can be fixed to 0.

    `error` bounds the rounding error of a score. It counts four times, once for each of the four scores above.
    """
    return incumbent - FIXING_MARGIN - 4 * error


def pruning_threshold(incumbent: float, error: float) -> float:
    """Return the largest bound at which a node is pruned; `error` as for `fixing_threshold`."""
    return incumbent + PRUNING_SHARE * target_gap(incumbent, tolerance_of(error))
