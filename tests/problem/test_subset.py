"""Representative samples: weights, the search over them, and what the result claims."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import random_dataset
from running import best_of_all

from milpbn import Score, rescore, solve
from milpbn.claims.result import Result
from milpbn.errors import InputError
from milpbn.network.cpt import class_log_joint, fit_cpts
from milpbn.network.margins import log_margins
from milpbn.problem import subset
from milpbn.problem.problem import build_problem
from milpbn.problem.subset import Subset, representative_weights


@pytest.fixture
def data():
    return random_dataset(np.random.default_rng(5), 3, 3, 4, 150, weights=True).merged


def test_weights_keep_every_class_and_choose_rows(data):
    weights = representative_weights(data, 12)
    assert np.count_nonzero(weights) <= 12
    assert (weights >= 0).all()
    for c in range(data.n_classes):
        mine = data.y == c
        assert weights[mine].sum() == pytest.approx(data.weights[mine].sum())
        assert np.count_nonzero(weights[mine]) >= 1
    assert np.array_equal(weights, representative_weights(data, 12))


def test_groups_are_of_similar_rows(data):
    # Each row is no further from its nearest representative than from a random choice of as many, on average.
    def spread(weights):
        total = 0.0
        for c in range(data.n_classes):
            mine, chosen = data.y == c, (data.y == c) & (weights > 0)
            away = (data.X[mine][:, None] != data.X[chosen][None]).sum(axis=2).min(axis=1)
            total += data.weights[mine] @ away
        return total

    rng = np.random.default_rng(0)
    weights = representative_weights(data, 12)
    for _ in range(10):
        other = np.zeros(data.n_samples)
        for c in range(data.n_classes):
            mine = np.flatnonzero(data.y == c)
            n = np.count_nonzero(weights[mine])
            other[rng.choice(mine, n, replace=False)] = 1
        assert spread(weights) < spread(other)


def test_enough_samples_are_all_samples(data):
    assert np.array_equal(representative_weights(data, data.n_samples), data.weights)


def test_too_few_samples_are_refused(data):
    with pytest.raises(InputError, match="classes"):
        representative_weights(data, data.n_classes - 1)


@pytest.mark.parametrize("name", ["sm", "sbm", "cll"])
def test_the_best_structure_of_the_subset_is_found(data, name):
    score, weights = Score(name=name), representative_weights(data, 20)
    problem = build_problem(data, score, subset=Subset(20))
    np.testing.assert_array_equal(problem.sample_weights, weights)
    best = best_of_all(problem)
    for backend in ("native", "highs"):
        result = solve(data, score, subset=20, backend=backend)
        assert result.subset.optimal
        assert result.subset.samples == np.count_nonzero(weights)
        assert result.subset.objective == pytest.approx(best, rel=1e-6, abs=1e-6)
        assert result.subset.bound >= best - 1e-9
        # Of all data there are a score and a bound on all scores.
        assert result.objective == pytest.approx(rescore(data, result.structure, score))
        assert result.bound >= best_of_all(build_problem(data, score)) - 1e-9
        assert result.gap.absolute == result.bound - result.objective
        assert result.reason == "feasible"
        assert Result.from_dict(result.to_dict()).subset == result.subset


def test_parameters_are_those_of_all_data(data):
    score = Score(p=0.9)
    result = solve(data, score, subset=20)
    weights = representative_weights(data, 20)
    margins = log_margins(
        class_log_joint(data.codes, result.structure, fit_cpts(data, result.structure, 1.0), data.n_classes),
        data.y,
    )
    assert result.subset.objective == pytest.approx(weights @ np.minimum(margins, score.gamma))


def test_a_subset_of_all_samples_has_the_bound_of_all(data):
    whole, subset = solve(data), solve(data, subset=10**6)
    assert subset.objective == pytest.approx(whole.objective)
    assert subset.subset.bound == pytest.approx(whole.bound, rel=1e-6)


def test_impossible_sizes_are_refused(data, tmp_path):
    with pytest.raises(InputError, match="mdl"):
        solve(data, "mdl", subset=10)
    with pytest.raises(InputError, match="at least 1"):
        solve(data, subset=0)


def test_of_many_rows_a_sample_is_grouped(monkeypatch):
    data = random_dataset(np.random.default_rng(6), 5, 2, 4, 400, weights=True).merged
    monkeypatch.setattr(subset, "MOST_ROWS", 30)
    weights = representative_weights(data, 12)
    assert 2 <= np.count_nonzero(weights) <= 12
    for c in range(2):
        assert weights[data.y == c].sum() == pytest.approx(data.weights[data.y == c].sum())
    assert np.array_equal(weights, representative_weights(data, 12))
    monkeypatch.undo()
    assert not np.array_equal(weights, representative_weights(data, 12))
