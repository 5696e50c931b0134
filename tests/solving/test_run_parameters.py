"""Parameters after a search: they change the classifier, and neither structure, score nor bound."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from running import copied_feature, random_data

import milpbn
from milpbn.claims.result import Result
from milpbn.errors import InputError
from milpbn.network.evaluation import evaluate
from milpbn.network.parameters.record import recorded
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.solving import run as module
from milpbn.solving.job import Job
from milpbn.solving.options import Options
from milpbn.util.budget import Budget
from milpbn.util.clock import ALL_SAMPLES_SHARE, PARAMETERS_SHARE

QUICK = {"backend": "highs", "threads": 1, "verbose": False}


@pytest.fixture(scope="module")
def data():
    return copied_feature()


@pytest.fixture(scope="module")
def plain(data):
    return milpbn.solve(data, **QUICK)


@pytest.mark.parametrize("method", ["cll", "hybrid", "temperature"])
def test_only_the_classifier_changes(data, plain, method, tmp_path) -> None:
    path = tmp_path / "result.json"
    result = milpbn.solve(data, parameters=method, output=path, **QUICK)
    assert (result.structure, result.objective, result.bound) == (
        plain.structure,
        plain.objective,
        plain.bound,
    )
    assert result.reason == plain.reason == "optimal"
    record = result.parameters
    assert record.fitted
    assert record.method == method
    assert recorded(result.classifier.provenance) == record
    assert set(result.classifier.structure.arcs) >= set(result.structure.arcs)
    assert evaluate(result.classifier, data).log_loss != evaluate(plain.classifier, data).log_loss
    assert record.held_out_log_loss < record.generative_log_loss
    assert result.seconds.parameters > 0
    loaded = Result.load(path)
    assert loaded.parameters == record
    assert json.loads(path.read_text())["parameters"]["method"] == method


def test_generative_parameters_are_the_default(data, plain) -> None:
    assert plain.parameters.to_dict()["method"] == "ml"
    assert not plain.parameters.fitted
    assert plain.seconds.parameters == 0
    same = milpbn.Classifier.fit(data, plain.structure)
    assert np.array_equal(same.predict_log_joint(data), plain.classifier.predict_log_joint(data))


def test_an_arc_for_normalisers_is_not_added_against_a_constraint() -> None:
    data = random_data(6, n_features=3, n_samples=60)
    given = {"X1": [], "X2": ["X1", "C"], "X3": ["C"], "C": []}
    fixed = {child: tuple(parents) for child, parents in given.items() if child != "X1"}
    free = milpbn.solve(data, constraints=Constraints(fixed=fixed), parameters="cll", **QUICK)
    if free.structure == Structure.from_mapping(data.names, given):
        assert free.parameters.added_arcs == (("C", "X1"),)
    bound = Constraints(fixed={**fixed, "X1": ()})
    result = milpbn.solve(data, constraints=bound, parameters="cll", **QUICK)
    assert result.structure == Structure.from_mapping(data.names, given)
    assert not result.parameters.fitted
    assert "breaks a constraint: it gives 'X1' the parents {C}" in result.parameters.note
    forbidden = Constraints(forbidden=(("C", "X1"),), fixed=fixed)
    result = milpbn.solve(data, constraints=forbidden, parameters="cll", **QUICK)
    assert "it has the forbidden arc C -> X1" in result.parameters.note
    required = Constraints(fixed=fixed, required=(("X3", "X1"),))
    result = milpbn.solve(data, constraints=required, parameters="cll", **QUICK)
    assert result.structure is not None


def test_an_arc_for_normalisers_is_added_and_reported() -> None:
    data = random_data(6, n_features=3, n_samples=60)
    given = Structure.from_mapping(data.names, {"X1": [], "X2": ["X1", "C"], "X3": ["C"], "C": []})
    constraints = Constraints(
        fixed={"X2": ("X1", "C"), "X3": ("C",), "C": ()}, arc_weights={("C", "X1"): -1000.0}
    )
    result = milpbn.solve(data, constraints=constraints, parameters="cll", **QUICK)
    assert result.structure == given
    assert result.parameters.added_arcs == (("C", "X1"),)
    assert set(result.classifier.structure.arcs) == {*given.arcs, (3, 0)}


def test_the_search_leaves_time_for_parameters() -> None:
    def deadline(subset=None, **options) -> float | None:
        problem = SimpleNamespace(sample_weights=subset)
        return Job(problem, None, Options(**options), None, "", Budget(began=5.0)).search_budget().deadline

    assert deadline(time_limit=10.0) == 15.0
    assert deadline(np.ones(3), time_limit=10.0) == 5.0 + 10.0 * (1 - ALL_SAMPLES_SHARE)
    assert deadline(time_limit=10.0, parameters="cll") == 5.0 + 10.0 * (1 - PARAMETERS_SHARE)
    assert deadline(parameters="cll") is None
    with pytest.raises(InputError, match="no parameters 'mm'"):
        Options(parameters="mm")


def test_no_time_left_keeps_the_generative_parameters(data, plain, monkeypatch) -> None:
    fit = module.refit_classifier
    monkeypatch.setattr(module, "refit_classifier", lambda *a, **k: fit(*a, **{**k, "budget": Budget(0.0)}))
    result = milpbn.solve(data, parameters="hybrid", **QUICK)
    assert result.optimal
    assert not result.parameters.fitted
    assert result.parameters.note == (
        "The time limit ended before the parameters were fitted; the generative parameters are kept."
    )
    assert np.array_equal(result.classifier.predict_log_joint(data), plain.classifier.predict_log_joint(data))


def test_an_interrupt_of_the_search_keeps_the_generative_parameters(data) -> None:
    stop = []
    result = milpbn.solve(data, parameters="cll", interrupted=lambda: bool(stop) or stop.append(1), **QUICK)
    assert result.structure is not None
    assert "interrupted before" in result.parameters.note


def test_an_interrupt_of_the_fit_keeps_the_generative_parameters(data, plain, monkeypatch) -> None:
    fit = module.refit_classifier
    fitting = []

    def begin(*arguments, **options):
        fitting.append(1)
        return fit(*arguments, **options)

    monkeypatch.setattr(module, "refit_classifier", begin)
    result = milpbn.solve(data, parameters="hybrid", interrupted=lambda: bool(fitting), **QUICK)
    assert result.objective == plain.objective
    assert "interrupted before" in result.parameters.note


def test_selection_compares_generative_parameters(data) -> None:
    small = data.take(np.arange(0, 60))
    options = {"p_values": (0.6, 0.9), "max_parents_values": (1,), **QUICK}
    one = milpbn.solve_selected(small, milpbn.Score(), **options)
    other = milpbn.solve_selected(small, milpbn.Score(), parameters="cll", **options)
    assert other.selection == one.selection
    assert other.parameters.method == "cll"
    assert other.parameters.fitted
