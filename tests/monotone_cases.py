"""Random networks for tests of monotone features, and what enumeration says of them."""

from __future__ import annotations

import itertools

import numpy as np

from milpbn.data.dataset import Dataset, Variable
from milpbn.network import Classifier
from milpbn.network.monotone.constraints import MonotoneConstraint, StateOrder
from milpbn.network.structure import Structure


def numbered(data: Dataset, **changed: Variable) -> Dataset:
    """Return data whose labels are numbers; variables of other kinds by name."""
    variables = tuple(
        changed.get(v.name, Variable(v.name, tuple(map(str, range(v.n_states))), numeric=True))
        for v in data.variables
    )
    return Dataset(data.name, variables, data.codes, data.weights)


def random_structure(rng: np.random.Generator, names: tuple[str, ...], max_parents: int = 3) -> Structure:
    """Return random parents along a random order; in two of three networks the class comes first."""
    order = rng.permutation(len(names))
    if rng.random() < 2 / 3:
        order = np.r_[len(names) - 1, order[order < len(names) - 1]]
    parents: list[tuple[int, ...]] = [()] * len(names)
    for position, i in enumerate(order):
        size = rng.integers(0, min(max_parents, position) + 1)
        chosen = rng.choice(order[:position], size, replace=False)
        if len(names) - 1 in order[:position] and rng.random() < 0.8:
            chosen = np.union1d(chosen[: max_parents - 1], [len(names) - 1])
        parents[i] = tuple(int(j) for j in chosen)
    return Structure(names, tuple(parents))


def smallest_by_enumeration(classifier: Classifier, constraint: MonotoneConstraint) -> float:
    """Return the smallest change of log-odds from one state to the next, over all complete rows."""
    order = StateOrder.of(constraint, classifier.variables)
    (place,) = order.places
    others = [range(v.n_states) for k, v in enumerate(classifier.variables[:-1]) if k != place]
    rows = np.array([[*r[:place], 0, *r[place:], 0] for r in itertools.product(*others)], dtype=np.int32)
    along = []
    for code in order.codes:
        rows[:, place] = code
        data = Dataset("all", classifier.variables, rows.copy(), np.ones(len(rows)))
        along.append(classifier.predict_log_joint(data)[:, list(order.classes)])
    odds = np.diff(np.array(along), axis=2)
    return float(np.diff(odds, axis=0).min(initial=0.0 if len(along) < 2 else np.inf))
