"""Comparisons that go on after a stop: finished learners do not run again, and the figures are the same."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import random_data

from milpbn.data import Dataset, Table, read_table
from milpbn.errors import InputError
from milpbn.learners.base import Control
from milpbn.learners.comparison import compare, training_and_test_rows
from milpbn.learners.figures import Comparison
from milpbn.learners.finished import FinishedRows
from milpbn.learners.repeated import compare_over_folds

NAMES = ("sm", "cll", "naive-bayes", "tan", "random-forest")
OPTIONS = {"random-forest": {"n_estimators": 5}}


@pytest.fixture(scope="module")
def table() -> Table:
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, 80)
    columns = [np.where(rng.random(80) < 0.7, y, rng.integers(0, 3, 80)) for _ in range(4)]
    return read_table(([[f"v{v}" for v in row] for row in zip(*columns, strict=True)], [f"c{v}" for v in y]))


@pytest.fixture(scope="module")
def split(table: Table) -> tuple[Dataset, Dataset | None]:
    return training_and_test_rows(table)


def figures(values: Any) -> Any:
    """Return JSON values without seconds."""
    if isinstance(values, dict):
        return {key: figures(value) for key, value in values.items() if key != "seconds"}
    return [figures(value) for value in values] if isinstance(values, list) else values


class Stop:
    """Interrupts before a learner begins, and notes the lines of the report."""

    def __init__(self, before: int | None = None) -> None:
        self.lines: list[str] = []
        self._before = before

    def control(self, **settings: Any) -> Control:
        return Control(
            report=self.lines.append, interrupted=self.asked, **{"n_jobs": 1, "random_state": 1, **settings}
        )

    def asked(self) -> bool:
        return self._before is not None and self.learnt >= self._before

    @property
    def learnt(self) -> int:
        return sum("learning" in line for line in self.lines)


@pytest.mark.parametrize("stop", [1, 3])
def test_a_comparison_goes_on_with_the_same_figures(
    split: tuple[Dataset, Dataset], tmp_path: Path, stop: int
) -> None:
    how: dict[str, Any] = {"score": {"p": 0.9}, "options": OPTIONS, "against": "tan"}
    whole = compare(*split, NAMES, control=Stop().control(), **how)
    first, path = Stop(stop), tmp_path / "state.npz"
    begun: Comparison | None = None
    try:
        begun = compare(*split, NAMES, control=first.control(), checkpoint=path, **how)
    except KeyboardInterrupt:
        assert stop == 1
    assert begun is None or len(begun.rows) < len(NAMES)
    then = Stop()
    found = compare(*split, NAMES, control=then.control(), checkpoint=path, **how)
    assert figures(found.to_dict()) == figures(whole.to_dict())
    # The learner that was interrupted begins anew, and no other.
    assert first.learnt + then.learnt == len(NAMES) + 1
    again = Stop()
    compare(*split, NAMES, control=again.control(), checkpoint=path, resume=True, **how)
    assert again.learnt == 0


def test_folds_go_on_with_the_same_figures(table: Table, tmp_path: Path) -> None:
    how: dict[str, Any] = {"options": OPTIONS, "score": {"p": 0.8}}
    whole = compare_over_folds(table, 3, 2, NAMES, control=Stop().control(), **how)
    path, learnt = tmp_path / "state.npz", 0
    for stop in (2, 7, 9):
        some = Stop(stop)
        try:
            compare_over_folds(table, 3, 2, NAMES, control=some.control(), checkpoint=path, **how)
        except KeyboardInterrupt:
            assert stop == 2  # no part is complete
        learnt += some.learnt
    last = Stop()
    found = compare_over_folds(
        table, 3, 2, NAMES, control=last.control(), checkpoint=path, resume=True, **how
    )
    assert figures(found.to_dict()) == figures(whole.to_dict())
    assert learnt + last.learnt == 6 * len(NAMES) + 3


def test_what_must_be_the_same_is_checked(
    split: tuple[Dataset, Dataset], table: Table, tmp_path: Path
) -> None:
    path = tmp_path / "state.npz"
    names, control = ("naive-bayes", "tan"), Stop().control()
    with pytest.raises(InputError, match=r"--resume .* goes on from the file that --checkpoint"):
        compare(*split, names, control=control, resume=True)
    with pytest.raises(InputError, match="There is no checkpoint"):
        compare(*split, names, control=control, checkpoint=path, resume=True)
    compare(*split, names, control=control, checkpoint=path)

    def refused(pattern: str, **changes: Any) -> None:
        arguments = {"data": split, "names": names, "control": control} | changes
        (train, test), before = arguments.pop("data"), path.read_bytes()
        with pytest.raises(InputError, match=pattern):
            compare(train, test, checkpoint=path, **arguments)
        assert path.read_bytes() == before

    refused("on other data", data=(random_data(3), None))
    refused("another value of --learners (.*naive-bayes,tan, not tan)", names=("tan",))
    refused(r"another value of --seed \(1, not 2\)", control=replace(control, random_state=2))
    refused(r"another value of --time-limit \(none, not 5", control=replace(control, time_limit=5.0))
    refused(r"another value of --set tan.smoothing \(none, not 0.5\)", options={"tan": {"smoothing": 0.5}})
    with pytest.raises(InputError, match=r"on other data|another value of --folds"):
        compare_over_folds(table, 3, 1, names, control=control, checkpoint=path)
    with pytest.raises(InputError, match="keeps one training, and over folds there are many"):
        compare_over_folds(
            table,
            3,
            1,
            ("differentiable-tan", "tan"),
            options={"differentiable-tan": {"checkpoint": str(tmp_path / "own.npz")}},
        )
    path.write_bytes(b"no archive")
    refused("not a complete checkpoint")


def test_an_infinite_log_loss_and_missing_probabilities_are_kept(
    split: tuple[Dataset, Dataset], tmp_path: Path
) -> None:
    train, test = split
    about = {"data": "x", "score": {}, "options": {}}
    path = tmp_path / "state.npz"
    rows = compare(train, test, ("naive-bayes", "tan"), control=Stop().control()).rows
    judged = rows[0].judged
    assert judged is not None
    assert judged.log_losses is not None
    losses = judged.log_losses.copy()
    losses[0] = math.inf
    certain = replace(rows[0], judged=replace(judged, log_losses=losses), log_loss=math.inf)
    plain = replace(
        rows[1], judged=replace(judged, log_losses=None, squared_errors=None), log_loss=None, brier=None
    )
    kept = FinishedRows(path, about).on(train, test)
    for row in (certain, plain):
        kept.add(row)
    found = FinishedRows(path, about, resume=True)
    assert len(found) == 2
    for row in (certain, plain):
        saved = found.on(train, test).get(row.name)
        assert saved == replace(row, differences={})
        assert saved.judged is not None
    assert found.on(test, train).get("tan") is None


def test_a_learner_that_fails_is_tried_again(split: tuple[Dataset, Dataset], tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    none = compare(*split, ("tan", "sm"), control=Stop().control(time_limit=1e-9), checkpoint=path)
    assert [row.training for row in none.rows if row.name == "sm"] == [None]
    again = Stop()
    compare(*split, ("tan", "sm"), control=again.control(time_limit=1e-9), checkpoint=path)
    assert "learning sm" in again.lines
