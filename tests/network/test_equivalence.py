"""Classifiers with the same posteriors, against posteriors of all joint states; and Markov equivalence."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from oracle import acyclic_structures, candidate_sets
from running import random_data

from milpbn.data.dataset import Dataset, Variable
from milpbn.network.cpt import class_log_joint, fit_cpts
from milpbn.network.equivalence import (
    SAME_POSTERIORS,
    interactions,
    largest_difference,
    markov_equivalent,
    posteriors_of,
    same_posteriors,
)
from milpbn.network.structure import Structure


def log_odds(data: Dataset, structure: Structure, smoothing: float) -> np.ndarray:
    """Log-odds against the first class for all joint states of the features."""
    states = product(*(range(v.n_states) for v in data.variables[:-1]))
    codes = np.array([(*state, 0) for state in states], dtype=np.int32)
    joint = class_log_joint(codes, structure, fit_cpts(data, structure, smoothing), data.n_classes)
    return joint - joint[:, :1]


def balanced() -> Dataset:
    """Every joint state of two features and the class once: all families have the same counts."""
    codes = np.array(list(product(range(2), range(3), range(2))), dtype=np.int32)
    states = ("a", "b", "c")
    variables = tuple(Variable(name, states[:n]) for name, n in (("X", 2), ("Y", 3), ("C", 2)))
    return Dataset("balanced", variables, codes, np.ones(len(codes)))


@pytest.mark.parametrize("data", [random_data(1, n_features=3), balanced()], ids=["random", "balanced"])
def test_the_difference_is_a_bound_and_0_for_the_same_posteriors(data: Dataset) -> None:
    sets = tuple(map(tuple, candidate_sets(data.n_variables, 3)))
    every = [Structure(data.names, parents) for parents in acyclic_structures(sets)]
    some = [every[k] for k in np.random.default_rng(0).permutation(len(every))[:25]]
    odds = [log_odds(data, structure, 0.5) for structure in some]
    own = posteriors_of(data, some, 0.5, "uniform")
    same = 0
    for a, b in combinations(range(len(some)), 2):
        apart = np.abs(odds[a] - odds[b]).max()
        assert largest_difference(own[a], own[b]) >= apart - 1e-12
        assert (largest_difference(own[a], own[b]) <= SAME_POSTERIORS) == (apart <= SAME_POSTERIORS)
        same += apart <= SAME_POSTERIORS
    groups = same_posteriors(own)
    assert sum(len(group) * (len(group) - 1) // 2 for group in groups) == same
    for group in groups:
        assert all(np.allclose(odds[k - 1], odds[group[0] - 1], atol=1e-9) for k in group)
    assert same > 20 or data.name == "random"


def test_interactions_vanish_at_first_states_and_add_up() -> None:
    data = random_data(4, n_features=3)
    structure = Structure(data.names, ((3,), (0, 3), (0, 1, 3), ()))
    own = interactions(fit_cpts(data, structure, 1.0))
    states = [range(v.n_states) for v in data.variables[:-1]]
    total = np.array(
        [
            sum(values[(slice(None), *(state[j] for j in members))] for members, values in own.items())
            for state in product(*states)
        ]
    )
    assert total == pytest.approx(log_odds(data, structure, 1.0))
    for members, values in own.items():
        for axis in range(len(members)):
            assert not values.take(0, axis=axis + 1).any()


def test_markov_equivalent_structures_have_the_same_edges_and_colliders() -> None:
    names = ("X", "Y", "Z", "C")
    chain, reverse = ((3,), (0, 3), (1, 3), ()), ((1, 3), (2, 3), (3,), ())
    collider = ((3,), (0, 2, 3), (3,), ())
    fork = ((1, 3), (3,), (1, 3), ())
    bare = ((), (0,), (1,), ())
    listed = [Structure(names, parents) for parents in (chain, collider, reverse, bare, fork)]
    assert markov_equivalent(listed) == ((1, 3, 5),)
