"""The verifier: intact certificates pass, and no file makes it accept a false bound."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from campaign.forge import change_arrays, without_leaf
from running import all_choices, heavy_enough, listed, optimum, random_data

from milpbn import solve
from milpbn.certificate.format import VERSION, Proof, certificate_header, load_proof, save_certificate
from milpbn.certificate.verify.check import verify
from milpbn.certificate.verify.duals import ClaimedDuals
from milpbn.certificate.verify.maxima import heaviest, unproved
from milpbn.certificate.verify.space import ANY, DAGS, FORESTS, left_by, space_of
from milpbn.claims.parts import ProvedArcs
from milpbn.claims.result import Gap, Result, is_optimal
from milpbn.data.dataset import Dataset
from milpbn.engine.events import EventLog
from milpbn.engine.root import Root
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.bounds import trivial_bound
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import build_problem
from milpbn.problem.rescore import rescore, standard_error
from milpbn.problem.scores.spec import Score
from milpbn.solving.progress import closing_block

SCORES = [
    Score(p=0.9),
    Score(p=0.99, class_parents=False),
    Score(p=0.95, max_parents=1),
    Score(p=0.99, max_parents=3),
    Score(p=0.9, penalty="bic", hybrid=0.05),
    Score(name="sbm", p=0.9),
    Score(name="sbm", p=0.99, max_parents=3, penalty=0.2),
    Score(name="cll"),
    Score(name="cll", max_parents=3, class_parents=False),
    Score(p=0.9, hybrid=0.05, leave_one_out=True),
    Score(name="cll", max_parents=3, smoothing=0.5, leave_one_out=True),
    Score(p=0.9, max_parents=3, smoothing_towards="class"),
    Score(name="sbm", p=0.9, smoothing_towards="marginal", leave_one_out=True),
    Score(name="cll", hybrid=0.05, smoothing=0.5, smoothing_towards="class", leave_one_out=True),
    Score(p=0.9, max_parents=3, hybrid=0.05, smoothing_towards="marginal", leave_one_out=True),
]
RULES = [
    Constraints(),
    Constraints(required=(("X1", "X2"),), forbidden=(("X3", "X1"),)),
    Constraints(max_children={"*": 1}, arc_weights={("X2", "X3"): 1.5}),
    Constraints(fixed={"X3": ()}, tiers=(("X1",), ("X2", "C"))),
]
NO_EDGES = np.zeros((4, 4), dtype=np.int64)


def proved(data: Dataset, score: Score, path: Path, **options) -> Result:
    """Solve with the native backend and write its certificate to `path`."""
    given = {"backend": "native", "threads": 1, "verbose": False, "certificate": path, **options}
    return solve(data, score, **given)


def saying(result: Result, **changes) -> Result:
    """Change fields of a result, and its trace accordingly, so that the result stays consistent."""
    changed = replace(result, **changes)
    seconds = result.trace[-1][0]
    return replace(changed, trace=((seconds, changed.objective, changed.bound),))


def claiming(header, structure, objective, bound):
    """Return a consistent header that claims a structure, its score and a bound."""
    reason = "optimal" if is_optimal(objective, bound) else "feasible"
    return {
        **header,
        "structure": structure,
        "objective": objective,
        "bound": bound,
        "gap": vars(Gap.between(objective, bound)),
        "status": {"reason": reason, "limit": None, "detail": ""},
    }


def write(path: Path, header, arrays) -> Path:
    """Write a certificate of any arrays."""

    save_certificate(path, header, arrays)
    return path


#: Keys that certificates of earlier versions lack, and those of the version.
NEWER = ("version", "milpbn", "among", "screened", "alternatives", "tolerance", "standard_error", "gap_se")
#: Options of the searches whose certificates are verified.
WAYS = ({}, {"reduce": False}, {"merge": False, "threads": 2}, {"gap_se": 0.1}, {"root_only": True})


@pytest.mark.parametrize(
    ("score", "rules"),
    [pair for k, pair in enumerate(itertools.product(SCORES, RULES)) if (k // 8 + k) % 2 == 0],
)
def test_whole_certificates_pass_and_their_bounds_hold(score, rules, tmp_path):
    path = tmp_path / "proof.npz"
    turn = SCORES.index(score) + RULES.index(rules)
    seed = turn // 4 % 2
    data = random_data(seed, n_classes=2 + seed, n_samples=24, weights=seed == 1)
    data = heavy_enough(data, score)
    best = optimum(data, score, rules).objective
    # A quarter of the options, in turn: the scores and rules together meet all pairs of seed and option.
    for options in WAYS[turn % 4 :: 4]:
        result = proved(data, score, path, constraints=rules, **options)
        checked = verify(result, path, data)
        assert checked.bound >= best - 1e-9
        assert checked.bound <= result.bound + 1e-9 * max(1.0, abs(result.bound))
        assert checked.objective == pytest.approx(result.objective, abs=1e-9)
        assert verify(load_proof(path)[0], path, data).bound == checked.bound
        if result.reason == "optimal":
            assert checked.gap.absolute <= 1e-6 * max(1.0, abs(best)) + 1e-9


def test_certificates_with_many_decisions_and_fixings_pass(tmp_path):
    path = tmp_path / "proof.npz"
    nodes = deletions = 0
    for score in (Score(p=0.9), Score(name="cll"), Score(p=0.9, max_parents=3)):
        data = random_data(0, n_features=5 if score.name == "cll" else 6, n_samples=40)
        result = proved(data, score, path)
        checked = verify(result, path, data)
        assert checked.nodes == len(load_proof(path)[1]["branches"]) * 2 + 1
        assert checked.leaves == (checked.nodes + 1) // 2
        nodes, deletions = nodes + checked.nodes, deletions + checked.deletions
    assert nodes > 100
    assert deletions > 100


def test_a_search_stops_when_its_certificate_is_full(tmp_path, monkeypatch):
    data, path = random_data(2, n_features=6, n_samples=40), tmp_path / "proof.npz"
    whole = proved(data, Score(p=0.9), path)
    largest = path.stat().st_size
    monkeypatch.setattr("milpbn.certificate.format.LARGEST", 10_000)
    result = proved(data, Score(p=0.9), path)
    assert (whole.limit, result.limit) == (None, "memory")
    assert "the certificate has its maximum size" in closing_block(result)
    assert 1 < verify(result, path, data).nodes < whole.nodes
    assert path.stat().st_size < largest


def test_a_run_without_any_time_has_a_certificate(tmp_path):
    data = random_data(1)
    result = proved(data, Score(p=0.9), tmp_path / "proof.npz", gap_rel=1.0)
    checked = verify(result, tmp_path / "proof.npz", data)
    assert checked.nodes == 1
    assert checked.bound >= optimum(data, Score(p=0.9)).objective


@pytest.mark.parametrize(
    ("score", "kind"),
    [
        (Score(), FORESTS),
        (Score(class_parents=False), FORESTS),
        (Score(max_parents=3), DAGS),
        (Score(max_parents=3), ANY),
    ],
)
def test_maxima_and_fixings_equal_enumeration(score, kind):
    rng = np.random.default_rng(kind)
    tight = kept = 0
    for rules in (Constraints(), RULES[1], RULES[3]):
        candidates = listed(rules, ("X1", "X2", "X3", "C"), score)
        space = space_of(candidates)._replace(kind=kind)
        choices = all_choices(candidates)
        for _ in range(60):
            g = rng.normal(size=candidates.n_sets) * 10.0 ** rng.integers(-3, 5)
            mask = rng.random(len(g)) < 0.8
            forced, edges = NO_EDGES.copy(), []
            if kind == FORESTS:
                edges = [(0, 1), (1, 2), (0, 2)][: rng.integers(3)]
            fits = mask[choices].all(axis=1)
            for a, b in edges:
                forced[a + 1, b + 1] = forced[b + 1, a + 1] = 1
                fits &= ~left_by(space, 0, a, b, False)[choices].all(axis=1)
            values = np.where(fits, g[choices].sum(axis=1), -np.inf)
            best = values.max()
            bound = heaviest(space, g, mask, forced, len(edges), -np.inf)
            assert bound >= best
            tight += bound <= best + 1e-9 * np.abs(g).max()
            assert heaviest(space, g, mask, forced, len(edges), best + 1.0) >= best
            for entry in range(len(g)):
                having = values[(choices == entry).any(axis=1)]
                most = having.max(initial=-np.inf)
                limit = most if np.isfinite(most) else 0.0
                one = np.array([entry])
                if np.isfinite(most):
                    assert unproved(space, g, mask, forced, len(edges), one, limit) == entry
                easy = limit + 1e-6 * np.abs(g).max()
                kept += unproved(space, g, mask, forced, len(edges), one, easy) == entry
    # The bounds are exact, except for ANY and for cycles through the class.
    assert tight > (0 if kind == ANY else 170 if kind == DAGS or not score.class_parents else 100)
    assert kind == ANY or kept < 0.2 * 180 * candidates.n_sets


def assert_coefficients(duals, problem):
    """With one unit of weight on a single margin, the gradient is that margin's coefficients."""
    assert problem.margins is not None
    expected = problem.margins.alpha.reshape(problem.data.n_samples, duals.n_rows, -1)
    for m, r in np.ndindex(*expected.shape[:2]):
        weights = np.zeros(expected.shape[:2])
        weights[m, r] = 1.0
        np.testing.assert_allclose(duals._products(weights), expected[m, r], atol=1e-12)


