"""The summands leave all posteriors as they are, and bring the joint distribution next to the generative one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from weight_cases import COMPLETED, PERFECT, all_states, random_weights

import milpbn
from milpbn.data.dataset import MISSING, UNKNOWN, Dataset
from milpbn.network.cpt import Cpt, class_log_joint, log_cpts
from milpbn.network.margins import log_posterior
from milpbn.network.parameters.nearest import nearest
from milpbn.network.parameters.normalised import completed, normalised, widened
from milpbn.network.parameters.refit import refit_classifier
from milpbn.network.structure import Structure


def joint(codes, structure: Structure, cpts) -> np.ndarray:
    """Return P(c, x) of every joint state of the features and every class."""
    n_classes = cpts[-1].table.shape[-1]
    return np.exp(class_log_joint(codes, structure, cpts, n_classes))


def family_margins(codes, probabilities: np.ndarray, structure: Structure) -> list[np.ndarray]:
    """Return the probability of every joint state of the features of each family with the class, by enumeration."""
    target = len(structure.names) - 1
    sums = []
    for i, parents in enumerate(structure.parents[:target]):
        if target in parents:
            _, states = np.unique(codes[:, [*parents[:-1], i]], axis=0, return_inverse=True)
            sums.append(np.bincount(states.ravel(), weights=probabilities.sum(axis=1)))
    return sums


@pytest.mark.parametrize("name", [*PERFECT, *COMPLETED])
def test_margins_are_the_generative_ones_and_posteriors_stay(make_data, name) -> None:
    data = make_data(3, states=(2, 3, 4, 2, 3))
    structure = Structure(data.names, PERFECT[name] if name in PERFECT else COMPLETED[name][0])
    whole, _, reason = completed(structure, data.n_states)
    assert reason is None
    weights = widened(random_weights(data, structure, 1, spread=2.0), whole, data.n_states)
    generative = log_cpts(data, whole, 1.0)
    plain, cpts = normalised(whole, weights), normalised(whole, nearest(whole, weights, generative))
    codes = all_states(data)
    before, after = joint(codes, whole, plain), joint(codes, whole, cpts)
    goal = joint(codes, whole, [replace(cpt, table=np.exp(cpt.table)) for cpt in generative])
    posterior = np.exp(log_posterior(np.log(after)))
    np.testing.assert_allclose(posterior, np.exp(log_posterior(np.log(before))), rtol=0, atol=1e-10)
    wanted = family_margins(codes, goal, whole)
    for found, want in zip(family_margins(codes, after, whole), wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=0, atol=2e-4)

    def divergence(probabilities: np.ndarray) -> float:
        return float((goal * np.log(goal / probabilities)).sum())

    away = max(abs(a - b).max() for a, b in zip(family_margins(codes, before, whole), wanted, strict=True))
    assert away > 0.01
    assert divergence(after) < divergence(before) - 1e-3


def test_generative_weights_are_their_own_nearest(make_data) -> None:
    data = make_data(5)
    structure = Structure(data.names, PERFECT["TAN"])
    logs = log_cpts(data, structure, 1.0)
    for cpt, log in zip(nearest(structure, logs, logs), logs, strict=True):
        np.testing.assert_allclose(cpt.table, log.table, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", [0, 2])
def test_nearly_impossible_states_stay_representable(seed) -> None:
    """Fine intervals outside their coarse one have no row, and summands must not leave the range of float64."""
    random = np.random.default_rng(seed)
    structure = Structure(("coarse", "fine", "class"), ((2,), (0, 2), ()))
    outside = np.broadcast_to((np.arange(6) // 3 != np.arange(2)[:, None])[:, None], (2, 2, 6))

    def logs(table: np.ndarray) -> np.ndarray:
        return table - np.log(np.exp(table).sum(axis=-1, keepdims=True))

    drawn = [random.normal(size=size) for size in ((2, 2), (2, 2, 6), 2)]
    generative = [logs(drawn[0]), logs(np.where(outside, -40.0, drawn[1])), logs(drawn[2])]
    drawn = [20.0 * random.normal(size=(2, 2)), 20.0 * random.normal(size=(2, 2, 6)), random.normal(size=2)]
    weights = [drawn[0], np.where(outside, -40.0, drawn[1]), drawn[2]]

    def as_cpts(tables: list[np.ndarray]) -> list[Cpt]:
        return [Cpt(i, structure.parents[i], table) for i, table in enumerate(tables)]

    cpts = normalised(structure, nearest(structure, as_cpts(weights), as_cpts(generative)))
    assert cpts is not None
    codes = np.array([[coarse, fine, 0] for coarse in range(2) for fine in range(6)])
    goal = joint(codes, structure, as_cpts([np.exp(table) for table in generative]))
    found = joint(codes, structure, cpts)
    for own, want in zip(*(family_margins(codes, p, structure) for p in (found, goal)), strict=True):
        np.testing.assert_allclose(own, want, rtol=0, atol=2e-4)


def test_a_stop_returns_weights_with_the_same_posteriors(make_data) -> None:
    data = make_data(2)
    structure = Structure(data.names, PERFECT["TAN"])
    weights = random_weights(data, structure, 2)
    logs = log_cpts(data, structure, 1.0)
    stopped = nearest(structure, weights, logs, stopping=lambda: True)
    for cpt, weight in zip(stopped, weights, strict=True):
        change = cpt.table - weight.table
        if structure.parents[cpt.variable]:
            np.testing.assert_allclose(
                change, change[..., :1, :].repeat(change.shape[-2], axis=-2), atol=1e-12
            )
    assert any(
        abs(a.table - b.table).max() > 1e-6
        for a, b in zip(stopped, nearest(structure, weights, logs), strict=True)
    )


def log_loss(classifier: milpbn.Classifier, test: Dataset, X: np.ndarray) -> float:
    codes = np.column_stack([X, np.full(len(X), UNKNOWN, dtype=np.int32)])
    log_proba = classifier.predict_log_posterior(replace(test, codes=codes))
    return -float(log_proba[np.arange(len(X)), test.y].mean())


def unfitted(classifier: milpbn.Classifier, fitted: milpbn.Classifier, data: Dataset) -> milpbn.Classifier:
    """Return tables with the posteriors of the fitted ones, and without their summands."""
    target = data.n_features
    cpts: list[Cpt] = []
    for cpt in fitted.cpts:
        log = np.log(cpt.table)
        axis = -1 if cpt.variable == target else -2
        cpts.append(replace(cpt, table=log - log.mean(axis=axis, keepdims=True)))
    return replace(fitted, cpts=tuple(normalised(fitted.structure, cpts)))


def test_missing_features_of_car_are_predicted_better(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = os.environ.get("MILPBN_DATA", "")
    if not Path(folder, "car.csv.gz").exists():
        pytest.skip("needs the data set car (MILPBN_DATA)")
    table = milpbn.read_table("car")
    train = table.dataset("train")
    test = table.encode(train.variables, "test")
    parents = {
        "safety": ["class"],
        "buying": ["safety", "class"],
        "maint": ["buying", "class"],
        "persons": ["safety", "class"],
        "lug_boot": ["safety", "class"],
        "doors": ["lug_boot", "class"],
        "class": [],
    }
    generative = milpbn.Classifier.fit(train, Structure.from_mapping(train.names, parents))
    fitted, _ = refit_classifier(generative, train, "hybrid:1:0.03")
    plain = unfitted(generative, fitted, train)
    complete = fitted.predict_proba(test)
    np.testing.assert_allclose(complete, plain.predict_proba(test), rtol=0, atol=1e-10)
    ranks = np.random.default_rng(0).random(test.X.shape).argsort(axis=1).argsort(axis=1)
    half = np.where(ranks < 3, np.int32(MISSING), test.X)
    assert log_loss(fitted, test, test.X) < 0.5 * log_loss(generative, test, test.X)
    print([log_loss(k, test, half) for k in (generative, plain, fitted)])
    assert log_loss(fitted, test, half) < 0.5 * log_loss(plain, test, half)
