"""Learners over repeated folds."""

from __future__ import annotations

import json
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from learner_cases import compare_each

from milpbn.data import read_table
from milpbn.data.folds import repeated_folds
from milpbn.errors import InputError
from milpbn.learners import comparison, repeated
from milpbn.learners.base import Control
from milpbn.learners.comparison import compare
from milpbn.learners.contestants import Contest
from milpbn.learners.repeated import Parts, compare_over_folds
from milpbn.learners.rows import ComparisonRow
from milpbn.network.intervals import wilson_interval
from milpbn.trials.differences import corrected_interval, paired_shares
from milpbn.trials.judged import Judged


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 90)
    frame = pd.DataFrame(
        {"a": np.where(rng.random(90) < 0.8, y, 1 - y), "b": rng.normal(size=90) + y, "k": y}
    )
    return read_table(frame.assign(c=rng.integers(0, 3, 90)), target="k")


def test_means_intervals_and_differences_are_those_of_the_parts(table, tmp_path):
    path, lines = tmp_path / "f.json", []
    names = ("tan", "naive-bayes", "random-forest")
    options = {"random-forest": {"n_estimators": 5}}
    control = Control(random_state=2, report=lines.append)
    found = compare_over_folds(table, 3, 2, names, options=options, control=control, output=path)
    assert json.loads(path.read_text()) == json.loads(json.dumps(found.to_dict()))
    assert (found.folds, found.repeats, found.parts_done, found.against) == (3, 2, 6, "tan")
    assert "part 6 of 6: learning naive-bayes" in lines
    splits = repeated_folds(table.dataset("all").y, 3, 2, 2)
    alone = []
    for fit, held in splits:
        train = table.dataset(fit)  # its own cuts
        alone.append(
            list(compare_each(train, table.encode(train.variables, held), Contest(("tan", "naive-bayes"))))
        )
    tan, bayes = ([rows[k] for rows in alone] for k in (0, 1))
    rows = {row.name: row for row in found.rows}
    for name, parts in (("tan", tan), ("naive-bayes", bayes)):
        assert [part.test for part in rows[name].parts] == [part.test for part in parts]
        for key in ("test", "log_loss", "brier", "parameters", "arcs"):
            assert getattr(rows[name], key) == pytest.approx(np.mean([getattr(part, key) for part in parts]))
    low, high = corrected_interval([part.log_loss for part in tan], 1 / 2)
    assert rows["tan"].intervals["log_loss"] == pytest.approx((max(0, low), high))
    assert not rows["tan"].differences
    gained = [a.test - b.test for a, b in zip(bayes, tan, strict=True)]
    difference = rows["naive-bayes"].differences["test"]
    assert difference.value == pytest.approx(np.mean(gained))
    assert (difference.low, difference.high) == pytest.approx(corrected_interval(gained, 1 / 2))
    assert difference.rows == 90
    text = str(found)
    assert text.startswith("data  table: 90 rows, 3 stratified folds, repeated 2 times\n")
    assert "difference to tan in test accuracy, in points (95 % interval)" in text
    assert "at n = 90" in text


def test_scores_and_gaps_are_means_too(table):
    found = compare_over_folds(table, 2, 1, ("tan", "sm"), score={"p": 0.9})
    sm, tan = found.rows
    assert (sm.name, found.against) == ("sm", "sm")
    assert tan.score == pytest.approx(np.mean([part.score for part in tan.parts]))
    assert tan.gap > sm.gap >= 0
    assert "score and gap in nats: means; sm, gamma = 2.19722" in str(found)


