"""Comparisons that go on after a stop: finished learners do not run again, and the figures are the same."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import random_data

from milpbn.data import Dataset, Table, read_table
from milpbn.errors import InputError
from milpbn.heuristics.spanning import tan_structure
from milpbn.learners import learning
from milpbn.learners.base import Control
from milpbn.learners.cells import Learnt, SplitRows
from milpbn.learners.comparison import compare, training_and_test_rows
from milpbn.learners.contestants import Contest
from milpbn.learners.figures import Comparison
from milpbn.learners.finished import UNFINISHED, FinishedRows
from milpbn.learners.repeated import compare_over_folds
from milpbn.problem.scores.spec import Score
from milpbn.util.archives import read_sealed, write_sealed
from milpbn.util.budget import Budget
from milpbn.util.checkpoints import save_checkpoint

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
    names, how = ("sm", "naive-bayes", "tan"), {"score": {"p": 0.8}}
    whole = compare_over_folds(table, 2, 2, names, control=Stop().control(), **how)
    path, learnt = tmp_path / "state.npz", 0
    for stop in (2, 7, 4):
        some = Stop(stop)
        try:
            compare_over_folds(table, 2, 2, names, control=some.control(), checkpoint=path, **how)
        except KeyboardInterrupt:
            assert stop == 2  # no part is complete
        learnt += some.learnt
    last = Stop()
    found = compare_over_folds(
        table, 2, 2, names, control=last.control(), checkpoint=path, resume=True, **how
    )
    assert figures(found.to_dict()) == figures(whole.to_dict())
    assert learnt + last.learnt == 4 * len(names) + 3


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


def test_rows_with_and_without_probabilities_are_kept(split: tuple[Dataset, Dataset], tmp_path: Path) -> None:
    train, test = split
    about = {"data": "x", "score": {}, "options": {}}
    path = tmp_path / "state.npz"
    rows = compare(train, test, ("naive-bayes", "tan"), control=Stop().control()).rows
    judged = rows[1].judged
    assert judged is not None
    parts, other = (SplitRows(1, [rows].__getitem__) for rows in ((train, test), (test, train)))
    assert FinishedRows(None, about).on(parts).get((0, "tan")) is None
    plain = replace(
        rows[1], judged=replace(judged, log_losses=None, squared_errors=None), log_loss=None, brier=None
    )
    kept = FinishedRows(path, about).on(parts)
    for row in (rows[0], plain):
        kept.add((0, row.name), Learnt(row, tan_structure(train)))
    found = FinishedRows(path, about, resume=True)
    assert len(found.rows) == 2
    for row in (rows[0], plain):
        saved = found.on(parts).get((0, row.name))
        assert saved == Learnt(replace(row, differences={}), tan_structure(train))
        assert saved.row.judged is not None
    assert found.on(other).get((0, "tan")) is None


def test_a_learner_that_fails_is_tried_again(split: tuple[Dataset, Dataset], tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    none = compare(*split, ("tan", "sm"), control=Stop().control(time_limit=1e-9), checkpoint=path)
    assert [row.training for row in none.rows if row.name == "sm"] == [None]
    again = Stop()
    compare(*split, ("tan", "sm"), control=again.control(time_limit=1e-9), checkpoint=path)
    assert "learning sm" in again.lines


def test_gaps_refer_to_one_search_after_a_search_that_has_failed(
    split: tuple[Dataset, Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What finished beside another reference gets another score and gap, and is not learnt again."""
    how: dict[str, Any] = {"score": {"p": 0.9}, "control": Stop().control()}
    whole, path, real = (
        compare(*split, ("sm", "cll", "tan"), **how),
        tmp_path / "state.npz",
        learning._solve,
    )

    def fail(train: Dataset, score: Score, *others: Any) -> Any:
        if score.name == "sm":
            raise InputError("no memory")
        return real(train, score, *others)

    with monkeypatch.context() as patch:
        patch.setattr(learning, "_solve", fail)
        first = compare(*split, ("sm", "cll", "tan"), checkpoint=path, **how)
    assert first.to_dict()["reference"] == "cll"
    last = Stop()
    again = compare(*split, ("sm", "cll", "tan"), checkpoint=path, **{**how, "control": last.control()})
    assert figures(again.to_dict()) == figures(whole.to_dict())
    assert last.learnt == 1


class Late(Stop):
    """Interrupts a learner some questions after it has begun."""

    def __init__(self, name: str, questions: int) -> None:
        super().__init__()
        self._begins, self._left = f"learning {name}", questions

    def asked(self) -> bool:
        if any(line.endswith(self._begins) for line in self.lines):
            self._left -= 1
        return self.over

    @property
    def over(self) -> bool:
        return self._left < 0


def unfinished(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(UNFINISHED))


