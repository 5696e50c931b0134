"""Structures and weights for tests of normalised tables."""

from __future__ import annotations

import itertools

import numpy as np

from milpbn.network.cpt import Cpt, log_cpts
from milpbn.network.structure import Structure

#: Features 0 to 3, the class is 4.
NAMES = ("x0", "x1", "x2", "x3", "class")
PERFECT = {
    "naive Bayes": ((4,), (4,), (4,), (4,), ()),
    "TAN": ((4,), (0, 4), (0, 4), (2, 4), ()),
    "class-free leaves": ((4,), (0,), (0, 4), (1, 2), ()),
    "three parents": ((4,), (0, 4), (0, 1, 4), (0, 1, 2, 4), ()),
    "class parents": ((), (0, 4), (0, 4), (2, 4), (0,)),
    "class parents that are not adjacent": ((), (), (0, 4), (1, 4), (0, 1)),
    "a parent of the class that has parents": ((1,), (), (0, 4), (0, 1, 4), (0, 1)),
}
#: The arcs that `completed` adds, by structure.
COMPLETED = {
    "a class-free parent": (((), (0, 4), (1, 4), (4,), ()), [(4, 0)]),
    "a class-free parent with parents": (((), (0,), (1, 4), (2, 4), ()), [(4, 1), (4, 0)]),
    "two class-free parents": (((), (0, 4), (), (2, 4), ()), [(4, 2), (4, 0)]),
    "parents that are not adjacent": (((4,), (4,), (0, 1, 4), (4,), ()), [(0, 1)]),
    "class-free parents that are not adjacent": (((), (), (0, 1, 4), (4,), ()), [(0, 1), (4, 0), (4, 1)]),
    "an arc that needs another": (((4,), (4,), (0, 4), (1, 2, 4), ()), [(1, 2), (0, 1)]),
    "a parent of the class beside another parent": (((), (4,), (0, 1, 4), (4,), (0,)), [(0, 1)]),
}


def random_weights(data, structure: Structure, seed: int, spread: float = 3.0) -> list[Cpt]:
    """Return weights for the families with the class, and log-probabilities for the others."""
    rng = np.random.default_rng(seed)
    target = len(structure.names) - 1
    return [
        Cpt(cpt.variable, cpt.parents, spread * rng.standard_normal(cpt.table.shape))
        if cpt.variable == target or target in cpt.parents
        else cpt
        for cpt in log_cpts(data, structure, 1.0)
    ]


def all_states(data) -> np.ndarray:
    """Return every joint state of the features, with class 0."""
    sizes = [range(n) for n in data.n_states[:-1].tolist()]
    return np.array([(*states, 0) for states in itertools.product(*sizes)], dtype=np.int32)
