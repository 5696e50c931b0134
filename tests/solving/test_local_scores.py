from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import milpbn
from milpbn.claims.local_result import LocalResult
from milpbn.errors import InputError
from milpbn.milp.files.jkl_file import LocalScores, read_jkl
from milpbn.network.structure import topological_order
from milpbn.problem.candidates import Candidates
from milpbn.solving.engines.registry import get_engine
from milpbn.solving.local_scores import export_local_scores, solve_local_scores


def best_by_enumeration(local: LocalScores) -> float:
    sets, offsets = local.candidates.sets, local.candidates.offsets
    best = -math.inf
    for choice in itertools.product(*(range(len(s)) for s in sets)):
        if topological_order([s[k] for s, k in zip(sets, choice, strict=True)]) is not None:
            best = max(best, math.fsum(local.scores[offsets[i] + k] for i, k in enumerate(choice)))
    return best


@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (0, {"backend": "highs", "acyclicity": "order"}),
        (1, {"backend": "highs"}),
        (2, {"backend": "branch-and-cut"}),
        (3, {}),
    ],
)
def test_the_optimum_of_random_scores_is_that_of_enumeration(seed, options):
    rng = np.random.default_rng(seed)
    sets = []
    for i in range(5):
        others = [j for j in range(5) if j != i]
        every = [s for size in range(3) for s in itertools.combinations(others, size)]
        sets.append(((), *(every[k] for k in sorted(rng.choice(np.arange(1, len(every)), 5, replace=False)))))
    local = LocalScores(Candidates(tuple("abcde"), tuple(sets)), rng.normal(-100, 20, 30))
    found = solve_local_scores(local, **options)
    assert found.optimal
    assert found.objective == pytest.approx(best_by_enumeration(local), abs=1e-9)
    assert found.bound == pytest.approx(found.objective, abs=1e-5)


@pytest.mark.parametrize("score", ["bdeu", "mdl"])
def test_exported_scores_have_the_optimum_of_the_data(tmp_path, score):
    export_local_scores("corral", score, path=tmp_path / "s.jkl")
    found = solve_local_scores(tmp_path / "s.jkl")
    solved = milpbn.solve("corral", score, backend="highs", threads=1)
    assert found.objective == pytest.approx(solved.objective, rel=1e-12)
    assert read_jkl(tmp_path / "s.jkl").candidates.names == solved.structure.names


def test_what_is_no_sum_of_local_scores_is_refused(tmp_path):
    for score in ("sm", "aicc", "cll"):
        with pytest.raises(InputError, match=f"The score {score} is not a sum of local scores"):
            export_local_scores("corral", score, path=tmp_path / "s.jkl")
    rules = milpbn.Constraints(max_children={"*": 1})
    with pytest.raises(InputError, match="children"):
        export_local_scores("corral", "mdl", path=tmp_path / "s.jkl", constraints=rules)
    assert not list(tmp_path.iterdir())


def test_cyclic_scores_and_unknown_solvers_are_refused():
    local = LocalScores(Candidates(("a", "b"), (((1,),), ((0,),))), np.zeros(2))
    with pytest.raises(InputError, match="has a cycle"):
        solve_local_scores(local)
    with pytest.raises(InputError, match="no MILP solver 'native'"):
        solve_local_scores(local, backend="native")


@pytest.mark.parametrize(
    "backend", ["branch-and-cut", "highs", "cbc", "scip", "cpsat", "pulp:highs", "pulp:cbc"]
)
@pytest.mark.parametrize("offset", [-1e6, -1e9, 1e7])
def test_what_all_structures_share_hides_no_better_one(backend: str, offset: float) -> None:
    """The empty structure is within 1e-6 of the best one, relative to the scores."""
    try:
        get_engine(backend).version()
    except InputError as error:
        pytest.skip(str(error))
    sets = (((), (1,), (2, 3)), ((), (0,), (2,)), ((), (1,), (0, 3)), ((), (0, 1), (2,)))
    gains = np.array([0, 0.5, 0.75, 0, 0.5, 0.25, 0, 0.5, 0.5, 0, 0.75, 0.25])
    local = LocalScores(Candidates(tuple("abcd"), sets), gains + offset)
    best = best_by_enumeration(LocalScores(local.candidates, gains))
    # Every solver meets both forms of rows; which of them a number meets does not matter.
    acyclicity = "order" if offset == -1e9 and backend != "branch-and-cut" else "cluster"
    found = solve_local_scores(local, backend=backend, acyclicity=acyclicity, threads=2)
    assert found.optimal
    assert found.objective - 4 * offset == best == 1.75
    assert found.tolerance is not None
    assert found.bound is not None
    assert 0 <= found.bound - found.objective <= found.tolerance <= 1e-4
    again = LocalResult.from_dict(found.to_dict())
    assert (again.optimal, again.tolerance, again.bound) == (True, found.tolerance, found.bound)
    old = {key: value for key, value in found.to_dict().items() if key != "tolerance"}
    assert LocalResult.from_dict(old).optimal
