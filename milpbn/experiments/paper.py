"""What is reproduced of a paper: its studies on the data that are there, their state, and the page."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, NamedTuple

from milpbn.data.known import KnownSet, known_set
from milpbn.errors import InputError
from milpbn.experiments.cells import KeptCells
from milpbn.experiments.images import known_name
from milpbn.experiments.runner import Finished, Study, Task, missing, run_plan
from milpbn.learners.differentiable.presets import EPOCHS
from milpbn.util.locks import lock, remove_abandoned

#: Folder in that of the cells: a file for each task that is being computed, which the process keeps locked.
RUNNING = "running"
#: The locked file of this process.
_mark: tuple[int, Path] | None = None


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the user asks for: names of data sets, methods and parts (all if empty), seconds, epochs of a training."""

    only: tuple[str, ...] = ()
    budget: float | None = None
    epochs: int = EPOCHS
    seed: int = 0
    data_dir: Path | None = None


class Choice(NamedTuple):
    """Names of the data sets that are there, of methods, of parts (all if empty), and of data sets that are absent."""

    data: tuple[str, ...]
    methods: tuple[str, ...]
    parts: tuple[str, ...]
    skipped: tuple[str, ...]


class Paper(ABC):
    """A paper with its tables and figures."""

    name: ClassVar[str]
    #: By the paper's names, the names of the data sets in the studies.
    data: ClassVar[dict[str, str]]
    #: What is computed by default, and what else `Wanted.only` may name.
    methods: ClassVar[tuple[str, ...]]
    more_methods: ClassVar[tuple[str, ...]] = ()
    parts: ClassVar[tuple[str, ...]] = ("test", *(f"fold-{k}" for k in range(1, 6)))
    #: Seconds, if `Wanted.budget` is None.
    budget: ClassVar[float]

    @abstractmethod
    def studies(self, choice: Choice, wanted: Wanted) -> list[Study]:
        """Return the studies of what was chosen, in the order in which they run."""

    @abstractmethod
    def page(self, studies: Sequence[Study], store: KeptCells, folder: Path) -> str:
        """Return the page of everything that is there, and write its pictures into the folder."""

    def choose(self, wanted: Wanted) -> Choice:
        """Return what `Wanted.only` names, or all; InputError if a name is unknown, or its data are not there."""
        known = (tuple(self.data), self.methods + self.more_methods, self.parts)
        for name in wanted.only:
            if not any(name in names for names in known):
                raise InputError(
                    f"--only: {self.name} has no {name!r}; choose from {', '.join(dict.fromkeys(sum(known, ())))}."
                )
        data, methods, parts = (tuple(n for n in names if n in wanted.only) for names in known)
        there = [name for name in self.data if self._known(name).folder(wanted.data_dir) is not None]
        absent = tuple(name for name in data or self.data if name not in there)
        if absent and (data or not there):
            where = "--data-dir" if wanted.data_dir is None else repr(str(wanted.data_dir))
            more = f", and {len(absent) - 3} more" if len(absent) > 3 else ""
            raise InputError(
                f"{self.lacking(absent[:3])}{more}; put the data into {where} (milpbn data list says more)."
            )
        chosen = tuple(name for name in data or self.data if name in there)
        return Choice(chosen, methods or self.methods, parts, absent)

    def _known(self, name: str) -> KnownSet:
        return known_set(known_name(self.data[name]))

    def lacking(self, names: Sequence[str]) -> str:
        """Return a clause that says which data sets are not there, and where they can be had."""
        sources = (f"{name} ({self._known(name).source})" for name in names)
        return f"Not in the folder of the data: {', '.join(sources)}"


@dataclass(frozen=True)
class Running:
    """Marks the task that this process computes by a locked file in the folder of the cells.

    It is called when a task begins, and then removes the mark of the task before.
    """

    folder: Path

    def __call__(self, task: Task) -> None:
        """Mark a task; a folder that cannot be written to gets no marks."""
        global _mark
        unmark()
        path = self.folder / RUNNING / task.cell.key
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _mark = os.open(path, os.O_RDWR | os.O_CREAT, 0o666), path
        except OSError:
            return
        lock(_mark[0])


