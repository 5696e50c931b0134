"""Inequalities and their multipliers: the rows are correct, and their bounds are valid and as small as possible."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from running import all_choices, heaviest, optimum, oracle_tuning, random_data, whole_node
from scipy.optimize import linprog

from milpbn import solve
from milpbn.certificate.format import load_proof
from milpbn.certificate.records import CLUSTER, Inequalities
from milpbn.certificate.verify.check import verify
from milpbn.certificate.verify.space import space_of
from milpbn.certificate.verify.tree import Rows
from milpbn.engine.dual.frank_wolfe import Goal, take_compiled_steps, take_steps
from milpbn.engine.dual.inequalities import add_row, add_terms, child_limits, lower, subproblem_of
from milpbn.engine.dual.multipliers import best_multipliers
from milpbn.engine.dual.point import Model, empty_point, evaluate, place
from milpbn.engine.events import EventLog
from milpbn.engine.relaxation.oracle import BRANCHINGS, ORDERS, RELAXED, heaviest_structure
from milpbn.engine.root import Root, model_of
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.scores.spec import Score
from milpbn.util.budget import Budget

LIMITS = Constraints(max_children={"X1": 1, "X2": 0, "C": 2})
KINDS = {BRANCHINGS: Score(p=0.9), ORDERS: Score(p=0.9, max_parents=3), RELAXED: Score(p=0.9, max_parents=3)}


@pytest.fixture
def relaxed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch the search over orders off, so that with three parents the oracle relaxes acyclicity."""
    monkeypatch.setattr("milpbn.engine.relaxation.oracle.TUNING", oracle_tuning(most_ordered=0))
    monkeypatch.setattr("milpbn.certificate.verify.space.MOST_ORDERED", 0)


def every_row(candidates: Candidates, limits: Inequalities) -> Inequalities:
    """Return the rows of all clusters and of the child limits."""
    V = candidates.n_variables
    clusters = np.array([bits for bits in itertools.product((False, True), repeat=V) if any(bits)])
    return Inequalities(
        np.concatenate([clusters, limits.members]),
        np.concatenate([np.full(len(clusters), CLUSTER), limits.limit]).astype(np.int64),
    )


def matrix_of(candidates: Candidates, rows: Inequalities) -> tuple[np.ndarray, np.ndarray]:
    """Return a and b by the definitions in the module."""
    a = np.zeros((len(rows.limit), candidates.n_sets))
    b = np.empty(len(rows.limit))
    for r, (row, limit) in enumerate(zip(rows.members, rows.limit, strict=True)):
        cluster = set(np.flatnonzero(row).tolist())
        b[r] = 1.0 if limit == CLUSTER else -limit
        for p, (i, parents) in enumerate(zip(candidates.variable, candidates.flat, strict=True)):
            if limit == CLUSTER:
                a[r, p] = i in cluster and cluster.isdisjoint(parents)
            else:
                a[r, p] = -(not cluster.isdisjoint(parents))
    return a, b


def obeying(problem: Problem) -> Structure:
    """Return a structure within the child limits."""
    choices = all_choices(problem.candidates)
    return next(s for s in map(problem.candidates.structure, choices) if problem.obeys(s))


def make(score: Score, rules: Constraints | None = None, seed: int = 1, **data) -> tuple[Problem, Model]:
    problem = build_problem(random_data(seed, **data), score, rules)
    return problem, model_of(problem)


