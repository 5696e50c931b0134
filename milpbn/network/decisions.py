"""Decisions: the class of least expected cost, and thresholds as costs.

With two classes, a threshold t on the probability of one of them is the same as costs: a missed row costs 1 - t, and a
false alarm t.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from milpbn.data.labels import label_of
from milpbn.errors import InputError
from milpbn.network.intervals import Interval, score_interval, stratified_mean_interval
from milpbn.util.jsonable import Fields

if TYPE_CHECKING:
    import pandas as pd

#: Costs that are closer than this, relative to the largest difference of costs, count as equal, so that rounding, which
#: differs between programs, decides nowhere.
TIE = 1e-9
#: Costs as they are given: a cost by true label and decision, or ``missed`` and ``false_alarm`` of two classes, and
#: possibly ``positive``; and possibly the cost of ``abstain``.
Costs: TypeAlias = "Mapping[Any, Any] | pd.DataFrame"
_OF_TWO = ("missed", "false_alarm", "positive")
#: What is answered instead of a class where that costs less, and the key of its cost.
DO_NOT_KNOW, ABSTAIN = "do not know", "abstain"


@dataclass(frozen=True)
class DecisionRule:
    """How a class is chosen: the one of least expected cost; ties go to the first class."""

    #: Cost by true class (rows) and chosen class (columns), in their order, shape (C, C) or (C, C + 1); any unit. A
    #: last column is the cost of answering `DO_NOT_KNOW`.
    costs: tuple[tuple[float, ...], ...]
    #: Where they come from, in words.
    origin: str = "costs"
    #: Whether the costs only stand for a threshold, and say nothing of what errors cost.
    is_threshold: bool = False

    def __post_init__(self) -> None:
        widths = {len(row) - len(self.costs) for row in self.costs}
        if widths not in ({0}, {1}) or not np.isfinite(self.costs).all():
            raise InputError("Costs are a finite number for every true class and every decision.")
        if not self.spread > 0:
            raise InputError("All decisions cost the same, so that costs choose no class; give other costs.")

    @classmethod
    def of(cls, costs: Costs, classes: Sequence[str], rarest: str | None) -> DecisionRule:
        """Return the decision that costs describe; `rarest` is positive of two classes if the costs do not say it.

        `InputError` if a class has no cost, a label is no class, or a cost is no number.
        """
        if not isinstance(costs, Mapping):
            costs = costs.T.to_dict() if hasattr(costs, "to_dict") else {}
        given: dict[str, Any] = {str(key).replace("-", "_"): value for key, value in costs.items()}
        by_class = any(isinstance(value, Mapping) for value in given.values())
        alone = given.pop(ABSTAIN, None) if ABSTAIN not in classes or not by_class else None
        if given and set(given) <= {*_OF_TWO} and not by_class:
            matrix, origin = _of_two(given, classes, rarest)
        elif given or alone is None:
            matrix, origin = _matrix(costs, classes), "costs"
        else:
            matrix, origin = tuple(map(tuple, (1.0 - np.eye(len(classes))).tolist())), "costs: error 1"
        if alone is not None:
            each = _number(alone, "--abstain (abstain)")
            matrix, origin = tuple((*row, each) for row in matrix), f"{origin}, abstaining {each:g}"
        found = cls(matrix, origin)
        if found.may_abstain and DO_NOT_KNOW in classes:
            raise InputError(
                f"A class is called {DO_NOT_KNOW!r}, which is the answer of abstaining; rename it."
            )
        return found

    @classmethod
    def at(cls, threshold: float, positive: str, classes: Sequence[str], origin: str) -> DecisionRule:
        """Return the decision for a class of two if its probability is above a threshold."""
        costs = _of_errors(classes.index(positive), 1 - threshold, threshold)
        return cls(costs, origin, is_threshold=True)

    @classmethod
    def read(cls, f: Fields, n_classes: int) -> DecisionRule:
        """Read what `to_dict` returned, of so many classes."""
        costs = tuple(
            tuple(float(x) for x in Fields({"row": row}, "A row").numbers("row")) for row in f.items("costs")
        )
        if len(costs) != n_classes:
            raise InputError(f"Its decision has costs of {len(costs)} classes, and there are {n_classes}.")
        return cls(costs, f.text("origin"), f.flag("is_threshold"))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "costs": [list(row) for row in self.costs],
            "origin": self.origin,
            "is_threshold": self.is_threshold,
        }

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The costs, in their shape."""
        return np.array(self.costs)

    @property
    def may_abstain(self) -> bool:
        """Whether the answer may be `DO_NOT_KNOW`."""
        return len(self.costs[0]) > len(self.costs)

    @property
    def differences(self) -> NDArray[np.float64]:
        """The costs less the least cost of a class for each true class, which changes no choice, but adds rounding."""
        return self.matrix - self.matrix[:, : len(self.costs)].min(axis=1, keepdims=True)

    @property
    def spread(self) -> float:
        """The largest difference between the costs of two decisions for one true class."""
        return float(np.ptp(self.matrix[:, : len(self.costs)], axis=1).max())

    @property
    def tolerance(self) -> float:
        """The difference of expected costs up to which they count as equal."""
        return TIE * self.spread

    def choose(self, probabilities: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the chosen class of each row of probabilities, shapes (M,) and (M, C), be it answered or not."""
        expected = probabilities @ self.differences[:, : len(self.costs)]
        return (expected <= expected.min(axis=1, keepdims=True) + self.tolerance).argmax(axis=1)

    def answer(self, probabilities: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the same, but C where answering `DO_NOT_KNOW` costs less."""
        chosen, expected = self.choose(probabilities), probabilities @ self.differences
        if not self.may_abstain:
            return chosen
        silent = expected[:, -1] < expected[:, :-1].min(axis=1) - self.tolerance
        return np.where(silent, len(self.costs), chosen)

    def of_rows(self, classes: NDArray[np.integer], chosen: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return the cost of each row, shape (M,), from true codes and chosen ones or answers.

        A class that training never saw, whose code is negative, costs as much as the most expensive one.
        """
        costs = np.vstack([self.matrix, self.matrix.max(axis=0)])
        return costs[np.where(classes < 0, len(self.costs), classes), chosen]

    def threshold(self, positive: int) -> float | None:
        """Return the probability above which one of two classes is chosen; None for more classes, or without one."""
        if len(self.costs) != 2:
            return None
        costs, other = self.matrix, 1 - positive
        missed, alarm = (
            costs[positive, other] - costs[positive, positive],
            costs[other, positive] - costs[other, other],
        )
        return float(alarm / (missed + alarm)) if missed + alarm > 0 else None

    def described(self, classes: Sequence[str]) -> str:
        """Return the rule in a few words."""
        found = [self.threshold(k) for k in range(2)] if len(classes) == 2 else [None]
        if self.may_abstain:
            return f"the class of least expected cost, or {DO_NOT_KNOW!r} if that costs less ({self.origin})"
        if None in found:
            return f"the class of least expected cost ({self.origin})"
        least = min((0, 1), key=lambda k: found[k] or 0.0)
        return f"{classes[least]} if its probability is above {found[least]:.6g} ({self.origin})"


@dataclass(frozen=True)
class CostFigures:
    """What decisions cost on average, in the unit of the costs."""

    #: Weighted mean over the rows, and its 95 % `interval` (None if one row has the weight).
    cost: float
    interval: Interval | None
    #: The same by always choosing the most frequent class.
    majority: float
    #: The class whose constant choice costs the least, and its `constant` cost.
    best_class: str
    constant: float
    #: Of two classes, the threshold on the positive one that costs the least on these rows, and its cost; no choice of
    #: a threshold could have done better here. None for more classes.
    threshold: float | None
    oracle: float | None
    #: Share of the weight without an answer, and the accuracy of the answers, with 95 % intervals. None if a class is
    #: always answered, or never.
    abstained: tuple[float, Interval] | None = None
    answered_right: tuple[float, Interval] | None = None
    #: The cost of never abstaining; None if a class is always answered.
    always_answered: float | None = None


def cost_figures(
    decision: DecisionRule,
    classes: Sequence[str],
    probabilities: NDArray[np.float64],
    y: NDArray[np.integer],
    weights: NDArray[np.float64],
    positive: int,
) -> CostFigures:
    """Return the cost of the decisions on rows with these probabilities, true classes and weights."""
    shares = weights / weights.sum()
    answers, chosen = decision.answer(probabilities), decision.choose(probabilities)
    values, silent = decision.of_rows(y, answers), answers == len(classes)
    constant = [float(shares @ decision.of_rows(y, np.full(len(y), c))) for c in range(len(classes))]
    counts = np.bincount(y[y >= 0], weights[y >= 0], len(classes))
    threshold = oracle = None
    if len(classes) == 2:
        # The cost without alarms, and what alarms change, one group of equal probabilities after the other.
        scores = probabilities[:, positive]
        alarm, none = (decision.of_rows(y, np.full(len(y), c)) for c in (positive, 1 - positive))
        order = np.argsort(-scores, kind="stable")
        last = np.append(np.flatnonzero(np.diff(scores[order])), len(y) - 1)
        costs = constant[1 - positive] + np.append(0.0, np.cumsum((shares * (alarm - none))[order])[last])
        k = int(costs.argmin())
        ends = np.concatenate(([1.0], scores[order][last], [0.0]))
        threshold, oracle = float(ends[k : k + 2].mean()) if k else 1.0, float(costs[k])
    return CostFigures(
        cost=float(shares @ values),
        interval=stratified_mean_interval(values, weights, y),
        majority=constant[int(counts.argmax())],
        best_class=classes[int(np.argmin(constant))],
        constant=min(constant),
        threshold=threshold,
        oracle=oracle,
        abstained=_share(silent, weights) if decision.may_abstain else None,
        answered_right=_share((answers == y)[~silent], weights[~silent]) if decision.may_abstain else None,
        always_answered=float(shares @ decision.of_rows(y, chosen)) if decision.may_abstain else None,
    )


def _share(right: NDArray[np.bool_], weights: NDArray[np.float64]) -> tuple[float, Interval] | None:
    """Return a share of the weight with its 95 % interval; None without rows."""
    if not len(right):
        return None
    return min(1.0, float(weights @ right / weights.sum())), score_interval(right, weights)


def _of_two(given: Mapping[str, Any], classes: Sequence[str], rarest: str | None) -> tuple[Any, str]:
    """Return costs and origin of ``missed`` and ``false_alarm``."""
    positive = label_of(given.get("positive", rarest))
    if len(classes) != 2:
        raise InputError(
            f"missed and false-alarm (--cost) are for two classes, and there are {len(classes)}; give the cost of "
            "every decision (--costs FILE)."
        )
    if positive not in classes:
        raise InputError(
            f"--positive (positive) must be the class that is missed, one of {', '.join(map(repr, classes))}; got "
            f"{given.get('positive')!r}."
        )
    missed, alarm = (_number(given.get(key), f"--cost ({key})") for key in _OF_TWO[:2])
    if not (missed > 0 and alarm > 0):
        raise InputError("The costs of a missed row and of a false alarm (--cost) must be positive numbers.")
    return _of_errors(
        classes.index(positive), missed, alarm
    ), f"costs: missed {missed:g}, false alarm {alarm:g}"


def _of_errors(positive: int, missed: float, alarm: float) -> tuple[tuple[float, ...], ...]:
    """Return the costs of two classes of which one is missed, and the other gives false alarms."""
    return ((0.0, alarm), (missed, 0.0)) if positive else ((0.0, missed), (alarm, 0.0))


def _matrix(costs: Mapping[Any, Any], classes: Sequence[str]) -> tuple[tuple[float, ...], ...]:
    """Return the costs of a mapping by label, in the order of the classes, possibly with that of abstaining last."""
    rows = {label_of(key): value for key, value in costs.items() if key != ABSTAIN or ABSTAIN in classes}
    unknown = [label for label in rows if label not in classes]
    absent = [label for label in classes if label not in rows]
    for labels, what in ((unknown, "name {!r}, which is no class"), (absent, "lack the class {!r}")):
        if labels:
            raise InputError(
                f"The costs (--costs, costs) {what.format(labels[0])}; the classes are {', '.join(map(repr, classes))}."
            )
    found: list[tuple[float, ...]] = []
    answers = tuple(classes)
    for label in classes:
        row = rows[label]
        own = {label_of(key): value for key, value in row.items()} if isinstance(row, Mapping) else {}
        if not found and ABSTAIN in own and ABSTAIN not in classes:
            answers = (*classes, ABSTAIN)
        if set(own) != set(answers):
            raise InputError(
                f"The costs of rows of class {label!r} must name the cost of every decision: {', '.join(answers)}."
            )
        found.append(tuple(_number(own[to], f"The cost of {to!r} for a row of {label!r}") for to in answers))
    return tuple(found)


def _number(value: Any, what: str) -> float:
    try:
        number = math.nan if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{what} must be a finite number, got {value!r}.")
    return number
