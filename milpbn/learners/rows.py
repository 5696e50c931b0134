"""The figures of a learner in a comparison, and their reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from milpbn.claims.reading import read_score
from milpbn.network.discrimination import NAMES
from milpbn.problem.scores.registry import margin_scores
from milpbn.trials.differences import Difference, Interval
from milpbn.trials.judged import Judged
from milpbn.util.declared import NotNegative, Within, read_as
from milpbn.util.jsonable import Fields

#: A share of rows, and another number that is not negative; None if it is unknown.
Share = Annotated[float, Within(0.0, 1.0)] | None
Number = NotNegative | None


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """The figures of one learner: on one split, or the means over the parts of repeated folds."""

    #: What files of earlier versions lack.
    LATER: ClassVar[tuple[str, ...]] = ("unweighted", *NAMES)

    #: Name of a learner, or of a score, whose exact search is compared.
    name: str
    #: Share of the weight of the test and training rows that is classified correctly. A class that the training rows
    #: lack is an error, here and in the next two, with the probability 0.
    test: Share = None
    training: Share = None
    #: Mean of -log P(c | z) in nats, and Brier score between 0 and 2, on the test rows; None without probabilities.
    log_loss: Number = None
    brier: Annotated[float, Within(0.0, 2.0)] | None = None
    #: Share of the test rows that is classified correctly, each counting once; None where their weights are equal.
    unweighted: Share = None
    #: On the test rows, how well `Comparison.positive` is told from the other classes, or the means over all classes
    #: (`milpbn.network.discrimination.ClassFigures`).
    roc_auc: Share = None
    average_precision: Share = None
    sensitivity: Share = None
    specificity: Share = None
    precision: Share = None
    f1: Share = None
    balanced_accuracy: Share = None
    matthews: Annotated[float, Within(-1.0, 1.0)] | None = None
    #: 95 % intervals of these, and of `test` (on one split a score interval, with equal weights that of Wilson),
    #: `log_loss`, `brier` and `unweighted`; over folds those of `milpbn.trials.differences.corrected_interval`, which
    #: contain those of the rows where weights differ.
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    #: The learner's figure minus that of `Comparison.against` on the same rows; on one split not of all figures.
    differences: Mapping[str, Difference] = field(default_factory=dict)
    #: Number of arcs of the structure; None for a model that is not an acyclic graph.
    arcs: Number = None
    parameters: Number = None
    #: The structure's score in nats, by the score of the reference (`reference_row`), with Laplace-smoothed
    #: maximum-likelihood parameters.
    score: float | None = None
    #: The reference's bound minus this score, in nats and relative to the bound.
    gap: float | None = None
    relative_gap: float | None = None
    #: Wall-clock time of learning.
    seconds: NotNegative = 0.0
    #: Whether the time limit stopped a learner. It is False for an exact search, whose gap shows it.
    stopped_early: bool = False
    #: Reasons for missing figures.
    note: str = ""
    #: The learner's options that differ from its defaults.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Information about the run (`Learned.details`); for an exact search its score, bound and status.
    details: Mapping[str, Any] = field(default_factory=dict)
    #: Over folds, the figures of every part.
    parts: tuple[ComparisonRow, ...] = ()
    #: On one split, the test rows one by one.
    judged: Judged | None = field(default=None, repr=False, compare=False)

    @classmethod
    def read(cls, f: Fields, where: str, *, whole: bool = True) -> ComparisonRow:
        """Read what `to_dict` returned; of a `whole` row also the differences and the parts.

        Parameters
        ----------
        where : str
            The beginning of error messages about the score.
        """
        found, intervals = f.fields("details"), f.fields("intervals")
        details = found.plain()
        if "bound" in found and not found.missing("bound"):  # the row of an exact search
            found.number("bound")
            details["score"] = read_score(found, where).to_dict()
        rest: dict[str, Any] = {"differences": {}, "parts": ()}
        if whole:
            differences = f.fields("differences")
            rest["differences"] = {key: read_as(Difference, differences.fields(key)) for key in differences}
            rest["parts"] = tuple(cls.read(part, where) for part in f.objects("parts"))
        return read_as(
            cls,
            f,
            *("details", "intervals", "options", *(rest if whole else ())),
            details=details,
            intervals={key: _interval(intervals, key) for key in intervals},
            options=f.fields("options").plain(),
            judged=None,
            **rest,
        )

    @property
    def has_classifier(self) -> bool:
        """Whether the learner returned a classifier."""
        return self.arcs is not None or self.training is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        values = {key: value for key, value in vars(self).items() if key != "judged"}
        values["differences"] = {key: vars(found) for key, found in self.differences.items()}
        values["parts"] = [part.to_dict() for part in self.parts]
        return values


def _interval(of: Fields, key: str) -> Interval:
    ends = of.numbers(key)
    if len(ends) != 2:
        raise of.contradiction(f"{key!r} is not an interval of two numbers")
    return ends[0], ends[1]


def reference_row(rows: Sequence[ComparisonRow]) -> ComparisonRow | None:
    """Return the row of the exact search that gives the score and the bound for all rows; None without a bound."""
    return next(
        (row for row in rows if row.name in margin_scores() and row.details.get("bound") is not None), None
    )
