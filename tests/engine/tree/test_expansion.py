"""Probes: what they teach the branching rule, what they leave behind, and that they lose no optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from running import FixedIncumbent, optimum, random_data

from milpbn.certificate.format import Proof
from milpbn.certificate.verify.check import verify
from milpbn.engine.events import EventLog
from milpbn.engine.root import Root
from milpbn.engine.tree import branching_rule, expansion
from milpbn.engine.tree.bounding import Worker
from milpbn.engine.tree.branching_rule import BranchingRule, Gain, product_of_gains
from milpbn.engine.tree.expansion import Expansion, NodeTask, expand, expand_root
from milpbn.engine.tree.node import Node
from milpbn.engine.tree.search import BranchAndBound
from milpbn.engine.tuning import TUNING
from milpbn.network.structure import Structure
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import solve
from milpbn.util.budget import Budget


def tune(monkeypatch: pytest.MonkeyPatch, **values) -> None:
    """Let the tree use other parameters."""
    tree = replace(TUNING.tree, **values)
    for module in (branching_rule, expansion):
        monkeypatch.setattr(module, "_TREE", tree)


def small_tree(seed: int = 0) -> tuple[BranchAndBound, Node]:
    """A tree with a proof, and its root, which has several fractional decisions."""
    data = random_data([51, seed], n_features=6, n_samples=120)
    problem = build_problem(data, Score(p=0.95))
    start = Structure.naive_bayes(data.names)
    proof = Proof()
    root = Root(problem, start, proof=proof)
    best = root.run(start, EventLog())
    tree = BranchAndBound(root, best, EventLog())
    (node,) = expand_root(tree.context, root, tree.primal).open
    return tree, node


def expanded(tree: BranchAndBound, node: Node, rule: BranchingRule, budget: float) -> Expansion:
    task = NodeTask(node, (1, 2), rule.costs, budget, steps=0)
    # With an incumbent that stays as it is, two expansions of a node can be compared.
    out = expand(Worker(tree.context, FixedIncumbent(tree.incumbent), Budget()), task)
    assert out is not None
    return out


def ranked(tree: BranchAndBound, node: Node, rule: BranchingRule, most: int):
    allowed = node.restriction().allowed
    return rule.candidates(node.start.vertices, node.start.shares, allowed, most)


def test_a_decision_is_probed_until_both_its_gains_are_known() -> None:
    tree, node = small_tree()
    rule = BranchingRule(tree.root.model.oracle)
    before = ranked(tree, node, rule, 1000)
    assert len(before) > 2
    assert not any(c.reliable for c in before)
    first = before[0].decision
    rule.learn(Gain(first, True, 0.5, 1.0))
    assert not next(c for c in ranked(tree, node, rule, 1000) if c.decision == first).reliable
    rule.learn(Gain(first, False, 0.5, 1.0))
    after = ranked(tree, node, rule, 1000)
    assert [c.decision for c in after if c.reliable] == [first]
    # A child without a structure says nothing of how far a bound falls.
    second = next(c.decision for c in after if c.decision != first)
    for holds in (True, False):
        rule.learn(Gain(second, holds, 0.5, np.inf))
    assert [c.decision for c in ranked(tree, node, rule, 1000) if c.reliable] == [first]


def test_the_children_of_the_best_probe_are_kept_and_the_others_leave_their_gains() -> None:
    tree, node = small_tree()
    rule = BranchingRule(tree.root.model.oracle)
    wanted = ranked(tree, node, rule, TUNING.tree.probed_decisions)
    out = expanded(tree, node, rule, np.inf)
    most = node.bound - tree.target
    by_decision = {}
    for gain in out.gains:
        by_decision.setdefault(gain.decision, []).append(gain)
    assert len(by_decision) > 2
    assert set(by_decision) <= {c.decision for c in wanted}
    assert all([gain.holds for gain in gains] == [True, False] for gains in by_decision.values())
    scores = {decision: product_of_gains(gains, most) for decision, gains in by_decision.items()}
    assert out.nodes.decision in by_decision
    if len(out.nodes.open) == 2:
        assert scores[out.nodes.decision] == max(scores.values())
    # The proof gets notes on the two children that are kept, one leaf each.
    assert sorted(number for number, _ in out.nodes.leaves) == [1, 2]
    assert {number for number, *_ in out.nodes.fixings} <= {1, 2}
    assert out.steps > out.discarded > 0
    for gain in out.gains:
        rule.learn(gain)
    assert all(c.reliable for c in ranked(tree, node, rule, 1000) if c.decision in by_decision)


def test_a_probe_bounds_the_children_as_branching_without_probes_does() -> None:
    tree, node = small_tree(1)
    rule = BranchingRule(tree.root.model.oracle)
    plain = expanded(tree, node, rule, 0.0)
    assert plain.discarded == 0
    assert len(plain.gains) == 2
    # With observations of all other decisions that say "nothing to gain", the first one is probed alone.
    first = ranked(tree, node, rule, 1)[0].decision
    for candidate in ranked(tree, node, rule, 1000):
        if candidate.decision != first:
            for holds in (True, False):
                rule.learn(Gain(candidate.decision, holds, candidate.share, 0.0))
    probed = expanded(tree, node, rule, np.inf)
    assert probed.discarded == 0
    assert probed.nodes.decision == plain.nodes.decision == first
    assert [c.bound for c in probed.nodes.open] == [c.bound for c in plain.nodes.open]


def test_no_probe_begins_without_a_budget() -> None:
    tree, node = small_tree()
    rule = BranchingRule(tree.root.model.oracle)
    whole = expanded(tree, node, rule, np.inf)
    some = expanded(tree, node, rule, 1.0)
    assert 0 < some.steps < whole.steps


CASES = [Score(p=0.9), Score(p=0.95, class_parents=False), Score(name="cll"), Score(p=0.9, max_parents=3)]


@pytest.mark.parametrize("score", CASES, ids=lambda s: f"{s.name}-{s.max_parents}-{s.class_parents}")
@pytest.mark.parametrize("probing", [0.0, 1e9], ids=["never", "always"])
def test_probes_lose_no_optimum_and_proofs_verify(score, probing, monkeypatch, tmp_path) -> None:
    tune(monkeypatch, probing=probing)
    path = tmp_path / "proof.npz"
    nodes = 0
    for seed in range(4):
        data = random_data([52, seed], n_features=4 if score.max_parents == 2 else 3, n_samples=50)
        best = optimum(data, score)
        result = solve(data, score, backend="native", threads=1, certificate=path, verbose=False)
        assert result.optimal
        assert result.objective == pytest.approx(best.objective, rel=1e-6)
        assert result.bound >= best.objective - 1e-12 * abs(best.objective)
        checked = verify(result, path, data)
        assert checked.bound >= best.objective - 1e-12 * abs(best.objective)
        nodes += result.nodes or 0
        if result.proved is not None:
            names = data.names
            optima = [
                {(names[j], names[i]) for i, parents in enumerate(structure) for j in parents}
                for structure in best.structures
            ]
            assert set(result.proved.inside) <= set.intersection(*optima)
            assert not set(result.proved.outside) & set.union(*optima)
    assert nodes > 10
