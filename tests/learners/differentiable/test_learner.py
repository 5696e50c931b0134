"""The learners `differentiable-tan` and `parameters`, their classifiers and presets."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from running import dataset, random_data

from milpbn.data.dataset import UNKNOWN, Dataset
from milpbn.errors import InputError
from milpbn.heuristics.spanning import tan_structure
from milpbn.learners.base import Control
from milpbn.learners.differentiable import training
from milpbn.learners.differentiable.learner import DifferentiableTan, Parameters
from milpbn.learners.differentiable.losses import Loss, make_loss
from milpbn.learners.differentiable.orderings import STRUCTURES, candidate_choices, predecessors
from milpbn.learners.differentiable.presets import (
    search_one,
    search_two,
    structures,
)
from milpbn.learners.differentiable.training import Training, train
from milpbn.network import Classifier, evaluate, load_any_classifier, load_classifier, save_classifier
from milpbn.network.evaluation import accuracy
from milpbn.network.formats.classifier_files import any_classifier_from_dict, any_classifier_to_dict
from milpbn.network.formats.structure_files import write_arcs
from milpbn.network.pseudo import PseudoClassifier
from milpbn.network.structure import Structure, find_cycle

QUICK = DifferentiableTan(epochs=3, batch_size=20, k=2, lambda_=5.0)
GENERAL = ((), (0, 4), (0, 1, 4), (1,), (0,))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_structure_preset_learns(structure: str) -> None:
    data = random_data(31, n_features=4, n_samples=60)
    learner = replace(QUICK, structure=structure, validation=0.2)
    learned = learner.fit(data, Control(random_state=3))
    assert learned.predictor.classes == data.variables[-1].states
    assert learned.predictor.predict(data).shape == (60,)
    assert not learned.details["stopped_early"]
    assert learned.details["validation_error"] is not None
    cpts = learned.predictor.cpts
    choices = candidate_choices(data, structure, 2)
    assert all(cpt.parents in sets for cpt, sets in zip(cpts, choices, strict=True))
    if learned.structure is None:
        assert structure.startswith("pseudo")
        assert find_cycle([cpt.parents for cpt in cpts]) is not None
    else:
        assert isinstance(learned.predictor, Classifier)
        assert learned.structure.parents == tuple(cpt.parents for cpt in cpts)
        assert learned.predictor.provenance["learner"]["structure"] == structure
    if structure == "chow-liu":
        assert learned.structure == tan_structure(data)


def cyclic_data() -> Dataset:
    """Two features that are each other's best parents, and noise."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 400)
    first = rng.integers(0, 3, 400)
    second = np.where(rng.random(400) < 0.9, (first + y) % 3, rng.integers(0, 3, 400))
    return dataset(np.column_stack([first, second, rng.integers(0, 2, 400), y]))


def cyclic_classifier() -> PseudoClassifier:
    learner = DifferentiableTan(
        structure="pseudo-all", loss="nll", epochs=60, batch_size=50, structure_rate=0.02
    )
    learned = learner.fit(cyclic_data())
    assert learned.structure is None
    assert isinstance(learned.predictor, PseudoClassifier)
    return learned.predictor


def test_a_pseudo_tan_with_a_cycle_predicts(tmp_path) -> None:
    data, classifier = cyclic_data(), cyclic_classifier()
    assert [cpt.parents for cpt in classifier.cpts[:2]] == [(1, 3), (0, 3)]
    rows = data.codes[:5].copy()
    rows[1, 0] = UNKNOWN  # drops X1's factor, and makes X2's row uniform
    samples = replace(data, codes=rows, weights=np.ones(5))
    expected = np.zeros((5, 2))
    for m, row in enumerate(rows):
        for c in range(2):
            codes = [*row[:3], c]
            for cpt in classifier.cpts:
                if codes[cpt.variable] == UNKNOWN:
                    continue
                if any(codes[j] == UNKNOWN for j in cpt.parents):
                    expected[m, c] -= np.log(cpt.table.shape[-1])
                else:
                    expected[m, c] += np.log(cpt.table[tuple(codes[j] for j in (*cpt.parents, cpt.variable))])
    np.testing.assert_allclose(classifier.predict_log_joint(samples), expected, atol=1e-12)
    labels = [classifier.classes[c] for c in expected.argmax(axis=1)]
    assert classifier.predict(samples).tolist() == labels

    save_classifier(classifier, tmp_path / "pseudo.json")
    again = load_any_classifier(tmp_path / "pseudo.json")
    assert isinstance(again, PseudoClassifier)
    figures = evaluate(again, data)
    assert figures.accuracy == accuracy(classifier, data)
    assert again.variables == classifier.variables
    np.testing.assert_array_equal(again.predict_log_joint(data), classifier.predict_log_joint(data))


