"""Margin coefficients and tables against the formulas of Peharz and Pernkopf (2012, P12) in plain Python."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import dataset, heavy_enough, random_data

from milpbn.data.dataset import Dataset
from milpbn.problem.candidates import build_candidates
from milpbn.problem.counts import DENSE_CELLS_PER_SAMPLE, cell_limit, joint_states
from milpbn.problem.family_tables import active_columns, family_tables
from milpbn.problem.forecast import n_margin_rows, tables_bytes, tensor_bytes
from milpbn.problem.margins import margin_rows
from milpbn.problem.problem import build_problem
from milpbn.problem.products import coefficients
from milpbn.problem.scores.spec import Score


def wide_states(seed: int, n_states: int = 30, n_samples: int = 24, n_features: int = 3) -> Dataset:
    """Return data with so many states that dense tables would be larger than the data."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_states, (n_samples, n_features))
    codes[n_samples // 2 :, 0] = codes[: n_samples - n_samples // 2, 0]
    y = rng.integers(0, 3, n_samples)
    y[:3] = range(3)
    return dataset(
        np.column_stack([codes, y]), [n_states] * n_features + [3], rng.uniform(0.5, 2.0, n_samples)
    )


def log_theta(rows, weights, n_states, i, parents, a, row) -> float:
    """P12 (2) with Laplace smoothing: log (n_{j|h} + a) / (n_h + a sp(X_i)) for one row, from fresh counts."""
    same = [w for r, w in zip(rows, weights, strict=True) if all(r[p] == row[p] for p in parents)]
    both = [
        w
        for r, w in zip(rows, weights, strict=True)
        if r[i] == row[i] and all(r[p] == row[p] for p in parents)
    ]
    return log((sum(both) + a) / (sum(same) + a * n_states[i]))


def expected_sm(data: Dataset, m: int, c: int, i: int, parents, a: float) -> float:
    """alpha(i, k, m, c), P12 (12)."""
    rows = [tuple(r) for r in data.codes.tolist()]
    arguments = (rows, data.weights.tolist(), data.n_states.tolist(), i, parents, a)
    return log_theta(*arguments, rows[m]) - log_theta(*arguments, (*rows[m][:-1], c))


def expected_sbm(data: Dataset, m: int, i: int, parents, a: float) -> float:
    """abar(i, k, m), P12 (23): the class re-read as {c_m, not c_m}."""
    true = int(data.y[m])
    rows = [(*r[:-1], int(r[-1] != true)) for r in data.codes.tolist()]
    n_states = [*data.n_states.tolist()[:-1], 2]
    arguments = (rows, data.weights.tolist(), n_states, i, parents, a)
    return log_theta(*arguments, (*rows[m][:-1], 0)) - log_theta(*arguments, (*rows[m][:-1], 1))


DATA = [
    random_data(1, n_samples=12),
    random_data(2, n_samples=12, n_classes=2, weights=True),
    random_data(3, n_samples=10, n_classes=4, weights=True),
    wide_states(4),
]


@pytest.mark.parametrize("data", DATA, ids=["unit", "two classes", "weights", "sparse tables"])
@pytest.mark.parametrize("smoothing", [1.0, 0.2])
def test_coefficients_are_those_of_the_paper(data: Dataset, smoothing: float) -> None:
    for name in ("sm", "sbm"):
        score = Score(name=name, smoothing=smoothing, max_parents=3)
        candidates = build_candidates(data.names, score)
        rows = margin_rows(data, candidates, score)
        for k, p in enumerate(rows.columns):
            i, parents = int(candidates.variable[p]), candidates.flat[p]
            for m in range(0, data.n_samples, 3):
                if name == "sbm":
                    expected = [expected_sbm(data, m, i, parents, smoothing)]
                else:
                    rivals = [c for c in range(data.n_classes) if c != data.y[m]]
                    expected = [expected_sm(data, m, c, i, parents, smoothing) for c in rivals]
                assert rows.alpha[m, :, k] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("data", DATA, ids=["unit", "two classes", "weights", "sparse tables"])
def test_other_sets_have_no_coefficients(data: Dataset) -> None:
    """P12, footnote 1: alpha is 0 for a feature's set without the class."""
    score = Score(max_parents=3)
    candidates = build_candidates(data.names, score)
    active = set(active_columns(candidates).tolist())
    for p, parents in enumerate(candidates.flat):
        i = int(candidates.variable[p])
        if p not in active:
            assert all(expected_sm(data, m, c, i, parents, 1.0) == 0 for m in range(4) for c in range(2))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 3))
