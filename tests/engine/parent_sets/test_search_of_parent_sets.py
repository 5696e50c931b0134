"""Branch and cut over parent sets against the enumeration of all structures."""

import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest
from running import problem_of

from milpbn.engine.events import EventLog
from milpbn.engine.parent_sets import cutting, search
from milpbn.engine.parent_sets.clusters import LEAST_VIOLATION, support_of
from milpbn.engine.parent_sets.cutting import RowPool
from milpbn.engine.parent_sets.rows import CLUSTER, Row
from milpbn.engine.parent_sets.separation import Separation
from milpbn.engine.parent_sets.sets import list_sets
from milpbn.engine.pool import Pool
from milpbn.network.structure import topological_order
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.rows import cluster_block
from milpbn.solvers.base import Settings
from milpbn.solving.engines import branch_and_cut
from milpbn.solving.engines.base import Start
from milpbn.solving.engines.branch_and_cut import BranchAndCutEngine


def drawn(seed, *, n_extra=0):
    """Return a random problem of 3 to 5 variables, and more variables without parents."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    sets, scores = [], []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        every = [s for k in range(4) for s in itertools.combinations(others, k)]
        listed = [s for s in every if rng.random() < 0.6 or (not s and rng.random() < 0.8)] or [()]
        sets.append(tuple(listed))
        # Few distinct values, so that there are ties, or terms in which more parents score more.
        kinds = (
            rng.integers(-3, 1, len(listed)),
            30 * rng.random(len(listed)) + [5 * len(s) for s in listed],
        )
        scores += list(-50.0 + kinds[int(rng.integers(2))] * 10.0 ** rng.integers(-1, 3))
    sets += [((),)] * n_extra
    scores += [-1.5] * n_extra
    candidates = Candidates(tuple(f"v{i}" for i in range(n + n_extra)), tuple(sets))
    problem = problem_of(candidates, np.array(scores))
    if rng.random() < 0.5:
        problem = replace(problem, rules=Rules(max_children={int(rng.integers(n)): int(rng.integers(1, 3))}))
    return problem


def enumerated(problem):
    """Return the scores and choices of parent sets of all structures, best first."""
    candidates, n = problem.candidates, problem.candidates.n_variables
    ranges = [np.arange(a, b) for a, b in itertools.pairwise(candidates.offsets)]
    choices = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, n)
    parents = np.array([sum(1 << j for j in s) for s in candidates.flat])[choices]
    placed = np.zeros(len(choices), dtype=np.int64)
    for i in [*range(n)] * n:  # a variable is placed once its parents are
        placed |= ((parents[:, i] & ~placed) == 0).astype(np.int64) << i
    allowed = placed == (1 << n) - 1
    for j, limit in problem.rules.max_children.items():
        allowed &= (parents >> j & 1).sum(axis=1) <= limit
    choices = choices[allowed]
    scores = problem.linear[choices].sum(axis=1)
    return [(float(scores[k]), tuple(choices[k].tolist())) for k in np.argsort(-scores, kind="stable")]


def solved(problem, **settings):
    """Return the best score found, the last bound and the outcome of a search."""
    events = EventLog()
    outcome = BranchAndCutEngine().run(problem, Start(), Settings(**settings), events)
    found = max((problem.rescored(s)[0] for s in events.structures), default=None)
    for structure in events.structures:
        assert problem.obeys(structure)
        assert topological_order(structure.parents) is not None
    return found, min(events.bounds, default=np.inf), outcome


def check(problem, **settings):
    """Assert that the search finds what the enumeration does, and proves it."""
    every = enumerated(problem)
    found, bound, outcome = solved(problem, **settings)
    if not every:
        assert found is None
        assert outcome.infeasible
        return
    expected = every[0][0]
    assert not outcome.infeasible
    assert outcome.finished
    assert found == pytest.approx(expected, abs=1e-9)
    assert expected <= bound <= expected + 1e-6


@pytest.mark.parametrize("seed", range(60))
def test_the_optimum_is_that_of_the_enumeration(seed, monkeypatch):
    monkeypatch.setattr(branch_and_cut, "MOST_SECONDS", 0.0)
    if seed % 3 == 1:  # rows are dropped as soon as they do not bind
        monkeypatch.setattr(cutting, "OLD", 0)
    check(drawn(seed), reduce=seed % 2 == 0)


@pytest.mark.parametrize("seed", range(60, 120))
def test_the_tree_proves_what_the_root_leaves_open(seed, monkeypatch):
    weaken(monkeypatch, seed)
    check(drawn(seed), reduce=seed % 2 == 0, threads=1 + seed % 3)


def weaken(monkeypatch, seed):
    """Have the root do little, so that the tree proves."""
    monkeypatch.setattr(branch_and_cut, "MOST_SECONDS", 0.0)
    monkeypatch.setattr(cutting, "ROUNDS", 0)
    monkeypatch.setattr(cutting, "FIRST_SETS", 1 + seed % 2)
    monkeypatch.setattr(search, "BLOCKS", 0)
    if seed % 3 == 0:
        monkeypatch.setattr(search, "ROUNDS", 0)
        monkeypatch.setattr(search, "WORTHWHILE", 10.0)


@pytest.mark.parametrize(
    "seeds",
    [*((seed,) for seed in range(200, 230)), pytest.param(range(1000, 11000), marks=pytest.mark.slow)],
)
def test_the_list_of_the_best_is_that_of_the_enumeration(seeds, monkeypatch):
    for seed in seeds:
        with monkeypatch.context() as patch:
            if seed % 2:
                weaken(patch, seed)
            check_list(seed)


def check_list(seed):
    """Check the list of a random problem."""
    problem, rng = drawn(seed), np.random.default_rng(seed)
    every = enumerated(problem)
    pool = Pool(int(rng.choice([2, 3, 5, 20, 100])), float(rng.choice([np.inf, 0, 1, 30])) + 1e-6)
    settings = Settings(reduce=seed % 3 > 0, threads=1 + seed % 2)
    outcome = BranchAndCutEngine().run(problem, Start(pool=pool), settings, EventLog())
    assert_list(every, outcome, pool)


def assert_list(every, outcome, pool):
    """Assert that a list has the best of all structures, which are ranked, and that its bound holds for the others."""
    if not every:
        assert outcome.infeasible
        return
    assert outcome.finished
    listed = {tuple(choice.tolist()): score for choice, score in pool.best()}
    expected = [score for score, _ in every if score >= every[0][0] - pool.reach][: pool.size]
    # Which of the structures of equal scores are listed is open.
    assert list(listed.values()) == pytest.approx(expected, abs=1e-6)
    scores = {choice: score for score, choice in every}
    assert all(score == pytest.approx(scores[choice]) for choice, score in listed.items())
    others = max((score for score, choice in every if choice not in listed), default=-np.inf)
    bound = pool.others(pool.rest)
    assert bound >= others - 1e-12 * abs(others)
    assert bound == -np.inf or bound <= pool.cutoff + 1e-6
    assert (bound == -np.inf) == (len(listed) == len(every) and not pool.selective)


def test_a_pool_grows_while_another_thread_looks_for_violated_rows():
    """The rows are those of a point, whatever is added meanwhile."""
    problem, rng = drawn(5, n_extra=40), np.random.default_rng(5)
    sets = list_sets(problem.candidates, problem.linear, dominated=True).sets
    n, pool = sets.n_variables, RowPool(sets.n_variables)
    clusters = [Row(CLUSTER, tuple(sorted(rng.choice(n, 9, replace=False).tolist()))) for _ in range(1500)]
    point = support_of(sets, np.arange(sets.n_sets), np.full(sets.n_sets, 0.5))
    adding = threading.Thread(target=lambda: [pool.add([row]) for row in clusters])
    adding.start()
    while adding.is_alive():
        assert set(pool.violated(sets, point, set(), -1.0)) <= set(clusters)
    assert set(pool.rows()) == set(clusters)


@pytest.mark.parametrize("seed", range(120, 126))
def test_more_than_64_variables(seed):
    problem = drawn(seed)
    few = enumerated(problem)
    many = drawn(seed, n_extra=70)
    found, bound, outcome = solved(many)
    assert not outcome.proved_by
    if not few:
        assert outcome.infeasible
    else:
        assert outcome.finished
        assert found == pytest.approx(few[0][0] - 70 * 1.5)
        assert found <= bound <= found + 1e-6


@pytest.mark.parametrize("seed", range(300, 306))
def test_rows_for_a_milp_hold_for_all_structures_and_are_found_if_a_cluster_is_violated(seed):
    problem, rng = drawn(seed), np.random.default_rng(seed)
    candidates = problem.candidates
    separate, offsets = Separation(candidates), candidates.offsets
    points = np.zeros((20, candidates.n_sets))
    for point in points:  # averages of choices with cycles
        for _ in range(3):
            point[rng.integers(offsets[:-1], offsets[1:])] += 1 / 3
    structures = np.array([problem.indicator(np.array(choice)) for _, choice in enumerated(problem)[::3]])
    n = candidates.n_variables
    clusters = [frozenset(s) for k in range(2, n + 1) for s in itertools.combinations(range(n), k)]
    cluster_rows = [cluster_block(candidates, s) for s in clusters]
    for point in points:
        found = separate(point)
        assert found or all(row.slack(point)[0] > -LEAST_VIOLATION for row in cluster_rows)
        for block in found.values():
            assert block.slack(point)[0] < 0
            assert (block.matrix @ structures.T <= block.upper[:, None]).all()
