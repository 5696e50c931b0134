"""How well one class is told from all others: rankings by its probability, decisions, and their 95 % intervals.

Rows of the class are the positive ones, and rows that are predicted to be of it are the alarms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from milpbn.network.intervals import Z_95, Interval, effective_size, score_interval, wilson_interval

#: A class with a smaller share of the weight is rare: figures that it hardly changes say little there.
RARE = 0.1
#: Sensitivities for which `Curve.at_sensitivities` tells thresholds.
SENSITIVITIES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
#: What a difference of weights may be by rounding, relative to their sum.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Threshold:
    """What a threshold does: rows with at least this probability of the class are alarms."""

    threshold: float
    alarms_per_1000: float
    sensitivity: float
    specificity: float
    precision: float


@dataclass(frozen=True, eq=False)
class Curve:
    """The weight of the alarms at every threshold, from the highest threshold to the lowest."""

    #: The different probabilities of the class, descending, shape (K,); those with at least it are alarms.
    thresholds: NDArray[np.float64]
    #: Weight of the positive and of the other rows among the alarms, shape (K,); the last numbers are the totals.
    hits: NDArray[np.float64]
    false_alarms: NDArray[np.float64]

    @classmethod
    def of(
        cls, scores: NDArray[np.float64], positive: NDArray[np.bool_], weights: NDArray[np.float64]
    ) -> Curve:
        """Return the curve of rows with these probabilities of the class; all have the shape (M,), M > 0."""
        order = np.argsort(-scores, kind="stable")
        scores, hits = scores[order], np.where(positive, weights, 0.0)[order]
        last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
        others = np.where(positive, 0.0, weights)[order]
        return cls(scores[last], np.cumsum(hits)[last], np.cumsum(others)[last])

    @property
    def roc(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """1 - specificity and sensitivity, from (0, 0) to (1, 1), shapes (K + 1,)."""
        return np.append(0.0, self.false_alarms / self.false_alarms[-1]), np.append(0.0, self.recall)

    @property
    def recall(self) -> NDArray[np.float64]:
        """The sensitivity at every threshold, shape (K,)."""
        return self.hits / self.hits[-1]

    @property
    def precision(self) -> NDArray[np.float64]:
        """The precision at every threshold, shape (K,)."""
        return self.hits / (self.hits + self.false_alarms)

    @property
    def alarms(self) -> NDArray[np.float64]:
        """The share of the weight that are alarms at every threshold, shape (K,)."""
        return (self.hits + self.false_alarms) / (self.hits[-1] + self.false_alarms[-1])

    def first(self, wanted: NDArray[np.bool_]) -> Threshold:
        """Return the highest threshold of those that are wanted, shape (K,), of which there is one."""
        k = int(np.argmax(wanted))
        others = self.false_alarms[-1]
        return Threshold(
            float(self.thresholds[k]),
            1000 * float(self.alarms[k]),
            float(self.recall[k]),
            1 - float(self.false_alarms[k]) / float(others) if others else math.nan,
            float(self.precision[k]),
        )

    def at_sensitivities(self) -> tuple[Threshold, ...]:
        """Return the highest thresholds with the `SENSITIVITIES`, each once; none without positive rows."""
        if not self.hits[-1]:
            return ()
        found = (self.first(self.recall >= share - _ROUNDING) for share in SENSITIVITIES)
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, eq=False)
class ClassRanking:
    """A figure of how rows are ranked, and what every row adds to its error."""

    #: Between 0 and 1.
    value: float
    #: Their squares, shape (M,), add up to the variance of the value, and those of their differences to that of the
    #: difference of two values on the same rows.
    errors: NDArray[np.float64]
    #: 95 % interval; None if there is none.
    interval: Interval | None


def rankings(
    scores: NDArray[np.float64],
    positive: NDArray[np.bool_],
    weights: NDArray[np.float64],
    curve: Curve | None = None,
) -> dict[str, ClassRanking]:
    """Return ``roc_auc`` and ``average_precision``, as scikit-learn defines them; none if all rows are of one kind.

    Probabilities of the class, whether a row is of it, and positive weights have the shape (M,); the curve is theirs if
    it is known. The variance of
    ROC-AUC is that of DeLong et al. (1988), that of average precision the infinitesimal jackknife's; with weights.
    """
    if positive.all() or not positive.any():
        return {}
    curve = curve or Curve.of(scores, positive, weights)
    place = len(curve.thresholds) - 1 - np.searchsorted(curve.thresholds[::-1], scores)
    hits, others = curve.hits, curve.false_alarms
    own_hits, own_others = np.diff(hits, prepend=0.0), np.diff(others, prepend=0.0)
    total = np.where(positive, hits[-1], others[-1])
    shares = weights / total
    # Of two rows of different classes, the share in which the positive one is ranked first; half of it if equal.
    auc = float(np.trapezoid(np.append(0.0, hits), np.append(0.0, others))) / (hits[-1] * others[-1])
    below, above = 1 - (others - own_others / 2) / others[-1], (hits - own_hits / 2) / hits[-1]
    spread = np.where(positive, below[place], above[place]) - auc
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(shares < 1, shares * spread / np.sqrt(1 - shares), 0.0)

    precision, alarms = curve.precision, hits + others
    ap = float(own_hits @ precision) / hits[-1]
    # What a hit or a false alarm changes at its own threshold and at all lower ones.
    gained = np.cumsum((own_hits * others / alarms**2)[::-1])[::-1]
    lost = np.cumsum((own_hits * hits / alarms**2)[::-1])[::-1]
    change = np.where(positive, precision[place] - ap + gained[place], -lost[place]) / hits[-1]
    ap_errors = weights * change

    # Every positive row is a hit at its own threshold, which raises the average precision of few rows.
    own, place = weights[positive], place[positive]
    without = np.divide(
        hits[place] - own, alarms[place] - own, out=np.ones(len(own)), where=alarms[place] > own
    )
    lower = float(own @ np.maximum(without, 0.0)) / hits[-1]

    sizes = effective_size(own), effective_size(weights[~positive])
    variances = float(errors @ errors), float(ap_errors @ ap_errors)
    return {
        "roc_auc": ClassRanking(auc, errors, _auc_interval(auc, variances[0], *sizes)),
        "average_precision": ClassRanking(
            ap, ap_errors, _ap_interval(min(ap, lower), min(1.0, ap), variances[1], sizes[0])
        ),
    }


def _ap_interval(lower: float, upper: float, variance: float, most: float) -> Interval:
    """Return the ends of the score intervals of two estimates of average precision, one too low and one too high.

    Average precision is a mean of precisions over the positive rows, so that its interval is that of a share with the
    same variance, but on no more rows than these (Boyd, Eng & Page 2013): where all precisions are 1, the estimated
    variance is 0.
    """
    n = min(most, upper * (1 - upper) / variance) if variance > 0 and upper < 1 else most
    return wilson_interval(lower, n)[0], wilson_interval(upper, n)[1]


def _auc_interval(auc: float, variance: float, m: float, n: float) -> Interval:
    """Return the score interval of Newcombe (2006, method 5) for m positive and n other rows, widened to a variance.

    Its ends are areas a with (auc - a)^2 = 1.96^2 f V(a), where V is the variance under exponential distributions
    (Hanley & McNeil 1982), symmetric, and f brings V(auc) to the given variance if that is larger.
    """
    more = (m + n) / 2 - 1

    def model(a: float) -> float:
        return a * (1 - a) / (m * n) * (1 + more * ((1 - a) / (2 - a) + a / (1 + a)))

    factor = max(1.0, variance / model(auc)) if 0 < auc < 1 else 1.0

    def low_end(value: float) -> float:
        def distance(a: float) -> float:
            return value - a - Z_95 * math.sqrt(factor * model(a))

        top = min(value, 1 - 1e-9)
        return 0.0 if value <= 0 else float(scipy.optimize.brentq(distance, 0.0, top, xtol=1e-12))

    return low_end(auc), 1 - low_end(1 - auc)


@dataclass(frozen=True)
class ClassFigures:
    """How well a class is told from all others.

    ROC-AUC and average precision rank rows by the class's probability; the others are about the decisions. Numbers are
    NaN where they are undefined; `intervals` has 95 % intervals of all others, by the names of the attributes.
    """

    label: str
    #: Number of rows of the class, and its share of the weight.
    rows: int
    share: float
    roc_auc: float
    average_precision: float
    sensitivity: float
    specificity: float
    precision: float
    f1: float
    balanced_accuracy: float
    matthews: float
    #: Share of the weight that is predicted to be of the class, times 1,000.
    alarms_per_1000: float
    intervals: dict[str, Interval]
    thresholds: tuple[Threshold, ...]

    def shown(self) -> list[tuple[str, str, str]]:
        """Return name, value and interval of every figure that is defined, as text."""
        found = []
        for key, name in NAMES.items():
            if not math.isnan(getattr(self, key)):
                low, high = self.intervals[key]
                found.append((name, f"{getattr(self, key):.4f}", f"95 % interval {low:.4f} to {high:.4f}"))
        return found

    def cells(self) -> list[str]:
        """Return the figures of a table's row, in the order of `NAMES`, as text; "-" for those that are undefined."""
        values = (getattr(self, key) for key in NAMES)
        return ["-" if math.isnan(value) else f"{value:.4f}" for value in values]

    def shown_thresholds(self) -> list[list[str]]:
        """Return the table of thresholds as text: its head, and a row for each; none without positive rows."""
        rows = [
            [f"{t.threshold:.4g}", f"{t.alarms_per_1000:.1f}"]
            + [f"{100 * share:.1f} %" for share in (t.sensitivity, t.specificity, t.precision)]
            for t in self.thresholds
        ]
        head = ["threshold", "alarms per 1,000", "sensitivity", "specificity", "precision"]
        return [head, *rows] if rows else []