@pytest.mark.parametrize("score", SCORES, ids=lambda s: f"{s.name}-{s.max_parents}-{s.class_parents}")
def test_coefficients_and_linear_terms_are_those_of_the_problem(score):
    for seed, rules in enumerate(RULES):
        data = heavy_enough(random_data(seed % 2, n_samples=30, weights=True), score)
        problem = build_problem(data, score, rules)
        duals = ClaimedDuals(problem.data, problem.candidates, score, problem.rules)
        np.testing.assert_allclose(duals.linear, problem.linear, atol=1e-9)
        assert_coefficients(duals, problem)
        best = optimum(data, score, rules)
        assert duals.without_search() >= best.objective
        # At a structure, and at a temperature near 0, the bound equals the structure's score.
        choice = problem.choice(Structure(data.names, best.structures[0]))
        point = problem.indicator(choice)[duals.parent_sets][None, :]
        constants, gradients = duals.at(point, np.array([1.0 if score.name == "cll" else 1e-9]))
        assert constants[0] + gradients[0][choice].sum() == pytest.approx(
            problem.value(problem.indicator(choice))
        )


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_likelihoods_of_a_million_copies_are_proved(seed, tmp_path):
    """A sample's weight of up to a million multiplies the rounding error of its likelihood."""
    rng = np.random.default_rng(seed)
    data = random_data(seed, int(rng.integers(3, 6)), 2, n_samples=int(rng.integers(20, 60)))
    data = replace(data, weights=10 ** rng.uniform(0, 6, data.n_samples))
    path = tmp_path / "proof.npz"
    result = proved(data, Score(name="cll"), path)
    assert result.reason == "optimal"
    assert verify(result, path, data).bound <= result.bound + 1e-9 * max(1.0, abs(result.bound))
    if data.n_features < 5:
        assert result.objective == pytest.approx(optimum(data, Score(name="cll")).objective, rel=1e-9)


