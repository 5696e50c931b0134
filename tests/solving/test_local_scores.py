from __future__ import annotations

import itertools
import math
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from running import random_data

import milpbn
from milpbn.certificate.exact.local import check_local
from milpbn.certificate.verify.check import verify
from milpbn.claims.local_result import LocalResult
from milpbn.errors import InputError
from milpbn.milp.files.jkl_file import read_jkl
from milpbn.network.structure import Structure, topological_order
from milpbn.problem.candidates import Candidates
from milpbn.problem.gate import objection
from milpbn.problem.local import LocalDataset, LocalScores
from milpbn.solving.engines.registry import get_engine
from milpbn.solving.local_scores import export_local_scores, solve_local_scores
from milpbn.solving.progress import closing_block

BACKENDS = ("highs", "cbc", "scip", "cpsat", "pulp:highs", "pulp:cbc")
#: Leaves the proof to the MILP solver.
SOLVER = {"root_bound": False}


def ranked(local: LocalScores) -> list[float]:
    """Return the scores of all structures, best first."""
    sets, offsets = local.candidates.sets, local.candidates.offsets
    found = [
        math.fsum(local.scores[offsets[i] + k] for i, k in enumerate(choice))
        for choice in itertools.product(*(range(len(s)) for s in sets))
        if topological_order([s[k] for s, k in zip(sets, choice, strict=True)]) is not None
    ]
    return sorted(found, reverse=True)


@pytest.mark.parametrize(
    ("backend", "options"),
    [
        *((name, SOLVER | {"acyclicity": form}) for name in BACKENDS for form in ("order", "cluster")),
        ("branch-and-cut", {}),
        ("auto", {}),
    ],
)
def test_the_optimum_of_random_scores_is_that_of_enumeration(backend, options):
    """Every backend gets block rows: the scores favour large parent sets, so that clusters alone leave a gap."""
    try:
        get_engine("highs" if backend == "auto" else backend).version()
    except InputError as error:
        pytest.skip(str(error))
    rng = np.random.default_rng(sum(map(ord, f"{backend}{options}")))
    sets = []
    for i in range(5):
        others = [j for j in range(5) if j != i]
        every = [s for size in range(1, 4) for s in itertools.combinations(others, size)]
        sets.append(((), *(every[k] for k in sorted(rng.choice(len(every), 5, replace=False)))))
    sizes = [len(s) for own in sets for s in own]
    local = LocalScores(
        Candidates(tuple("abcde"), tuple(sets)), rng.normal(-100, 5, 30) + 5 * np.array(sizes)
    )
    found = solve_local_scores(local, backend=backend, **options)
    assert found.optimal
    assert found.objective == pytest.approx(ranked(local)[0], abs=1e-9)
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
    local = LocalScores(Candidates(("a", "b"), (((), (1,)), ((), (0,)))), np.zeros(4))
    for options, said in (
        ({"backend": "native"}, "The backend native maximises sm, sbm, cll, not local scores"),
        ({"backend": "cplex"}, "There is no backend 'cplex'"),
        ({"workers": 2}, "Several workers share the tree search of the backend native"),
        ({"gap_se": 1.0}, r"--gap-se \(gap_se\) needs data"),
        ({"parameters": "cll"}, "--parameters.* needs a class"),
    ):
        with pytest.raises(InputError, match=said):
            solve_local_scores(local, **options)


def test_all_structures_near_the_best_one_are_listed(tmp_path):
    score = milpbn.Score(name="bdeu", parent_sets="all")
    export_local_scores(random_data(1, n_features=3), score, path=tmp_path / "s.jkl")
    found = solve_local_scores(tmp_path / "s.jkl", within=3.0)
    claim = found.alternatives
    assert claim is not None
    assert claim.optimal
    assert not claim.exhausted
    assert claim.structures[0].objective == found.objective
    scores = [one.objective for one in claim.structures]
    assert scores == pytest.approx([z for z in ranked(read_jkl(tmp_path / "s.jkl")) if z >= scores[0] - 3.0])
    assert claim.bound == pytest.approx(scores[0] - 3.0, abs=1e-5)
    # Equivalent structures have the same BDeu score.
    assert claim.markov_equivalent
    for group in claim.markov_equivalent:
        assert scores[group[0] - 1] == pytest.approx(scores[group[-1] - 1], abs=1e-9)
    assert LocalResult.from_dict(found.to_dict()).alternatives == claim
    said = f"best       {len(scores)} structures within 3 nats of the best one; proved: no other structure scores"
    assert said in closing_block(found)
    fewer = solve_local_scores(tmp_path / "s.jkl", within=3.0, n_best=2).alternatives
    assert [one.objective for one in fewer.structures] == pytest.approx(scores[:2])
    with pytest.raises(InputError, match="list of the best structures comes with the backends native and"):
        solve_local_scores(tmp_path / "s.jkl", within=3.0, backend="highs")


