"""The main job: from data to a structure with a proven gap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

from milpbn.claims.result import Result
from milpbn.data import Dataset, Table, read_table
from milpbn.data.dataset import require_class
from milpbn.errors import NoIncumbentError
from milpbn.network.cpt import require_states
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.solving.checkpoint import SavedSearch, describe, read_saved_search
from milpbn.solving.engines.registry import checked_engine
from milpbn.solving.job import Job
from milpbn.solving.options import OptionKeywords, Options, takes_options
from milpbn.solving.progress import wants_progress
from milpbn.solving.question import Question
from milpbn.solving.reductions import Statement, reduction
from milpbn.solving.run import run
from milpbn.util import stages
from milpbn.util.budget import Budget
from milpbn.util.memory import limited
from milpbn.util.progress_line import LINE
from milpbn.util.threads import threads_used


def training_data(source: Any) -> Dataset:
    """Return the training rows of anything that `solve` accepts as data."""
    if isinstance(source, Dataset):
        return source
    table = source if isinstance(source, Table) else read_table(source)
    return table.dataset("train")


@takes_options
def solve(
    data: Any,
    score: Score | str = "sm",
    *,
    constraints: Constraints | None = None,
    subset: int | None = None,
    screen: int | None = None,
    started: float | None = None,
    **options: Unpack[OptionKeywords],
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
        Sum the margins over this many representative samples only. Their sum's bound is ``result.subset.bound``, and
        ``result.bound`` is one over all samples.
    screen : int, optional
        Search over this many candidate parent sets per variable only, the most promising ones. The bound then holds
        for structures of these only.
    started : float, optional
        `time.monotonic` value from which the time limit counts; by default the time of the call.
    **options
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
    how = Options(**options)
    seed = how.random_state
    question = Question.of(data, score, constraints, subset=subset, screen=screen, random_state=seed)
    return maximise(question, how, started=started)


def maximise(question: Question, options: Options, *, started: float | None = None) -> Result:
    """Do the same as `solve`, with the question in one object and the options in another."""
    budget = Budget(options.time_limit, began=started)
    question.require_listable(options.most_listed)
    question.check_paths(options.certificate)
    engine, version = checked_engine(options, question.score)
    shows = wants_progress(options.verbose)
    with (
        limited(options.memory_limit),
        stages.shown(budget.began, wanted=shows),
        engine.dispatcher(options) as dispatcher,
    ):
        dataset = budget.before(lambda: training_data(question.data), "the data were read")
        require_states(dataset)
        options.monotone_constraints(dataset)  # refuses what no classifier of these data can have
        if options.method != "ml":
            require_class(dataset, f"The fit of the parameters by {options.method} (--parameters)")
        options.decision(dataset)  # refuses costs of other classes
        milp = engine.capabilities.milp
        stated = Statement.of(dataset, question, options, for_milp=milp, budget=budget)
        described: dict[str, Any] = {}
        earlier: SavedSearch | None = None
        if options.checkpoint is not None:
            settled = replace(question, data=dataset, score=stated.score, constraints=stated.constraints)
            described = describe(settled, options)
            earlier = read_saved_search(options.checkpoint, options, dataset.names, described)
        if earlier is not None:
            # Without a state of the tree search, the stages before it begin anew from this structure.
            stated = replace(stated, start=earlier.structure)
            if shows:
                LINE.keep(earlier.sentence)
        try:
            budget.before(lambda: stated.samples, "identical samples were merged")
            with threads_used(options.n_threads):
                problem, steps = reduction(stated, question.scope).apply(stated, earlier)
        except NoIncumbentError as error:
            if earlier is None:
                raise
            raise NoIncumbentError(
                f"{error} The checkpoint {earlier.path!r} stays: {earlier.state()}."
            ) from None
        options = replace(options, start=stated.start)
        return run(
            Job(problem, dataset, options, engine, version, budget, steps, described, earlier, dispatcher)
        )
