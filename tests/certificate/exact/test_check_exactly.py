"""The exact checker: honest certificates pass, its parts agree with enumeration, and no false claim is verified."""

from __future__ import annotations

import ast
import itertools
import math
import random
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from campaign.forge import change_arrays
from click.testing import CliRunner
from running import heavy_enough, listed, optimum, random_constraints, random_data

from milpbn import solve
from milpbn.certificate.exact import arithmetic
from milpbn.certificate.exact.arithmetic import NotProvedError, log, log_gamma
from milpbn.certificate.exact.check import check
from milpbn.certificate.exact.problem import ExactProblem
from milpbn.certificate.exact.tree import heaviest
from milpbn.certificate.format import load_proof, save_certificate
from milpbn.cli.app import app
from milpbn.errors import InputError
from milpbn.problem.conflicts import resolve
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score

SOURCES = tuple(Path(arithmetic.__file__).parent.glob("*.py"))
#: Forged certificates by problem.
FORGERIES = 14
#: The problem of each number is a draw of its own; one of them takes longer than all others.
LONG = pytest.param(8, marks=pytest.mark.slow)


def score_of(rng: np.random.Generator) -> Score:
    """A score with options of every kind."""
    name = str(rng.choice(["sm", "sbm", "cll"]))
    score = Score(
        name=name,
        gamma=None if name == "cll" else float(rng.uniform(0.1, 5.0)),
        max_parents=int(rng.integers(1, 4)),
        class_parents=bool(rng.random() < 0.6),
        smoothing=float(rng.choice([1.0, 0.5, 0.01])),
        penalty=rng.choice([0.0, 0.0, 0.25]) if rng.random() < 0.8 else str(rng.choice(["bic", "aic"])),
        hybrid=float(rng.choice([0.0, 0.0, 0.1])),
    )
    # Of a stream of its own, which leaves the draws after it as they are.
    leave_one_out = not isinstance(score.penalty, str) and rng.spawn(1)[0].random() < 0.35
    towards = str(rng.spawn(1)[0].choice(["uniform", "uniform", "marginal", "class"]))
    return replace(score, leave_one_out=leave_one_out, smoothing_towards=towards)


def make_case(seed: int):
    """A tiny problem: data, score, constraints."""
    rng = np.random.default_rng([21, seed])
    data = random_data(
        seed,
        n_features=int(rng.choice([2, 3, 3, 4])),
        n_classes=int(rng.integers(2, 4)),
        n_samples=int(rng.integers(8, 40)),
        weights=rng.random() < 0.4,
    )
    if rng.random() < 0.2:
        data = replace(data, weights=10.0 ** rng.uniform(-3, 5, data.n_samples))
    some = rng.random() < 0.5 and data.n_features > 2
    rules = random_constraints(rng, data.names, 0.2) if some else Constraints()
    score = score_of(rng)
    return rng, heavy_enough(data, score), score, rules


def proved(case, path: Path, **more):
    """Solve with random options; return None if no structure satisfies the constraints."""
    rng, data, score, rules = case
    options = {"threads": int(rng.integers(1, 3)), "verbose": False, "backend": "native", "certificate": path}
    options |= {key: bool(rng.random() < 0.7) for key in ("reduce", "merge")}
    options |= {"root_only": True} if rng.random() < 0.3 else {}
    try:
        resolve(rules, data.names, score)
    except InputError:
        return None
    return solve(data, score, constraints=rules, **options, **more)


def options_of(score: Score, rules: Constraints, data) -> ExactProblem:
    return ExactProblem(data, score.to_dict(), rules.to_dict(), None)


def structures(problem: ExactProblem):
    """Every structure within options and constraints, with the numbers of its parent sets."""
    blocks = [[p for p, (i, _) in enumerate(problem.parent_sets) if i == v] for v in range(problem.last + 1)]
    for choice in itertools.product(*blocks):
        if problem.allows(structure := [problem.parent_sets[p][1] for p in choice]):
            yield choice, structure


def test_the_checker_is_short_and_imports_only_the_reader_of_files() -> None:
    texts = [path.read_text() for path in SOURCES]
    assert sum(len(text.splitlines()) for text in texts) <= 1250
    nodes = [node for text in texts for node in ast.walk(ast.parse(text))]
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {name.name for node in imports if isinstance(node, ast.Import) for name in node.names}
    modules |= {str(node.module) for node in imports if isinstance(node, ast.ImportFrom)}
    outside = {name for name in modules if name.split(".")[0] not in sys.stdlib_module_names}
    own = {f"milpbn.certificate.exact.{path.stem}" for path in SOURCES}
    assert outside - own == {"mpmath", "milpbn.certificate.format"}
    readers = [node for node in imports if getattr(node, "module", "") == "milpbn.certificate.format"]
    assert {name.name for reader in readers for name in reader.names} == {"load_proof", "arrays_on_all"}


