"""The native engine: refusals, any-time claims, determinism, and its optima against HiGHS on larger problems."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from running import check_trace, optimum, oracle_tuning, random_data

import milpbn
from milpbn.certificate.format import Proof
from milpbn.claims.result import is_optimal
from milpbn.engine.events import EventLog
from milpbn.engine.root import Root
from milpbn.engine.tree import dispatch
from milpbn.engine.tree.bounding import Context
from milpbn.engine.tree.children import open_node
from milpbn.engine.tree.dispatch import ThreadDispatcher
from milpbn.engine.tree.node import Restriction
from milpbn.engine.tree.search import BranchAndBound
from milpbn.errors import InputError
from milpbn.heuristics.spanning import tan_structure
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.registry import SCORES, sums_of_samples
from milpbn.problem.scores.spec import Score
from milpbn.solving.warm_up import Kernels

NATIVE = sums_of_samples()


def solve(data, score, **options):
    return milpbn.solve(data, score, backend="native", verbose=False, **({"threads": 1} | options))


@pytest.mark.parametrize("name", [name for name in SCORES if name not in NATIVE])
def test_other_scores_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"not {name}; use --backend auto"):
        solve(random_data(1), name)


def test_solver_options_are_refused() -> None:
    with pytest.raises(InputError, match="leave out --solver-option"):
        solve(random_data(1), "sm", solver_options={"depth": "3"})


#: Each switch turned off by itself, and all together.
SWITCHES = ("reduce", "merge")
OFF = [{}, *({switch: False} for switch in SWITCHES), dict.fromkeys(SWITCHES, False)]


@pytest.mark.parametrize(
    ("off", "threads"), [(OFF[0], 2), *((off, 1) for off in OFF[1:-1]), (OFF[-1], 2)], ids=str
)
def test_switches_leave_the_optimum_unchanged(off: dict[str, bool], threads: int) -> None:
    rules = Constraints(max_children={"*": 2}, arc_weights={("X1", "X2"): 0.5})
    for seed, (name, max_parents) in enumerate(itertools.product(NATIVE, (2, 3))):
        data = random_data([23, seed], n_features=4, n_samples=60)
        score = Score(name=name, max_parents=max_parents)
        constraints = rules if seed % 2 else None
        best = optimum(data, score, constraints)
        result = solve(data, score, constraints=constraints, threads=threads, **off)
        assert result.optimal
        assert result.objective == pytest.approx(best.objective, rel=1e-6)
        assert result.bound >= best.objective - 1e-12 * abs(best.objective)
        assert result.objective <= best.objective + 1e-9 * max(1.0, abs(best.objective))


def hard_data(seed: int, n_features: int = 8, n_samples: int = 150):
    """Data that needs some nodes: hundreds for most scores."""
    return random_data([24, seed], n_features=n_features, n_samples=n_samples, n_classes=3)


@pytest.mark.parametrize("name", NATIVE)
def test_one_thread_and_one_seed_give_one_trace(name: str) -> None:
    searched = 0
    for seed, max_parents in ((0, 2), (1, 3)):
        data = hard_data(seed, n_features=6)
        score = Score(name=name, max_parents=max_parents)
        first, again = (solve(data, score, random_state=5) for _ in range(2))
        assert first.optimal
        assert [point[1:] for point in first.trace] == [point[1:] for point in again.trace]
        assert first.nodes == again.nodes
        assert first.structure == again.structure
        assert first.proved == again.proved
        searched += first.nodes or 0
    assert searched > 10


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", NATIVE)
def test_the_trace_is_monotone(name: str, threads: int) -> None:
    data = random_data([25, threads], n_features=4, n_samples=50)
    score = Score(name=name, max_parents=3)
    check_trace(solve(data, score, threads=threads), optimum(data, score).objective)


def make_tree(problem: Problem, best: Structure, record: EventLog, **options) -> BranchAndBound:
    """The root takes one step only, and the start is poor, so the tree has to find and prove the optimum."""
    root = Root(problem, best)
    root.run(best, EventLog(), reduce=False, max_steps=1)
    record.structures.append(best)
    return BranchAndBound(root, best, record, **options)


@pytest.mark.parametrize("name", NATIVE)
@pytest.mark.parametrize("memory", [0.0, 4e9], ids=["down", "wide"])
def test_the_tree_ends_at_the_optimum_in_any_order_of_nodes(name: str, memory: float) -> None:
    for seed, max_parents in ((0, 2), (1, 3)):
        data = random_data([26, seed], n_features=4, n_samples=60, n_classes=3)
        problem = build_problem(data, Score(name=name, max_parents=max_parents))
        best = optimum(data, problem.score)
        record = EventLog()
        tree = make_tree(problem, Structure.empty(data.names), record, memory=memory)
        assert tree.run()
        assert record.structures[-1].parents in best.structures
        assert record.bounds == sorted(record.bounds, reverse=True)
        assert is_optimal(best.objective, record.bounds[-1])
        assert record.bounds[-1] >= best.objective - 1e-12 * abs(best.objective)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_stopped_tree_has_a_bound(threads: int) -> None:
    """At whatever moment the search is stopped, no structure is above its bound."""
    data = random_data([27, 1], n_features=4, n_samples=60, n_classes=3)
    problem = build_problem(data, Score(p=0.95, max_parents=3))
    best = optimum(data, problem.score).objective
    ended = set()
    for count in (0, 1, 2, 3, 5, 8, 13, 30, 100_000):
        asked, lock = itertools.count(), threading.Lock()

        def stopping(asked=asked, lock=lock, count=count) -> bool:
            with lock:
                return next(asked) >= count

        tree = make_tree(
            problem, Structure.empty(data.names), EventLog(stopping), dispatcher=ThreadDispatcher(threads)
        )
        ended.add(tree.run())
        assert tree.bound() >= best
        assert tree.bound() <= tree.root.bound
        assert tree.incumbent <= best + 1e-9
    assert ended == {False, True}


def test_leaves_without_a_structure_do_not_raise_the_bound() -> None:
    """The oracle ignores child limits and cycles here; nodes with a single choice per variable are checked for them."""
    data = random_data(3, n_samples=30)
    for rules in (
        Constraints(max_children={"C": 1}),
        Constraints(max_children={"*": 1, "C": 2}),
        Constraints(required=(("X2", "X1"), ("X1", "X3"))),
    ):
        for name in NATIVE:
            score = Score(name=name, max_parents=2, penalty=0.1)
            best = optimum(data, score, rules)
            result = solve(data, score, constraints=rules)
            assert result.optimal
            assert result.objective == pytest.approx(best.objective, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", NATIVE)
def test_relaxed_acyclicity_ends_at_the_optimum(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With too many variables for all orders, every variable chooses for itself and the tree forbids cycles."""
    monkeypatch.setattr("milpbn.engine.relaxation.oracle.TUNING", oracle_tuning(most_ordered=1))
    data = random_data([28, 1], n_samples=30)
    score = Score(name=name, max_parents=3)
    best = optimum(data, score)
    result = solve(data, score)
    assert result.optimal
    assert result.structure.parents in best.structures


