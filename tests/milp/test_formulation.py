"""The MILP (19) of Peharz & Pernkopf (2012, P12): its points are the structures, and its objective is the score."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import oracle
import pytest
import scipy.optimize as opt
from running import optimum, random_data

from milpbn.errors import InputError, SolverError
from milpbn.milp.formulation import Formulation, formulate
from milpbn.network.structure import Structure, topological_order
from milpbn.problem.candidates import build_candidates
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import Problem, build_problem
from milpbn.problem.rescore import rescore
from milpbn.problem.rows import cluster_block, cluster_parent_sets
from milpbn.problem.scores.registry import SCORES
from milpbn.problem.scores.spec import Score


def choices(problem: Problem):
    """Yield all choices of one candidate set per variable, including cyclic ones."""
    candidates = problem.candidates
    blocks = [range(a, b) for a, b in pairwise(candidates.offsets.tolist())]
    for choice in product(*blocks):
        yield np.array(choice), [candidates.flat[p] for p in choice]


def best_completion(formulation: Formulation, choice: np.ndarray) -> float | None:
    """Fix eta and maximise over the other columns by an LP; None if no point has this eta."""
    milp = formulation.milp
    lower, upper = milp.lower.copy(), milp.upper.copy()
    eta = formulation.problem.indicator(choice)
    lower[: formulation.n_sets] = upper[: formulation.n_sets] = eta
    result = opt.milp(
        -milp.c,
        constraints=opt.LinearConstraint(milp.A, milp.row_lower, milp.row_upper),
        bounds=opt.Bounds(lower, upper),
    )
    if result.status == 2:
        return None
    assert result.status == 0, result.message
    return milp.objective(result.x)


@pytest.mark.parametrize("name", SCORES)
def test_structures_are_points_with_their_scores(name: str) -> None:
    data = random_data(51, n_samples=40, weights=True)
    score = Score(name=name, max_parents=2, **({"penalty": "bic", "hybrid": 0.2} if name == "sbm" else {}))
    problem = build_problem(data, score, Constraints(arc_weights={("C", "X1"): 1.5}))
    formulations = [formulate(problem, acyclicity) for acyclicity in ("order", "cluster")]
    structures = oracle.acyclic_structures(tuple(problem.candidates.sets))
    for structure in structures[::3]:
        s = Structure(data.names, structure)
        expected = rescore(data, s, score, problem.rules)
        for formulation in formulations:
            x = formulation.vector(s)
            assert formulation.milp.violation(x) < 1e-9
            assert formulation.milp.objective(x) == pytest.approx(expected, rel=1e-10, abs=1e-9)
            assert formulation.structure(x) == s
    assert len(structures) > 100


@pytest.mark.parametrize(
    ("score", "n_features"),
    [
        *((Score(name=name), 2) for name in ("sm", "sbm", "hard-margin", "aicc", "mdl")),
        (Score(name="ll"), 3),
        (Score(name="ll", parent_sets="all"), 2),
    ],
    ids=str,
)
def test_points_with_a_given_eta_are_worth_the_score(score: Score, n_features: int) -> None:
    """P12, Proposition 1; and no choice of tau, k, t and order variables gives a structure more than its score."""
    data = random_data(52, n_features=n_features, n_samples=40)
    problem = build_problem(data, score)
    formulation = formulate(problem)
    cyclic = 0
    for choice, parents in choices(problem):
        value = best_completion(formulation, choice)
        if topological_order(parents) is None:
            cyclic += 1
            assert value is None
        else:
            assert value == pytest.approx(problem.value(problem.indicator(choice)), abs=1e-7)
    assert cyclic > 0


@pytest.mark.parametrize("n_features", [1, 2, 4, 7])
def test_numbers_of_rows_and_columns_are_those_of_the_formula(n_features: int) -> None:
    data = random_data(54, n_features=n_features, n_samples=30)
    V = n_features + 1
    problem = build_problem(data, Score())
    M, R, _ = problem.margins.alpha.shape
    P = problem.candidates.n_sets
    order, cluster = formulate(problem), formulate(problem, "cluster")
    names = order.milp.row_names
    assert sum(name.startswith("a_") for name in names) == V * V - V
    assert sum(name.startswith("s_") for name in names) == V
    assert sum(name.startswith("m_") for name in names) == M * R
    assert order.milp.n_rows == M * R + V + V * V - V
    assert order.milp.n_columns == P + M + V
    assert cluster.milp.n_columns == P + M
    assert (
        cluster.milp.n_rows == M * R + V + V * (V - 1) // 2
    )  # every two variables can be each other's parents
    generative = formulate(build_problem(data, Score(name="mdl")))
    assert (generative.milp.n_rows, generative.milp.n_columns) == (V * V, P + V)
    hard = formulate(build_problem(data, Score(name="hard-margin")))
    assert hard.milp.n_columns == P + 1 + V


@pytest.mark.parametrize("name", ["sm", "hard-margin", "cll", "aicc"])
@pytest.mark.parametrize("acyclicity", ["order", "cluster"])
def test_the_program_has_the_form_of_equation_19(name: str, acyclicity: str) -> None:
    data = random_data(55, n_samples=40)
    problem = build_problem(data, Score(name=name), Constraints(max_children={"X1": 1}))
    formulation = formulate(problem, acyclicity)
    milp = formulation.milp
    P = formulation.n_sets
    assert milp.integer[:P].all()
    assert not milp.integer[P:].any()
    assert (milp.lower[:P] == 0).all()
    assert (milp.upper[:P] == 1).all()
    assert milp.A.has_sorted_indices
    assert milp.A.indices.dtype == np.int32
    assert (milp.A.data != 0).all()
    assert len(set(milp.column_names)) == milp.n_columns == milp.A.shape[1]
    assert len(set(milp.row_names)) == milp.n_rows == len(milp.row_lower) == len(milp.row_upper)
    assert (milp.row_lower <= milp.row_upper).all()
    kinds = {"tau": formulation.tau, "o_": formulation.order}
    for prefix, place in kinds.items():
        assert all(n.startswith(prefix) for n in milp.column_names[place])
    assert milp.column_names[formulation.curve] == (["k", "t"] if name == "aicc" else [])
    if name == "sm":
        assert (milp.upper[formulation.tau] == problem.score.gamma).all()
    if name == "cll":
        assert (milp.upper[formulation.tau] == 0).all()
    if name in ("sm", "cll"):
        np.testing.assert_array_equal(milp.c[formulation.tau], problem.margins.weights)


def test_child_limits_are_rows() -> None:
    data = random_data(56)
    limits = {"X1": 1, "C": 2}
    problem = build_problem(data, Score(), Constraints(max_children=limits))
    formulation = formulate(problem)
    unlimited = formulate(build_problem(data, Score()))
    cut = 0
    for structure in oracle.acyclic_structures(tuple(problem.candidates.sets)):
        s = Structure(data.names, structure)
        within = all(sum(data.names.index(j) in p for p in structure) <= n for j, n in limits.items())
        assert (formulation.milp.violation(formulation.vector(s)) < 1e-9) == within
        assert unlimited.milp.violation(unlimited.vector(s)) < 1e-9
        cut += not within
    assert cut > 0


def test_chords_of_the_aicc_curve_are_exact_at_integers() -> None:
    data = random_data(57, n_samples=30, weights=True)
    problem = build_problem(data, Score(name="aicc", max_parents=3))
    milp, curve = formulate(problem).milp, problem.curve
    low, high = curve.range(problem.candidates.offsets)
    place = [milp.column_names.index(n) for n in ("k", "t")]
    rows = [r for r, n in enumerate(milp.row_names) if n.startswith("t_")]
    assert len(rows) == high - low
    A = milp.A.toarray()[np.ix_(rows, place)]
    for k in np.arange(low, high + 0.25, 0.25):
        # t >= (row_lower - A_k k) / A_t, the largest of the chords
        least = ((milp.row_lower[rows] - A[:, 0] * k) / A[:, 1]).max()
        if k == round(k):
            assert least == pytest.approx(curve.correction(k), rel=1e-12)
        else:
            assert least >= curve.correction(k)
    assert (milp.lower[place[0]], milp.upper[place[0]]) == (low, high)


def test_aicc_leaves_out_what_it_is_not_defined_for() -> None:
    """Structures with k >= M - 1 consist of candidate sets, but they are not points of the MILP."""
    data = random_data(58, n_samples=30)
    problem = build_problem(data, Score(name="aicc"))
    formulation = formulate(problem)
    met = {True: 0, False: 0}
    for structure in oracle.acyclic_structures(tuple(problem.candidates.sets))[::7]:
        s = Structure(data.names, structure)
        choice = problem.choice(s)
        defined = bool(problem.curve.parameters[choice].sum() < 29)
        assert (best_completion(formulation, choice) is not None) == defined
        assert np.isfinite(rescore(data, s, problem.score)) == defined
        met[defined] += 1
    assert min(met.values()) >= 5


def test_a_single_structure_needs_no_chords() -> None:
    """With a single structure the curve has no chords, and its value is the score."""
    data = random_data(59, n_samples=30)
    fixed = Constraints(fixed={"X1": ("C",), "X2": (), "X3": (), "C": ()})
    problem = build_problem(data, Score(name="aicc"), fixed)
    formulation = formulate(problem)
    structure = Structure(data.names, ((3,), (), (), ()))
    assert formulation.milp.violation(formulation.vector(structure)) < 1e-9
    value = best_completion(formulation, problem.choice(structure))
    assert value == pytest.approx(optimum(data, problem.score, fixed).objective)


def test_vectors_outside_the_candidates_are_refused() -> None:
    data = random_data(60)
    formulation = formulate(build_problem(data, Score(max_parents=1)))
    with pytest.raises(InputError, match="outside the candidate parent sets"):
        formulation.vector(Structure(data.names, ((1, 3), (), (), ())))
    with pytest.raises(InputError, match="no acyclicity 'lazy'"):
        formulate(formulation.problem, "lazy")


def test_points_that_choose_no_set_are_refused() -> None:
    data = random_data(61)
    formulation = formulate(build_problem(data, Score()), "cluster")
    x = formulation.vector(Structure.naive_bayes(data.names))
    nearly = x + np.where(formulation.milp.integer, 1e-5, 0.0)
    np.testing.assert_array_equal(formulation.choice(nearly), formulation.choice(x))
    x[: formulation.n_sets] = 0.5
    with pytest.raises(SolverError, match="one parent set per variable"):
        formulation.choice(x)


def test_cyclic_points_have_no_structure() -> None:
    data = random_data(62)
    formulation = formulate(build_problem(data, Score()), "cluster")
    candidates = formulation.problem.candidates
    x = np.zeros(formulation.milp.n_columns)
    for i, s in enumerate([(1, 3), (0, 3), (), ()]):
        x[candidates.position(i, s)] = 1
    assert formulation.structure(x) is None


def test_cluster_rows_are_appended() -> None:
    data = random_data(63, n_features=4)
    formulation = formulate(build_problem(data, Score()), "cluster")
    cluster = frozenset({0, 1, 4})
    more = formulation.with_clusters([cluster])
    assert more.milp.n_rows == formulation.milp.n_rows + 1
    row = more.milp.A.toarray()[-1]
    entries = cluster_parent_sets(formulation.problem.candidates, cluster)
    assert set(np.flatnonzero(row)) == set(entries)
    assert set(row[entries]) == {1.0}
    assert (more.milp.row_lower[-1], more.milp.row_upper[-1]) == (1.0, np.inf)
    assert formulation.with_clusters([]) is formulation
    flat, variable = formulation.problem.candidates.flat, formulation.problem.candidates.variable
    assert all(variable[p] in cluster and cluster.isdisjoint(flat[p]) for p in entries)


def test_names_of_large_clusters_stay_short_and_different() -> None:
    candidates = build_candidates([f"v{i}" for i in range(60)], Score(max_parents=1))
    names = [cluster_block(candidates, frozenset(range(k, k + 50))).names[0] for k in range(5)]
    assert len(set(names)) == 5
    assert all(len(n) <= 80 for n in names)