@pytest.mark.parametrize(("name", "questions"), [("sm", 1500), ("differentiable-tan", 20)])
def test_a_search_and_a_training_go_on_where_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, questions: int
) -> None:
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 120)
    columns = [
        np.where(rng.random(120) < 0.5, y + rng.integers(0, 2, 120), rng.integers(0, 3, 120))
        for _ in range(8)
    ]
    data = read_table((np.transpose(columns), y)).dataset()
    names = ("sm", "tan", "differentiable-tan")
    how: dict[str, Any] = {"options": {"differentiable-tan": {"epochs": 40}}, "score": {"p": 0.9}}
    whole = compare(data, None, names, control=Stop().control(), **how)
    seconds, real = [], learning._solve

    def timed(*given: Any) -> Any:
        began = time.monotonic()
        result = real(*given)
        seconds.append((time.monotonic() - began, result.seconds.total))
        return result

    monkeypatch.setattr(learning, "_solve", timed)
    path, parts, found, stop = tmp_path / "state.npz", 0, None, Late(name, questions)
    while found is None or len(found.rows) < 3 or stop.over:
        parts, stop = parts + 1, Late(name, questions * (1 + parts // 3))
        try:
            found = compare(data, None, names, control=stop.control(), checkpoint=path, **how)
        except KeyboardInterrupt:
            found = None
        if stop.over:
            assert [file.split(".")[2].rpartition("-")[0] for file in unfinished(tmp_path)] == [name]
    assert not unfinished(tmp_path)
    assert figures(found.to_dict()) == figures(whole.to_dict())
    if name == "sm":
        assert parts > 1
        assert seconds[-1][1] > seconds[-1][0]  # those of the parts before count
    else:
        assert parts > 2  # two questions an epoch: from the beginning each time, it would not end


def test_a_time_limit_holds_for_all_parts_together(
    split: tuple[Dataset, Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, given = tmp_path / "state.npz", []

    def stopped(train: Dataset, score: Score, control: Control, budget: Budget, state: Path) -> Any:
        given.append(budget.left())
        save_checkpoint(state, "search", {"seconds": 70.0 * len(given)}, {})
        raise KeyboardInterrupt

    monkeypatch.setattr(learning, "_solve", stopped)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            compare(*split, ("sm",), control=Stop().control(time_limit=100.0), checkpoint=path)
    assert given == pytest.approx([100.0, 30.0, -40.0], abs=5.0)


ABOUT: dict[str, Any] = {"data": "hash", "score": {}, "options": {}}


def test_without_the_checkpoint_a_comparison_begins_anew(
    split: tuple[Dataset, Dataset], tmp_path: Path
) -> None:
    path = tmp_path / "[state].npz"
    state = FinishedRows(path, ABOUT).on(SplitRows(1, [split].__getitem__)).unfinished((0, "sm"))
    assert state is not None
    state.write_text("of an earlier comparison")
    FinishedRows(path, ABOUT)
    assert state.exists()
    path.unlink()
    FinishedRows(path, ABOUT)
    assert not state.exists()


def test_a_damaged_state_is_named_and_dropped(split: tuple[Dataset, Dataset], tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    about = Contest(("tan",), control=Stop().control()).described(f"{split[0].sha256} {split[1].sha256}")
    state = FinishedRows(path, about).on(SplitRows(1, [split].__getitem__)).unfinished((0, "tan"))
    assert state is not None
    state.write_text("damaged")
    [row] = compare(*split, ("tan",), control=Stop().control(), checkpoint=path).rows
    assert state.name in row.note
    assert compare(*split, ("tan",), control=Stop().control(), checkpoint=path).rows[0].note == ""


def test_the_contents_of_a_file_that_a_learner_reads_must_be_the_same(
    split: tuple[Dataset, Dataset], tmp_path: Path
) -> None:
    structure, path = tmp_path / "s.json", tmp_path / "state.npz"
    options = {"parameters": {"structure_file": str(structure)}}
    names = split[0].names
    for parents in ([names[-1]], []):
        structure.write_text(json.dumps({"structure": {n: parents if n != names[-1] else [] for n in names}}))
        if parents:
            compare(*split, ("parameters",), options=options, checkpoint=path)
            compare(*split, ("parameters",), options=options, checkpoint=path, resume=True)
    with pytest.raises(InputError, match=r"another value of the file of parameters\.structure_file"):
        compare(*split, ("parameters",), options=options, checkpoint=path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("details", None),
        ("details", {"bound": 1.0}),
        ("training", 1e9),
        ("intervals", {"test": [1]}),
        ("more", 1),
    ],
)
def test_forged_rows_are_refused(
    split: tuple[Dataset, Dataset], tmp_path: Path, key: str, value: Any
) -> None:
    path = tmp_path / "state.npz"
    how: dict[str, Any] = {"control": Stop().control(), "checkpoint": path}
    compare(*split, ("naive-bayes",), **how)
    sealed = read_sealed(path, 10**7)
    header = json.loads(sealed.header)
    header["rows"][0][2][key] = value
    write_sealed(path, header, sealed.arrays, compressed=False)
    with pytest.raises(InputError, match="not a complete checkpoint"):
        compare(*split, ("naive-bayes",), **how)


def test_the_rows_of_other_test_rows_are_not_used(split: tuple[Dataset, Dataset], tmp_path: Path) -> None:
    path = tmp_path / "state.npz"
    how: dict[str, Any] = {"control": Stop().control(), "checkpoint": path}
    whole = compare(*split, ("naive-bayes", "tan"), **how)
    sealed = read_sealed(path, 10**7)
    arrays = {name: values[:5] for name, values in sealed.arrays.items()}
    write_sealed(path, json.loads(sealed.header), arrays, compressed=False)
    assert figures(compare(*split, ("naive-bayes", "tan"), **how).to_dict()) == figures(whole.to_dict())