@pytest.mark.parametrize("score", [Score(), Score(max_parents=3)], ids=str)
def test_structures_obey_all_rows_and_other_graphs_do_not(score: Score) -> None:
    problem, model = make(score, LIMITS)
    candidates = problem.candidates
    rows = every_row(candidates, child_limits(candidates, problem.rules))
    assert (rows.limit != CLUSTER).any()
    a, b = matrix_of(candidates, rows)
    verified = Rows(space_of(candidates), problem.rules, rows.members, rows.limit)
    for r in range(len(b)):
        out = np.zeros(candidates.n_sets)
        add_row(model.oracle, rows, r, 2.5, out)
        np.testing.assert_array_equal(out, 2.5 * a[r])
        constant, gradient = verified.combine(np.array([r]), np.array([2.5]))
        np.testing.assert_array_equal(gradient, 2.5 * a[r])
        assert constant == pytest.approx(-2.5 * b[r], abs=1e-12)
    obeying = 0
    for choice in itertools.product(*(range(x, y) for x, y in itertools.pairwise(candidates.offsets))):
        surplus = a[:, choice].sum(axis=1) - b
        parents = [candidates.flat[p] for p in choice]
        try:
            fits = problem.obeys(candidates.structure(np.array(choice)))
        except ValueError:  # a cycle
            fits = False
        assert (surplus.min() >= 0) == fits, parents
        obeying += fits
    assert obeying > 40


@pytest.mark.parametrize("kind", KINDS)
def test_any_multipliers_give_a_bound(kind: int, request: pytest.FixtureRequest) -> None:
    if kind == RELAXED:
        request.getfixturevalue("relaxed")
    tight = 0
    for seed in range(6):
        rng = np.random.default_rng([seed, kind])
        problem, model = make(KINDS[kind], LIMITS, seed, weights=seed % 2 == 1)
        assert model.oracle.kind == kind
        candidates = problem.candidates
        choices = np.array([c for c in all_choices(candidates) if problem.obeys(candidates.structure(c))])
        best = max(problem.value(problem.indicator(choice)) for choice in choices)
        rows = every_row(candidates, child_limits(candidates, problem.rules))
        for scale in (0.0, 0.1, 1.0, 1e6):
            multipliers = scale * rng.exponential(size=len(rows.limit)) * (rng.random(len(rows.limit)) < 0.2)
            node = subproblem_of(model, rows, multipliers, *whole_node(model.oracle, model.linear)[:3])
            a, b = matrix_of(candidates, rows)
            np.testing.assert_allclose(node.linear, model.linear + multipliers @ a, atol=1e-9 * scale)
            assert node.constant == pytest.approx(-multipliers @ b, abs=1e-9 * scale)
            point = empty_point(model)
            assert place(model, node, point, choices[:1], np.ones(1), 1.0, False)
            steps = take_steps if seed % 2 else take_compiled_steps
            steps(model, node, point, Goal(-np.inf, 0.0, -np.inf), 60, True, False)
            assert point.state.bound >= best
            eta = np.zeros(candidates.n_sets)
            np.add.at(eta, point.vertices[: point.state.vertices], point.shares[: point.state.vertices, None])
            assert point.state.linear == pytest.approx(node.linear @ eta, rel=1e-6, abs=1e-6)
            evaluate(model, node, point, False)
            assert point.state.bound >= best
            tight += point.state.bound < best + 0.2 * abs(best)
    assert tight > 6


