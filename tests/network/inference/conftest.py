"""Random networks, and their joint distributions by enumeration in plain Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from milpbn.data.dataset import UNKNOWN, Variable
from milpbn.network import Classifier, Cpt, Structure

LETTERS = "abcdef"


@pytest.fixture(scope="session")
def random_network() -> Callable[..., Classifier]:
    def make(
        seed: int, n_variables: int = 6, states: int = 3, max_parents: int = 3, zeros: bool = False
    ) -> Classifier:
        """Return a network with random parents (the class anywhere), numbers of states from 1 up, and tables."""
        rng = np.random.default_rng(seed)
        sizes = [int(n) for n in rng.integers(1, states + 1, n_variables)]
        sizes[-1] = max(2, sizes[-1])
        order = rng.permutation(n_variables)
        parents: list[tuple[int, ...]] = [()] * n_variables
        for place, v in enumerate(order):
            size = int(rng.integers(0, min(max_parents, place) + 1))
            parents[v] = tuple(sorted(int(u) for u in rng.choice(order[:place], size, replace=False)))
        cpts = []
        for v, above in enumerate(parents):
            table = rng.random([sizes[u] for u in (*above, v)]) + 0.02
            if zeros and sizes[v] > 1:
                table[..., 0] = 0.0
            cpts.append(Cpt(v, above, table / table.sum(axis=-1, keepdims=True)))
        names = (*(f"x{v}" for v in range(n_variables - 1)), "class")
        variables = tuple(Variable(n, tuple(LETTERS[:k])) for n, k in zip(names, sizes, strict=True))
        return Classifier(variables, Structure(names, tuple(parents)), tuple(cpts))

    return make


def factor(cpt: Cpt, row: tuple[int, ...]) -> float:
    """Return a variable's factor: 1 if its value is unseen, the uniform one if a parent's is."""
    if row[cpt.variable] == UNKNOWN:
        return 1.0
    if any(row[u] == UNKNOWN for u in cpt.parents):
        return 1.0 / cpt.table.shape[-1]
    return float(cpt.table[(*(row[u] for u in cpt.parents), row[cpt.variable])])


@pytest.fixture(scope="session")
def enumerate_joint() -> Callable[..., dict[tuple[int, ...], float]]:
    def joint(classifier: Classifier, known: dict[int, int]) -> dict[tuple[int, ...], float]:
        """Return the probability of every row of states that has the known codes; they may be `UNKNOWN`."""
        choices = [
            [known[i]] if i in known else range(v.n_states) for i, v in enumerate(classifier.variables)
        ]
        return {
            row: float(np.prod([factor(cpt, row) for cpt in classifier.cpts]))
            for row in itertools.product(*choices)
        }

    return joint
