"""What a classifier has learnt of one family: how its variable tells the classes apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Variable
from milpbn.errors import InputError
from milpbn.network.cpt import Cpt
from milpbn.network.explanation.terms import log_ratio
from milpbn.network.explanation.wording import factor, joined, shown_states
from milpbn.util.jsonable import json_safe


@dataclass(frozen=True, eq=False)
class FamilyTable:
    """The log-probabilities of a family with the class, as evidence for the classes.

    Attributes
    ----------
    variable : str
        The family's variable; for the class variable the table holds the classes' own probabilities.
    states : tuple of str
        Its states, in the words of `shown_states`; empty for the class variable.
    parents : tuple of str
        Its parents without the class.
    parent_states : tuple of tuples of str
        Their states.
    classes : tuple of str, length C
        Class labels.
    log_probabilities : float64 array, shape (states of each parent..., states of the variable, C)
        log P(variable | parents, class), or log P(class | parents) without the axis of states; in nats.
    """

    variable: str
    states: tuple[str, ...]
    parents: tuple[str, ...]
    parent_states: tuple[tuple[str, ...], ...]
    classes: tuple[str, ...]
    log_probabilities: NDArray[np.float64]

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

        Raises
        ------
        InputError
            If a label is not a class.
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
    """Return in words what log-ratios to the most favoured class say, such as ``favours a by 3.2 over b``.

    Parameters
    ----------
    classes : sequence of str, length C
        Class labels.
    evidence : float64 array, shape (C,)
        Log-ratios to the most favoured class.
    """
    order = np.argsort(-evidence, kind="stable").tolist()
    if not evidence.any():
        return "favours no class"
    best = [classes[c] for c in order if evidence[c] == 0]
    rest = [f"{factor(-evidence[c])} over {classes[c]}" for c in order if evidence[c] != 0]
    return f"favours {' and '.join(best)} by {', '.join(rest)}"


def family_tables(variables: tuple[Variable, ...], cpts: Sequence[Cpt]) -> tuple[FamilyTable, ...]:
    """Return the tables of all families with the class: the class variable's own first, then the features in order."""
    last = len(variables) - 1
    order = sorted(range(last + 1), key=lambda i: (i != last, i))
    return tuple(_table(variables, cpts[i]) for i in order if last in (i, *cpts[i].parents))


def _table(variables: tuple[Variable, ...], cpt: Cpt) -> FamilyTable:
    last = len(variables) - 1
    axes = [*cpt.parents, cpt.variable]
    parents = [j for j in cpt.parents if j != last]
    with np.errstate(divide="ignore"):
        logs = np.moveaxis(np.log(cpt.table), axes.index(last), -1)
    return FamilyTable(
        variable=variables[cpt.variable].name,
        states=() if cpt.variable == last else shown_states(variables[cpt.variable]),
        parents=tuple(variables[j].name for j in parents),
        parent_states=tuple(shown_states(variables[j]) for j in parents),
        classes=variables[last].states,
        log_probabilities=logs,
    )