def test_the_bound_without_search_ignores_terms_that_no_structure_has():
    """If the trivial bound proves a search's result, the certificate holds only that bound."""
    weights = {("X1", "X2"): -1e6, ("X3", "X1"): -999_999.9}
    for seed, score in enumerate(SCORES):
        data = random_data(seed % 2, n_samples=60)
        problem = build_problem(data, score, Constraints(arc_weights=weights))
        duals = ClaimedDuals(problem.data, problem.candidates, score, problem.rules)
        claimed = trivial_bound(problem)
        assert optimum(data, score, Constraints(arc_weights=weights)).objective <= duals.without_search()
        assert duals.without_search() <= claimed + 1e-9 * max(1.0, abs(claimed))


@pytest.mark.parametrize("name", ["sm", "sbm"])
def test_parent_sets_with_many_joint_states_pass(name):
    """With few samples and many states, only the joint states that occur are numbered."""
    data = random_data(3, n_features=4, max_states=12, n_samples=12)
    score = Score(name=name, p=0.9, max_parents=3)
    problem = build_problem(data, score)
    duals = ClaimedDuals(problem.data, problem.candidates, score, problem.rules)
    assert len(duals._columns) > len(data.names)
    assert_coefficients(duals, problem)
    assert duals.without_search() == pytest.approx(trivial_bound(problem))


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A result to optimality whose certificate has decisions and fixings, with the header and arrays."""
    path = tmp_path_factory.mktemp("case") / "proof.npz"
    data = random_data(4, n_features=5, n_samples=40)
    result = proved(data, Score(p=0.9), path)
    header, arrays = load_proof(path)
    assert result.reason == "optimal"
    assert len(arrays["branches"]) > 3
    assert len(arrays["deleted"]) > 3
    return data, result, header, arrays


def refused(path, result, data, words):
    with pytest.raises(InputError, match=words) as caught:
        verify(result, path, data)
    assert len(str(caught.value).splitlines()) == 1


def test_unchanged_arrays_pass(case, tmp_path):
    data, result, header, arrays = case
    assert verify(result, write(tmp_path / "c.npz", header, arrays), data).gap.absolute < 1e-4


def test_a_certificate_without_a_leaf_is_refused(case, tmp_path):
    data, result, header, arrays = case
    for number in range(len(arrays["leaf_node"])):
        path = write(tmp_path / "c.npz", header, without_leaf(arrays, number))
        refused(path, result, data, "has no bound for node")


def test_a_certificate_without_a_branch_is_refused(case, tmp_path):
    data, result, header, arrays = case
    for row in range(len(arrays["branches"])):
        changed = {**arrays, "branches": np.delete(arrays["branches"], row, axis=0)}
        refused(
            write(tmp_path / "c.npz", header, changed), result, data, "no bound for node|never reaches node"
        )


def test_changed_dual_weights_prove_a_larger_bound(case, tmp_path):
    data, result, header, arrays = case
    for changed in ({"eta": 0 * arrays["eta"]}, {"temperature": arrays["temperature"] + 20}):
        path = write(tmp_path / "c.npz", header, {**arrays, **changed})
        refused(path, result, data, "proves the bound|does not prove that")


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("eta", lambda a: a * np.nan, "a point is not finite, or a temperature"),
        ("eta", lambda a: a * 1e308, "too large|proves"),
        ("temperature", lambda a: -a, "a point is not finite, or a temperature"),
        ("temperature", lambda a: a * np.nan, "a point is not finite, or a temperature"),
        ("temperature", lambda a: a[1:], "temperature has another shape"),
        ("entries", lambda a: a + 100_000, "entries has an index out of range"),
        ("entries", lambda a: a[:-1], "entries has another shape"),
        ("entries", lambda a: a.astype(float), "entries is missing, or of another type"),
        ("deleted", lambda a: a - 1000, "deleted has an index out of range"),
        ("deletion_size", lambda a: a - 1, "deleted has another shape"),
        ("deletion_node", lambda a: a + 1000, "never reaches node"),
        ("weights_size", lambda a: -a, "weights_size has an index out of range"),
        ("leaf_node", lambda a: a * 0, "twice"),
        ("leaf_node", lambda a: a + 1000, "no bound for node"),
        ("branches", lambda a: a[:, :5], "branches has another shape"),
        ("branches", lambda a: np.concatenate([a, a[:1]]), "twice"),
        ("branches", lambda a: np.where(np.arange(6) == 1, 7, a), "unknown decision"),
        ("branches", lambda a: np.where(np.arange(6) == 2, 99, a), "unknown decision"),
        ("branches", lambda a: np.where(np.arange(6) == 5, a[:, 4:5], a), "twice"),
        ("branches", lambda a: np.where(np.arange(6) == 5, 0, a), "twice"),
        ("branches", lambda a: a[:0], "no bound|never reaches"),
    ],
)
def test_damaged_arrays_are_refused(case, tmp_path, name, change, words):
    data, result, header, arrays = case
    refused(write(tmp_path / "c.npz", header, {**arrays, name: change(arrays[name])}), result, data, words)


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """A result whose certificate has multipliers of child limits, with the header and arrays."""
    path = tmp_path_factory.mktemp("limited") / "proof.npz"
    data = random_data([5, 1], n_features=5, n_samples=60)
    result = proved(data, Score(p=0.95), path, constraints=Constraints(max_children={"*": 1, "C": 3}))
    header, arrays = load_proof(path)
    assert len(arrays["multiplier"]) > 3
    return data, result, header, arrays


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("multiplier", lambda a: a * 0, "proves the bound|does not prove that"),
        ("multiplier", lambda a: a * 100, "proves the bound|does not prove that"),
        ("multiplier", lambda a: -a, "a multiplier is negative or too large"),
        ("multiplier", lambda a: a * np.nan, "a multiplier is negative or too large"),
        ("multiplier", lambda a: a + np.inf, "a multiplier is negative or too large"),
        ("multiplier", lambda a: a[1:], "multiplier has another shape"),
        ("multiplier", lambda a: a > 0, "multiplier is missing, or of another type"),
        ("multipliers_size", lambda a: a[1:], "multipliers_size has another shape"),
        ("multipliers_size", lambda a: -a, "multipliers_size has an index out of range"),
        ("multiplier_row", lambda a: a + 99, "multiplier_row has an index out of range"),
        ("multiplier_row", lambda a: a - 99, "multiplier_row has an index out of range"),
        ("row_limit", lambda a: a - 1, "not every structure obeys"),
        ("row_limit", lambda a: a - 5, "not every structure obeys"),
        ("row_limit", lambda a: a[1:], "row_members has another shape"),
        ("row_members", lambda a: a[:, 1:], "row_members has another shape"),
        ("row_members", lambda a: a & False, "not every structure obeys"),
        ("row_members", lambda a: a | True, "not every structure obeys"),
        ("row_members", lambda a: np.roll(a, 1, axis=1), "not every structure obeys|proves"),
    ],
)
def test_damaged_multipliers_are_refused(limited, tmp_path, name, change, words):
    data, result, header, arrays = limited
    assert verify(result, write(tmp_path / "c.npz", header, arrays), data).bound <= result.bound + 1e-6
    refused(write(tmp_path / "c.npz", header, {**arrays, name: change(arrays[name])}), result, data, words)


def test_an_empty_cluster_is_no_inequality(limited, tmp_path):
    data, result, header, arrays = limited
    nobody = np.zeros((1, data.n_variables), dtype=bool)
    changed = {
        "row_members": np.concatenate([arrays["row_members"], nobody]),
        "row_limit": np.concatenate([arrays["row_limit"], [-1]]),
    }
    refused(write(tmp_path / "c.npz", header, arrays | changed), result, data, "not every structure obeys")


def test_every_array_is_needed(case, tmp_path):
    data, result, header, arrays = case
    for name in arrays:
        rest = {key: value for key, value in arrays.items() if key != name}
        refused(write(tmp_path / "c.npz", header, rest), result, data, f"{name} is missing")


def test_fixing_a_parent_set_of_the_incumbent_is_refused(case, tmp_path):
    data, result, header, arrays = case
    problem = build_problem(data, result.score)
    for entry in problem.choice(result.structure):
        sizes = arrays["deletion_size"].copy()
        sizes[0] += 1
        deleted = np.concatenate([[entry], arrays["deleted"]]).astype(np.int32)
        path = write(tmp_path / "c.npz", header, {**arrays, "deletion_size": sizes, "deleted": deleted})
        refused(path, result, data, f"removes parent set {entry} at node")


def test_false_claims_are_refused(case, tmp_path):
    data, result, header, arrays = case
    path = write(tmp_path / "c.npz", header, arrays)
    refused(path, saying(result, objective=(result.objective + result.bound) / 2), data, "scores")
    refused(path, saying(result, bound=result.objective - 1e-3), data, "below the score")
    refused(path, saying(result, bound=None, reason="feasible"), data, "no bound")
    refused(
        path,
        saying(result, structure=None, objective=None, reason="infeasible", proved=None),
        data,
        "no structure",
    )
    refused(path, replace(result, score=Score(p=0.95)), data, "choice of score")
    refused(path, replace(result, score=Score(name="aicc")), data, "no certificates for the score aicc")
    refused(path, replace(result, constraints=RULES[1]), data, "choice of constraints")
    refused(path, result, random_data(5, n_features=5, n_samples=40), "other data than these")
    for key in header:
        # earlier versions lack the keys of later claims
        if key not in NEWER:
            short = {k: v for k, v in header.items() if k != key}
            refused(path, short, data, "result")
            refused(write(tmp_path / "s.npz", short, arrays), result, data, "The certificate")
    wide_gap = {**header, "tolerance": 0.5}
    refused(
        write(tmp_path / "t.npz", wide_gap, arrays),
        replace(result, tolerance=0.5),
        data,
        "takes a gap of 0.5",
    )
    refused(path, replace(result, tolerance=2e-6), data, "takes a gap|certificate says")
    refused(path, replace(result, standard_error=1.001 * result.standard_error), data, "standard error")
    refused(path, result.to_dict() | {"gap_se": 0.5}, data, "does not follow")
    old = {k: v for k, v in header.items() if k != "tolerance"}  # as an earlier version wrote it
    assert (
        verify(replace(result, tolerance=None), write(tmp_path / "o.npz", old, arrays), data).bound
        <= result.bound
    )
    cyclic = {"X1": ["X2"], "X2": ["X1"]}
    own = header["structure"]
    refused(path, {**header, "structure": own | cyclic}, data, "cycle")
    refused(path, {**header, "structure": own | {"X1": ["nobody"]}}, data, "'nobody'")
    wide = {**{name: [] for name in own}, "X1": ["X2", "X3", "C"]}
    refused(path, {**header, "structure": wide}, data, "rule the structure out")


def test_claims_about_optima_are_checked(tmp_path):
    path = tmp_path / "proof.npz"
    data = random_data(4, n_features=5, n_samples=40)
    result = proved(data, Score(p=0.9), path, root_only=True)
    refused(
        path,
        replace(result, reason="optimal", limit=None),
        data,
        "its bound does not prove that its structure",
    )
    listed = {key: [tuple(arc) for arc in arcs] for key, arcs in result.proved.to_dict().items()}
    assert listed["out"]
    assert verify(result, path, data).arcs_out == len(listed["out"])
    names = data.names
    for arc in ((j, i) for j in names for i in names if i != j):
        for key, words in (
            ("in", "every optimum has the arc|every optimum, and none"),
            ("out", "no optimum has the arc|every optimum, and none"),
        ):
            more = replace(result, proved=ProvedArcs.of({**listed, key: [*listed[key], arc]}))
            if arc in listed[key]:
                refused(path, more, data, f"twice under '{key}'")
            else:
                refused(path, more, data, words)
    refused(
        path,
        replace(result, proved=ProvedArcs.of({"in": [("X1", "nobody")], "out": []})),
        data,
        "which no structure over its variables",
    )


def test_a_certificate_is_verified_without_a_result(case, tmp_path):
    data, result, header, arrays = case
    path = write(tmp_path / "c.npz", header, arrays)
    assert verify(None, path, data).bound == verify(result, path, data).bound
    write(path, {**header, "bound": result.objective - 1.0}, arrays)
    refused(path, None, data, "below the score")
    write(path, {**header, "wish": 1}, arrays)
    refused(path, None, data, "the unknown key 'wish'")


@pytest.mark.parametrize("name", ["sm", "sbm", "cll"])
def test_weights_of_very_different_sizes_are_verified(name, tmp_path):
    """In spite of rounding, the proved bound is at least the best structure's score, without a tolerance."""
    score = Score(name=name, gamma=None if name == "cll" else 30.0, smoothing=1e-6)
    for seed in range(4, 8):
        weights = 10.0 ** np.random.default_rng(seed).uniform(-3, 5, 30)
        data = replace(random_data(seed, n_features=2, n_samples=30), weights=weights)
        problem = build_problem(data, score)
        best = max(problem.rescore(problem.candidates.structure(c)) for c in all_choices(problem.candidates))
        result = proved(data, score, tmp_path / "proof.npz")
        assert verify(result, tmp_path / "proof.npz", data).bound >= best
        assert result.bound >= best


