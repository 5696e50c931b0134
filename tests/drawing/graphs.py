"""Random structures to draw."""

from __future__ import annotations

import numpy as np

Parents = list[tuple[int, ...]]


def forest(n: int, seed: int, unused: float = 0.1) -> Parents:
    """Return a forest over n features with the class, the last variable, as a parent of most."""
    rng = np.random.default_rng(seed)
    parents: Parents = []
    for i in range(n):
        used = [j for j in range(i) if parents[j]]
        if rng.random() < unused:
            parents.append(())
        elif used and rng.random() < 0.85:
            parents.append((int(rng.choice(used[-10:])), n))
        else:
            parents.append((n,))
    return [*parents, ()]


def dag(n: int, seed: int, most: int = 2, of_class: int = 0) -> Parents:
    """Return an acyclic graph with up to so many feature parents, also of the class."""
    rng = np.random.default_rng(seed)
    parents: Parents = []
    for i in range(n):
        before = np.arange(max(0, i - 12), i)
        chosen = rng.choice(before, size=min(len(before), rng.integers(0, most + 1)), replace=False)
        parents.append((*map(int, chosen), *(() if i < of_class else (n,))))
    return [*parents, tuple(range(of_class))]
