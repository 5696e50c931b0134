"""Proofs by multipliers: both verifiers accept what branch and cut records, and no change lets a false bound pass."""

import math
import random
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from campaign.forge import change_arrays
from running import all_choices, branch_early, in_parts, problem_of

from milpbn.certificate.exact.multipliers import ExactRules
from milpbn.certificate.exact.multipliers import prove as prove_exactly
from milpbn.certificate.format import kept_arrays
from milpbn.certificate.multiplier_proof import MultiplierProof
from milpbn.certificate.verify.alternatives import key_of
from milpbn.certificate.verify.multipliers import prove
from milpbn.engine.events import EventLog
from milpbn.engine.pool import Pool
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules
from milpbn.solvers.base import Settings
from milpbn.solving.engines.base import Start
from milpbn.solving.engines.branch_and_cut import BranchAndCutEngine


def drawn(seed):
    """Return a random problem of 4 to 7 variables, half of them with limits of children."""
    rng = np.random.default_rng(seed)
    n, sets, scores = int(rng.integers(4, 8)), [], []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        every = [s for k in range(4) for s in combinations(others, k)]
        sets.append(tuple(s for s in every if not s or rng.random() < 0.6))
        sizes = np.array([len(s) for s in sets[-1]])
        noise = rng.integers(-3, 1, len(sizes)), 3 * rng.normal(size=len(sizes)), 30 * rng.random(len(sizes))
        factor, kind = ((1, 0), (5, 1), (0, 2))[int(rng.integers(3))]
        scores += list(-50.0 + (factor * sizes + noise[kind]) * 10.0 ** rng.integers(-1, 3))
    candidates = Candidates(tuple(f"v{i}" for i in range(n)), tuple(sets))
    some = rng.choice(n, int(rng.integers(1, 4)), replace=False).tolist() if rng.random() < 0.5 else []
    rules = Rules(max_children={j: int(rng.integers(1, 3)) for j in some})
    local = problem_of(candidates, np.array(scores))
    return replace(local, rules=rules)


def optimum(problem):
    """Return the best score, by dynamic programming over subsets and numbers of children."""
    candidates, limits = problem.candidates, problem.rules.max_children
    bits = [sum(1 << j for j in s) for s in candidates.flat]
    best = {(0, (0,) * len(limits)): 0.0}
    for _ in range(candidates.n_variables):
        more = {}
        for (placed, children), score in best.items():
            for p, (i, s) in enumerate(zip(candidates.variable.tolist(), bits, strict=True)):
                if placed >> i & 1 or s & ~placed:
                    continue
                counts = tuple(c + (s >> j & 1) for c, j in zip(children, limits, strict=True))
                if all(c <= limit for c, limit in zip(counts, limits.values(), strict=True)):
                    key = placed | 1 << i, counts
                    more[key] = max(more.get(key, -np.inf), score + problem.linear[p])
        best = more
    return max(best.values())


def searched(problem, seed, nodes=10**9):
    """Return the bound that a search of at most so many nodes proves, and the arrays of its proof."""
    proof = MultiplierProof()
    events = EventLog(lambda: events.count >= nodes)
    settings = Settings(seed=seed, reduce=seed % 3 > 0, threads=1 + seed % 2)
    BranchAndCutEngine().run(problem, Start(proof=proof), settings, events)
    known = max((problem.rescored(s)[0] for s in events.structures), default=-np.inf)
    return max(known, min(events.bounds)), proof.arrays()


def searched_in_parts(problem, seed):
    """Return the least bound that a search in parts has told, the numbers of nodes, and the arrays of its proof."""
    settings = Settings(seed=seed, reduce=seed % 3 > 0, threads=1 + seed % 2)
    outcome, parts, _, proof = in_parts(problem, settings, certified=True)
    known = max((problem.rescored(s)[0] for s in parts[-1].structures), default=-np.inf)
    assert outcome.finished
    assert known == pytest.approx(optimum(problem), rel=1e-12)
    least = min(bound for events in parts for bound in events.bounds)
    return max(known, least), [events.count for events in parts if events.count], proof.arrays()


def verify(problem, arrays, bound, listed=None):
    """Ask the verifier."""
    return prove(problem.candidates, problem.linear, problem.rules, arrays, bound, listed)