@pytest.mark.parametrize("kind", KINDS)
def test_multipliers_are_those_of_the_linear_program(kind: int, request: pytest.FixtureRequest) -> None:
    """The bound at fixed weights is the maximum over the relaxation with all rows; descent never raises it."""
    if kind == RELAXED:
        request.getfixturevalue("relaxed")
    better = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, kind])
        problem, model = make(KINDS[kind], LIMITS, seed, n_features=4)
        oracle, candidates = model.oracle, problem.candidates
        P, V = candidates.n_sets, candidates.n_variables
        weights = rng.normal(size=P) * 10.0 ** rng.integers(-2, 3)
        known = child_limits(candidates, problem.rules)
        space, choice = whole_node(oracle, weights)[:3], np.empty(V, dtype=np.int64)
        rows, multipliers, vertices, shares = best_multipliers(
            oracle, candidates, known, weights, space[0], problem.choice(obeying(problem)), Budget()
        )
        assert (rows.limit == CLUSTER).any() <= (kind == RELAXED)
        priced = weights.copy()
        bound = add_terms(oracle, rows, multipliers, priced) + heaviest(oracle, priced)
        a, b = matrix_of(candidates, every_row(candidates, known))
        solved = linprog(
            -weights, -a, -b, np.equal.outer(np.arange(V), candidates.variable).astype(float), np.ones(V)
        )
        scale = np.abs(weights).max()
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1)
        assert (candidates.variable[vertices] == np.arange(V)).all()
        assert shares @ weights[vertices].sum(axis=1) == pytest.approx(-solved.fun, abs=1e-6 * scale)
        if kind == RELAXED:
            assert bound == pytest.approx(-solved.fun, abs=1e-6 * scale)
        else:
            assert bound <= -solved.fun + 1e-6 * scale
        better += bound < heaviest(oracle, weights) - 1e-3 * scale
        # Descent from other multipliers, one at a time.
        start = multipliers * rng.uniform(0, 2, len(multipliers))
        here, active = weights.copy(), np.arange(0, len(start), 1 + seed % 2)
        first = add_terms(oracle, rows, start, here) + heaviest(oracle, here)
        moved = start.copy()
        fallen = sum(lower(oracle, rows, here, *space, moved, active, np.inf, choice) for _ in range(3))
        assert (fallen > 0) == (moved != start).any()
        assert moved.min(initial=0.0) >= 0
        frozen = np.setdiff1d(np.arange(len(start)), active)
        np.testing.assert_array_equal(moved[frozen], start[frozen])
        again = weights.copy()
        value = add_terms(oracle, rows, moved, again) + heaviest(oracle, again)
        np.testing.assert_allclose(here, again, atol=1e-9 * scale)
        assert value == pytest.approx(first - fallen, abs=1e-9 * scale)
        assert kind != RELAXED or value >= bound - 1e-6 * scale
    assert better > 3


@pytest.mark.usefixtures("relaxed")
def test_multipliers_of_rounds_that_stop_early_give_a_bound() -> None:
    """The budget ends after any number of questions, so also between a change of the columns and their solution."""
    problem, model = make(Score(), Constraints(), 3, n_features=4)
    oracle, candidates = model.oracle, problem.candidates
    weights = np.random.default_rng(3).normal(size=candidates.n_sets)
    allowed, incumbent = whole_node(oracle, weights)[0], problem.choice(obeying(problem))
    known = child_limits(candidates, problem.rules)
    solved = []
    for asked in range(12):
        left = iter([False] * asked)
        budget = Budget(cancelled=lambda left=left: next(left, True))
        rows, multipliers, vertices, shares = best_multipliers(
            oracle, candidates, known, weights, allowed, incumbent, budget
        )
        priced = weights.copy()
        bound = add_terms(oracle, rows, multipliers, priced) + heaviest(oracle, priced)
        best = max(
            weights[choice].sum()
            for choice in all_choices(candidates)
            if problem.obeys(candidates.structure(choice))
        )
        assert bound >= best
        assert len(vertices) == len(shares)
        solved.append(len(shares) > 0)
    assert not solved[0]
    assert solved[-1]


def test_one_multiplier_goes_to_its_minimum() -> None:
    """The minimum is compared with that on a fine grid."""
    moved = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        problem, model = make(Score(), Constraints(max_children={"X1": 1}), seed, n_features=4)
        oracle, P = model.oracle, problem.candidates.n_sets
        rows = child_limits(problem.candidates, problem.rules)
        weights = rng.normal(size=P)
        space, choice = whole_node(oracle, weights)[:3], np.empty(problem.candidates.n_variables, np.int64)

        def at(multiplier: float, weights=weights, oracle=oracle, rows=rows) -> float:
            out = weights.copy()
            constant = add_terms(oracle, rows, np.array([multiplier]), out)
            return constant + heaviest(oracle, out)

        least = min(at(x) for x in np.linspace(0, 6, 1201))
        for start in (0.0, 3.0):
            multipliers = np.array([start])
            here = weights.copy()
            add_terms(oracle, rows, multipliers, here)
            lower(oracle, rows, here, *space, multipliers, np.array([0]), np.inf, choice)
            assert at(multipliers[0]) <= least + 1e-9
            moved += multipliers[0] != start
    assert moved > 15


