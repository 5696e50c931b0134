"""Intervals of probabilities: against draws by hand, in simulations, and what has none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from milpbn.data.dataset import MISSING, UNKNOWN, Variable
from milpbn.errors import InputError
from milpbn.network import (
    AveragedClassifier,
    Classifier,
    Cpt,
    PseudoClassifier,
    Structure,
    load_classifier,
    save_classifier,
)
from milpbn.network.parameters.refit import refit_classifier


def _network(rng, sizes=(3, 2, 2), constant=1.0):
    """A drawn network: the class is the parent of all features, the first feature that of the second."""
    last = len(sizes) - 1
    variables = tuple(Variable(f"x{i}", tuple(f"s{k}" for k in range(n))) for i, n in enumerate(sizes))
    structure = Structure(
        tuple(v.name for v in variables), ((last,), (0, last), *((last,) for _ in sizes[2:-1]), ())
    )
    cpts = tuple(
        Cpt(i, own, rng.dirichlet(np.full(sizes[i], constant), [sizes[j] for j in own]))
        for i, own in enumerate(structure.parents)
    )
    return Classifier(variables, structure, cpts)


@pytest.mark.parametrize(("weights", "towards"), [(None, "uniform"), (2.5, "marginal"), ("random", "class")])
def test_concentrations_are_effective_rows_and_pseudo_counts(weights, towards):
    rng = np.random.default_rng(0)
    truth = _network(rng)
    data = truth.sample(80, random_state=1)
    w = {None: np.ones(80), 2.5: np.full(80, 2.5)}.get(weights, rng.exponential(size=80))
    data = replace(data, weights=w)
    found = Classifier.fit(data, truth.structure, 0.5, smoothing_towards=towards)
    for cpt in found.cpts:
        for index in np.ndindex(cpt.table.shape[:-1]):
            own = w[(data.codes[:, list(cpt.parents)] == index).all(axis=1)]
            rows = own.sum() ** 2 / (own**2).sum() if len(own) else 0.0
            assert cpt.concentration[index] == pytest.approx(rows + 0.5 * cpt.table.shape[-1])


def test_intervals_are_those_of_tables_drawn_by_hand(tmp_path):
    """Also of rows that lack a feature, or have a value without a state; and after a file."""
    truth = _network(np.random.default_rng(2))
    data = truth.sample(40, random_state=3)
    classifier = Classifier.fit(data, truth.structure)
    rows = np.array([[0, 1, -1], [2, MISSING, -1], [UNKNOWN, 1, -1], [MISSING, MISSING, -1]], dtype=np.int32)
    new = replace(data, codes=rows, weights=np.ones(4))
    low, high = classifier.predict_interval(new, 0.8, draws=900)
    rng, drawn = np.random.default_rng(9), []
    for _ in range(900):
        cpts = []
        for cpt in classifier.cpts:
            table = np.empty_like(cpt.table)
            for index in np.ndindex(table.shape[:-1]):
                counts = (data.codes[:, list(cpt.parents)] == index).all(axis=1)
                own = np.bincount(data.codes[counts, cpt.variable], minlength=table.shape[-1])
                table[index] = rng.dirichlet(own + 1.0)
            cpts.append(Cpt(cpt.variable, cpt.parents, table))
        drawn.append(replace(classifier, cpts=tuple(cpts)).predict_proba(new))
    expected = np.quantile(drawn, [0.1, 0.9], axis=0)
    np.testing.assert_allclose([low, high], expected, atol=0.04)
    save_classifier(classifier, tmp_path / "c.json")
    again = load_classifier(tmp_path / "c.json").predict_interval(new, 0.8, draws=900)
    np.testing.assert_array_equal(again, [low, high])


@pytest.mark.parametrize(
    ("n", "missing"), [(25, 0.0), pytest.param(200, 0.0, marks=pytest.mark.slow), (60, 0.4)]
)
def test_intervals_hold_the_true_probability_as_often_as_they_say(n, missing):
    """If tables are drawn from the prior of the smoothing, exactly on average."""
    rng, held = np.random.default_rng(n), []
    for k in range(120):
        truth = _network(rng, (3, 2, 4, 2))
        classifier = Classifier.fit(truth.sample(n, random_state=rng), truth.structure)
        new = truth.sample(20, random_state=rng)
        codes = new.codes.copy()
        codes[:, :-1][rng.random((20, 3)) < missing] = MISSING
        new = replace(new, codes=codes)
        low, high = classifier.predict_interval(new, 0.9, draws=300, random_state=k)
        p = truth.predict_proba(new)
        held.append(((low <= p) & (p <= high))[:, 0].mean())
    assert np.mean(held) == pytest.approx(0.9, abs=3 * np.std(held) / np.sqrt(120))
    assert np.std(held) > 0.05  # so that the band above is not wide for another reason
    assert 3 * np.std(held) / np.sqrt(120) < 0.055


def test_intervals_hold_the_probability_itself():
    """Also where a table is far from the mean of what its logarithms allow: few rows, many states."""
    truth = _network(np.random.default_rng(4), (9, 5, 3), 0.2)
    classifier = Classifier.fit(truth.sample(8, random_state=1), truth.structure, 0.01)
    new = truth.sample(50, random_state=2)
    low, high = classifier.predict_interval(new, 0.5, draws=50)
    p = classifier.predict_proba(new)
    assert (low <= p).all()
    assert (p <= high).all()


def test_what_has_no_counts_has_no_intervals():
    truth = _network(np.random.default_rng(6))
    data = truth.sample(60, random_state=1)
    fitted = Classifier.fit(data, truth.structure)
    hybrid, record = refit_classifier(fitted, data, "cll:1")
    assert record.fitted
    for classifier, sentence in (
        (truth, "does not say from how many rows"),
        (hybrid, r"fitted to the classes \(cll\), and are not counts"),
        (Classifier.fit(data, truth.structure, 0.0), "without smoothing"),
        (AveragedClassifier((fitted, fitted)), r"\(--interval\): only a single Bayesian network has them"),
        (PseudoClassifier(fitted.variables, fitted.cpts), "this classifier is none"),
    ):
        with pytest.raises(InputError, match=sentence):
            classifier.predict_interval(data)
    for share in (0.0, 1.0):
        with pytest.raises(InputError, match="share must be above 0"):
            fitted.predict_interval(data, share)
    with pytest.raises(InputError, match="draws must be at least 1"):
        fitted.predict_interval(data, draws=0)
    broken = replace(fitted.cpts[0], concentration=np.array([1.0]))
    with pytest.raises(InputError, match="concentrations of 'x0' are not"):
        replace(fitted, cpts=(broken, *fitted.cpts[1:]))