def test_logarithms_enclose_the_true_ones() -> None:
    rng = np.random.default_rng(1)
    with mpmath.workprec(400):
        for _ in range(2000):
            x = Fraction(float(10.0 ** rng.uniform(-300, 300))) / Fraction(float(10.0 ** rng.uniform(-9, 9)))
            low, high = log(x)
            true = mpmath.log(mpmath.mpf(x.numerator) / x.denominator) * arithmetic.ONE
            assert low < true < high
            assert high - low <= 4
        for _ in range(500):
            x = Fraction(float(10.0 ** rng.uniform(-13, 13))) + int(rng.integers(3))
            low, high = log_gamma(x)
            true = mpmath.loggamma(mpmath.mpf(x.numerator) / x.denominator) * arithmetic.ONE
            assert low < true < high
            assert high - low <= 4


@pytest.mark.parametrize("number", [*range(8), LONG, *range(9, 15)])
def test_candidates_and_scores_are_those_of_the_project_and_of_the_oracle(number: int) -> None:
    _, data, score, rules = make_case(number)
    try:
        candidates = listed(rules, data.names, score)
    except InputError:
        return
    problem = options_of(score, rules, data)
    owners = candidates.variable.tolist()
    assert problem.parent_sets == list(zip(owners, candidates.flat, strict=True))
    best = optimum(data, score, rules)
    scores = [problem.score(s, problem.weights) for _, s in itertools.islice(structures(problem), 300)]
    assert all(low <= high < low + Fraction(1, 10**15) for low, high in scores)
    low, high = problem.score(best.structures[0], problem.weights)
    assert best.objective == pytest.approx(float(low), rel=1e-11, abs=1e-11)
    assert max(s for s, _ in scores) <= high + Fraction(1, 10**9)


@pytest.mark.parametrize("seed", range(20))
def test_maxima_are_those_of_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = random_data(seed, n_features=3)
    score = Score(max_parents=int(rng.integers(1, 4)), class_parents=bool(rng.random() < 0.7))
    problem = options_of(score, Constraints(), data)
    every = list(structures(problem))
    for _ in range(10):
        weights = [Fraction(int(x)) for x in rng.integers(-1000, 1000, len(problem.parent_sets))]
        allowed = frozenset(np.flatnonzero(rng.random(len(weights)) < 0.8).tolist())
        pairs = list(itertools.combinations(range(4), 2))
        edges = tuple(pairs[k] for k in rng.choice(len(pairs), rng.integers(0, 3), replace=False))
        wanted = frozenset(p for p in allowed if rng.random() < 0.2)
        fitting = [
            (choice, sum(weights[p] for p in choice))
            for choice, s in every
            if allowed.issuperset(choice) and all(a in s[b] or b in s[a] for a, b in edges)
        ]
        most = max((value for _, value in fitting), default=-math.inf)
        assert heaviest(problem.parent_sets, weights, allowed, edges, None) == most
        most = max((value for choice, value in fitting if wanted.intersection(choice)), default=-math.inf)
        assert heaviest(problem.parent_sets, weights, allowed, edges, wanted) == most


@pytest.mark.parametrize("number", [*range(8), LONG, *range(9, 16)])
def test_honest_certificates_pass_and_what_they_prove_holds(number: int, tmp_path: Path) -> None:
    case = make_case(number)
    _, data, score, rules = case
    result = (
        proved(case, tmp_path / "c.npz", subset=6) if number % 5 == 0 else proved(case, tmp_path / "c.npz")
    )
    if result is None:
        return
    (low, high), bound = check(result.to_dict(), tmp_path / "c.npz", data)
    assert low <= high <= bound
    if result.subset is not None:
        forged = {**result.to_dict(), "bound": result.objective}
        if result.bound > result.objective + 1e-6:
            with pytest.raises(NotProvedError):
                check(forged, tmp_path / "c.npz", data)
    else:
        assert bound <= Fraction(result.bound)
        problem = options_of(score, rules, data)
        assert all(problem.score(s, problem.weights)[0] <= bound for _, s in structures(problem))
    assert check(None, tmp_path / "c.npz", data)[1] == bound


