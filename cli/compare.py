"""``milpbn compare``: exact structures and other learners on one split, side by side."""

from __future__ import annotations

import time
from typing import Any

import click

from milpbn.cli.learners import files_of, read_options
from milpbn.cli.options import ScoreOptions, TableOptions, score_options, table_options
from milpbn.cli.outputs import check_outputs
from milpbn.cli.sections import SEED, THREADS, option, option_group, verb
from milpbn.cli.types import COUNT, NAMES, NUMBER
from milpbn.errors import InputError, NoIncumbentError
from milpbn.learners.registry import get_learner

#: Share of the rows to test on, where nothing else says which.
TEST_SHARE = 0.3


@option_group(
    "Run",
    "run",
    option(
        "--learners",
        type=NAMES,
        help="What to compare: scores, solved exactly, and learners (milpbn learn); by default "
        "sm,sbm,differentiable-tan,tan,naive-bayes. The first score is what gaps are stated for.",
    ),
    option("--also", type=NAMES, help="What to compare beside these, such as svm,tan-omi-mm."),
    option(
        "--set",
        "settings",
        multiple=True,
        metavar="LEARNER.OPTION=VALUE",
        help="An option of a learner (milpbn learn LEARNER --help); may be repeated.",
    ),
    option(
        "--test-share",
        type=NUMBER,
        help="Share of the rows to test on, where the data have no split of their own; default 0.3. 0: none.",
    ),
    option("--time-limit", type=NUMBER, metavar="SECONDS", help="For every learner; default 60."),
    option(*SEED, "seed", type=COUNT, default=0, show_default=True, help="Random seed."),
    option(*THREADS, "threads", type=COUNT, help="By default all cores."),
    option("--output", metavar="FILE", help="The figures as JSON, kept up to date."),
    option("-q", "--quiet", is_flag=True, help="No notes and no progress on stderr."),
)
def run_options(
    learners: tuple[str, ...] | None,
    also: tuple[str, ...] | None,
    settings: tuple[str, ...],
    test_share: float | None,
    time_limit: float | None,
    seed: int,
    threads: int | None,
    output: str | None,
    quiet: bool,
) -> dict[str, Any]:
    """Gather the options of the run."""
    if test_share is not None and not 0 <= test_share < 1:
        raise InputError(f"--test-share must be at least 0 and less than 1, got {test_share}.")
    return {
        "learners": learners,
        "also": also or (),
        "settings": settings,
        "test_share": test_share,
        "time_limit": 60.0 if time_limit is None else time_limit,
        "seed": seed,
        "threads": threads,
        "output": output,
        "quiet": quiet,
    }


