"""Runs an experiment cell by cell: only what is missing is computed, in several processes or on several machines."""

from __future__ import annotations

import os
import platform
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from milpbn.data import Table, read_table
from milpbn.data.catalog import CATALOG, find_folder
from milpbn.errors import MilpbnError
from milpbn.experiments.base import Budgets, Method, MethodInput
from milpbn.experiments.cells import Cell, Kept, KeptCells
from milpbn.experiments.images import IMAGES, files_hash, image_folder, read_images
from milpbn.experiments.images import part_names as image_parts
from milpbn.experiments.methods import method
from milpbn.experiments.protocol import TEST_SET, PartRows, part_names, parts, table_hash
from milpbn.solving.warm_up import compile_all
from milpbn.trials.executors import spread
from milpbn.util import interrupts, stages
from milpbn.util.threads import library_threads, threads_used
from milpbn.version import __version__

#: Programs whose versions every cell has.
PROGRAMS = ("numpy", "scipy", "scikit-learn", "numba", "highspy")
#: What is said of a process that ends by itself.
LOST = (
    "A process that computed a cell ended by itself, most likely because memory ran out; use fewer processes "
    "(--n-jobs). The cells that are finished are kept."
)


class Study(ABC):
    """What is computed: tasks, on parts of data sets, with a seed; it is pickled for other processes.

    With a budget, in processor seconds, no task begins once those that are finished have taken so long.
    """

    title: str
    seed: int
    data_dir: Path | None
    budget: float | None = None

    @abstractmethod
    def tasks(self) -> list[Task]:
        """Return all tasks, in the order in which they are computed."""

    def part(self, task: Task) -> PartRows:
        """Return the rows of a task."""
        images = task.data in IMAGES
        return (_images(task.data, self.data_dir) if images else _parts(self, task.data))[task.part]

    def divided(self, table: Table) -> Mapping[str, PartRows]:
        """Return the parts of a table by name."""
        return {part.name: part for part in parts(table, self.seed)}


@dataclass(frozen=True, kw_only=True)
class Plan(Study):
    """All of some methods on all of some data sets."""

    #: Names of data sets of the catalog, or of `milpbn.experiments.images.IMAGES`.
    data: tuple[str, ...]
    #: Names of methods (`milpbn.experiments.methods.METHODS`).
    methods: tuple[str, ...]
    #: Names of parts; empty for all.
    parts: tuple[str, ...] = ()
    budgets: Budgets
    seed: int = 0
    #: Folder of the catalog; by default the one that the environment names.
    data_dir: Path | None = None
    #: Name for the state of the study.
    title: str = "all"

    def tasks(self) -> list[Task]:
        """Return all tasks, those of the smallest data sets first.

        A method that is the same as another one on some data (`milpbn.experiments.methods.method`) occurs once.
        """
        found: dict[str, Task] = {}
        for data in sorted(self.data, key=lambda name: facts(name, self.data_dir).size):
            for part in names_of_parts(self, data):
                for name in self.methods:
                    task = task_of(self, data, part, name)
                    found.setdefault(task.cell.key, task)
        return list(found.values())


@dataclass(frozen=True)
class Task:
    """One method on one part, with the cells of what it needs before its own.

    The steps are in the order in which they are computed; each gets what the one before found. The last one has the
    figures.
    """

    data: str
    part: str
    steps: tuple[tuple[Cell, Method], ...]

    @property
    def cell(self) -> Cell:
        """The cell with the figures."""
        return self.steps[-1][0]


@dataclass(frozen=True)
class Facts:
    """What is known of a data set without learning anything."""

    sha256: str
    #: Numbers of classes, and of test rows, which are 0 with cross-validation.
    classes: int
    test_rows: int
    parts: tuple[str, ...]
    #: A rough measure of the work: cells of the table times classes.
    size: int


