"""Subtrees: nodes may be searched below elsewhere, and what that finds is taken as the search's own."""

from __future__ import annotations

import itertools
import pickle
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from running import optimum, random_data

from milpbn.certificate.format import Proof
from milpbn.certificate.verify.check import verify
from milpbn.engine.events import EventLog
from milpbn.engine.root import Root
from milpbn.engine.tree.bounding import Context, Worker
from milpbn.engine.tree.dispatch import TreeSearch
from milpbn.engine.tree.search import BranchAndBound
from milpbn.engine.tree.subtree import FoundStructures, SubtreeTask, search_subtree
from milpbn.network.structure import Structure
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import solve
from milpbn.util.budget import Budget


class Parts:
    """Searches below bundles of nodes with pickled copies of everything; several are out, and some are lost."""

    def __init__(self, out: int, most: int, expansions: int, lost_every: int = 10**9) -> None:
        self.out, self.most, self.expansions, self.lost_every = out, most, expansions, lost_every
        self.sent = self.closed = 0

    def run(self, search: TreeSearch) -> None:
        context: Context = pickle.loads(pickle.dumps(search.context))
        out: deque[tuple[SubtreeTask, bytes]] = deque()
        while True:
            while (
                len(out) < self.out
                and (task := search.hand_out_subtree(self.most, 3600.0, 3600.0)) is not None
            ):
                out.append((task, pickle.dumps(task)))
            if not out:
                return
            task, message = out.popleft()
            self.sent += 1
            if self.sent % self.lost_every == 0:
                search.take_back_subtree(task, None)
                continue
            sent = pickle.loads(message)
            asked, never = itertools.count(1), Budget()
            worker = Worker(context, FoundStructures(context, sent, never), never)
            enough = Budget(cancelled=lambda asked=asked: next(asked) >= self.expansions)
            result = search_subtree(worker, sent, enough)
            self.closed += result.n_closed
            search.take_back_subtree(task, pickle.loads(pickle.dumps(result)))


SCORES = [Score(p=0.95), Score(name="cll"), Score(name="sbm", p=0.8), Score(p=0.9, max_parents=3)]


@pytest.mark.parametrize("score", SCORES, ids=lambda s: f"{s.name}-{s.max_parents}")
@pytest.mark.parametrize(
    ("parts", "n_best"),
    [((1, 1, 1), 1), ((4, 3, 2), 3), ((3, 8, 20), 1)],
    ids=["single nodes", "small parts, a list", "large parts"],
)
def test_parts_end_at_the_optimum_with_a_certificate(
    score: Score, parts: tuple[int, int, int], n_best: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Parts(*parts, lost_every=7)
    monkeypatch.setattr("milpbn.solving.engines.native.ThreadDispatcher", lambda threads: elsewhere)
    path = tmp_path / "proof.npz"
    for seed in range(2):
        data = random_data([53, seed], n_features=4 if score.max_parents == 2 else 3, n_samples=50)
        best = optimum(data, score).objective
        found = solve(data, score, backend="native", certificate=path, verbose=False, n_best=n_best)
        assert found.optimal
        assert found.objective == pytest.approx(best, rel=1e-9)
        assert verify(found, path, data).bound >= best - 1e-12 * abs(best)
    assert elsewhere.closed > 3


def test_a_stopped_search_in_parts_counts_its_nodes_and_goes_on_from_its_state() -> None:
    data = random_data([51, 0], n_features=6, n_samples=120)
    score = Score(p=0.95)
    problem = build_problem(data, score)
    best = solve(data, score, verbose=False).structure
    record = EventLog(lambda: record.count >= 20)
    root = Root(problem, best, proof=Proof())
    root.run(best, EventLog())
    tree = BranchAndBound(root, best, record, dispatcher=Parts(3, 2, 3))
    assert not tree.run()
    assert record.bounds == sorted(record.bounds, reverse=True)
    state = tree.state()
    assert state is not None
    assert state.count == record.count
    numbers = [node.number for node in state.nodes]
    assert len(set(numbers)) == len(numbers)
    assert max(numbers) < record.count
    assert root.proof is not None
    # Every node but the root is a child of one branching, and what is open is a leaf of the proof.
    children = [child for *_, first, second in root.proof.branches for child in (first, second)]
    assert sorted(children) == list(range(1, record.count))
    assert set(numbers) <= root.proof.leaves.keys()
    assert root.proof.leaves.keys() == {0, *children} - {node for node, *_ in root.proof.branches}


def test_structures_from_parts_are_scored_here() -> None:
    """A worker says which structures are better, not how good they are."""
    data = random_data([26, 0], n_features=4, n_samples=60, n_classes=3)
    problem = build_problem(data, Score(p=0.9))
    empty = Structure.empty(data.names)
    root = Root(problem, empty)
    root.run(empty, EventLog(), reduce=False, max_steps=1)
    tree = BranchAndBound(root, empty, EventLog())
    task = tree.hand_out_subtree(1, 1.0, 1.0)
    assert task is None  # before the root is a node
    tree = BranchAndBound(root, empty, record := EventLog(), dispatcher=Parts(2, 2, 2))
    assert tree.run()
    assert record.structures[-1].parents in optimum(data, problem.score).structures
    assert tree.incumbent == root.value(record.structures[-1])
    assert np.isfinite(tree.bound())
