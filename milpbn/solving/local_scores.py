"""Local scores: written for GOBNILP and BLIP, and maximised without data, by the run that `milpbn.solve` has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from milpbn.claims.result import Result
from milpbn.engine.parent_sets.sets import list_sets
from milpbn.engine.reduction import restricted
from milpbn.errors import InputError
from milpbn.milp.files.jkl_file import read_jkl, write_jkl
from milpbn.problem.class_free import adapted
from milpbn.problem.constraints import Constraints
from milpbn.problem.local import LocalDataset, LocalScore, LocalScores
from milpbn.problem.problem import build_problem, checked_constraints
from milpbn.problem.rounding import CAREFUL
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import maximise, training_data
from milpbn.solving.options import OptionKeywords, Options, takes_options
from milpbn.solving.question import Question
from milpbn.util.budget import Budget
from milpbn.util.memory import limited


def export_local_scores(
    data: Any,
    score: Score | str = "bdeu",
    *,
    path: str | os.PathLike[str],
    constraints: Constraints | None = None,
    dominated: bool = False,
) -> LocalScores:
    """Write the local scores of candidate parent sets as a ``.jkl`` file.

    Parameters
    ----------
    data : Dataset, Table, or anything `read_table` reads
        Training data.
    score : Score or str
        A sum of local scores: ``ll``, ``mdl`` (= ``bic``), ``aic`` or ``bdeu``. Arc weights are added to them.
    path : path
        The file.
    constraints : Constraints, optional
        Parent sets that they exclude are left out. Limits on the number of children cannot be written.
    dominated : bool
        Also write parent sets with a subset that scores no less. A best structure needs none of them, but a list of
        several structures may.

    Raises
    ------
    InputError
        If the score or a constraint is no sum over parent sets, the data are unusable, or the file cannot be written.
    """
    spec = Score(name=score) if isinstance(score, str) else score
    if spec.is_margin or spec.kind.curve is not None:
        raise InputError(
            f"The score {spec.name} is not a sum of local scores, as a .jkl file needs it; choose ll, mdl, aic or "
            "bdeu, or write the model as .lp or .mps."
        )
    dataset = training_data(data)
    asked = adapted(dataset, spec, checked_constraints(constraints))
    problem = build_problem(dataset, *asked, for_milp=False, dominated=dominated)
    if problem.rules.max_children:
        asked_of = "features" if problem.rules.max_features is not None else "children"
        raise InputError(
            f"A .jkl file cannot hold limits on the number of {asked_of}; drop --max-{asked_of}."
        )
    if constraints is not None and (options := constraints.path_options):
        raise InputError(
            f"A .jkl file cannot hold constraints on paths; drop {options}, or write the model as .lp."
        )
    if not dominated:
        listed = list_sets(problem.candidates, problem.linear + CAREFUL * problem.linear_error)
        problem = restricted(problem, np.isin(np.arange(problem.candidates.n_sets), listed.in_eta))
    local = LocalScores(problem.candidates, problem.linear)
    write_jkl(local, path)
    return local


@takes_options
def solve_local_scores(
    scores: LocalScores | str | os.PathLike[str],
    *,
    constraints: Constraints | None = None,
    name: str | None = None,
    started: float | None = None,
    **options: Unpack[OptionKeywords],
) -> Result:
    """Find the structure with the largest sum of local scores, such as those of a ``.jkl`` file.

    It is `milpbn.solve` without data: there is no classifier, and a structure's score is the sum of its local scores.

    Parameters
    ----------
    scores : LocalScores or path
        The scores, or their file.
    constraints : Constraints, optional
        What the structure has to obey. Arc weights are added to the scores.
    name : str, optional
        Name of the scores in the result; by default that of the file without its ending.
    started : float, optional
        `time.monotonic` value from which the time limit counts; by default the time of the call.
    **options
        How to search; see `milpbn.solving.options.Options`. The backend is ``branch-and-cut``, which ``auto`` stands
        for, or a MILP solver. The start is a structure over the variables of the file, in its order.

    Returns
    -------
    LocalResult
        A `Result` without a classifier; see `milpbn.claims.local_result`.

    Raises
    ------
    InputError
        If the file, the constraints or an option is unusable, or every choice of parent sets has a cycle.
    SolverError
        If the solver fails.
    NotSavedError
        If a file could not be written at the end; its attribute ``result`` is the result.

    Examples
    --------
    >>> from milpbn.solving.local_scores import solve_local_scores
    >>> best = solve_local_scores("scores.jkl", time_limit=60)  # doctest: +SKIP
    """
    how = Options(**options)
    if how.gap_se:
        raise InputError("--gap-se (gap_se) needs data, and local scores have none; leave it out.")
    budget = Budget(how.time_limit, began=started)
    with limited(how.memory_limit):
        data = budget.before(lambda: local_dataset(scores, name), "the local scores were read")
    return maximise(Question(data, LocalScore(), constraints), how, started=budget.began)


def local_dataset(scores: LocalScores | str | os.PathLike[str], name: str | None = None) -> LocalDataset:
    """Return what stands for the data of local scores or their file, by default with the name of the file."""
    if isinstance(scores, LocalScores):
        return LocalDataset.of(scores, name or "local scores")
    return LocalDataset.of(read_jkl(scores), name or Path(Path(scores).name.removesuffix(".gz")).stem)
