"""Bounds, objectives and claims against scores with 60 digits, with weights of very different size in one table."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from campaign.case import case_of
from campaign.exact import Scores
from campaign.space import Graph
from mpmath import mp, mpf
from oracle import acyclic_structures, random_dataset

from milpbn import Constraints, Score, solve
from milpbn.certificate.format import load_proof, save_certificate
from milpbn.certificate.verify.check import verify
from milpbn.claims.gap import Gap
from milpbn.data.dataset import Dataset, Variable
from milpbn.data.sums import exact_sums, log_share, sums_of_others
from milpbn.engine.events import EventLog
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.bounds import trivial_bound
from milpbn.problem.problem import build_problem
from milpbn.problem.rescore import rescored
from milpbn.problem.scores.base import Shape
from milpbn.solvers.base import Settings
from milpbn.solving.engines.base import Start
from milpbn.solving.engines.branch_and_cut import BranchAndCutEngine

mp.dps = 60
NATIVE = {"backend": "native", "threads": 1, "verbose": False}


def problem(seed: int) -> tuple[Dataset, Score, Constraints]:
    """Return a random tiny problem of mixed weights and options, some of many rows, states or classes."""
    rng = np.random.default_rng([91, seed])
    kind = ("small", "small", "states", "classes", "rows", "singles")[seed % 6]
    n_features, n_classes, n_samples = (
        int(rng.integers(1, 4)),
        int(rng.integers(2, 5)),
        int(rng.integers(5, 13)),
    )
    states = 3
    if kind == "states":
        n_features, n_classes, n_samples, states = 2, 2, 310, 300
    if kind == "classes":
        n_features, n_classes, n_samples = 2, 40, 50
    data = random_dataset(rng, n_features, n_classes, states, n_samples)
    codes, M = data.codes.copy(), data.n_samples
    if kind == "singles":  # one sample of every class
        codes = codes[:n_classes]
        codes[:, -1] = np.arange(n_classes)
        codes, M = codes[rng.integers(0, n_classes, 6)], 6
        codes[:n_classes, -1] = np.arange(n_classes)
    weights = [
        10.0 ** rng.uniform(-9, 9, M),
        rng.choice([10.0 ** rng.uniform(0, 9), 10.0 ** rng.uniform(-9, 0)], M),
        np.full(M, 0.134),
    ][int(rng.integers(3))]
    if kind == "rows":
        pick = np.concatenate([np.arange(M), rng.integers(0, M, 20_000)])
        codes, weights = codes[pick], weights[pick]
    name = str(rng.choice(["sm", "sbm", "cll"]))
    options: dict = {"max_parents": 2 if kind in ("states", "classes") else int(rng.integers(1, 4))}
    if name != "cll":
        options["gamma"] = float(10 ** rng.uniform(-3, 2))
    if rng.random() < 0.6:
        options["smoothing"] = float(10 ** rng.uniform(-6, 6))
    if rng.random() < 0.5:
        options["hybrid"] = float(10 ** rng.uniform(-3, 4))
    if rng.random() < 0.3:
        options["penalty"] = float(10 ** rng.uniform(-3, 3))
    rules = Constraints(arc_weights={("X1", "C"): 0.1}) if rng.random() < 0.2 else Constraints()
    if seed % 3 == 1:  # some weights are 1 and a rest of any size, so that a count less 1 is the rest
        options["leave_one_out"], weights = True, np.where(weights < 1, weights + 1.0, weights)
    if seed % 4 in (1, 2):
        options["smoothing_towards"] = ("marginal", "class")[seed % 4 - 1]
    return Dataset("extreme", data.variables, codes, weights), Score(name=name, **options), rules


def structures(data: Dataset, score: Score, rules: Constraints) -> list[tuple[tuple[int, ...], ...]]:
    """Return all structures of a problem."""
    sets = build_problem(data, score, rules, for_milp=False).candidates.sets
    return list(acyclic_structures(tuple(tuple(tuple(s) for s in of) for of in sets)))


def exact(data: Dataset, score: Score, rules: Constraints) -> Callable[[Graph], mpf]:
    """Return a function that scores structures exactly; without a score, under AICc, it returns -inf."""
    scores = Scores(case_of(data, score.to_dict(), rules.to_dict()))

    def of(graph: Graph) -> mpf:
        value = scores.of(tuple(tuple(sorted(s)) for s in graph))
        return mpf("-inf") if value is None else mpf(value.numerator) / value.denominator

    return of


@pytest.mark.parametrize(
    "seed", range(12)
)  # every kind with every prior, with and without the sample's own copy
def test_no_bound_is_below_the_optimum_and_all_are_proved(seed: int, tmp_path: Path) -> None:
    """Bounds of the search and of the verifier hold, and every score is within its stated error."""
    data, score, rules = problem(seed)
    reference = exact(data, score, rules)
    scores = {g: reference(g) for g in structures(data, score, rules)}
    best = max(scores.values())
    built = build_problem(data, score, rules, for_milp=False)
    assert mpf(trivial_bound(built)) >= best
    for g in list(scores)[:: max(1, len(scores) // 20)]:
        structure = Structure(data.names, g)
        value, error = built.rescored(structure)
        assert abs(mpf(value) - scores[g]) <= error / 2
        assert abs(mpf(rescored(data, structure, score, rules)[0]) - scores[g]) <= error / 2
        by_coefficients = built.value(built.indicator(built.choice(structure)))
        assert abs(mpf(by_coefficients) - scores[g]) <= built.score_error
    path = tmp_path / "run.certificate"
    result = solve(data, score, constraints=rules, certificate=path, **NATIVE)
    assert mpf(result.bound) >= best
    found = scores[result.structure.parents]
    if result.optimal:
        assert best - found <= 1e-6 * max(1, abs(found))
    checked = verify(result, path, data)
    assert best <= mpf(checked.bound) <= result.bound


@pytest.mark.slow
def test_a_million_rows_of_one_weight(tmp_path: Path) -> None:
    """Merging rounds a few times, not once for every row."""
    rng = np.random.default_rng(0)
    kinds = np.array([[a, b, c] for a in range(2) for b in range(3) for c in range(2)], dtype=np.int32)
    rows = np.repeat(kinds, 1 + rng.multinomial(1_000_008 - 12, rng.dirichlet(np.ones(12))), axis=0)
    variables = (Variable("X1", ("a", "b")), Variable("X2", ("a", "b", "c")), Variable("C", ("0", "1")))
    data = Dataset("rows", variables, rows, np.full(len(rows), 0.134))
    counts = np.bincount(rows @ np.array([6, 2, 1]))
    for merged, count in zip(data.merged.weights.tolist(), counts.tolist(), strict=True):
        assert merged == pytest.approx(float(mpf(count) * mpf(0.134)), rel=1e-15)
    score = Score(gamma=4.595)
    path = tmp_path / "run.certificate"
    result = solve(data, score, certificate=path, **NATIVE)
    reference = exact(data, score, Constraints())
    best = max(reference(g) for g in structures(data, score, Constraints()))
    assert mpf(result.bound) >= best
    assert mpf(verify(result, path, data).bound) >= best
    assert result.optimal


@pytest.mark.parametrize(("heavy", "light", "hybrid"), [(8.4e7, 1e-2, 2557.0), (1e9, 1e-3, 1000.0)])
def test_heavy_and_light_rows_under_a_hybrid_score(
    heavy: float, light: float, hybrid: float, tmp_path: Path
) -> None:
    """The terms of light rows are not lost beside n log n of the heavy rows."""
    score, checked = Score(name="cll", hybrid=hybrid), 0
    for seed in range(8):
        rng = np.random.default_rng([92, seed])
        data = random_dataset(rng, 2, 2, 2, 6)
        weights = np.full(6, light)
        weights[0] = heavy
        data = Dataset("hybrid", data.variables, data.codes, weights)
        reference = exact(data, score, Constraints())
        best = max(reference(g) for g in structures(data, score, Constraints()))
        path = tmp_path / f"{seed}.certificate"
        result = solve(data, score, certificate=path, **NATIVE)
        assert mpf(result.bound) >= best
        assert mpf(result.bound) <= best + 1e-6 * max(1, abs(best))
        assert abs(mpf(result.objective) - reference(result.structure.parents)) <= 1e-12 * abs(best)
        verify(result, path, data)
        checked += result.optimal
    assert checked == 8


@pytest.mark.parametrize("name", ["ll", "mdl", "aic", "aicc", "bdeu", "hard-margin"])
@pytest.mark.parametrize("seed", range(6))
def test_bounds_hold_for_scores_without_certificates(name: str, seed: int) -> None:
    """The trivial bound, and that of branch and cut before any branching, hold for scores without margins."""
    rng = np.random.default_rng([93, seed])
    plain = random_dataset(rng, 2, 2, 3, 12)
    weights = 10.0 ** rng.uniform(-9, 9, 12) + (20.0 if name == "aicc" else 0.0)
    data = Dataset("other", plain.variables, plain.codes, weights)
    sample_size = {"equivalent_sample_size": float(10 ** rng.uniform(-3, 3))} if name == "bdeu" else {}
    score = Score(name=name, max_parents=1 + seed % 3, **sample_size)
    reference = exact(data, score, Constraints())
    scores = {g: reference(g) for g in structures(data, score, Constraints())}
    best = max(scores.values())
    built = build_problem(data, score, for_milp=False)
    assert mpf(trivial_bound(built)) >= best
    record = EventLog()
    if score.kind.shape is Shape.LINEAR:
        BranchAndCutEngine().run(built, Start(), Settings(root_only=True), record)
    assert all(mpf(bound) >= best for bound in record.bounds)
    assert bool(record.bounds) == (name not in ("aicc", "hard-margin"))
    for g, value in scores.items():
        if value > -math.inf:
            found, error = built.rescored(Structure(data.names, g))
            assert abs(mpf(found) - value) <= error / 2


@pytest.mark.parametrize("score", [Score(p=0.9), Score(name="sbm", p=0.99), Score(name="cll")], ids=str)
def test_a_claim_is_at_most_the_proof(score: Score, tmp_path: Path) -> None:
    """A bound just below the proved one is refused, and so is a score beyond its error."""
    data = random_dataset(np.random.default_rng(94), 3, 3, 3, 30, weights=True)
    path = tmp_path / "run.certificate"
    result = solve(data, score, certificate=path, **NATIVE)
    header, arrays = load_proof(path)
    del header["version"]

    def claiming(**numbers: float) -> dict[str, Any]:
        own = {**header, **numbers}
        return {**own, "gap": vars(Gap.between(own["objective"], own["bound"])), "gap_se": None}

    proved = verify(None, path, data).bound
    assert result.objective < proved <= result.bound
    for bound, stands in ((proved, True), (float(np.nextafter(proved, -np.inf)), False)):
        save_certificate(path, claiming(bound=bound), arrays)
        if stands:
            assert verify(None, path, data).bound == proved
        else:
            with pytest.raises(InputError, match="proves the bound"):
                verify(None, path, data)
    _, error = rescored(data, result.structure, score)
    assert 0 < error < 1e-9 * abs(result.objective)
    save_certificate(path, claiming(objective=result.objective - 3 * error), arrays)
    with pytest.raises(InputError, match="The structure scores"):
        verify(None, path, data)


def test_sums_are_exact() -> None:
    """With weights over thirty powers of ten, each sum is exact except for its last digits."""
    rng = np.random.default_rng(95)
    for size in (1, 7, 5000):
        weights = 10.0 ** rng.uniform(-15, 14, size)
        index = rng.integers(0, 3, size)
        found = exact_sums(index, weights, 4)
        for k in range(4):
            assert found[k] == pytest.approx(math.fsum(weights[index == k]), rel=1e-15, abs=0.0)
    whole, none = rng.integers(1, 1000, 5000).astype(float), np.zeros(5000, dtype=np.int64)
    assert exact_sums(none, whole, 1) == whole.sum()
    assert exact_sums(np.empty(0, dtype=np.int64), np.empty(0), 2).tolist() == [0.0, 0.0]
    # A forged certificate may hold such weights.
    tiny = np.array([1.0, 1e-310, 5e-324])
    assert exact_sums(np.arange(3), tiny, 3).tolist() == tiny.tolist()
    assert exact_sums(np.zeros(2, dtype=np.int64), tiny[1:], 1)[0] == 1e-310 + 5e-324


def test_shares_near_one_keep_their_logarithm() -> None:
    counts = np.array([[1e9, 1e-9, 2e-9], [3.0, 4.0, 5.0]])
    rest = sums_of_others(counts)
    assert rest[0, 0] == pytest.approx(3e-9, rel=1e-15)
    assert rest.tolist() == np.moveaxis(sums_of_others(counts.T, axis=0), 0, -1).tolist()
    assert log_share(counts[0, :1], rest[0, :1])[0] == pytest.approx(-3e-18, rel=1e-14)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1e-20, 1.0], r"go down to 1e-20, below 1e-15; multiply all"),
        ([1e15, 1e15], r"sum to more than 1e\+15; divide"),
        ([float("nan"), 1.0], "sum to more than"),
        ([-1.0, 3.0], "not negative"),
    ],
)
def test_weights_beyond_their_range_are_refused(weights: list[float], message: str) -> None:
    """This holds for a dataset that was built directly, too."""
    variables = (Variable("X1", ("a", "b")), Variable("C", ("0", "1")))
    data = Dataset("range", variables, np.array([[0, 0], [1, 1]], dtype=np.int32), np.array(weights))
    with pytest.raises(InputError, match=message):
        solve(data, "cll", **NATIVE)