def test_a_search_that_stops_at_a_gap_does_not_prove_that_all_ties_are_listed() -> None:
    sets = tuple(
        tuple(s for k in range(4) for s in itertools.combinations([j for j in range(4) if j != i], k))
        for i in range(4)
    )
    local = LocalScores(Candidates(("a", "b", "c", "d"), sets), np.full(32, -1.1))
    every = solve_local_scores(local, within=0).alternatives
    assert (len(every.structures), every.optimal) == (543, True)  # all acyclic structures of four variables
    few = solve_local_scores(local, within=0, gap_abs=0.5).alternatives
    assert few.bound == pytest.approx(-4.4)
    assert few.optimal == (len(few.structures) == 543)


@pytest.mark.parametrize("backend", ["branch-and-cut", *BACKENDS])
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
    best = ranked(LocalScores(local.candidates, gains))[0]
    # Every solver meets both forms of rows; which of them a number meets does not matter.
    solver = SOLVER | {"acyclicity": "order" if offset == -1e9 else "cluster"}
    how = {} if backend == "branch-and-cut" else solver
    found = solve_local_scores(local, backend=backend, threads=2, **how)
    assert found.backend.threads == 2
    assert found.optimal
    assert found.objective - 4 * offset == best == 1.75
    assert found.tolerance is not None
    assert found.bound is not None
    assert 0 <= found.bound - found.objective <= found.tolerance <= 1e-4
    again = LocalResult.from_dict(found.to_dict())
    assert (again.optimal, again.tolerance, again.bound) == (True, found.tolerance, found.bound)
    old = {key: value for key, value in found.to_dict().items() if key != "tolerance"}
    assert LocalResult.from_dict(old).optimal


#: Constraints on four variables, which exclude most structures, and some of which conflict with each other.
RULES = {
    "required": (("a", "b"),),
    "forbidden": (("c", "d"),),
    "tiers": (("a", "c"), ("d",)),
    "max_children": {"*": 1, "a": 2},
    "fixed": {"d": ("a", "c")},
    "allowed": {"d": ("a", "b")},
    "arc_weights": {("b", "c"): 7.5, ("d", "c"): -3.25},
    "ancestors": (("a", "d"),),
    "no_ancestors": (("b", "d"),),
    "independences": (("a", "c", ()),),
}


@pytest.mark.parametrize("backend", ["branch-and-cut", "highs"])
@pytest.mark.parametrize("seed", range(8))
def test_constraints_hold_and_the_best_structure_within_them_is_found(
    backend: str, seed: int, tmp_path
) -> None:
    """Structures are enumerated, and refused by the gate, which reads names and no rules of the search."""
    rng = np.random.default_rng(seed)
    others = [[j for j in range(4) if j != i] for i in range(4)]
    sets = tuple(tuple(s for k in range(4) for s in itertools.combinations(own, k)) for own in others)
    sizes = np.array([len(s) for own in sets for s in own])
    local = LocalScores(Candidates(tuple("abcd"), sets), rng.normal(-100, 5, len(sizes)) + 3 * sizes)
    keys = [key for key in RULES if rng.random() < 0.4] or ["required"]
    asked = milpbn.Constraints(**{key: RULES[key] for key in keys})
    free, weights = milpbn.Score(name="ll", parent_sets="all", max_parents=3), asked.arc_weights
    limits = dict(asked.max_children)
    every = {name: limits["*"] for name in "abcd" if "*" in limits}
    named = replace(asked, max_children=every | {k: v for k, v in limits.items() if k != "*"})
    scored = []
    for choice in itertools.product(*map(range, map(len, sets))):
        parents = tuple(own[k] for own, k in zip(sets, choice, strict=True))
        if topological_order(parents) is None:
            continue
        structure = Structure(tuple("abcd"), parents)
        if objection(structure, free, named) is None:
            arcs = [("abcd"[j], "abcd"[i]) for i, own in enumerate(parents) for j in own]
            terms = [local.scores[local.candidates.offsets[i] + k] for i, k in enumerate(choice)]
            scored.append(math.fsum([*terms, *(weights.get(arc, 0.0) for arc in arcs)]))
    proof = tmp_path / "p.npz"
    certified = backend == "branch-and-cut" and not asked.path_options
    how = {"certificate": proof} if certified else {}
    if backend == "highs":
        how = SOLVER
    if not scored:
        with suppress(InputError):  # conflicts on paths alone are found by the search
            found = solve_local_scores(local, constraints=asked, backend=backend, **how)
            assert (found.reason, found.structure) == ("infeasible", None)
        return
    found = solve_local_scores(local, constraints=asked, backend=backend, **how)
    assert found.optimal
    assert found.objective == pytest.approx(max(scored), abs=1e-9)
    assert objection(found.structure, free, named) is None
    again = LocalResult.from_dict(found.to_dict())
    assert (again.constraints, again.structure) == (found.constraints, found.structure)
    if certified:
        verify(found, proof, LocalDataset.of(local))
        check_local(found.to_dict(), proof, local)
