"""The small sets that screening keeps without ranking them, and the options of screening."""

from __future__ import annotations

import pytest

from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.candidates import admitted_sets, build_candidates
from milpbn.problem.conflicts import feasible_structure, resolve
from milpbn.problem.constraints import Constraints, Rules, atoms, combine
from milpbn.problem.scores.spec import Score
from milpbn.problem.screening import Screen, small_sets

NAMES = ("X1", "X2", "X3", "X4", "C")


@pytest.mark.parametrize(
    ("k", "feature", "target"),
    [
        (1, [(), (4,)], [()]),
        (4, [(), (4,)], [()]),
        (5, [(), (4,), (1, 4), (2, 4), (3, 4)], [(), (0,), (1,), (2,), (3,)]),
        (11, [(), (4,), (1, 4), (2, 4), (3, 4)], build_candidates(NAMES, Score()).sets[4]),
    ],
)
def test_sets_of_a_size_are_kept_if_all_fit(k, feature, target):
    small = small_sets(NAMES, admitted_sets(4, Score(max_parents=3), Rules()), k, None)
    assert (list(small.sets[0]), list(small.sets[4])) == (feature, list(target))


def test_the_sets_of_the_start_are_kept():
    start = Structure(NAMES, ((2, 3, 4), (), (4,), (), ()))
    small = small_sets(NAMES, admitted_sets(4, Score(max_parents=3), Rules()), 2, start)
    assert small.sets[0] == ((), (4,), (2, 3, 4))
    # A start that the options do not allow is refused later, in a sentence.
    assert small_sets(NAMES, admitted_sets(4, Score(), Rules()), 2, start).sets[0] == ((), (4,))


@pytest.mark.parametrize(
    ("given", "score"),
    [
        (Constraints(), Score()),
        (Constraints(required=(("X1", "X2"), ("X3", "X2"))), Score(max_parents=3)),
        (Constraints(required=(("X1", "X2"), ("C", "X2"), ("X2", "C"))), Score(max_parents=3)),
        (Constraints(required=(("X1", "C"),)), Score(class_parents=False)),
        (Constraints(required=(("X1", "X2"), ("X2", "X1"))), Score()),
        (Constraints(required=(("X1", "X2"),), max_children={"*": 1}), Score(max_parents=3)),
        (Constraints(required=(("X1", "X2"),), max_children={"X1": 0}), Score(max_parents=3)),
        (Constraints(fixed={"X1": ("X2", "C"), "X2": ("X1", "C")}), Score()),
        (Constraints(fixed={"X1": ("X2", "X3", "C")}), Score()),
        (Constraints(fixed={"C": ("X1",)}, required=(("C", "X1"),)), Score()),
        (Constraints(required=(("X1", "X2"),), forbidden=(("X1", "X2"),)), Score()),
        (Constraints(allowed={"X1": ()}, required=(("X2", "X3"),)), Score(max_parents=3)),
    ],
)
def test_small_sets_are_feasible_just_where_all_sets_are(given, score):
    rules = combine(atoms(given, NAMES))
    all_sets = build_candidates(NAMES, score, rules)
    feasible = feasible_structure(all_sets, rules) is not None
    small = small_sets(NAMES, admitted_sets(4, score, rules), 2, None)
    assert (feasible_structure(small, rules) is not None) == feasible
    too_large = any(len(parents) > score.max_parents for parents in rules.fixed.values())
    if not feasible or too_large:
        with pytest.raises(InputError, match="Drop or change"):
            resolve(given, NAMES, score)
        return
    found, admitted = resolve(given, NAMES, score)
    assert found == rules
    for own, sets, some in zip(admitted, all_sets.sets, small.sets, strict=True):
        assert set(some) <= set(sets)
        assert own.count(5) == len(sets)
        assert own.largest_size == max(map(len, sets))
        assert all(own.contains(s, 4) for s in sets)
        assert not own.contains((0, 1, 2, 3), 4)
        assert not any(own.contains((*s, s[-1]), 4) for s in sets if s)


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_an_impossible_number_is_refused(k):
    with pytest.raises(InputError, match=r"screen must be a whole number|at least 1"):
        Screen.of(k)


def test_a_subset_and_screening_exclude_each_other():
    assert Screen.of(None, 5) is None
    with pytest.raises(InputError, match="leave out --subset"):
        Screen.of(5, 5)