def test_bad_pseudo_classifiers_are_refused(tmp_path) -> None:
    classifier = cyclic_classifier()
    document = any_classifier_to_dict(classifier)
    for change, word in [
        ({"format": "milpbn-classifier"}, "lacks the key 'structure'"),
        ({"version": 2}, "version"),
        ({"version": 3}, "version"),
        ({"cpts": document["cpts"][:-1]}, "4 variables and 3 tables"),
        ({"variables": [{"name": "X1"}]}, "lacks"),
        ({"variables": [], "version": 2, "decision": {"threshold": 0.5}}, "at least one feature"),
        ({"cpts": [], "conformal": {}}, "4 variables and 0 tables"),
        ({"cpts": [{**document["cpts"][0], "parents": [0, 3]}, *document["cpts"][1:]]}, "in another order"),
        ({"cpts": [{**document["cpts"][0], "table": [[1.0]]}, *document["cpts"][1:]]}, "shape"),
        ({"cpts": [{**document["cpts"][0], "table": "x"}, *document["cpts"][1:]]}, "a list as"),
        ({"cpts": [{**document["cpts"][0], "table": ["x"]}, *document["cpts"][1:]]}, "that are not numbers"),
    ]:
        with pytest.raises(InputError, match=word):
            any_classifier_from_dict({**document, **change})
    tables = list(classifier.cpts)
    tables[0] = replace(tables[0], table=tables[0].table * 1.1)
    with pytest.raises(InputError, match="do not sum to 1"):
        PseudoClassifier(classifier.variables, tuple(tables))
    (tmp_path / "bad.json").write_text("{}")
    for load in (load_any_classifier, load_classifier):
        with pytest.raises(InputError, match=r"bad\.json"):
            load(tmp_path / "bad.json")
    save_classifier(classifier, tmp_path / "pseudo.json")
    with pytest.raises(InputError, match="a pseudo-TAN"):
        load_classifier(tmp_path / "pseudo.json")


def test_parameters_of_a_structure_from_a_file(tmp_path) -> None:
    data = random_data(32, n_features=4, n_samples=80)
    structure = Structure(data.names, GENERAL)
    write_arcs(structure, tmp_path / "arcs.txt")
    learner = Parameters(structure_file=str(tmp_path / "arcs.txt"), epochs=20, lambda_=5.0, batch_size=20)
    learned = learner.fit(data)
    assert learned.structure == structure
    assert learned.predictor.structure == structure
    assert len(learned.details["history"]) == 20
    save_classifier(learned.predictor, tmp_path / "classifier.json")
    again = load_classifier(tmp_path / "classifier.json")
    np.testing.assert_array_equal(again.predict_log_joint(data), learned.predictor.predict_log_joint(data))
    # A classifier file is a structure file, too; without epochs the parameters are the closed-form ones.
    closed = replace(learner, structure_file=str(tmp_path / "classifier.json"), epochs=0).fit(data)
    np.testing.assert_allclose(
        closed.predictor.predict_log_joint(data),
        Classifier.fit(data, structure).predict_log_joint(data),
        atol=1e-5,
    )
    with pytest.raises(InputError, match="structure_file"):
        Parameters().fit(data)


def test_options_are_checked() -> None:
    for learner in (DifferentiableTan(), Parameters()):
        for field in fields(learner):
            default = getattr(learner, field.name)
            assert "choices" not in field.metadata or default in field.metadata["choices"]
    for options in ({"loss": "x"}, {"gamma": -1.0}, {"epochs": -1}, {"structure": "x"}):
        with pytest.raises(InputError, match=str(next(iter(options.values())))):
            DifferentiableTan(**options).fit(random_data(33))


def test_the_checkpoint_option_continues_a_run(tmp_path) -> None:
    data = random_data(34, n_features=4, n_samples=60)
    learner = replace(QUICK, structure="all", checkpoint=str(tmp_path / "run"))
    once, twice = learner.fit(data), learner.fit(data)
    plain = replace(learner, checkpoint=None).fit(data)
    for other in (twice, plain):
        np.testing.assert_array_equal(
            once.predictor.predict_log_joint(data), other.predictor.predict_log_joint(data)
        )
    with pytest.raises(InputError, match="other data or options"):
        replace(learner, gamma=2.0).fit(data)


