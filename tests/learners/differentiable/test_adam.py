"""Adam with normalised tables against a plain Adam on unnormalised ones."""

from __future__ import annotations

import numpy as np
import pytest
from plain import load_batch
from running import random_data
from scipy.special import log_softmax

from milpbn.learners.differentiable.adam import BETA1, BETA2, EPSILON, adam_step, initial_state
from milpbn.learners.differentiable.gradients import batch_gradients
from milpbn.learners.differentiable.layout import build_layout, uniform_tables
from milpbn.learners.differentiable.losses import make_loss
from milpbn.learners.differentiable.vectorised import _exponential_single, _logarithm_single

CHOICES = (((3,),), ((3,), (0, 3)), ((3,), (0, 3), (1, 3)), ((), (0,)))
LOSS = make_loss("hyb", 2.0, 1.0, 5.0)


def normalised(layout, values):
    out = values.astype(np.float64)
    for f in range(layout.n_families):
        table = layout.table(out, f)
        table[:] = log_softmax(table, axis=1)
    return out


class PlainAdam:
    """Algorithm 1 of Kingma & Ba, on all parameters at every step."""

    def __init__(self, values):
        self.values, self.m, self.v, self.t = values.copy(), np.zeros(len(values)), np.zeros(len(values)), 0

    def step(self, gradient, rate):
        self.t += 1
        self.m = BETA1 * self.m + (1 - BETA1) * gradient
        self.v = BETA2 * self.v + (1 - BETA2) * gradient**2
        m, v = self.m / (1 - BETA1**self.t), self.v / (1 - BETA2**self.t)
        self.values -= rate * m / (np.sqrt(v) + EPSILON)


def choose(layout, numbers):
    """Noise that makes the given family of every variable the one chosen."""
    noise = np.zeros(layout.n_families)
    noise[layout.first[:-1] + numbers] = 1e6
    return noise


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_same_path_as_unnormalised_adam(dtype) -> None:
    data = random_data(3, n_features=3, n_samples=30)
    layout = build_layout(data, CHOICES)
    rng = np.random.default_rng(1)
    theta = uniform_tables(layout, rng, reach=1.0)
    state, work = initial_state(layout, theta, dtype), load_batch(layout, data, dtype)
    reference, phi = PlainAdam(theta), PlainAdam(np.zeros(layout.n_families))
    check = load_batch(layout, data)
    several = np.repeat(np.diff(layout.first) > 1, np.diff(layout.first))
    for step in range(60):
        noise = rng.gumbel(size=layout.n_families)
        tau, rate = 2.0 * 0.95**step, 0.05 * 0.97**step
        batch_gradients(layout, normalised(layout, reference.values), phi.values, LOSS, noise, tau, check, 30)
        reference.step(check.gradient, rate)
        phi.step(np.where(several, check.phi_gradient, 0.0), 0.01)
        check.gradient[:] = 0.0
        batch_gradients(layout, state.theta, state.phi, LOSS, noise, tau, work, 30)
        adam_step(layout, state, work, rate, 0.01)
        assert not work.gradient.any()
    close = {"atol": 1e-11} if dtype == np.float64 else {"atol": 1e-3}
    np.testing.assert_allclose(state.theta, normalised(layout, reference.values), **close)
    np.testing.assert_allclose(state.phi, phi.values, **close)
    assert np.abs(state.phi).max() > 0.05
    np.testing.assert_allclose(normalised(layout, state.theta), state.theta, atol=1e-6)


def test_tables_at_rest_wake_with_the_right_moments() -> None:
    data = random_data(3, n_features=3, n_samples=30)
    layout = build_layout(data, CHOICES)
    theta = uniform_tables(layout, np.random.default_rng(2), reach=1.0)
    state, work = initial_state(layout, theta, np.float64), load_batch(layout, data)
    reference, check = PlainAdam(theta), load_batch(layout, data)
    here, there = choose(layout, [0, 0, 0, 0]), choose(layout, [0, 1, 2, 1])
    away = [1, 3, 6]  # families of `here` only
    rested = False
    for step in range(1000):
        noise = there if 5 <= step < 995 else here
        # The same gradients for both: what is compared is Adam alone.
        batch_gradients(layout, state.theta, state.phi, LOSS, noise, 1.0, check, 30)
        reference.step(check.gradient, 0.01)
        check.gradient[:] = 0.0
        batch_gradients(layout, state.theta, state.phi, LOSS, noise, 1.0, work, 30)
        adam_step(layout, state, work, 0.01, 0.0)
        rested |= bool((state.idle[away] > 100).all())
    assert rested, "no table came to rest"
    assert (state.idle[away] == -1).all()
    np.testing.assert_allclose(state.theta, normalised(layout, reference.values), atol=1e-9)
    np.testing.assert_allclose(state.theta_second, reference.v, rtol=1e-9, atol=1e-25)


def test_tables_never_chosen_stay_as_they_are() -> None:
    data = random_data(4, n_features=3, n_samples=20)
    layout = build_layout(data, CHOICES)
    theta = uniform_tables(layout, np.random.default_rng(3))
    state, work = initial_state(layout, theta, np.float64), load_batch(layout, data)
    for _ in range(10):
        batch_gradients(layout, state.theta, state.phi, LOSS, choose(layout, [0, 0, 0, 0]), 1.0, work, 20)
        adam_step(layout, state, work, 0.05, 0.0)
    still = np.zeros(layout.size, dtype=bool)
    for f in (2, 4, 5, 7):
        still[layout.start[f] : layout.start[f + 1]] = True
    assert 0 < still.sum() < len(still)
    np.testing.assert_array_equal(state.theta == theta, still)


def test_exponential_of_single_precision() -> None:
    points = np.concatenate([np.linspace(-87, 88, 20001), np.linspace(-1, 1, 2001)]).astype(np.float32)
    values = np.array([_exponential_single(x) for x in points])
    assert (values == values.astype(np.float32)).all()
    np.testing.assert_allclose(values, np.exp(points.astype(np.float64)), rtol=3e-7)
    assert _exponential_single(np.float32(-1e9)) < 2e-38
    assert np.isfinite(_exponential_single(np.float32(1e9)))


def test_logarithm_of_single_precision() -> None:
    points = np.concatenate([np.geomspace(1e-37, 1e37, 20001), np.linspace(0.5, 2, 2001)]).astype(np.float32)
    values = np.array([_logarithm_single(x) for x in points])
    np.testing.assert_allclose(values, np.log(points.astype(np.float64)), rtol=3e-7, atol=1e-9)
    assert _logarithm_single(np.float32(1.0)) == 0.0
