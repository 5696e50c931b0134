"""Every method on a small part, beside the library's own functions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from experiments_common import write_set

from milpbn.data import read_table
from milpbn.errors import InputError
from milpbn.experiments import networks, recommended
from milpbn.experiments.base import Budgets, Figures, MethodInput
from milpbn.experiments.baselines import SupportVectors
from milpbn.experiments.methods import METHODS, method
from milpbn.experiments.networks import ExactSearch
from milpbn.experiments.protocol import parts
from milpbn.experiments.recommended import RecommendedMethod
from milpbn.learners.base import Control
from milpbn.learners.svm import choose_pair, grid_from_the_middle
from milpbn.learners.svm_machine import fit_machine, indicators
from milpbn.network.classifier import Classifier
from milpbn.network.evaluation import evaluate
from milpbn.network.structure import Structure
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import solve
from milpbn.solving.grid import Grid
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.selection import maximise_selected, select
from milpbn.trials.parts import validation_datasets
from milpbn.trials.store import ARCHIVE, Store
from milpbn.util.budget import Budget

#: Two settings with cuts of their own.
SMALL = "score=cll max-parents=1 discretise=mdl,quantile:3"
BUDGETS = Budgets(selection=20, final=60)
RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def part(catalog):
    return parts(read_table("folded", data_dir=catalog), 0)[0]


def work(part, needed=None):
    return MethodInput(part, 0, 1, needed or {})


def small_choice(score):
    choice = method(score, BUDGETS, 3).choice
    return replace(choice, seconds=120.0, p=None if choice.p is None else (0.6, 0.9), max_parents=(1, 2))


@pytest.mark.parametrize("name", ["sm", "sbm", "mdl"])
def test_kept_cells_have_the_options_of_their_method(name):
    """Cells are found by their options: another value loses kept searches, which took hours."""
    cells = [document["cell"] for _, document in Store(RESULTS / "p12" / ARCHIVE).items()]
    kept = [cell["options"]["choice"] for cell in cells if cell["method"] == name]
    options = json.loads(json.dumps(method(name, BUDGETS, 3).options))["choice"]
    assert len(kept) > 20
    assert all(choice | {"seconds": BUDGETS.selection} == options for choice in kept)


@pytest.mark.parametrize("name", ["nb", "tan"])
def test_closed_forms_have_the_figures_of_their_classifier(part, name):
    found = method(name, BUDGETS, 3).run(work(part))
    structure = Structure.from_mapping(part.train.names, found["structure"])
    told = evaluate(Classifier.fit(part.train, structure), part.test)
    assert found["figures"]["accuracy"] == pytest.approx(told.accuracy)
    assert found["figures"]["log_loss"] == pytest.approx(told.log_loss)
    assert len(structure.arcs) == (3 if name == "nb" else 5)


@pytest.mark.parametrize("score", ["sm", "mdl"])
def test_exact_searches_use_the_values_of_the_selection(part, score):
    choice = small_choice(score)
    chosen = choice.run(work(part))
    told = select(
        part.training,
        Score(name=score),
        p_values=choice.p,
        max_parents_values=(1, 2),
        threads=1,
        verbose=False,
    )
    assert (chosen["p"], chosen["max_parents"]) == (told.p, told.max_parents)
    assert chosen["trials"] == [vars(trial) for trial in told.trials]

    found = ExactSearch(choice=choice, seconds=60.0).run(work(part, chosen))
    own = Score(name=score, p=told.p, max_parents=told.max_parents)
    result = solve(part.train, own, threads=1, verbose=False)
    search = found["search"]
    assert search["reason"] == result.reason == "optimal"
    assert search["objective"] == pytest.approx(result.objective)
    assert search["bound"] >= search["objective"]
    assert found["choice"] == {"p": told.p, "max_parents": told.max_parents}
    assert (search["certified"], search["verified"]) == (True, True)
    structure = Structure.from_mapping(part.train.names, found["structure"])
    figures = evaluate(Classifier.fit(part.train, structure), part.test)
    assert found["figures"]["accuracy"] == pytest.approx(figures.accuracy)


def test_a_refused_certificate_is_recorded(part, monkeypatch):
    def refuse(*arguments):
        raise InputError("It proves nothing.")

    monkeypatch.setattr(networks, "verify", refuse)
    needed = {"p": 0.9, "max_parents": 1, "incumbent": None}
    found = ExactSearch(choice=small_choice("sm"), seconds=60.0).run(work(part, needed))
    assert found["search"]["verified"] is False
    assert found["search"]["verification"] == "It proves nothing."


def test_an_interrupt_leaves_nothing(part, monkeypatch):
    class Interrupted:
        interrupted = True

    monkeypatch.setattr(networks, "choose", lambda *a, **k: Interrupted())
    with pytest.raises(KeyboardInterrupt):
        small_choice("sm").run(work(part))


def test_the_machine_is_validated_on_the_shared_splits(part):
    found = SupportVectors(sigmas=(0.5, 1.0, 2.0), costs=(0.5, 2.0)).run(work(part))
    grid = grid_from_the_middle(3, (0.5, 1.0, 2.0), (0.5, 2.0))
    pair, details = choose_pair(validation_datasets(part.training, 0), grid, Control(), Budget())
    assert (found["choice"]["sigma"], found["choice"]["cost"]) == pair
    assert found["choice"]["validation_accuracy"] == details["validation_accuracy"]
    assert found["choice"]["tried"] == 6
    predicted = fit_machine(part.train, *pair).machine.predict(indicators(part.test))
    figures = Figures.from_dict(found["figures"])
    assert (figures.correct == (predicted == part.test.y)).all()
    assert 0.0 < figures.log_loss < np.log(3)


@pytest.mark.parametrize("name", ["logistic", "boosting"])
def test_baselines_learn_something(catalog, name):
    (part,) = parts(read_table("split", data_dir=catalog), 0)
    figures = Figures.from_dict(method(name, BUDGETS, 2).run(work(part))["figures"])
    assert figures.accuracy > 0.6
    assert 0.0 < figures.brier < 0.5


@pytest.mark.parametrize("name", ["svm", "logistic", "boosting", "nb"])
def test_a_class_with_one_training_row_is_learnt(tmp_path, name):
    rng = np.random.default_rng(0)
    lines = [f"{'abg'[c]},{'cd'[rng.integers(2)]},{'pqs'[c]}" for c in rng.integers(0, 3, 60)]
    write_set(tmp_path, "rare", "x,y,kind\n" + "\n".join(["a,c,r", *lines, "b,d,r"]), train_rows=50)
    (part,) = parts(read_table("rare", data_dir=tmp_path), 0)
    small = SupportVectors(sigmas=(1.0,), costs=(1.0,)) if name == "svm" else method(name, BUDGETS, 3)
    figures = Figures.from_dict(small.run(work(part))["figures"])
    assert figures.accuracy > (0.3 if name == "boosting" else 0.8)  # its leaves have at least 20 rows
    assert np.isfinite(figures.log_loss)


def test_settings_are_options_and_budgets_are_not():
    sm = method("sm", BUDGETS, 3)
    assert (sm.budget, sm.needs.budget) == (60.0, 20.0)
    assert sm.options["choice"]["seconds"] == 20.0  # what the values were chosen with
    assert "seconds" not in sm.needs.options
    assert method("svm", BUDGETS, 3).options["sigmas"][0] == 2.0**-5
    assert method("sm", Budgets(selection=20, final=60.0), 3) == sm


def test_two_classes_have_one_soft_margin():
    assert method("sbm", BUDGETS, 2) == method("sm", BUDGETS, 2)
    assert method("sbm", BUDGETS, 3).name == "sbm"
    assert all(method(name, BUDGETS, 3).name == name for name in METHODS)


def test_unknown_names_and_budgets_are_refused():
    with pytest.raises(InputError, match="no method 'best'"):
        method("best", BUDGETS, 2)
    with pytest.raises(InputError, match="--budget"):
        Budgets(selection=1, final=0)


def test_the_recipe_with_an_average(part):
    found = RecommendedMethod(title="small", grid=SMALL, by="log-loss", seconds=60.0, average=2).run(
        work(part)
    )
    assert found["average"]["networks"] == 2
    table = part.table
    grid = replace(Grid.parse(SMALL, "log-loss"), average=2)
    result = maximise_selected(Question(part.training, Score()), Options(threads=1, verbose=False), grid)
    own = [
        evaluate(member, table.encode(member.variables, part.test_rows))
        for member in result.classifier.members
    ]
    figures = Figures.from_dict(found["figures"])
    assert len(figures.correct) == len(part.test_rows)
    assert figures.log_loss <= np.mean([one.log_loss for one in own]) + 1e-6  # the logarithm is concave


def test_an_interrupted_average_leaves_nothing(part, monkeypatch):
    real = recommended.maximise_selected

    def interrupted(*arguments):
        result = real(*arguments)
        return replace(result, average=replace(result.average, networks=1, interrupted=True, note="."))

    monkeypatch.setattr(recommended, "maximise_selected", interrupted)
    with pytest.raises(KeyboardInterrupt):
        RecommendedMethod(title="small", grid=SMALL, by="log-loss", seconds=60.0, average=2).run(work(part))


def test_the_keys_of_the_recipe_are_those_from_before_averages():
    assert set(method("recipe", BUDGETS, 3).options) == {"title", "grid", "by"}
    assert method("recipe-average", BUDGETS, 3).options["average"] == 4
