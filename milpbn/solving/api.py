"""The main job: from data to a structure with a proven gap."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.claims.result import Result
from milpbn.data import Dataset, Table, read_table
from milpbn.errors import InputError
from milpbn.network.cpt import require_states
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Admitted, Candidates, list_candidates
from milpbn.problem.class_free import settled
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import Problem, build_problem, checked_constraints, usable_sets
from milpbn.problem.scores.spec import Score
from milpbn.problem.screening import Screen, sets_up_to
from milpbn.problem.subset import Subset
from milpbn.problem.unused import forbid_unused, without_forbidden_unused
from milpbn.solving.checkpoint import SavedSearch, describe, read_saved_search
from milpbn.solving.engines.registry import checked_engine
from milpbn.solving.job import Job, LargerProblem
from milpbn.solving.listing import check_scope
from milpbn.solving.options import Options
from milpbn.solving.progress import wants_progress
from milpbn.solving.run import run
from milpbn.solving.screening import restored_problem, small_problem
from milpbn.util import stages
from milpbn.util.clock import before
from milpbn.util.memory import limited
from milpbn.util.progress_line import LINE

#: Samples times parent sets up to which the tables of all parent sets are built at once: they take a second or so, and
#: with a time limit much less. Above, a search over small parent sets comes first.
SMALL_TABLES, SMALL_TABLES_WITHIN_LIMIT = 30_000_000, 2_000_000
#: How many times as many parent sets the next of several searches is over, at least.
GROWTH = 4
#: Samples for which a table takes as long as a parent set's local term, which takes some hundred microseconds.
LOCAL_SCORE = 2_000


def training_data(source: Any) -> Dataset:
    """Return the training rows of anything that `solve` accepts as data."""
    if isinstance(source, Dataset):
        return source
    table = source if isinstance(source, Table) else read_table(source)
    return table.dataset("train")


def solve(
    data: Any,
    score: Score | str = "sm",
    *,
    constraints: Constraints | None = None,
    subset: int | None = None,
    screen: int | None = None,
    started: float | None = None,
    backend: str = "auto",
    acyclicity: str = "order",
    time_limit: float | None = None,
    memory_limit: int | None = None,
    gap_rel: float = 0.0,
    gap_abs: float = 0.0,
    threads: int | None = None,
    random_state: int = 0,
    start: Structure | None = None,
    warm_start: bool = True,
    root_bound: bool = True,
    root_only: bool = False,
    reduce: bool = True,
    merge: bool = True,
    n_best: int = 1,
    solver_options: Mapping[str, str] | None = None,
    parameters: str | None = None,
    output: str | os.PathLike[str] | None = None,
    trace: str | os.PathLike[str] | None = None,
    certificate: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    log: str | os.PathLike[str] | None = None,
    verbose: bool | None = None,
    interrupted: Callable[[], bool] | None = None,
    on_change: Callable[[Result], bool | None] | None = None,
) -> Result:
    """Find the structure that maximises a score, and a bound on the score of every structure.

    Parameters
    ----------
    data : Dataset, Table, or anything `read_table` reads
        Training data; if a table has a split, its training rows are used.
    score : Score or str
        What to maximise; a name stands for the score with its default options.
    constraints : Constraints, optional
        What the structure has to obey.
    subset : int, optional
        Sum the margins over this many representative samples only. The bound then holds for their sum only.
    screen : int, optional
        Search over this many candidate parent sets per variable only, the most promising ones. The bound then holds
        for structures of these only.
    started : float, optional
        `time.monotonic` value from which the time limit counts; by default the time of the call.
    backend, acyclicity, time_limit, memory_limit, gap_rel, gap_abs, threads, random_state, start, warm_start, \
