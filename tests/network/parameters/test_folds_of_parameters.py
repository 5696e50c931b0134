"""The choice of kappa, strength and temperature by held-out rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from milpbn.data.folds import stratified_folds
from milpbn.network import Classifier
from milpbn.network.margins import log_posterior
from milpbn.network.parameters import folds
from milpbn.network.parameters.conditional import Design, Stopped
from milpbn.network.parameters.folds import choose_kappa, choose_temperature, generative_loss, make_folds
from milpbn.network.prior import Prior
from milpbn.network.structure import Structure


@pytest.fixture
def noisy(make_data):
    """Return data whose class follows from two features, up to a few rows."""
    data = make_data(11, samples=150, states=(3, 3, 2, 2, 2))
    codes = data.codes.copy()
    codes[:, -1] = (codes[:, 0] + codes[:, 1]) % 3 == 0
    codes[:6, -1] = 1 - codes[:6, -1]
    return type(data)("noisy", data.variables, codes, data.weights)


@pytest.fixture
def made(noisy):
    structure = Structure(noisy.names, ((4,), (0, 4), (4,), (2, 4), ()))
    design = Design(noisy, structure)
    return structure, design, make_folds(noisy, structure, Prior(1.0), design, 3)


def test_each_fold_has_the_offset_of_its_own_training_rows(noisy, made) -> None:
    structure, _, found = made
    for fold, (train, held_out) in zip(found, stratified_folds(noisy.y, 5, 3), strict=True):
        classifier = Classifier.fit(noisy.take(train), structure)
        expected = classifier.predict_log_joint(noisy.take(held_out))
        rows = [tuple(row) for row in fold.held_out.codes[:, :-1].tolist()]
        for row, joint in zip(noisy.X[held_out].tolist(), expected, strict=True):
            np.testing.assert_allclose(fold.held_out_joint[rows.index(tuple(row))], joint, rtol=1e-12)
        assert fold.train.weight == pytest.approx(len(train))


def test_generative_loss_is_that_of_cross_validation(noisy, made) -> None:
    structure, _, found = made
    total = 0.0
    for train, held_out in stratified_folds(noisy.y, 5, 3):
        log_joint = Classifier.fit(noisy.take(train), structure).predict_log_joint(noisy.take(held_out))
        total -= log_posterior(log_joint)[np.arange(len(held_out)), noisy.y[held_out]].sum()
    assert generative_loss(found) == pytest.approx(total / noisy.n_samples, rel=1e-12)


def test_temperature_is_the_minimum_of_the_held_out_loss(made) -> None:
    _, _, found = made
    best = choose_temperature(found)

    def loss(factor: np.ndarray) -> float:
        return sum(
            -(f.held_out.weights * log_posterior(factor[0] * f.held_out_joint)).sum() for f in found
        ) / sum(f.held_out.weight for f in found)

    other = minimize(loss, [1.0], method="Nelder-Mead")
    assert best.kappa == pytest.approx(other.x[0], abs=1e-3)
    assert best.held_out_log_loss == pytest.approx(other.fun, rel=1e-6)
    assert best.held_out_log_loss <= best.generative_log_loss
    assert best.strength is None


def test_the_choice_has_the_smallest_loss_of_all_that_were_tried(made, monkeypatch) -> None:
    _, design, found = made
    lines: list[str] = []
    best = choose_kappa(
        found, "hybrid", (1.0, 0.0), design.n_columns, stopping=lambda: False, report=lines.append
    )
    tried = [float(line.rpartition(" ")[2]) for line in lines]
    assert best.fitted
    assert not best.note
    assert best.held_out_log_loss < best.generative_log_loss == pytest.approx(generative_loss(found))
    # The best kappa, and a penalty at least as strong as that of the smallest loss.
    line = lines[int(np.argmin(tried))]
    assert f"kappa {best.kappa:g}," in line
    assert best.strength >= float(line.partition("strength ")[2].partition(":")[0])
    assert (
        f"kappa {best.kappa:g}, strength {best.strength:g}: held-out log-loss {best.held_out_log_loss:.6f}"
        in str(lines)
    )
    # The path of each kappa goes on until two strengths in a row are no better.
    assert sum("kappa 0," in line for line in lines) > 3
    monkeypatch.setattr(folds, "PATIENCE", 1)
    fewer: list[str] = []
    choose_kappa(found, "cll", (0.0,), design.n_columns, stopping=lambda: False, report=fewer.append)
    assert len(fewer) < sum("kappa 0," in line for line in lines)


def test_generative_parameters_win_where_nothing_is_learnt(make_data) -> None:
    data = make_data(0, samples=40, states=(4, 4, 4, 3))  # the class is independent of all
    structure = Structure(data.names, ((3,), (0, 3), (1, 3), ()))
    design = Design(data, structure)
    found = make_folds(data, Structure.empty(data.names), Prior(1.0), design, 0)
    best = choose_kappa(found, "hybrid", (1.0,), design.n_columns, stopping=lambda: False)
    assert (best.fitted, best.kappa, best.strength) == (False, None, None)
    assert best.note == folds.GENERATIVE


@pytest.mark.parametrize("method", ["hybrid", "cll"])
def test_an_early_stop_leaves_no_choice_and_a_late_one_what_was_tried(made, method) -> None:
    _, design, found = made
    with pytest.raises(Stopped):
        choose_kappa(found, method, (0.0,), design.n_columns, stopping=lambda: True)
    lines: list[str] = []
    late = choose_kappa(
        found, method, (0.5,), design.n_columns, stopping=lambda: len(lines) >= 4, report=lines.append
    )
    assert late.note.endswith(folds.CUT_SHORT)
    assert len(lines) == 4
    assert method == "hybrid" or late.strength in folds.STRENGTHS[:4]