def verify_exactly(problem, arrays, bound, listed=None):
    """Ask the exact checker."""
    families = zip(problem.candidates.variable.tolist(), problem.candidates.flat, strict=True)
    terms = zip(families, problem.linear.tolist(), strict=True)
    sets = [(i, sum(1 << j for j in s), Fraction(term)) for (i, s), term in terms]
    rules = problem.rules
    own = ExactRules(rules.max_children, rules.ancestors, rules.no_ancestors, rules.independences)
    prove_exactly(sets, own, arrays, Fraction(bound) if np.isfinite(bound) else bound, listed)


def accepted(check, problem, arrays, bound, *listed):
    """Whether a checker accepts a proof. The exact one turns these errors into a refusal."""
    exact = (
        (KeyError, IndexError, TypeError, AttributeError, ArithmeticError) if check is verify_exactly else ()
    )
    try:
        check(problem, arrays, bound, *listed)
    except (ValueError, *exact):
        return False
    return True


def check_proof(seed, monkeypatch, forgeries):
    """Both verifiers accept the proof of a search, but neither smaller bounds nor a changed proof of a false bound."""
    problem, rng = drawn(seed), random.Random(seed)
    best = optimum(problem)
    if seed % 2:
        branch_early(monkeypatch, seed)
    bound, arrays = searched(problem, seed)
    assert best - 1e-9 <= bound <= best + 1e-6
    forged = [change_arrays(rng, arrays) for _ in range(forgeries)]
    for check in (verify, verify_exactly):
        assert accepted(check, problem, arrays, bound)
        for less in (1e-8, 1e-3, 10.0):
            assert not accepted(check, problem, arrays, best - less * max(1.0, abs(best)))
        for other in forged:
            assert not accepted(check, problem, other, best - 1e-7 * abs(best))


@pytest.mark.parametrize("seed", range(20))
def test_honest_proofs_are_accepted_and_no_proof_of_a_false_bound_is(seed, monkeypatch):
    check_proof(seed, monkeypatch, 20)


@pytest.mark.slow
def test_a_thousand_more_proofs(monkeypatch):
    for seed in range(1000, 2000):
        with monkeypatch.context() as patch:
            check_proof(seed, patch, 5)


@pytest.mark.parametrize("seed", range(1, 25))
def test_the_proof_of_a_search_in_parts_is_accepted(seed, monkeypatch):
    if seed % 8:
        branch_early(monkeypatch, seed)
    problem = drawn(seed)
    bound, nodes, arrays = searched_in_parts(problem, seed)
    assert nodes == sorted(nodes)  # they are counted on
    assert len(nodes) > 2 or seed not in (3, 4, 10, 12, 15, 20)
    assert bound <= optimum(problem) + 1e-6
    assert accepted(verify, problem, arrays, bound)
    assert accepted(verify_exactly, problem, arrays, bound)


def test_a_stopped_search_proves_the_bound_that_it_told(monkeypatch):
    branch_early(monkeypatch, 1)
    n_open = 0
    for seed in range(8):
        problem = drawn(seed)
        for nodes in (1, 2, 4):
            bound, arrays = searched(problem, seed, nodes)
            assert accepted(verify, problem, arrays, bound)
            assert accepted(verify_exactly, problem, arrays, bound)
            n_open += bound > optimum(problem) + 1e-6
    assert n_open > 3


def drawn_with_paths(seed):
    """Return a problem of 4 or 5 variables with few parent sets, most of them with constraints on paths."""
    rng, problem = np.random.default_rng(seed), drawn(seed)
    n = min(4 + seed % 2, problem.candidates.n_variables)
    kept = [
        [s for s in own if (max(s, default=0) < n and rng.random() < 0.7) or not s]
        for own in problem.candidates.sets
    ]
    candidates = Candidates(tuple(f"v{i}" for i in range(n)), tuple(map(tuple, kept[:n])))
    pairs = [(j, i) for i in range(n) for j in range(n) if i != j]

    def some(most):
        chosen = rng.choice(len(pairs), int(rng.integers(0, most + 1)), replace=False)
        return [pairs[k] for k in chosen.tolist()]

    def apart(a, b):
        return a, b, frozenset(j for j in range(n) if j not in (a, b) and rng.random() < 0.4)

    rules = Rules(
        max_children={0: 2} if seed % 3 == 0 else {},
        ancestors=frozenset(some(2) if rng.random() < 0.6 else ()),
        no_ancestors=frozenset(some(2) if rng.random() < 0.6 else ()),
        independences=frozenset(apart(*pair) for pair in some(2)) if rng.random() < 0.6 else frozenset(),
    )
    scores = (
        10.0 * rng.integers(-3, 4, candidates.n_sets)
        if seed % 4 == 1
        else 9 * rng.normal(size=candidates.n_sets)
    )
    return replace(problem_of(candidates, scores), rules=rules)