def test_the_random_search_draws_from_the_published_ranges() -> None:
    one, two = search_one(), search_two()
    assert (len(one), len(two)) == (500, 100)
    lambdas, gammas, etas = (np.array([getattr(h, n) for h in one]) for n in ("lambda_", "gamma", "eta"))
    for values, low, high in (
        (np.log10(lambdas), 0, 3),
        (np.log10(gammas), -1, 2),
        (etas, 1, 20),
        (np.log10([h.lambda_ for h in two]), 1, 3),
        (np.log10([h.gamma for h in two]), -1, 2),
    ):
        width = high - low
        assert low <= values.min() < low + 0.1 * width
        assert high - 0.1 * width < values.max() <= high
        assert abs(values.mean() - (low + high) / 2) < 0.1 * width
    assert {h.eta for h in two} == {10.0}
    assert search_one(10, 1) != search_one(10, 2)
    assert search_one(10) == one[:10]


@pytest.mark.parametrize(
    ("family", "count"), [("naive-bayes", 1), ("chow-liu", 1), ("all", 5), ("random", 50), ("subset", 75)]
)
def test_structures_are_the_published_ones(family: str, count: int) -> None:
    learners = structures(family)
    assert len(learners) == len(set(learners)) == count
    assert all(learner.epochs == 500 for learner in learners)
    assert {learner.ordering for learner in learners} == set(range(min(5, count)))


def test_heuristic_structures_are_made_and_unknown_ones_refused() -> None:
    assert {(s.structure[-1], s.k) for s in structures("heuristic")} == {
        (a, k) for a in "abc" for k in (1, 2, 5, 8)
    }
    with pytest.raises(InputError, match="multinet"):
        structures("multinet")


def test_hybrid_parameters_of_chow_liu_on_letter(image_folds) -> None:
    train_rows, test_rows = image_folds("letter")[0]

    def error(predictor) -> float:
        labels = np.array(predictor.classes, dtype=object)
        return 100 * np.mean(predictor.predict(test_rows) != labels[test_rows.y])

    maximum_likelihood = DifferentiableTan(structure="chow-liu", epochs=0, init="ml").fit(train_rows)
    assert error(maximum_likelihood.predictor) == pytest.approx(15.23, abs=0.005)  # their Table 1
    hybrid = DifferentiableTan(structure="chow-liu", epochs=15).fit(train_rows)
    assert error(hybrid.predictor) < 10.5


@pytest.mark.slow
def test_chow_liu_structure_of_letter_is_recovered(image_folds) -> None:
    train_rows, _ = image_folds("letter")[0]
    tree = tan_structure(train_rows)
    training = Training(loss=make_loss("nll"), epochs=200, learning_rate=3e-2)
    label = train_rows.n_features
    earlier = predecessors([i for i in tree.topological_order() if i != label])
    choices = (*(((label,), *((int(j), label) for j in before)) for before in earlier), ((),))
    found = train(train_rows, choices, training).parents
    varying = [i for i in range(16) if train_rows.n_states[i] > 1]
    assert [found[i] for i in varying] == [tree.parents[i] for i in varying]


def test_every_epoch_gets_the_options_and_the_published_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Section 4.2: tau and Theta's rate fall geometrically, Phi's rate stays as it is."""
    seen: list[dict[str, Any]] = []

    def train_epoch(*values: Any) -> float:
        seen.append({"loss": values[2], **values[5]._asdict()})
        return 0.0

    monkeypatch.setattr(training, "train_epoch", train_epoch)
    learner = DifferentiableTan(
        epochs=5, batch_size=20, learning_rate=0.2, structure_rate=0.07, lambda_=7.0, gamma=1.5, eta=4.0
    )
    learner.fit(random_data(31, n_features=4, n_samples=60))
    assert [epoch["tau"] for epoch in seen] == pytest.approx([10.0, 10**0.5, 1.0, 10**-0.5, 0.1])
    rates = [0.2 * 10 ** (-3 * e / 5) for e in range(5)]
    assert [epoch["rate"] for epoch in seen] == pytest.approx(rates)
    assert [epoch["structure_rate"] for epoch in seen] == [0.07] * 5
    assert [epoch["loss"] for epoch in seen] == [Loss(1.0, 7.0, 0.0, gamma=1.5, eta=4.0)] * 5
    assert [epoch["batch_size"] for epoch in seen] == [20] * 5