@pytest.mark.parametrize(
    ("name", "max_parents", "p"), [("sm", 2, 0.9), ("sm", 2, 0.99), ("sbm", 2, 0.9), ("sm", 3, 0.8)]
)
@pytest.mark.slow
def test_the_native_engine_agrees_with_highs_on_larger_problems(
    name: str, max_parents: int, p: float
) -> None:
    for seed, n_features in enumerate((8, 9, 10) if max_parents == 2 else (6,)):
        data = hard_data(seed, n_features, 200)
        score = Score(name=name, max_parents=max_parents, p=p)
        ours = solve(data, score, time_limit=300, threads=2)
        theirs = milpbn.solve(
            data, score, backend="highs", root_bound=False, time_limit=300, threads=2, verbose=False
        )
        assert ours.optimal
        assert theirs.optimal
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-6)


def test_the_native_engine_agrees_with_highs_on_a_problem_too_large_to_enumerate() -> None:
    data = hard_data(3, n_features=6, n_samples=100)
    for name in ("sm", "sbm"):
        score = Score(name=name, p=0.9)
        ours = solve(data, score)
        theirs = milpbn.solve(data, score, backend="highs", root_bound=False, threads=1, verbose=False)
        assert ours.optimal
        assert theirs.optimal
        assert ours.objective == pytest.approx(theirs.objective, rel=1e-6)
        assert np.isfinite(ours.bound)


