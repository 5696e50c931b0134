"""``milpbn decide``: gives a classifier costs or a threshold, by which it decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from milpbn.cli.decision_options import DecisionOptions, decision_options
from milpbn.cli.report import say
from milpbn.cli.search_options import NO_NOTES
from milpbn.cli.sections import Values, option, option_group, options, verb
from milpbn.cli.steps import say_notes
from milpbn.cli.table_options import RowOptions, row_options
from milpbn.cli.types import DATA, FILE, NUMBER, OUTPUT
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.network.discrimination import ClassFigures
    from milpbn.network.formats.classifier_files import AnyClassifier


@verb(short_help="Give a classifier costs or a threshold, by which it decides.")
@click.argument("classifier", type=FILE)
@click.argument("data", type=DATA, required=False)
@decision_options("The class that is missed or to detect; default the rarer of two.")
@option_group(
    "Decision",
    "goal",
    option(
        "--sensitivity", NUMBER, "Find this share of the class, with as few alarms as possible; needs DATA."
    ),
    option("--alarm-rate", NUMBER, "At most this share of alarms; needs DATA."),
    option(
        "--conformal calibrate_on",
        click.Choice(["folds", "leave-one-out", "new"]),
        "Calibrate the sets of predict --conformal on DATA: training rows by folds or one by one, or rows that "
        "training has not seen (new).",
    ),
)(Values)
@row_options
@options(option("--output", OUTPUT, "The classifier with its decision, as JSON.", required=True), NO_NOTES)
def decide(
    classifier: str,
    data: str | None,
    decision: DecisionOptions,
    goal: Values,
    chosen: RowOptions,
    output: str,
    quiet: bool,
) -> None:
    """Write CLASSIFIER with costs, so that it predicts the class of least expected cost, or with a threshold.

    predict, evaluate, report and convert (to SQL and ONNX) decide as the file says; probabilities stay as they are.
    Thresholds are learnt from DATA, the training rows, with the options of the table as in training. Five folds hold
    out every row once, and tables of the others give its probability; the structure stays as it is. With the
    threshold stand its sensitivity, precision and alarms on these rows.

    With --conformal, the file gets what the prediction sets of predict and evaluate need; a decision stays as it is.
    For an error of 0.1, new rows promise that 90 % of the sets hold the class, for classifiers of any recipe. Folds
    promise 80 %, and usually give 90 %. Leave-one-out, for tables of smoothed counts, promises nothing in small
    samples; with a given structure such as naive Bayes it usually gives 90 %, with smaller sets and files.

    \b
    Examples:
      milpbn decide classifier.json --cost missed=20 false-alarm=1 --output decided.json
      milpbn decide classifier.json train.csv --sensitivity 0.9 --positive sick --output decided.json
      milpbn decide classifier.json train.csv --alarm-rate 0.05 --output decided.json
      milpbn decide classifier.json train.csv --conformal folds --output calibrated.json
    """
    from milpbn.network import load_any_classifier, save_classifier

    loaded = load_any_classifier(classifier)
    if sum(value is not None for value in (decision.costs, *vars(goal).values())) != 1:
        raise InputError("Give one of --cost, --costs, --sensitivity, --alarm-rate and --conformal.")
    figures: ClassFigures | None = None
    if decision.costs is not None:
        if data is not None:
            raise InputError(f"Costs need no data; leave out {data!r}.")
        decided: AnyClassifier = decision.applied(loaded)
    elif data is None:
        raise InputError("Thresholds and sets are learnt from rows with a class: name them as DATA.")
    else:
        from milpbn.network.parameters.sets import calibrate_sets
        from milpbn.network.parameters.thresholds import decide_by_folds

        samples, _ = chosen.read(loaded, data, "test" if goal.calibrate_on == "new" else "train")
        say_notes(samples.notes, quiet=quiet)
        if goal.calibrate_on is not None:
            calibrated = calibrate_sets(loaded, samples, goal.calibrate_on)
            save_classifier(calibrated, output)
            assert calibrated.conformal is not None
            say(f"sets         calibrated on {calibrated.conformal.origin}")
            return
        decided, figures = decide_by_folds(  # type: ignore[assignment]
            loaded,
            samples,
            sensitivity=goal.sensitivity,
            alarm_rate=goal.alarm_rate,
            positive=decision.positive,
        )
    save_classifier(decided, output)
    assert decided.decision is not None
    say(f"decision     {decided.decision.described(decided.classes)}")
    if figures is not None:
        say(f"held out     {figures.alarms_per_1000:.1f} alarms per 1,000 rows")
        for name, value, within in figures.shown():
            say(f"  {name:<18} {value:>7}  ({within})")
