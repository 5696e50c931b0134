"""``milpbn bound``: an upper bound on the best score within seconds, and the size of the problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from milpbn.cli.constraint_options import search_constraints
from milpbn.cli.report import exit_code, say
from milpbn.cli.score_options import ScoreOptions, score_options
from milpbn.cli.search_options import MEMORY_LIMIT, QUIET, SCREEN, SUBSET, SearchOptions, gather, of_search
from milpbn.cli.sections import option_group, options, verb
from milpbn.cli.steps import read, show_notes, started
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import DATA
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.claims.result import Result
    from milpbn.data import Dataset
    from milpbn.problem.constraints import Constraints
    from milpbn.problem.scores.spec import Score


bound_options = option_group(
    "Search",
    "search",
    *of_search("time_limit", "threads", "random_state"),
    SUBSET,
    SCREEN,
    *of_search(
        "output",
        "certificate",
        output={"help": "The result as JSON (result.json)."},
        certificate={"help": "The proof of the bound, for milpbn verify."},
    ),
    QUIET,
)(lambda quiet, **values: gather(**values, verbose=not quiet, root_only=True))


@verb(short_help="Bound the score of every structure, within seconds.")
@click.argument("data", type=DATA, required=False)
@table_options
@score_options
@search_constraints
@bound_options
@options(MEMORY_LIMIT, section="Search")
def bound(
    data: str | None,
    table: TableOptions,
    score: ScoreOptions,
    constraints: Constraints,
    structure: str | None,
    search: SearchOptions,
) -> int:
    """Bound the score of every structure, without a solver and without branching.

    Also shows the score that local search reaches, how many arcs are proved to be in every optimum or in none, and
    how much memory milpbn solve would take. DATA is as for milpbn solve.

    \b
    Example:
      milpbn bound table.csv --target class --p 0.9
    """
    how = search.options
    score.refuse_choices("A bound is for", fits=False)
    spec = score.score()

    from milpbn.instances import DEFAULT
    from milpbn.problem.scores.registry import score_names
    from milpbn.problem.structures import structured
    from milpbn.solving.api import maximise
    from milpbn.solving.question import Question

    if how.certificate is not None and not spec.kind.certified:
        those = ", ".join(score_names(lambda kind: kind.certified))
        raise InputError(f"A certificate comes with the scores {those}, not with {spec.name}.")
    began, source, quiet = started(), data or f"instance:{DEFAULT}", not how.verbose
    _, dataset = read(table, source, began, quiet=quiet, time_limit=how.time_limit, in_units=spec.needs_units)
    show_notes(dataset, quiet=quiet)
    constraints = structured(structure, dataset, spec, constraints)
    question = Question.of(
        dataset, spec, constraints, subset=search.subset, screen=search.screen, random_state=how.random_state
    )
    result = maximise(question, how, started=began)
    say(describe(result))
    if spec.is_margin and result.screened is None:
        say(describe_memory(dataset, spec, constraints))
    return exit_code(result)


def describe(result: Result) -> str:
    """Return incumbent, bound, gap and proved arcs as lines of text."""
    from milpbn.solving.progress import all_line, dropped_lines, left_out_lines, number_lines, scope_lines

    data = result.data
    lines = [
        f"data       {data.name}: {data.samples} samples, {data.variables}",
        *left_out_lines(data.left_out),
    ]
    searched = result.searched
    lines += [
        *dropped_lines(result.notes),
        *scope_lines(result),
        *number_lines(searched.objective, searched.bound),
        *([] if result.subset is None else [all_line(result.objective, result.bound)]),
    ]
    if (proved := result.proved) is not None:
        lines.append(f"arcs       {len(proved.inside)} in every optimum, {len(proved.outside)} in none")
    return "\n".join([*lines, f"seconds    {result.seconds.total:.2f}"])


def describe_memory(dataset: Dataset, score: Score, constraints: Constraints) -> str:
    """Return a forecast of the memory that solving takes, as a line of text."""
    from milpbn.problem.conflicts import resolve
    from milpbn.problem.forecast import solver_bytes, tables_bytes, tensor_bytes
    from milpbn.util.memory import format_bytes, peak_memory

    _, candidates = resolve(constraints, dataset.names, score)
    problem = (dataset.merged, candidates, score)
    model = format_bytes(tensor_bytes(*problem) + solver_bytes(*problem))
    if not score.kind.sums_samples:
        return f"memory     {model} as a MILP"
    tables, peak = format_bytes(tables_bytes(*problem)), peak_memory()
    whole = "" if peak is None else f" (the whole process so far: {format_bytes(peak)})"
    return f"memory     {tables} of tables with the backend native{whole}, {model} as a MILP"
