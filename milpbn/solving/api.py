"""The main job: from data to a structure with a proven gap."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from milpbn.claims.result import Result
from milpbn.data import Dataset, Table, read_table
from milpbn.network.cpt import require_states
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.solving.checkpoint import SavedSearch, describe, read_saved_search
from milpbn.solving.engines.registry import checked_engine
from milpbn.solving.job import Job
from milpbn.solving.options import Options
from milpbn.solving.progress import wants_progress
from milpbn.solving.question import Question
from milpbn.solving.reductions import Statement, reduction
from milpbn.solving.run import run
from milpbn.util import stages
from milpbn.util.budget import Budget
from milpbn.util.memory import limited
from milpbn.util.progress_line import LINE


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
    question = Question.of(
        data, score, constraints, subset=subset, screen=screen, random_state=options.random_state
    )
    return maximise(question, options, started=started)


def maximise(question: Question, options: Options, *, started: float | None = None) -> Result:
    """Do the same as `solve`, with the question in one object and the options in another."""
    budget = Budget(options.time_limit, began=started)
    question.require_listable(options.n_best)
    engine, version = checked_engine(options, question.score)
    shows = wants_progress(options.verbose)
    with limited(options.memory_limit), stages.shown(budget.began, wanted=shows):
        dataset = budget.before(lambda: training_data(question.data), "the data were read")
        require_states(dataset)
        listed = options.n_best > 1
        stated = Statement.of(
            dataset, question.score, question.constraints, listed=listed, start=options.start
        )
        described: dict[str, Any] = {}
        earlier: SavedSearch | None = None
        if options.checkpoint is not None:
            described = describe(
                dataset, stated.score, stated.constraints, options, question.subset, question.screen
            )
            earlier = read_saved_search(options.checkpoint, options, dataset.names, described)
        if earlier is not None:
            # Without a state of the tree search, the stages before it begin anew from this structure.
            stated = replace(stated, start=earlier.structure)
            if shows:
                LINE.keep(earlier.describe())
        milp = engine.capabilities.milp
        stated = replace(stated, merge=options.merge, for_milp=milp, budget=budget)
        budget.before(lambda: stated.samples, "identical samples were merged")
        problem, steps = reduction(stated, question.scope).apply(stated, earlier)
        options = replace(options, start=stated.start)
        return run(Job(problem, dataset, options, engine, version, budget, steps, described, earlier))