root_bound, root_only, reduce, merge, n_best, solver_options, parameters, output, trace, certificate, checkpoint, \
resume, log, verbose, interrupted, on_change
        How to search; see `milpbn.solving.options.Options`.

    Returns
    -------
    Result
        With ``structure``, ``objective``, ``bound``, ``gap``, ``classifier`` and more.

    Raises
    ------
    InputError
        If data or options are unusable, the solver is missing, or the memory does not suffice.
    SolverError
        If the solver fails.
    NotSavedError
        If a file could not be written at the end; its attribute ``result`` is the result.

    Examples
    --------
    >>> import milpbn
    >>> result = milpbn.solve("corral", milpbn.Score(p=0.9), time_limit=60)
    >>> result.reason == "optimal"
    True
    """
    options = Options.among(locals())
    return maximise(
        data, score, options, constraints=constraints, subset=subset, screen=screen, started=started
    )


def maximise(
    data: Any,
    score: Score | str,
    options: Options,
    *,
    constraints: Constraints | None = None,
    subset: int | None = None,
    screen: int | None = None,
    started: float | None = None,
) -> Result:
    """Do the same as `solve`, with the options in one object."""
    began = time.monotonic() if started is None else started
    spec = Score(name=score) if isinstance(score, str) else score
    if not isinstance(spec, Score):
        raise InputError(f"score must be a Score or the name of one, got {score!r}.")
    chosen, screened = Subset.of(subset, options.random_state), Screen.of(screen, subset)
    check_scope(options.n_best, subset, screen)
    engine, version = checked_engine(options, spec)
    for_milp, deadline = engine.capabilities.milp, options.deadline(began)
    with limited(options.memory_limit), stages.shown(began, wanted=wants_progress(options.verbose)):
        dataset = before(deadline, lambda: training_data(data), "the data were read")
        require_states(dataset)
        listed, asked = options.n_best > 1, checked_constraints(constraints)
        spec = settled(spec, asked, dataset.total_weight, listed=listed)
        if listed:
            constraints = forbid_unused(dataset, asked)
            if options.start is not None and constraints is not None:
                start = without_forbidden_unused(dataset, constraints, options.start)
                options = replace(options, start=start)
        described: dict[str, Any] = {}
        earlier: SavedSearch | None = None
        if options.checkpoint is not None:
            described = describe(dataset, spec, checked_constraints(constraints), options, subset, screen)
            earlier = read_saved_search(options.checkpoint, options, dataset.names, described)
        if earlier is not None:
            # Without a state of the tree search, the stages before it begin anew from this structure.
            options = replace(options, start=earlier.structure)
            if wants_progress(options.verbose):
                LINE.keep(earlier.describe())
        job = partial(
            Job,
            dataset=dataset,
            options=options,
            engine=engine,
            version=version,
            started=began,
            described=described,
            earlier=earlier,
        )
        samples = before(
            deadline, lambda: dataset.merged if options.merge else dataset, "identical samples were merged"
        )
        if screened is not None:
            kept = small_problem(
                dataset,
                spec,
                constraints,
                screened,
                merge=options.merge,
                for_milp=for_milp,
                start=options.start,
                deadline=deadline,
            )
            if kept is not None and earlier is not None and earlier.tree is not None:
                return run(job(restored_problem(kept[0], kept[1], earlier)))
            if kept is not None:
                return run(job(kept[0], screening=kept[1]))
        # The whole problem is checked before a search over a part of it begins.
        rules, admitted = usable_sets(samples, spec, constraints, for_milp=for_milp)

        def build(some: Candidates, sample_weights: NDArray[np.float64] | None = None) -> Problem:
            return build_problem(
                dataset,
                spec,
                constraints,
                merge=options.merge,
                for_milp=for_milp,
                deadline=deadline,
                subset=chosen if sample_weights is None else None,
                sample_weights=sample_weights,
                listed=(rules, some),
            )

        at_once = SMALL_TABLES if options.time_limit is None else SMALL_TABLES_WITHIN_LIMIT
        total = sum(own.count(samples.n_features) for own in admitted)
        n_samples = max(LOCAL_SCORE if spec.kind.has_local_terms else 1, samples.n_samples)
        goes_on = earlier is not None and earlier.tree is not None
        sizes: list[int] = []
        if total * n_samples > at_once and not goes_on:
            sizes = _small_sizes(admitted, SMALL_TABLES // n_samples)
        weights = None if earlier is None else earlier.weights_of(samples)
        if not sizes:
            return run(job(build(list_candidates(samples.names, admitted, deadline=deadline), weights)))

        def up_to(size: int) -> Candidates:
            return sets_up_to(samples.names, admitted, [size] * samples.n_variables, options.start)

        build_began, small = time.monotonic(), up_to(sizes[0])
        problem = build(small, weights)
        seconds = (time.monotonic() - build_began) / small.n_sets

        def larger(size: int | None) -> LargerProblem:
            """Return the problem over the sets of at most `size` members; over all for None."""
            n_sets = total if size is None else _count(admitted, size)

            def make() -> Problem:
                sets = (
                    list_candidates(samples.names, admitted, deadline=deadline)
                    if size is None
                    else up_to(size)
                )
                return build(sets, problem.sample_weights)

            return LargerProblem(make, seconds * n_sets, n_sets)

        return run(job(problem, larger=tuple(map(larger, [*sizes[1:], None]))))


def _small_sizes(admitted: Sequence[Admitted], most: int) -> list[int]:
    """Return the sizes up to which parent sets are searched before all of them, ascending; none if all are small.

    The first is the largest size with at most `most` sets, but at least 1. Each has `GROWTH` times as many sets as the
    one before, at least, and that share of all sets at most.
    """
    largest = max(own.largest_size for own in admitted)
    counts = {size: _count(admitted, size) for size in range(1, largest + 1)}
    first = max([size for size in counts if counts[size] <= most], default=1)
    sizes = [first] if first < largest else []
    for size in range(first + 1, largest):
        if counts[size] >= GROWTH * counts[sizes[-1]] and counts[largest] >= GROWTH * counts[size]:
            sizes.append(size)
    return sizes


def _count(admitted: Sequence[Admitted], size: int) -> int:
    return sum(own.count(size) for own in admitted)
