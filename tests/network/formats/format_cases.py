"""Random networks with awkward names and labels, their joint distribution, and random queries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from milpbn.data.dataset import Variable
from milpbn.data.variables import interval_labels
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import Cpt
from milpbn.network.structure import Structure

#: Names and labels that some format or library cannot hold as they are.
NAMES = (
    "a b",
    "A B",
    "table",
    "income, yearly",
    "x|y",
    'say "hi"',
    "été",
    "1st",
    "0",
    "-",
    "variable",
    "a/*b*/",
    "k=v",
)
LABELS = (
    "yes",
    "no",
    "x, y",
    "(x)",
    "table",
    "0.5",
    "007",
    "1e5",
    "é",
    'q"',
    "a b",
    "a_b",
    "//",
    "{;}",
    "?a",
    "unused",
)


def random_classifier(seed: int, n_features: int = 5) -> Classifier:
    """Return a network over nominal, numeric, discretised, constant and missing-valued variables."""
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.permutation(NAMES)[: n_features + 1]]
    variables = []
    for i, name in enumerate(names):
        kind = int(rng.integers(5)) if i < n_features else 0
        if kind == 1:
            cuts = tuple(
                sorted(
                    {float(x) for x in rng.normal(50, 1e-3 if rng.random() < 0.5 else 40, rng.integers(3))}
                )
            )
            variables.append(Variable(name, interval_labels(cuts), cuts=cuts))
        elif kind == 2:
            variables.append(
                Variable(name, ("(-inf, 48.5]", "(48.5, inf)", "?"), cuts=(48.5,), missing_state=True)
            )
        elif kind == 3:
            variables.append(Variable(name, ("-1", "0", "0.5"), numeric=True))
        else:
            labels = rng.permutation(LABELS)[: rng.integers(1 if i < n_features else 2, 4)]
            variables.append(Variable(name, tuple(str(label) for label in labels)))
    order = rng.permutation(n_features + 1)
    parents = [()] * (n_features + 1)
    for position, i in enumerate(order):
        before = order[:position]
        parents[i] = tuple(int(j) for j in rng.permutation(before)[: rng.integers(3)])
    structure = Structure(tuple(names), tuple(parents))
    cpts = []
    for i, given in enumerate(structure.parents):
        shape = [variables[j].n_states for j in given]
        table = rng.dirichlet(np.full(variables[i].n_states, 0.7), size=shape)
        cpts.append(Cpt(i, given, table / table.sum(axis=-1, keepdims=True)))
    return Classifier(tuple(variables), structure, tuple(cpts), 0.25)


def joint(classifier: Classifier) -> np.ndarray:
    """Return the joint distribution, one axis per variable."""
    n = len(classifier.variables)
    product = np.ones([v.n_states for v in classifier.variables])
    for cpt in classifier.cpts:
        axes = [*cpt.parents, cpt.variable]
        ordered = cpt.table.transpose(np.argsort(axes))
        shape = [classifier.variables[j].n_states if j in axes else 1 for j in range(n)]
        product = product * ordered.reshape(shape)
    return product


def queries(classifier: Classifier, count: int, seed: int = 0) -> Iterator[tuple[dict[int, int], float]]:
    """Yield random assignments {variable: state} of some variables, with their probabilities."""
    rng = np.random.default_rng(seed)
    whole = joint(classifier)
    for _ in range(count):
        chosen = rng.permutation(whole.ndim)[: rng.integers(1, whole.ndim + 1)]
        states = {int(i): int(rng.integers(whole.shape[i])) for i in chosen}
        index = tuple(states.get(i, slice(None)) for i in range(whole.ndim))
        yield states, float(np.sum(whole[index]))


def assert_same(found: Classifier, expected: Classifier) -> None:
    """Check that two classifiers are the same to the last bit, besides their provenance."""
    assert found.variables == expected.variables
    assert found.structure == expected.structure
    assert found.smoothing == expected.smoothing
    for a, b in zip(found.cpts, expected.cpts, strict=True):
        assert a.parents == b.parents
        assert np.array_equal(a.table, b.table)


def written(text: str, path: Path) -> str:
    """Write a text and return the path as text, which the libraries want."""
    path.write_text(text, encoding="utf-8")
    return str(path)
