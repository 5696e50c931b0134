"""Generated tables: a wide continuous one, a wide nominal one, and a large one that is sampled from a network.

The same seed gives the same table. On `wide_continuous`, earlier versions exceeded their time limits: MDLP keeps all
of its features, and there are some 120,000 parent sets of up to three parents.
"""

from __future__ import annotations

import numpy as np
import pandas as pd


def wide_continuous(rows: int = 2300, features: int = 57, seed: int = 0) -> pd.DataFrame:
    """Return continuous features that all keep cuts under MDLP, and two classes; the class is the last column.

    The mean and the spread of every feature depend on the class; its value also depends on the feature before it.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    columns: dict[str, object] = {}
    before = rng.normal(size=rows)
    for i in range(features):
        mean, spread = rng.uniform(0.3, 0.6), rng.uniform(1.0, 1.5)
        own = rng.normal(size=rows) * np.where(y == 1, spread, 1.0) + mean * y
        before = own + rng.uniform(0.0, 0.5) * before
        columns[f"x{i + 1}"] = np.round(before, 4)
    columns["class"] = np.where(y == 1, "yes", "no")
    return pd.DataFrame(columns)


def wide_nominal(rows: int = 2200, features: int = 36, seed: int = 0) -> pd.DataFrame:
    """Return nominal features of two to four states, and two classes; the class is the last column."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    columns: dict[str, object] = {}
    before = rng.integers(0, 2, rows)
    for i in range(features):
        states = int(rng.integers(2, 5))
        tables = rng.dirichlet(np.ones(states), size=(2, 4))
        draws = (tables[y, before].cumsum(axis=1) < rng.random(rows)[:, None]).sum(axis=1)
        before = np.minimum(draws, states - 1)
        columns[f"x{i + 1}"] = [f"s{v}" for v in before]
    columns["class"] = np.where(y == 1, "yes", "no")
    return pd.DataFrame(columns)


def forest(
    rows: int = 1_000_000,
    features: int = 30,
    states: int = 4,
    classes: int = 3,
    seed: int = 0,
    concentration: float = 5.0,
) -> pd.DataFrame:
    """Return samples of a random forest-augmented network: a feature's parents are the class and up to one feature.

    The columns are integer codes; the class is the last one. The smaller the Dirichlet `concentration` of the
    probabilities, the easier it is to separate the classes: at 1 nearly every margin is beyond gamma, and any bound is
    close.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows).astype(np.int8)
    codes = np.empty((rows, features), dtype=np.int8)
    for i in range(features):
        parent = int(rng.integers(0, i)) if i and rng.random() < 0.9 else None
        tables = rng.dirichlet(
            np.full(states, concentration), size=(classes, 1 if parent is None else states)
        )
        above = np.zeros(rows, dtype=np.int8) if parent is None else codes[:, parent]
        # Count the cumulated probabilities below a uniform draw. The loop needs less memory than an array with an axis
        # of states, and there are many rows.
        limits, draw = tables.cumsum(axis=2), rng.random(rows)
        codes[:, i] = 0
        for state in range(states - 1):
            codes[:, i] += draw > limits[y, above, state]
    table = pd.DataFrame(codes, columns=[f"x{i + 1}" for i in range(features)])
    table["class"] = y
    return table


def random_network(rows: int = 10_000, variables: int = 60, seed: int = 0) -> pd.DataFrame:
    """Return samples of a random network of nominal variables with two to five states and up to three parents."""
    rng = np.random.default_rng(seed)
    states, codes = rng.integers(2, 6, variables), np.zeros((rows, variables), dtype=np.int64)
    order = rng.permutation(variables)
    for k, v in enumerate(order):
        parents = rng.choice(order[:k], size=min(k, int(rng.integers(0, 4))), replace=False)
        above = np.zeros(rows, dtype=np.int64)
        for j in parents:
            above = above * states[j] + codes[:, j]
        tables = rng.dirichlet(np.full(states[v], 0.6), int(np.prod(states[parents]))).cumsum(axis=1)
        draws = (rng.random(rows)[:, None] > tables[above]).sum(axis=1)
        codes[:, v] = np.minimum(draws, states[v] - 1)
    return pd.DataFrame({f"x{v}": [f"s{code}" for code in codes[:, v]] for v in range(variables)})