def ranked(problem):
    """Return the choices of all allowed structures, the best first, and their scores."""
    choices = [c for c in all_choices(problem.candidates) if problem.obeys(problem.candidates.structure(c))]
    scores = np.array([math.fsum(problem.linear[c]) for c in choices])
    order = np.argsort(-scores, kind="stable")
    return [choices[k] for k in order], scores[order]


def list_searched(problem, seed, size, reach, nodes=10**9):
    """Return the list of a search, the bound on all others, and the arrays of its proof."""
    proof, pool, events = MultiplierProof(), Pool(size, reach), EventLog(lambda: events.count >= nodes)
    settings = Settings(seed=seed, reduce=seed % 3 > 0, threads=1 + seed % 2)
    BranchAndCutEngine().run(problem, Start(proof=proof, pool=pool), settings, events)
    if size == 1:
        known = max((problem.rescored(s)[0] for s in events.structures), default=-np.inf)
        return [], max(known, min(events.bounds, default=np.inf)), proof.arrays()
    return [choice for choice, _ in pool.best()], pool.others(pool.rest), proof.arrays()


def accepted_list(check, problem, arrays, bound, listed):
    """Whether a checker accepts a proof of a bound on all structures but some."""
    bits = [sum(1 << j for j in s) for s in problem.candidates.flat]
    keys = {key_of(choice) if check is verify else tuple(bits[p] for p in choice) for choice in listed or ()}
    return accepted(check, problem, arrays, bound, None if listed is None else keys)


# Seed 5 branches at random for a list of 40, which takes nine seconds.
@pytest.mark.parametrize("seed", [*range(5), pytest.param(5, marks=pytest.mark.slow), *range(6, 30)])
def test_proofs_of_lists_and_of_constraints_on_paths(seed, monkeypatch):
    """Honest ones are accepted; a smaller bound, another list, other constraints and changed proofs are not."""
    check_list(seed, monkeypatch, 8)


@pytest.mark.slow
def test_a_thousand_more_lists(monkeypatch):
    for seed in range(1000, 2000):
        with monkeypatch.context() as patch:
            check_list(seed, patch, 3)


def check_list(seed, monkeypatch, forgeries):
    problem, rng = drawn_with_paths(seed), random.Random(seed)
    choices, scores = ranked(problem)
    if not choices:
        return
    if seed % 2:
        branch_early(monkeypatch, seed)
    size, reach = rng.choice([1, 2, 3, 8, 40, 10**6]), rng.choice([np.inf, np.inf, 5.0])
    nodes = rng.choice([1, 3, 10**9, 10**9])
    listed, bound, arrays = list_searched(problem, seed, size, reach, nodes)
    own = {key_of(choice) for choice in listed}
    rest = [score for choice, score in zip(choices, scores, strict=True) if key_of(choice) not in own]
    best = max(rest, default=-np.inf)
    assert bound >= best - 1e-9
    listed = listed if size > 1 else None
    if nodes == 10**9:
        assert len(own) == min(len(choices), size) or size == 1 or reach < np.inf
        assert bound <= max(best, scores[min(size, len(scores)) - 1], scores[0] - reach) + 1e-6
    lower = best - 1e-7 * max(1.0, abs(best)) if rest else -np.inf
    for check in (verify, verify_exactly):
        assert accepted_list(check, problem, arrays, bound, listed)
        assert not rest or not accepted_list(check, problem, arrays, lower, listed)
        for choice in (listed or ())[:3]:
            fewer = [other for other in listed if other is not choice]
            score = math.fsum(problem.linear[choice])
            assert not accepted_list(check, problem, arrays, score - 1e-7 * max(1.0, abs(score)), fewer)
        for _ in range(forgeries if rest else 0):
            forged = change_arrays(rng, arrays)
            assert not accepted_list(check, problem, forged, lower, listed)


def without(arrays, name, at):
    """Return arrays of which one lacks an entry."""
    return {**arrays, name: np.delete(arrays[name], at, axis=0)}


def changed(arrays, name, at, value):
    """Return arrays of which one has another entry."""
    values = arrays[name].copy()
    values[at] = value
    return {**arrays, name: values}


def searching(candidates, places):
    """Return the arrays that say which parent sets were searched."""
    variable, places = candidates.variable, list(places)
    return kept_arrays(variable[places], [candidates.flat[p] for p in places], "searched")


