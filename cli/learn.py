"""``milpbn learn``: the learners that exact structures are compared with, one subcommand per learner."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.learners import learner_options
from milpbn.cli.report import say
from milpbn.cli.score import describe_gap
from milpbn.cli.search_options import CLASSIFIER, MEMORY_LIMIT, QUIET, of_search
from milpbn.cli.sections import Values, option, option_group, options, verb
from milpbn.cli.steps import control, read, show_notes, started, write_json
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import DATA, FILE, OUTPUT
from milpbn.errors import InputError
from milpbn.learners.registry import LEARNERS, get_learner
from milpbn.util.progress_line import LINE

if TYPE_CHECKING:
    from milpbn.claims.result import Result
    from milpbn.learners.appraisal import Appraisal
    from milpbn.learners.base import Learner


run_options = option_group(
    "Run",
    "run",
    *of_search(
        "random_state",
        "time_limit",
        "threads",
        "parameters",
        random_state={"help": "Random seed.", "default": 0, "show_default": True},
    ),
    option(
        "--bound", FILE, "A result.json of the same data, to state the gap to its bound.", metavar="RESULT"
    ),
    CLASSIFIER,
    option("--output", OUTPUT, "Structure and figures as JSON, for milpbn solve --start and milpbn score."),
    QUIET,
)(Values)


class LearnGroup(click.Group):
    """A group with one command per registered learner; a command is built when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the learners' names in the registry's order."""
        return list(LEARNERS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Return a learner's command, or refuse its name."""
        return _command(cmd_name, get_learner(cmd_name))


@click.group(
    cls=LearnGroup,
    invoke_without_command=True,
    subcommand_metavar="NAME DATA [OPTIONS]...",
    short_help="Learn with another method, and compare.",
)
@click.pass_context
def learn(context: click.Context) -> None:
    """Learn with another method, and state how far its structure is from the optimum.

    NAME is one of the learners below. For the options of a learner: milpbn learn NAME --help. DATA is as for milpbn
    solve. Where the data have a split, the training rows train, and accuracy is also measured on the test rows.

    \b
    Example:
      milpbn solve table.csv --target class --time-limit 60 --output result.json
      milpbn learn tan table.csv --target class --bound result.json --output tan.json
      milpbn solve table.csv --target class --start tan.json
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _command(name: str, learner: type[Learner]) -> click.Command:
    """Return the command of one learner."""

    @verb(name=name, short_help=learner.summary, help=_help(name, learner))
    @click.argument("data", type=DATA)
    @learner_options(learner)
    @table_options
    @run_options
    @options(MEMORY_LIMIT, section="Run")
    def run_learner(data: str, options: Mapping[str, Any], table: TableOptions, run: Values) -> None:
        _learn(learner, options, data, table, run)

    return run_learner


def _help(name: str, learner: type[Learner]) -> str:
    needs = f" {learner.needs}" if learner.needs else ""
    example = f"milpbn learn {name} table.csv --target class{needs} --output structure.json"
    return f"{learner.summary}\n\nReference: {learner.reference}\n\n\b\nExample:\n  {example}"


def _learn(
    learner: type[Learner], own: Mapping[str, Any], data: str, table: TableOptions, run: Values
) -> None:
    """Read, learn with the learner's own options, write and report."""
    if run.classifier is not None and not learner.is_network:
        raise InputError(
            f"The model of {learner.name} is not a Bayesian network over the variables, and a classifier file can hold "
            "nothing else; leave --classifier out."
        )

    from milpbn.claims.result import Result
    from milpbn.learners.appraisal import appraise, check_bound
    from milpbn.learners.base import require_used
    from milpbn.network import Classifier, PseudoClassifier, save_classifier
    from milpbn.util import interrupts

    began = started()
    settings = control(run, began, run.time_limit)
    result = None if run.bound is None else Result.load(run.bound)
    require_used(learner(**own), own)  # refuses options without effect before the table is read
    in_units = result is not None and result.score.needs_units
    source, train = read(table, data, began, quiet=run.quiet, time_limit=run.time_limit, in_units=in_units)
    test = source.encode(train.variables, "test") if source.test_indices.size else None
    if result is not None:
        check_bound(train, result, repr(run.bound))
    show_notes(train, quiet=run.quiet)
    left = None if run.time_limit is None else max(1e-3, began + run.time_limit - time.monotonic())
    found = appraise(
        learner,
        train,
        test,
        options=own,
        result=result,
        where=repr(run.bound),
        control=replace(settings, time_limit=left),
        started=began,
    )
    failure: InputError | None = None
    with interrupts.saving():
        try:
            write_json(run.output, found.to_dict())
        except InputError as error:
            failure = error
        LINE.end()
        say("\n".join(_closing_block(found, result)))
        if run.classifier is not None:
            assert isinstance(found.learned.predictor, Classifier | PseudoClassifier)
            save_classifier(found.learned.predictor, run.classifier)
    if failure is not None:
        raise failure


def _closing_block(found: Appraisal, result: Result | None) -> list[str]:
    """Return the closing block, line by line."""
    from milpbn.data.dataset import dropped_notes
    from milpbn.solving.progress import dropped_lines, left_out_lines, parameter_lines

    options = "".join(f", {key} {value}" for key, value in found.options.items())
    data = found.data
    lines = [
        f"data       {data.name}: {data.samples} samples, {data.features} features, {data.classes} classes",
        *dropped_lines(found.notes),
        *left_out_lines(data.left_out),
        f"learner    {found.learner}{options}{'  (stopped by: user)' if found.interrupted else ''}",
    ]
    small = {k: v for k, v in found.learned.details.items() if isinstance(v, str | int | float | bool)}
    if small:
        lines.append("details    " + ", ".join(f"{k} {_short(v)}" for k, v in small.items()))
    structure = found.learned.structure
    arcs = "none: the model is not an acyclic graph over the variables"
    lines.append(f"structure  {arcs if structure is None else f'{len(structure.arcs)} arcs'}")
    lines.append(f"training   {_percent(found.training, found.unweighted[0])}")
    if found.test_samples:
        test = _percent(found.test, found.unweighted[1])
        lines.append(f"test       {test}  ({found.test_samples} samples)")
        lines += [f"           {note}" for note in found.notes if note not in dropped_notes(found.notes)]
    lines += parameter_lines(found.parameters)
    lines.append(f"seconds    {found.seconds:.2f}, of them {found.learning_seconds:.2f} to learn")
    if result is not None and found.suboptimality is not None:
        lines += describe_gap(found.suboptimality, result, 11)
    elif result is not None:
        lines.append("gap        not stated: only an acyclic graph over the variables has a score.")
    elif structure is not None:
        lines.append(
            "gap        unknown; to state it, add --bound with a result.json of milpbn solve on the same data"
        )
    return lines


def _percent(share: float | None, unweighted: float | None) -> str:
    if share is None:
        return "accuracy not counted: time limit reached"
    if unweighted is None:
        return f"{100 * share:.2f} % accuracy"
    return f"{100 * share:.2f} % weighted accuracy, {100 * unweighted:.2f} % of the rows"


def _short(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)
