"""Tables and log-joint against plain Python loops and scikit-learn."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import CategoricalNB

from milpbn.data.dataset import UNKNOWN
from milpbn.errors import InputError
from milpbn.network import Structure, class_log_joint, cpt, fit_cpts
from milpbn.network.cpt import log_cpts


def oracle_probability(data, variable, parents, smoothing, state, configuration):
    """Return P(state | configuration), counted row by row."""
    n_h = n_jh = 0.0
    for row, weight in zip(data.codes.tolist(), data.weights.tolist(), strict=True):
        if all(row[j] == h for j, h in zip(parents, configuration, strict=True)):
            n_h += weight
            n_jh += weight * (row[variable] == state)
    n_states = len(data.variables[variable].states)
    if n_h + smoothing * n_states == 0:
        return 1 / n_states
    return (n_jh + smoothing) / (n_h + smoothing * n_states)


def oracle_log_joint(data, structure, smoothing, row, c):
    total = 0.0
    row = [*row[:-1], c]
    for i, parents in enumerate(structure.parents):
        if row[i] == UNKNOWN:
            continue
        configuration = [row[j] for j in parents]
        if UNKNOWN in configuration:
            p = 1 / len(data.variables[i].states)
        else:
            p = oracle_probability(data, i, parents, smoothing, row[i], configuration)
        total += math.log(p) if p > 0 else -math.inf
    return total


@pytest.mark.parametrize("towards", ["uniform", "marginal", "class"])
@pytest.mark.parametrize("smoothing", [0.0, 0.5, 1.0, 3.0])
def test_tables_are_relative_frequencies_shrunk_towards_a_mean(make_data, make_structure, towards, smoothing):
    for seed in range(4):
        weights = np.random.default_rng(seed).uniform(0.1, 3, 30) if seed % 2 else None
        data = make_data(seed, samples=30, weights=weights)
        last = data.n_variables - 1
        structure = make_structure(data.names, seed)
        tables = fit_cpts(data, structure, smoothing, towards)
        for table, logs in zip(tables, log_cpts(data, structure, smoothing or 1.0, towards), strict=True):
            i, parents = table.variable, table.parents
            kept = tuple(j for j in parents if j == last) if towards == "class" else ()
            states, a = data.variables[i].n_states, smoothing
            assert (parents, table.table.dtype) == (structure.parents[i], np.float64)
            for *h, j in itertools.product(*(range(n) for n in table.table.shape)):
                expected = oracle_probability(data, i, parents, a, j, h)
                reduced = any(k not in kept and data.variables[k].n_states > 1 for k in parents)
                if towards != "uniform" and reduced and a:
                    above = oracle_probability(data, i, kept, a, j, [h[parents.index(k)] for k in kept])
                    n_h = sum(
                        w
                        for row, w in zip(data.codes.tolist(), data.weights.tolist(), strict=True)
                        if [row[k] for k in parents] == h
                    )
                    # The Laplace-smoothed share has a pseudo-counts where this one has a sp times the mean.
                    expected += a * (states * above - 1) / (n_h + a * states)
                rel = 1e-14 if towards == "uniform" else 1e-12
                assert table.table[*h, j] == pytest.approx(expected, rel=rel, abs=0)
            if smoothing:
                np.testing.assert_allclose(np.exp(logs.table), table.table, rtol=1e-12)
            np.testing.assert_allclose(table.table.sum(axis=-1), 1.0, rtol=1e-12)


def test_parents_with_one_state_change_no_table(make_data):
    data = make_data(3, samples=40)
    codes = data.codes.copy()
    codes[:, 0] = 0
    constant = replace(data.variables[0], states=("only",))
    data = replace(data, variables=(constant, *data.variables[1:]), codes=codes)
    last = data.n_variables - 1
    for towards, rest in itertools.product(("uniform", "marginal", "class"), ((), (last,), (2, last))):
        with_, without = (
            fit_cpts(data, Structure(data.names, ((), parents, *[()] * (last - 1))), 1.0, towards)[1].table
            for parents in ((0, *rest), rest)
        )
        np.testing.assert_allclose(with_[0], without, rtol=1e-15)


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(8))
def test_log_joint_agrees_with_loops_unknown_states_included(make_data, make_structure, seed, smoothing):
    data = make_data(seed, samples=40)
    structure = make_structure(data.names, seed)
    samples = make_data(seed + 100, samples=50).codes
    samples[np.random.default_rng(seed).random(samples.shape) < 0.3] = UNKNOWN
    actual = class_log_joint(samples, structure, fit_cpts(data, structure, smoothing), data.n_classes)
    expected = [
        [oracle_log_joint(data, structure, smoothing, row, c) for c in range(data.n_classes)]
        for row in samples.tolist()
    ]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_random_structures_give_the_class_parents(make_data, make_structure):
    names = make_data().names
    assert any(make_structure(names, seed).parents[-1] for seed in range(8))


def test_naive_bayes_likelihoods_agree_with_scikit_learn(make_data):
    data = make_data(1, samples=200, states=(3, 4, 2, 3))
    model = CategoricalNB(alpha=1.0, min_categories=data.n_states[:-1]).fit(data.X, data.y)
    structure = Structure.naive_bayes(data.names)
    tables = fit_cpts(data, structure, 1.0)
    for i, log_likelihood in enumerate(model.feature_log_prob_):
        np.testing.assert_allclose(np.log(tables[i].table), log_likelihood, rtol=1e-12)
    # scikit-learn does not smooth the class priors, so that both priors are left out of the comparison.
    log_joint = class_log_joint(data.codes, structure, tables, 3) - np.log(tables[-1].table)
    np.testing.assert_allclose(
        log_joint, model.predict_joint_log_proba(data.X) - model.class_log_prior_, rtol=1e-10
    )


@settings(max_examples=50, deadline=None)
@given(
    counts=st.lists(st.integers(1, 4), min_size=5, max_size=12),
    seed=st.integers(0, 10**6),
    smoothing=st.sampled_from([0.0, 0.1, 1.0, 7.0]),
)
def test_integer_weights_are_duplicated_rows(make_data, make_structure, counts, seed, smoothing):
    repeats = np.array(counts)
    data = make_data(seed, samples=len(counts))
    weighted = replace(data, weights=repeats.astype(float))
    duplicated = data.take(np.repeat(np.arange(len(counts)), repeats))
    structure = make_structure(data.names, seed)
    tables = [fit_cpts(d, structure, smoothing) for d in (weighted, duplicated, duplicated.merged)]
    for a, b, c in zip(*tables, strict=True):
        assert np.array_equal(a.table, b.table)
        assert np.array_equal(a.table, c.table)


def test_unseen_parent_configuration_is_uniform_without_smoothing(make_data):
    data = make_data(states=(3, 2), samples=4)
    data.codes[:, 1] = 0
    table = fit_cpts(data, Structure.naive_bayes(data.names), 0.0)[0].table
    assert table[1].tolist() == [1 / 3] * 3
    assert table[0].sum() == pytest.approx(1)


def test_class_column_and_chunks_do_not_matter(make_data, make_structure, monkeypatch):
    data = make_data(5)
    structure = make_structure(data.names, 5)
    tables = fit_cpts(data, structure)
    whole = class_log_joint(data.codes, structure, tables, 3)
    codes = data.codes.copy()
    codes[:, -1] = UNKNOWN
    monkeypatch.setattr(cpt, "_CHUNK_ENTRIES", 20)
    assert np.array_equal(class_log_joint(codes, structure, tables, 3), whole)


def test_no_samples_have_an_empty_log_joint(make_data):
    data = make_data(samples=0)
    structure = Structure.naive_bayes(data.names)
    tables = fit_cpts(data, structure)
    assert tables[0].table.tolist() == [[0.5, 0.5]] * 3
    assert class_log_joint(data.codes, structure, tables, 3).shape == (0, 3)


def test_unusable_arguments_are_refused(make_data):
    data, unknown = make_data(), make_data()
    unknown.codes[3, 1] = UNKNOWN
    wide = make_data(states=(100,) * 5 + (2,))  # refused before anything is allocated
    empty = Structure.empty(data.names)
    for arguments, words in (
        *(((data, empty, a), "smoothing must be a number from 0") for a in (-1.0, math.nan, math.inf)),
        ((data, empty, 1.0, "parents"), "must be uniform, marginal or class, got 'parents'"),
        ((unknown, empty), r"Column 'x1' .* without a state"),
        ((data, Structure.empty(["a", "b"])), "same variables in the same order"),
        ((wide, Structure(wide.names, ((1, 2, 3, 4),) + ((),) * 5)), "give the variable fewer parents"),
    ):
        with pytest.raises(InputError, match=words):
            fit_cpts(*arguments)


@pytest.mark.parametrize("code", [-2, 2])
def test_codes_out_of_range_are_refused(make_data, code):
    data = make_data()
    structure = Structure.naive_bayes(data.names)
    tables = fit_cpts(data, structure)
    codes = data.codes.copy()
    codes[0, 0] = code
    with pytest.raises(InputError, match="codes of 'x0' must lie between -1 and 1"):
        class_log_joint(codes, structure, tables, 3)
    with pytest.raises(InputError, match="array with 5 columns"):
        class_log_joint(codes[:, 1:], structure, tables, 3)