def test_with_weights_the_intervals_contain_those_of_the_rows():
    """20 positives decide half of the figure; where all of them are right, the parts hardly differ."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 20 == 0
    weights = np.where(y, 19.0, 1.0)
    held = [np.argsort(~y, kind="stable")[k::10] for k in range(10)]  # with two positives each
    right = y | (rng.random(400) < 0.95)
    other = np.where(y & (np.arange(400) < 100), False, right)  # 5 of the positives are wrong

    def row(name, hits, part):
        judged = Judged(weights[part], hits[part], None, None)
        return ComparisonRow(name=name, judged=judged, **judged.means())

    learners = [[row(name, hits, part) for part in held] for name, hits in (("a", right), ("b", other))]
    a, b = Parts(1 / 9, 400, weights, held).means(learners, "a")
    assert a.test == pytest.approx(np.average(right, weights=weights), abs=0.01)
    low, high = a.intervals["test"]
    assert low < 0.5 * 0.86 + 0.5 * 0.95  # 20 of 20 right leave room for a share of .86
    assert (low, high) != pytest.approx(corrected_interval([part.test for part in a.parts], 1 / 9), abs=1e-3)
    assert a.intervals["unweighted"] == pytest.approx(
        corrected_interval([part.unweighted for part in a.parts], 1 / 9), abs=1e-9
    )
    assert all(part.judged is None for part in (*a.parts, *b.parts))
    # Five discordant positives to none have the p-value .0625.
    assert b.differences["test"].value < -0.1
    assert not Parts(1 / 9, 400, weights, held).means(learners, "a")[1].differences["test"].low < -1
    assert b.differences["test"].effective_rows == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    half = [[row(name, hits, part) if k else ComparisonRow(name=name) for k, part in enumerate(held)]
            for name, hits in (("a", right), ("b", other))]  # fmt: skip
    assert Parts(1 / 9, 400, weights, held).means(half, "a")[0].intervals["test"][0] < low + 0.05


def test_parts_that_agree_say_no_more_than_their_rows():
    same = [ComparisonRow(name="a", test=1.0) for _ in range(5)]
    less = [ComparisonRow(name="b", test=0.9) for _ in range(5)]
    a, b = Parts(1 / 4, 50).means([same, less], "a")
    assert a.intervals["test"] == wilson_interval(1.0, 50)
    assert b.intervals["test"] == wilson_interval(0.9, 50)
    found = b.differences["test"]
    assert found.value == pytest.approx(-0.1)
    expected = paired_shares(np.arange(50) >= 5, np.ones(50), np.ones(50))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_failures_on_some_parts_are_noted():
    ours = [
        ComparisonRow(name="a", test=0.5),
        ComparisonRow(name="a", note="refused; allow more"),
        ComparisonRow(name="a", test=0.7),
    ]
    theirs = [ComparisonRow(name="b", test=x) for x in (0.4, 0.9, 0.4)]
    a, b = Parts(0.5, 30).means([ours, theirs], "b")
    assert a.test == pytest.approx(0.6)
    assert a.differences["test"].value == pytest.approx(0.2)
    assert a.note == "refused; allow more (in 1 of 3 parts)"
    assert b.test == pytest.approx(0.5667, abs=1e-3)


def test_an_interrupt_keeps_the_complete_parts(table, monkeypatch):
    real, kept = repeated.compare_parts, 5

    monkeypatch.setattr(repeated, "compare_parts", lambda *given, **how: islice(real(*given, **how), kept))
    found = compare_over_folds(table, 4, 1, ("tan", "naive-bayes"))
    assert found.parts_done == 2
    assert [len(row.parts) for row in found.rows] == [2, 2]
    assert "; 2 of 4 parts" in str(found)
    kept = 1
    with pytest.raises(KeyboardInterrupt):
        compare_over_folds(table, 4, 1, ("tan", "naive-bayes"))


def test_what_cannot_be_compared_is_refused(table):
    from dataclasses import replace

    with pytest.raises(InputError, match=r"45 test rows of their own, so --folds"):
        compare_over_folds(replace(table, train_rows=45), 3)
    with pytest.raises(InputError, match="'sm', which is not compared"):
        compare_over_folds(table, 3, 1, ("tan",), against="sm")
    with pytest.raises(InputError, match="number of folds must lie between 2 and"):
        compare_over_folds(table, 1, 1, ("tan",))
    with pytest.raises(InputError, match="repetitions must be at least 1"):
        compare_over_folds(table, 3, 0, ("tan",))


def test_one_split_has_paired_differences(table):
    train, test = comparison.training_and_test_rows(table, 0.4)
    found = compare(train, test, ("tan", "naive-bayes"), against="naive-bayes")
    tan, bayes = found.rows
    assert set(tan.differences) == {"test", "log_loss", "brier", "roc_auc", "average_precision"}
    assert tan.differences["test"].value == pytest.approx(tan.test - bayes.test)
    assert tan.differences["log_loss"].value == pytest.approx(tan.log_loss - bayes.log_loss)
    assert tan.differences["brier"].value == pytest.approx(tan.brier - bayes.brier)
    assert not bayes.differences
    assert all(low <= getattr(tan, key) <= high for key, (low, high) in tan.intervals.items())
    assert "difference to naive-bayes in log-loss" in str(found)
    assert not compare(train, None, ("tan", "naive-bayes")).rows[1].differences
