"""The oracle on cases computed by hand, and properties that it must have for every problem."""

from dataclasses import replace
from itertools import product
from math import inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import (
    SCORES,
    acyclic_structures,
    candidate_sets,
    enumerate_best,
    random_dataset,
    score_structure,
)

from milpbn import instances
from milpbn.data.dataset import Dataset, Variable
from milpbn.network.structure import topological_order

NAIVE, EMPTY, REVERSED = ((1,), ()), ((), ()), ((), (0,))


def dataset(rows, n_states) -> Dataset:
    variables = tuple(Variable(f"V{i}", tuple(map(str, range(n)))) for i, n in enumerate(n_states))
    codes = np.array(rows, dtype=np.int32)
    return Dataset("hand", variables, codes, np.ones(len(rows)))


@pytest.fixture
def two_classes() -> Dataset:
    """X, C: naive Bayes has P(c) = 1/2, P(X=0|C=0) = 3/4 and P(X=0|C=1) = 1/2, smoothed with 1."""
    return dataset([(0, 0), (0, 0), (1, 1), (0, 1)], (2, 2))


@pytest.fixture
def three_classes() -> Dataset:
    """X, C: naive Bayes has P(c) = 2/7, 3/7, 2/7 and P(X=0|c) = 2/3, 1/2, 1/3, smoothed with 1."""
    return dataset([(0, 0), (0, 1), (1, 2), (1, 1)], (2, 3))


@pytest.mark.parametrize(
    ("score", "options", "expected"),
    [
        ("sm", {"gamma": 10.0}, log(1.5) + log(2)),  # margins 3/2, 3/2, 2, 2/3
        ("sm", {"gamma": log(1.8)}, log(1.5) + log(1.8)),
        ("sm", {"gamma": 10.0, "smoothing": 0.5}, log(5 / 3) + log(3)),  # 5/3, 5/3, 3, 3/5
        ("sbm", {"gamma": log(1.8)}, log(1.5) + log(1.8)),
        ("hard-margin", {}, -log(1.5)),
        ("cll", {}, 2 * log(0.6) + log(2 / 3) + log(0.4)),
        ("ll", {}, 6 * log(0.5)),
        ("mdl", {}, 6 * log(0.5) - 1.5 * log(4)),
        ("aic", {}, 6 * log(0.5) - 3),
        ("aicc", {}, -inf),  # 3 parameters, 4 samples
        ("bdeu", {}, log(1 / 24 * 0.75**2) + log(0.3125 / 0.75) + log(0.0625 / 0.75)),
        ("bdeu", {"ess": 4.0}, log(36 / 840) + log(2 / 6) + log(1 / 6)),
        ("sm", {"gamma": 10.0, "penalty": 0.5}, log(3) - 1.5),
        ("cll", {"hybrid": 0.25}, 2 * log(0.6) + log(2 / 3) + log(0.4) + 1.5 * log(0.5)),
    ],
)
def test_naive_bayes_by_hand(two_classes, score, options, expected):
    assert score_structure(two_classes, NAIVE, score, **options) == pytest.approx(expected, abs=1e-12)


def test_empty_structure_by_hand(two_classes):
    fit = 4 * log(0.5) + 3 * log(0.75) + log(0.25)
    assert score_structure(two_classes, EMPTY, "ll") == pytest.approx(fit)
    assert score_structure(two_classes, EMPTY, "aicc") == pytest.approx(fit - 2 - 6 / 1)
    assert score_structure(two_classes, EMPTY, "sm", gamma=1.0) == 0.0  # both classes equally likely


def test_class_parent_by_hand(two_classes):
    # P(C=0|X=0) = 3/5, P(C=1|X=1) = 2/3
    expected = 2 * log(0.6) + log(2 / 3) + log(0.4)
    assert score_structure(two_classes, REVERSED, "cll") == pytest.approx(expected)
    skewed = dataset([(0, 0), (0, 0), (0, 0), (1, 1), (0, 1)], (2, 2))
    # P(C=0|X=0) = 4/6, P(C=1|X=1) = 2/3: margins 2, 2, 2, 2, 1/2
    assert score_structure(skewed, REVERSED, "sm", gamma=10.0) == pytest.approx(3 * log(2))


