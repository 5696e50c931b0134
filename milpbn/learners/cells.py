"""The cells of a comparison, each of which is one learner on one part of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from milpbn.data.dataset import Dataset
from milpbn.learners.base import Control
from milpbn.learners.rows import ComparisonRow
from milpbn.network.structure import Structure

#: Number of a part, and name of a learner or score.
LearnerCell = tuple[int, str]


class Learnt(NamedTuple):
    """What a learner found on one part: its figures, without score and gap, and the structure that has these.

    If it has `failed`, the learner returned no classifier.
    """

    row: ComparisonRow
    structure: Structure | None = None
    failed: bool = False


class SplitRows:
    """Training and test rows of each part.

    `rows_of` returns those of one of `count` parts by its number; test rows may be None. It must be possible to pickle
    it.
    """

    def __init__(self, count: int, rows_of: Callable[[int], tuple[Dataset, Dataset | None]]) -> None:
        self.count, self._rows_of = count, rows_of
        self._last: tuple[int, tuple[Dataset, Dataset | None]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_last": None}

    def __getitem__(self, number: int) -> tuple[Dataset, Dataset | None]:
        """Return training and test rows of a part; those of the last one are kept."""
        if self._last is None or self._last[0] != number:
            self._last = number, self._rows_of(number)
        return self._last[1]

    def control(self, control: Control, number: int) -> Control:
        """Return the control of learners on a part, whose reports name it if there are several."""
        if self.count == 1:
            return control
        return replace(control, report=partial(_report, control, f"part {number + 1} of {self.count}"))


def _report(control: Control, part: str, line: str) -> None:
    control.report(f"{part}: {line}")


def in_order(
    cells: Sequence[LearnerCell],
    found: Iterable[tuple[LearnerCell, Learnt]],
    report: Callable[[str], None] | None = None,
) -> Iterator[tuple[LearnerCell, Learnt]]:
    """Yield what is found in the order of the cells, as soon as all before it are there, and in the end the rest.

    Each is reported as soon as it is found.
    """
    waiting, early = list(cells)[::-1], dict[LearnerCell, Learnt]()
    for done, (cell, learnt) in enumerate(found, start=1):
        if report is not None:
            report(f"{done} of {len(cells)} finished, the last one {cell[1]}")
        early[cell] = learnt
        while waiting and waiting[-1] in early:
            yield waiting[-1], early.pop(waiting.pop())
    for cell in reversed(waiting):
        if cell in early:
            yield cell, early[cell]
