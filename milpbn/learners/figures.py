"""The figures of a comparison of learners: one row per learner, the JSON document, and the printed table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from milpbn.claims.result import DataSummary
from milpbn.network.parameters.record import OWN_PARAMETERS
from milpbn.problem.scores.registry import margin_scores
from milpbn.solving.progress import show_gap
from milpbn.util.jsonable import json_safe
from milpbn.version import __version__


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """The figures of one learner.

    Attributes
    ----------
    name : str
        Name of a learner, or of a score, whose exact search is compared.
    test, training : float or None
        Share of the weight of the test and training rows that is classified correctly.
    arcs : int or None
        Number of arcs of the structure; None for a model that is not an acyclic graph.
    score : float or None
        The structure's score in nats, by the score of the reference (`reference_row`), with Laplace-smoothed
        maximum-likelihood parameters.
    gap, relative_gap : float or None
        The reference's bound minus this score, in nats and relative to the bound.
    seconds : float
        Wall-clock time of learning.
    stopped_early : bool
        Whether the time limit stopped a learner. It is False for an exact search, whose gap shows it.
    note : str
        Reasons for missing figures.
    options : mapping
        The learner's options that differ from its defaults.
    details : mapping
        Information about the run (`Learned.details`); for an exact search its score, bound and status.
    """

    name: str
    test: float | None = None
    training: float | None = None
    arcs: int | None = None
    score: float | None = None
    gap: float | None = None
    relative_gap: float | None = None
    seconds: float = 0.0
    stopped_early: bool = False
    note: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The figures of several learners on one split.

    Attributes
    ----------
    data : DataSummary
        Summary of the training rows.
    test_samples : int
        Number of test rows.
    score : mapping
        The given attributes of the scores of exact searches.
    time_limit : float or None
        Time limit of each learner, in seconds.
    random_state : int
        Seed.
    parameters : str or None
        How all Bayesian networks got their parameters; None: as each learner fits them itself.
    notes : tuple of str
        Sentences on rows that were dropped, with their number.
    rows : tuple of ComparisonRow
        One row per learner, exact searches first.
    """

    data: DataSummary
    test_samples: int
    score: Mapping[str, Any]
    time_limit: float | None
    random_state: int
    parameters: str | None = None
    notes: tuple[str, ...] = ()
    rows: tuple[ComparisonRow, ...] = ()

    @property
    def classifiers(self) -> int:
        """The number of learners that returned a classifier."""
        return sum(row.arcs is not None or row.training is not None for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        reference = reference_row(self.rows)
        document = {
            "version": __version__,
            "data": asdict(self.data),
            "test_samples": self.test_samples,
            "score": dict(self.score),
            "reference": None if reference is None else reference.name,
            "time_limit": self.time_limit,
            "seed": self.random_state,
            "parameters": self.parameters,
            "notes": list(self.notes),
            "rows": [row.to_dict() for row in self.rows],
        }
        return dict(json_safe(document))

    def __str__(self) -> str:
        held = f"{self.test_samples} test rows" if self.test_samples else "no test rows"
        head = f"data  {self.data.name}: {self.data.samples} training rows, {held}"
        head = "\n".join([head, *(f"      {note}" for note in self.notes)])
        end = ""
        if self.parameters not in (None, "ml"):
            end = f"\nparameters {self.parameters}: they change the accuracies; {OWN_PARAMETERS}"
        return f"{head}\n{show(self.rows)}{end}"


def reference_row(rows: Sequence[ComparisonRow]) -> ComparisonRow | None:
    """Return the row of the exact search that gives the score and the bound for all rows; None without a bound."""
    return next(
        (row for row in rows if row.name in margin_scores() and row.details.get("bound") is not None), None
    )


def show(rows: Sequence[ComparisonRow]) -> str:
    """Return the printed table; under it the score and bound that scores and gaps refer to, and the notes."""
    head: tuple[str, ...] = ("", "test %", "training %", "arcs", "score", "gap", "of bound", "seconds")
    lines = [head]
    for row in rows:
        shares = ["-" if s is None else f"{100 * s:.2f}" for s in (row.test, row.training)]
        lines.append(
            (
                row.name,
                *shares,
                "-" if row.arcs is None else str(row.arcs),
                "-" if row.score is None else f"{row.score:.4f}",
                "-" if row.gap is None else f"{row.gap:.4f}",
                show_gap(row.relative_gap),
                f"{row.seconds:.1f}",
            )
        )
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    out = [
        "  ".join(
            [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    ]
    solved = reference_row(rows)
    if solved is None:
        why = "no exact search has a bound"
        if not any(row.name in margin_scores() for row in rows):
            why = f"they need an exact search; name a score ({', '.join(margin_scores())}) among the learners"
        out.append(f"no score and no gap: {why}")
    else:
        score = solved.details["score"]
        own = [
            f"{key} {score[key]:g}" for key in ("gamma", "max_parents", "smoothing") if score[key] is not None
        ]
        if score.get("smoothing_towards", "uniform") != "uniform":
            own.append(f"smoothing towards {score['smoothing_towards']}")
        own.append("class parents" if score["class_parents"] else "no class parents")
        out.append(
            f"score and gap in nats: {solved.name}, {', '.join(own)}; bound {solved.details['bound']:.4f}"
        )
    notes = [f"{row.name}: {row.note}" for row in rows if row.note]
    return "\n".join([*out, *notes])
