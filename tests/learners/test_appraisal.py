"""Accuracies, and gaps between any structure and a bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
from running import random_data

import milpbn
from milpbn.data.dataset import MISSING
from milpbn.errors import InputError
from milpbn.learners.appraisal import appraise, suboptimality
from milpbn.learners.generative.forests import NaiveBayes, Tan
from milpbn.network.evaluation import accuracies, accuracy, evaluate
from milpbn.network.structure import Structure


def test_accuracy_counts_weights_and_takes_unseen_classes_for_errors() -> None:
    data = random_data(1, n_samples=40, weights=True)
    predictor = NaiveBayes().fit(data).predictor
    assert accuracy(predictor, data) == pytest.approx(evaluate(predictor, data).accuracy)  # type: ignore[arg-type]
    codes = data.codes.copy()
    codes[:10, -1] = -1
    partly = replace(data, codes=codes)
    seen = data.weights[10:].sum() / data.weights.sum()
    assert accuracy(predictor, partly) == pytest.approx(
        seen * accuracy(predictor, data.take(np.arange(10, 40)))
    )
    right = predictor.predict_codes(partly) == partly.y
    assert accuracies(predictor, partly) == (accuracy(predictor, partly), right.mean())
    assert accuracies(predictor, replace(partly, weights=np.full(40, 2.0))) == (right.mean(), None)
    codes[:10, -1] = MISSING
    assert accuracy(predictor, partly) == pytest.approx(accuracy(predictor, data.take(np.arange(10, 40))))
    codes[:, -1] = MISSING
    with pytest.raises(InputError, match="class"):
        accuracy(predictor, replace(data, codes=codes))


@pytest.mark.parametrize("name", ["sm", "sbm", "mdl"])
def test_gap_is_the_distance_to_the_optimum(name: str) -> None:
    data = random_data(2, n_features=3, n_samples=30)
    gamma = {"gamma": 1.5, "smoothing": 0.5} if name != "mdl" else {}
    score = milpbn.Score(name=name, max_parents=2, **gamma)
    result = milpbn.solve(data, score, backend="highs", root_bound=False, verbose=False)
    best = oracle.enumerate_best(data, name, gamma=score.gamma, smoothing=score.smoothing).objective
    structure = Tan(smoothing=3.0).fit(data).structure  # the bound's smoothing counts, not the learner's
    assert structure is not None
    found = suboptimality(data, structure, result, "'r.json'")
    expected = oracle.score_structure(
        data, structure.parents, name, gamma=score.gamma, smoothing=score.smoothing
    )
    assert found.score == pytest.approx(expected)
    assert found.gap is not None
    assert found.gap.absolute == pytest.approx(best - expected, abs=1e-5)
    assert best - expected > 1e-3


def test_no_gap_outside_the_candidates_of_the_bound() -> None:
    data = random_data(3, n_features=3, n_samples=30)
    result = milpbn.solve(
        data,
        milpbn.Score(max_parents=1, class_parents=False),
        backend="highs",
        root_bound=False,
        verbose=False,
    )
    tan, reverse = Tan().fit(data).structure, Structure(data.names, ((), (), (), (0,)))
    for structure, word in ((tan, "'X2'"), (reverse, "'C'")):
        found = suboptimality(data, structure, result, "'r.json'")
        assert found.gap is None
        assert word in found.reason
    free = Structure(data.names, ((), (0,), (), ()))  # under a margin score the same as no parents
    assert suboptimality(data, free, result, "'r.json'").gap is not None


def test_no_gap_where_aicc_has_no_value() -> None:
    data = random_data(4, n_features=3, n_classes=2, max_states=2, n_samples=10)
    result = milpbn.solve(
        data,
        milpbn.Score(name="aicc", max_parents=2, parent_sets="all"),
        backend="highs",
        root_bound=False,
        verbose=False,
    )
    full = Structure(data.names, ((3,), (0, 3), (0, 3), ()))
    found = suboptimality(data, full, result, "'r.json'")
    assert found.score == -np.inf
    assert found.gap is None
    assert "aicc" in found.reason


def test_bounds_of_other_data_are_refused() -> None:
    data, other = random_data(5), random_data(6)
    result = milpbn.solve(data, milpbn.Score(max_parents=1), backend="highs", root_bound=False, verbose=False)
    structure = Structure.naive_bayes(data.names)
    with pytest.raises(InputError, match="other data"):
        suboptimality(other, structure, result, "'r.json'")
    with pytest.raises(InputError, match="no bound"):
        suboptimality(data, structure, replace(result, bound=None), "'r.json'")


def test_one_call_learns_counts_and_states_the_gap() -> None:
    data, test = random_data(5, n_samples=60), random_data(5, n_samples=60)
    result = milpbn.solve(data, milpbn.Score(max_parents=2), backend="highs", root_bound=False, verbose=False)
    found = appraise(Tan, data, test, options={"smoothing": 2.0}, result=result)
    document = found.to_dict()
    assert document["learner"] == {"name": "tan", "smoothing": 2.0}
    assert document["accuracy"] == {"training": found.training, "test": found.test}
    assert found.training == accuracy(found.learned.predictor, data)
    assert found.suboptimality == suboptimality(data, found.learned.structure, result, "")
    assert document["gap"]["absolute"] == found.suboptimality.gap.absolute
    assert document["data"]["sha256"] == data.sha256
    with pytest.raises(InputError, match="other data"):
        appraise(Tan, random_data(6), result=result)
