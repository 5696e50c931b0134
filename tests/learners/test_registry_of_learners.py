"""Requirements on every registered learner."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from running import random_data

import milpbn
from milpbn.data import read_table
from milpbn.data.dataset import UNKNOWN
from milpbn.errors import InputError
from milpbn.learners.base import Control, Learner, solver_limits
from milpbn.learners.generative.closed_form import ClosedForm
from milpbn.learners.registry import LEARNERS, get_learner
from milpbn.network import Structure
from milpbn.network.classifier import Classifier
from milpbn.network.formats.classifier_files import classifier_from_dict, classifier_to_dict
from milpbn.network.formats.structure_files import write_arcs
from milpbn.util import clock

CLOSED_FORM = [name for name in LEARNERS if issubclass(get_learner(name), ClosedForm)]


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_are_described(name: str) -> None:
    learner = get_learner(name)
    assert issubclass(learner, Learner)
    assert is_dataclass(learner)
    assert learner.name == name
    assert learner.summary.endswith(".")
    assert learner.reference
    assert all(f.metadata.get("help") for f in fields(learner))
    assert learner() == learner()  # every option has a default


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="naive-bayes"):
        get_learner("naive bayes")


@pytest.mark.parametrize("name", LEARNERS)
def test_data_that_nothing_can_be_learnt_from_are_refused(name: str) -> None:
    """In a sentence, before anything is computed; the codes of features and of classes are looked at alike."""
    data = random_data(4, n_features=3, n_samples=30)
    cases: list[tuple[Any, str]] = [
        (read_table(pd.DataFrame({"a": [0, 1], "class": [0, 1]})), "A Dataset is needed, got a Table"),
        (data.take(np.arange(0)), "have no rows"),
        (replace(data, variables=data.variables[-1:], codes=data.codes[:, -1:]), "have no features"),
    ]
    for column in (1, -1):
        codes = data.codes.copy()
        codes[3, column] = UNKNOWN
        cases.append((replace(data, codes=codes), f"Column '{data.names[column]}' of the training data"))
    for bad, part in cases:
        with pytest.raises(InputError, match=part):
            get_learner(name)().fit(bad)


@pytest.mark.parametrize("name", CLOSED_FORM)
def test_runs_repeat_themselves_and_leave_the_data_alone(name: str) -> None:
    data = random_data(1, n_features=4, n_samples=40)
    data.codes.setflags(write=False)
    data.weights.setflags(write=False)
    first, second = (get_learner(name)().fit(data, Control(random_state=3)) for _ in range(2))
    assert first.structure == second.structure
    joints = [learned.predictor.predict_log_joint(data) for learned in (first, second)]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(*joints)
    json.dumps(dict(first.details), allow_nan=False)


@pytest.mark.parametrize("name", CLOSED_FORM)
def test_parameters_are_smoothed_counts_of_the_structure(name: str) -> None:
    data = random_data(2, n_features=4, n_samples=40, weights=True)
    learner = get_learner(name)
    learned = learner(smoothing=0.3).fit(data)  # type: ignore[call-arg]
    classifier = learned.predictor
    assert isinstance(classifier, Classifier)
    assert learned.structure is not None
    expected = Classifier.fit(data, learned.structure, 0.3)
    np.testing.assert_array_equal(classifier.predict_log_joint(data), expected.predict_log_joint(data))
    assert classifier.provenance["learner"]["name"] == name
    again = classifier_from_dict(json.loads(json.dumps(classifier_to_dict(classifier))))
    np.testing.assert_array_equal(classifier.predict_log_joint(data), again.predict_log_joint(data))


@pytest.mark.parametrize("name", CLOSED_FORM)
def test_an_interrupt_leaves_a_classifier(name: str) -> None:
    data = random_data(3, n_features=4, n_samples=40)
    learned = get_learner(name)().fit(data, Control(interrupted=lambda: True))
    assert learned.structure is not None


#: Learners that end by themselves, after a time that depends on the data alone.
CLOSED = ("naive-bayes", "chow-liu", "tan", "multinet", "exact", "order")


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in CLOSED])
def test_stopped_learners_report_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # On a starved machine the rest of the work may take longer; the fit would then raise KeyboardInterrupt.
    monkeypatch.setattr(clock, "GRACE", 60.0)
    data = random_data(3, n_features=4, n_samples=40)
    options: dict[str, Any] = {}
    if name == "parameters":
        write_arcs(Structure.naive_bayes(data.names), tmp_path / "arcs.csv")
        options = {"structure_file": str(tmp_path / "arcs.csv")}
    if name in ("parameters", "differentiable-tan"):
        options["epochs"] = 2
    learner = get_learner(name)(**options)
    assert learner.fit(data).details["stopped_early"] is False
    assert learner.fit(data, Control(interrupted=lambda: True)).details["stopped_early"] is True


@pytest.mark.parametrize(
    ("name", "options"),
    [("exact", {}), *((name, {"penalty": "aicc"}) for name in ("chow-liu", "tan", "multinet"))],
)
def test_a_stopped_milp_is_reported(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = random_data([4, 1], n_features=4, n_classes=2, max_states=4, n_samples=60)
    learner = get_learner(name)(**options)
    assert learner.fit(data).details["stopped_early"] is False
    original = milpbn.solve
    for module in ("aicc_forest", "exact"):
        monkeypatch.setattr(
            f"milpbn.learners.generative.{module}.solve",
            lambda *a, **k: replace(original(*a, **k), reason="feasible", limit="time"),
        )
    # So that there is something left for the MILP.
    monkeypatch.setattr("milpbn.learners.generative.aicc_forest.HALVINGS", 1)
    assert learner.fit(data).details["stopped_early"] is True


def test_a_search_gets_the_time_that_a_fit_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 50.0
    monkeypatch.setattr("milpbn.util.budget.time.monotonic", lambda: now)
    budget = Control(time_limit=8.0).budget()
    now = 53.0
    assert solver_limits(budget)["time_limit"] == 5.0
    assert not solver_limits(budget)["interrupted"]()
    now = 60.0
    assert 0 < solver_limits(budget)["time_limit"] < 1e-6
    stopped = Control(interrupted=lambda: True).budget()
    assert solver_limits(stopped)["time_limit"] is None
    assert solver_limits(stopped)["interrupted"]()
