"""Whether a classifier is monotone in a feature: exact, over all complete rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from milpbn.data.dataset import Variable
from milpbn.errors import InputError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.classifier import TableClassifier
from milpbn.network.cpt import Cpt
from milpbn.network.monotone.changes import TIE, smallest_changes
from milpbn.network.monotone.constraints import MonotoneConstraint, StateOrder, read_monotone
from milpbn.util.declared import NotNegative, read_as
from milpbn.util.jsonable import Fields, json_safe


@dataclass(frozen=True)
class MonotoneCheck:
    """Whether a classifier is monotone in a column."""

    constraint: MonotoneConstraint
    #: The smallest change of the log-odds from one state to the next, in nats; 0 for a column that changes nothing.
    smallest: float
    #: How many joint states of other columns this is about; 0 if no complete row's log-odds depend on the column.
    combinations: int

    @property
    def holds(self) -> bool:
        """Whether the constraint holds, changes of `TIE` aside."""
        return self.smallest >= -TIE

    def __str__(self) -> str:
        """Return a sentence."""
        if not self.combinations:
            return f"{self.constraint}: no complete row depends on it"
        if self.holds:
            least, n = (self.smallest if self.smallest > 1e-9 else 0.0), self.combinations
            return f"{self.constraint}: smallest change {least:.4g}" + (
                f", over {n:,} joint states of other features" if n > 1 else ""
            )
        return f"not true that {self.constraint}: somewhere they do by {-self.smallest:.4g}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return json_safe({**vars(self), "holds": self.holds})

    @classmethod
    def read(cls, f: Fields) -> MonotoneCheck:
        """Read what `to_dict` returned; whether the constraint holds follows from the rest."""
        key = "wish" if "wish" in f else "constraint"  # files of earlier versions have the first
        return read_as(cls, f, "holds", key, constraint=read_as(MonotoneConstraint, f.fields(key)))


@dataclass(frozen=True, kw_only=True)
class MonotoneFit:
    """What monotone features were asked for, whether the classifier has them, and what they cost."""

    features: tuple[MonotoneCheck, ...]
    #: Mean of -log P(c_m | z_m) in nats over the training rows: with these parameters, and with the same kappa and
    #: strength without the constraints. None if nothing was fitted.
    log_loss: NotNegative | None = None
    free_log_loss: NotNegative | None = None
    #: The same over the held-out rows of folds; None without folds.
    held_out_log_loss: NotNegative | None = None
    free_held_out_log_loss: NotNegative | None = None

    @property
    def holds(self) -> bool:
        """Whether the classifier is monotone in all of the features."""
        return bool(self.features) and all(check.holds for check in self.features)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        return json_safe(vars(self))

    def describe(self) -> list[str]:
        """Return sentences for the user."""
        lines = [f"monotone: {check}" for check in self.features]
        pairs = (
            ("on the training rows", self.log_loss, self.free_log_loss),
            ("in the folds", self.held_out_log_loss, self.free_held_out_log_loss),
        )
        known = ((where, own, free) for where, own, free in pairs if None not in (own, free))
        losses = [f"{own:.6f} {where}, {free:.6f} without it" for where, own, free in known]
        return [*lines, f"what monotone costs: log-loss {'; '.join(losses)}"] if losses else lines


def check_monotone(
    variables: Sequence[Variable], cpts: Sequence[Cpt], constraints: Sequence[MonotoneConstraint]
) -> tuple[MonotoneCheck, ...]:
    """Return whether a classifier with these tables is monotone, exactly, over all complete rows.

    Values that training never saw, and rows with missing values that are summed over, are not among them. `InputError`
    if a column is not the classifier's or has no such order, or a table has a probability of 0.
    """
    if any((cpt.table <= 0).any() for cpt in cpts):
        raise InputError(
            "The classifier has probabilities of 0, so that its log-odds may be infinite, and no feature is monotone; "
            "learn it with --smoothing above 0."
        )
    logs = [replace(cpt, table=np.log(cpt.table)) for cpt in cpts]
    found = []
    for constraint in constraints:
        order = StateOrder.of(constraint, variables)
        least, combinations = smallest_changes(order, variables, logs)
        found.append(MonotoneCheck(constraint, float(least.min()) if least.size else 0.0, combinations))
    return tuple(found)


def check_classifier(
    classifier: TableClassifier | AveragedClassifier, asked: object, positive: str | None = None
) -> tuple[MonotoneCheck, ...]:
    """Return whether any classifier with tables is monotone in some features; see `check_monotone`.

    What is `asked` is as for `read_monotone`, for example ``{"age": "+"}``. The class of two that is meant is
    `positive`, by default the one that is less probable without any evidence. An average of networks is refused.
    """
    if isinstance(classifier, AveragedClassifier):
        raise InputError(
            "Whether features are monotone (--monotone) is asked of one network, and this is an average of several."
        )
    classifier.require_class()
    if len(classifier.classes) == 2 and positive is None:
        positive = classifier.rarest()
    constraints = read_monotone(asked, classifier.variables, positive)
    return check_monotone(classifier.variables, classifier.cpts, constraints)
