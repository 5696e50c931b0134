"""What a classifier has learnt of its families: how their variables tell the classes apart, as tables and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Variable, by_column
from milpbn.data.variables import interval_labels
from milpbn.errors import InputError
from milpbn.network.cpt import Cpt
from milpbn.network.explanation.columns import by_effects, curve, effects_of, interactions
from milpbn.network.explanation.terms import log_ratio
from milpbn.network.explanation.wording import (
    base_rate_of,
    cuts_between,
    factor,
    joined,
    more,
    nats,
    shown_states,
)
from milpbn.util.jsonable import json_safe

#: Number of classes that a line shows, the favoured ones first, and of intervals of a curve.
_CLASSES, _PIECES = 5, 10
#: Of an interaction with more cells than the first number only the largest are shown, the second number.
_CELLS, _LARGEST = 12, 5


@dataclass(frozen=True, eq=False)
class FamilyTable:
    """The log-probabilities of a family with the class, as evidence for the classes.

    In a network with two variables of one column, it is a curve, what a column says by itself, or an interaction, what
    several columns say only together (`milpbn.network.explanation.columns`).
    """

    #: The family's variable, or the column; for the class variable the table holds the classes' own probabilities.
    variable: str
    #: Its states, in the words of `shown_states`; empty for the class variable.
    states: tuple[str, ...]
    #: Its parents without the class.
    parents: tuple[str, ...]
    #: Their states.
    parent_states: tuple[tuple[str, ...], ...]
    #: Class labels.
    classes: tuple[str, ...]
    #: log P(variable | parents, class) in nats, shape (states of each parent..., states of the variable, C), or
    #: log P(class | parents) without the axis of states.
    log_probabilities: NDArray[np.float64]
    #: What the table is.
    form: Literal["family", "curve", "interaction"] = "family"

    @property
    def evidence(self) -> NDArray[np.float64]:
        """The log-ratios to the class with the largest probability in the cell (0 for that class, else negative)."""
        logs = self.log_probabilities
        return log_ratio(logs, np.broadcast_to(logs.max(axis=-1, keepdims=True), logs.shape))

    @property
    def strength(self) -> float:
        """The largest log-ratio between two classes in any cell, in nats; infinite with a probability of 0."""
        return float(-self.evidence.min())

    def log_ratios(self, label: str, against: str) -> NDArray[np.float64]:
        """Return the log-ratios of two classes in nats, shape (states of each parent..., states of the variable).

        `InputError` if a label is not a class.
        """
        for name in (label, against):
            if name not in self.classes:
                raise InputError(f"{name!r} is not one of the classes {', '.join(map(repr, self.classes))}.")
        own, other = (self.log_probabilities[..., self.classes.index(name)] for name in (label, against))
        return log_ratio(own, other)

    @property
    def n_cells(self) -> int:
        """Number of joint states of the variable and its parents, without the class."""
        return self.log_probabilities.size // len(self.classes)

    def cells(self) -> Iterator[tuple[tuple[tuple[str, str], ...], NDArray[np.float64]]]:
        """Yield for every cell the variables with their states, the parents first, and `evidence`, shape (C,)."""
        names = (*self.parents, self.variable) if self.states else self.parents
        labels = (*self.parent_states, self.states) if self.states else self.parent_states
        evidence = self.evidence
        for index in np.ndindex(evidence.shape[:-1]):
            values = (states[k] for states, k in zip(labels, index, strict=True))
            yield tuple(zip(names, values, strict=True)), evidence[index]

    def sentences(self) -> Iterator[str]:
        """Yield a sentence per cell: which class it favours, and by which factor over the others."""
        for conditions, evidence in self.cells():
            yield f"{joined(conditions) or 'no condition'}: {favours(self.classes, evidence)}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; infinite numbers are None."""
        return json_safe({**vars(self), "strength": self.strength})


def favours(classes: Sequence[str], evidence: NDArray[np.float64]) -> str:
    """Return log-ratios to the most favoured class, shape (C,), in words, such as ``favours a by 3.2 over b``."""
    order = np.argsort(-evidence, kind="stable").tolist()
    if not evidence.any():
        return "favours no class"
    best = [classes[c] for c in order if evidence[c] == 0]
    rest = [f"{factor(-evidence[c])} over {classes[c]}" for c in order if evidence[c] != 0]
    return f"favours {' and '.join(best)} by {', '.join(rest)}"


