"""The claim of a result about the choice of its options: the setting that was chosen, and all that were tried."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from milpbn.claims.parts import SAME_NUMBER, ResultPart, as_json
from milpbn.network.structure import Structure
from milpbn.problem.scores.spec import Score, gamma_from_p
from milpbn.util.declared import Count, NotNegative, OneOf, Within
from milpbn.util.jsonable import Fields

#: A share, which may exceed 1 by rounding; a number of splits.
Share = Annotated[float, Within(0.0, 1.0 + SAME_NUMBER)]
Splits = Annotated[int, Within(0, "splits")]


#: What validation compares on held-out rows: the share of the weight that is classified correctly, the mean of
#: -log P(class | x), the area under the ROC curve, average precision, or the cost of the decisions.
CRITERIA = ("accuracy", "log-loss", "roc-auc", "average-precision", "cost")
#: Those that should be small.
SMALL = ("log-loss", "cost")
#: Standard errors of a difference up to which a trial is as good as the best one, as in the recipe `accurate`.
TIE = 0.25


@dataclass(frozen=True)
class Trial:
    """One setting that a selection tried."""

    #: The values (p is None for scores without gamma).
    p: float | None
    max_parents: Count
    #: Share of the validation weight that is classified correctly, over all splits.
    accuracy: Share
    #: Number of splits in which the structure was proved optimal.
    proved: Splits
    #: Number of splits in which the values were tried. It differs between trials if the selection was interrupted,
    #: ran out of time, or stopped the trials that were behind.
    splits: Count
    #: Mean of -log P(class | features) over the validation weight, in nats; None in files of earlier versions.
    log_loss: NotNegative | None = None
    #: Number of splits in which the time limit ended the search at the structure that it started from.
    starved: Splits = 0
    #: The setting's other values, by the names of the command line.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Share of the validation rows that is classified correctly, each counting once; None where all weights are
    #: equal.
    unweighted: Share | None = None
    #: Number of splits in which the network has no arcs.
    arcless: Splits = 0
    #: Means over the splits whose held-out rows have what they need: of the rarest class of two, or over all classes.
    #: None if something else is compared.
    roc_auc: Share | None = None
    average_precision: Share | None = None
    #: Mean cost of the decisions over the validation weight; None without costs.
    cost: float | None = None
    #: How far the trial is behind the one with the best value, in units of what is compared, and the standard error of
    #: this difference, paired over the held-out rows; None where only equal values tie, and on fewer splits.
    difference: NotNegative | None = None
    standard_error: NotNegative | None = None
    #: Attributes that files of earlier versions lack.
    LATER: ClassVar = (
        *("log_loss", "starved", "options", "unweighted", "arcless"),
        *("roc_auc", "average_precision", "cost"),
        *("difference", "standard_error"),
    )

    def value(self, by: str) -> float:
        """Return what is compared, the smaller the better: a loss or cost, or minus what should be large."""
        found = getattr(self, by.replace("-", "_"))
        if found is None:
            return math.inf
        return round(found, 12) if by in SMALL else -round(found, 12)

    @property
    def ties(self) -> bool:
        """Whether the trial is as good as the best one, as far as the held-out rows can say."""
        error = self.standard_error
        return self.difference is not None and error is not None and self.difference <= TIE * error

    def rank(self, by: str = "accuracy") -> tuple[int, float, bool, int, float, float]:
        """Return the sort key, the best first: most splits, best value, with arcs, fewest parents, smallest p.

        Trials that tie with the best value come before all others. With arcs means that no split gave a network without
        arcs. Such a network, which a small p prefers, says nothing about the features; among equal values it is never
        taken before one that does.
        """
        value = self.value(by)
        first = -math.inf if self.ties else value
        return -self.splits, first, self.arcless > 0, self.max_parents, value, self.p or 0.0


@dataclass(frozen=True)
class Selection(ResultPart):
    """How p, max_parents and other options were chosen by validation: the chosen setting, and all that were tried."""

    #: The values of the first trial by `Trial.rank`: among equal accuracies, a network with arcs, then fewer parents,
    #: then the smaller p.
    p: float | None
    max_parents: Count
    #: ``validation set of 20 %`` or ``5-fold cross-validation``.
    protocol: str
    #: In the order in which they were tried.
    trials: tuple[Trial, ...]
    #: The structure that the last split gave for the chosen values. The final search starts from it. Not part of the
    #: JSON.
    incumbent: Structure | None = field(default=None, compare=False)
    #: Whether the user stopped the selection. Only the trials before that count.
    interrupted: bool = False
    by: Annotated[str, OneOf(CRITERIA)] = "accuracy"
    #: The chosen values of further options, by the names of the command line.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Whether the time limit ended the selection before all trials were made. Only the trials before that count.
    timed_out: bool = False
    #: Attributes that files of earlier versions lack.
    LATER: ClassVar = ("by", "options", "timed_out")
    UNWRITTEN = ("incumbent",)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values, the long list last."""
        keys = ("p", "max_parents", "protocol", "interrupted", "timed_out", "by", "options", "trials")
        return {key: as_json(getattr(self, key)) for key in keys}

    @property
    def chosen(self) -> Trial | None:
        """The trial of the chosen setting; None if none has its values."""
        own = (self.p, self.max_parents, dict(self.options))
        return next((t for t in self.trials if (t.p, t.max_parents, dict(t.options)) == own), None)

    @property
    def is_best(self) -> bool:
        """Whether no trial ranks before the trial of the chosen setting."""
        chosen = self.chosen
        return chosen is not None and chosen.rank(self.by) <= min(t.rank(self.by) for t in self.trials)

    @property
    def tied(self) -> int:
        """Number of other trials that are as good as the chosen one."""
        return len(self._as_good)

    @property
    def for_arcs(self) -> bool:
        """Whether the chosen trial has arcs, and one with the same value has none."""
        return any(t.arcless for t in self._as_good) and self.chosen is not None and not self.chosen.arcless

    @property
    def _as_good(self) -> list[Trial]:
        """The other trials with as many splits as the chosen one that tie with it, or have the same value."""
        best = self.chosen
        same = None if best is None else best.rank(self.by)[:2]
        return [t for t in self.trials if t is not best and t.rank(self.by)[:2] == same]

    def check(self, f: Fields, score: Score) -> None:
        """Refuse chosen values that are not the best of the trials, or not those of the result's score.

        `f` is the result as it was written; it words the errors.
        """
        if self.max_parents != score.max_parents or (
            self.p is not None and gamma_from_p(self.p) != score.gamma
        ):
            raise f.contradiction("its score is not the one that was selected")
        for key, value in self.options.items():
            attribute = "name" if key == "score" else key.replace("-", "_")
            if getattr(score, attribute, value) != value:
                raise f.contradiction(f"its score has another {key} than the one that was selected")
        compared = [t for t in self.trials if t.difference is not None]
        least = min((t.value(self.by) for t in compared), default=0.0)
        if any(abs(t.value(self.by) - least - (t.difference or 0.0)) > 1e-9 for t in compared):
            raise f.contradiction("the differences of its trials are not those of their values")
        if not self.is_best:
            raise f.contradiction("the selected values are not the best of those that were tried")
