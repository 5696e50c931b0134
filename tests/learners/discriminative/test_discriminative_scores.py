"""Incremental scores, their bounds and the choice of the best change, against scores from scratch."""

from __future__ import annotations

import numpy as np
import plain_scores
import pytest
from running import dataset, random_data

from milpbn.errors import InputError
from milpbn.learners.discriminative.discriminative_scores import ChangingScore, Criterion
from milpbn.learners.discriminative.family_changes import Estimation, FamilyChanges
from milpbn.network import Structure, evaluate

CRITERIA = [Criterion("cr"), Criterion("cl"), Criterion("mm", 0.7), Criterion("mm", 20.0)]
N = 4


def make(seed: int, criterion: Criterion, folded: bool, zero: float | None = None, parallel: bool = False):
    data = random_data([5, seed], n_features=N, max_states=4, n_samples=50, weights=bool(seed % 2))
    fold = np.random.default_rng(seed).integers(3, size=data.n_samples) if folded else None
    families = FamilyChanges(data, Estimation(zero_probability=zero), fold, parallel=parallel)

    def plain(parents) -> float:
        return plain_scores.score(data, parents, criterion.name, criterion.gamma, fold=fold, zero=zero)

    return ChangingScore(families, criterion), plain


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("zero", [None, 1e-5])
def test_scores_bounds_and_the_best_change_equal_plain_code(
    criterion: Criterion, folded: bool, zero: float | None
) -> None:
    ruled_out = 0
    for seed in range(4):
        score, plain = make(seed, criterion, folded, zero)
        rng = np.random.default_rng(seed)
        parents = [()] * N
        assert score.value == pytest.approx(plain(parents), abs=1e-9)
        for child in (1, 2, 3):
            sets = [(j,) for j in range(N) if j != child] + [(0, (child + 1) % N or 1)]
            changes = score.families.changes([(child, s) for s in sets])
            trials = [[s if i == child else p for i, p in enumerate(parents)] for s in sets]
            # The graph may have a cycle on the way: a score needs none. The plain one refuses it.
            plain_values = np.array([plain(t) if acyclic(score, t) else np.nan for t in trials])
            values = score.scores(changes, np.arange(len(sets)))
            known = ~np.isnan(plain_values)
            assert known.any()
            np.testing.assert_allclose(values[known], plain_values[known], atol=1e-9)
            bounds = score.bounds(changes, np.ones(len(sets), dtype=bool))
            assert (bounds >= values - 1e-9).all()
            ruled_out += int((bounds < values.max()).sum())
            alive = known & (rng.random(len(sets)) < 0.8)
            best = score.best(changes, alive)
            top = values[alive].max(initial=-np.inf)
            if top <= score.value + 1e-9:
                assert best is None
                continue
            assert best is not None
            column, value = best
            assert column == np.flatnonzero(alive & (values >= top - 1e-9))[0]
            assert value == pytest.approx(values[column], abs=1e-9)
            score.move(score.added(changes, [column]))
            parents = trials[column]
            assert score.value == pytest.approx(plain(parents), abs=1e-9)
    assert criterion.name == "cr" or ruled_out > 0


def acyclic(score: ChangingScore, parents) -> bool:
    try:
        Structure(score.data.names, (*((*p, N) for p in parents), ()))
    except InputError:
        return False
    return True


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
def test_many_columns_are_scored_in_the_order_of_their_bounds(criterion: Criterion) -> None:
    """More columns than a batch: the best is that of all, and not all were scored where bounds are good."""
    data = random_data([6, 1], n_features=14, n_samples=120)
    score = ChangingScore(FamilyChanges(data, Estimation()), criterion)
    changes = score.families.changes([(i, (j,)) for i in range(14) for j in range(14) if i != j])
    values = score.scores(changes, np.arange(14 * 13))
    before = score.evaluations
    best = score.best(changes)
    assert best is not None
    assert best[0] == np.flatnonzero(values >= values.max() - 1e-9)[0]
    if criterion.name != "cr":
        assert score.evaluations - before < 14 * 13
    assert score.best(changes, stopping=lambda: True) is None


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
def test_threads_change_no_score(criterion: Criterion) -> None:
    results = []
    for parallel in (False, True):
        score, _ = make(2, criterion, True, parallel=parallel)
        changes = score.families.changes([(0, (1,)), (0, (2, 3)), (1, (0,))])
        results.append((score.scores(changes, np.arange(3)), score.bounds(changes, np.ones(3, dtype=bool))))
    for one, many in zip(*results, strict=True):
        np.testing.assert_allclose(one, many, rtol=1e-13)


def test_ties_of_the_rate_go_to_the_first_class_as_in_prediction() -> None:
    rows = [(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1), (0, 1, 0), (1, 1, 0)]
    data = dataset(rows, weights=[1, 1, 2, 2, 1, 1, 1, 1])
    score = ChangingScore(FamilyChanges(data, Estimation()), Criterion("cr"))
    classifier = Estimation().classifier(data, Structure.naive_bayes(data.names))
    joint = classifier.predict_log_joint(data)
    assert (np.abs(joint[:, 0] - joint[:, 1]) < 1e-12).all()
    assert score.value == 5.0
    assert score.value == pytest.approx(evaluate(classifier, data).accuracy * data.weights.sum())
    changes = score.families.changes([(0, (1,)), (1, (0,))])
    np.testing.assert_array_equal(score.scores(changes, np.arange(2)), [5.0, 5.0])


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.inf, np.nan])
def test_gamma_must_be_positive(gamma: float) -> None:
    with pytest.raises(InputError, match="gamma"):
        Criterion("mm", gamma)
