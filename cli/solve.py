"""``milpbn solve``: from a table to a classifier with a proven gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.constraint_options import search_constraints
from milpbn.cli.decision_options import DecisionOptions, decision_options, monotone_option, with_positive
from milpbn.cli.local_scores import is_local_scores, read_scores
from milpbn.cli.outputs import dropped_when_refused
from milpbn.cli.score_options import ScoreOptions, score_options
from milpbn.cli.search_options import (
    CLASSIFIER,
    MEMORY_LIMIT,
    PARAMETERS,
    QUIET,
    SearchOptions,
    of_search,
    search_options,
)
from milpbn.cli.sections import flag, given, option, option_group, options, typed, verb
from milpbn.cli.steps import read, show_notes, show_result, started
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import COUNT, DATA, word
from milpbn.errors import InputError, MilpbnError

if TYPE_CHECKING:
    from milpbn.claims.result import Result
    from milpbn.data import Dataset, Table
    from milpbn.problem.constraints import Constraints
    from milpbn.solving.options import Options
    from milpbn.solving.selection import Approach


select_options = option_group(
    "Selection",
    "selected",
    option(
        "--recipe",
        word("name", "accurate", "readable"),
        "accurate: accurate classes and calibrated probabilities, by curves of continuous columns on fine cuts and "
        "tables of pairs and triples. readable: one network on coarse cuts, by the recommended grid for --select. At "
        "most 10 minutes without --time-limit, accurate 2 on small tables. Options that you give are not chosen, also "
        "at their default values.",
    ),
    option(
        "--select grid",
        word("grid", "default"),
        "Choose options by validation, for example --select 'p=.6,.9 max-parents=1,2,3 leave-one-out=no,yes "
        "discretise=mdl,quantile:5 parameters=hybrid'. All combinations of score, p, max-parents, leave-one-out, "
        "smoothing, smoothing-towards, penalty, hybrid, class-parents, parent-sets, discretise, missing and parameters "
        "are compared; those that fall behind are dropped on the way. 'default' is a grid for a first try.",
    ),
    option(
        "--select-by by",
        click.Choice(["accuracy", "log-loss", "roc-auc", "average-precision", "cost"]),
        "What --select, --p cv, --max-parents cv and --recipe readable compare on held-out rows; default accuracy, and "
        "log-loss with the recipe. Average precision is that of the rarer of two classes; cost needs --cost.",
    ),
    option(
        "--average",
        COUNT,
        "Average the class probabilities of the K best settings' networks. Structure, score, bound and "
        "certificate are those of the best. The classifier file holds all: predict, evaluate, query, explain, info and "
        "convert (to .sql, .onnx, .json) use all, plot and report show the first, precision and --start refuse it.",
        metavar="K",
    ),
)(dict)
file_options = option_group(
    "Output",
    "files",
    *of_search("output"),
    CLASSIFIER,
    *of_search("certificate", "checkpoint", "resume", "trace", "log"),
    QUIET,
    flag("-v --verbose", "Also show the variables with their states."),
)(dict)


@verb(short_help="Find the best structure, and bound the score of every structure.")
@click.argument("data", type=DATA, required=False)
@table_options
@score_options
@search_constraints
@search_options
@options(MEMORY_LIMIT, section="Search")
@select_options
@options(PARAMETERS, monotone_option("Features in which the log-odds of a class"), section="Parameters")
@decision_options("The class that is missed, and that --monotone is about; default the rarer of two.")
@file_options
def solve(
    data: str | None,
    table: TableOptions,
    score: ScoreOptions,
    constraints: Constraints,
    structure: str | None,
    search: SearchOptions,
    selected: Mapping[str, Any],
    parameters: str | None,
    monotone: dict[str, str] | None,
    decision: DecisionOptions,
    files: dict[str, Any],
) -> int:
    """Find the structure with the best score, and bound the score of every structure.

    DATA is a CSV, TSV, ARFF, .dat or Parquet file (also .gz), or the name of a catalog entry (--data-dir) or of an
    embedded instance (milpbn instances). Without DATA, the default instance is solved. A file that ends in .jkl has
    the local scores of parent sets, as GOBNILP and BLIP write them, and no data: its best structure has no classifier.

    \b
    Examples:
      milpbn solve --score sm --time-limit 60
      milpbn solve table.csv --target class --p 0.9 --output result.json --classifier classifier.json
      milpbn solve table.csv --target class --recipe accurate --classifier classifier.json
      milpbn solve table.csv --target class --cost missed=20 false-alarm=1 --classifier classifier.json
      milpbn solve table.csv --target class --monotone age=+,income=- --classifier classifier.json
      milpbn solve table.csv --target class --output result.json --checkpoint state.npz
      milpbn solve table.csv --no-target --score bdeu --max-parents 3 --classifier network.json

    Ctrl-C stops the search and keeps the best structure so far; with --checkpoint, the same command goes on.
    """
    began, spec = started(), score.score()
    quiet, verbose, classifier = (files.pop(name) for name in ("quiet", "verbose", "classifier"))

    from milpbn.instances import DEFAULT
    from milpbn.network import read_structure
    from milpbn.problem.local import LocalScore
    from milpbn.solving.recipes import Choices
    from milpbn.solving.selection import Approach

    choices = Choices(score.choose_p, score.choose_max_parents, **selected)
    how = replace(
        search.options,
        **given(**files),
        verbose=not quiet,
        parameters=parameters,
        costs=decision.costs,
        monotone=with_positive(monotone, decision.positive),
    )
    undecided = "missing" not in typed() and choices.of_missing
    if undecided:  # with the recipe accurate they have a state
        # Rows with missing values are kept, so that validation can choose whether they are dropped.
        table = replace(table, settings={**table.settings, "missing": "state"})
    single = {*score.given, *({"discretise", "missing"} & {*typed()})}
    if data is not None and is_local_scores(data):
        dataset: Dataset = read_scores(data, began, how.time_limit, quiet=quiet)
        asked: Dataset | Table = dataset
        approach, cuts = Approach(LocalScore(), how, additive=choices.additive), None
    else:
        approach = Approach.of(choices, spec, how, single)
        spec, grid = approach.score, approach.grid
        in_units = spec.needs_units if grid is None else grid.always_leaves_one_out(spec)
        named, limit = data or f"instance:{DEFAULT}", how.time_limit
        source, dataset = read(table, named, began, quiet=quiet, time_limit=limit, in_units=in_units)
        asked = source if approach.cuts else dataset
        cuts = str(source.discretisation) if "discretise" in single else None
        if choices.additive:
            noted = dataset if "discretise" in single else _without_cuts(dataset)
        else:
            noted = _undecided(source, dataset) if undecided else dataset
        show_notes(noted, quiet=quiet, variables=noted.variables if verbose else ())
        del source  # a large table's cells take more memory than its codes
    if structure is not None:
        constraints = _of_kind(structure, dataset, approach, constraints)
    if search.start is not None:
        start = read_structure(search.start, dataset.names)
        approach = replace(approach, options=replace(approach.options, start=start))
    with dropped_when_refused(files["trace"], files["log"]):
        scope = {"subset": search.subset, "screen": search.screen}
        result, failure = _maximised(approach, asked, constraints, started=began, discretise=cuts, **scope)
    return _finish(result, approach.options, classifier, failure)


def _of_kind(structure: str, dataset: Dataset, approach: Approach, constraints: Constraints) -> Constraints:
    """Return the constraints with those of --structure, which all settings that are compared have to fit."""
    from milpbn.problem.structures import structured

    if approach.additive and structure in ("forest", "tan"):
        raise InputError(
            f"The recipe accurate adds arcs that --structure {structure} has not; leave out one."
        )
    sizes = (approach.score.max_parents,) if approach.grid is None else approach.grid.max_parents
    for most in sizes:
        constraints = structured(structure, dataset, replace(approach.score, max_parents=most), constraints)
    return constraints


def _maximised(approach: Approach, *asked: Any, **how: Any) -> tuple[Result, MilpbnError | None]:
    """Return the result, and the error of a search that had a result when it failed, or of a file not written."""
    from milpbn.claims.result import FailedSearchError, NotSavedError

    try:
        return approach.maximise(*asked, **how), None
    except (NotSavedError, FailedSearchError) as error:
        return error.result, error


def _finish(result: Result, how: Options, classifier: str | None, failure: MilpbnError | None) -> int:
    """Save the classifier, print the closing block, and return the exit code, or raise what has failed before."""
    from milpbn.network import save_classifier
    from milpbn.util import interrupts

    with interrupts.saving():
        if classifier is not None and result.classifier is not None:
            try:
                save_classifier(result.classifier, classifier)
            except InputError as error:
                failure = failure or error
        code = show_result(result, how)
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


def _without_cuts(dataset: Dataset) -> Dataset:
    """Return the data without what depends on cuts: the recipe accurate shows the data before folds choose cuts."""
    from milpbn.data.dataset import UNUSED

    kept = dataset.of_variables([v.name for v in dataset.variables if v.cuts is None])
    notes = [note for note in dataset.notes if not note.startswith(UNUSED)]
    if constant := [v.name for v in kept.variables if v.n_states == 1]:
        notes.append(f"{UNUSED}: {', '.join(constant)}.")
    return replace(kept, notes=tuple(notes))
