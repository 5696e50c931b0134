"""Log-joints of rows with missing values beside sums over all their completions."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from milpbn.data.dataset import MISSING, UNKNOWN, Dataset
from milpbn.errors import InputError
from milpbn.learners.generative.multinet import MultinetLearner
from milpbn.network import Classifier, Cpt, PseudoClassifier, Structure, class_log_joint, evaluate
from milpbn.network.inference import log_joint_of_rows, rows


def random_rows(classifier: Classifier, seed: int, count: int = 30) -> np.ndarray:
    """Return codes in which about a third of the values are missing or unseen."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(MISSING, v.n_states, count) for v in classifier.variables]).astype(
        np.int32
    )


def predict(classifier: Classifier, codes: np.ndarray) -> np.ndarray:
    return classifier.predict_log_joint(Dataset("rows", classifier.variables, codes, np.ones(len(codes))))


@pytest.mark.parametrize("by_pattern", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_missing_features_are_summed_over(
    random_network, enumerate_joint, monkeypatch, seed, by_pattern
) -> None:
    monkeypatch.setattr(rows, "_OVERHEAD", 0 if by_pattern else math.inf)
    monkeypatch.setattr(rows, "_NUMBERS", 500)  # so that few rows are computed together
    classifier = random_network(seed, zeros=seed % 5 == 0)
    codes = random_rows(classifier, seed)
    found = predict(classifier, codes)
    last = len(classifier.variables) - 1
    for row, logs in zip(codes, found, strict=True):
        known = {i: int(code) for i, code in enumerate(row[:-1]) if code != MISSING}
        for c, log in enumerate(logs):
            expected = math.fsum(enumerate_joint(classifier, {**known, last: c}).values())
            if expected == 0:
                assert log == -math.inf
            else:
                assert log == pytest.approx(math.log(expected), abs=1e-12)


def test_complete_rows_keep_their_numbers_to_the_last_bit(random_network) -> None:
    classifier = random_network(4)
    codes = np.maximum(random_rows(classifier, 1), UNKNOWN)
    expected = class_log_joint(codes, classifier.structure, classifier.cpts, len(classifier.classes))
    assert np.array_equal(predict(classifier, codes), expected)
    mixed = codes.copy()
    mixed[::2, 0] = MISSING
    assert np.array_equal(predict(classifier, mixed)[1::2], expected[1::2])


def test_a_row_without_features_has_the_probabilities_of_the_classes(random_network) -> None:
    classifier = random_network(8)
    nothing = np.full((2, len(classifier.variables)), MISSING, dtype=np.int32)
    expected = np.log(list(classifier.posterior("class").values()))
    assert np.allclose(predict(classifier, nothing), expected, rtol=0, atol=1e-13)


def test_trees_of_many_features_take_no_more_than_their_families() -> None:
    """57 features in a tree given the class: the largest factor has a feature, its parent and the class."""
    n, rng = 57, np.random.default_rng(0)
    names = (*(f"x{i}" for i in range(n)), "class")
    parents = [(n,), *((int(rng.integers(i)), n) for i in range(1, n)), ()]
    sizes = [*rng.integers(2, 6, n).tolist(), 3]
    cpts = [Cpt(i, p, rng.dirichlet(np.ones(sizes[i]), [sizes[j] for j in p])) for i, p in enumerate(parents)]
    codes = np.column_stack([rng.integers(0, s, 200) for s in sizes]).astype(np.int32)
    codes[rng.random(codes.shape) < 0.3] = MISSING
    planned = rows.Planner(cpts, n + 1).plan(codes.astype(np.intp), np.ones(n + 1, dtype=bool), [n])
    assert planned.order.largest <= 5 * 5 * 3
    assert sorted(planned.order.variables) == list(range(n))
    found = log_joint_of_rows(codes, names, cpts, 3)
    # By messages from the leaves to the root, one row at a time.
    for row, logs in zip(codes[:20], found, strict=False):
        messages = [np.ones((s, 3)) for s in sizes[:-1]]
        for i in reversed(range(n)):
            mine = (
                messages[i]
                if row[i] == MISSING
                else np.where(np.arange(sizes[i])[:, None] == row[i], messages[i], 0)
            )
            table = cpts[i].table  # parents in ascending order: the feature, then the class
            if i:
                messages[parents[i][0]] *= np.einsum("pcx,xc->pc", table, mine)
            else:
                total = np.einsum("cx,xc->c", table, mine) * cpts[n].table
        assert logs == pytest.approx(np.log(total), rel=1e-11)


def test_sums_of_a_pseudo_tan_are_over_its_own_tables(random_network) -> None:
    """Tables with a cycle: the classes' sums are those over all completions."""
    rng = np.random.default_rng(2)
    variables = random_network(7).variables[:2] + random_network(7).variables[-1:]
    sizes = [v.n_states for v in variables]
    cpts = tuple(
        Cpt(i, p, rng.dirichlet(np.ones(sizes[i]), [sizes[j] for j in p]))
        for i, p in enumerate([(1, 2), (0, 2), ()])
    )
    model = PseudoClassifier(variables, cpts)
    codes = np.array([[MISSING, 1, 0], [0, MISSING, 0], [MISSING, MISSING, 0]], dtype=np.int32)
    found = model.predict_log_joint(Dataset("rows", variables, codes, np.ones(3)))
    for row, logs in zip(codes, found, strict=True):
        choices = [range(sizes[i]) if row[i] == MISSING else [row[i]] for i in range(2)]
        for c, log in enumerate(logs):
            terms = [
                cpts[0].table[b, c, a] * cpts[1].table[a, c, b] * cpts[2].table[c]
                for a, b in itertools.product(*choices)
            ]
            assert log == pytest.approx(math.log(math.fsum(terms)), abs=1e-12)


def test_multinets_sum_over_missing_features(make_data) -> None:
    data = make_data(3, samples=200)
    model = MultinetLearner().fit(data).predictor
    codes = data.codes[:4].copy()
    codes[:, 1] = MISSING
    found = model.predict_log_joint(replace(data, codes=codes, weights=np.ones(4)))
    every = []
    for state in range(data.variables[1].n_states):
        codes[:, 1] = state
        every.append(model.predict_log_joint(replace(data, codes=codes.copy(), weights=np.ones(4))))
    assert np.allclose(found, np.logaddexp.reduce(every), rtol=0, atol=1e-12)


def test_evaluation_counts_missing_values_apart(make_data) -> None:
    data = make_data(1)
    classifier = Classifier.fit(data, Structure.naive_bayes(data.names))
    partly = replace(data, codes=data.codes.copy())
    partly.codes[:7, 0] = MISSING
    partly.codes[5:9, 1] = UNKNOWN
    found = evaluate(classifier, partly)
    assert found.missing_values == {"x0": 7}
    assert found.unknown_values == {"x1": 4}
    assert found.to_dict()["missing_values"] == {"x0": 7}


def test_codes_out_of_range_are_refused(random_network) -> None:
    classifier = random_network(0)
    codes = np.full((1, len(classifier.variables)), MISSING, dtype=np.int32)
    codes[0, 1] = -3
    with pytest.raises(InputError, match="'x1' must lie between -1 and"):
        predict(classifier, codes)
