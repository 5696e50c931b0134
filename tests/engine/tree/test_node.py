"""Nodes: every decision partitions the structures, and branching goes on until one choice of parent sets is left."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from running import all_choices

from milpbn.certificate.records import ARC, EDGE, ORPHAN, PARENT_SET, Decision, DualWeights
from milpbn.engine.relaxation.oracle import BRANCHINGS, ORDERS, oracle_of
from milpbn.engine.tree.branching_rule import BranchingRule, Gain
from milpbn.engine.tree.node import DualPoint, Node, Restriction
from milpbn.problem.candidates import build_candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.scores.spec import Score

NAMES = ("X1", "X2", "X3", "C")
CASES = {
    "class first": (Score(class_parents=False), Rules()),
    "class parents": (Score(), Rules()),
    "required": (Score(), Rules(required=frozenset({(0, 1)}), forbidden=frozenset({(2, 0)}))),
    "three parents": (Score(max_parents=3), Rules()),
}


def is_true(decision, parents) -> bool:
    """Return whether a decision holds for a structure, given by its parent tuples."""
    kind, a, b = decision
    if kind == EDGE:
        return a in parents[b] or b in parents[a]
    if kind == ARC:
        return a in parents[b]
    assert kind == ORPHAN
    return not set(parents[a]) - {len(parents) - 1}


def decisions(oracle, n_sets):
    V = len(oracle.offsets) - 1
    found = [Decision(PARENT_SET, p, 0) for p in range(n_sets)]
    found += [Decision(ARC, j, i) for j, i in itertools.permutations(range(V), 2)]
    if oracle.kind == BRANCHINGS:
        found += [Decision(EDGE, a, b) for a, b in itertools.combinations(range(V - 1), 2)]
        found += [Decision(ORPHAN, i, 0) for i in range(V - 1)]
    return found


def members(node, choices, candidates):
    """Return the rows of `choices` that are structures of a node, as a set."""
    inside = set()
    for row in choices:
        parents = [candidates.flat[p] for p in row]
        if node.allowed[row].all() and all(is_true((EDGE, a, b), parents) for a, b in node.edges):
            inside.add(tuple(row.tolist()))
    return inside


@pytest.mark.parametrize("case", CASES)
def test_every_structure_is_in_exactly_one_child(case):
    candidates = build_candidates(NAMES, *CASES[case])
    oracle, choices = oracle_of(candidates), all_choices(candidates)
    assert oracle.kind == (ORDERS if case == "three parents" else BRANCHINGS)
    rng = np.random.default_rng(len(case))
    every = decisions(oracle, candidates.n_sets)
    for _ in range(4):
        node = Restriction(np.ones(candidates.n_sets, dtype=bool), ())
        for _ in range(4):
            whole = members(node, choices, candidates)
            children = None
            for k in rng.permutation(len(every)) if len(every) > 40 else range(len(every)):
                decision = every[k]
                before = node.allowed.copy()
                children = [node.child(oracle, decision, holds) for holds in (True, False)]
                assert (node.allowed == before).all()
                inside, outside = (members(child, choices, candidates) for child in children)
                assert not inside & outside
                assert inside | outside == whole
                for row in inside | outside:
                    if decision.kind == PARENT_SET:
                        truth = decision.a in row
                    else:
                        truth = is_true(decision, [candidates.flat[p] for p in row])
                    assert (row in inside) == truth
            decision = every[int(rng.integers(len(every)))]
            node = node.child(oracle, decision, bool(rng.random() < 0.5))


def test_forced_edges_have_the_form_of_the_oracle():
    forced = Restriction(np.ones(1, dtype=bool), ((0, 2), (1, 2))).forced(4)
    assert sorted(map(tuple, np.argwhere(forced).tolist())) == [(1, 3), (2, 3), (3, 1), (3, 2)]


@pytest.mark.parametrize("case", CASES)
def test_branching_goes_on_until_one_choice_is_left(case):
    """The chosen decision separates vertices of the point, or removes a parent set from both children."""
    candidates = build_candidates(NAMES, *CASES[case])
    oracle, choices = oracle_of(candidates), all_choices(candidates)
    rng = np.random.default_rng(7)
    rule = BranchingRule(oracle)
    kinds = set()
    for _ in range(25):
        node = Restriction(np.ones(candidates.n_sets, dtype=bool), ())
        while True:
            rows = np.array(sorted(members(node, choices, candidates)))
            if not len(rows):
                break
            size = int(rng.integers(1, 4))
            vertices = rows[rng.choice(len(rows), min(size, len(rows)), replace=False)]
            most = int(rng.integers(1, 4))
            chosen = rule.candidates(vertices, rng.dirichlet(np.ones(len(vertices))), node.allowed, most)
            left = [node.allowed[a:b].sum() for a, b in itertools.pairwise(candidates.offsets)]
            assert len(chosen) <= most
            if not chosen:
                assert max(left) == 1
                break
            decision, share, *_ = chosen[int(rng.integers(len(chosen)))]
            kinds.add(decision.kind)
            children = [node.child(oracle, decision, holds) for holds in (True, False)]
            if share < 1:
                within = [
                    sum(tuple(v) in members(c, choices, candidates) for v in vertices) for c in children
                ]
                assert min(within) > 0
                assert sum(within) == len(vertices)
            else:
                assert all(child.allowed.sum() < node.allowed.sum() for child in children)
            inside = bool(rng.random() < 0.5)
            rule.learn(Gain(decision, inside, share, float(rng.exponential())))
            node = children[0] if inside else children[1]
    assert PARENT_SET in kinds
    assert (EDGE if oracle.kind == BRANCHINGS else ARC) in kinds


def test_decisions_with_large_gains_are_chosen_again():
    candidates = build_candidates(NAMES, Score(class_parents=False))
    first, second = (
        np.array([candidates.position(0, s), *(candidates.position(i, ()) for i in (1, 2, 3))])
        for s in ((1, 3), (2, 3))
    )
    shares = np.array([0.5, 0.5])
    allowed = np.ones(candidates.n_sets, dtype=bool)
    for good, bad in (((0, 1), (0, 2)), ((0, 2), (0, 1))):
        rule = BranchingRule(oracle_of(candidates))
        for inside in (True, False):
            rule.learn(Gain(Decision(EDGE, *good), inside, 0.5, 10.0))
            rule.learn(Gain(Decision(EDGE, *bad), inside, 0.5, 0.1))
        decision, share, *_ = rule.candidates(np.array([first, second]), shares, allowed)[0]
        assert decision == Decision(EDGE, *good)
        assert share == 0.5


def test_pseudo_costs_are_estimated_from_decisions_on_the_same_variables():
    candidates = build_candidates(NAMES, Score(class_parents=False))
    first, second = (
        np.array(
            [
                *(candidates.position(i, ()) for i in (0, 1)),
                candidates.position(2, s),
                candidates.position(3, ()),
            ]
        )
        for s in ((0, 3), (1, 3))
    )
    for good, bad in ((0, 1), (1, 0)):
        rule = BranchingRule(oracle_of(candidates))
        for inside in (True, False):
            rule.learn(Gain(Decision(ORPHAN, good, 0), inside, 0.5, 10.0))
            rule.learn(Gain(Decision(ORPHAN, bad, 0), inside, 0.5, 0.1))
        best = rule.candidates(
            np.array([first, second]), np.array([0.5, 0.5]), np.ones(candidates.n_sets, dtype=bool)
        )
        assert best[0].decision == Decision(EDGE, good, 2)


@pytest.mark.parametrize("n_sets", [20, 2000])
def test_a_packed_node_holds_restriction_and_start_to_the_last_digit(n_sets: int) -> None:
    rng = np.random.default_rng(n_sets)
    restriction = Restriction(rng.random(n_sets) < 0.5, ((0, 2), (1, 3)))
    vertices = rng.integers(0, n_sets, (7, 3)).astype(np.int32)
    shares, gradient = rng.dirichlet(np.ones(7)), rng.normal(size=n_sets).astype(np.float32)
    start = DualPoint(vertices, shares, gradient, 0.125, np.array([1.5, 0.0]))
    weights = DualWeights.of(vertices.astype(np.int64), shares, 0.5, start.multipliers)
    node = pickle.loads(pickle.dumps(Node.packed(4, -1.25, restriction, start, weights)))
    assert (node.number, node.bound, node.weights) == (4, -1.25, weights)
    assert node.restriction().edges == restriction.edges
    assert (node.restriction().allowed == restriction.allowed).all()
    for own, packed in zip(start, node.start, strict=True):
        assert np.array_equal(own, packed)
        assert not isinstance(own, np.ndarray) or (own.dtype == packed.dtype and packed.flags.writeable)
    assert weights.eta.sum() == pytest.approx(1.0 * vertices.shape[1])
    assert weights.parent_sets.tolist() == np.unique(vertices).tolist()
    assert (weights.rows.tolist(), weights.multipliers.tolist(), weights.temperature) == ([0], [1.5], 0.5)
    assert weights.nbytes == 12 * len(weights.eta) + 12
