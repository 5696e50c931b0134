"""Decomposable scores, AICc's correction, and tables with many joint parent states."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from running import dataset, random_data

from milpbn.errors import InputError
from milpbn.problem.candidates import build_candidates
from milpbn.problem.counts import family_counts, n_parameters
from milpbn.problem.problem import build_problem, local_terms, parameter_counts
from milpbn.problem.scores.aicc import AiccCurve
from milpbn.problem.scores.spec import Score

EVERYTHING = Score(name="ll", parent_sets="all", max_parents=3)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.floats(0.2, 8.0))
def test_terms_of_families_equal_those_of_the_oracle(seed: int, weights: bool, ess: float) -> None:
    """The score of a structure is the sum of its families' terms."""
    data = random_data(seed, weights=weights)
    candidates = build_candidates(data.names, EVERYTHING)
    likelihood = local_terms(data, candidates, Score(name="ll").kind)[0]
    prior = local_terms(data, candidates, Score(name="bdeu", equivalent_sample_size=ess).kind)[0]
    empty = ((),) * data.n_variables
    for values, name in ((likelihood, "ll"), (prior, "bdeu")):
        nothing = oracle.score_structure(data, empty, name, ess=ess)
        for p, s in enumerate(candidates.flat):
            i = int(candidates.variable[p])
            parents = [() if j != i else s for j in range(data.n_variables)]
            gain = oracle.score_structure(data, parents, name, ess=ess) - nothing
            base = values[candidates.position(i, ())]
            assert values[p] - base == pytest.approx(gain, abs=1e-9)


def test_parameters_are_counted_over_all_parent_states() -> None:
    data = random_data(4, n_features=4, max_states=4)
    r = data.n_states
    assert n_parameters(data, 0, ()) == r[0] - 1
    assert n_parameters(data, 1, (0, 4)) == (r[1] - 1) * r[0] * r[4]


def test_very_many_parent_states_are_counted() -> None:
    """Parent states that do not occur have no row and add nothing."""
    rng = np.random.default_rng(1)
    data = dataset(
        np.column_stack([rng.integers(0, 50, (30, 4)), rng.integers(0, 2, 30)]), [50, 50, 50, 50, 2]
    )
    counts = family_counts(data, 0, (1, 2, 3))
    assert counts.shape[0] <= 4096
    assert counts.sum() == 30
    candidates = build_candidates(data.names, EVERYTHING)
    parents = ((1, 2, 3), (), (), (), ())
    for name in ("ll", "bdeu"):
        values = local_terms(data, candidates, Score(name=name).kind)[0]
        total = sum(values[candidates.position(i, s)] for i, s in enumerate(parents))
        assert total == pytest.approx(oracle.score_structure(data, parents, name))


@pytest.mark.parametrize("total", [10.0, 10.5, 33.2])
def test_correction_is_convex_and_exact(total: float) -> None:
    curve = AiccCurve(np.zeros(0), total)
    k = np.arange(0, math.ceil(total - 1))
    values = np.array([curve.correction(float(v)) for v in k])
    assert values == pytest.approx(k + k * (k + 1) / (total - k - 1))
    assert (np.diff(values, 2) > 0).all()
    assert curve.correction(total - 1) == math.inf
    assert curve.correction(total + 5) == math.inf


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 60), st.booleans())
def test_range_holds_exactly_the_defined_numbers(seed: int, n_samples: int, weights: bool) -> None:
    data = random_data(seed, n_samples=n_samples, weights=weights)
    candidates = build_candidates(data.names, Score(name="aicc"))
    total = float(data.weights.sum())
    curve = AiccCurve(parameter_counts(data, candidates), total)
    sizes = [[n_parameters(data, i, s) for s in sets] for i, sets in enumerate(candidates.sets)]
    low, most = sum(map(min, sizes)), sum(map(max, sizes))
    if low >= total - 1:
        with pytest.raises(InputError, match=r"AICc is defined for fewer than M - 1"):
            curve.range(candidates.offsets)
        return
    first, last = curve.range(candidates.offsets)
    assert first == low
    assert last <= most
    assert last < total - 1
    assert last == most or last + 1 >= total - 1


def test_problem_adds_up_the_linear_terms() -> None:
    data = random_data(5, weights=True)
    total = float(data.weights.sum())
    for score, per_parameter in (
        (Score(name="mdl"), 0.5 * math.log(total)),
        (Score(name="aic"), 1.0),
        (Score(name="ll"), 0.0),
        (Score(hybrid=0.5, penalty="bic"), 0.5 * math.log(total)),
        (Score(hybrid=0.5, penalty="aic"), 1.0),
        (Score(penalty=0.25), 0.25),
    ):
        problem = build_problem(data, score)
        likelihood = local_terms(data, problem.candidates, Score(name="ll").kind)[0]
        factor = score.hybrid if score.is_margin else 1.0
        expected = factor * likelihood - per_parameter * parameter_counts(data, problem.candidates)
        np.testing.assert_allclose(problem.linear, expected, rtol=1e-12, atol=1e-9)