@verb(short_help="Run several learners on one split, side by side.")
@click.argument("data")
@run_options
@table_options
@score_options
def compare(data: str, table: TableOptions, score: ScoreOptions, run: dict[str, Any]) -> None:
    """Run exact searches and other learners on one split of DATA, and show accuracy, score, gap and time.

    The scores of all structures, and their gaps, are those of the first score among the learners whose search
    has a bound, with its gamma, smoothing, max_parents and class parents. Options of the score are for all the
    exact searches; gamma for those of sm and sbm.

    \b
    Example:
      milpbn compare table.csv --target class --time-limit 60
      milpbn compare table.csv --also svm,tan-mm
      milpbn compare table.csv --learners sm,tan-omi-mm,svm --p 0.9
      milpbn compare table.csv --learners sm,tan --set tan.smoothing=0.1
    """
    if score.chooses:
        raise InputError("Learners are compared for one gamma and one max_parents; cv is for milpbn solve.")
    if "name" in score.given:
        raise InputError("Leave --score out; --learners names the scores that are solved exactly.")
    from milpbn import interrupts
    from milpbn.cli.solve import show_notes
    from milpbn.learners.base import Control
    from milpbn.learners.comparison import DEFAULT, check_names, exact_scores, show
    from milpbn.learners.comparison import compare as run_all
    from milpbn.options import Options
    from milpbn.progress import show_gap
    from milpbn.scores.spec import MARGIN_SCORES

    names = tuple(dict.fromkeys((*(run["learners"] or DEFAULT), *run["also"])))
    options = _settings(run["settings"])
    check_names(names, options)
    if score.given and not set(names) & set(MARGIN_SCORES):
        raise InputError(
            f"Options of the score go with an exact search, and --learners names none of {', '.join(MARGIN_SCORES)}; "
            "leave them out."
        )
    exact_scores(names, score.given)
    outputs, inputs = {"--output": run["output"]}, [data]
    for name, own in options.items():
        own_outputs, own_inputs = files_of(get_learner(name), own)
        outputs |= {f"--set {name}.{option[2:]}": path for option, path in own_outputs.items()}
        inputs += own_inputs
    check_outputs(outputs, inputs)
    limits = Options(time_limit=run["time_limit"], threads=run["threads"], random_state=run["seed"])
    train, test = _split(table, data, run["test_share"], run["seed"])
    if not run["quiet"]:
        show_notes(train)
    started = time.monotonic()

    def report(line: str) -> None:
        if not run["quiet"]:
            click.echo(f"{time.monotonic() - started:8.1f}s  {line}", err=True)

    control = Control(
        random_state=limits.random_state,
        time_limit=limits.time_limit,
        n_jobs=limits.n_threads,
        report=report,
        interrupted=interrupts.requested,
    )
    rows = []
    try:
        with interrupts.deferred():
            for row in run_all(train, test, names, score=score.given, options=options, control=control):
                rows.append(row)
                if run["output"] is not None:
                    _write(run["output"], train, test, rows, score, run)
    except KeyboardInterrupt:
        # The second one, from somebody who does not want to wait: what is known is shown all the same.
        if not rows:
            raise
    held = "no test rows" if test is None else f"{test.n_samples} test rows"
    click.echo(f"data  {train.name}: {train.n_samples} training rows, {held}")
    click.echo(show(rows, show_gap))
    if not any(row.arcs is not None or row.training is not None for row in rows):
        raise NoIncumbentError("None of the learners gave a classifier; the notes say why.")


def _settings(words: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Return the options of each learner from LEARNER.OPTION=VALUE."""
    pairs: dict[str, list[tuple[str, str]]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        learner, dot, name = key.partition(".")
        if not (equals and dot and learner and name):
            raise InputError(
                f"--set: {word!r} is not of the form LEARNER.OPTION=VALUE, such as tan.smoothing=0.1."
            )
        pairs.setdefault(learner, []).append((name, value))
    return {learner: read_options(get_learner(learner), own) for learner, own in pairs.items()}


def _split(table: TableOptions, data: str, share: float | None, seed: int) -> tuple[Any, Any]:
    """Return training and test rows: the data's own split, or a random one, stratified by class."""
    from milpbn.data.folds import validation_split

    source = table.read(data)
    if share is not None and source.test_indices.size:
        raise InputError(
            f"The data {data!r} have {source.test_indices.size} test rows of their own, so that --test-share has no "
            "part in it; leave it out, or split all rows anew with --split all."
        )
    share = TEST_SHARE if share is None else share
    if source.test_indices.size or share == 0:
        train = source.dataset("train")
        test = source.encode(train.variables, "test") if source.test_indices.size else None
        return train, test
    rows, held = validation_split(source.dataset("all").y, share, seed)
    train = source.dataset(rows)
    return train, source.encode(train.variables, held)


def _write(path: str, train: Any, test: Any, rows: Any, score: ScoreOptions, run: dict[str, Any]) -> None:
    from milpbn import __version__
    from milpbn.atomic import atomic_write_text
    from milpbn.learners.comparison import reference_row
    from milpbn.network.jsonable import dump_json, json_safe
    from milpbn.result import DataSummary

    reference = reference_row(rows)
    document = {
        "version": __version__,
        "data": vars(DataSummary.of(train)),
        "test_samples": 0 if test is None else test.n_samples,
        "score": dict(score.given),
        "reference": None if reference is None else reference.name,
        "time_limit": run["time_limit"],
        "seed": run["seed"],
        "rows": [row.to_dict() for row in rows],
    }
    atomic_write_text(path, dump_json(json_safe(document)))