def test_every_kind_of_entry_matters():
    """Rows, functions, limits, multipliers, steps, decisions and searched sets: a proof by hand, with each one changed.

    Each of the first three variables has any one of the others as its parent, for a score of 1, or none for 0; the last
    two have each other, or none. So the best score is 3. One child of the root has the arc between the last two, the
    other one has not. The block of the first three, which is their cluster, proves the one, and the cluster the other.
    """
    sets = tuple(((), *((j,) for j in range(3) if j != i)) for i in range(3))
    candidates = Candidates(tuple("abcde"), (*sets, ((), (4,)), ((), (3,))))
    linear = np.array([0.0, 1.0, 1.0] * 3 + [0.0, 1.0] * 2)
    local = problem_of(candidates, linear)
    rules = Rules(max_children={2: 1})
    problem = replace(local, rules=rules)
    triple = [True, True, True, False, False]
    arrays = {
        **searching(candidates, range(13)),
        "row_members": np.array([triple, triple, [False, False, True, False, False]]),
        "row_limit": np.array([-2, -1, 1]),
        "row_values": np.array([0, 0, 0, 1, 0, 1, 1, 2]),
        "branches": np.array([[0, 1, 4, 3, 1, 2]], dtype=np.int32),
        "step_node": np.array([1, 2], dtype=np.int32),
        "multipliers_size": np.array([1, 2]),
        "multiplier_row": np.array([0, 1, 2], dtype=np.int32),
        "multiplier": np.array([1.0, 1.0, 0.0]),
    }
    forgeries = {
        "a set is not searched that has no searched subset": arrays | searching(candidates, range(1, 13)),
        "a searched set is no candidate": changed(arrays, "searched_member", 0, 4),
        "the cluster is smaller": changed(arrays, "row_members", (1, 0), False),
        "the block is smaller": changed(arrays, "row_members", (0, 0), False),
        "the function is smaller": changed(arrays, "row_values", 7, 1),
        "the function does not begin at 0": changed(arrays, "row_values", 0, -1),
        "a value of the function is too small for its type": changed(arrays, "row_values", 7, -(2**63)),
        "the limit is smaller than that of the problem": changed(arrays, "row_limit", 2, 0),
        "a limit has two parents": changed(arrays, "row_members", (2, 1), True),
        "a multiplier is smaller": changed(arrays, "multiplier", 0, 0.5),
        "a multiplier is negative": changed(arrays, "multiplier", 2, -1.0),
        "a multiplier is no number": changed(arrays, "multiplier", 2, np.nan),
        "a multiplier is of another row": changed(arrays, "multiplier_row", 1, 2),
        "a row does not exist": changed(arrays, "multiplier_row", 1, 3),
        "a step is of another node": changed(arrays, "step_node", 1, 1),
        "a step is of no node": changed(arrays, "step_node", 1, 3),
        "a step is shorter": changed(arrays, "multipliers_size", 1, 1),
        "a leaf has no step": {
            **without(without(arrays, "multiplier_row", 0), "multiplier", 0),
            "multipliers_size": np.array([2]),
            "step_node": np.array([2], dtype=np.int32),
        },
        "a decision is of no kind": changed(arrays, "branches", (0, 1), 2),
        "a decision is of no variable": changed(arrays, "branches", (0, 2), 5),
        "a node is reached twice": changed(arrays, "branches", (0, 5), 1),
        "a child is another node": changed(arrays, "branches", (0, 4), 7),
    }
    for check in (verify, verify_exactly):
        assert accepted(check, problem, arrays, 3.0 + 1e-12)
        assert not accepted(check, problem, arrays, 3.0 - 1e-9)
        for what, forged in forgeries.items():
            assert not accepted(check, problem, forged, 3.0 + 1e-12), what
    assert not accepted(verify, problem, changed(arrays, "multiplier", 0, np.inf), 4.0)


def test_a_set_that_was_not_searched_raises_the_term_of_its_subset():
    candidates = Candidates(("a", "b"), (((), (1,)), ((), (0,))))
    problem = problem_of(candidates, np.array([0.0, 3.0, 0.0, 0.0]))
    arrays = MultiplierProof().arrays() | searching(candidates, [0, 2])
    for check in (verify, verify_exactly):
        assert accepted(check, problem, arrays, 3.0 + 1e-12)
        assert not accepted(check, problem, arrays, 2.9)
