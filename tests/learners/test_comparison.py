"""Learners side by side."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from learner_cases import compare_each
from running import random_data
from sklearn import metrics

from milpbn import Score, rescore, solve
from milpbn.data import read_table
from milpbn.errors import InputError
from milpbn.heuristics.spanning import tan_structure
from milpbn.learners import comparison, learning
from milpbn.learners.appraisal import suboptimality
from milpbn.learners.base import Control
from milpbn.learners.comparison import compare, training_and_test_rows
from milpbn.learners.contestants import Contest, exact_scores
from milpbn.learners.figures import Comparison
from milpbn.learners.printed import show
from milpbn.learners.repeated import compare_over_folds
from milpbn.learners.rows import ComparisonRow, reference_row
from milpbn.network.evaluation import accuracy


@pytest.fixture(scope="module")
def data():
    return random_data(7, n_features=3, n_samples=120)


@pytest.fixture(scope="module")
def split(data):
    return data.take(np.arange(0, 80)), data.take(np.arange(80, 120))


def test_figures_are_those_of_each_method_alone(split):
    train, test = split
    names = ("tan", "sbm", "naive-bayes", "sm", "multinet")
    rows = {row.name: row for row in compare_each(train, test, Contest(names, score={"p": 0.9}))}
    assert list(rows) == ["sbm", "sm", "tan", "naive-bayes", "multinet"]
    reference = solve(train, Score(name="sbm", p=0.9))
    assert 0.0 <= rows["sbm"].relative_gap <= 1e-6
    assert rows["sbm"].score == pytest.approx(reference.objective)
    assert rows["sbm"].test == accuracy(reference.classifier, test)
    value = rescore(train, tan_structure(train), Score(name="sbm", p=0.9))
    assert rows["tan"].score == pytest.approx(value)
    assert rows["tan"].gap == pytest.approx(reference.bound - value)
    assert rows["tan"].relative_gap == pytest.approx((reference.bound - value) / reference.bound)
    assert rows["tan"].arcs == len(tan_structure(train).arcs)
    assert rows["multinet"].score is None
    assert rows["multinet"].gap is None
    assert "graph" in rows["multinet"].note
    assert all(row.gap >= 0 for row in rows.values() if row.gap is not None)


def test_options_reach_their_learners(split):
    train, test = split
    options = {"tan": {"smoothing": 50.0}}
    smooth, plain = (next(compare_each(train, test, Contest(("tan",), options=o))) for o in (options, {}))
    assert (smooth.options, plain.options) == (options["tan"], {})
    assert (smooth.training, smooth.test) != (plain.training, plain.test)
    with pytest.raises(InputError, match="'tan', which is not one of the learners"):
        next(compare_each(train, test, Contest(("naive-bayes",), options=options)))
    with pytest.raises(InputError, match="tan has no option 'k'"):
        next(compare_each(train, test, Contest(("tan",), options={"tan": {"k": 3}})))
    with pytest.raises(InputError, match="smoothing must be a number"):  # before any learner runs
        Contest(("naive-bayes", "tan"), options={"tan": {"smoothing": -1.0}})


def test_the_next_score_is_the_reference_if_the_first_fails(split, monkeypatch):
    solve_one = learning._solve

    def fail(train, score, *others):
        if score.name == "sm":
            raise InputError("not today")
        return solve_one(train, score, *others)

    monkeypatch.setattr(learning, "_solve", fail)
    listed = list(compare_each(*split, Contest(("sm", "sbm", "tan"))))
    rows = {row.name: row for row in listed}
    assert rows["sm"].note == "not today"
    found = suboptimality(split[0], tan_structure(split[0]), solve(split[0], "sbm"), "sbm")
    assert rows["tan"].score == pytest.approx(found.score)
    assert rows["tan"].gap == pytest.approx(found.gap.absolute)
    assert rows["sbm"].relative_gap <= 1e-6
    assert reference_row(listed).name == "sbm"
    assert "score and gap in nats: sbm, " in show(listed)
    monkeypatch.setattr(learning, "_solve", lambda *a: fail(a[0], Score(name="sm"), None))
    failed = list(compare_each(*split, Contest(("sm", "tan"))))
    assert reference_row(failed) is None
    assert failed[1].gap is None
    assert "no score and no gap: no exact search has a bound" in show(failed)


def test_gamma_is_for_the_scores_that_have_it(split):
    assert exact_scores(("cll", "sm", "tan"), {"p": 0.9, "max_parents": 1}) == {
        "cll": Score(name="cll", max_parents=1),
        "sm": Score(name="sm", p=0.9, max_parents=1),
    }
    rows = list(compare_each(*split, Contest(("cll", "sm"), score={"gamma": 1.0})))
    assert [row.details["score"]["gamma"] for row in rows] == [None, 1.0]
    for key in ("p", "gamma"):
        with pytest.raises(InputError, match=f"^{key} belongs to the scores sm and sbm"):
            next(compare_each(*split, Contest(("cll", "tan"), score={key: 0.9})))
    with pytest.raises(InputError, match="max_parents"):
        next(compare_each(*split, Contest(("sm", "tan"), score={"max_parents": 0})))


def test_early_stops_are_reported(split):
    rows = list(
        compare_each(
            *split, Contest(("hill-climbing", "tan", "differentiable-tan"), control=Control(time_limit=1e-9))
        )
    )
    assert [row.stopped_early for row in rows] == [True, False, True]
    assert "time limit" in rows[0].note
    assert rows[0].details["changes"] == 0


def test_without_a_score_there_are_no_gaps(split):
    rows = list(compare_each(split[0], None, Contest(("naive-bayes", "tan"))))
    assert [row.gap for row in rows] == [None, None]
    assert [row.test for row in rows] == [None, None]
    assert show(rows).splitlines()[-1].startswith("no score and no gap: they need an exact search; name a")


def test_a_method_that_refuses_has_a_note(split):
    one_class = split[0].take(np.flatnonzero(split[0].y == 0))
    rows = {row.name: row for row in compare_each(one_class, None, Contest(("svm", "naive-bayes")))}
    assert "one class" in rows["svm"].note
    assert rows["svm"].training is None
    assert rows["naive-bayes"].training == 1.0


def test_an_interrupt_keeps_the_finished_rows(split):
    names: list[str] = []
    control = Control(interrupted=lambda: bool(names))
    for row in compare_each(*split, Contest(("naive-bayes", "tan"), control=control)):
        names.append(row.name)
    assert names == ["naive-bayes"]


def test_one_call_gives_the_document_and_keeps_a_file_up_to_date(split, tmp_path):
    train, test = split
    path = tmp_path / "figures.json"
    found = compare(train, test, ("naive-bayes", "tan"), output=path, control=Control(random_state=3))
    assert json.loads(path.read_text()) == json.loads(json.dumps(found.to_dict()))
    assert [row["name"] for row in found.to_dict()["rows"]] == ["naive-bayes", "tan"]
    assert (found.to_dict()["seed"], found.test_samples, found.classifiers) == (3, test.n_samples, 2)
    assert str(found).startswith(
        f"data  {train.name}: {train.n_samples} training rows, {test.n_samples} test rows"
    )


def test_an_interrupt_gives_the_rows_there_are(split, monkeypatch):
    def interrupted(*_args, **_options):
        yield 0, ComparisonRow(name="tan", training=1.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "compare_parts", interrupted)
    assert [row.name for row in compare(*split, ("tan", "naive-bayes")).rows] == ["tan"]


def test_unknown_names_are_refused(split):
    with pytest.raises(InputError, match="'nothing'"):
        list(compare_each(*split, Contest(("sm", "nothing"))))


def test_the_table_has_a_heading_and_a_line_per_learner(split):
    text = show(list(compare_each(*split, Contest(("sm", "multinet")))))
    lines = text.splitlines()
    columns = "test % 95 % interval log-loss Brier training % arcs parameters score gap of bound seconds"
    assert lines[0].split() == columns.split()
    assert lines[1].startswith("sm ")
    assert lines[3].startswith("score and gap in nats: sm, gamma = 4.59512, max_parents = 2;")
    assert "multinet: " in lines[-1]
    assert len({len(line) for line in lines[:3]}) == 1


def test_figures_of_a_rare_class_lead_and_are_scikit_learns(tmp_path):
    """With 6 % of a class, ROC-AUC and the like come before the accuracy; differences are those of the figures."""
    rng = np.random.default_rng(5)
    sick = rng.random(500) < 0.06
    frame = pd.DataFrame({f"x{i}": rng.normal(sick * (i + 1)).round(1) for i in range(2)})
    table = read_table(
        frame.assign(state=np.where(sick, "sick", "well")), target="state", continuous=["x0", "x1"]
    )
    train, test = training_and_test_rows(table)
    found = compare(train, test, ("tan", "naive-bayes"))
    assert (found.positive, found.majority[0]) == ("sick", "well")
    assert found.rarest_share == pytest.approx((train.y == train.variables[-1].states.index("sick")).mean())
    code = train.variables[-1].states.index("sick")
    values = {}
    for row in found.rows:
        judged, positive = row.judged, test.y == code
        expected = {
            "roc_auc": metrics.roc_auc_score(positive, judged.probabilities[:, code]),
            "average_precision": metrics.average_precision_score(positive, judged.probabilities[:, code]),
            "sensitivity": metrics.recall_score(positive, judged.predicted == code),
            "matthews": metrics.matthews_corrcoef(positive, judged.predicted == code),
        }
        assert {key: getattr(row, key) for key in expected} == pytest.approx(expected, abs=1e-12)
        values[row.name] = expected
    difference = found.rows[1].differences["roc_auc"]
    assert difference.value == pytest.approx(values["naive-bayes"]["roc_auc"] - values["tan"]["roc_auc"])
    assert difference.low <= difference.value <= difference.high
    shown = str(found)
    assert shown.index("ROC-AUC") < shown.index("test %") < shown.index("in log-loss")
    assert f"accuracy, beside {100 * found.majority[1]:.2f} % by always answering well" in shown
    assert str(Comparison.read(found.to_dict(), "It")) == shown
    folds = compare_over_folds(table, 3, 1, ("tan",), positive="well")
    mean = np.mean([part.average_precision for part in folds.rows[0].parts])
    assert folds.positive == "well"
    assert folds.rows[0].average_precision == pytest.approx(mean)
    with pytest.raises(InputError, match=r"positive.* is 'ill', and the classes are 'sick', 'well'"):
        compare(train, test, ("tan",), positive="ill")


def test_of_several_classes_figures_are_means():
    kind = np.random.default_rng(6).integers(3, size=300)
    x = np.random.default_rng(7).normal(kind).round(1)
    train, test = training_and_test_rows(read_table(pd.DataFrame({"x": x, "kind": kind}), target="kind"))
    row = compare(train, test, ("tan",)).rows[0]
    truth, judged = test.y, row.judged
    auc = metrics.roc_auc_score(truth, judged.probabilities, multi_class="ovr", average="macro")
    assert row.roc_auc == pytest.approx(auc, abs=1e-12)
    assert row.f1 == pytest.approx(metrics.f1_score(truth, judged.predicted, average="macro"), abs=1e-12)
    assert row.sensitivity == pytest.approx(
        metrics.balanced_accuracy_score(truth, judged.predicted), abs=1e-12
    )
