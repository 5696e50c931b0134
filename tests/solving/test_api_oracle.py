"""Every solver, with every formulation and score, and the native engine agree with enumeration on random problems.

``--oracle-problems 5000`` runs thousands of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from oracle import random_dataset
from running import (
    BACKENDS,
    FORMULATIONS,
    heavy_enough,
    optimum,
    oracle_tuning,
    predicate,
    random_constraints,
    run,
)

import milpbn
from milpbn.certificate.verify.check import verify
from milpbn.claims.parts import ProvedArcs
from milpbn.claims.result import is_optimal
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.prior import TOWARDS
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.scores import registry
from milpbn.problem.scores.registry import find_score
from milpbn.problem.scores.spec import Score
from milpbn.solving.engines.registry import get_engine

SCORES = tuple(registry.SCORES)
NATIVE_SCORES = registry.sums_of_samples()
TOLERANCE = 1e-6
#: Seeds of the problems for solvers and for the native engine.
CASES, NATIVE_CASES = 2116, 2012
#: So many problems, the default of `--oracle-problems`, meet every combination of score, solver and formulation twice,
#: with forms of rows, merging and reduction in turn.
ENOUGH = 7 * len(SCORES)


@dataclass(frozen=True)
class Case:
    data: Dataset
    score: Score
    constraints: Constraints
    runs: tuple[tuple[str, str], ...]


#: Of every four rounds of scores, those that a solver gets; HiGHS gets all. The first two start slowly. Every
#: combination of score, solver and formulation is met twice all the same.
ROUNDS = {"cpsat": (2,), "pulp:HiGHS": (1,), "cbc": (0, 2), "scip": (1, 3)}


def score_name(number: int) -> str:
    return SCORES[number % len(SCORES)]


def is_large(number: int) -> bool:
    """One round of scores in five has 4 features and 3 parents: for HiGHS only, the others take too long."""
    return number // len(SCORES) % 5 == 4


def runs(number: int) -> tuple[tuple[str, str], ...]:
    """Return the solvers and formulations that get a problem."""
    round_ = number // len(SCORES)
    backends = [
        name for name in BACKENDS if name == "highs" or (not is_large(number) and round_ % 4 in ROUNDS[name])
    ]
    own = get_engine("branch-and-cut").capabilities.scores
    return (
        *product(backends, FORMULATIONS),
        *([("branch-and-cut", "order")] if score_name(number) in own else []),
    )


def without_own_copy(number: int, data: Dataset, score: Score) -> tuple[Dataset, Score]:
    """The leave-one-out score of four problems in ten, where there is one, over weights of at least 1."""
    rng = np.random.default_rng([2026, number])
    if not score.kind.takes("leave_one_out") or score.penalty == "bic" or rng.random() > 0.4:
        return data, score
    smoothing = score.smoothing if score.is_margin else float(rng.choice([1.0, 0.1]))
    left_out = replace(score, leave_one_out=True, smoothing=smoothing)
    return heavy_enough(data, left_out), left_out


def varied(number: int, score: Score) -> Score:
    """The margin score of every other problem with a prior of another mean, and with other parent sets."""
    rng = np.random.default_rng([2032, number])
    if not score.is_margin:
        return score
    if rng.random() <= 0.5:
        score = replace(score, smoothing_towards=str(rng.choice(["marginal", "class"])))
    return replace(score, parent_sets=str(rng.choice(["paper", "all"]))) if rng.random() < 0.3 else score


def make_case(number: int) -> Case:
    rng = np.random.default_rng([CASES, number])
    name = score_name(number)
    large = is_large(number)
    n_features = 4 if large else int(rng.integers(1, 4))
    max_parents = 3 if large else int(rng.integers(1, 4))
    options = {"max_parents": max_parents, "class_parents": rng.random() < (0.95 if large else 0.7)}
    kind = find_score(name)
    if kind.is_margin:
        options["smoothing"] = float(rng.choice([1.0, 0.5, 0.1]))
        if kind.takes("gamma"):
            options["gamma"] = float(rng.uniform(0.1, 4.0))
        # Real terms: with penalty 0.25 and the like the best structure is rarely the empty one.
        options["penalty"] = rng.choice([0.0, 0.0, 0.25, 1.5]) if rng.random() < 0.8 else "bic"
        options["hybrid"] = float(rng.choice([0.0, 0.0, 0.1, 2.0]))
    else:
        options["parent_sets"] = str(rng.choice(["paper", "all"]))
    if kind.takes("equivalent_sample_size"):
        options["equivalent_sample_size"] = float(rng.choice([0.5, 1.0, 10.0]))
    # AICc with few samples: its domain, k < M - 1, cuts structures off.
    n_samples = int(rng.integers(10, 50)) if name == "aicc" else int(rng.integers(8, 16 if large else 24))
    data = random_dataset(
        rng, n_features, int(rng.integers(2, 4)), 2 if large else 3, n_samples, weights=rng.random() < 0.4
    )
    pairs = [(a, b) for a in data.names for b in data.names if a != b]
    chosen = rng.choice(len(pairs), size=int(rng.choice([0, 0, 2])), replace=False)
    weights = {pairs[k]: float(rng.normal(scale=2.0)) for k in chosen}
    data, score = without_own_copy(number, data, varied(number, Score(name=name, **options)))
    return Case(data, score, Constraints(arc_weights=weights), runs(number))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(metafunc.config.getoption("--oracle-problems")))


def test_solvers_agree_with_enumeration(number: int) -> None:
    case = make_case(number)
    best = optimum(case.data, case.score, case.constraints)
    if not best.structures:
        assert case.score.name == "aicc"
        with pytest.raises(InputError, match="AICc is defined for fewer than"):
            build_problem(case.data, case.score, case.constraints)
        return
    problem = build_problem(case.data, case.score, case.constraints)
    obeys = predicate(case.data.names, case.constraints)
    for k, (backend, acyclicity) in enumerate(case.runs):
        session, outcome = run(problem, backend, acyclicity, reduce=(k + number // len(SCORES)) % 2 == 1)
        where = f"{backend} with {acyclicity} and {case.score}: {outcome}"
        assert session.objective is not None, where
        assert session.structure is not None, where
        assert session.best_bound is not None, where
        assert session.objective == pytest.approx(best.objective, rel=TOLERANCE, abs=TOLERANCE), where
        assert session.best_bound >= best.objective - 1e-9 * max(1.0, abs(best.objective)), where
        assert obeys(session.structure.parents), where
        assert session.structure.parents in best.structures, where
        tolerance = session.tolerance(session.objective)
        assert is_optimal(session.objective, session.best_bound, tolerance=tolerance), where
        assert tolerance <= TOLERANCE * max(
            1.0, abs(session.objective), abs(session.objective - session.products.shared)
        )


def test_every_combination_is_met_twice() -> None:
    met = Counter(
        (score_name(number), backend, acyclicity)
        for number in range(ENOUGH)
        for backend, acyclicity in runs(number)
    )
    own = get_engine("branch-and-cut").capabilities.scores
    assert set(met) == {
        *product(SCORES, BACKENDS, FORMULATIONS),
        *((s, "branch-and-cut", "order") for s in own),
    }
    assert min(met.values()) >= 2
    large = Counter(score_name(number) for number in range(ENOUGH) if is_large(number))
    assert all(large[name] >= 1 for name in SCORES)


def test_problems_use_every_option() -> None:
    cases = [make_case(number) for number in range(ENOUGH)]
    margin = [case for case in cases if case.score.is_margin]
    rest = [case for case in cases if not case.score.is_margin]
    for name in SCORES:
        own = [case for case in cases if case.score.name == name]
        assert {case.score.max_parents for case in own} == {1, 2, 3}
        assert {case.score.class_parents for case in own} == {False, True}
        assert {case.data.n_classes for case in own} == {2, 3}
        assert any(case.data.n_features == 4 and case.score.class_parents for case in own)
        assert any((case.data.weights % 1 != 0).any() for case in own)
        assert any(case.constraints for case in own)
    assert {case.score.penalty for case in margin} >= {0.0, 0.25, 1.5, "bic"}
    assert {case.score.hybrid for case in margin} == {0.0, 0.1, 2.0}
    assert {case.score.parent_sets for case in rest} == {"paper", "all"}
    for towards in TOWARDS[1:]:
        those = [case.score for case in margin if case.score.smoothing_towards == towards]
        assert {score.name for score in those if score.max_parents > 1} == {*registry.margin_scores()}
    left_out = [case for case in cases if case.score.leave_one_out]
    assert {case.score.name for case in left_out} == {*registry.margin_scores(), "ll"}
    assert {case.score.hybrid for case in left_out} == {0.0, 0.1, 2.0}
    assert any((case.data.weights % 1 != 0).any() for case in left_out)


def test_some_problems_have_structures_that_aicc_is_not_defined_for() -> None:
    """Some problem has structures with k >= M - 1 among its candidates, and one without."""
    numbers = [n for n in range(ENOUGH) if score_name(n) == "aicc"]
    cut = 0
    for number in numbers:
        case = make_case(number)
        try:
            problem = build_problem(case.data, case.score, case.constraints)
        except InputError:
            continue
        assert problem.curve is not None
        blocks = np.split(problem.curve.parameters, problem.candidates.offsets[1:-1])
        cut += sum(b.max() for b in blocks) >= case.data.weights.sum() - 1
    assert cut >= 3


@dataclass(frozen=True)
class NativeCase:
    data: Dataset
    score: Score
    constraints: Constraints
    options: dict[str, bool | int]
    #: Whether the engine may use local search, or has to find every structure by branching.
    climbs: bool
    #: Variables up to which orders are enumerated; with 0 cycles are left to the tree.
    most_ordered: int


def make_native_case(number: int) -> NativeCase:
    """A problem for the native engine."""
    rng = np.random.default_rng([NATIVE_CASES, number])
    name = NATIVE_SCORES[number % len(NATIVE_SCORES)]
    n_features = int(rng.choice([1, 2, 3, 3, 3, 4]))
    large = n_features == 4
    data = random_dataset(
        rng,
        n_features,
        int(rng.integers(2, 4)),
        2 if large else 3,
        int(rng.integers(8, 16 if large else 24)),
        weights=rng.random() < 0.4,
    )
    options = {} if name == "cll" else {"gamma": float(rng.uniform(0.1, 4.0))}
    score = Score(
        name=name,
        max_parents=int(rng.integers(1, 4)),
        class_parents=bool(rng.random() < 0.7),
        smoothing=float(rng.choice([1.0, 0.5, 0.1])),
        penalty=rng.choice([0.0, 0.0, 0.25, 1.5]) if rng.random() < 0.8 else "bic",
        hybrid=float(rng.choice([0.0, 0.0, 0.1, 2.0])),
        **options,
    )
    data, score = without_own_copy(number + 7, data, varied(number + 7, score))
    constraints = Constraints()
    if n_features == 3 and rng.random() < 0.7:
        constraints = random_constraints(rng, data.names)
    switches = {key: bool(rng.random() < 0.7) for key in ("merge", "reduce")}
    threads = int(rng.integers(1, 3))
    climbs = bool(rng.random() < 0.5)
    # With four features, and three parents of everything, a tree without orders has 100,000 nodes.
    most_ordered = 14 if large else int(rng.choice([0, 14]))
    return NativeCase(data, score, constraints, {**switches, "threads": threads}, climbs, most_ordered)


def test_the_native_engine_agrees_with_enumeration(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make_native_case(number)
    best = optimum(case.data, case.score, case.constraints)
    problem = {"data": case.data, "score": case.score, "constraints": case.constraints}
    if not best.structures:
        with pytest.raises(InputError, match=r"exclude each other|obeys this constraint"):
            milpbn.solve(**problem, backend="native")
        return
    if not case.climbs:
        for place in (
            "solving.enlarging.search",
            "engine.tree.primal.PrimalHeuristic.climb_from_answer",
            "engine.tree.primal.PrimalHeuristic.climb_near_incumbent",
        ):
            monkeypatch.setattr(f"milpbn.{place}", lambda *_, **__: None)
    monkeypatch.setattr(
        "milpbn.engine.relaxation.oracle.TUNING", oracle_tuning(most_ordered=case.most_ordered)
    )
    monkeypatch.setattr("milpbn.certificate.verify.space.MOST_ORDERED", case.most_ordered)
    proof = tmp_path / "proof.npz"
    result = milpbn.solve(**problem, backend="native", verbose=False, certificate=proof, **case.options)
    assert result.reason == "optimal"
    assert result.bound_source == "certified"
    assert result.objective == pytest.approx(best.objective, rel=TOLERANCE, abs=TOLERANCE)
    assert result.bound >= best.objective - 1e-12 * max(1.0, abs(best.objective))
    assert is_optimal(result.objective, result.bound)
    assert predicate(case.data.names, case.constraints)(result.structure.parents)
    names = case.data.names
    proved = result.proved or ProvedArcs()  # None: the trivial bound was enough
    for arcs, inside in ((proved.inside, True), (proved.outside, False)):
        for a, b in arcs:
            parents = [structure[names.index(b)] for structure in best.structures]
            assert all((names.index(a) in p) == inside for p in parents), (a, b, inside)
    assert verify(result, proof, case.data).bound >= best.objective - 1e-9 * max(1.0, abs(best.objective))
    if number % 5 == 0:  # of every score one in five, as `NATIVE_SCORES` are three
        session, _ = run(build_problem(**problem), "highs", FORMULATIONS[number % 2])
        assert session.objective == pytest.approx(result.objective, rel=TOLERANCE, abs=TOLERANCE)
        assert session.best_bound == pytest.approx(result.bound, rel=TOLERANCE, abs=TOLERANCE)


def test_the_best_structures_agree_with_enumeration(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if number % 4:
        pytest.skip("one in four, since each takes two checks of a certificate")
    case = make_native_case(number)
    asked = int(np.random.default_rng([2027, number]).choice([2, 3, 10, 40]))
    # A list has all parent sets that differ in score, unless those of the paper are asked for.
    paper = case.score.parent_sets == "paper"
    listed = case.score if paper else replace(case.score, parent_sets="all")
    best = optimum(case.data, listed, case.constraints, most=asked + 1)
    if not best.structures:
        pytest.skip("no structure obeys the constraints")
    if not case.climbs:
        monkeypatch.setattr("milpbn.engine.pool.best_neighbours", lambda *_, **__: ())
        monkeypatch.setattr("milpbn.solving.enlarging.search", lambda *_, **__: None)
    monkeypatch.setattr(
        "milpbn.engine.relaxation.oracle.TUNING", oracle_tuning(most_ordered=case.most_ordered)
    )
    monkeypatch.setattr("milpbn.certificate.verify.space.MOST_ORDERED", case.most_ordered)
    proof = tmp_path / "proof.npz"
    problem = {"data": case.data, "score": case.score, "constraints": case.constraints}
    result = milpbn.solve(
        **problem, backend="native", verbose=False, certificate=proof, n_best=asked, **case.options
    )
    assert result.optimal
    claim = result.alternatives
    assert claim is not None
    assert claim.optimal
    expected = [value for value, _ in best.ranked]
    scores = [one.objective for one in claim.structures]
    assert scores == pytest.approx(expected[:asked], rel=TOLERANCE, abs=TOLERANCE)
    assert claim.exhausted == (len(expected) < asked)
    if claim.bound is not None:
        assert claim.bound >= scores[-1]
        assert claim.bound >= max(expected[asked:], default=-np.inf) - 1e-9 * max(1.0, abs(scores[-1]))
    assert len({one.structure.parents for one in claim.structures}) == len(scores)
    shown = verify(result, proof, case.data)
    assert shown.listed == len(scores)
    assert (shown.others == -np.inf) == claim.exhausted


def test_native_problems_use_every_option() -> None:
    cases = [make_native_case(number) for number in range(ENOUGH)]
    for name in NATIVE_SCORES:
        own = [case for case in cases if case.score.name == name]
        assert {case.score.max_parents for case in own} == {1, 2, 3}
        assert {case.score.class_parents for case in own} == {False, True}
        assert {case.data.n_classes for case in own} == {2, 3}
        assert any((case.data.weights % 1 != 0).any() for case in own)
        for key in ("merge", "reduce"):
            assert {case.options[key] for case in own} == {False, True}
        left_out = [case for case in own if case.score.leave_one_out]
        means = {case.score.smoothing_towards for case in own if case.score.max_parents > 1}
        assert means == {*TOWARDS}
        assert {case.score.max_parents for case in left_out} == {1, 2, 3}
        assert {case.score.class_parents for case in left_out} == {False, True}
        assert {(case.climbs, case.options["threads"]) for case in own} == set(product((False, True), (1, 2)))
        assert {case.most_ordered for case in own if case.score.max_parents == 3} == {0, 14}
        kinds = {
            key
            for case in own
            if optimum(case.data, case.score, case.constraints).structures
            for key, value in vars(case.constraints).items()
            if value
        }
        # Rules on paths have problems of their own, in test_api_paths.
        assert kinds == {*vars(Constraints())} - {"ancestors", "no_ancestors", "independences"}