def test_joint_states_that_occur_are_numbered(seed: int, n_states: int, n_members: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_states, (20, 4)).astype(np.int32)
    members = tuple(range(n_members))
    index, size = joint_states(codes, members, np.full(4, n_states))
    assert index.min() >= 0
    assert index.max() < size
    seen = Counter(zip(map(tuple, codes[:, :n_members].tolist()), index.tolist(), strict=True))
    assert len(seen) == len({t for t, _ in seen}) == len({number for _, number in seen})
    limit = max(DENSE_CELLS_PER_SAMPLE * 20, 4096)
    assert size == (n_states**n_members if n_states**n_members <= limit else size) <= limit
    if n_states**n_members > limit:
        assert size <= max(20, 4096)


@pytest.mark.parametrize("binary", [False, True])
def test_tables_do_not_outgrow_the_data(binary: bool) -> None:
    data = wide_states(5, n_states=60, n_samples=40)
    candidates = build_candidates(data.names, Score(max_parents=3))
    tables = family_tables(data, candidates, Score(name="sbm" if binary else "sm"))
    # A feature with two feature parents has 60**3 joint states; a domain has at most 4096 dense cells.
    per_state = data.n_classes if binary else 1
    assert tables.sizes.max() <= cell_limit(data.n_samples) * per_state == 4096 * per_state
    assert len(tables.values) == tables.sizes[tables.domain].sum()
    numbered = 0
    for k, p in enumerate(tables.columns):
        members = {int(candidates.variable[p]), *candidates.flat[p]} - {3}
        cells = tables.cells(int(tables.domain[k]))
        assert cells.min() >= 0
        assert cells.max() < tables.sizes[tables.domain[k]]
        if len(members) == 3:
            numbered += 1
            assert tables.sizes[tables.domain[k]] <= data.n_samples * per_state
        # Two samples share a cell if and only if they agree in the domain's variables (and under SBM in the class).
        keys = [tuple(row[j] for j in sorted(members)) + (row[3],) * binary for row in data.codes.tolist()]
        assert len({*zip(keys, cells.tolist(), strict=True)}) == len({*keys}) == len({*cells.tolist()})
    assert numbered > 0
    assert n_margin_rows(data, Score()) == 40 * 2
    assert n_margin_rows(data, Score(name="sbm")) == 40


def test_families_over_the_same_variables_share_a_domain() -> None:
    data = random_data(11)
    candidates = build_candidates(data.names, Score(max_parents=2))
    tables = family_tables(data, candidates, Score())
    members = [frozenset((int(candidates.variable[p]), *candidates.flat[p])) - {3} for p in tables.columns]
    domain_of = dict(zip(members, tables.domain.tolist(), strict=True))
    assert [domain_of[m] for m in members] == tables.domain.tolist()
    assert len(set(domain_of.values())) == len(domain_of) == len(tables.sizes)
    for m, d in domain_of.items():
        assert tables.sizes[d] == np.prod(data.n_states[sorted(m)])