@lru_cache(maxsize=64)
def facts(data: str, data_dir: Path | None) -> Facts:
    """Return what is known of a data set."""
    if data in IMAGES:
        folder = image_folder(data, data_dir)
        first = next(iter(_images(data, data_dir).values()))
        size = first.train.codes.size * first.train.n_classes
        rows = first.test.n_samples if first.name == TEST_SET else 0
        return Facts(files_hash(data, folder), first.train.n_classes, rows, tuple(image_parts(data)), size)
    table = _table(data, data_dir)
    classes = int(table.frame[table.target].nunique())
    size = table.n_rows * len(table.features) * classes
    return Facts(table_hash(table), classes, len(table.test_indices), tuple(part_names(table)), size)


@lru_cache(maxsize=1)
def _images(data: str, data_dir: Path | None) -> Mapping[str, PartRows]:
    """Return the parts of a set of images by name; kept for the next cell of the same set."""
    return read_images(data, image_folder(data, data_dir))


@lru_cache(maxsize=1)
def _parts(study: Study, data: str) -> Mapping[str, PartRows]:
    """Return the parts of a table by name; kept for the next cell of the same data set."""
    return study.divided(_table(data, study.data_dir))


def _table(data: str, data_dir: Path | None) -> Table:
    """Read a data set of the catalog, which may be in a folder inside the named one, or an embedded instance."""
    return read_table(data, data_dir=find_folder(data_dir, [CATALOG, f"{data}.csv.gz"]) or data_dir)


def names_of_parts(plan: Plan, data: str) -> list[str]:
    """Return the names of the parts of a data set that a plan has."""
    return [part for part in facts(data, plan.data_dir).parts if part in plan.parts or not plan.parts]


def task_of(plan: Plan, data: str, part: str, name: str) -> Task:
    """Return the task of a method, by the name that it has in the tables."""
    known = facts(data, plan.data_dir)
    steps = method(name, plan.budgets, known.classes).steps
    cells = [
        Cell(data, known.sha256, part, step.name, step.options, plan.seed, step.budget) for step in steps
    ]
    return Task(data, part, tuple(zip(cells, steps, strict=True)))


@dataclass(frozen=True)
class Finished:
    """A task after its computation: what its last cell holds, or why a step failed."""

    task: Task
    kept: Kept


def missing(
    plan: Study, store: KeptCells, *, retry_failed: bool = False
) -> tuple[list[Task], list[tuple[Task, str]]]:
    """Return the tasks whose cells are still to be computed, and those that failed, with the reason.

    With `retry_failed`, failed tasks are among those that are to be computed.
    """
    waiting: list[Task] = []
    failed: list[tuple[Task, str]] = []
    for task in plan.tasks():
        states = [store.read(cell) for cell, _ in task.steps]
        reasons = [kept.failure for kept in states if kept is not None and kept.failure is not None]
        if reasons and not retry_failed:
            failed.append((task, reasons[0]))
        elif states[-1] is None or reasons:
            waiting.append(task)
    return waiting, failed