def test_a_bound_that_is_not_proved_is_refused(tmp_path):
    path = tmp_path / "proof.npz"
    for score in (Score(p=0.9), Score(name="cll"), Score(p=0.9, max_parents=3)):
        data = random_data(4, n_features=5, n_samples=40)
        result = proved(data, score, path, root_only=True)
        assert result.gap.absolute > 1e-3
        lower = saying(result, bound=(result.objective + result.bound) / 2)
        refused(path, lower, data, "proves the bound")


def test_other_runs_certificates_are_refused(case, tmp_path):
    data, result, _, _ = case
    path = tmp_path / "proof.npz"
    for other, score, rules, words in (
        (random_data(5, n_features=5, n_samples=40), Score(p=0.9), None, "other data than the result"),
        (data, Score(p=0.8), None, "choice of score"),
        (data, Score(name="sbm", p=0.9), None, "choice of score"),
        (data, Score(p=0.9, penalty=0.1), None, "choice of score"),
        (data, Score(p=0.9), Constraints(forbidden=(("X1", "X2"),)), "choice of constraints"),
    ):
        proved(other, score, path, constraints=rules, root_only=True)
        refused(path, result, data, words)


def test_a_restricted_runs_proof_under_a_free_header_is_refused(tmp_path):
    """A false header does not make the arrays prove more than they do."""
    data, path = random_data(4, n_features=5, n_samples=40), tmp_path / "proof.npz"
    rules = Constraints(fixed={f"X{i}": ("C",) for i in range(1, 6)})
    narrow = proved(data, Score(p=0.9), path, constraints=rules)
    _, arrays = load_proof(path)
    claim = replace(narrow, constraints=Constraints(), proved=None)
    assert narrow.bound < optimum(data, Score(p=0.9)).objective - 1
    refused(write(path, certificate_header(claim), arrays), claim, data, "certificate")