def test_a_selection_of_parent_sets_keeps_its_coefficients() -> None:
    data = random_data(12, n_samples=20)
    candidates = build_candidates(data.names, Score())
    tables = family_tables(data, candidates, Score())
    entries = np.random.default_rng(1).random(candidates.n_sets) < 0.5
    few = tables.keep(entries)
    alpha, fewer_alpha = coefficients(tables), coefficients(few)
    place = 0
    for k, p in enumerate(tables.columns):
        if entries[p]:
            assert few.columns[place] == entries[:p].sum()
            np.testing.assert_array_equal(fewer_alpha[:, :, place], alpha[:, :, k])
            place += 1
    assert len(few.columns) == place


@pytest.fixture(scope="module")
def compiled() -> None:
    """Compile the kernels of the coefficients, whose memory is not that of the tables."""
    data = random_data(7)
    assert margin_rows(data, build_candidates(data.names, Score()), Score()).alpha.size


@pytest.mark.parametrize(
    ("score", "wide", "tensor"),
    [  # every pair of values
        (Score(max_parents=3), False, False),
        (Score(max_parents=3), True, True),
        (Score(name="sbm", max_parents=3), False, True),
        (Score(name="sbm", max_parents=3), True, False),
        (Score(max_parents=3, leave_one_out=True), False, False),
        (Score(max_parents=3, leave_one_out=True), True, True),
    ],
)
@pytest.mark.usefixtures("compiled")
def test_memory_forecast_is_within_a_fifth(score: Score, wide: bool, tensor: bool) -> None:
    data = (
        wide_states(6, n_states=25, n_samples=3000, n_features=7)
        if wide
        else random_data(7, n_features=10, max_states=8, n_samples=3000, n_classes=4).merged
    )
    data = heavy_enough(data, score)
    candidates = build_candidates(data.names, score)

    def build() -> None:
        rows = margin_rows(data, candidates, score)
        if tensor:
            assert rows.alpha.nbytes == 8 * rows.n_rows * len(rows.columns)

    tracemalloc.start()
    build()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    forecast = tensor_bytes if tensor else tables_bytes
    assert forecast(data, candidates, score) == pytest.approx(peak, rel=0.2)


@pytest.mark.parametrize("name", ["sm", "sbm"])
@pytest.mark.parametrize("data", DATA, ids=["unit", "two classes", "weights", "sparse tables"])
def test_margins_come_without_the_tensor(name: str, data: Dataset) -> None:
    """Log-margins and value at a point equal those of the dense product, but the tensor is not built for them."""
    problem = build_problem(data, Score(name=name, max_parents=3))
    margins = problem.margins
    rng = np.random.default_rng(2)
    for _ in range(3):
        eta = np.where(
            rng.random(problem.candidates.n_sets) < 0.5, rng.normal(size=problem.candidates.n_sets), 0
        )
        found, value = margins.log_margins(eta), margins.value(eta)
        assert "alpha" not in margins.tables.__dict__
        fresh = margin_rows(problem.data, problem.candidates, problem.score)
        expected = (fresh.alpha @ eta[fresh.columns]).min(axis=1)
        assert found == pytest.approx(expected, abs=1e-9)
        assert value == pytest.approx(margins.weights @ np.minimum(margins.softening.cap, expected))
        assert margins.parts(eta) == pytest.approx(np.minimum(margins.softening.cap, expected))
        hard = replace(margins, kind=Score(name="hard-margin").kind)
        assert hard.value(eta) == pytest.approx(expected.min())
    assert margins.n_rows == margins.n_samples * (1 if name == "sbm" else data.n_classes - 1)


def test_gammas_share_the_coefficients() -> None:
    data = random_data(9)
    problem = build_problem(data, Score(p=0.8))
    other = problem.with_p(0.95)
    assert other.margins.alpha is problem.margins.alpha  # made once, for all values of p
    assert other.score.p == 0.95
    assert other.score.gamma == other.margins.softening.cap == pytest.approx(log(19))
    assert problem.score.gamma == pytest.approx(log(4))
    fresh = build_problem(data, Score(p=0.95))
    np.testing.assert_array_equal(other.margins.alpha, fresh.margins.alpha)
