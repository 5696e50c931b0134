"""Gradients against finite differences of the plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from plain import load_batch, loss_of, mean_loss, numerical, softmax_tau
from running import dataset, random_data

from milpbn.errors import InputError
from milpbn.learners.differentiable.gradients import batch_gradients, sample_families
from milpbn.learners.differentiable.layout import build_layout, uniform_tables
from milpbn.learners.differentiable.losses import LOSSES, make_loss, sample_loss

#: Four features (class 4): no parent, class-free, one and two feature parents, and parents of the class.
TAN = (((4,),), ((4,), (0, 4)), ((4,), (0, 4), (1, 4)), ((4,), (0, 4), (1, 4), (2, 4)), ((),))
GENERAL = (((),), ((0,), (0, 4)), ((0, 1, 4), (1,)), ((0, 1, 2, 4),), ((), (0,), (0, 1)))
N_SAMPLES = 12
SETTINGS = {"lambda_": 3.0, "gamma": 0.8, "eta": 4.0}


def problem(choices, seed, n_classes=3):
    data = random_data(
        [5, seed],
        n_features=4,
        n_classes=n_classes,
        max_states=2,
        n_samples=N_SAMPLES,
        weights=bool(seed % 2),
    )
    layout = build_layout(data, choices)
    rng = np.random.default_rng(seed)
    theta = uniform_tables(layout, rng, reach=1.5)
    return data, layout, theta, rng


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("choices", "seed"), [(TAN, 0), (GENERAL, 1)], ids=["tan", "general-weighted"])
def test_gradients_of_every_loss_equal_finite_differences(name: str, choices, seed: int) -> None:
    """Weights scale a sample's loss whatever its families are, so one kind of families has weights."""
    data, layout, theta, rng = problem(choices, seed)
    phi, noise, tau = rng.normal(size=layout.n_families), rng.gumbel(size=layout.n_families), 0.7
    work = load_batch(layout, data)
    value = batch_gradients(layout, theta, phi, make_loss(name, **SETTINGS), noise, tau, work, data.n_samples)

    hard = np.zeros(layout.n_families)
    hard[work.chosen] = 1.0
    for v in range(data.n_variables):  # the Gumbel-max trick
        own = np.arange(layout.first[v], layout.first[v + 1])
        assert work.chosen[v] == own[np.argmax((phi + noise)[own])]

    def of_theta(point):
        return mean_loss(data, layout, choices, point, hard, name, **SETTINGS)

    def of_s(point):
        return mean_loss(data, layout, choices, theta, point, name, **SETTINGS)[0]

    expected, kink = of_theta(theta)
    assert kink > 1e-3, "too near a kink for differences"
    assert value == pytest.approx(expected, rel=1e-12)
    gradient = numerical(lambda point: of_theta(point)[0], theta)
    assert np.abs(gradient).max() > 1e-2
    np.testing.assert_allclose(work.gradient, gradient, atol=1e-7)

    # Phi: the product of dL/ds and the softmax's Jacobian, both by differences.
    slopes = numerical(of_s, hard)
    for v in range(data.n_variables):
        own = slice(layout.first[v], layout.first[v + 1])
        if own.stop - own.start == 1:
            continue
        np.testing.assert_allclose(work.choice_slopes[own], slopes[own], atol=1e-7)
        jacobian = np.array(
            [
                numerical(lambda p, n=n, own=own: softmax_tau(p, noise[own], tau)[n], phi[own])
                for n in range(own.stop - own.start)
            ]
        )
        np.testing.assert_allclose(work.phi_gradient[own], slopes[own] @ jacobian, atol=1e-7)
        assert np.abs(work.phi_gradient[own]).max() > 1e-6


def test_settled_samples_are_not_left_out() -> None:
    # With a small gamma most samples are beyond it: only their own class has a derivative.
    data, layout, theta, rng = problem(TAN, 8)
    settings = {"lambda_": 2.0, "gamma": 1e-3, "eta": 5.0}
    noise = rng.gumbel(size=layout.n_families)
    work = load_batch(layout, data)
    batch_gradients(
        layout, theta, np.zeros(layout.n_families), make_loss("hyb", **settings), noise, 1.0, work, N_SAMPLES
    )
    settled = (work.slopes != 0).sum(axis=1) == 1
    assert 3 <= settled.sum() <= N_SAMPLES - 3
    hard = np.zeros(layout.n_families)
    hard[work.chosen] = 1.0

    def of_theta(point):
        return mean_loss(data, layout, TAN, point, hard, "hyb", **settings)[0]

    np.testing.assert_allclose(work.gradient, numerical(of_theta, theta), atol=1e-7)
    slopes = numerical(lambda s: mean_loss(data, layout, TAN, theta, s, "hyb", **settings)[0], hard)
    several = np.repeat(np.diff(layout.first) > 1, np.diff(layout.first))
    np.testing.assert_allclose(work.choice_slopes[several], slopes[several], atol=1e-7)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3, 9])
def test_the_loss_of_a_sample_follows_its_definition(name: str, n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    for _ in range(20):
        logits, y, slope = (
            rng.normal(size=n_classes) * 3 - 400,
            int(rng.integers(n_classes)),
            np.empty(n_classes),
        )
        value, others = sample_loss(make_loss(name, **SETTINGS), logits, y, slope)
        expected, lack = loss_of(name, logits, y, **SETTINGS)
        assert value == pytest.approx(expected, rel=1e-12)
        if abs(lack) > 1e-3:
            differences = numerical(lambda z, y=y: loss_of(name, z, y, **SETTINGS)[0], logits)
            np.testing.assert_allclose(slope, differences, atol=1e-5)
            assert others == (np.count_nonzero(np.delete(slope, y)) > 0)


def test_sharp_maximum_is_the_maximum() -> None:
    logits, slope = np.array([-3.0, -2.0, -4.0]), np.empty(3)
    value, _ = sample_loss(make_loss("lm", gamma=5.0, eta=500.0), logits, 0, slope)
    assert value == pytest.approx(6.0)
    np.testing.assert_allclose(slope, [-1, 1, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"name": "hinge"}, "hinge"),
        ({"name": "hyb", "lambda_": -1.0}, "lambda"),
        ({"name": "hyb", "lambda_": float("inf")}, "lambda"),
        ({"name": "lm", "gamma": 0.0}, "gamma"),
        ({"name": "lm", "eta": float("nan")}, "eta"),
    ],
)
def test_bad_losses_are_refused(options, word: str) -> None:
    with pytest.raises(InputError, match=word):
        make_loss(**options)


def test_sampled_families_follow_phi() -> None:
    data = dataset([(0, 1, 0), (1, 0, 1)])
    layout = build_layout(data, (((2,),), ((2,), (0, 2)), ((),)))
    rng = np.random.default_rng(0)
    phi = np.array([0.0, np.log(0.2), np.log(0.8), 0.0])
    chosen, count = np.empty(3, dtype=np.int64), 0
    for _ in range(4000):
        sample_families(layout, phi, rng.gumbel(size=4), chosen)
        assert chosen[0] == 0
        assert chosen[2] == 3
        count += int(chosen[1] == 2)
    assert count / 4000 == pytest.approx(0.8, abs=0.03)
