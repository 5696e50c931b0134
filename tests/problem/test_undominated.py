"""Parent sets that are left out while they are scored: none that a best structure may need."""

from __future__ import annotations

import numpy as np
import pytest

from milpbn.data.dataset import Dataset, Variable
from milpbn.engine.parent_sets.sets import list_sets
from milpbn.errors import InputError, NoIncumbentError
from milpbn.network.structure import Structure
from milpbn.problem import undominated
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.rounding import CAREFUL
from milpbn.problem.scores.spec import Score
from milpbn.util.budget import Budget

#: Terms that differ by less are equal up to rounding.
TIE = 1e-9


@pytest.fixture(autouse=True)
def _score_by_levels(monkeypatch):
    monkeypatch.setattr(undominated, "FEW", 0)


def random_table(rng) -> Dataset:
    """Return a table in which variables depend on each other, some nearly or fully; some have one state."""
    n, m = int(rng.integers(2, 7)), int(rng.choice([5, 30, 200, 1000]))
    states = rng.integers(1 if rng.random() < 0.3 else 2, 5, n)
    states[-1] = max(2, states[-1])
    codes = np.zeros((m, n), dtype=np.int32)
    for v in range(n):
        base = codes[:, rng.permutation(n)[:2]].sum(axis=1) if rng.random() < 0.7 else 0
        noise = (rng.random(m) < rng.choice([0, 0.1, 0.5])) * rng.integers(0, states[v], m)
        codes[:, v] = (base + noise) % states[v]
    weights = np.ones(m) if rng.random() < 0.6 else rng.random(m) * 10.0 ** rng.integers(-2, 3)
    variables = tuple(Variable(f"x{v}", tuple(map(str, range(s)))) for v, s in enumerate(states))
    return Dataset("random", variables, codes, weights)


def random_question(rng, names) -> tuple[Score, Constraints]:
    name = str(rng.choice(["bdeu", "mdl", "aic", "ll"], p=[0.4, 0.3, 0.2, 0.1]))
    ess = {"equivalent_sample_size": float(rng.choice([1, 10, 0.01, 1000]))} if name == "bdeu" else {}
    score = Score(
        name=name,
        max_parents=int(rng.integers(1, 6)),
        parent_sets=str(rng.choice(["paper", "all"])),
        class_parents=bool(rng.random() < 0.7),
        **ess,
    )
    arcs = [(a, b) for a in names for b in names if a != b]
    given = {}
    for key, share, most in (("forbidden", 0.3, 2), ("required", 0.3, 1), ("arc_weights", 0.4, 3)):
        if rng.random() < share:
            some = tuple(arcs[k] for k in rng.permutation(len(arcs))[:most])
            given[key] = some if key != "arc_weights" else {arc: 5 * rng.normal() for arc in some}
    if rng.random() < 0.2:
        given["max_children"] = {"*": 2}
    return score, Constraints(**given)


def kept(problem: Problem) -> dict[tuple[int, tuple[int, ...]], float]:
    """Return the parent sets of a search, each with its term."""
    candidates = problem.candidates
    listed = list_sets(candidates, problem.linear + CAREFUL * problem.linear_error).in_eta
    return {(int(candidates.variable[p]), candidates.flat[p]): float(problem.linear[p]) for p in listed}


@pytest.mark.parametrize("seed", range(8))
def test_the_sets_are_those_that_are_left_of_all(seed):
    rng = np.random.default_rng(seed)
    fewer = 0
    for _ in range(10):
        data = random_table(rng)
        score, constraints = random_question(rng, data.names)
        try:
            full = build_problem(data, score, constraints, for_milp=False)
        except InputError:  # constraints without a structure
            continue
        found = build_problem(data, score, constraints, for_milp=False, dominated=False)
        assert found.n_asked == full.candidates.n_sets
        fewer += found.candidates.n_sets < full.candidates.n_sets
        expected, actual = kept(full), kept(found)
        assert actual.items() <= expected.items()
        for (i, parents), term in expected.items() - actual.items():  # left out for an exact tie
            inside = [t for (j, s), t in expected.items() if j == i and {*s} < {*parents}]
            assert term <= max(inside) + TIE
    assert fewer > 1


@pytest.mark.parametrize("score", ["bdeu", "mdl", "aic"])
def test_bounds_leave_out_whole_branches(score, monkeypatch):
    """With few rows, most sets have only supersets that are dominated, and these are not scored."""
    rng = np.random.default_rng(1)
    codes = rng.choice(3, (60, 9), p=[0.9, 0.06, 0.04])
    codes[:, :3] = rng.integers(0, 3, (60, 3))
    variables = tuple(Variable(f"x{v}", ("0", "1", "2")) for v in range(9))
    data = Dataset("few rows", variables, codes.astype(np.int32), np.ones(60))
    run, left = undominated.Levels.run, []
    monkeypatch.setattr(
        undominated.Levels, "run", lambda self: (run(self), left.append(len(self.known.keys)))[0]
    )
    spec = Score(name=score, max_parents=8, parent_sets="all")
    found = build_problem(data, spec, for_milp=False, dominated=False)
    assert left[0] < 0.8 * found.n_asked
    assert kept(found) == kept(build_problem(data, spec, for_milp=False))


def test_a_start_takes_the_best_sets_inside_its_own():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, (50, 5)).astype(np.int32)
    data = Dataset("noise", tuple(Variable(f"x{v}", ("0", "1", "2")) for v in range(5)), codes, np.ones(50))
    spec = Score(name="bdeu", max_parents=3, parent_sets="all")
    found = build_problem(data, spec, for_milp=False, dominated=False)
    chain = Structure(data.names, ((), (0,), (0, 1), (0, 1, 2), (1, 2, 3)))
    adopted = found.adopted(chain)
    assert found.obeys(adopted)
    assert found.rescore(adopted) > found.rescore(chain)
    too_many = Structure(data.names, ((), (0,), (0, 1), (0, 1, 2), (0, 1, 2, 3)))
    assert not found.obeys(found.adopted(too_many))


def test_required_paths_keep_all_sets():
    data = random_table(np.random.default_rng(5))
    spec = Score(name="bdeu", max_parents=2, parent_sets="all")
    path = Constraints(ancestors=((data.names[0], data.names[1]),))
    assert build_problem(data, spec, path, for_milp=False, dominated=False).n_admitted is None


@pytest.mark.parametrize("max_parents", [40, 99])
def test_too_many_sets_to_be_numbered_are_refused(max_parents):
    """With 99 parents there are few largest sets, but too many of half the size."""
    states = [2] * 6 + [1] * 93 + [2]
    variables = tuple(Variable(f"x{v}", tuple(map(str, range(s)))) for v, s in enumerate(states))
    data = Dataset("constant columns", variables, np.zeros((5, 100), dtype=np.int32), np.ones(5))
    spec = Score(name="bdeu", max_parents=max_parents, parent_sets="all")
    with pytest.raises(InputError, match="reduce --max-parents"):
        build_problem(data, spec, for_milp=False, dominated=False)


def test_a_budget_ends_scoring_with_a_sentence():
    data = random_table(np.random.default_rng(5))
    spec = Score(name="bdeu", max_parents=3, parent_sets="all")
    with pytest.raises(NoIncumbentError, match="time limit ended while"):
        build_problem(data, spec, for_milp=False, dominated=False, budget=Budget(0.0))