def test_three_classes_by_hand(three_classes):
    # log-margins: 8/9 for classes 0 and 2 (class 1 wins), 9/8 for class 1
    assert score_structure(three_classes, NAIVE, "sm", gamma=0.0) == pytest.approx(2 * log(8 / 9))
    assert score_structure(three_classes, NAIVE, "hard-margin") == pytest.approx(log(8 / 9))
    # class 0 against the rest: (1/3 * 2/3) / (2/3 * 2/5) = 5/6, the same for class 2, and 1 for class 1
    assert score_structure(three_classes, NAIVE, "sbm", gamma=1.0) == pytest.approx(2 * log(5 / 6))


def test_weights_multiply_the_samples(two_classes):
    heavy = replace(two_classes, weights=np.full(4, 2.0))
    assert score_structure(heavy, NAIVE, "aicc") == pytest.approx(12 * log(0.5) - 3 - 12 / 4)
    assert score_structure(heavy, NAIVE, "mdl") == pytest.approx(12 * log(0.5) - 1.5 * log(8))
    # P(X=0|C=0) = 5/6, P(X=0|C=1) = 1/2: margins 5/3, 5/3, 3, 3/5, twice each
    assert score_structure(heavy, NAIVE, "sm", gamma=10.0) == pytest.approx(2 * log(5))


def test_best_by_hand(two_classes):
    best = enumerate_best(two_classes, "sm", gamma=10.0, max_parents=1, class_parents=False)
    assert best.objective == pytest.approx(log(3))
    assert best.structures == (NAIVE,)
    with_class_parents = enumerate_best(two_classes, "sm", gamma=10.0, max_parents=1)
    assert set(with_class_parents.structures) == {NAIVE, REVERSED}  # the same margins


def test_aicc_without_a_possible_structure():
    best = enumerate_best(dataset([(0, 0), (1, 1)], (2, 2)), "aicc")
    assert best.objective == -inf
    assert best.structures == ()


@pytest.mark.parametrize(
    ("score", "p", "structure", "expected"),
    [
        ("sm", 0.9, ((6,), (0, 6), (1, 6), (2, 6), (), (1, 6), ()), 261.127228),
        ("sbm", 0.9, ((), (0, 6), (1, 6), (2, 6), (), (1, 6), (0,)), 261.134800),
        ("sm", 0.99, ((6,), (0, 6), (0, 6), (2, 6), (), (6,), ()), 414.493534),
    ],
)
def test_known_optima_of_corral(score, p, structure, expected):
    frame = instances.load("corral").astype(int)
    data = dataset(frame.to_numpy(), (2,) * 7)
    value = score_structure(data, structure, score, gamma=log(p / (1 - p)))
    assert value == pytest.approx(expected, abs=1e-6)


def test_candidate_sets():
    paper = candidate_sets(4, 2)
    assert paper[0] == [(), (3,), (1, 3), (2, 3)]
    assert paper[3] == [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    assert candidate_sets(4, 2, class_parents=False)[3] == [()]
    assert candidate_sets(4, 2, parent_sets="all")[0] == [(), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3)]
    assert candidate_sets(4, 0, parent_sets="all") == [[()]] * 4


@pytest.mark.parametrize(("n", "count"), [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29281)])
def test_number_of_acyclic_graphs(n, count):
    # Robinson's numbers of labelled acyclic digraphs
    candidates = tuple(map(tuple, candidate_sets(n, n - 1, parent_sets="all")))
    structures = acyclic_structures(candidates)
    assert len(set(structures)) == len(structures) == count