def run_plan(
    plan: Study,
    store: KeptCells,
    *,
    n_jobs: int = 1,
    dask: object = None,
    threads: int = 1,
    retry_failed: bool = False,
    started: Callable[[Task], None] = lambda task: None,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Finished]:
    """Compute what is missing, and yield every task when its cells are kept.

    A run that is killed loses only the cells that were being computed.

    Parameters
    ----------
    n_jobs, threads : int
        Number of processes, and of threads of each of them.
    dask : str, Client or None
        Compute on the workers of a Dask cluster instead, each with one thread: address or file of its scheduler, or a
        client. The workers need not have the tables' files, only those of images.
    retry_failed : bool
        Compute failed cells again.
    started : callable
        Called when a task begins, in the process that computes it; not on Dask workers.
    stopping : callable
        Asked often; True means stop. The cells that are being computed are then lost.
    """
    waiting, _ = missing(plan, store, retry_failed=retry_failed)
    if any(step.budget is not None for task in waiting for _, step in task.steps):
        # A limit of a few seconds must not be spent on compiling.
        compile_all(lambda done, of: stages.tell(f"compiling kernels: {done} of {of}"))
    if dask is None:
        work = CellWork(plan, threads, started)
    else:
        names = sorted({task.data for task in waiting} - set(IMAGES))
        work = CellWork(plan, 1, _not_told, {name: _table(name, plan.data_dir) for name in names})
    steps = deque(_next_cell(task, store) for task in waiting)
    with spread(n_jobs, dask, lost=LOST, prepare=compile_all) as where:
        for step, made in where.run(work.compute, steps, stopping):
            cell, kept = step.task.steps[step.number][0], made.pop("kept")
            store.write(cell, kept, **made)
            if kept.failure is None and cell is not step.task.cell:
                steps.appendleft(_next_cell(step.task, store, step.number + 1, kept.found))
            else:
                yield Finished(step.task, kept)


@dataclass(frozen=True)
class NextCell:
    """The cell of a task that is to be computed next: step `number` of it.

    The step before found what is `needed`. The task has `begun` if a step of it was computed in this run.
    """

    task: Task
    number: int
    needed: Mapping[str, Any]
    begun: bool

    def __str__(self) -> str:
        return str(self.task.steps[self.number][0])


def _next_cell(
    task: Task, store: KeptCells, number: int = 0, needed: Mapping[str, Any] | None = None
) -> NextCell:
    """Return the first step from a number on whose cell is not kept; the last one is not kept."""
    begun, found = number > 0, needed or {}
    while number + 1 < len(task.steps):
        kept = store.read(task.steps[number][0])
        if kept is None or kept.failure is not None:
            break
        number, found = number + 1, kept.found
    return NextCell(task, number, found, begun)


def _not_told(task: Task) -> None:
    """Say nothing of a task that begins on another machine."""


@dataclass(frozen=True, eq=False)
class CellWork:
    """What all cells of a study have in common; pickled once for every process.

    `tables` are data sets by name, for machines that may not have their files; others are read there.
    """

    plan: Study
    threads: int
    started: Callable[[Task], None]
    tables: Mapping[str, Table] = field(default_factory=dict)

    def compute(self, step: NextCell) -> dict[str, Any]:
        """Return what the cell of a step holds, as ``kept``, and what else is written with it."""
        if not step.begun:
            self.started(step.task)
        method = step.task.steps[step.number][1]
        began, work_began = time.monotonic(), time.process_time()
        try:
            task = step.task
            sent = task.data in self.tables
            part = _sent_parts(self, task.data)[task.part] if sent else self.plan.part(task)
            with threads_used(self.threads), library_threads(self.threads):
                kept = Kept(method.run(MethodInput(part, self.plan.seed, self.threads, step.needed)))
            if interrupts.requested():
                raise KeyboardInterrupt  # what was found may be less than the method finds
        except Exception as error:
            known = isinstance(error, MilpbnError)
            kept = Kept({}, f"{error}" if known else f"{type(error).__name__}: {error}")
        seconds = {
            "wall": time.monotonic() - began,
            "processor": time.process_time() - work_began,  # less than a budget: the machine was busy
        }
        return {"kept": kept, "seconds": seconds, "versions": versions(), "machine": machine(self.threads)}


@lru_cache(maxsize=1)
def _sent_parts(work: CellWork, data: str) -> Mapping[str, PartRows]:
    """Return the parts of a table that was sent by name; kept for the next cell of the same data set."""
    return work.plan.divided(work.tables[data])


def versions() -> dict[str, str]:
    """Return the versions of the programs that results may depend on."""
    return {
        "milpbn": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in PROGRAMS},
    }


def machine(threads: int) -> str:
    """Return what the times depend on, in a few words."""
    return f"{platform.machine()}, {os.cpu_count()} cores, threads: {threads}"