def test_any_change_of_a_certificate_or_of_what_a_result_says_of_it_is_refused(case, tmp_path):
    """That includes changes that leave a valid proof: another dual weight, one fixing less, another run's proof."""
    data, result, header, arrays = case
    path = write(tmp_path / "c.npz", header, arrays)
    assert verify(result, path, data)
    with np.load(path) as file:
        sealed = dict(file)
    for name, values in sealed.items():
        if values.size:
            changed = values.copy()
            changed.flat[-1] = not changed.flat[-1] if changed.dtype == bool else changed.flat[-1] * 1.001 + 1
            np.savez(tmp_path / "changed.npz", **{**sealed, name: changed})
            refused(tmp_path / "changed.npz", result, data, "certificate")
        np.savez(tmp_path / "less.npz", **{key: a for key, a in sealed.items() if key != name})
        refused(tmp_path / "less.npz", result, data, "certificate")
    again = proved(data, result.score, tmp_path / "again.npz")
    assert verify(again, tmp_path / "again.npz", data)
    refused(tmp_path / "again.npz", result, data, "another run")
    lower = np.nextafter(result.bound, -np.inf)
    if lower >= result.objective:
        refused(path, saying(result, bound=lower), data, "claims the bound")
    values = result.to_dict()
    values["gap"]["absolute"] += 1.0
    refused(path, values, data, "the gap .absolute")
    # A certificate that is a moment newer than its result, after a kill.
    older = saying(result, bound=result.bound + 1.0, reason="feasible", limit="time")
    assert verify(older, path, data)
    refused(path, replace(older, limit="node"), data, "limit = 'node'")
    refused(path, replace(older, nodes=10**6), data, "has 1000000 nodes")


