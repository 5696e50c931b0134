"""``milpbn solve``: from a table to a classifier with a proven gap."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.constraint_options import constraint_options
from milpbn.cli.local_scores import is_local_scores, solve_scores
from milpbn.cli.memory_option import memory_limit
from milpbn.cli.outputs import check_outputs, dropped_when_refused
from milpbn.cli.report import exit_code, no_structure, say
from milpbn.cli.score_options import ScoreOptions, score_options
from milpbn.cli.search_options import CLASSIFIER, PARAMETERS, QUIET, SearchOptions, of_search, search_options
from milpbn.cli.sections import given, option, option_group, typed, verb
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import COUNT, DATA, word
from milpbn.errors import InputError, MilpbnError
from milpbn.util.progress_line import LINE

if TYPE_CHECKING:
    from milpbn.claims.result import Result
    from milpbn.data import Dataset, Table, Variable
    from milpbn.problem.constraints import Constraints


select_options = option_group(
    "Selection",
    "selected",
    option(
        "--recipe",
        type=word("name", "accurate"),
        help="The recommended grid for --select: accurate (accurate classes and calibrated probabilities; at most 10 "
        "minutes without --time-limit). Options that you give are left out of the grid, also at "
        "their default values.",
    ),
    option(
        "--select",
        "grid",
        type=word("grid", "default"),
        help="Choose options by validation, for example --select 'p=.6,.9 max-parents=1,2,3 leave-one-out=no,yes "
        "discretise=mdl,quantile:5 parameters=hybrid'. All combinations of score, p, max-parents, leave-one-out, "
        "smoothing, smoothing-towards, penalty, hybrid, class-parents, parent-sets, discretise, missing and parameters "
        "are compared; those that fall behind are dropped on the way. 'default' is a grid for a first try.",
    ),
    option(
        "--select-by",
        "by",
        type=click.Choice(["accuracy", "log-loss"]),
        help="What --select, --p cv, --max-parents cv and --recipe compare on held-out rows; default accuracy, or what "
        "the recipe compares: log-loss.",
    ),
    option(
        "--average",
        type=COUNT,
        metavar="K",
        help="Average the class probabilities of the K best settings' networks. Structure, score, bound and "
        "certificate are those of the best. The classifier file holds all: predict, evaluate, query, explain, info and "
        "convert (to .sql, .onnx, .json) use all, plot and report show the first, precision and --start refuse it.",
    ),
)(dict)
parameter_options = option_group("Parameters", "parameters", PARAMETERS)(lambda parameters: parameters)
file_options = option_group(
    "Output",
    "files",
    *of_search("output"),
    CLASSIFIER,
    *of_search("certificate", "checkpoint", "resume", "trace", "log"),
    QUIET,
    option("-v", "--verbose", is_flag=True, help="Also show the variables with their states."),
)(dict)


@verb(short_help="Find the best structure, and bound the score of every structure.")
@click.argument("data", type=DATA, required=False)
@table_options
@score_options
@constraint_options
@search_options
@memory_limit("Search")
@select_options
@parameter_options
@file_options
def solve(
    data: str | None,
    table: TableOptions,
    score: ScoreOptions,
    constraints: Constraints,
    search: SearchOptions,
    selected: Mapping[str, Any],
    parameters: str | None,
    files: dict[str, Any],
) -> int:
    """Find the structure with the best score, and bound the score of every structure.

    DATA is a CSV, TSV, ARFF or Parquet file (also .gz), or the name of a catalog entry (--data-dir) or of an
    embedded instance (milpbn instances). Without DATA, the default instance is solved. A file that ends in .jkl has
    the local scores of parent sets, as GOBNILP and BLIP write them, and no data: its best structure has no classifier.

    \b
    Examples:
      milpbn solve --score sm --time-limit 60
      milpbn solve table.csv --target class --p 0.9 --output result.json --classifier classifier.json
      milpbn solve table.csv --target class --recipe accurate --classifier classifier.json
      milpbn solve table.csv --target class --output result.json --checkpoint state.npz

    Ctrl-C stops the search and keeps the best structure so far; with --checkpoint, the same command goes on.
    """
    started: float | None = click.get_current_context().obj
    quiet, verbose, classifier = (files.pop(name) for name in ("quiet", "verbose", "classifier"))
    outputs = {f"--{name}": path for name, path in files.items() if name != "resume"}
    check_outputs({**outputs, "--classifier": classifier}, [data, search.start], streams=["--trace", "--log"])
    spec = score.score()

    from milpbn.claims.result import FailedSearchError, NotSavedError
    from milpbn.instances import DEFAULT
    from milpbn.network import read_structure
    from milpbn.solving.api import maximise
    from milpbn.solving.choices import Choices
    from milpbn.solving.question import Question
    from milpbn.solving.selection import maximise_selected

    choices = Choices(score.choose_p, score.choose_max_parents, **selected)
    options = replace(search.options, **given(**files), verbose=not quiet, parameters=parameters)
    show_stages(started, quiet=quiet)
    undecided = "missing" not in typed() and choices.of_missing
    if undecided:
        # Rows with missing values are kept, so that validation can choose whether they are dropped.
        table = replace(table, settings={**table.settings, "missing": "state"})
    if data is not None and is_local_scores(data):
        with dropped_when_refused(files["trace"], files["log"]):
            return solve_scores(data, options, search.start, started)
    limit, grid = options.time_limit, None
    if choices:
        single = {*score.given, *({"discretise", "missing"} & {*typed()})}
        grid, options = choices.applied(spec, options, single)
    source, dataset = read(
        table,
        data or f"instance:{DEFAULT}",
        started,
        limit,
        in_units=spec.needs_units if grid is None else grid.always_leaves_one_out(spec),
    )
    if not quiet:
        show_notes(
            _undecided(source, dataset) if undecided else dataset,
            variables=dataset.variables if verbose else (),
        )
    if search.start is not None:
        options = replace(options, start=read_structure(search.start, dataset.names))
    scope = {"subset": search.subset, "screen": search.screen}
    failure: MilpbnError | None = None
    try:
        with dropped_when_refused(files["trace"], files["log"]):
            asked = dataset if grid is None else source
            question = Question.of(asked, spec, constraints, **scope, random_state=options.random_state)
            if grid is None:
                result = maximise(question, options, started=started)
            else:
                result = maximise_selected(question, options, grid, started=started)
    except (NotSavedError, FailedSearchError) as error:
        failure, result = error, error.result
    return _finish(result, classifier, failure)


def _finish(result: Result, classifier: str | None, failure: MilpbnError | None) -> int:
    """Save the classifier, print the closing block, and return the exit code, or raise what has failed before."""
    from milpbn.network import save_classifier
    from milpbn.util import interrupts

    with interrupts.saving():
        if classifier is not None and result.classifier is not None:
            try:
                save_classifier(result.classifier, classifier)
            except InputError as error:
                failure = failure or error
        code = show_result(result)
    if failure is not None:
        raise failure
    return code


def _undecided(source: Table, dataset: Dataset) -> Dataset:
    """Return the data with notes that say that validation will choose what to do with missing values."""
    import numpy as np

    from milpbn.data.dataset import OWN_STATE

    lacking = source.n_rows - int(np.count_nonzero(source.complete))
    notes = [note for note in dataset.notes if not note.startswith(OWN_STATE)]
    if lacking:
        notes.append(
            f"Rows with missing values: {lacking} of {source.n_rows}; validation chooses whether they are dropped or "
            "missing values get a state of their own."
        )
    return replace(dataset, notes=tuple(notes))


def read(
    table: TableOptions,
    source: str,
    started: float | None,
    time_limit: float | None,
    *,
    in_units: bool = False,
) -> tuple[Table, Dataset]:
    """Return a table and its training rows, within a time limit that counts from `started`."""
    from milpbn.util.budget import Budget

    def work() -> tuple[Table, Dataset]:
        found = table.read(source, in_units=in_units)
        return found, found.dataset("train")

    return Budget(time_limit, began=started).before(work, "the data were read")


def show_stages(started: float | None, *, quiet: bool) -> None:
    """Show the current stage on the line of progress until the verb ends, whenever nothing else is shown."""
    from milpbn.util import stages

    click.get_current_context().with_resource(stages.shown(started, wanted=not quiet))


def telling(started: float | None, *, quiet: bool) -> Callable[[str], None]:
    """Return a function that shows a line of progress with the seconds since `started`, or nothing if `quiet`."""
    began = time.monotonic() if started is None else started

    def tell(line: str) -> None:
        if not quiet:
            LINE.show(f"{time.monotonic() - began:8.1f}s  {line}")

    return tell


def show_notes(data: Dataset | Table, *, variables: Sequence[Variable] = ()) -> None:
    """Print on stderr the decisions made while reading, and the states of some variables."""
    for note in data.notes:
        LINE.keep(note)
    for variable in variables:
        LINE.keep(f"{variable.name}: {', '.join(variable.states)}")


def show_result(result: Result) -> int:
    """Print the closing block, and on stderr an error if there is no structure; return the exit code."""
    from milpbn.solving.progress import closing_block

    say(closing_block(result))
    if result.structure is None:
        say(f"Error: {no_structure(result)}", err=True)
    return exit_code(result)
