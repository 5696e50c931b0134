"""What a whole classifier has learnt: the tables of its families, and on data, importances and margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING, Dataset, Variable, by_column
from milpbn.errors import InputError
from milpbn.network.cpt import Cpt
from milpbn.network.explanation.columns import Effects, effects_of, interactions, shared_columns, taken_apart
from milpbn.network.explanation.evidence import FamilyTable, family_tables, rules
from milpbn.network.explanation.terms import Terms, base_rates, log_ratio, terms, with_base_rate
from milpbn.network.explanation.wording import base_rate_of, more, nats, of_members
from milpbn.network.margins import checked_gamma, log_margins, soft_margin
from milpbn.util.jsonable import json_safe

#: Whose contribution an importance is about.
Part = Literal["feature", "interaction", "class parents", "base rate"]

#: Number of bars of the histogram of margins.
BINS = 20


@dataclass(frozen=True)
class FamilyImportance:
    """How much a family moves the predictions on some data, or the base rate of the classes.

    What families contribute together, since a missing value is summed over, counts in equal parts for those whose
    variable is known. In a network with two variables of one column, it is a column, or several columns
    together (`milpbn.network.explanation.columns`).
    """

    #: The column of the family's variable. For the family of a class with parents the names of these, joined by
    #: ``and``; for the base rate the class variable.
    variable: str
    #: Other parents of the family's variable, without the class. What the family contributes is theirs as well. Of an
    #: interaction the other columns.
    given: tuple[str, ...]
    #: Whose family this is. A class with parents contributes log P(class | parents) - log P(class).
    part: Part
    #: Mean over the samples of the absolute contribution to the log-odds of the two most probable classes, in nats.
    mean_absolute: float
    #: Mean contribution to the log-margin of the sample's own class against the best other one, in nats; the means of
    #: all families add up to the mean log-margin. None if no sample has a known class.
    mean_margin: float | None

    @property
    def name(self) -> str:
        """What is shown, such as ``a``, ``b given a``, or what the base rate is called."""
        if self.part == "base rate":
            return base_rate_of(self.variable)
        if self.part == "interaction":
            return " and ".join((*self.given, self.variable))
        return f"{self.variable} given {', '.join(self.given)}" if self.given else self.variable


@dataclass(frozen=True)
class LowMargin:
    """A sample whose log-margin is below gamma."""

    #: Position in the data, from 0.
    sample: int
    #: Its own and the most probable class.
    actual: str
    predicted: str
    #: In nats; negative if its own class is not the most probable.
    log_margin: float


@dataclass(frozen=True, eq=False)
class Margins:
    """The log-margins of the samples whose class is known, (8) of Peharz and Pernkopf (2012, P12), in logarithms."""

    #: Positions of these samples in the data, from 0, shape (K,).
    samples: NDArray[np.int64]
    #: In nats, shape (K,).
    log_margins: NDArray[np.float64]
    #: Sample weights, shape (K,).
    weights: NDArray[np.float64]
    #: The desired log-margin of the soft margin, in nats.
    gamma: float | None
    #: The samples below gamma, or whose margin is not positive if gamma is None; the lowest log-margin first.
    below_gamma: tuple[LowMargin, ...]

    def histogram(self, bins: int = BINS) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the total weight by interval of log-margins, shape (bins,), and the edges, shape (bins + 1,).

        Infinite log-margins count in the first and the last interval.
        """
        finite = self.log_margins[np.isfinite(self.log_margins)]
        edges = np.histogram_bin_edges(finite if finite.size else np.zeros(1), bins)
        return np.histogram(self.log_margins.clip(edges[0], edges[-1]), edges, weights=self.weights)

    @property
    def soft_margin(self) -> float | None:
        """The weighted sum of min(log-margin, gamma) in nats, P12 (9); None without gamma."""
        return None if self.gamma is None else soft_margin(self.log_margins, self.gamma, self.weights)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, with the histogram instead of all log-margins."""
        weights, edges = self.histogram()
        own = {"gamma": self.gamma, "soft_margin": self.soft_margin}
        return json_safe(
            {**own, "histogram": {"edges": edges, "weights": weights}, "below_gamma": self.below_gamma}
        )


@dataclass(frozen=True, eq=False)
class GlobalExplanation:
    """What a classifier has learnt."""

    #: Name of the class variable.
    target: str
    #: Class labels.
    classes: tuple[str, ...]
    #: log P(class) before any feature is known, in nats, shape (C,).
    base_rates: NDArray[np.float64]
    #: All families with the class, the class variable's own first, then the features in order.
    tables: tuple[FamilyTable, ...]
    #: Features that are in no family with the class; predictions of complete samples do not depend on them.
    unused: tuple[str, ...]
    #: Of the features' families in `tables` and of the class's parents, the most important first. The last one is the
    #: base rate of the classes, which is no feature's. None without data.
    importances: tuple[FamilyImportance, ...] | None = None
    #: None if no sample has a known class.
    margins: Margins | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; infinite numbers are None."""
        return json_safe(vars(self))

    def to_text(self, shown: int = 20) -> str:
        """Return the explanation as lines of text, with at most this many families, samples or rows of a table."""
        lines = [rules(self.target, self.classes, self.base_rates, self.tables, self.unused, shown)]
        if self.importances is not None:
            lines += _importance_lines(self.importances, shown)
        if self.margins is not None:
            lines += _margin_lines(self.margins, shown)
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.to_text()


