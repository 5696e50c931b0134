"""A classifier's tables as compact text: what `print` shows of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milpbn.network.explanation.evidence import FamilyTable
from milpbn.network.explanation.terms import log_ratio
from milpbn.network.explanation.wording import base_rate_of, joined, more, nats

#: Number of classes that a line shows, the favoured ones first.
_CLASSES = 5


def rules(
    target: str,
    classes: Sequence[str],
    base: NDArray[np.float64],
    tables: Sequence[FamilyTable],
    unused: Sequence[str] = (),
    shown: int = 20,
) -> str:
    """Return the tables of log-ratios as lines of text; the families that separate the classes best come first.

    Parameters
    ----------
    target : str
        Name of the class variable.
    classes : sequence of str
        Class labels.
    base : float64 array, shape (C,)
        Logarithms of the classes' base rates (`milpbn.network.explanation.terms.base_rates`).
    tables : sequence of FamilyTable
        The families with the class, that of the class variable first.
    unused : sequence of str
        Features that tell no classes apart.
    shown : int
        Number of features, and of lines for each of them.
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
    lines = _of_two_classes(table, shown) if len(table.classes) == 2 else _of_many_classes(table)
    name = table.variable if table.states else base_rate_of(table.variable)
    if not table.parents and len(lines) == 1:
        return [f"{name}: {lines[0]}"]
    given = f"{table.variable} given {', '.join(table.parents)}" if table.parents else table.variable
    if not table.states:
        above = f"parent{'s' if len(table.parents) > 1 else ''} of {table.variable}"
        given = f"{' and '.join(table.parents)} ({above})"
    return [f"{given}:", *(f"  {line}" for line in [*lines[:shown], *more(len(lines) - shown, "line")])]


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


def _of_many_classes(table: FamilyTable) -> list[str]:
    lines = []
    for conditions, evidence in table.cells():
        order = np.argsort(-evidence, kind="stable")
        numbers = [f"{table.classes[c]} ({nats(evidence[c])})" for c in order[:_CLASSES]]
        left = len(table.classes) - _CLASSES
        shortened = ", ".join(numbers + ([f"... {left} more classes"] if left > 0 else []))
        *above, own = conditions if table.states else (*conditions, ("", ""))
        words = ", ".join(filter(None, (joined(above), own[1])))  # the variable's name is in the heading
        lines.append(f"{words}: {shortened}" if words else shortened)
    return lines


def _few(names: Sequence[str], shown: int = 10) -> str:
    return ", ".join([*names[:shown], *more(len(names) - shown, "name")])
