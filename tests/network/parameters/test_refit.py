"""Refitted parameters: what they improve, when the previous parameters are kept, and what is said."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest

from milpbn.errors import InputError
from milpbn.network import Classifier, fit_cpts, load_classifier, save_classifier
from milpbn.network.margins import log_posterior
from milpbn.network.parameters import log_linear
from milpbn.network.parameters import refit as module
from milpbn.network.parameters.conditional import Stopped
from milpbn.network.parameters.folds import STRENGTHS
from milpbn.network.parameters.record import ParameterFit, recorded
from milpbn.network.parameters.refit import PATH_KAPPAS, fitted_path, refit_classifier
from milpbn.network.structure import Structure
from milpbn.util.budget import Budget

METHODS = ("cll", "hybrid", "temperature")
TAN = ((4,), (0, 4), (0, 4), (4,), ())
CHAIN = ((4,), (0, 4), (0, 4), (2, 4), ())


@pytest.fixture
def draw(make_data):
    """Return data in which three features say the same, so that generative parameters count it three times."""

    def draw(seed: int, samples: int):
        plain = make_data(seed, samples=samples, states=(3, 2, 2, 2, 2))
        codes = plain.codes.copy()
        codes[:, 1:] = codes[:, 3:4]
        codes[::5, 4] = 1 - codes[::5, 4]
        return replace(plain, codes=codes)

    return draw


@pytest.fixture
def data(draw):
    return draw(11, 200)


@pytest.fixture
def before(data):
    return Classifier.fit(data, Structure(data.names, TAN))


def loss(classifier: Classifier, data) -> float:
    return float(-log_posterior(classifier.predict_log_joint(data))[np.arange(data.n_samples), data.y].mean())


def test_ml_gives_the_generative_tables(data) -> None:
    structure = Structure(data.names, TAN)
    after, record = refit_classifier(Classifier.fit(data, structure, 0.5), data, "ml")
    for cpt, other in zip(after.cpts, fit_cpts(data, structure, 0.5), strict=True):
        assert np.array_equal(cpt.table, other.table)
    assert replace(record, seconds=0.0) == ParameterFit()


@pytest.mark.parametrize("method", METHODS)
def test_loss_falls_on_other_rows(data, before, draw, method) -> None:
    after, record = refit_classifier(before, data, method)
    assert record.fitted
    assert record.method == method
    assert record.held_out_log_loss < record.generative_log_loss
    other = draw(12, 2000)
    assert loss(after, other) < loss(before, other)
    assert after.structure == before.structure
    assert (record.strength is None) == (method == "temperature")
    assert record.seconds > 0
    assert recorded(after.provenance) == record
    if method == "cll":
        assert record.kappa == 0


def test_temperature_scales_the_odds(data, before) -> None:
    after, record = refit_classifier(before, data, "temperature")
    expected = log_posterior(record.kappa * before.predict_log_joint(data))
    np.testing.assert_allclose(log_posterior(after.predict_log_joint(data)), expected, rtol=0, atol=1e-10)
    assert after.predict(data).tolist() == before.predict(data).tolist()


def test_posteriors_are_those_of_offset_and_deviations(data, monkeypatch) -> None:
    structure = Structure(data.names, ((), (0, 4), (4,), (4,), ()))
    kept = []
    fit = log_linear.fit_deviations

    def spy(rows, offset, *arguments, **options):
        deviations = fit(rows, offset, *arguments, **options)
        kept.append((rows, offset + rows.indicators @ deviations))
        return deviations

    monkeypatch.setattr(log_linear, "fit_deviations", spy)
    classifier, record = refit_classifier(Classifier.fit(data, structure), data, "hybrid")
    assert record.added_arcs == (("class", "x0"),)
    assert classifier.structure != structure
    ((rows, scores),) = kept
    sample = replace(data, codes=rows.codes, weights=rows.totals)
    np.testing.assert_allclose(
        log_posterior(classifier.predict_log_joint(sample)), log_posterior(scores), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_weight_0_change_nothing(data, method) -> None:
    structure = Structure(data.names, TAN)
    weights = np.ones(data.n_samples)
    weights[::3] = 0.0
    some = replace(data, weights=weights)
    taken = data.take(np.flatnonzero(weights))
    fitted = (refit_classifier(Classifier.fit(rows, structure), rows, method) for rows in (some, taken))
    (one, _), (other, _) = fitted
    for cpt, same in zip(one.cpts, other.cpts, strict=True):
        np.testing.assert_allclose(cpt.table, same.table, rtol=1e-9)


def test_files_keep_the_parameters_and_their_record(data, before, tmp_path) -> None:
    after, record = refit_classifier(before, data, "cll")
    save_classifier(after, tmp_path / "c.json")
    again = load_classifier(tmp_path / "c.json")
    assert np.array_equal(again.predict_log_joint(data), after.predict_log_joint(data))
    assert recorded(again.provenance) == record


def kept_as_before(before: Classifier, data, method: str = "cll", **options) -> ParameterFit:
    """Check that the previous parameters are kept, and return the record."""
    after, record = refit_classifier(before, data, method, **options)
    assert not record.fitted
    assert record.note.endswith("parameters are kept.")
    assert after.structure == before.structure
    assert all(a is b for a, b in zip(after.cpts, before.cpts, strict=True))
    assert recorded(after.provenance) == record
    return record


def test_structures_that_cannot_hold_the_parameters_keep_theirs(data) -> None:
    structure = Structure(data.names, ((), (0,), (0, 4), (4,), (1,)))
    record = kept_as_before(Classifier.fit(data, structure), data)
    assert "'x0', a parent of 'x2', is not adjacent to the class" in record.note
    free = Structure(data.names, ((), (0, 4), (4,), (4,), ()))
    record = kept_as_before(Classifier.fit(data, free), data, objection=lambda s: "it has a forbidden arc")
    assert "breaks a constraint: it has a forbidden arc;" in record.note


@pytest.mark.parametrize("method", METHODS)
def test_without_time_or_interrupted_the_parameters_are_kept(data, before, method) -> None:
    assert kept_as_before(before, data, method, budget=Budget(-1.0)).note == (
        "The time limit ended before the parameters were fitted; the generative parameters are kept."
    )
    assert kept_as_before(before, data, method, budget=Budget(cancelled=lambda: True)).note == (
        "The run was interrupted before the parameters were fitted; the generative parameters are kept."
    )


@pytest.mark.parametrize("moment", range(0, 400, 40))
def test_an_interrupt_at_any_moment_leaves_a_classifier(data, before, moment) -> None:
    asked = itertools.count()
    budget = Budget(cancelled=lambda: next(asked) > moment)
    after, record = refit_classifier(before, data, "hybrid", budget=budget)
    assert after.predict_proba(data).shape == (data.n_samples, 2)
    assert record.fitted or "interrupted" in record.note


def test_a_choice_that_is_cut_short_has_a_note(data, before, monkeypatch) -> None:
    lines: list[str] = []
    now = time.monotonic()
    # The clock jumps past the end of the choice after three strengths, and not past the deadline.
    monkeypatch.setattr(module.time, "monotonic", lambda: now + (80 if len(lines) > 2 else 0))
    _, record = refit_classifier(before, data, "cll", budget=Budget(100.0), report=lines.append)
    assert record.fitted
    assert "ended the choice" in record.note


def test_a_fit_that_is_stopped_at_the_end_keeps_the_parameters(data, before, monkeypatch) -> None:
    def stopped(*arguments, **options):
        raise module.Stopped

    monkeypatch.setattr(log_linear, "fit_deviations", stopped)
    assert "time limit" in kept_as_before(before, data).note


def test_other_reasons_keep_the_parameters(data, before, monkeypatch) -> None:
    assert "smoothing" in kept_as_before(Classifier.fit(data, before.structure, 0.0), data).note
    one = data.take([0])
    assert "two rows" in kept_as_before(Classifier.fit(one, before.structure), one).note
    monkeypatch.setattr(log_linear, "normalised", lambda *_: None)
    assert "smallest that float64" in kept_as_before(before, data).note


def test_generative_parameters_are_a_choice_of_hybrid(make_data) -> None:
    idle = make_data(3, samples=40, states=(4, 4, 4, 4, 2))  # the class is independent of all features
    plain = Classifier.fit(idle, Structure(idle.names, ((), (), (), (), ())))
    before = replace(plain, cpts=tuple(reversed([replace(c) for c in reversed(plain.cpts)])))
    after, record = refit_classifier(before, idle, "hybrid", before="learner's")
    assert not record.fitted
    assert "than the generative ones, which the classifier has" in record.note
    assert record.held_out_log_loss == record.generative_log_loss
    for cpt, other in zip(after.cpts, plain.cpts, strict=True):
        assert np.array_equal(cpt.table, other.table)


def test_a_lack_of_memory_keeps_the_parameters(data, before, monkeypatch) -> None:
    def full(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(log_linear, "Design", full)
    assert "memory" in kept_as_before(before, data).note


def test_unknown_methods_are_refused(data, before) -> None:
    with pytest.raises(InputError, match="There are no parameters 'best'; choose one of ml, cll"):
        refit_classifier(before, data, "best")


def test_unseen_values_are_summed_out(data, before) -> None:
    """A value without a state drops the factor of a leaf, whose normalised table sums to 1."""
    after, _ = refit_classifier(before, data, "cll")
    codes = data.codes.copy()
    codes[:, 3] = -1
    blank = after.predict_log_joint(replace(data, codes=codes))
    parts = []
    for state in range(data.variables[3].n_states):
        codes[:, 3] = state
        parts.append(after.predict_log_joint(replace(data, codes=codes)))
    np.testing.assert_allclose(blank, np.logaddexp.reduce(parts, axis=0), rtol=1e-9)


#: Number of classifiers on the path, the generative one included.
LENGTHS = {
    "ml": 1,
    "cll": len(STRENGTHS),
    "hybrid": 1 + 5 * len(STRENGTHS) + 3,
    "temperature": len(PATH_KAPPAS["temperature"]),
}


@pytest.fixture
def plain(make_data):
    data = make_data(3, samples=150)
    return Classifier.fit(data, Structure(data.names, CHAIN)), data


@pytest.mark.parametrize("method", LENGTHS)
def test_every_classifier_of_a_path_is_that_of_a_refit_with_its_values(plain, method) -> None:
    classifier, data = plain
    found = list(fitted_path(classifier, data, method))
    assert len(found) == len({how for how, _ in found}) == LENGTHS[method]
    for how, fitted in found[:: max(1, len(found) // 6)]:
        again, record = refit_classifier(classifier, data, str(how))
        assert (record.fitted, record.folds) == (how.name != "ml", None)
        posteriors = (log_posterior(c.predict_log_joint(data)) for c in (fitted, again))
        np.testing.assert_allclose(*map(np.exp, posteriors), rtol=0, atol=1e-2)


def test_the_generative_parameters_of_a_path_have_the_prior_of_the_classifier(plain) -> None:
    _, data = plain
    classifier = Classifier.fit(data, Structure(data.names, CHAIN), smoothing_towards="class")
    joint = classifier.predict_log_joint(data)
    for how, fitted in fitted_path(classifier, data, "temperature"):
        again, _ = refit_classifier(classifier, data, str(how))
        expected = log_posterior((how.kappa or 1.0) * joint)
        for found in (fitted, again):
            assert found.smoothing_towards == "class"
            np.testing.assert_allclose(log_posterior(found.predict_log_joint(data)), expected, atol=1e-9)


def test_rows_of_weight_0_have_no_part_in_a_path(plain) -> None:
    classifier, data = plain
    weights = np.ones(data.n_samples)
    weights[::3] = 0.0
    some = replace(data, weights=weights)
    taken = data.take(np.flatnonzero(weights))
    for (how, one), (other_how, other) in zip(
        fitted_path(classifier, some, "hybrid"), fitted_path(classifier, taken, "hybrid"), strict=True
    ):
        assert how == other_how
        np.testing.assert_allclose(one.predict_log_joint(data), other.predict_log_joint(data), atol=1e-9)


def test_a_path_without_room_has_the_classifier_alone(plain) -> None:
    _, data = plain
    classifier = Classifier.fit(data, Structure(data.names, ((), (0,), (0, 4), (4,), (1,))))
    found = list(fitted_path(classifier, data, "hybrid"))
    assert [how.name for how, _ in found] == ["ml"]
    assert found[0][1] is classifier


def test_a_stop_ends_the_path(plain) -> None:
    classifier, data = plain
    with pytest.raises(Stopped):
        list(fitted_path(classifier, data, "cll", stopping=lambda: True))