def test_what_a_running_search_wrote_is_verified(case, tmp_path):
    """A killed run's bound holds: for the result alone, with a newer certificate, and with one of the same moment."""
    data, result, header, arrays = case
    path = write(tmp_path / "c.npz", header, arrays)
    older = saying(result, bound=result.bound + 1.0, reason="running", limit=None, detail="")
    assert verify(older, path, data).bound <= older.bound
    running = saying(result, reason="running", limit=None, detail="")
    # A kill between the two files leaves a certificate that knows how the search ended.
    assert verify(running, path, data).bound <= running.bound
    path = write(tmp_path / "running.npz", certificate_header(running), arrays)
    beside, alone = (replace(verify(of, path, data), seconds=0.0) for of in (running, None))
    assert beside == alone
    assert verify(result, path, data).bound <= result.bound
    refused(path, saying(result, bound=result.bound - 1e-3), data, "claims the bound|below the score")


def test_a_result_with_an_older_incumbent_is_verified_by_a_newer_certificate(tmp_path):
    """The fixings of the certificate hold for its own incumbent, not for the one of the result."""
    data = random_data(0, n_features=6, n_samples=40)
    score = Score(p=0.9)
    path = tmp_path / "c.npz"
    result = proved(data, score, path)
    assert verify(result, path, data).deletions
    empty = Structure.empty(data.names)
    worse = rescore(data, empty, score)
    older = saying(
        result,
        structure=empty,
        objective=worse,
        standard_error=standard_error(data, empty, score),
        **{"proved": None, "reason": "running", "limit": None, "detail": ""},
    )
    assert worse < result.objective
    assert verify(older, path, data).bound <= older.bound
    header, arrays = load_proof(path)
    forged = claiming(header, header["structure"], result.objective + 1.0, result.bound + 1.0)
    refused(
        write(tmp_path / "f.npz", forged, arrays), saying(older, bound=result.bound + 2.0), data, "scores"
    )
    refused(path, saying(older, bound=worse), data, "claims the bound|is below|only proves")


