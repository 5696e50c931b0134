"""Calibration of prediction sets on folds and on new rows, and their figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from milpbn.data.dataset import UNKNOWN, Variable
from milpbn.data.folds import stratified_folds
from milpbn.errors import InputError
from milpbn.network import (
    AveragedClassifier,
    Classifier,
    Cpt,
    PseudoClassifier,
    Structure,
    load_any_classifier,
    save_classifier,
)
from milpbn.network.parameters.refit import refit_classifier
from milpbn.network.parameters.sets import calibrate_sets, evaluate_sets
from milpbn.network.parameters.thresholds import left_out_probabilities


def _truth(seed, classes=3, features=5):
    """A naive Bayes network whose classes are hard to tell."""
    rng = np.random.default_rng(seed)
    sizes = [3] * features + [classes]
    variables = tuple(Variable(f"x{i}", tuple(f"s{k}" for k in range(n))) for i, n in enumerate(sizes))
    structure = Structure(tuple(v.name for v in variables), (*(((features,),) * features), ()))
    cpts = [
        Cpt(i, own, rng.dirichlet(np.full(sizes[i], 6.0), [sizes[j] for j in own]))
        for i, own in enumerate(structure.parents)
    ]
    return Classifier(variables, structure, tuple(cpts))


@pytest.fixture(scope="module")
def fitted():
    truth = _truth(0)
    data = truth.sample(150, random_state=1)
    return truth, data, Classifier.fit(data, truth.structure)


def test_folds_are_judged_by_the_tables_of_the_others(fitted, tmp_path):
    """A new row is compared by each fold's tables with the fold's rows (CV+), also after a file."""
    truth, data, classifier = fitted
    data = replace(data, weights=np.random.default_rng(0).integers(1, 3, 150).astype(float))
    classifier = Classifier.fit(data, truth.structure)
    both = AveragedClassifier((classifier, Classifier.fit(data, Structure.empty(data.names))))
    new = truth.sample(60, random_state=2)
    for model in (classifier, both):
        found = calibrate_sets(model, data, "folds").predict_set(new, 0.2)
        shares = np.zeros((60, 3))
        for train, held in stratified_folds(data.y, 5, 0):
            part = data.take(train)
            members = [
                Classifier.fit(part, one.structure) for one in getattr(model, "members", (classifier,))
            ]
            p, own = (
                np.mean([one.predict_proba(rows) for one in members], axis=0)
                for rows in (new, data.take(held))
            )
            likely = own[np.arange(len(held)), data.y[held]]
            below = likely[:, None, None] <= p[None] + 1e-9
            shares += (data.weights[held][:, None, None] * below).sum(axis=0)
        expected = (shares + 2) / (data.weights.sum() + 2) > 0.2
        expected[np.arange(60), model.predict_proba(new).argmax(axis=1)] = True
        assert (found == expected).all()
        assert 1 < found.sum(axis=1).mean() < 2.9
        save_classifier(calibrate_sets(model, data, "folds"), tmp_path / "c.json")
        assert (load_any_classifier(tmp_path / "c.json").predict_set(new, 0.2) == expected).all()


@pytest.mark.parametrize("class_parent", [False, True])
def test_rows_are_left_out_one_by_one(class_parent, tmp_path):
    """Every probability is that of tables which are fitted to all other rows, also of averages and with weights."""
    rng = np.random.default_rng(5)
    data = _truth(3).sample(60, random_state=1)
    data = replace(data, weights=rng.uniform(0.3, 2.5, 60))
    class_parents = (4,) if class_parent else ()
    structure = Structure(data.names, ((), (0, 5), (0, 1, 5), (5,), (), class_parents))
    model = AveragedClassifier(
        tuple(Classifier.fit(data, own, 0.7) for own in (structure, _truth(3).structure))
    )
    found = left_out_probabilities(model, data)
    for m in range(60):
        others = data.take(np.delete(np.arange(60), m))
        fitted = [Classifier.fit(others, one.structure, 0.7) for one in model.members]
        expected = np.mean([one.predict_proba(data.take([m])) for one in fitted], axis=0)
        np.testing.assert_allclose(found[[m]], expected, rtol=1e-11)
    calibrated = calibrate_sets(model, data, "leave-one-out")
    likely = found[np.arange(60), data.y]
    below = (data.weights[:, None, None] * (likely[:, None, None] <= model.predict_proba(data) + 1e-9)).sum(
        axis=0
    )
    expected = (below + data.weights.max()) / (data.weights.sum() + data.weights.max()) > 0.2
    expected[np.arange(60), model.predict_proba(data).argmax(axis=1)] = True
    assert (calibrated.predict_set(data, 0.2) == expected).all()
    save_classifier(calibrated, tmp_path / "c.json")
    again = load_any_classifier(tmp_path / "c.json")
    assert again.conformal.origin == "60 rows of training, each left out of the tables"
    assert (again.predict_set(data, 0.2) == expected).all()


def test_new_rows_serve_every_kind_of_classifier(fitted, tmp_path):
    truth, data, classifier = fitted
    hybrid, _ = refit_classifier(classifier, data, "hybrid:0.5:3")
    rows, new = truth.sample(80, random_state=3), truth.sample(50, random_state=4)
    for model in (
        hybrid,
        AveragedClassifier((hybrid, classifier)),
        PseudoClassifier(data.variables, classifier.cpts),
    ):
        calibrated = calibrate_sets(model, rows)
        likely = np.sort(model.predict_proba(rows)[np.arange(80), rows.y])
        p = model.predict_proba(new)
        expected = (
            p + 1e-9 >= likely[int(np.floor(0.1 * 81)) - 1]
        )  # at least 9 of 81, the row itself among them
        expected[np.arange(50), p.argmax(axis=1)] = True
        assert (calibrated.predict_set(new) == expected).all()
        save_classifier(calibrated, tmp_path / "c.json")
        assert (load_any_classifier(tmp_path / "c.json").predict_set(new) == expected).all()
    folds = calibrate_sets(hybrid, data, "folds")  # tables of folds are fitted to the classes, too
    assert folds.predict_set(new).shape == (50, 3)


@pytest.mark.parametrize(
    ("on", "weighted"), [("folds", False), ("folds", True), ("leave-one-out", True), ("new", True)]
)
def test_coverage_is_what_was_promised(on, weighted):
    """Over 45 networks, samples and rows; weighted rows are selected by their first feature."""
    error, held, of_class = 0.2, [], []
    for seed in range(45):
        truth, rng = _truth(seed), np.random.default_rng(seed)

        def drawn(n, truth=truth, rng=rng):
            if not weighted:
                return truth.sample(n, random_state=rng)
            many = truth.sample(4 * n, random_state=rng)
            chance = np.array([0.9, 0.5, 0.3])[many.codes[:, 0]]
            kept = np.flatnonzero(rng.random(4 * n) < chance)[:n]
            return replace(many.take(kept), weights=1 / chance[kept])

        data = drawn(120)
        classifier = Classifier.fit(data, truth.structure)
        calibrated = calibrate_sets(classifier, drawn(120) if on == "new" else data, on)
        new = truth.sample(400, random_state=rng)
        held.append(evaluate_sets(calibrated, new, error)[0].coverage)
        by_class = evaluate_sets(calibrated, new, error, by_class=True)
        of_class.append(by_class[2].coverage)
    for found in (held, of_class):
        spread = 3 * np.std(found) / np.sqrt(45)
        assert 1 - error - spread < np.mean(found) < 1 - error + 0.07
        assert spread < 0.045


def test_figures_are_those_of_the_sets(fitted):
    truth, _, classifier = fitted
    calibrated = calibrate_sets(classifier, truth.sample(80, random_state=5))
    rows = truth.sample(70, random_state=6)
    codes, w = rows.codes.copy(), np.random.default_rng(1).uniform(0.5, 2, 70)
    codes[:4, -1] = UNKNOWN
    rows = replace(rows, codes=codes, weights=w)
    overall, *by_class = evaluate_sets(calibrated, rows, 0.3)
    inside = calibrated.predict_set(rows, 0.3)
    covered = np.array([y >= 0 and inside[m, y] for m, y in enumerate(rows.y)])
    assert not covered[:4].any()
    assert overall.coverage == pytest.approx(w @ covered / w.sum())
    assert overall.size == pytest.approx(w @ inside.sum(axis=1) / w.sum())
    assert overall.sizes[0] == pytest.approx(w[inside.sum(axis=1) == 1].sum() / w.sum())
    assert sum(overall.sizes) == pytest.approx(1)
    second = rows.y == 1
    assert by_class[1].coverage == pytest.approx(w[second] @ covered[second] / w[second].sum())
    assert by_class[1].rows == second.sum()
    assert [one.label for one in by_class] == list(classifier.classes)


def test_what_cannot_be_calibrated_is_refused(fitted):
    truth, data, classifier = fitted
    for model, rows, on, sentence in (
        (classifier, data, "new", "are those of training"),
        (classifier, data, "loo", "on one of folds, leave-one-out, new"),
        (refit_classifier(classifier, data, "hybrid:0.5:3")[0], data, "leave-one-out", "--conformal folds"),
        (Classifier.fit(data, truth.structure, 0.0), data, "leave-one-out", "Laplace smoothing"),
        (classifier, truth.sample(90, random_state=9), "folds", "not those that are fitted"),
        (PseudoClassifier(data.variables, classifier.cpts), data, "folds", "--conformal new"),
    ):
        with pytest.raises(InputError, match=sentence):
            calibrate_sets(model, rows, on)
    with pytest.raises(InputError, match="are not calibrated"):
        classifier.predict_set(data)