#: The figures of a class in the order in which they are shown, with their names.
NAMES = {
    "roc_auc": "ROC-AUC",
    "average_precision": "average precision",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
    "precision": "precision",
    "f1": "F1",
    "balanced_accuracy": "balanced accuracy",
    "matthews": "Matthews",
}
#: Those that rank rows, and are shown with intervals beside the others.
LEADING = ("roc_auc", "average_precision")


def class_figures(
    label: str,
    scores: NDArray[np.float64] | None,
    positive: NDArray[np.bool_],
    alarm: NDArray[np.bool_],
    weights: NDArray[np.float64],
) -> ClassFigures:
    """Return the figures of a class: its probabilities, which rows are of it and predicted to be, positive weights.

    Without probabilities there are only the figures of the decisions.
    """
    curve = None if scores is None else Curve.of(scores, positive, weights)
    ranked = {} if scores is None else rankings(scores, positive, weights, curve)
    values = {key: ranking.value for key, ranking in ranked.items()}
    intervals = {key: ranking.interval for key, ranking in ranked.items() if ranking.interval is not None}
    shares = {
        "sensitivity": (alarm, positive),
        "specificity": (~alarm, ~positive),
        "precision": (positive, alarm),
        # F1 = 2 s / (1 + s) for the share s of hits among the rows that are positive or alarms.
        "f1": (positive & alarm, positive | alarm),
    }
    for key, (right, among) in shares.items():
        if among.any():
            w = weights[among]
            values[key] = min(1.0, float(w @ right[among]) / float(w.sum()))
            intervals[key] = score_interval(right[among], w)
    if "f1" in values:
        low, high = intervals["f1"]
        values["f1"], intervals["f1"] = (_f1(values["f1"]), (_f1(low), _f1(high)))
    if "sensitivity" in values and "specificity" in values:
        share = float(weights @ positive / weights.sum())
        parts = (values["sensitivity"], values["specificity"], share)
        ends = (intervals["sensitivity"], intervals["specificity"], score_interval(positive, weights))
        for key, function in (("balanced_accuracy", _balanced), ("matthews", _matthews)):
            values[key] = function(*parts)
            intervals[key] = _combined(function, parts, ends)
    return ClassFigures(
        label=label,
        rows=int(np.count_nonzero(positive)),
        share=float(weights @ positive / weights.sum()),
        alarms_per_1000=1000 * float(weights @ alarm / weights.sum()),
        intervals=intervals,
        thresholds=() if curve is None else curve.at_sensitivities(),
        **{key: values.get(key, math.nan) for key in NAMES},
    )


