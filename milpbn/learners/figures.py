"""A comparison of learners: the JSON document and its reading, and what is printed of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, ClassVar

from milpbn.claims.about import DataSummary
from milpbn.learners.printed import show, show_detection, show_differences
from milpbn.learners.rows import ComparisonRow, Number, Share, reference_row
from milpbn.network.discrimination import RARE
from milpbn.network.parameters.record import OWN_PARAMETERS
from milpbn.solving.progress import left_out_lines
from milpbn.util.declared import Count, Within, read_as
from milpbn.util.jsonable import Fields, json_safe
from milpbn.version import __version__


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The figures of several learners on one split, or over repeated folds."""

    LATER: ClassVar[tuple[str, ...]] = ("effective_rows", "positive", "rarest_share", "raw")

    #: Summary of the training rows; over folds, of all rows.
    data: DataSummary
    #: Number of test rows; over folds, the number of rows, each of which is tested once per repetition.
    test_samples: int
    #: Number of equally weighted test rows that say as much (`milpbn.network.intervals.effective_size`); None where all
    #: weights are equal.
    effective_rows: Number = None
    #: The given attributes of the scores of exact searches.
    score: Mapping[str, Any]
    #: Time limit of each learner, in seconds.
    time_limit: Number
    random_state: int
    #: How all Bayesian networks got their parameters; None: as each learner fits them itself.
    parameters: str | None = None
    #: Sentences on rows that were dropped, and on test rows of a class that the training rows lack, with numbers.
    notes: tuple[str, ...] = ()
    #: Number of folds, and of cross-validations; None for one split.
    folds: Annotated[int, Within(2)] | None = None
    repeats: Count | None = None
    #: Number of parts that all learners were tested on.
    parts_done: int = 1
    #: The learner to which the differences are; None without test rows.
    against: str | None = None
    #: The class to detect; None for the means over all classes.
    positive: str | None = None
    #: The most frequent class of `data`, and its share of the weight of the test rows.
    majority: tuple[str, float] | None = None
    #: Share of the rarest class in the weight of `data`. Below `milpbn.network.discrimination.RARE`, what is shown
    #: begins with how well classes are told apart.
    rarest_share: Share = None
    #: Whether learners took raw columns.
    raw: bool = False
    #: One row per learner, exact searches first.
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
            score=f.fields("score").plain(),
            rows=tuple(ComparisonRow.read(row, where) for row in f.objects("rows")),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        reference = reference_row(self.rows)
        own = {"seed" if key == "random_state" else key: value for key, value in vars(self).items()}
        named = {"version": __version__, "reference": None if reference is None else reference.name}
        return dict(json_safe(named | own))

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
        accuracies = show(self.rows, raw=self.raw).split("\n")
        if self.majority is not None:
            label, share = self.majority
            accuracies.insert(0, f"accuracy, beside {100 * share:.2f} % by always answering {label}")
        parts = [accuracies, show_detection(self.rows, self.positive, self.rarest_share)]
        lines += chain.from_iterable(reversed(parts) if rare else parts)
        lines += show_differences(self.rows, self.against, rare=rare)
        if self.parameters not in (None, "ml"):
            lines.append(f"parameters {self.parameters}: they change the accuracies; {OWN_PARAMETERS}")
        return "\n".join(lines)


def _majority(of: Fields) -> tuple[str, float] | None:
    if of.missing("majority"):
        return None
    match of.get("majority"):
        case [str(label), int() | float() as share] if 0 <= share <= 1:
            return label, float(share)
    raise of.contradiction("'majority' is not a class and its share")
