"""The gap between a proved bound and the score of another structure, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from milpbn.claims.result import Result
    from milpbn.learners.appraisal import Suboptimality


def describe_gap(found: Suboptimality, result: Result, width: int = 7) -> list[str]:
    """Return lines with score, bound and gap of a structure, and the score of the result's own structure.

    The labels are padded to `width` characters.
    """
    from milpbn.solving.progress import among_lines, show_gap

    lines = [
        f"{'score':{width}}{found.score:.6f} nats  ({result.described_score})",
        f"{'bound':{width}}{found.bound:.6f} nats  (the result says {result.bound_source})",
        *among_lines(result.among, width),
    ]
    if found.gap is None:
        return [
            *lines,
            f"{'gap':{width}}not stated: {found.reason}, so the bound does not hold for this structure.",
        ]
    lines.append(
        f"{'gap':{width}}{found.gap.absolute:.6f} nats; {show_gap(found.gap.relative_to_bound)} of the bound"
    )
    if result.objective is not None:
        lines.append(f"{'best':{width}}{result.objective:.6f} nats, the structure of the result")
    return lines