def count_forgeries(seeds, each: int, folder: Path) -> tuple[int, int, int]:
    """Return how many forged certificates were tried, were false, and were verified; no false one may be verified."""
    tried = false = accepted = 0
    for seed in seeds:
        case = make_case(seed)
        rng, data, score, rules = case
        draw = random.Random(seed)
        path = folder / "c.npz"
        result = proved(case, path)
        if result is None:
            continue
        header, arrays = load_proof(path)
        problem = options_of(score, rules, data)
        known = [(problem.score(s, problem.weights), s) for _, s in structures(problem)]
        best = max(high for (_, high), _ in known)
        # Structures within the rounding error of a float score count as optima.
        near = best - Fraction(1, 10**12) * max(1, abs(best))
        optima = [s for (_, high), s in known if high >= near]
        for _ in range(each):
            claim = dict(header) if rng.random() < 0.3 else result.to_dict()
            (_, z), own = known[rng.integers(len(known))] if rng.random() < 0.6 else max(known)
            names = data.names
            claim["structure"] = {n: [names[j] for j in s] for n, s in zip(names, own, strict=True)}
            claim["objective"] = float(z)
            share = rng.choice([0.0, 0.5, 1 - 1e-7, 1.0, rng.random()])
            claim["bound"] = float(z + Fraction(share) * (Fraction(header["bound"]) - z))
            if rng.random() < 0.1:
                claim["bound"] = float(np.nextafter(float(best), -np.inf))
            claim["status"] = {"reason": str(rng.choice(["optimal", "feasible"]))}
            pairs = list(itertools.permutations(range(len(names)), 2))
            a, b = pairs[rng.integers(len(pairs))]
            key = str(rng.choice(["in", "out"]))
            claim["proved"] = {key: [[names[a], names[b]]]} if rng.random() < 0.3 else None
            lies = Fraction(claim["bound"]) < max(low for (low, _), _ in known)
            lies |= claim["status"]["reason"] == "optimal" and z + Fraction(2, 10**6) * max(1, abs(z)) < best
            if claim["proved"]:
                lies |= any((a in s[b]) != (key == "in") for s in optima)
            if rng.random() < 0.1:
                claim["objective"] += float(rng.choice([1e-3, -1e-3, 1.0])) * max(1.0, abs(float(z)))
                lies = True
            save_certificate(path, header, change_arrays(draw, arrays, (0, 1, 2, 3)))
            tried, false = tried + 1, false + lies
            try:
                check(claim, path, data)
            except (NotProvedError, InputError):
                continue
            assert not lies, (seed, claim)
            accepted += 1
    return tried, false, accepted