def mean_figures(found: Sequence[ClassFigures]) -> tuple[dict[str, float], dict[str, Interval]]:
    """Return the means of the figures of several classes, without undefined ones, and their intervals.

    The ends of an interval are the means of the classes' ends, which holds however the classes depend on one another.
    """
    values: dict[str, float] = {}
    intervals: dict[str, Interval] = {}
    for key in NAMES:
        known = [one for one in found if key in one.intervals]
        if known:
            values[key] = float(np.mean([getattr(one, key) for one in known]))
            low, high = (float(np.mean([one.intervals[key][end] for one in known])) for end in (0, 1))
            intervals[key] = low, high
    return values, intervals


def _f1(share: float) -> float:
    return 2 * share / (1 + share)


def _balanced(sensitivity: float, specificity: float, share: float) -> float:
    return (sensitivity + specificity) / 2


def _matthews(sensitivity: float, specificity: float, share: float) -> float:
    """Return Matthews' correlation coefficient; 0 where all or no rows are alarms, as scikit-learn has it."""
    alarms = share * sensitivity + (1 - share) * (1 - specificity)
    spread = alarms * (1 - alarms)
    if spread <= _ROUNDING:
        return 0.0
    return (sensitivity + specificity - 1) * math.sqrt(share * (1 - share) / spread)


def _combined(
    function: Callable[..., float], parts: tuple[float, ...], ends: tuple[Interval, ...]
) -> Interval:
    """Return the interval of a function of independent shares, from their intervals (Zou & Donner 2008).

    The squares of what each share can change are added; an end of its interval changes the function, or an inner point
    changes it as much, since the function is monotone in each.
    """
    centre, down, up = function(*parts), 0.0, 0.0
    for k, interval in enumerate(ends):
        changed = [function(*parts[:k], end, *parts[k + 1 :]) - centre for end in interval]
        down += min(0.0, *changed) ** 2
        up += max(0.0, *changed) ** 2
    return max(-1.0, centre - math.sqrt(down)), min(1.0, centre + math.sqrt(up))
