"""Properties of every problem: invariances, any-time claims, and switches that change no optimum."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import BACKENDS, FORMULATIONS, check_trace, optimum, random_data, run

import milpbn
from milpbn.claims.result import is_optimal
from milpbn.data.dataset import Dataset
from milpbn.network.structure import Structure
from milpbn.problem.problem import build_problem
from milpbn.problem.rescore import rescore
from milpbn.problem.scores import registry
from milpbn.problem.scores.registry import find_score, margin_scores
from milpbn.problem.scores.spec import Score

SCORES = tuple(registry.SCORES)

data_sets = st.builds(
    random_data,
    st.integers(0, 10**6),
    n_features=st.integers(1, 4),
    n_classes=st.integers(2, 4),
    n_samples=st.integers(6, 30),
    weights=st.booleans(),
)


@st.composite
def scores(draw: st.DrawFn, names: tuple[str, ...] = SCORES, max_parents: int = 3) -> Score:
    name = draw(st.sampled_from(names))
    options = {"max_parents": draw(st.integers(1, max_parents)), "class_parents": draw(st.booleans())}
    if name in margin_scores():
        options["smoothing"] = draw(st.sampled_from([0.1, 1.0, 2.5]))
        options["penalty"] = draw(st.sampled_from([0.0, 0.5, "bic", "aic"]))
        options["hybrid"] = draw(st.sampled_from([0.0, 0.3]))
    if find_score(name).takes("gamma"):
        options["gamma"] = draw(st.floats(0.05, 6.0))
    return Score(name=name, **options)


def small_data(seed: list[int], name: str, backend: str = "highs") -> Dataset:
    """Data that every solver finishes in seconds; tangents take more rounds than margins, CP-SAT its time."""
    n_features, n_samples = (3, 18) if name == "cll" or backend == "cpsat" else (4, 55)
    return random_data(seed, n_features=n_features, n_samples=n_samples)


def scores_for(backend: str, *names: str, turn: int | None = None) -> list[tuple[int, str]]:
    """Number scores. HiGHS meets all; others are slower and meet some, and those in child processes the fewest.

    With a turn, the others meet one of theirs, so that they meet all in three turns.
    """
    met = {"highs": range(len(names)), "cpsat": (0,), "pulp:HiGHS": (3,)}.get(backend, (0, 3, 4))
    if turn is not None and backend != "highs":
        met = (met[turn % len(met)],)
    return [item for item in enumerate(names) if item[0] in met]


def optimal(data: Dataset, score: Score, backend: str = "highs") -> float:
    session, _ = run(build_problem(data, score), backend)
    assert is_optimal(session.objective, session.best_bound, tolerance=session.tolerance(session.objective))
    return session.objective


def random_structure(data: Dataset, rng: np.random.Generator, max_parents: int = 3) -> Structure:
    order = rng.permutation(data.n_variables).tolist()
    parents: list[tuple[int, ...]] = [()] * data.n_variables
    for position, i in enumerate(order):
        size = int(rng.integers(0, min(max_parents, position) + 1))
        parents[i] = tuple(rng.choice(order[:position], size=size, replace=False).tolist()) if size else ()
    return Structure(data.names, tuple(parents))


def relabelled(data: Dataset, rng: np.random.Generator) -> Dataset:
    """Permute the codes of every variable's states."""
    codes, variables = data.codes.copy(), []
    for i, variable in enumerate(data.variables):
        order = rng.permutation(variable.n_states)
        codes[:, i] = order[data.codes[:, i]]
        back = np.argsort(order)
        variables.append(replace(variable, states=tuple(variable.states[j] for j in back)))
    return replace(data, codes=codes, variables=tuple(variables))


def reordered(data: Dataset, rng: np.random.Generator) -> Dataset:
    """Permute the features."""
    order = [*rng.permutation(data.n_features).tolist(), data.n_features]
    return replace(data, codes=data.codes[:, order], variables=tuple(data.variables[i] for i in order))


