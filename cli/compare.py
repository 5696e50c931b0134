"""``milpbn compare``: exact structures and other learners side by side, on one split or over folds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from milpbn.cli import completion
from milpbn.cli.learners import read_options
from milpbn.cli.outputs import check_outputs
from milpbn.cli.report import say
from milpbn.cli.score_options import ScoreOptions, score_options
from milpbn.cli.search_options import DASK, MEMORY_LIMIT, QUIET, of_search
from milpbn.cli.sections import Values, flag, option, option_group, options, verb
from milpbn.cli.steps import control, show_notes, show_stages, started, write_json
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import CLASS, COUNT, DATA, NUMBER, OUTPUT, TEXT, Parsed, parse_names
from milpbn.errors import InputError, NoIncumbentError
from milpbn.learners.registry import LEARNERS, RAW_LEARNERS, get_learner
from milpbn.util.progress_line import LINE


def _contestants(context: click.Context) -> list[str]:
    """Return the names that can be compared: margin scores, whose modules take a second to import, and learners."""
    return ["sm", "sbm", "hard-margin", "cll", *{**LEARNERS, **RAW_LEARNERS}]


_CONTESTANT = Parsed("name", str, completion.among(_contestants))
_CONTESTANTS = Parsed("a,b,...", parse_names, completion.listed(",", _contestants))


@option_group(
    "Run",
    "run",
    option(
        "--learners",
        _CONTESTANTS,
        "What to compare: scores, solved exactly, and learners (milpbn learn); by default "
        "sm,sbm,differentiable-tan,tan,naive-bayes and logistic,boosting,random-forest,svm of scikit-learn. Gaps are "
        "stated for the first score.",
    ),
    flag(
        "--raw",
        "Compare the recipes with what users would take instead, on raw columns and tuned on the training rows: "
        "accurate,readable,ebm,boosting,random-forest,logistic,splines,svm; ebm only if interpret-core is installed.",
    ),
    option("--also", _CONTESTANTS, "More to compare, beside those of --learners, such as cll,tan-omi-mm."),
    option(
        "--against",
        _CONTESTANT,
        "The one of them to which the others' differences are stated, with intervals; default the first.",
    ),
    option(
        "--positive",
        CLASS,
        "The class to detect; default the rarest of two. Of more classes, ROC-AUC and the like are means over all.",
    ),
    option("--folds", COUNT, "Compare over K stratified folds instead of one split.", metavar="K"),
    option("--repeats", COUNT, "Number of cross-validations with --folds; default 1.", metavar="R"),
    option(
        "--set settings",
        TEXT,
        "An option of a learner (milpbn learn LEARNER --help); may be repeated.",
        multiple=True,
        metavar="LEARNER.OPTION=VALUE",
    ),
    option(
        "--test-share",
        NUMBER,
        "Share of the rows to test on, where the data have no split of their own; default 0.3; 0 for no test.",
    ),
    *of_search(
        "time_limit",
        "parameters",
        "random_state",
        "threads",
        "dask",
        time_limit={"help": "For every learner; default 60.", "default": 60.0},
        random_state={"help": "Random seed.", "default": 0, "show_default": True},
        dask={"help": DASK.format("Run every learner, on every part,")},
    ),
    option("--output", OUTPUT, "The figures as JSON, kept up to date."),
    option(
        "--checkpoint",
        OUTPUT,
        "The figures of every learner that has finished. If it exists, the comparison goes on from it; an exact "
        "search goes on where it was.",
    ),
    *of_search("resume"),
    QUIET,
)
def run_options(repeats: int | None, **values: Any) -> Values:
    """Gather the options of the run."""
    if repeats is not None and values["folds"] is None:
        raise click.UsageError(
            "--repeats is the number of cross-validations; add --folds, for example --folds 5."
        )
    if values["test_share"] is not None and values["folds"] is not None:
        raise click.UsageError("--folds tests on every row in turn; leave out --test-share.")
    if values["dask"] is not None and values["threads"] is not None:
        raise click.UsageError("With --dask every learner has one thread; leave out --threads.")
    return Values(**values, repeats=1 if repeats is None else repeats)


@verb(short_help="Run several learners side by side, on one split or over folds.")
@click.argument("data", type=DATA)
@run_options
@options(MEMORY_LIMIT, section="Run")
@table_options
@score_options
def compare(data: str, table: TableOptions, score: ScoreOptions, run: Values) -> None:
    """Run exact searches and other learners on DATA, and show accuracy, log-loss, Brier score, parameters and time.

    One split tests them on held-out rows; --folds K --repeats R on every row in turn, R times. Under the table stand
    the differences to one of them (--against), with 95 % intervals; differences that the rows cannot tell from 0 are
    said to be "not distinguishable". A second table has ROC-AUC, average precision, sensitivity and the like; it comes
    first where a class has less than 10 % of the rows. Times are those of learning, per fold.

    All structures are scored, and their gaps computed, by one score: the first of --learners whose search ends with
    a bound, with its gamma, smoothing, max_parents and class parents. Options of the score hold for all exact
    searches; --p and --gamma for those of sm and sbm only.

    With --raw, every classifier gets the columns of the table as they are, rows with missing values included, and its
    settings are chosen on the training rows. `gap` is then that of a recipe's own search.

    \b
    Example:
      milpbn compare table.csv --target class --time-limit 60
      milpbn compare table.csv --learners sm,logistic,boosting --folds 5 --repeats 2
      milpbn compare table.csv --raw --folds 5 --time-limit 120
      milpbn compare table.csv --also cll,tan-mm
      milpbn compare table.csv --learners sm,tan-omi-mm,svm --p 0.9
      milpbn compare table.csv --learners sm,tan --set tan.smoothing=0.1
      milpbn compare table.csv --folds 5 --repeats 10 --checkpoint state.npz

    Ctrl-C ends the comparison and shows the figures so far; with --checkpoint, the same command goes on.
    """
    score.refuse_choices("Learners are compared for")
    if "name" in score.given:
        raise InputError("Leave --score out; --learners names the scores that are solved exactly.")
    from milpbn.learners.comparison import compare as compare_learners
    from milpbn.learners.comparison import training_and_test_rows
    from milpbn.learners.contestants import check_against, check_names, exact_scores, names_by_default
    from milpbn.learners.repeated import compare_over_folds
    from milpbn.problem.scores.registry import margin_scores
    from milpbn.util import interrupts

    raw = bool(run.raw)
    names = tuple(dict.fromkeys((*(run.learners or names_by_default(raw=raw)), *(run.also or ()))))
    own = _settings(run.settings, raw=raw)
    check_names(names, own, raw=raw)
    check_against(names, run.against)
    if score.given and not set(names) & set(margin_scores()):
        raise InputError(
            f"Options of the score need an exact search, but --learners names none of {', '.join(margin_scores())}; "
            "leave these options out."
        )
    exact_scores(names, score.given)
    if raw:
        if "discretise" in table.settings:
            raise InputError(
                "With --raw no column is cut before, so --discretise has no effect; leave one of them out."
            )
        # Rows with missing values stay, since the other classifiers take them.
        table = replace(table, settings={"missing": "state", **table.settings})
    began = started()
    settings = control(run, began, run.time_limit)
    show_stages(began, quiet=run.quiet)
    source = table.read(data, in_units=bool(score.given.get("leave_one_out")))
    how: dict[str, Any] = {"against": run.against, "output": run.output, "checkpoint": run.checkpoint}
    how |= {"score": score.given, "options": own, "control": settings, "resume": bool(run.resume)}
    how |= {"dask": run.dask, "positive": run.positive, "raw": raw}
    if run.folds is None:
        train, test = training_and_test_rows(source, run.test_share, run.random_state, raw=raw)
        show_notes(train, quiet=run.quiet)
        found = compare_learners(train, test, names, **how)
    else:
        show_notes(source, quiet=run.quiet)
        found = compare_over_folds(source, run.folds, run.repeats, names, **how)
    LINE.end()
    with interrupts.saving():
        say(str(found))
        write_json(run.output, found.to_dict())  # a warning was all, if it failed before
    if not found.classifiers:
        raise NoIncumbentError("None of the learners returned a classifier; the notes say why.")


def _settings(words: tuple[str, ...], *, raw: bool) -> dict[str, dict[str, Any]]:
    """Return the options of each learner from LEARNER.OPTION=VALUE, and check the files that they name."""
    pairs: dict[str, list[tuple[str, str]]] = {}
    for word in words:
        key, equals, value = word.partition("=")
        learner, dot, name = key.partition(".")
        if not (equals and dot and learner and name):
            raise InputError(
                f"--set: {word!r} is not of the form LEARNER.OPTION=VALUE, such as tan.smoothing=0.1."
            )
        pairs.setdefault(learner, []).append((name, value))
    kinds = {learner: get_learner(learner, raw=raw) for learner in pairs}
    read = {learner: read_options(kinds[learner], settings) for learner, settings in pairs.items()}
    check_outputs(
        [
            (role, f"--set {learner}.{option[2:]}", path)
            for learner, (_, files) in read.items()
            for role, option, path in files
        ]
    )
    return {learner: options for learner, (options, _) in read.items()}
