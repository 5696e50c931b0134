"""Dispatchers: nodes may be expanded where nothing is shared with the search."""

from __future__ import annotations

import pickle
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import optimum, random_data

from milpbn.certificate.format import Proof
from milpbn.certificate.verify.check import verify
from milpbn.engine.dual.point import Point, score_of
from milpbn.engine.events import EventLog
from milpbn.engine.root import Root
from milpbn.engine.tree.bounding import Context, Worker
from milpbn.engine.tree.dispatch import Dispatcher, ThreadDispatcher, TreeSearch
from milpbn.engine.tree.expansion import NodeTask, expand
from milpbn.engine.tree.search import BranchAndBound
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import solve
from milpbn.util.budget import Budget


class Machine:
    """What another machine has: the context that it was sent, and what it finds in one expansion."""

    def __init__(self, context: bytes) -> None:
        self.context: Context = pickle.loads(context)
        self.worker = Worker(self.context, self, Budget())
        self.cutoff = -np.inf
        self.found: list[tuple[Structure, float]] = []

    def __call__(self, message: bytes) -> bytes:
        task, self.cutoff = pickle.loads(message)
        self.found = []
        expansion = expand(self.worker, task)
        return pickle.dumps((expansion, self.found))

    def offer(self, structure: Structure, value: float) -> None:
        if value > self.cutoff:
            self.cutoff = value
            self.found.append((structure, value))

    def climb_from_answer(self, point: Point) -> None:
        """Offer the oracle's answer itself."""
        structure = self.context.problem.candidates.structure(point.found)
        if self.context.problem.obeys(structure):
            self.offer(structure, score_of(self.context.model, point.found, point.direction, False))


class Apart:
    """Pickles every task and every result; several are out at a time, and now and then one is lost."""

    def __init__(self, most: int, lost_every: int = 10**9) -> None:
        self.most, self.lost_every = most, lost_every
        self.sent = 0

    def run(self, search: TreeSearch) -> None:
        machine = Machine(pickle.dumps(search.context))
        out: deque[tuple[NodeTask, bytes]] = deque()
        while True:
            while len(out) < self.most and (task := search.hand_out(wait=False)) is not None:
                out.append((task, pickle.dumps((task, search.primal.cutoff))))
            if not out:
                return
            task, message = out.popleft()
            self.sent += 1
            if self.sent % self.lost_every == 0:
                search.take_back(task, None)
                continue
            expansion, found = pickle.loads(machine(message))
            for structure, value in found:
                search.primal.offer(structure, value)
            search.take_back(task, expansion)


def searched(
    problem: Problem, best: Structure, dispatcher: Dispatcher, most_nodes: float = np.inf
) -> tuple[BranchAndBound, bool]:
    """Search from an incumbent with a proof until the end or a number of nodes."""
    record = EventLog(lambda: record.count >= most_nodes)
    root = Root(problem, best, proof=Proof())
    root.run(best, EventLog())
    tree = BranchAndBound(root, best, record, dispatcher=dispatcher)
    finished = tree.run()
    assert record.bounds == sorted(record.bounds, reverse=True)
    return tree, finished


def state_of(tree: BranchAndBound) -> dict[str, Any]:
    """All arrays of a checkpoint, those of the proof included, but for those of climbs."""
    state = tree.state()
    assert state is not None
    arrays = {name: make() if callable(make) else make for name, make in state.arrays().items()}
    return {name: array for name, array in arrays.items() if not name.startswith("primal.")}


CASES = [Score(p=0.95), Score(name="cll"), Score(p=0.9, max_parents=3)]


@pytest.mark.parametrize("score", CASES, ids=lambda s: f"{s.name}-{s.max_parents}")
@pytest.mark.parametrize("most_nodes", [9, np.inf], ids=["stopped", "to the end"])
def test_one_node_at_a_time_elsewhere_is_the_search_of_one_thread(score: Score, most_nodes: float) -> None:
    """From the optimum, which no climb improves: frontier, bound, proof and checkpoint agree to the last digit."""
    data = random_data([51, 0], n_features=5 if score.name == "cll" else 6, n_samples=100)
    problem = build_problem(data, score)
    best = solve(data, score, verbose=False).structure
    here, ended_here = searched(problem, best, ThreadDispatcher(), most_nodes)
    apart = Apart(most=1)
    there, ended_there = searched(problem, best, apart, most_nodes)
    assert apart.sent > 3
    assert ended_here == ended_there == (most_nodes == np.inf)
    assert here.incumbent == there.incumbent
    assert here.bound() == there.bound()
    expected, found = state_of(here), state_of(there)
    assert expected.keys() == found.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(array, found[name], err_msg=name)


@pytest.mark.parametrize("score", CASES, ids=lambda s: f"{s.name}-{s.max_parents}")
def test_many_nodes_elsewhere_end_at_the_optimum_with_a_certificate(
    score: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "proof.npz"
    apart = Apart(most=4, lost_every=5)
    monkeypatch.setattr("milpbn.solving.engines.native.ThreadDispatcher", lambda threads: apart)
    for seed in range(4):
        data = random_data([52, seed], n_features=4 if score.max_parents == 2 else 3, n_samples=50)
        best = optimum(data, score).objective
        result = solve(data, score, backend="native", certificate=path, verbose=False)
        assert result.optimal
        assert result.objective == pytest.approx(best, rel=1e-6)
        assert verify(result, path, data).bound >= best - 1e-12 * abs(best)
    assert apart.sent > 5


def test_structures_found_elsewhere_become_the_incumbent() -> None:
    data = random_data([26, 0], n_features=4, n_samples=60, n_classes=3)
    problem = build_problem(data, Score(p=0.9))
    apart = Apart(most=3)
    root = Root(problem, Structure.empty(data.names))
    root.run(Structure.empty(data.names), EventLog(), reduce=False, max_steps=1)
    record = EventLog()
    tree = BranchAndBound(root, Structure.empty(data.names), record, dispatcher=apart)
    assert tree.run()
    assert record.structures[-1].parents in optimum(data, problem.score).structures


def test_an_error_between_two_expansions_opens_no_closed_node_again(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_data([51, 0], n_features=6, n_samples=120)
    problem = build_problem(data, Score(p=0.95))
    best = solve(data, Score(p=0.95), verbose=False).structure
    root = Root(problem, best, proof=Proof())
    root.run(best, EventLog())
    tree = BranchAndBound(root, best, EventLog())
    hand_out, taken = tree.hand_out, []

    def failing(*, wait: bool) -> NodeTask | None:
        if len(taken) == 2:
            raise MemoryError
        taken.append(hand_out(wait=wait))
        return taken[-1]

    monkeypatch.setattr(tree, "hand_out", failing)
    with pytest.raises(MemoryError):
        tree.run()
    state = tree.state()
    assert state is not None
    assert not {node.number for node in state.nodes} & {task.node.number for task in taken}
