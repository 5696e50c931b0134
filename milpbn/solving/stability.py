"""Structure stability: exact searches on bootstrap samples, spread over processes or machines."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from milpbn.claims.about import DataSummary
from milpbn.claims.reasons import Limit
from milpbn.claims.stability import FORMAT, SampleRun, Stability
from milpbn.data import Dataset
from milpbn.data.dataset import require_class
from milpbn.errors import InputError, MilpbnError
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import checked_constraints
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import maximise, training_data
from milpbn.solving.engines.registry import checked_engine
from milpbn.solving.options import Options
from milpbn.solving.question import Question
from milpbn.solving.warm_up import compile_all
from milpbn.trials.executors import Inline, spread
from milpbn.trials.runner import run_cells
from milpbn.util import interrupts
from milpbn.util.atomic import check_writable, save_or_warn
from milpbn.util.jsonable import parse_object, read_text
from milpbn.util.memory import exceeded, format_bytes, memory_limit
from milpbn.util.validation import whole_number

#: Seconds between two updates of the output file.
SAVE_EVERY = 2.0
#: What is said of a process that ends by itself.
LOST = (
    "A process of the bootstrap ended by itself, most likely because memory ran out; use fewer processes (--n-jobs). "
    "With --output, the finished samples are kept."
)


@dataclass(frozen=True)
class Searches:
    """What all searches have in common; pickled once for every process."""

    question: Question
    options: Options

    def run(self, number: int) -> SampleRun | None:
        """Search on a sample, or for number 0 on all rows.

        Return None if the user interrupted the search, or the memory limit stopped it: a sample that was not searched
        as the options say does not count.
        """
        began = time.monotonic()
        asked = self.question
        if number:
            asked = replace(asked, data=bootstrap(asked.data, self.options.random_state, number))
        try:
            result = maximise(asked, self.options)
        except MilpbnError as error:
            if number == 0:
                raise
            if exceeded():
                return None
            return SampleRun(structure=None, failure=str(error), seconds=time.monotonic() - began)
        if result.limit is Limit.USER or (number and result.limit is Limit.MEMORY):
            return None
        found = result.structure
        return SampleRun(
            structure=None if found is None else {k: tuple(v) for k, v in found.to_mapping().items()},
            objective=result.objective,
            bound=result.bound,
            optimal=result.optimal,
            seconds=time.monotonic() - began,
        )


def bootstrap(dataset: Dataset, seed: int, number: int) -> Dataset:
    """Return a bootstrap sample: as many rows, drawn with replacement, as weights of the rows that were drawn.

    States and cuts stay those of all rows. A row's weight is multiplied by how often it was drawn.
    """
    rng = np.random.default_rng([seed, number])
    n = dataset.n_samples
    drawn = rng.multinomial(n, np.full(n, 1.0 / n))
    kept = np.flatnonzero(drawn)
    return replace(dataset, codes=dataset.codes[kept], weights=dataset.weights[kept] * drawn[kept])


def stability(
    data: Any,
    score: Score | str = "sm",
    *,
    constraints: Constraints | None = None,
    samples: int = 100,
    time_limit_each: float | None = 10.0,
    n_jobs: int = 1,
    dask: object = None,
    random_state: int = 0,
    backend: str = "auto",
    output: str | os.PathLike[str] | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Stability:
    """Find the best structure of many bootstrap samples, and count how often each arc is in it.

    Every search has one thread. The first one is on all rows. Ctrl-C keeps what is finished; with an output file, a
    later call with the same arguments, or with more samples, continues.

    Parameters
    ----------
    data, score, constraints
        As for `solve`.
    samples : int
        Number of bootstrap samples.
    time_limit_each : float or None
        Seconds of every search; None searches for a proof as long as it takes.
    n_jobs : int
        Number of processes.
    dask : str, Client or None
        Search on the workers of a Dask cluster instead: address or file of its scheduler, or a client.
    random_state : int
        Seed. A sample is the same for any number of samples, processes and workers.
    backend : str
        See `milpbn.solving.options.Options`.
    output : path, optional
        File for runs and counts as JSON, kept up to date.
    report : callable
        Called with a line of progress after every search.

    Returns
    -------
    Stability
        Its text is a table.

    Raises
    ------
    InputError
        If data or options are unusable, or the cluster, or if the output file has other runs than these.
    SolverError
        If a process ends by itself, the scheduler is lost, or the search on all rows fails.

    Examples
    --------
    >>> import milpbn
    >>> found = milpbn.stability("corral", milpbn.Score(p=0.9), samples=2)
    >>> len(found.runs)
    2
    """
    samples, n_jobs = whole_number("samples", samples), whole_number("n_jobs", n_jobs)
    if samples < 1 or n_jobs < 1:
        raise InputError(f"At least 1 sample and 1 process are needed, got {samples} and {n_jobs}.")
    options = Options(
        backend=backend,
        time_limit=time_limit_each,
        threads=1,
        random_state=random_state,
        output=output,
        verbose=False,
    )
    with spread(n_jobs, dask, lost=LOST, prepare=compile_all) as where:
        return bootstrapped(Question.of(data, score, constraints), options, samples, where, report)


def bootstrapped(
    question: Question, options: Options, samples: int, where: Inline, report: Callable[[str], None]
) -> Stability:
    """Do the same as `stability`, with the question in one object and the options of each search in another.

    The output file of the options gets the runs and counts. Samples are searched `where` the executor runs them.
    """
    engine, version = checked_engine(options, question.score)
    output, options = options.output, replace(options, output=None)
    if output is not None:
        check_writable(output)
    dataset = training_data(question.data)
    require_class(dataset, "Bootstrap stability")
    searches = Searches(replace(question, data=dataset), options)
    empty = Stability(
        data=DataSummary.of(dataset),
        names=dataset.names,
        score=question.score,
        constraints=checked_constraints(question.constraints),
        seed=options.random_state,
        time_limit_each=options.time_limit,
        backend=version,
        asked=samples,
        all_rows=SampleRun(structure=None),
        runs={},
    )
    runs = _Runs(empty, output, report)
    with interrupts.deferred():
        if engine.capabilities.own_bounds:
            # A limit of a few seconds must not be spent on compiling.
            compile_all(stopping=interrupts.requested)
        deque(run_cells([0], searches.run, runs), 0)
        if runs.get(0) is None:
            raise KeyboardInterrupt
        deque(run_cells(range(1, samples + 1), searches.run, runs, where, stopping=_stopping), 0)
    limit, found = memory_limit(), runs.found
    if limit is not None and len(found.runs) < samples and not interrupts.requested():
        report(f"stopped near the memory limit of {format_bytes(limit)}")
    if output is not None:
        save_or_warn(partial(found.save, output), "The run")
    return found


def _stopping() -> bool:
    return interrupts.requested() or exceeded()


class _Runs:
    """The runs so far by their numbers, and the output file, from which they go on."""

    def __init__(
        self, empty: Stability, output: str | os.PathLike[str] | None, report: Callable[[str], None]
    ) -> None:
        before = _continued(empty, output)
        self.found, self._begun = before or empty, before is not None
        self._output, self._report, self._saved = output, report, time.monotonic()

    def get(self, number: int) -> SampleRun | None:
        """Return the run on a sample, or for number 0 on all rows; None if it has to be searched."""
        if number == 0:
            return self.found.all_rows if self._begun else None
        return self.found.runs.get(number)

    def add(self, number: int, run: SampleRun) -> None:
        """Keep a run, and write the file from time to time."""
        if number == 0:
            self.found, self._begun = replace(self.found, all_rows=run), True
            return
        self.found = replace(self.found, runs={**self.found.runs, number: run})
        self._report(
            f"{len(self.found.runs)} of {self.found.asked} samples searched, {self.found.n_proved} proved"
        )
        if self._output is not None and time.monotonic() - self._saved > SAVE_EVERY:
            save_or_warn(partial(self.found.save, self._output), "The bootstrap")
            self._saved = time.monotonic()


def _continued(empty: Stability, output: str | os.PathLike[str] | None) -> Stability | None:
    """Return the finished runs of an output file among those that are asked for; None without one.

    Raise InputError if the file holds something else, or runs with other data or options.
    """
    if output is None or not os.path.exists(output) or not os.path.getsize(output):
        return None
    where = f"The output file {os.fspath(output)!r}"
    values = parse_object(read_text(output, "file"))
    if values.get("format") != FORMAT:
        raise InputError(f"{where} exists and is of another kind; name another file.")
    before = Stability.from_dict(values, where)
    if before.same_as != empty.same_as:
        raise InputError(
            f"{where} has runs with other data, options, backend or seed, which cannot be continued; name another file."
        )
    runs = {number: run for number, run in before.runs.items() if number <= empty.asked}
    return replace(empty, all_rows=before.all_rows, runs=runs)
