"""Tree-augmented naive Bayes against definitions and networkx."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import dataset, random_data

from milpbn.heuristics.information import conditional_mutual_information
from milpbn.heuristics.spanning import tan_structure
from milpbn.network.structure import Structure


def mutual_information(data, i: int, j: int) -> float:
    """I(X_i; X_j | C) by its definition: sum over states of p(x, y, c) log(p(x, y, c) p(c) / (p(x, c) p(y, c)))."""
    total = data.weights.sum()

    def p(**states) -> float:
        keep = np.ones(data.n_samples, dtype=bool)
        for column, state in ((i, states.get("x")), (j, states.get("y")), (-1, states.get("c"))):
            if state is not None:
                keep &= data.codes[:, column] == state
        return data.weights[keep].sum() / total

    value = 0.0
    for x in range(data.n_states[i]):
        for y in range(data.n_states[j]):
            for c in range(data.n_classes):
                joint = p(x=x, y=y, c=c)
                if joint > 0:
                    value += joint * log(joint * p(c=c) / (p(x=x, c=c) * p(y=y, c=c)))
    return value


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_conditional_mutual_information_follows_its_definition(seed: int, weights: bool) -> None:
    data = random_data(seed, n_features=4, n_samples=25, weights=weights)
    information = conditional_mutual_information(data)
    np.testing.assert_allclose(information, information.T, atol=1e-12)
    for i in range(4):
        for j in range(i):
            assert information[i, j] == pytest.approx(mutual_information(data, i, j), abs=1e-10)


@pytest.mark.parametrize("n_features", [2, 3, 6, 9])
@pytest.mark.parametrize("seed", range(3))
def test_tree_is_a_maximum_spanning_tree(n_features: int, seed: int) -> None:
    nx = pytest.importorskip("networkx")
    data = random_data([91, seed], n_features=n_features, n_samples=60, weights=bool(seed))
    structure = tan_structure(data)
    information = conditional_mutual_information(data)
    edges = {frozenset((j, i)) for j, i in structure.arcs if n_features not in (j, i)}
    graph = nx.Graph()
    for i in range(n_features):
        for j in range(i):
            graph.add_edge(i, j, weight=information[i, j])
    best = nx.maximum_spanning_tree(graph)
    assert len(edges) == n_features - 1
    assert nx.is_tree(nx.Graph([tuple(e) for e in edges]))
    assert sum(information[tuple(e)] for e in edges) == pytest.approx(best.size(weight="weight"), abs=1e-12)
    if (
        len({round(v, 12) for v in information[np.triu_indices(n_features, 1)]})
        == n_features * (n_features - 1) // 2
    ):
        assert edges == {frozenset(e) for e in best.edges}


@pytest.mark.parametrize("root", [0, 2])
def test_every_feature_but_the_root_has_the_class_and_one_feature_as_parents(root: int) -> None:
    data = random_data(92, n_features=5, n_samples=40)
    structure = tan_structure(data, root)
    assert structure.parents[-1] == ()
    assert structure.parents[root] == (5,)
    assert all(len(structure.parents[i]) == 2 and 5 in structure.parents[i] for i in range(5) if i != root)


def test_small_and_constant_data_have_a_tree() -> None:
    one = random_data(93, n_features=1)
    assert tan_structure(one) == Structure.naive_bayes(one.names)
    constant = dataset([(0, 0, 0), (0, 1, 1), (0, 0, 1)], [1, 2, 2])
    assert len(tan_structure(constant).arcs) == 3
    absent = dataset([(0, 0, 0), (0, 1, 1), (1, 0, 1)], [2, 2, 4])
    assert np.isfinite(conditional_mutual_information(absent)).all()


def test_information_of_columns_with_many_states_equals_that_of_seen_states() -> None:
    """Most pairs of states of two such columns do not occur, and no table of all of them is made."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 400, (60, 2))
    wide = dataset(np.column_stack([codes, codes[:, 0] % 3, codes[:, 1] % 2]), (400, 400, 3, 2))
    information = conditional_mutual_information(wide)
    for i in range(3):
        for j in range(i):
            observed = wide.take(np.arange(60))
            seen = [np.unique(observed.codes[:, k], return_inverse=True)[1] for k in range(4)]
            small = dataset(np.column_stack(seen))
            assert information[i, j] == pytest.approx(mutual_information(small, i, j), abs=1e-10)
    np.testing.assert_allclose(information, information.T)