def unmark() -> None:
    """Remove the mark of this process."""
    global _mark
    if _mark is not None:
        _mark[1].unlink(missing_ok=True)
        os.close(_mark[0])
        _mark = None


def running(folder: Path) -> set[str]:
    """Return the keys of the tasks that processes compute now; remove the marks of killed ones."""
    marks = list((folder / RUNNING).glob("*"))
    for path in marks:
        remove_abandoned(path)
    return {path.name for path in marks if path.exists()}


@dataclass(frozen=True)
class StudyState:
    """How far a study is."""

    study: Study
    done: int
    running: list[Task]
    failed: list[tuple[Task, str]]
    missing: list[Task]
    #: Processor seconds of finished tasks.
    spent: float
    #: Estimated wall-clock seconds of what is missing, or of what is left of the budget, on one process; None if
    #: nothing is known.
    left: float | None
    #: Number of missing tasks of which nothing alike is done, so that their time limits count.
    guessed: int


def state(study: Study, store: KeptCells, running_keys: Collection[str] = ()) -> StudyState:
    """Return the state of a study; a missing task is expected to take as long as those of the same method."""
    waiting, failed = missing(study, store)
    absent = {task.cell.key for task in (*waiting, *(task for task, _ in failed))}
    kept = [(task, *_seconds(task, store)) for task in study.tasks() if task.cell.key not in absent]
    known: dict[tuple[str, ...], list[float]] = {}
    for task, seconds, _ in kept:
        for alike in _alike(task):
            known.setdefault(alike, []).append(seconds)
    wall, spent = sum(entry[1] for entry in kept), sum(entry[2] for entry in kept)
    left: float | None = None
    guessed = 0
    if study.budget is None:
        means = [next((fmean(known[a]) for a in _alike(task) if a in known), None) for task in waiting]
        guessed = means.count(None)
        limits = [sum(cell.budget or 0.0 for cell, _ in task.steps) for task in waiting]
        left = sum(limit if mean is None else mean for limit, mean in zip(limits, means, strict=True))
    elif spent:
        left = max(0.0, study.budget - spent) * wall / spent
    now = [task for task in waiting if task.cell.key in running_keys]
    rest = [task for task in waiting if task.cell.key not in running_keys]
    return StudyState(study, len(kept), now, failed, rest, spent, left, guessed)


def _alike(task: Task) -> list[tuple[str, ...]]:
    return [(task.data, task.cell.method), (task.cell.method,)]


def _seconds(task: Task, store: KeptCells) -> tuple[float, float]:
    """Return the wall-clock and the processor seconds of a finished task."""
    cells = [kept for cell, _ in task.steps if (kept := store.read(cell)) is not None]
    return sum(kept.wall for kept in cells), sum(kept.processor for kept in cells)


def compute(
    study: Study, store: KeptCells, folder: Path, *, retry_failed: bool = False, **how: Any
) -> Iterator[str]:
    """Compute what is missing of a study, as far as its budget goes, and yield a line for every finished task.

    `how` are further keywords of `run_plan`.
    """
    now = state(study, store)
    spent, began = now.spent, time.monotonic()
    total = len(now.missing) + retry_failed * len(now.failed)
    how |= {"retry_failed": retry_failed, "started": Running(folder)}

    def over() -> bool:
        return study.budget is not None and spent >= study.budget

    try:
        for count, done in enumerate(run_plan(study, store, stopping=over, **how), start=1):
            spent += _seconds(done.task, store)[1]
            line = f"{time.monotonic() - began:8.1f}s  {count} of {total}  {_told(done)}"
            yield line + (f"  ({spent:.0f} s of {study.budget:g} s)" if study.budget else "")
    finally:
        unmark()


def _told(done: Finished) -> str:
    """Return what a task found, in a few words."""
    if done.kept.failure is not None:
        return f"{done.task.cell}  failed: {done.kept.failure}"
    figures = done.kept.found.get("figures")
    return f"{done.task.cell}" + (f"  accuracy {100 * figures['accuracy']:.2f} %" if figures else "")