@dataclass(frozen=True, eq=False)
class SeveralGlobalExplanations:
    """What the networks of an average have learnt."""

    #: One per network, in their order.
    members: tuple[GlobalExplanation, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; infinite numbers are None."""
        return json_safe(vars(self))

    def to_text(self, shown: int = 20) -> str:
        """Return the explanations as lines of text, each as `GlobalExplanation.to_text` writes it."""
        return of_members([], self.members, shown)

    def __str__(self) -> str:
        return self.to_text()


def recorded_gamma(provenance: Mapping[str, Any]) -> float | None:
    """Return the gamma that a classifier was learnt with, or None if its provenance does not say."""
    score = provenance.get("score")
    gamma = score.get("gamma") if isinstance(score, dict) else None
    return float(gamma) if isinstance(gamma, int | float) and 0 < gamma < np.inf else None


def explain_tables(
    variables: tuple[Variable, ...],
    cpts: Sequence[Cpt],
    data: Dataset | None = None,
    gamma: float | None = None,
) -> GlobalExplanation:
    """Explain a classifier, on data that are encoded with its variables, the class last, if there are any.

    The data are for importances and margins; gamma is a log-margin in nats. `InputError` if gamma is not a positive
    number, or the data have no row with a positive weight.
    """
    gamma = checked_gamma(gamma)
    last = len(variables) - 1
    tables = family_tables(variables, cpts)
    used = {name for table in tables for name in (table.variable, *table.parents)}
    unused = tuple(name for name in by_column(variables[:-1]) if name not in used)
    target, classes = variables[-1].name, variables[-1].states
    base = base_rates([v.name for v in variables], cpts, len(classes))
    if data is None:
        return GlobalExplanation(target, classes, base, tables, unused)
    if not data.weights.sum() > 0:
        raise InputError(
            f"The data {data.name!r} have no row with a positive weight; there is nothing to explain."
        )
    families = effects_of(variables, cpts)
    sums = _Sums.of(variables, list(interactions(families)))
    joint = np.empty((data.n_samples, len(classes)))
    for part in terms(data.codes, data.names, cpts, len(classes), shared_columns(variables)):
        joint[part.rows] = part.log_probabilities.sum(axis=1)
        apart = taken_apart(with_base_rate(part, base, cpts[last].parents), families, data.codes)
        _add_contributions(apart, joint[part.rows], data, sums)
    importances = _importances(sums, variables, cpts, families, data)
    return GlobalExplanation(
        target, classes, base, tables, unused, importances, _margins(joint, classes, data, gamma)
    )


@dataclass(frozen=True, eq=False)
class _Sums:
    """Weighted sums of contributions, absolute ones and those to margins: see `FamilyImportance`.

    Their positions are those of `places`: the first variable of each column, the class for its parents, the number of
    variables for the base rate, and behind it the interactions.
    """

    places: tuple[int, ...]
    together: Mapping[tuple[int, ...], int]
    absolute: NDArray[np.float64]
    margin: NDArray[np.float64]

    @classmethod
    def of(cls, variables: Sequence[Variable], together: Sequence[tuple[int, ...]]) -> _Sums:
        n = len(variables)
        first = {i: places[0] for places in by_column(variables).values() for i in places}
        numbered = {own: n + 1 + k for k, own in enumerate(together)}
        size = n + 1 + len(together)
        return cls(tuple(first[i] for i in range(n)), numbered, np.zeros(size), np.zeros(size))

    def positions(self, group: tuple[int, ...], part: Terms, codes: NDArray[np.int32]) -> list[int]:
        """Return where a term of a sample counts, in equal parts."""
        if not group:
            return [len(self.places)]
        if group in part.together:
            return [self.together[group]]
        known = [i for i in group if codes[i] != MISSING]
        return list(dict.fromkeys(self.places[i] for i in known))


def _add_contributions(part: Terms, joint: NDArray[np.float64], data: Dataset, sums: _Sums) -> None:
    """Add the weighted contributions of some samples to the sums."""
    weights, y = data.weights[part.rows], data.y[part.rows]
    best, second = np.argsort(-joint, axis=1, kind="stable")[:, :2].T
    predicted = _sums_of_terms(np.abs(_ratios(part, best, second)), weights)
    known = y >= 0
    true = _sums_of_terms(_ratios(part, y, np.where(best == y, second, best))[known], weights[known])
    for g, group in enumerate(part.groups):
        seen = sums.positions(group, part, data.codes[part.rows[0]])
        sums.absolute[seen] += predicted[g] / max(1, len(seen))
        sums.margin[seen] += true[g] / max(1, len(seen))


def _importances(
    sums: _Sums,
    variables: tuple[Variable, ...],
    cpts: Sequence[Cpt],
    families: Mapping[int, Effects],
    data: Dataset,
) -> tuple[FamilyImportance, ...]:
    total, labelled = data.weights.sum(), data.weights[data.y >= 0].sum()
    last, names = len(variables) - 1, [v.raw_column for v in variables]

    def found(i: int, variable: str, given: tuple[str, ...], part: Part) -> FamilyImportance:
        mean = float(sums.margin[i] / labelled) if labelled > 0 else None
        return FamilyImportance(variable, given, part, float(sums.absolute[i] / total), mean)

    features = []
    for name, places in by_column(variables[:last]).items():
        if any(last in cpts[i].parents for i in places):
            above = sorted(
                {j for i in places if i not in families for j in cpts[i].parents} - {last, *places}
            )
            features.append(found(places[0], name, tuple(names[j] for j in above), "feature"))
    for (*others, own), at in sums.together.items():
        features.append(found(at, names[own], tuple(names[j] for j in others), "interaction"))
    if of_class := cpts[last].parents:
        features.append(found(last, " and ".join(names[j] for j in of_class), (), "class parents"))
    features.sort(key=lambda importance: -importance.mean_absolute)
    return (*features, found(last + 1, names[last], (), "base rate"))


def _sums_of_terms(ratios: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted sums of the columns; NaN where infinite terms of both signs meet."""
    counted = weights > 0  # 0 times infinity would be NaN
    with np.errstate(invalid="ignore"):
        return np.asarray((ratios[counted] * weights[counted, None]).sum(axis=0))


def _ratios(part: Terms, own: NDArray[np.integer], other: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return the terms' log-ratios of two classes per row, shape (R, G)."""
    logs = part.log_probabilities
    first, second = (np.take_along_axis(logs, c[:, None, None], axis=2)[:, :, 0] for c in (own, other))
    return log_ratio(first, second)


def _margins(
    joint: NDArray[np.float64], labels: tuple[str, ...], data: Dataset, gamma: float | None
) -> Margins | None:
    known = np.flatnonzero(data.y >= 0)
    if not data.weights[known].sum() > 0:
        return None
    y = data.y[known]
    margins = log_margins(joint[known], y)
    order = np.argsort(margins, kind="stable")
    order = order[margins[order] < gamma] if gamma is not None else order[margins[order] <= 0]
    low = tuple(
        LowMargin(int(known[k]), labels[y[k]], labels[joint[known[k]].argmax()], float(margins[k]))
        for k in order
    )
    return Margins(known, margins, data.weights[known], gamma, low)


def _importance_lines(importances: Sequence[FamilyImportance], shown: int) -> list[str]:
    lines = [
        "importance: mean absolute contribution to the log-odds, and mean contribution to the margin, in nats"
    ]
    *features, base = importances
    for importance in (*features[:shown], base):
        margin = "" if importance.mean_margin is None else f"  {nats(importance.mean_margin):>9}"
        lines.append(f"  {importance.mean_absolute:>9.3f}{margin}  {importance.name}")
    lines[-1:-1] = [f"  {line}" for line in more(len(features) - shown, "feature")]
    return lines


def _margin_lines(margins: Margins, shown: int) -> list[str]:
    weights, edges = margins.histogram()
    largest = weights.max()
    lines = ["log-margins in nats: from, to, weight"]
    lines += [
        f"  {nats(a):>9}  {nats(b):>9}  {'#' * int(np.ceil(40 * w / largest)) if largest > 0 else ''} {w:g}"
        for a, b, w in zip(edges[:-1], edges[1:], weights, strict=True)
    ]
    below = f"below gamma = {margins.gamma:.6g}" if margins.gamma is not None else "without a positive margin"
    total = len(margins.log_margins)
    lines.append(f"samples {below}: {len(margins.below_gamma)} of {total}")
    for low in margins.below_gamma[:shown]:
        # Not what is decided, which costs or a threshold may make another class.
        found = f"{low.actual}, most probable {low.predicted}"
        lines.append(f"  {nats(low.log_margin):>9}  sample {low.sample + 1}: {found}")
    return lines + [f"  {line}" for line in more(len(margins.below_gamma) - shown, "sample")]
