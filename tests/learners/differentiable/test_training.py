"""Training: schedules, optima known from elsewhere, weights, validation, checkpoints."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from plain import log_joint, loss_of
from running import dataset, random_data
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from milpbn.data.dataset import UNKNOWN, Dataset
from milpbn.errors import InputError
from milpbn.learners.base import Control
from milpbn.learners.differentiable.adam import initial_state
from milpbn.learners.differentiable.gradients import make_work
from milpbn.learners.differentiable.layout import (
    build_layout,
    likelihood_tables,
    tables_to_cpts,
    uniform_tables,
)
from milpbn.learners.differentiable.learner import fixed_choices
from milpbn.learners.differentiable.losses import make_loss
from milpbn.learners.differentiable.training import (
    Epoch,
    Training,
    error_rate,
    most_probable,
    train,
    train_epoch,
)
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import fit_cpts
from milpbn.network.structure import Structure

HYB = make_loss("hyb", 5.0, 1.0, 5.0)
#: Class-free families, two feature parents, and a parent of the class.
GENERAL = ((), (0, 4), (0, 1, 4), (1,), (0,))
#: Choices among candidates, no parent first.
TAN = (((4,),), ((4,), (0, 4)), ((4,), (0, 4), (1, 4)), ((4,), (1, 4), (2, 4)), ((),))


def small(seed: int = 0, n_samples: int = 60, weights: bool = False) -> Dataset:
    return random_data([17, seed], n_features=4, n_samples=n_samples, weights=weights)


def train_parameters(data: Dataset, structure: Structure, training: Training) -> Classifier:
    trained = train(data, fixed_choices(structure), training, Control())
    return Classifier(data.variables, structure, trained.cpts, training.smoothing, {})


def same(one, two) -> None:
    assert one.parents == two.parents
    assert one.history == two.history
    np.testing.assert_array_equal(one.phi, two.phi)
    for a, b in zip(one.cpts, two.cpts, strict=True):
        np.testing.assert_array_equal(a.table, b.table)


def test_schedules_are_the_published_ones() -> None:
    training = Training(loss=HYB, epochs=500, learning_rate=3e-2)
    assert training.rate(0) == 3e-2
    assert training.rate(500) == pytest.approx(3e-5)
    assert training.rate(101) / training.rate(100) == pytest.approx(training.rate(1) / training.rate(0))
    assert training.tau(0) == 10
    assert training.tau(499) == pytest.approx(0.1)
    assert training.structure_rate == 1e-3
    assert Training(loss=HYB, epochs=1).tau(0) == 10


@pytest.mark.parametrize("weights", [False, True])
def test_no_epochs_from_maximum_likelihood_is_the_closed_form(weights: bool) -> None:
    data = small(1, weights=weights)
    structure = Structure(data.names, GENERAL)
    training = Training(loss=HYB, epochs=0, init="ml", smoothing=0.5, dtype="float64")
    classifier = train_parameters(data, structure, training)
    expected = fit_cpts(data, structure, 0.5)
    for ours, theirs in zip(classifier.cpts, expected, strict=True):
        assert ours.parents == theirs.parents
        np.testing.assert_allclose(ours.table, theirs.table, rtol=1e-12)


def test_likelihood_loss_ends_at_the_relative_frequencies() -> None:
    # Every joint state of a family occurs, so that the optimum is finite.
    rows = [row for row in itertools.product(range(2), range(3), range(2)) for _ in range(2)]
    rows += [row for row in rows if row[0] == row[2]] + [(1, 2, 0)] * 3
    data = dataset(rows)
    structure = Structure(data.names, ((2,), (0, 2), ()))
    training = Training(
        loss=make_loss("nll"), epochs=600, batch_size=1000, learning_rate=0.1, dtype="float64"
    )
    classifier = train_parameters(data, structure, training)
    for ours, theirs in zip(classifier.cpts, fit_cpts(data, structure, 0.0), strict=True):
        np.testing.assert_allclose(ours.table, theirs.table, atol=2e-4)


def test_conditional_likelihood_of_naive_bayes_is_logistic_regression() -> None:
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, (300, 3))
    y = (X[:, 0] + rng.integers(0, 3, 300)) % 3  # far from separable
    data = dataset(np.column_stack([X, y]))
    features = OneHotEncoder().fit_transform(X)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10000).fit(features, y)
    best = -model.predict_log_proba(features)[np.arange(300), y].mean()
    training = Training(loss=make_loss("cll"), epochs=500, batch_size=300, learning_rate=0.1, dtype="float64")
    trained = train(data, (*(((3,),) for _ in range(3)), ((),)), training)
    assert trained.history[-1][1] == pytest.approx(best, abs=1e-5)
    assert trained.history[0][1] > best + 0.03


@pytest.mark.parametrize("name", ["nll", "lm", "hyb", "cll"])
def test_discriminative_training_lowers_its_loss(name: str) -> None:
    data = small(2, n_samples=120)
    structure = Structure(data.names, GENERAL)
    loss = {"lambda_": 5.0, "gamma": 1.0, "eta": 5.0}

    def value(classifier: Classifier) -> float:
        logits = classifier.predict_log_joint(data)
        return float(np.mean([loss_of(name, z, y, **loss)[0] for z, y in zip(logits, data.y, strict=True)]))

    training = Training(
        loss=make_loss(name, **loss), epochs=100, batch_size=20, learning_rate=0.02, init="ml"
    )
    before = value(train_parameters(data, structure, replace(training, epochs=0)))
    after = value(train_parameters(data, structure, training))
    assert after < before - 0.01


def test_mean_loss_is_that_of_the_tables() -> None:
    data = small(4, weights=True)
    choices = tuple((p,) for p in GENERAL)
    training = Training(loss=HYB, epochs=1, batch_size=500, init="ml", dtype="float64")
    layout = build_layout(data, choices)
    theta = likelihood_tables(layout, data, choices, 1.0)
    logits = log_joint(data, layout, choices, theta, np.ones(layout.n_families))
    values = [loss_of("hyb", z, y, 5.0, 1.0, 5.0)[0] for z, y in zip(logits, data.y, strict=True)]
    assert train(data, choices, training).history[0][1] == pytest.approx(
        np.average(values, weights=data.weights)
    )


def test_weights_are_copies() -> None:
    data = small(5)
    weights = np.random.default_rng(0).integers(1, 4, data.n_samples)
    heavy = replace(data, weights=weights.astype(np.float64))
    copies = data.take(np.repeat(np.arange(data.n_samples), weights))
    training = Training(loss=HYB, epochs=20, batch_size=10**6, learning_rate=0.02, dtype="float64")
    for choices in (TAN, tuple((p,) for p in GENERAL)):
        one, two, plain = (train(d, choices, training) for d in (heavy, copies, data))
        np.testing.assert_allclose(one.phi, two.phi, atol=1e-9)
        assert one.parents == two.parents
        for a, b in zip(one.cpts, two.cpts, strict=True):
            np.testing.assert_allclose(a.table, b.table, atol=1e-9)
        assert [h[1] for h in one.history] == pytest.approx([h[1] for h in two.history])
        assert [h[1] for h in one.history] != pytest.approx([h[1] for h in plain.history], rel=1e-3)


def test_equal_seeds_give_equal_runs() -> None:
    data, training = small(6), Training(loss=HYB, epochs=5, batch_size=16)
    same(train(data, TAN, training), train(data, TAN, training, Control(random_state=0)))
    assert train(data, TAN, training).history != train(data, TAN, training, Control(random_state=1)).history


@pytest.mark.parametrize("init", ["uniform", "ml"])
def test_averaged_runs_start_alike_and_their_mean_is_the_answer(init: str) -> None:
    data = small(7, n_samples=80)
    training = Training(loss=HYB, epochs=6, batch_size=16, learning_rate=0.1, init=init, averaged_runs=3)
    layout = build_layout(data, TAN)
    theta, phi, values = [], [], []
    for k in range(3):
        start = (
            likelihood_tables(layout, data, TAN, 1.0)
            if init == "ml"
            else uniform_tables(layout, np.random.default_rng([5, 0]))
        )
        state = initial_state(layout, start, "float32")
        for epoch in range(6):
            rng = np.random.default_rng([5, 1 + 6 * k + epoch])
            noise = rng.gumbel(size=(5, layout.n_families))
            order = rng.permutation(data.n_samples)
            steps = (training.tau(epoch), training.rate(epoch), training.structure_rate)
            steps = Epoch(order, noise, 16, *steps)
            work = make_work(layout, 16, data.n_classes, "float32")
            values.append(train_epoch(layout, state, HYB, data.codes, data.weights, steps, work))
        theta.append(state.theta.astype(np.float64))
        phi.append(state.phi)
    assert not np.allclose(theta[0], theta[1])
    trained = train(data, TAN, training, Control(random_state=5))
    assert [h[1] for h in trained.history] == values
    assert trained.details["epochs"] == 18
    assert trained.details["averaged_runs"] == 3
    np.testing.assert_allclose(trained.phi, np.mean(phi, axis=0), rtol=1e-12)
    chosen = most_probable(layout, np.mean(phi, axis=0))
    expected = tables_to_cpts(data, layout, TAN, np.mean(theta, axis=0), chosen)
    for ours, theirs in zip(trained.cpts, expected, strict=True):
        assert ours.parents == theirs.parents
        np.testing.assert_allclose(ours.table, theirs.table, rtol=1e-12)
    single = train(data, TAN, replace(training, averaged_runs=1), Control(random_state=5))
    assert single.history == trained.history[:6]


def test_a_run_that_was_stopped_counts_only_where_it_is_the_first(tmp_path: Path) -> None:
    data = small(8)
    training = Training(
        loss=HYB, epochs=4, batch_size=16, averaged_runs=3, learning_rate=0.1, validation=0.25
    )
    whole = train(data, TAN, training)

    def stopping_after(epochs: int) -> Control:
        asked = iter(range(epochs))
        return Control(interrupted=lambda: next(asked, None) is None)

    for epochs in (2, 4, 6, 11):
        checkpoint = str(tmp_path / f"{epochs}.npz")
        stopped = train(data, TAN, training, stopping_after(epochs), checkpoint)
        assert stopped.stopped_early
        assert stopped.history == whole.history[:epochs]
        assert stopped.runs == max(1, epochs // 4)
        if epochs == 6:
            same(
                stopped,
                replace(train(data, TAN, replace(training, averaged_runs=1)), history=stopped.history),
            )
        again = train(data, TAN, training, checkpoint=checkpoint)
        same(again, whole)
        assert again.error == whole.error is not None


def test_single_and_double_precision_agree() -> None:
    data, training = small(7), Training(loss=HYB, epochs=10, batch_size=16, learning_rate=0.02)
    single, double = (train(data, TAN, replace(training, dtype=d)) for d in ("float32", "float64"))
    assert single.parents == double.parents
    for a, b in zip(single.cpts, double.cpts, strict=True):
        np.testing.assert_allclose(a.table, b.table, atol=1e-3)
    assert single.history[-1][1] == pytest.approx(double.history[-1][1], rel=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_run_in_parts_is_the_run_in_one(tmp_path, dtype: str) -> None:
    data = small(8)
    training = Training(loss=HYB, epochs=12, batch_size=16, validation=0.2, dtype=dtype)
    whole = train(data, TAN, training)
    path = str(tmp_path / "run")
    calls = itertools.count()
    parts = []
    for stop in (4, 9):  # asked once per epoch, the first of a part included
        begun = next(calls)
        control = Control(
            interrupted=lambda begun=begun, stop=stop: next(calls) - begun > stop - len(parts) * 4
        )
        parts.append(train(data, TAN, training, control, path))
    assert [part.stopped_early for part in parts] == [True, True]
    assert 0 < len(parts[0].history) < len(parts[1].history) < 12
    assert parts[1].history == whole.history[: len(parts[1].history)]
    last = train(data, TAN, training, checkpoint=path)
    assert not last.stopped_early
    same(last, whole)
    same(train(data, TAN, training, checkpoint=path), whole)  # nothing left to do


def test_checkpoints_of_other_runs_are_refused(tmp_path) -> None:
    data, training, path = small(9), Training(loss=HYB, epochs=2), str(tmp_path / "run.npz")
    train(data, TAN, training, checkpoint=path)
    others = [
        (small(10), TAN, training, Control()),
        (data, (*TAN[:3], ((4,),), ((),)), training, Control()),
        (data, TAN, replace(training, epochs=3), Control()),
        (data, TAN, training, Control(random_state=1)),
    ]
    for other in others:
        with pytest.raises(InputError, match="other data or options"):
            train(*other, path)
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(InputError, match=r"text' is not a complete checkpoint; name another file"):
        train(data, TAN, training, checkpoint=str(tmp_path / "text"))
    np.savez(tmp_path / "part.npz", run=np.array("x"))
    with pytest.raises(InputError, match="not a complete checkpoint"):
        train(data, TAN, training, checkpoint=str(tmp_path / "part.npz"))
    with pytest.raises(InputError, match="folder"):
        train(data, TAN, training, checkpoint=str(tmp_path / "none" / "run"))


def test_validation_errors_are_reported() -> None:
    data, lines = small(11, n_samples=100), []
    training = Training(loss=HYB, epochs=40, batch_size=16, validation=0.25)
    trained = train(data, TAN, training, Control(report=lines.append))
    errors = [error for _, _, error in trained.history if error is not None]
    assert len(errors) == len(lines) == 20
    assert trained.history[-1][2] is not None
    assert trained.details["validation_error"] == errors[-1]
    assert all(
        0 <= error <= 1 and math.isclose(error * 25, round(error * 25), abs_tol=1e-9) for error in errors
    )
    assert "validation error" in lines[0]
    assert "epoch 40 of 40" in lines[-1]
    assert train(data, TAN, replace(training, validation=0.0)).details["validation_error"] is None


def test_the_error_rate_counts_weights() -> None:
    data = small(12, weights=True)
    structure = Structure.naive_bayes(data.names)
    classifier = Classifier.fit(data, structure)
    wrong = classifier.predict_log_joint(data).argmax(axis=1) != data.y
    assert error_rate(data, classifier.cpts) == pytest.approx(np.average(wrong, weights=data.weights))
    assert 0 < wrong.sum() < data.n_samples


def test_time_limit_gives_the_best_so_far() -> None:
    data = small(13)
    trained = train(data, TAN, Training(loss=HYB, epochs=10**7), Control(time_limit=0.2))
    assert trained.stopped_early
    assert trained.details["stopped_early"]
    assert len(trained.history) < 10**7
    assert len(trained.cpts) == 5


def test_chow_liu_parents_are_found() -> None:
    # Roth & Pernkopf (2020), section 4.6, on data with obvious parents.
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 800)
    X = rng.integers(0, 3, (800, 4))
    for child, parent in ((1, 0), (2, 0), (3, 2)):
        copied = rng.random(800) < 0.7
        X[copied, child] = (X[copied, parent] + y[copied]) % 3
    data = dataset(np.column_stack([X, y]))
    choices = (((4,),), *(((4,), *((j, 4) for j in range(i))) for i in range(1, 4)), ((),))
    for seed in range(3):
        training = Training(
            loss=make_loss("nll"), epochs=60, batch_size=50, learning_rate=0.03, structure_rate=0.01
        )
        trained = train(data, choices, training, Control(random_state=seed))
        assert trained.parents == ((4,), (0, 4), (0, 4), (2, 4), ())


@pytest.mark.parametrize(
    "options",
    [
        {"epochs": -1},
        {"batch_size": 0},
        {"learning_rate": 0.0},
        {"structure_rate": math.nan},
        {"smoothing": -1.0},
        {"init": "zero"},
        {"dtype": "float16"},
        {"validation": 1.0},
    ],
)
def test_bad_settings_are_refused(options) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        Training(loss=HYB, **options)


def test_bad_data_are_refused() -> None:
    data = small(14)
    codes = data.codes.copy()
    codes[3, 1] = UNKNOWN
    with pytest.raises(InputError, match="X2"):
        train(replace(data, codes=codes), TAN, Training(loss=HYB, epochs=1))
