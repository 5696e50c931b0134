"""Random data sets and structures."""

from collections.abc import Callable

import numpy as np
import pytest

from milpbn.data.dataset import Dataset, Variable
from milpbn.network import Structure


@pytest.fixture(scope="session")
def make_data() -> Callable[..., Dataset]:
    def make(seed=0, samples=60, states=(2, 3, 4, 1, 3), weights=None) -> Dataset:
        rng = np.random.default_rng(seed)
        variables = tuple(
            Variable(f"x{i}" if i < len(states) - 1 else "class", tuple(f"s{j}" for j in range(n)))
            for i, n in enumerate(states)
        )
        codes = np.column_stack([rng.integers(0, n, samples) for n in states]).astype(np.int32)
        return Dataset("random", variables, codes, np.ones(samples) if weights is None else weights)

    return make


@pytest.fixture(scope="session")
def make_structure() -> Callable[..., Structure]:
    def make(names, seed=0, max_parents=3) -> Structure:
        """Return random parents among the predecessors in a random order; the class may have feature parents."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(names))
        parents = [()] * len(names)
        for position, i in enumerate(order):
            size = rng.integers(0, min(max_parents, position) + 1)
            parents[i] = tuple(int(j) for j in rng.choice(order[:position], size, replace=False))
        return Structure(tuple(names), tuple(parents))

    return make