def family_tables(variables: tuple[Variable, ...], cpts: Sequence[Cpt]) -> tuple[FamilyTable, ...]:
    """Return the tables of all families with the class: the class variable's own first, then the features in order.

    In a network with two variables of one column there are curves and interactions behind them, instead of the families
    that are taken apart.
    """
    last = len(variables) - 1
    whole = {i for i in range(last + 1) if last in (i, *cpts[i].parents)}
    found: list[FamilyTable] = []
    if by_effects(variables, cpts):
        families = effects_of(variables, cpts)
        columns = by_column(variables[:last])
        for places in columns.values():
            finest, logs = curve(variables, cpts, families, places)
            if np.ptp(logs, axis=-1).any():
                found.append(_family(variables, (), finest, logs, "curve"))
            whole -= {i for i in places if i in families or set(cpts[i].parents) <= {*places, last}}
        together = interactions(families).items()
        found += [_family(variables, above, own, logs, "interaction") for (*above, own), logs in together]
    order = sorted(whole, key=lambda i: (i != last, i))
    return (*(_of_cpt(variables, cpts[i]) for i in order), *found)


def _family(
    variables: Sequence[Variable],
    parents: Sequence[int],
    own: int,
    logs: NDArray[np.float64],
    form: Literal["family", "curve", "interaction"] = "family",
) -> FamilyTable:
    """Return the table of a variable and its parents without the class; it has no states if it is the class."""
    above = [variables[j] for j in parents]
    return FamilyTable(
        variable=variables[own].raw_column,
        states=() if own == len(variables) - 1 else shown_states(variables[own]),
        parents=tuple(v.raw_column for v in above),
        parent_states=tuple(map(shown_states, above)),
        classes=variables[-1].states,
        log_probabilities=logs,
        form=form,
    )


def _of_cpt(variables: Sequence[Variable], cpt: Cpt) -> FamilyTable:
    last, axes = len(variables) - 1, [*cpt.parents, cpt.variable]
    with np.errstate(divide="ignore"):
        logs = np.moveaxis(np.log(cpt.table), axes.index(last), -1)
    return _family(variables, [j for j in cpt.parents if j != last], cpt.variable, logs)


def rules(
    target: str,
    classes: Sequence[str],
    base: NDArray[np.float64],
    tables: Sequence[FamilyTable],
    unused: Sequence[str] = (),
    shown: int = 20,
) -> str:
    """Return the tables of log-ratios as lines of text; the families that separate the classes best come first.

    The arguments are attributes of `milpbn.network.explanation.GlobalExplanation`, and the number of features, and of
    lines for each of them, that are shown.
    """
    own, *features = tables
    if own.parents:
        features.append(replace(own, log_probabilities=log_ratio(own.log_probabilities, base)))
    ranked = sorted(features, key=lambda table: -table.strength)
    rates = FamilyTable(target, (), (), (), tuple(classes), base)
    lines = [f"Classes of {target}: {_few(classes)}", _legend(classes), *_of_table(rates, shown)]
    for table in ranked[:shown]:
        lines += _of_table(table, shown)
    lines += more(len(ranked) - shown, "feature")
    return "\n".join([*lines, *([f"not used: {_few(unused)}"] if unused else [])])


def _legend(classes: Sequence[str]) -> str:
    if len(classes) == 2:
        return f"Each number is added to the log-odds of {classes[1]} against {classes[0]}, in nats:"
    return (
        "Each number is added to the log-probability of its class, in nats; that of the favoured class is 0:"
    )


def _of_table(table: FamilyTable, shown: int) -> list[str]:
    """Return the lines of a table: with two classes one per state of the parents, else one per cell."""
    table, left = _shortened(table)
    two = len(table.classes) == 2
    if table.form == "interaction" and table.n_cells > _CELLS:
        lines = _largest(table)
    else:
        lines = _of_two_classes(table, shown) if two else _of_many_classes(table)
    name = f"{table.variable}{left}" if table.states else base_rate_of(table.variable)
    if not table.parents and len(lines) == 1:
        return [f"{name}: {lines[0]}"]
    given = f"{table.variable} given {', '.join(table.parents)}" if table.parents else name
    if table.form == "interaction":
        given = f"{' and '.join((*table.parents, table.variable))}, what they add only together"
    if not table.states:
        above = f"parent{'s' if len(table.parents) > 1 else ''} of {table.variable}"
        given = f"{' and '.join(table.parents)} ({above})"
    return [f"{given}:", *(f"  {line}" for line in [*lines[:shown], *more(len(lines) - shown, "line")])]


