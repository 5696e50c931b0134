"""Branch and cut over parent sets against the enumeration of all structures."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from milpbn.engine.events import EventLog
from milpbn.engine.parent_sets import cutting, search
from milpbn.milp.files.jkl_file import LocalScores
from milpbn.network.structure import topological_order
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules
from milpbn.solvers.base import Settings
from milpbn.solving.engines.base import Start
from milpbn.solving.engines.branch_and_cut import BranchAndCutEngine
from milpbn.solving.local_scores import LocalProblem


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
    problem = LocalProblem.of(LocalScores(candidates, np.array(scores)))
    if rng.random() < 0.5:
        problem = replace(problem, rules=Rules(max_children={int(rng.integers(n)): int(rng.integers(1, 3))}))
    return problem


def enumerated(problem):
    """Return the best score of all structures, None if there is none."""
    candidates, best = problem.candidates, None
    offsets = candidates.offsets
    for choice in itertools.product(*(range(a, b) for a, b in itertools.pairwise(offsets))):
        parents = [candidates.flat[p] for p in choice]
        if problem.rules.over_limit(parents) is None and topological_order(parents) is not None:
            score = float(problem.linear[list(choice)].sum())
            best = score if best is None or score > best else best
    return best


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
    expected = enumerated(problem)
    found, bound, outcome = solved(problem, **settings)
    if expected is None:
        assert found is None
        assert outcome.infeasible
        return
    assert not outcome.infeasible
    assert outcome.finished
    assert found == pytest.approx(expected, abs=1e-9)
    assert expected <= bound <= expected + 1e-6


@pytest.mark.parametrize("seed", range(60))
def test_the_optimum_is_that_of_the_enumeration(seed):
    check(drawn(seed), reduce=seed % 2 == 0)


@pytest.mark.parametrize("seed", range(60, 120))
def test_the_tree_proves_what_the_root_leaves_open(seed, monkeypatch):
    monkeypatch.setattr(cutting, "ROUNDS", 0)
    monkeypatch.setattr(cutting, "FIRST_SETS", 1 + seed % 2)
    monkeypatch.setattr(search, "BLOCKS", 0)
    if seed % 3 == 0:
        monkeypatch.setattr(search, "ROUNDS", 0)
        monkeypatch.setattr(search, "WORTHWHILE", 10.0)
    check(drawn(seed), reduce=seed % 2 == 0)


@pytest.mark.parametrize("seed", range(120, 126))
def test_more_than_64_variables(seed):
    problem = drawn(seed)
    few = enumerated(problem)
    many = drawn(seed, n_extra=70)
    found, bound, outcome = solved(many)
    if few is None:
        assert outcome.infeasible
    else:
        assert outcome.finished
        assert found == pytest.approx(few - 70 * 1.5)
        assert found <= bound <= found + 1e-6