def test_a_limit_that_ends_while_kernels_compile_leaves_an_answer(monkeypatch) -> None:
    released, ended = threading.Event(), threading.Event()

    def compiling(kernels: Kernels, stage: str) -> bool:
        released.wait(60)
        ended.set()
        return True

    monkeypatch.setattr(Kernels, "ready", compiling)
    data, score = random_data(5, n_features=4, n_samples=60), Score(name="sm", p=0.9)
    result = milpbn.solve(data, score, time_limit=3)
    assert not ended.is_set()
    released.set()
    assert result.reason == "feasible"
    simple = (Structure.naive_bayes(data.names), tan_structure(data))
    assert result.objective == pytest.approx(max(rescore(data, s, score) for s in simple))


def test_the_node_of_a_failed_thread_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a thread fails, the bound must include the node that it was expanding."""
    data = hard_data(3)
    problem = build_problem(data, Score(p=0.95))
    record = EventLog()
    tree = make_tree(problem, Structure.naive_bayes(data.names), record, dispatcher=ThreadDispatcher(2))
    expand, lost = dispatch.expand, []

    def fail(context, task, *others):
        with tree._lock:
            worst = task.node.bound >= tree._frontier.bound()
            if not lost and tree._n_children > 6 and worst:
                lost.append(task.node.bound)
                raise MemoryError
        return expand(context, task, *others)

    monkeypatch.setattr(dispatch, "expand", fail)
    with pytest.raises(MemoryError):
        tree.run()
    assert lost
    assert tree.bound() >= lost[0]
    assert min(record.bounds) >= lost[0]


def test_open_nodes_count_what_proves_them(tmp_path) -> None:
    data = hard_data(1)
    problem = build_problem(data, Score(p=0.95))
    sizes = []
    for proof in (None, Proof()):
        root = Root(problem, Structure.naive_bayes(data.names), proof=proof)
        root.run(
            Structure.naive_bayes(data.names),
            EventLog(),
            reduce=False,
            max_steps=20,
        )
        context = Context.of(root, reduce=True, certify=proof is not None)
        weights = None if proof is None else root.weights
        node = open_node(
            context,
            0,
            Restriction(root.allowed, ()),
            root.point,
            root.multipliers,
            root.bound,
            weights,
        )
        sizes.append(node.nbytes)
    assert sizes[1] >= sizes[0] + root.weights.eta.nbytes


def test_open_nodes_stay_within_the_memory_they_may_take() -> None:
    """If the open nodes need more memory than allowed, the newest comes next, so that dives are finished."""
    data = random_data([28, 0], n_features=7, n_samples=120, n_classes=3)
    problem = build_problem(data, Score(p=0.6, class_parents=False))

    def most_bytes(memory: float) -> tuple[int, int, int]:
        tree = make_tree(problem, Structure.empty(data.names), EventLog(), memory=memory)
        held, largest, push = [0], [0], tree._frontier.push

        def watch(opened) -> None:
            push(opened)
            held.append(tree._frontier.nbytes)
            largest.append(opened.nbytes)

        tree._frontier.push = watch
        assert tree.run()
        return max(held), max(largest), tree._n_children

    free, _, parts = most_bytes(4e9)
    assert parts > 300
    # Beyond the limit are the siblings of one dive.
    held, largest, _ = most_bytes(free / 8)
    assert held <= free / 8 + 10 * largest < free / 2