def _shortened(table: FamilyTable) -> tuple[FamilyTable, str]:
    """Return a curve with adjacent intervals of similar numbers joined to `_PIECES`, and words that say so."""
    cuts = cuts_between(table.states) if table.form == "curve" else None
    if cuts is None or len(cuts) < _PIECES:
        return table, ""
    n, logs = len(cuts) + 1, table.log_probabilities
    centred = logs - logs.mean(axis=-1, keepdims=True)
    pieces = [(k, k + 1) for k in range(n)]

    def spread(start: int, end: int) -> float:
        return float(((centred[start:end] - centred[start:end].mean(axis=0)) ** 2).sum())

    while len(pieces) > _PIECES:  # by Ward's criterion: the squared differences from the means grow least
        costs = [spread(a[0], b[1]) - spread(*a) - spread(*b) for a, b in pairwise(pieces)]
        k = int(np.argmin(costs))
        pieces[k : k + 2] = [(pieces[k][0], pieces[k + 1][1])]
    means = [centred[start:end].mean(axis=0) for start, end in pieces]
    states = (*interval_labels([cuts[start - 1] for start, _ in pieces[1:]]), *table.states[n:])
    shorter = replace(table, states=states, log_probabilities=np.array([*means, *centred[n:]]))
    return shorter, f" (means over {n} intervals)"


def _of_two_classes(table: FamilyTable, shown: int) -> list[str]:
    ratios = table.log_ratios(table.classes[1], table.classes[0])
    lines = []
    for index in np.ndindex(tuple(map(len, table.parent_states))):
        above = joined((p, s[k]) for p, s, k in zip(table.parents, table.parent_states, index, strict=True))
        numbers = [nats(value) for value in np.ravel(ratios[index])]
        cells = [
            f"{state} ({number})" for state, number in zip(table.states, numbers, strict=False)
        ] or numbers
        shortened = ", ".join(cells[:shown] + more(len(cells) - shown, "state"))
        lines.append(f"{above}: {shortened}" if above else shortened)
    return lines


def _largest(table: FamilyTable) -> list[str]:
    """Return the lines of the largest cells of a table, and how large the others are at most."""
    cells = list(table.cells())
    sizes = [-evidence.min() for _, evidence in cells]
    order = np.argsort(sizes)[::-1].tolist()
    ratios = table.log_ratios(table.classes[1], table.classes[0]).ravel()
    numbers = (
        [nats(r) for r in ratios]
        if len(table.classes) == 2
        else [_numbers(table.classes, e) for _, e in cells]
    )
    lines = [f"{joined(cells[k][0])}: {numbers[k]}" for k in order[:_LARGEST]]
    return [*lines, f"... {len(cells) - _LARGEST} more cells, of at most {sizes[order[_LARGEST]]:.3f} nats"]


def _numbers(classes: Sequence[str], evidence: NDArray[np.float64]) -> str:
    order = np.argsort(-evidence, kind="stable")
    numbers = [f"{classes[c]} ({nats(evidence[c])})" for c in order[:_CLASSES]]
    left = len(classes) - _CLASSES
    return ", ".join(numbers + ([f"... {left} more classes"] if left > 0 else []))


def _of_many_classes(table: FamilyTable) -> list[str]:
    lines = []
    for conditions, evidence in table.cells():
        shortened = _numbers(table.classes, evidence)
        *above, own = conditions if table.states else (*conditions, ("", ""))
        words = ", ".join(filter(None, (joined(above), own[1])))  # the variable's name is in the heading
        lines.append(f"{words}: {shortened}" if words else shortened)
    return lines


def _few(names: Sequence[str], shown: int = 10) -> str:
    return ", ".join([*names[:shown], *more(len(names) - shown, "name")])
