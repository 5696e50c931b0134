"""What is reproduced of a paper: its studies on the data that are there, their state, and the page."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import ClassVar

from milpbn.data.known import known_set
from milpbn.errors import InputError
from milpbn.experiments.cells import KeptCells
from milpbn.experiments.images import known_name
from milpbn.experiments.runner import Finished, Study, Task, missing, run_plan
from milpbn.learners.differentiable.presets import EPOCHS
from milpbn.util.locks import claim, lock

#: Folder in that of the cells: a locked file for each task that is being computed.
RUNNING = "running"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the user asks for.

    Attributes
    ----------
    only : tuple of str
        Data sets, methods and parts; empty for all.
    budget : float or None
        Seconds of what a paper limits; None for its default.
    epochs : int
        Of a training by gradients.
    """

    only: tuple[str, ...] = ()
    budget: float | None = None
    epochs: int = EPOCHS
    seed: int = 0
    data_dir: Path | None = None


@dataclass(frozen=True)
class Choice:
    """The data sets, methods and parts to compute, by the paper's names; `skipped` are those that are not there."""

    data: tuple[str, ...]
    methods: tuple[str, ...]
    parts: tuple[str, ...]
    skipped: tuple[str, ...]


class Paper(ABC):
    """A paper with its tables and figures.

    Attributes
    ----------
    data : mapping from the paper's name of a data set to that of the studies
    methods, more_methods : tuples of str
        What is computed by default, and what else `Wanted.only` may name.
    parts : tuple of str
        Names of parts of data sets.
    budget : float or None
        Default of `Wanted.budget`; None for no limit.
    """

    name: ClassVar[str]
    data: ClassVar[dict[str, str]]
    methods: ClassVar[tuple[str, ...]]
    more_methods: ClassVar[tuple[str, ...]] = ()
    parts: ClassVar[tuple[str, ...]] = ("test", *(f"fold-{k}" for k in range(1, 6)))
    budget: ClassVar[float | None] = None

    @abstractmethod
    def studies(self, choice: Choice, wanted: Wanted) -> list[Study]:
        """Return the studies of what was chosen, in the order in which they run."""

    @abstractmethod
    def page(self, studies: Sequence[Study], store: KeptCells, folder: Path) -> str:
        """Return the page of everything that is there, and write its pictures into the folder."""

    def choose(self, wanted: Wanted) -> Choice:
        """Return what `Wanted.only` names, or all, as far as the data are there.

        Raises
        ------
        InputError
            If a name is unknown, or a data set that was named is not there, or none is.
        """
        known = (tuple(self.data), self.methods + self.more_methods, self.parts)
        for name in wanted.only:
            if not any(name in names for names in known):
                raise InputError(
                    f"--only: {self.name} has no {name!r}; choose from {', '.join(dict.fromkeys(sum(known, ())))}."
                )
        data, methods, parts = (tuple(n for n in names if n in wanted.only) for names in known)
        there = {
            name: known_set(known_name(of)).folder(wanted.data_dir) is not None
            for name, of in self.data.items()
        }
        absent = tuple(name for name in data or self.data if not there[name])
        if absent and (data or not any(there.values())):
            where = "--data-dir" if wanted.data_dir is None else repr(str(wanted.data_dir))
            raise InputError(f"{self.lacking(absent[:3])}; put it into {where} (milpbn data list says more).")
        chosen = tuple(name for name in data or self.data if there[name])
        return Choice(chosen, methods or self.methods, parts, absent)

    def lacking(self, names: Sequence[str]) -> str:
        """Return a clause that says which data sets are not there, and where they can be had."""
        sources = (f"{name} ({known_set(known_name(self.data[name])).source})" for name in names)
        return f"Not in the folder of the data: {', '.join(sources)}"


class Running:
    """Marks the task that this process computes by a locked file, which a killed process leaves unlocked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / RUNNING

    def __call__(self, task: Task) -> None:
        """Mark a task; the mark of the one before goes. Where files cannot be written there are no marks."""
        unmark()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / task.cell.key
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return
        lock(file)
        _marks.append((file, path))


#: The marks of this process: descriptor and path.
_marks: list[tuple[int, Path]] = []


def unmark() -> None:
    """Remove the mark of this process."""
    while _marks:
        file, path = _marks.pop()
        path.unlink(missing_ok=True)
        os.close(file)


def running(folder: Path) -> set[str]:
    """Return the keys of the tasks that processes compute now; remove the marks that were left."""
    found = set()
    for path in (folder / RUNNING).glob("*"):
        file = claim(path)
        if file is None:
            found.add(path.name)
        else:
            path.unlink(missing_ok=True)
            os.close(file)
    return found


@dataclass(frozen=True)
class StudyState:
    """The state of a study.

    Attributes
    ----------
    done : int
        Number of finished tasks.
    spent : float
        Processor seconds of their cells.
    left : float or None
        Estimated wall-clock seconds of what is missing, or of what is left of the budget, on one process; None if
        nothing is known.
    guessed : int
        Number of missing tasks for which nothing like them is kept: their time limits count, or nothing.
    """

    study: Study
    done: int
    running: list[Task]
    failed: list[tuple[Task, str]]
    missing: list[Task]
    spent: float
    left: float | None
    guessed: int


def state(study: Study, store: KeptCells, running_keys: set[str] = frozenset()) -> StudyState:  # type: ignore[assignment]
    """Return the state of a study.

    A missing task is expected to take the mean of the same method on other parts of the data set, else on any part.
    """
    every = study.tasks()
    waiting, failed = missing(study, store)
    absent = {task.cell.key for task in (*waiting, *(task for task, _ in failed))}
    kept = {task.cell.key: _seconds(task, store) for task in every if task.cell.key not in absent}
    known: dict[tuple[str, ...], list[float]] = {}
    for task in every:
        if task.cell.key in kept:
            for alike in _alike(task):
                known.setdefault(alike, []).append(kept[task.cell.key][0])
    wall, spent = (sum(seconds[k] for seconds in kept.values()) for k in (0, 1))
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
    studies: Sequence[Study], store: KeptCells, folder: Path, *, n_jobs: int = 1, retry_failed: bool = False
) -> Iterator[str]:
    """Compute what is missing, one study after the other, and yield a line for every finished task."""
    for study in studies:
        yield from _compute(study, store, folder, n_jobs, retry_failed)


def _compute(study: Study, store: KeptCells, folder: Path, n_jobs: int, retry_failed: bool) -> Iterator[str]:
    now = state(study, store)
    spent = now.spent
    total = len(now.missing) + (len(now.failed) if retry_failed else 0)
    began = time.monotonic()

    def over() -> bool:
        return study.budget is not None and spent >= study.budget

    cells = run_plan(
        study, store, n_jobs=n_jobs, retry_failed=retry_failed, started=Running(folder), stopping=over
    )
    try:
        for count, done in enumerate(cells, start=1):
            spent += _seconds(done.task, store)[1]
            line = f"{time.monotonic() - began:8.1f}s  {count} of {total}  {_told(done)}"
            if study.budget is not None:
                line += f"  ({spent:.0f} s of the budget of {study.budget:g} s)"
            yield line
    finally:
        unmark()


def _told(done: Finished) -> str:
    """Return what a task found, in a few words."""
    if done.kept.failure is not None:
        return f"{done.task.cell}  failed: {done.kept.failure}"
    figures = done.kept.found.get("figures")
    return f"{done.task.cell}" + (f"  accuracy {100 * figures['accuracy']:.2f} %" if figures else "")