@pytest.mark.parametrize("rules", [None, Constraints(max_children={"*": 1})], ids=["clusters", "limits"])
def test_the_root_bound_falls(
    rules: Constraints | None, relaxed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fallen = 0
    for seed in range(4):
        data = random_data(seed, n_features=5 if rules else 4, n_samples=60)
        score = Score(p=0.95, max_parents=2 if rules else 3)
        problem = build_problem(data, score, rules)
        best = optimum(data, score, rules)
        start = Structure.empty(data.names)
        bounds = []
        for priced in (True, False):
            with monkeypatch.context() as patch:
                if not priced:
                    patch.setattr(Root, "_give_multipliers", lambda *_: False)
                root = Root(problem, start)
                root.run(start, EventLog())
            bounds.append(root.bound)
            assert root.bound >= best.objective
            assert root.value(start) == pytest.approx(problem.rescore(start))
        fallen += bounds[0] < bounds[1] - 1e-3 * abs(bounds[1])
    assert fallen > 0


@pytest.mark.parametrize(
    "rules", [None, Constraints(max_children={"*": 1, "C": 3})], ids=["clusters", "limits"]
)
def test_certificates_contain_the_multipliers_of_all_nodes(rules, relaxed, tmp_path) -> None:
    path = tmp_path / "proof.npz"
    parts = rows_used = 0
    for seed, threads in itertools.product(range(3), (1, 2)):
        data = random_data([5, seed], n_features=5 if rules else 4, n_samples=60)
        score = Score(p=0.95, max_parents=2 if rules else 3, class_parents=False)
        options = {"constraints": rules, "threads": threads, "certificate": path, "verbose": False}
        result = solve(data, score, backend="native", **options)
        best = optimum(data, score, rules)
        assert result.optimal
        assert result.structure.parents in best.structures
        assert verify(result, path, data).bound >= best.objective - 1e-9 * abs(best.objective)
        _, arrays = load_proof(path)
        leaves = arrays["multipliers_size"][len(arrays["deletion_size"]) :]
        parts += len(leaves) > 1
        rows_used += int((leaves > 0).sum())
    assert parts > 3
    assert rows_used > 20


def test_descent_ends_where_no_structure_is_left(relaxed: None) -> None:
    """X1 and X2 each must have the other as a parent, so the bound could fall for ever."""
    problem, model = make(Score(p=0.9, max_parents=3), n_features=4)
    oracle, candidates = model.oracle, problem.candidates
    allowed = np.array(
        [
            i > 1 or 1 - i in parents
            for i, parents in zip(candidates.variable.tolist(), candidates.flat, strict=True)
        ]
    )
    V = candidates.n_variables
    rows = Inequalities(np.array([[i < 2 for i in range(V)]]), np.array([CLUSTER]))
    weights = np.random.default_rng(0).normal(size=candidates.n_sets)
    space = whole_node(oracle, weights)._replace(allowed=allowed)[:3]
    choice = np.empty(V, dtype=np.int64)
    first = heaviest_structure(oracle, weights, *space, choice)[1]
    multipliers = np.zeros(1)
    fallen = lower(oracle, rows, weights, *space, multipliers, np.array([0]), 50.0, choice)
    assert 50.0 <= fallen <= 250.0
    assert fallen == pytest.approx(multipliers[0])
    last = heaviest_structure(oracle, weights, *space, choice)[1] - multipliers[0]
    assert last == pytest.approx(first - fallen)


def test_tight_limits_on_many_variables_have_multipliers() -> None:
    """No structure has the best parent set of every variable."""
    data = random_data(3, n_features=20, n_classes=2, max_states=2, n_samples=500)
    rules = Constraints(max_children={"*": 1})
    problem = build_problem(data, Score(p=0.99, max_parents=3, class_parents=False), rules, for_milp=False)
    start = Structure.naive_bayes(data.names)
    root = Root(problem, start)
    root.run(start, EventLog())
    assert (root.multipliers[root.rows.limit != CLUSTER] > 0).sum() > 5
    assert (root.multipliers[root.rows.limit == CLUSTER] > 0).any()
    free = Root(problem, start)
    free._give_multipliers = lambda *_: False
    free.run(start, EventLog())
    assert problem.rescore(start) <= root.bound < free.bound - 5
