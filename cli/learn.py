"""``milpbn learn``: the learners that exact structures are compared with, each a verb of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.gaps import describe_gap
from milpbn.cli.learners import files_of, learner_options
from milpbn.cli.options import TableOptions, table_options
from milpbn.cli.outputs import check_outputs
from milpbn.cli.sections import SEED, THREADS, option, option_group, verb
from milpbn.cli.types import COUNT, NUMBER
from milpbn.errors import InputError
from milpbn.learners.registry import LEARNERS, get_learner

if TYPE_CHECKING:
    from milpbn.data import Dataset
    from milpbn.learners.appraisal import Suboptimality
    from milpbn.learners.base import Learned, Learner
    from milpbn.result import Result


@dataclass(frozen=True)
class RunOptions:
    """How to run a learner, and where its answer goes."""

    seed: int
    time_limit: float | None
    threads: int | None
    bound: str | None
    classifier: str | None
    output: str | None
    quiet: bool


@option_group(
    "Run",
    "run",
    option(*SEED, "seed", type=COUNT, default=0, show_default=True, help="Random seed."),
    option("--time-limit", type=NUMBER, metavar="SECONDS", help="For everything, reading included."),
    option(*THREADS, "threads", type=COUNT, help="By default all cores."),
    option("--bound", metavar="RESULT", help="result.json of the same data: state the gap to its bound."),
    option("--classifier", metavar="FILE", help="The classifier as JSON, for predict and evaluate."),
    option(
        "--output", metavar="FILE", help="Structure and figures as JSON; solve --start and score read it."
    ),
    option("-q", "--quiet", is_flag=True, help="No notes and no progress on stderr."),
)
def run_options(
    seed: int,
    time_limit: float | None,
    threads: int | None,
    bound: str | None,
    classifier: str | None,
    output: str | None,
    quiet: bool,
) -> RunOptions:
    """Gather the options of the run."""
    return RunOptions(seed, time_limit, threads, bound, classifier, output, quiet)


class LearnGroup(click.Group):
    """A command for every registered learner, made when it is asked for."""

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

    NAME is one of the learners below, each with options of its own: milpbn learn NAME --help. DATA is what milpbn
    solve reads. Training rows train, the test rows of a split are counted apart.

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
    @click.argument("data")
    @learner_options(learner)
    @table_options
    @run_options
    @click.pass_obj
    def run_learner(
        started: float | None, data: str, options: Mapping[str, Any], table: TableOptions, run: RunOptions
    ) -> None:
        _learn(time.monotonic() if started is None else started, learner, options, data, table, run)

    return run_learner


def _help(name: str, learner: type[Learner]) -> str:
    needs = f" {learner.needs}" if learner.needs else ""
    example = f"milpbn learn {name} table.csv --target class{needs} --output structure.json"
    return f"{learner.summary}\n\nReference: {learner.reference}\n\n\b\nExample:\n  {example}"


def _learn(
    started: float,
    learner: type[Learner],
    options: Mapping[str, Any],
    data: str,
    table: TableOptions,
    run: RunOptions,
) -> None:
    """Read, learn, write and report."""
    own_outputs, own_inputs = files_of(learner, options)
    check_outputs(
        {"--output": run.output, "--classifier": run.classifier, **own_outputs},
        [data, run.bound, *own_inputs],
    )
    if run.classifier is not None and not learner.is_network:
        raise InputError(
            f"The model of {learner.name} is no Bayesian network over the variables, and a classifier file holds "
            "nothing else; leave --classifier out."
        )

    from milpbn import interrupts
    from milpbn.cli.solve import show_notes
    from milpbn.learners.appraisal import check_bound, suboptimality
    from milpbn.learners.base import Control, require_used
    from milpbn.network import Classifier, PseudoClassifier, save_classifier
    from milpbn.network.evaluation import accuracy
    from milpbn.options import Options
    from milpbn.result import Result

    limits = Options(time_limit=run.time_limit, threads=run.threads, random_state=run.seed)
    result = None if run.bound is None else Result.load(run.bound)
    method = learner(**options)
    require_used(method, options)
    source = table.read(data)
    dataset = source.dataset("train")
    if result is not None:
        check_bound(dataset, result, repr(run.bound))
    if not run.quiet:
        show_notes(dataset)

    def report(line: str) -> None:
        if not run.quiet:
            click.echo(f"{time.monotonic() - started:8.1f}s  {line}", err=True)

    left = None if run.time_limit is None else max(1e-3, started + run.time_limit - time.monotonic())
    begun = time.monotonic()
    with interrupts.deferred():
        learned = method.fit(
            dataset,
            Control(
                random_state=limits.random_state,
                time_limit=left,
                n_jobs=limits.n_threads,
                report=report,
                interrupted=interrupts.requested,
                verbose=False if run.quiet else None,
            ),
        )
        stopped = interrupts.requested()
    seconds = {"total": time.monotonic() - started, "learn": time.monotonic() - begun}
    test = source.encode(dataset.variables, "test") if source.test_indices.size else None
    shares = {"training": accuracy(learned.predictor, dataset)}
    if test is not None:
        shares["test"] = accuracy(learned.predictor, test)
    gap = None
    if result is not None and learned.structure is not None:
        gap = suboptimality(dataset, learned.structure, result, repr(run.bound))
    document = _document(learner.name, options, dataset, learned, shares, gap, seconds, run.seed)
    if run.output is not None:
        from milpbn.atomic import atomic_write_text
        from milpbn.network.jsonable import dump_json, json_safe

        atomic_write_text(run.output, dump_json(json_safe(document)))
    click.echo("\n".join(_closing_block(learned, document, dataset, test, result, gap, stopped)))
    if run.classifier is not None:
        assert isinstance(learned.predictor, Classifier | PseudoClassifier)
        save_classifier(learned.predictor, run.classifier)


def _document(
    name: str,
    options: Mapping[str, Any],
    dataset: Dataset,
    learned: Learned,
    shares: Mapping[str, float],
    gap: Suboptimality | None,
    seconds: Mapping[str, float],
    seed: int,
) -> dict[str, Any]:
    """Return the contents of the output file, in the terms of ``result.json`` where it has them."""
    from milpbn import __version__
    from milpbn.result import DataSummary

    structure = learned.structure
    return {
        "version": __version__,
        "learner": {"name": name, **options},
        "data": vars(DataSummary.of(dataset)),
        "structure": None if structure is None else structure.to_mapping(),
        "class": dataset.names[-1],
        "accuracy": {"training": shares["training"], "test": shares.get("test")},
        "objective": None if gap is None else gap.score,
        "bound": None if gap is None else gap.bound,
        "gap": None if gap is None or gap.gap is None else vars(gap.gap),
        "details": dict(learned.details),
        "seconds": dict(seconds),
        "seed": seed,
    }


def _closing_block(
    learned: Learned,
    document: Mapping[str, Any],
    dataset: Dataset,
    test: Dataset | None,
    result: Result | None,
    gap: Suboptimality | None,
    stopped: bool,
) -> list[str]:
    """Return the closing block, line by line."""
    said = "".join(f", {key} {value}" for key, value in document["learner"].items() if key != "name")
    lines = [
        f"data       {dataset.name}: {dataset.n_samples} samples, {dataset.n_features} features, "
        f"{dataset.n_classes} classes",
        f"learner    {document['learner']['name']}{said}{'  (stopped by: user)' if stopped else ''}",
    ]
    small = {k: v for k, v in learned.details.items() if isinstance(v, str | int | float | bool)}
    if small:
        lines.append("details    " + ", ".join(f"{k} {_short(v)}" for k, v in small.items()))
    structure = learned.structure
    arcs = "none: the model is no acyclic graph over the variables"
    lines.append(f"structure  {arcs if structure is None else f'{len(structure.arcs)} arcs'}")
    lines.append(f"training   {100 * document['accuracy']['training']:.2f} % accuracy")
    if test is not None:
        lines.append(
            f"test       {100 * document['accuracy']['test']:.2f} % accuracy  ({test.n_samples} samples)"
        )
    seconds = document["seconds"]
    lines.append(f"seconds    {seconds['total']:.2f}, of them {seconds['learn']:.2f} to learn")
    if result is not None and gap is not None:
        lines += describe_gap(gap, result, 11)
    elif result is not None:
        lines.append("gap        not stated: without such a graph there is nothing to score.")
    elif structure is not None:
        lines.append("gap        unknown; --bound result.json, from milpbn solve on the same data, states it")
    return lines


def _short(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)
