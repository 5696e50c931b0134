"""``milpbn monitor``: whether new rows look like those from which a classifier was learnt."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.decision_options import DecisionOptions, decision_options
from milpbn.cli.evaluate import JSON, accuracy_line, table_lines
from milpbn.cli.report import say
from milpbn.cli.search_options import NO_NOTES
from milpbn.cli.sections import Values, given, option, option_group, verb
from milpbn.cli.steps import json_line, say_notes, write_json, write_text
from milpbn.cli.table_options import RowOptions, row_options
from milpbn.cli.types import DATA, FILE, NUMBER, OUTPUT
from milpbn.util.plurals import counted

if TYPE_CHECKING:
    from milpbn.network.monitoring import Monitoring

#: The exit code of an alarm; errors have others.
ALARM = 1


@verb(short_help="Watch whether new rows look like the training rows.")
@click.argument("classifier", type=FILE)
@click.argument("data", type=DATA)
@option_group(
    "Alarms",
    "limits",
    option(
        "--reference",
        DATA,
        "Rows to compare with, such as the training rows; default: what CLASSIFIER says of them.",
    ),
    option("--psi", NUMBER, "Alarm if a population stability index is above it; default 0.1."),
    option(
        "--loss", NUMBER, "Alarm if a loss is above the expected one by more than this share; default 0.25."
    ),
    option("--alpha", NUMBER, "Largest probability of a false alarm in one run; default 0.01."),
)(given)
@row_options
@decision_options("The class that is missed; default the rarer of two.")
@option_group(
    "Options",
    "shown",
    JSON,
    option("--output", OUTPUT, "Write the figures as JSON, too."),
    option("--plot picture", OUTPUT, "Draw the shifts: .png, .svg or .pdf."),
    NO_NOTES,
)(Values)
def monitor(
    classifier: str,
    data: str,
    limits: dict[str, Any],
    chosen: RowOptions,
    decision: DecisionOptions,
    shown: Values,
) -> int:
    """Compare the rows of DATA with those from which CLASSIFIER was learnt.

    For each column, the population stability index (PSI) measures how far the shares of its states moved, and is shown
    beside the value to expect if nothing changed. There is also one for the class (where DATA has labels), for the
    predicted class, and for the log-likelihood of the rows under the network, which falls where columns no longer
    depend on each other as they did. Missing and unseen values are counted. With labels, log-loss and cost are compared
    with the values that the classifier's probabilities predict.

    Without --reference, columns and the class are compared with the numbers of training rows by state that CLASSIFIER
    holds; every row then counts once, and missing values raise no alarm unless a column has no others. With the
    training rows as the reference, log-likelihoods and losses are judged by tables of folds that hold these rows out.

    The exit code is 0 without an alarm, 1 with one, and 2 if options or data are unusable. An alarm needs a change
    above --psi or --loss that chance does not explain: the p-value is at most --alpha divided by the number of
    comparisons.

    \b
    Examples:
      milpbn monitor classifier.json tonight.csv --reference train.csv
      milpbn monitor classifier.json tonight.csv --output tonight.json --plot tonight.svg
    """
    from milpbn.network import load_any_classifier
    from milpbn.network.monitoring import monitor as compare
    from milpbn.plotting import check_picture, draw_shifts, save

    if shown.picture is not None:
        check_picture(shown.picture)
    loaded = decision.applied(load_any_classifier(classifier))
    # A column that has only unseen values is what this verb is to tell.
    chosen = replace(chosen, ignore_unseen=True)
    before = None
    if "reference" in limits:
        before, _ = chosen.read(loaded, limits.pop("reference"), "train")
    rows, _ = chosen.read(loaded, data)
    say_notes(rows.notes, quiet=shown.quiet)
    found = compare(loaded, rows, before, **limits)
    write_json(shown.output, found.to_dict())
    if shown.picture is not None:
        save(draw_shifts(found), shown.picture)
    if shown.as_json:
        write_text(None, json_line(found.to_dict()))
    else:
        say(describe(found))
    return ALARM if found.alarms else 0


def describe(found: Monitoring) -> str:
    """Return the figures as lines of text."""
    beside = "the classifier's file, of" if found.reference is None else f"{found.reference},"
    limits, figures = found.limits, found.figures
    losses = f", losses {100 * limits['loss']:g} % above the expected ones" if found.losses else ""
    lines = [
        f"data         {found.data}: {counted(found.rows, 'row')}",
        f"reference    {beside} {counted(found.reference_rows, 'row')}",
        f"alarms       {', '.join(found.alarms) or 'none'}",
        f"limits       PSI above {limits['psi']:g}{losses}, with a p-value of at most {limits['p_value']:.2g}",
    ]
    if figures is not None:
        error = f"calibration error {100 * figures.calibration_error:.2f} %"
        lines.append(f"accuracy     {accuracy_line(figures)}; {error}")
    for loss in found.losses:
        more = (
            ""
            if loss.reference is None
            else f"; the reference is {loss.reference:+.4f} from the expected one"
        )
        lines.append(
            f"{loss.name:<12} {loss.value:.4f}, and {loss.expected:.4f} is expected by the probabilities{more}; "
            f"p = {loss.p_value:.2g}{'  ALARM' if loss.alarm else ''}"
        )
    table = [["", "PSI", "expected", "p", "missing", "unseen", "largest change", "", ""]]
    for shift in sorted(found.shifts, key=lambda shift: (not shift.alarm, -shift.psi)):
        numbers = [f"{shift.psi:.4f}", f"{shift.expected:.4f}", f"{shift.p_value:.2g}"]
        shares = [f"{100 * share:.1f} %" for share in (shift.missing, shift.unseen)]
        change = [shift.state, f"{100 * shift.before:.1f} to {100 * shift.now:.1f} %"]
        if math.isnan(shift.before + shift.now):
            change = ["(no values)", ""]
        table.append([shift.name, *numbers, *shares, *change, "ALARM" if shift.alarm else ""])
    return "\n".join([*lines, *table_lines(table)])