def test_files_that_are_no_certificates_are_refused(case, tmp_path):
    data, result, header, arrays = case
    path = write(tmp_path / "c.npz", header, arrays)
    content = path.read_bytes()
    refused(tmp_path / "absent.npz", result, data, "There is no certificate")
    for size in (0, 1, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        refused(path, result, data, "no readable certificate")
    path.write_text("{}")
    refused(path, result, data, "no readable certificate")
    refused(write(path, {**header, "version": VERSION - 1}, arrays), result, data, f"version {VERSION}")


@pytest.mark.parametrize(
    ("score", "rules"),
    [
        (SCORES[0], None),
        (SCORES[3], None),
        (SCORES[7], None),
        (SCORES[1], Constraints(max_children={"*": 1, "C": 3})),
    ],
    ids=["sm", "three parents", "cll", "limits"],
)
def test_no_corruption_proves_a_bound_below_the_optimum(score, rules, tmp_path):
    path = tmp_path / "c.npz"
    accepted = rejected = 0
    for seed in range(2):
        rng, draw = np.random.default_rng(seed), random.Random(seed)
        data = random_data(seed, n_features=4, n_samples=24)
        best = optimum(data, score, rules).objective
        result = proved(data, score, path, constraints=rules)
        header, arrays = load_proof(path)
        problem = build_problem(data, score, rules)
        worse = [
            structure
            for choice in all_choices(problem.candidates)[::501]
            if rescore(data, structure := problem.candidates.structure(choice), score) < best - 1e-3
            and problem.obeys(structure)
        ]
        for _ in range(20):
            changed = change_arrays(draw, arrays)
            claim = dict(header)
            if rng.random() < 0.6:
                # A false claim: a structure that is not optimal, and a bound below the optimum.
                own = worse[rng.integers(len(worse))]
                value = rescore(data, own, score)
                bound = value + rng.random() * (best - 1e-6 * max(1.0, abs(best)) - value)
                claim = claiming(header, own.to_mapping(), value, bound)
            try:
                checked = verify(claim, write(path, claim, changed), data)
            except InputError:
                rejected += 1
                continue
            accepted += 1
            assert claim["bound"] >= best - 1e-9
            assert checked.bound >= best - 1e-9
            assert result.bound >= best - 1e-9
    assert rejected > 20
    assert accepted > 0


def test_every_state_of_the_root_proves_its_bound() -> None:
    """A certificate may be saved at any moment, so that the proof is stored before its bound is reported."""
    data = random_data(5, n_features=8, n_samples=300)
    problem = build_problem(data, Score(p=0.95))
    start = Structure.naive_bayes(data.names)
    proof = Proof()
    seen = []

    class Watch(EventLog):
        def bound(self, value: float) -> None:
            (leaf,) = proof.leaves.values()
            point = np.zeros(problem.candidates.n_sets)
            point[leaf.parent_sets] = leaf.eta
            seen.append((value, len(leaf.parent_sets), float(point.sum())))
            assert leaf is root.weights

    root = Root(problem, start, proof=proof)
    root._per_slice = 1
    root.run(start, Watch())
    assert len(seen) > 1
    assert all(total == pytest.approx(data.n_variables) for _, _, total in seen)


@pytest.mark.parametrize(
    ("score", "kind"), [(Score(), FORESTS), (Score(max_parents=3), DAGS), (Score(max_parents=3), ANY)]
)
def test_weights_that_overflow_do_not_pass_as_a_node_without_structures(score, kind):
    """Sums beyond the range of float64 are inf or NaN, and NaN does not compare as larger than -inf."""
    rng = np.random.default_rng(kind)
    candidates = listed(Constraints(), ("X1", "X2", "X3", "C"), score)
    space = space_of(candidates)._replace(kind=kind)
    everything = np.ones(candidates.n_sets, dtype=bool)
    entries = np.arange(candidates.n_sets)
    for size in (1e151, 1.7e308, np.inf, np.nan):
        for _ in range(20):
            g = rng.normal(size=candidates.n_sets)
            huge = rng.random(len(g)) < rng.choice([0.1, 0.5, 1.0])
            huge[rng.integers(len(g))] = True
            signs = [[-1.0, 1.0], [-1.0]][
                rng.integers(2)
            ]  # negative sums are the ones that look like no structure
            g[huge] = size * rng.choice(signs, int(huge.sum()))
            assert heaviest(space, g, everything, NO_EDGES, 0, 0.0) == np.inf
            assert unproved(space, g, everything, NO_EDGES, 0, entries, 1e308) >= 0
