"""The figures of a comparison of learners: one row per learner, the JSON document and its reading, printed tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Annotated, Any, ClassVar

from milpbn.claims.about import DataSummary
from milpbn.claims.reading import read_score
from milpbn.network.classifier import score_of
from milpbn.network.discrimination import LEADING, NAMES, RARE
from milpbn.network.parameters.record import OWN_PARAMETERS
from milpbn.problem.class_free import among
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.registry import margin_scores
from milpbn.problem.scores.spec import Score
from milpbn.solving.progress import left_out_lines, show_gap
from milpbn.trials.differences import Difference, Interval
from milpbn.trials.judged import Judged
from milpbn.util.declared import Count, NotNegative, Within, read_as
from milpbn.util.jsonable import Fields, json_safe
from milpbn.version import __version__

#: A share of rows, and another number that is not negative; None if it is unknown.
Share = Annotated[float, Within(0.0, 1.0)] | None
Number = NotNegative | None


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """The figures of one learner: on one split, or the means over the parts of repeated folds.

    Attributes
    ----------
    name : str
        Name of a learner, or of a score, whose exact search is compared.
    test, training : float or None
        Share of the weight of the test and training rows that is classified correctly. A class that the training rows
        lack is an error, here and in the next two, with the probability 0.
    log_loss, brier : float or None
        Mean of -log P(c | z) in nats, and Brier score between 0 and 2, on the test rows; None without probabilities.
    unweighted : float or None
        Share of the test rows that is classified correctly, each counting once; None where their weights are equal.
    roc_auc, average_precision, sensitivity, specificity, precision, f1, balanced_accuracy, matthews : float or None
        On the test rows, how well `Comparison.positive` is told from the other classes, or the means over all classes
        (`milpbn.network.discrimination.ClassFigures`).
    intervals : mapping from str to (float, float)
        95 % intervals of these, and of `test` (on one split a score interval, with equal weights that of Wilson),
        `log_loss`, `brier` and `unweighted`; over folds those of `milpbn.trials.differences.corrected_interval`, which
        contain those of the rows where weights differ.
    differences : mapping from str to Difference
        The learner's figure minus that of `Comparison.against` on the same rows; on one split not of all figures.
    arcs : float or None
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
    parts : tuple of ComparisonRow
        Over folds, the figures of every part.
    judged : Judged or None
        On one split, the test rows one by one.
    """

    #: What files of earlier versions lack.
    LATER: ClassVar[tuple[str, ...]] = ("unweighted", *NAMES)

    name: str
    test: Share = None
    training: Share = None
    log_loss: Number = None
    brier: Annotated[float, Within(0.0, 2.0)] | None = None
    unweighted: Share = None
    roc_auc: Share = None
    average_precision: Share = None
    sensitivity: Share = None
    specificity: Share = None
    precision: Share = None
    f1: Share = None
    balanced_accuracy: Share = None
    matthews: Annotated[float, Within(-1.0, 1.0)] | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    differences: Mapping[str, Difference] = field(default_factory=dict)
    arcs: Number = None
    parameters: Number = None
    score: float | None = None
    gap: float | None = None
    relative_gap: float | None = None
    seconds: NotNegative = 0.0
    stopped_early: bool = False
    note: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[ComparisonRow, ...] = ()
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
        details = _plain(found)
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
            options=_plain(f.fields("options")),
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


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The figures of several learners on one split, or over repeated folds.

    Attributes
    ----------
    data : DataSummary
        Summary of the training rows; over folds, of all rows.
    test_samples : int
        Number of test rows; over folds, the number of rows, each of which is tested once per repetition.
    effective_rows : float or None
        Number of equally weighted test rows that say as much (`milpbn.network.intervals.effective_size`); None where
        all weights are equal.
    score : mapping
        The given attributes of the scores of exact searches.
    time_limit : float or None
        Time limit of each learner, in seconds.
    parameters : str or None
        How all Bayesian networks got their parameters; None: as each learner fits them itself.
    notes : tuple of str
        Sentences on rows that were dropped, and on test rows of a class that the training rows lack, with numbers.
    folds, repeats : int or None
        Number of folds, and of cross-validations; None for one split.
    parts_done : int
        Number of parts that all learners were tested on.
    against : str or None
        The learner to which the differences are; None without test rows.
    positive : str or None
        The class to detect; None for the means over all classes.
    majority : (str, float) or None
        The most frequent class of `data`, and its share of the weight of the test rows.
    rarest_share : float or None
        Share of the rarest class in the weight of `data`. Below `milpbn.network.discrimination.RARE`, what is shown
        begins with how well classes are told apart.
    rows : tuple of ComparisonRow
        One row per learner, exact searches first.
    """

    LATER: ClassVar[tuple[str, ...]] = ("effective_rows", "positive", "rarest_share")

    data: DataSummary
    test_samples: int
    score: Mapping[str, Any]
    time_limit: Number
    random_state: int
    effective_rows: Number = None
    parameters: str | None = None
    notes: tuple[str, ...] = ()
    folds: Annotated[int, Within(2)] | None = None
    repeats: Count | None = None
    parts_done: int = 1
    against: str | None = None
    positive: str | None = None
    majority: tuple[str, float] | None = None
    rarest_share: Share = None
    rows: tuple[ComparisonRow, ...] = ()

    @property
    def classifiers(self) -> int:
        """The number of learners that returned a classifier."""
        return sum(row.has_classifier for row in self.rows)

    @classmethod
    def read(cls, document: Mapping[str, Any], where: str) -> Comparison:
        """Read what `to_dict` returned.

        Parameters
        ----------
        where : str
            The beginning of error messages, such as the name of the file.

        Raises
        ------
        InputError
            If a value is missing or impossible.
        """
        f = Fields(document, where)
        return read_as(
            cls,
            f,
            *("version", "reference", "seed", "score", "majority", "rows"),
            random_state=f.whole("seed"),
            majority=_majority(f),
            score=_plain(f.fields("score")),
            rows=tuple(ComparisonRow.read(row, where) for row in f.objects("rows")),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        reference = reference_row(self.rows)
        document = {
            "version": __version__,
            "data": asdict(self.data),
            "test_samples": self.test_samples,
            "effective_rows": self.effective_rows,
            "score": dict(self.score),
            "reference": None if reference is None else reference.name,
            "time_limit": self.time_limit,
            "seed": self.random_state,
            "parameters": self.parameters,
            "notes": list(self.notes),
            "folds": self.folds,
            "repeats": self.repeats,
            "parts_done": self.parts_done,
            "against": self.against,
            "positive": self.positive,
            "majority": None if self.majority is None else list(self.majority),
            "rarest_share": self.rarest_share,
            "rows": [row.to_dict() for row in self.rows],
        }
        return dict(json_safe(document))

    def __str__(self) -> str:
        if self.folds is None:
            held = f"{self.test_samples} test rows" if self.test_samples else "no test rows"
            head = f"data  {self.data.name}: {self.data.samples} training rows, {held}"
        else:
            of, repeats = self.folds * (self.repeats or 1), self.repeats or 1
            again = f", repeated {repeats} times" if repeats > 1 else ""
            done = "" if self.parts_done == of else f"; {self.parts_done} of {of} parts"
            head = f"data  {self.data.name}: {self.data.samples} rows, {self.folds} stratified folds{again}{done}"
        notes = [f"      {note}" for note in self.notes]
        if self.effective_rows is not None:
            notes.append(
                "      weighted: test %, log-loss, Brier, training %; the test rows say as much as "
                f"{self.effective_rows:.4g} of equal weight; rows %: each test row counts once"
            )
        lines = [head, *notes, *left_out_lines(self.data.left_out)]
        rare = self.rarest_share is not None and self.rarest_share < RARE
        accuracies = show(self.rows).split("\n")
        if self.majority is not None:
            label, share = self.majority
            accuracies.insert(0, f"accuracy, beside {100 * share:.2f} % by always answering {label}")
        parts = [accuracies, self._detection()]
        lines += chain.from_iterable(reversed(parts) if rare else parts)
        lines += show_differences(self.rows, self.against, rare=rare)
        if self.parameters not in (None, "ml"):
            lines.append(f"parameters {self.parameters}: they change the accuracies; {OWN_PARAMETERS}")
        return "\n".join(lines)

    def _detection(self) -> list[str]:
        """Return the table of how well classes are told apart; no lines without test rows."""
        known = [row for row in self.rows if any(getattr(row, key) is not None for key in NAMES)]
        if not known:
            return []
        rarest = (
            "" if self.rarest_share is None else f" (the rarest class has {100 * self.rarest_share:.1f} %)"
        )
        found = (
            "each class against all others, means" if self.positive is None else f"detecting {self.positive}"
        )
        lines = [["", *(head for key in NAMES for head in _heads(key))]]
        for row in known:
            cells = [row.name]
            for key in NAMES:
                value, (low, high) = getattr(row, key), row.intervals.get(key, (None, None))
                cells.append("-" if value is None else f"{value:.3f}")
                if key in LEADING:
                    cells.append("-" if low is None or high is None else f"{low:.3f} to {high:.3f}")
            lines.append(cells)
        return [found + rarest, *_aligned(lines)]


def _heads(key: str) -> list[str]:
    return [NAMES[key], "95 % interval"] if key in LEADING else [NAMES[key]]


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table with the first column at the left, and all others at the right of their width."""
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    return [
        "  ".join(
            [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    ]


def _interval(of: Fields, key: str) -> Interval:
    ends = of.numbers(key)
    if len(ends) != 2:
        raise of.contradiction(f"{key!r} is not an interval of two numbers")
    return ends[0], ends[1]


def _majority(of: Fields) -> tuple[str, float] | None:
    if of.missing("majority"):
        return None
    match of.get("majority"):
        case [str(label), int() | float() as share] if 0 <= share <= 1:
            return label, float(share)
    raise of.contradiction("'majority' is not a class and its share")


def _plain(of: Fields) -> dict[str, Any]:
    return {key: of.get(key) for key in of}


def reference_row(rows: Sequence[ComparisonRow]) -> ComparisonRow | None:
    """Return the row of the exact search that gives the score and the bound for all rows; None without a bound."""
    return next(
        (row for row in rows if row.name in margin_scores() and row.details.get("bound") is not None), None
    )


def show(rows: Sequence[ComparisonRow]) -> str:
    """Return the printed table; under it the score and bound that scores and gaps refer to, and the notes."""
    weighted = any(row.unweighted is not None for row in rows)
    head: tuple[str, ...] = (
        *("", "test %", "95 % interval", *(("rows %",) if weighted else ()), "log-loss", "Brier"),
        *("training %", "arcs", "parameters", "score", "gap", "of bound", "seconds"),
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
                "-" if row.arcs is None else f"{row.arcs:.10g}" if row.arcs % 1 == 0 else f"{row.arcs:.1f}",
                "-" if row.parameters is None else f"{row.parameters:.0f}",
                "-" if row.score is None else f"{row.score:.4f}",
                "-" if row.gap is None else f"{row.gap:.4f}",
                show_gap(row.relative_gap),
                f"{row.seconds:.1f}",
            )
        )
    out = _aligned(lines)
    solved = reference_row(rows)
    if solved is None:
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
