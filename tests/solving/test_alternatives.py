"""Neighbours of a structure, against all structures of tiny problems."""

from __future__ import annotations

from dataclasses import replace

import oracle
import pytest
from running import random_data

import milpbn
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.solving.alternatives import near_optimal
from milpbn.solving.question import Question

START = ((3,), (0, 3), (), ())


def arcs(parents):
    return {(j, i) for i, members in enumerate(parents) for j in members}


def is_neighbour(one, other) -> bool:
    """Whether a structure differs by one reversed arc, or in one parent set as `near_optimal` describes it."""
    added, removed = arcs(other) - arcs(one), arcs(one) - arcs(other)
    if len(added) == len(removed) == 1 and added == {(i, j) for j, i in removed}:
        return True
    children = {i for _, i in added | removed}
    if len(children) != 1:
        return False
    (i,) = children
    return (len(added) <= 1 and len(removed) <= 1) or not other[i] or not one[i]


@pytest.mark.parametrize("name", ["sm", "sbm", "cll", "mdl"])
def test_the_best_neighbours_of_all_structures_are_found(name):
    data = random_data(5, n_features=3, n_samples=25)
    score = milpbn.Score(name=name, max_parents=2)
    start = Structure(data.names, START)

    def value(parents):
        return oracle.score_structure(data, parents, name, gamma=score.gamma)

    sets = tuple(map(tuple, oracle.candidate_sets(4, 2)))
    near = [s for s in oracle.acyclic_structures(sets) if is_neighbour(START, s)]
    losses = sorted(value(START) - value(s) for s in near)
    found = near_optimal(Question(data, score), start, 1000)
    assert [alternative.loss for alternative in found] == pytest.approx(losses, abs=1e-9)
    assert {alternative.structure.parents for alternative in found} == set(near)
    few = near_optimal(Question(data, score), start, 3)
    assert [alternative.loss for alternative in few] == pytest.approx(losses[:3], abs=1e-9)


def test_features_with_one_state_get_no_arcs():
    plain = random_data(5, n_features=3, n_samples=25)
    codes = plain.codes.copy()
    codes[:, 2] = 0
    variables = tuple(replace(v, states=v.states[:1]) if k == 2 else v for k, v in enumerate(plain.variables))
    data = replace(plain, codes=codes, variables=variables)
    score = milpbn.Score(p=0.9, max_parents=2)
    found = near_optimal(Question(data, score), Structure(data.names, START), 1000)
    assert found
    assert all(data.names[2] not in arc for alternative in found for arc in alternative.added)


def test_neighbours_obey_constraints_and_limits():
    data = random_data(5, n_features=3, n_samples=25)
    start = Structure(data.names, START)
    constraints = Constraints(required=(("X1", "X2"),), forbidden=(("X1", "X3"),))
    score = milpbn.Score(p=0.9, max_parents=2, class_parents=False)
    found = near_optimal(Question(data, score, constraints), start, 1000)
    assert found
    for alternative in found:
        mapping = alternative.structure.to_mapping()
        assert "X1" in mapping["X2"]
        assert "X1" not in mapping["X3"]
        assert mapping["C"] == []
        assert all(len(parents) <= 2 for parents in mapping.values())


def test_a_change_is_told_in_words():
    data = random_data(5, n_features=3, n_samples=25)
    found = near_optimal(Question(data, milpbn.Score(p=0.9)), Structure(data.names, START), 1000)
    words = {alternative.change for alternative in found}
    assert {"with C -> X3", "without C -> X1", "with X2 -> X1, without X1 -> X2"} <= words
    first = found[0].to_dict()
    assert first["loss"] == found[0].loss
    assert first["added"] == [list(arc) for arc in found[0].added]
