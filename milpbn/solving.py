"""The main job: from data to a structure with a proven gap."""

from __future__ import annotations

import time
from typing import Any

from milpbn.backends.native import NativeBackend
from milpbn.backends.registry import checked_backend
from milpbn.data import Dataset, Table, read_table
from milpbn.errors import InputError
from milpbn.options import Options
from milpbn.result import Result
from milpbn.run import Run
from milpbn.scores.constraints import Constraints
from milpbn.scores.problem import build_problem
from milpbn.scores.spec import Score


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
    started: float | None = None,
    **options: Any,
) -> Result:
    """Find the structure that maximises a score, and a bound on every structure's score.

    Parameters
    ----------
    data : Dataset, Table, or anything `read_table` reads
        Training data; of a table with a split the training rows.
    score : Score or str
        What to maximise; a name means the score with its default options.
    constraints : Constraints, optional
        What the structure has to obey.
    started : float, optional
        `time.monotonic` value from which the time limit counts; by default now.
    **options
        The attributes of `milpbn.options.Options`: backend, time_limit, gap_rel, threads, random_state, ...

    Returns
    -------
    Result
        With ``structure``, ``objective``, ``bound``, ``gap``, ``classifier`` and more.

    Raises
    ------
    InputError
        If data or options are unusable, the solver is missing, or memory would not suffice.
    SolverError
        If the solver fails.
    NotSavedError
        If a file could not be written at the end; it holds the result.

    Examples
    --------
    >>> import milpbn
    >>> result = milpbn.solve("corral", milpbn.Score(p=0.9), time_limit=60)
    >>> result.reason
    'optimal'
    """
    began = time.monotonic() if started is None else started
    try:
        chosen = Options(**options)
    except TypeError as error:
        raise InputError(f"solve does not take that option ({error}).") from None
    spec = Score(name=score) if isinstance(score, str) else score
    if not isinstance(spec, Score):
        raise InputError(f"score must be a Score or the name of one, got {score!r}.")
    backend, version = checked_backend(chosen, spec)
    dataset = training_data(data)
    problem = build_problem(
        dataset,
        spec,
        constraints,
        merge=chosen.merge,
        for_milp=not isinstance(backend, NativeBackend),
        deadline=chosen.deadline(began),
        subset=chosen.subset,
        random_state=chosen.random_state,
    )
    return Run(problem, dataset, chosen, backend, version, constraints or Constraints(), began).result()
