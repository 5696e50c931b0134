"""``milpbn compare``: exact structures and other learners side by side, on one split or over folds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from milpbn.cli import completion
from milpbn.cli.learners import files_of, read_options
from milpbn.cli.memory_option import memory_limit
from milpbn.cli.outputs import check_outputs
from milpbn.cli.report import say
from milpbn.cli.score_options import ScoreOptions, score_options
from milpbn.cli.search_options import QUIET, of_search
from milpbn.cli.sections import option, option_group, verb
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import COUNT, DATA, FILE, NUMBER, TEXT, Parsed, parse_names
from milpbn.errors import InputError, NoIncumbentError
from milpbn.learners.registry import LEARNERS, get_learner
from milpbn.util.progress_line import LINE


def _contestants(context: click.Context) -> list[str]:
    """Return the names that can be compared: margin scores, whose modules take a second to import, and learners."""
    return ["sm", "sbm", "hard-margin", "cll", *LEARNERS]


_CONTESTANT = Parsed("name", str, completion.listed("", _contestants))
_CONTESTANTS = Parsed("a,b,...", parse_names, completion.listed(",", _contestants))


@option_group(
    "Run",
    "run",
    option(
        "--learners",
        type=_CONTESTANTS,
        help="What to compare: scores, solved exactly, and learners (milpbn learn); by default "
        "sm,sbm,differentiable-tan,tan,naive-bayes and logistic,boosting,random-forest,svm of scikit-learn. Gaps are "
        "stated for the first score.",
    ),
    option(
        "--also",
        type=_CONTESTANTS,
        help="More to compare, beside those of --learners, such as cll,tan-omi-mm.",
    ),
    option(
        "--against",
        type=_CONTESTANT,
        help="The one of them to which the others' differences are stated, with intervals; default the first.",
    ),
    option("--folds", type=COUNT, metavar="K", help="Compare over K stratified folds instead of one split."),
    option("--repeats", type=COUNT, metavar="R", help="Number of cross-validations with --folds; default 1."),
    option(
        "--set",
        "settings",
        multiple=True,
        type=TEXT,
        metavar="LEARNER.OPTION=VALUE",
        help="An option of a learner (milpbn learn LEARNER --help); may be repeated.",
    ),
    option(
        "--test-share",
        type=NUMBER,
        help="Share of the rows to test on, where the data have no split of their own; default 0.3; 0 for no test.",
    ),
    *of_search(
        "time_limit",
        "parameters",
        "random_state",
        "threads",
        time_limit={"help": "For every learner; default 60.", "default": 60.0},
        random_state={"help": "Random seed.", "default": 0, "show_default": True},
    ),
    option("--output", type=FILE, help="The figures as JSON, kept up to date."),
    option(
        "--checkpoint",
        type=FILE,
        help="The figures of every learner that has finished. If it exists, the comparison goes on from it; an exact "
        "search goes on where it was.",
    ),
    *of_search("resume"),
    QUIET,
)
def run_options(**values: Any) -> dict[str, Any]:
    """Gather the options of the run."""
    if values["repeats"] is not None and values["folds"] is None:
        raise click.UsageError(
            "--repeats is the number of cross-validations; add --folds, for example --folds 5."
        )
    if values["test_share"] is not None and values["folds"] is not None:
        raise click.UsageError("--folds tests on every row in turn; leave out --test-share.")
    return {**values, "repeats": 1 if values["repeats"] is None else values["repeats"]}


@verb(short_help="Run several learners side by side, on one split or over folds.")
@click.argument("data", type=DATA)
@run_options
@memory_limit("Run")
@table_options
@score_options
def compare(data: str, table: TableOptions, score: ScoreOptions, run: dict[str, Any]) -> None:
    """Run exact searches and other learners on DATA, and show accuracy, log-loss, Brier score, parameters and time.

    One split tests them on held-out rows; --folds K --repeats R on every row in turn, R times. Under the table stand
    the differences to one of them (--against), with 95 % intervals; differences that the rows cannot tell from 0 are
    said to be "not distinguishable". Times are those of learning, per fold.

    All structures are scored, and their gaps computed, by one score: the first of --learners whose search ends with
    a bound, with its gamma, smoothing, max_parents and class parents. Options of the score hold for all exact
    searches; --p and --gamma for those of sm and sbm only.

    \b
    Example:
      milpbn compare table.csv --target class --time-limit 60
      milpbn compare table.csv --learners sm,logistic,boosting --folds 5 --repeats 2
      milpbn compare table.csv --also cll,tan-mm
      milpbn compare table.csv --learners sm,tan-omi-mm,svm --p 0.9
      milpbn compare table.csv --learners sm,tan --set tan.smoothing=0.1
      milpbn compare table.csv --folds 5 --repeats 10 --checkpoint state.npz

    Ctrl-C ends the comparison and shows the figures so far; with --checkpoint, the same command goes on.
    """
    score.refuse_choices("Learners are compared for")
    if "name" in score.given:
        raise InputError("Leave --score out; --learners names the scores that are solved exactly.")
    from milpbn.cli.solve import show_notes, show_stages, telling
    from milpbn.learners.base import Control
    from milpbn.learners.comparison import compare as compare_learners
    from milpbn.learners.comparison import training_and_test_rows
    from milpbn.learners.contestants import DEFAULT, check_against, check_names, exact_scores
    from milpbn.learners.repeated import compare_over_folds
    from milpbn.problem.scores.registry import margin_scores
    from milpbn.solving.options import Options
    from milpbn.util import interrupts
    from milpbn.util.atomic import atomic_write_text
    from milpbn.util.jsonable import dump_json

    names = tuple(dict.fromkeys((*(run["learners"] or DEFAULT), *(run["also"] or ()))))
    options = _settings(run["settings"])
    check_names(names, options)
    check_against(names, run["against"])
    if score.given and not set(names) & set(margin_scores()):
        raise InputError(
            f"Options of the score need an exact search, but --learners names none of {', '.join(margin_scores())}; "
            "leave these options out."
        )
    exact_scores(names, score.given)
    _check_files(data, {"--output": run["output"], "--checkpoint": run["checkpoint"]}, options)
    limits = Options(**{name: run[name] for name in ("time_limit", "threads", "random_state", "parameters")})
    show_stages(None, quiet=run["quiet"])
    source = table.read(data, in_units=bool(score.given.get("leave_one_out")))
    control = Control(
        random_state=limits.random_state,
        time_limit=limits.time_limit,
        n_jobs=limits.n_threads,
        report=telling(None, quiet=run["quiet"]),
        parameters=run["parameters"],
    )
    how: dict[str, Any] = {name: run[name] for name in ("against", "output", "checkpoint")}
    how |= {"score": score.given, "options": options, "control": control, "resume": bool(run["resume"])}
    if run["folds"] is None:
        train, test = training_and_test_rows(source, run["test_share"], run["random_state"])
        if not run["quiet"]:
            show_notes(train)
        found = compare_learners(train, test, names, **how)
    else:
        if not run["quiet"]:
            show_notes(source)
        found = compare_over_folds(source, run["folds"], run["repeats"], names, **how)
    LINE.end()
    with interrupts.saving():
        say(str(found))
        if run["output"] is not None:
            # Once more: while learners were compared, a warning was all if the file could not be written.
            atomic_write_text(run["output"], dump_json(found.to_dict()))
    if not found.classifiers:
        raise NoIncumbentError("None of the learners returned a classifier; the notes say why.")


def _check_files(data: str, own: Mapping[str, str | None], options: Mapping[str, Mapping[str, Any]]) -> None:
    """Check the files that the comparison and its learners will write."""
    outputs, inputs = dict(own), [data]
    for name, settings in options.items():
        learner_outputs, learner_inputs = files_of(get_learner(name), settings)
        outputs |= {f"--set {name}.{option[2:]}": path for option, path in learner_outputs.items()}
        inputs += learner_inputs
    check_outputs(outputs, inputs)


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
    return {learner: read_options(get_learner(learner), settings) for learner, settings in pairs.items()}