problems = st.builds(
    lambda seed, classes, weights: random_dataset(np.random.default_rng(seed), 3, classes, 3, 15, weights),
    st.integers(0, 10**6),
    st.integers(2, 3),
    st.booleans(),
)


@settings(max_examples=15, deadline=None)
@given(problems, st.sampled_from(SCORES), st.booleans())
def test_best_is_the_maximum_over_all_structures(data, score, class_parents):
    options = {"gamma": 1.5}
    sets = candidate_sets(4, 2, class_parents)
    values = {g: score_structure(data, g, score, **options) for g in product(*sets) if topological_order(g)}
    best = enumerate_best(data, score, class_parents=class_parents, **options)
    assert best.objective == pytest.approx(max(values.values()), abs=1e-12)
    ties = {g for g, value in values.items() if value == pytest.approx(best.objective, abs=1e-9)}
    assert ties == set(best.structures)


@settings(max_examples=15, deadline=None)
@given(problems, st.sampled_from(SCORES))
def test_duplicates_merge(data, score):
    merged, twice = data.merged, data.take([*range(15), *range(15)])
    heavy = replace(data, weights=2 * data.weights)
    structure = ((3,), (0, 3), (), (2,))
    for a, b in ((data, merged), (twice, heavy)):
        expected = score_structure(a, structure, score, gamma=1.0)
        assert score_structure(b, structure, score, gamma=1.0) == pytest.approx(expected)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 3.0), st.floats(0.1, 2.0))
def test_two_classes_make_both_margins_equal(seed, gamma, smoothing):
    data = random_dataset(np.random.default_rng(seed), 3, 2, 3, 15)
    sm, sbm = (enumerate_best(data, score, gamma=gamma, smoothing=smoothing) for score in ("sm", "sbm"))
    assert sm.objective == pytest.approx(sbm.objective)
    assert set(sm.structures) == set(sbm.structures)


@settings(max_examples=15, deadline=None)
@given(problems, st.sampled_from(["ll", "mdl", "aic", "aicc", "bdeu"]), st.floats(0.2, 5.0))
def test_equivalent_graphs_score_the_same(data, score, ess):
    chain, reverse = ((3,), (0,), (), ()), ((1,), (), (), (0,))  # C -> X1 -> X2 and X2 -> X1 -> C
    expected = score_structure(data, chain, score, ess=ess)
    assert score_structure(data, reverse, score, ess=ess) == pytest.approx(expected)


def test_bdeu_is_the_product_of_predictions():
    data = random_dataset(np.random.default_rng(5), 3, 3, 3, 20)
    structure, ess = ((3,), (0, 3), (), (2,)), 2.5
    n_states = data.n_states
    expected = 0.0
    for i, parents in enumerate(structure):
        alpha = ess / np.prod(n_states[list(parents)], dtype=float)
        for m, row in enumerate(data.codes):
            before = data.codes[:m]
            before = before[(before[:, list(parents)] == row[list(parents)]).all(axis=1)]
            same = (before[:, i] == row[i]).sum()
            expected += np.log((same + alpha / n_states[i]) / (len(before) + alpha))
    assert score_structure(data, structure, "bdeu", ess=ess) == pytest.approx(expected)


def test_constraints_and_given_candidates():
    data = random_dataset(np.random.default_rng(3), 3, 2, 2, 20)
    free = enumerate_best(data, "sm", gamma=2.0)
    bound = enumerate_best(data, "sm", gamma=2.0, allowed=lambda parents: parents[0] == (1, 3))
    assert bound.objective <= free.objective
    assert all(g[0] == (1, 3) for g in bound.structures)
    only = [[(3,)], [(3,)], [()], [()]]
    naive = ((3,), (3,), (), ())
    assert enumerate_best(data, "sm", gamma=2.0, candidates=only).structures == (naive,)
    assert enumerate_best(data, "sm", gamma=2.0, allowed=lambda parents: False).structures == ()
