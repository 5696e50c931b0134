"""Printed tables of the rows of a comparison of learners."""

from __future__ import annotations

from collections.abc import Sequence

from milpbn.learners.rows import ComparisonRow, reference_row
from milpbn.network.classifier import score_of
from milpbn.network.discrimination import LEADING, NAMES
from milpbn.problem.class_free import among
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.registry import margin_scores
from milpbn.problem.scores.spec import Score
from milpbn.solving.progress import show_gap
from milpbn.util.printing import aligned


def show_detection(
    rows: Sequence[ComparisonRow], positive: str | None, rarest_share: float | None
) -> list[str]:
    """Return the table of how well classes are told apart; no lines without test rows."""
    known = [row for row in rows if any(getattr(row, key) is not None for key in NAMES)]
    if not known:
        return []
    rarest = "" if rarest_share is None else f" (the rarest class has {100 * rarest_share:.1f} %)"
    found = "each class against all others, means" if positive is None else f"detecting {positive}"
    lines = [["", *(head for key in NAMES for head in _heads(key))]]
    for row in known:
        cells = [row.name]
        for key in NAMES:
            value, (low, high) = getattr(row, key), row.intervals.get(key, (None, None))
            cells.append("-" if value is None else f"{value:.3f}")
            if key in LEADING:
                cells.append("-" if low is None or high is None else f"{low:.3f} to {high:.3f}")
        lines.append(cells)
    return [found + rarest, *aligned(lines, left=1)]


def _heads(key: str) -> list[str]:
    return [NAMES[key], "95 % interval"] if key in LEADING else [NAMES[key]]


def show(rows: Sequence[ComparisonRow], *, raw: bool = False) -> str:
    """Return the printed table; under it the score and bound that scores and gaps refer to, and the notes.

    On `raw` columns there are no scores, and each gap is that of a recipe's own search.
    """
    weighted = any(row.unweighted is not None for row in rows)
    head: tuple[str, ...] = (
        *(
            "",
            "test %",
            "95 % interval",
            *(("rows %",) if weighted else ()),
            "log-loss",
            "Brier",
            "training %",
        ),
        *(("parameters", "gap") if raw else ("arcs", "parameters", "score", "gap", "of bound")),
        "seconds",
    )
    lines = [head]
    for row in rows:
        low, high = row.intervals.get("test", (None, None))
        lines.append(
            (
                row.name,
                _percent(row.test),
                "-" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}",
                *([_percent(row.unweighted)] if weighted else []),
                "-" if row.log_loss is None else f"{row.log_loss:.4f}",
                "-" if row.brier is None else f"{row.brier:.4f}",
                _percent(row.training),
                *([] if raw else [_arcs(row.arcs)]),
                "-" if row.parameters is None else f"{row.parameters:.0f}",
                *([] if raw else [_nats(row.score)]),
                _nats(row.gap),
                *([] if raw else [show_gap(row.relative_gap)]),
                f"{row.seconds:.1f}",
            )
        )
    out = aligned(lines, left=1)
    solved = reference_row(rows)
    if raw:
        out.append("gap in nats: that of a recipe's last search, under its own score; the others have none")
    elif solved is None:
        why = "no exact search has a bound"
        if not any(row.name in margin_scores() for row in rows):
            why = f"they need an exact search; name a score ({', '.join(margin_scores())}) among the learners"
        out.append(f"no score and no gap: {why}")
    else:
        mean = "means; " if solved.parts else ""
        out.append(
            f"score and gap in nats: {mean}{score_of(solved.details)}; bound {solved.details['bound']:.4f}"
        )
        only = among(Score.from_dict(solved.details["score"]), Constraints())
        if only:
            out.append(f"bound and gap are about {only}; others may score more")
    noted: dict[str, list[str]] = {}
    for row in rows:
        if row.note:
            noted.setdefault(row.note, []).append(row.name)
    return "\n".join([*out, *(f"{', '.join(names)}: {note}" for note, names in noted.items())])


def _arcs(count: float | None) -> str:
    return "-" if count is None else f"{count:.10g}" if count % 1 == 0 else f"{count:.1f}"


def _nats(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}"


def show_differences(rows: Sequence[ComparisonRow], against: str | None, *, rare: bool = False) -> list[str]:
    """Return the differences to one learner, with intervals and in words, as lines of text; none without any.

    Where a class is `rare`, those of the rankings come first.
    """
    lines = []
    weighted = "weighted " if any("unweighted" in row.differences for row in rows) else ""
    ranked = [(key, f"{weighted}{NAMES[key]}", 1, 4, True) for key in LEADING]
    others = [
        ("test", f"{weighted}test accuracy, in points", 100, 2, True),
        ("unweighted", "test accuracy of rows that count once, in points", 100, 2, True),
        ("log_loss", f"{weighted}log-loss, in nats", 1, 4, False),
    ]
    for key, what, factor, digits, larger in ranked + others if rare else others + ranked:
        compared = [(row.name, row.differences[key]) for row in rows if key in row.differences]
        if not compared:
            continue
        lines.append(f"difference to {against} in {what} (95 % interval)")
        width = max(len(name) for name, _ in compared)
        for name, found in compared:
            value, low, high = (f"{factor * x:+.{digits}f}" for x in (found.value, found.low, found.high))
            verdict = found.verdict(larger_is_better=larger)
            lines.append(f"  {name:{width}}  {value:>8}  ({low} to {high})  {verdict}")
    return lines
