"""CP-SAT's integer program: a relaxation with finite bounds, whose optimum is the MILP's up to rounding."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from backend_cases import SCORES, Recorder, installed, naive_bayes, optimum, small_formulation
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import random_dataset

from milpbn.errors import InputError
from milpbn.milp.formulation import Formulation, formulate
from milpbn.milp.milp import Milp
from milpbn.network.structure import topological_order
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score
from milpbn.solvers.base import Settings
from milpbn.solvers.support.column_bounds import finite_bounds, one_of_groups
from milpbn.solvers.support.integer_relaxation import integral_columns, relax_to_integers
from milpbn.solvers.support.repair import polish


def random_points(formulation: Formulation, rng: np.random.Generator, n: int) -> list[np.ndarray]:
    """Return the points of random structures."""
    candidates = formulation.problem.candidates
    points: list[np.ndarray] = []
    for _ in range(200):
        choice = np.array(
            [rng.integers(a, b) for a, b in zip(candidates.offsets, candidates.offsets[1:], strict=False)]
        )
        if topological_order([candidates.flat[p] for p in choice]) is not None:
            x = formulation.vector(candidates.structure(choice))
            # AICc is undefined for structures with too many parameters.
            if np.isfinite(x).all() and formulation.milp.violation(x) < 1e-9:
                points.append(x)
        if len(points) == n:
            break
    return points


@settings(max_examples=60, deadline=None)
@given(score=st.sampled_from(SCORES), seed=st.integers(0, 10_000))
def test_every_structure_stays_feasible_and_scores_no_less(score: str, seed: int) -> None:
    formulation = small_formulation(score, seed)
    milp = formulation.milp
    points = random_points(formulation, np.random.default_rng(seed), 8)
    relaxation = relax_to_integers(milp, milp.objective(points[0]) if seed % 2 and points else None)
    for x in points:
        y = relaxation.integers(x)
        activity = relaxation.A @ y
        assert (activity >= relaxation.row_lower).all()
        assert (activity <= relaxation.row_upper).all()
        assert (y >= 0).all()
        assert (y <= relaxation.upper).all()
        bound = relaxation.bound(float(relaxation.objective @ y))
        assert bound >= milp.objective(x) - 1e-12 * max(1.0, abs(milp.objective(x)))
        assert bound <= milp.objective(x) + 1e-4 * max(1.0, abs(milp.objective(x)))


@settings(max_examples=30, deadline=None)
@given(score=st.sampled_from(SCORES), seed=st.integers(0, 10_000))
def test_points_survive_the_way_to_integers_and_back(score: str, seed: int) -> None:
    formulation = small_formulation(score, seed)
    relaxation = relax_to_integers(formulation.milp)
    for x in random_points(formulation, np.random.default_rng(seed), 4):
        back = polish(formulation.milp, relaxation.point(relaxation.integers(x)))
        assert back == pytest.approx(x, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(score=st.sampled_from(SCORES), seed=st.integers(0, 10_000))
def test_finite_bounds_hold_for_every_structure(score: str, seed: int) -> None:
    formulation = small_formulation(score, seed)
    lower, upper = finite_bounds(formulation.milp)
    assert np.isfinite(lower).all()
    assert np.isfinite(upper).all()
    for x in random_points(formulation, np.random.default_rng(seed), 8):
        assert (x >= lower - 1e-9).all()
        assert (x <= upper + 1e-9).all()


def test_tau_bounds_use_that_one_set_is_chosen() -> None:
    formulation = small_formulation("sm", 3)
    margins = formulation.problem.margins
    assert margins is not None
    lower, _ = finite_bounds(formulation.milp)
    group = one_of_groups(formulation.milp)
    assert (group[: formulation.n_sets] >= 0).all()
    for m, x in enumerate(lower[formulation.tau]):
        rows = formulation.milp.A[
            [m * margins.alpha.shape[1] + r for r in range(margins.alpha.shape[1])]
        ].toarray()
        eta = -rows[:, : formulation.n_sets]
        least = sum(
            eta[:, group[: formulation.n_sets] == g].min(axis=1) for g in np.unique(group[group >= 0])
        )
        assert x == pytest.approx(min(least.min(), formulation.milp.upper[formulation.tau][m]), abs=1e-6)


def test_order_and_parameter_columns_stay_unscaled() -> None:
    formulation = small_formulation("aicc", 1)
    integral = integral_columns(formulation.milp)
    assert integral[formulation.order].all()
    assert integral[formulation.curve].tolist() == [True, False]
    assert not integral[: formulation.n_sets].any()


def one_column(row: float, side: tuple[float, float]) -> Milp:
    return Milp(
        c=np.array([1.0, 1.0]),
        constant=0.0,
        A=sp.csr_array(np.array([[row, 1.0]])),
        row_lower=np.array([side[0]]),
        row_upper=np.array([side[1]]),
        lower=np.array([-np.inf, 0.0]),
        upper=np.array([np.inf, 1.0]),
        integer=np.array([False, True]),
        column_names=["x", "b"],
        row_names=["r"],
    )


def test_a_column_without_bounds_gets_some_from_the_rows_or_is_refused() -> None:
    lower, upper = finite_bounds(one_column(0.5, (-np.inf, 3.0)))
    assert (lower[0], upper[0]) == (pytest.approx(4.0), pytest.approx(6.0))
    with pytest.raises(InputError, match=r"column x .* no finite bounds"):
        finite_bounds(one_column(0.5, (3.0, np.inf)))


def test_numbers_of_too_many_digits_are_refused() -> None:
    milp = small_formulation("sm", 2).milp
    tau = np.flatnonzero(~milp.integer & (milp.c != 0))
    c = milp.c.copy()
    c[tau[0]] = 1e16
    with pytest.raises(InputError, match="too coarse"):
        relax_to_integers(replace(milp, c=c), 1.0)


def test_a_complete_start_is_feasible_for_cp_sat(tmp_path: Path) -> None:
    backend = installed("cpsat")
    formulation = small_formulation("sm", 8)
    log = tmp_path / "log"
    backend.solve(formulation.milp, naive_bayes(formulation), Settings(log=log), Recorder(formulation.milp))
    assert "The solution hint is complete and is feasible" in log.read_text()


def test_optimum_near_zero_is_solved_again_with_a_finer_scale() -> None:
    formulation = small_formulation("sm", 9, gamma=4.6)
    # With an objective constant, the first scale is chosen without knowing the size of the optimum.
    best = optimum(formulation.milp)
    milp = replace(formulation.milp, constant=-best)
    start = naive_bayes(formulation)
    recorder = Recorder(milp)
    assert installed("cpsat").solve(milp, start, Settings(), recorder).finished
    recorder.check(0.0)
    assert min(recorder.bounds) - recorder.objective <= 1e-6


def test_cp_sat_runs_beside_highspy() -> None:
    import highspy

    assert highspy.Highs().version()
    milp = small_formulation("mdl", 2).milp
    recorder = Recorder(milp)
    assert installed("cpsat").solve(milp, None, Settings(), recorder).finished


def test_presolve_keeps_the_optimum() -> None:
    """CP-SAT 9.15 by default calls -6.097 optimal here (google/or-tools#5293)."""
    rng = np.random.default_rng(225)
    n_features, n_classes, n_samples = (
        int(rng.integers(2, 5)),
        int(rng.integers(2, 4)),
        int(rng.integers(15, 80)),
    )
    data = random_dataset(rng, n_features, n_classes, 3, n_samples, weights=bool(rng.integers(2)))
    score = Score(
        name="sbm", gamma=0.1, max_parents=int(rng.integers(1, 4)), class_parents=bool(rng.integers(2))
    )
    milp = formulate(build_problem(data, score)).milp
    recorder = Recorder(milp)
    assert installed("cpsat").solve(milp, None, Settings(), recorder).finished
    recorder.check(optimum(milp))
    assert recorder.objective == pytest.approx(-3.7573339860, abs=1e-6)