def by_names(structure: Structure, names: tuple[str, ...]) -> Structure:
    return Structure.from_mapping(names, structure.to_mapping())


@settings(max_examples=40, deadline=None)
@given(data_sets, scores(), st.integers(0, 10**6))
def test_scores_do_not_depend_on_order_or_labels(data: Dataset, score: Score, seed: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_structure(data, rng)
    expected = rescore(data, structure, score)
    shuffled = data.take(rng.permutation(data.n_samples))
    assert rescore(shuffled, structure, score) == pytest.approx(expected, rel=1e-11, abs=1e-9)
    assert rescore(relabelled(data, rng), structure, score) == pytest.approx(expected, rel=1e-11, abs=1e-9)
    moved = reordered(data, rng)
    assert rescore(moved, by_names(structure, moved.names), score) == pytest.approx(
        expected, rel=1e-11, abs=1e-9
    )


@settings(max_examples=40, deadline=None)
@given(data_sets, scores(), st.integers(0, 10**6))
def test_scores_count_weights_as_copies(data: Dataset, score: Score, seed: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_structure(data, rng)
    copies = rng.integers(1, 4, data.n_samples)
    data = replace(data, weights=np.ones(data.n_samples))
    weighted = replace(data, weights=copies.astype(np.float64))
    copied = data.take(np.repeat(np.arange(data.n_samples), copies))
    values = [rescore(d, structure, score) for d in (weighted, copied, copied.merged, weighted.merged)]
    assert values == pytest.approx([values[0]] * 4, rel=1e-11, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(data_sets, scores(), st.integers(0, 10**6))
def test_rescore_agrees_with_the_oracle(data: Dataset, score: Score, seed: int) -> None:
    structure = random_structure(data, np.random.default_rng(seed))
    total = float(data.weights.sum())
    _, penalty = score.kind.local_weights(total) if score.is_margin else (0.0, 0.0)
    expected = oracle.score_structure(
        data,
        structure.parents,
        score.name,
        gamma=score.gamma,
        smoothing=score.smoothing,
        ess=score.equivalent_sample_size,
        penalty=penalty,
        hybrid=score.hybrid,
    )
    assert rescore(data, structure, score) == pytest.approx(expected, rel=1e-11, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(data_sets, scores(), st.integers(0, 10**6))
def test_coefficients_agree_with_rescoring(data: Dataset, score: Score, seed: int) -> None:
    """The score as a function of eta is the score of the structure, whatever the merging."""
    rng = np.random.default_rng(seed)
    score = score if score.name != "aicc" else replace(score, name="aic")
    structure = random_structure(data, rng, score.max_parents)
    if not score.class_parents:
        structure = Structure(structure.names, (*structure.parents[:-1], ()))
    for merge in (True, False):
        problem = build_problem(data, score, merge=merge)
        choice = problem.choice(structure)
        if choice is None:
            inside = problem.candidates
            fallback = [
                s if inside.position(i, s) is not None else () for i, s in enumerate(structure.parents)
            ]
            structure = Structure(structure.names, tuple(fallback))
            choice = problem.choice(structure)
        chosen = problem.candidates.structure(choice)
        value = problem.value(problem.indicator(choice))
        assert value == pytest.approx(rescore(data, chosen, score), rel=1e-10, abs=1e-9)
        if score.is_margin and not score.kind.has_local_terms:
            assert value == pytest.approx(rescore(data, structure, score), rel=1e-10, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(data_sets, st.floats(0.05, 6.0), st.floats(0.05, 3.0), st.integers(0, 10**6))
def test_sm_equals_sbm_for_two_classes(data: Dataset, gamma: float, smoothing: float, seed: int) -> None:
    last = replace(data.variables[-1], states=("a", "b"))
    codes = data.codes.copy()
    codes[:, -1] %= 2
    data = replace(data, codes=codes, variables=(*data.variables[:-1], last))
    sm, sbm = (Score(name=name, gamma=gamma, smoothing=smoothing) for name in ("sm", "sbm"))
    structure = random_structure(data, np.random.default_rng(seed))
    assert rescore(data, structure, sm) == pytest.approx(rescore(data, structure, sbm), rel=1e-11, abs=1e-9)
    first, second = build_problem(data, sm).margins, build_problem(data, sbm).margins
    np.testing.assert_allclose(first.alpha, second.alpha, atol=1e-12)
    np.testing.assert_array_equal(first.columns, second.columns)


@pytest.mark.parametrize("class_parents", [False, True])
def test_sm_and_sbm_have_the_same_optimum_for_two_classes(class_parents: bool) -> None:
    for seed in range(3):
        data = random_data(seed, n_classes=2, n_samples=25)
        options = {"gamma": 1.7, "smoothing": 0.3, "class_parents": class_parents}
        sm, sbm = (optimal(data, Score(name=name, **options)) for name in ("sm", "sbm"))
        assert sm == pytest.approx(sbm, abs=1e-9)


@pytest.mark.parametrize("seed", range(len(SCORES)))
def test_optima_do_not_depend_on_order_labels_or_merging(seed: int) -> None:
    rng = np.random.default_rng([21, seed])
    name = SCORES[seed]
    data = random_data([22, seed], n_samples={"aicc": 40, "cll": 12}.get(name, 20))
    score = Score(name=name, max_parents=2 + seed % 2)
    copies = rng.integers(1, 3, data.n_samples)
    copied = data.take(np.repeat(np.arange(data.n_samples), copies))
    expected = optimal(data, score)
    for other in (data.take(rng.permutation(data.n_samples)), relabelled(data, rng), reordered(data, rng)):
        assert optimal(other, score) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    heavy = replace(data, weights=copies.astype(np.float64))
    values = [optimal(heavy, score), optimal(copied, score), optimal(copied.merged, score)]
    session, _ = run(build_problem(copied, score, merge=False), "highs")
    assert [*values, session.objective] == pytest.approx([values[0]] * 4, rel=1e-9, abs=1e-9)


#: Everything off or in its reference form, then one switch after the other, then all.
SWITCHES = {
    "none": {},
    "merge": {"merge": True},
    "warm start": {"warm_start": True},
    "cluster": {"acyclicity": "cluster"},
    "root bound": {"root_bound": True},
    "reduce": {"root_bound": True, "reduce": True},
    "all": {"merge": True, "warm_start": True, "acyclicity": "cluster", "root_bound": True, "reduce": True},
}
NO_SWITCH = {"merge": False, "warm_start": False, "root_bound": False, "reduce": False, "acyclicity": "order"}


@pytest.mark.parametrize(
    ("backend", "switch"),
    [
        # All solvers get the same problem from the project; so HiGHS meets every switch, and the others three.
        pytest.param(
            b, s, marks=pytest.mark.slow if b != "highs" and s not in ("none", "cluster", "all") else ()
        )
        for b in BACKENDS
        for s in SWITCHES
    ],
)
def test_switches_leave_the_optimum_unchanged(backend: str, switch: str) -> None:
    turn = list(SWITCHES).index(switch)
    met = scores_for(backend, "sm", "sbm", "hard-margin", "aicc", "cll", turn=turn)
    if switch not in ("none", "all"):  # each of the others meets two scores, and each score two of them
        met = [one for one in met if backend != "highs" or (one[0] - turn) % 5 in (0, 2)]
    for seed, name in met:
        data = small_data([23, seed], name, backend)
        score = Score(name=name, max_parents=2)
        best = optimum(data, score)
        result = milpbn.solve(data, score, backend=backend, threads=1, **(NO_SWITCH | SWITCHES[switch]))
        assert result.optimal
        assert result.objective == pytest.approx(best.objective, rel=1e-6)
        assert result.bound >= best.objective - 1e-9 * max(1.0, abs(best.objective))
        assert result.structure.parents in best.structures


def test_all_combinations_of_switches_leave_the_optimum_unchanged() -> None:
    data = random_data(27, n_samples=25)
    score = Score(p=0.95)
    best = optimum(data, score)
    for number, values in enumerate(product((False, True), repeat=4)):
        switches = dict(zip(("merge", "warm_start", "root_bound", "reduce"), values, strict=True))
        acyclicity = FORMULATIONS[
            (number + sum(values)) % 2
        ]  # each value of each switch meets both forms of rows
        result = milpbn.solve(data, score, backend="highs", acyclicity=acyclicity, **switches)
        assert result.optimal
        assert result.structure.parents in best.structures


def test_class_parents_matter_only_if_an_optimum_needs_them() -> None:
    needed = []
    for seed in range(12):
        data = random_data([24, seed], n_classes=2 + seed % 2, n_samples=18)
        with_parents = Score(name=("sm", "sbm", "hard-margin", "mdl")[seed % 4])
        best = optimum(data, with_parents)
        needed.append(all(structure[-1] for structure in best.structures))
        value = optimal(data, with_parents)
        restricted = optimal(data, replace(with_parents, class_parents=False))
        assert restricted <= value + 1e-9
        assert (restricted < value - 1e-6) == needed[-1]
    assert set(needed) == {False, True}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("acyclicity", FORMULATIONS)
def test_the_trace_is_monotone(backend: str, acyclicity: str) -> None:
    met = scores_for(backend, "sm", "sbm", "hard-margin", "bdeu", "cll")
    for seed, name in met:
        data = small_data([25, seed], name, backend)
        score = Score(name=name)
        best = optimum(data, score).objective
        # A score with order rows runs ahead where it does not with cluster rows.
        both = (False, True) if len(met) == 1 else ((seed + (acyclicity == "order")) % 2 == 0,)
        for ahead in both:
            result = milpbn.solve(
                data,
                score,
                backend=backend,
                acyclicity=acyclicity,
                warm_start=ahead,
                root_bound=ahead,
                threads=1,
            )
            check_trace(result, best)


def test_starts_leave_the_optimum_unchanged() -> None:
    data = random_data(31, n_features=4, n_samples=60)
    score = Score(p=0.95, max_parents=3)
    best = optimum(data, score)
    rng = np.random.default_rng(5)
    problem = build_problem(data, score)
    for _ in range(4):
        start = random_structure(data, rng, 2)
        if not problem.obeys(start):
            continue
        for acyclicity in FORMULATIONS:
            session, _ = run(
                problem, "highs", acyclicity, start=problem.candidates.structure(problem.choice(start))
            )
            assert session.objective == pytest.approx(best.objective, rel=1e-6)
    result = milpbn.solve(
        data, score, backend="highs", start=Structure.naive_bayes(data.names), warm_start=False
    )
    assert result.objective == pytest.approx(best.objective, rel=1e-6)


def test_seeds_and_threads_leave_the_optimum_unchanged() -> None:
    data = random_data(32, n_features=4, n_samples=60)
    score = Score(name="sbm", p=0.9, max_parents=3)
    best = optimum(data, score)
    for seed, threads in ((0, 1), (1, 2), (2, 1)):
        result = milpbn.solve(data, score, backend="highs", random_state=seed, threads=threads)
        assert result.optimal
        assert result.structure.parents in best.structures


def test_gap_limits_end_feasible() -> None:
    data = random_data(33, n_features=4, n_samples=60, n_classes=3)
    score = Score(p=0.99, max_parents=3)
    best = optimum(data, score).objective
    for backend, options in product(
        ("highs", "native"), ({"gap_rel": 0.9}, {"gap_abs": 1e6}, {"gap_se": 20.0})
    ):
        result = milpbn.solve(data, score, backend=backend, **options)
        assert result.bound >= best - 1e-9
        limit = "gap" if "gap_se" not in options else "gap-se"
        assert (result.reason, result.limit) == ("feasible", limit)
        assert "gap_se" not in options or result.gap_se <= 20.0
        assert result.gap.absolute > 1e-6