def test_nothing_false_is_verified(tmp_path: Path) -> None:
    tried, false, accepted = count_forgeries(range(100, 106), FORGERIES, tmp_path)
    assert tried > 50
    assert false > 25
    assert accepted > 1


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A result whose certificate has inequalities, with the header and arrays."""
    path = tmp_path_factory.mktemp("exact") / "c.npz"
    data = random_data(4, n_features=4, n_samples=40)
    rules = Constraints(max_children={"*": 1})
    result = solve(data, Score(p=0.9), constraints=rules, threads=1, verbose=False, certificate=path)
    header, arrays = load_proof(path)
    assert len(arrays["row_limit"])
    return data, result, header, arrays


def refused(tmp_path, claim, header, arrays, data, words: str) -> None:
    save_certificate(tmp_path / "c.npz", header, arrays)
    with pytest.raises(NotProvedError, match=words) as caught:
        check(claim, tmp_path / "c.npz", data)
    assert len(str(caught.value).splitlines()) == 1


def test_wrong_claims_are_refused(case, tmp_path: Path) -> None:
    data, result, header, arrays = case
    claim = result.to_dict()
    save_certificate(tmp_path / "c.npz", header, arrays)
    assert check(claim, tmp_path / "c.npz", data)
    below = float(np.nextafter(result.objective, -np.inf))
    subset = {"samples": 6, "objective": 1.0, "bound": 2.0}
    for changes, words in (
        ({"bound": below}, "claimed bound is"),
        ({"bound": None}, "a number should be"),
        ({"bound": "1"}, "a number should be"),
        ({"bound": 10**400}, "known form"),
        ({"bound": math.inf}, "known form"),
        ({"objective": result.objective + 1e-3}, "scores"),
        ({"structure": {**claim["structure"], "X1": ["X2"], "X2": ["X1"]}}, "does not obey"),
        ({"structure": {**claim["structure"], "X1": ["C", "X2", "X3"]}}, "does not obey"),
        ({"structure": {"X1": []}}, "other variables"),
        ({"score": {**claim["score"], "max_parents": 3}}, "differ in"),
        ({"score": {**claim["score"], "leave_one_out": True}}, "differ in"),
        ({"score": {**claim["score"], "leave_one_out": 1}}, "does not know"),
        ({"score": {**claim["score"], "leave_two_out": True}}, "does not know"),
        ({"score": {**claim["score"], "smoothing_towards": "class"}}, "differ in"),
        ({"score": {**claim["score"], "smoothing_towards": "parents"}}, "known form"),
        ({"score": {**claim["score"], "name": "ll"}}, "does not name the class"),
        ({"score": {**claim["score"], "name": "aicc"}}, "does not know"),
        ({"constraints": {}}, "differ in"),
        ({"constraints": {"banned": ["X1"]}}, "does not know"),
        ({"run": "another"}, "differ in"),
        ({"subset": subset}, "differ in"),
        ({"data": {**claim["data"], "samples": 39}}, "differ from"),
        ({"data": None}, "known form"),
        ({"proved": {"in": [["X1", "nobody"]]}}, "known form"),
    ):
        refused(tmp_path, {**claim, **changes}, header, arrays, data, words)
    beside = {**claim, "subset": subset}
    refused(tmp_path, beside, {**header, "subset": subset}, arrays, data, "over some rows")
    refused(tmp_path, claim, header, arrays, random_data(5, n_features=4, n_samples=40), "differ from")
    nodes = {"branches": np.array([[0, 7, 0, 0, 1, 2]], dtype=np.int32), "leaf_node": arrays["leaf_node"] + 1}
    refused(tmp_path, claim, header, {**arrays, **nodes}, data, "unknown decision")
    refused(tmp_path, claim, header, {**arrays, "leaf_node": arrays["leaf_node"] + 1}, data, "node")


def test_inequalities_that_do_not_hold_are_refused(case, tmp_path: Path) -> None:
    """Among them is a cluster without variables, as an additional column would make it."""
    data, result, header, arrays = case
    n, V = arrays["row_members"].shape
    phantom = np.zeros((n, V + 1), dtype=bool)
    phantom[:, V] = True
    for members, limit in (
        (arrays["row_members"], 0),
        (arrays["row_members"], -2),
        (arrays["row_members"] & False, -1),
        (arrays["row_members"] | True, 1),
        (phantom, -1),
    ):
        changed = {**arrays, "row_members": members, "row_limit": np.full(n, limit)}
        refused(tmp_path, result.to_dict(), header, changed, data, "does not hold for every")


def test_large_problems_are_refused(case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, result, header, arrays = case
    monkeypatch.setattr(arithmetic, "LARGEST_WORK", 1_000_000)
    refused(tmp_path, result.to_dict(), header, arrays, data, "too large")
    monkeypatch.setattr(arithmetic, "LARGEST_FEATURES", 3)
    refused(tmp_path, result.to_dict(), header, arrays, data, "more than 3 features")


def test_verify_exact_prints_the_proof_or_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    rows = [f"{a},{b},{a ^ (b & (rng.random() < 0.8))}" for a, b in rng.integers(0, 2, (40, 2))]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["a,b,class", *rows]) + "\n")
    result, proof = tmp_path / "r.json", tmp_path / "c.npz"

    def run(*arguments: object):
        return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)

    done = run(
        "solve", table, "--backend", "native", "--threads", 1, "--output", result, "--certificate", proof
    )
    assert done.exit_code == 0, done.output
    done = run("verify", result, table, "--certificate", proof, "--exact")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("exact "))
    bound, low, high = (
        Fraction(lines[at + 1].split()[0].rstrip(",")),
        *map(Fraction, lines[at + 2].split()[::2]),
    )
    assert low <= high <= bound
    assert float(low) == pytest.approx(float(bound), rel=1e-5)
    assert run("verify", proof, table, "--exact").stdout.splitlines()[-3:] == lines[at:]
    with monkeypatch.context() as fewer:
        fewer.setattr(arithmetic, "LARGEST_FEATURES", 1)
        done = run("verify", proof, table, "--exact")
        assert done.exit_code == 2
        assert "Too large: more than 1 features" in done.stderr
    for name in [name for name in sys.modules if name.startswith("milpbn.certificate.exact")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mpmath", None)
    done = run("verify", proof, table, "--exact")
    assert done.exit_code == 2
    assert "pip install 'milpbn[exact]'" in done.stderr
