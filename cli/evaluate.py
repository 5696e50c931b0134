"""``milpbn evaluate``: accuracy and other figures of a classifier on samples whose class is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from milpbn.cli.decision_options import DecisionOptions, decision_options, set_notes, set_options
from milpbn.cli.report import say
from milpbn.cli.search_options import NO_NOTES
from milpbn.cli.sections import Values, flag, option, options, verb
from milpbn.cli.steps import json_line, say_notes, write_json, write_text
from milpbn.cli.table_options import RowOptions, row_options
from milpbn.cli.types import DATA, FILE, OUTPUT

if TYPE_CHECKING:
    from milpbn.network import Evaluation
    from milpbn.network.parameters.record import ParameterFit
    from milpbn.network.parameters.sets import SetFigures

#: Shared by the verbs that print figures.
JSON = flag("--json as_json", "Print the figures as one JSON object.")


@verb(short_help="Measure a classifier's accuracy.")
@click.argument("classifier", type=FILE)
@click.argument("data", type=DATA)
@row_options
@decision_options("The class to detect, or that is missed; default the rarest one.")
@set_options
@options(JSON, option("--output", OUTPUT, "Write the figures as JSON, too."), NO_NOTES)
def evaluate(
    classifier: str,
    data: str,
    chosen: RowOptions,
    decision: DecisionOptions,
    sets: Values,
    as_json: bool,
    output: str | None,
    quiet: bool,
) -> None:
    """Measure the accuracy of a classifier on DATA, with a 95 % interval, and show which classes it confuses.

    How well one class is told from the others is measured by ROC-AUC, average precision, sensitivity, specificity,
    precision, F1, balanced accuracy and Matthews' coefficient. With two classes, or --positive, these are shown with
    95 % intervals, and a table of thresholds says how many of 1,000 rows are alarms where a given share of the class
    is found. With more classes there is a row for each against all others. Where a class has less than 10 % of the
    rows, these figures come first.

    With costs (--cost, --costs, or those of CLASSIFIER), the class of least expected cost is predicted, and the cost
    per row stands beside that of always predicting the most frequent class, and that of the best threshold on these
    rows. With --abstain, the share without an answer is added, and the accuracy of the others; all other figures are
    those of the classes that would be chosen if one had to be.

    With --conformal, the share of the prediction sets that hold the true class and their mean size are added, of all
    rows and of each class.

    Beside the accuracy stands that of always answering with the most frequent class. Log-loss, Brier score (0 is best,
    2 worst) and the reliability curve judge the probabilities: among the samples whose predicted class has about 80 %,
    about 80 % should be right.

    Every row with a class label counts. A class that training never saw is an error, with the probability 0; the
    figures without these rows stand beside those of all rows. Weights say how much a row counts: the figures without
    them stand beside the weighted ones. Features that are missing, or whose column is absent, are marginalised. Values
    that training never saw contribute nothing to the class scores. The numbers of both are reported. A column with such
    values only is refused, unless --ignore-unseen says that it is right.

    \b
    Example:
      milpbn evaluate classifier.json test.csv
      milpbn evaluate classifier.json test.csv --positive sick --cost missed=20 false-alarm=1
      milpbn evaluate classifier.json test.csv --output figures.json
      milpbn evaluate calibrated.json test.csv --conformal 0.1
    """
    from milpbn.network import AveragedClassifier, load_any_classifier
    from milpbn.network import evaluate as count
    from milpbn.network.explanation.overall import recorded_gamma
    from milpbn.network.parameters.record import recorded
    from milpbn.network.parameters.sets import evaluate_sets

    loaded = decision.applied(load_any_classifier(classifier))
    samples, rows = chosen.read(loaded, data)
    say_notes(samples.notes, quiet=quiet)
    provenance = getattr(loaded, "provenance", {})
    figures = count(loaded, samples, recorded_gamma(provenance), positive=decision.positive)
    networks = len(loaded.members) if isinstance(loaded, AveragedClassifier) else 1
    record = recorded(provenance)
    about = None if record is None else record.to_dict()
    found = [] if sets.error is None else evaluate_sets(loaded, samples, sets.error, by_class=sets.by_class)
    say_notes(set_notes(loaded, sets), quiet=quiet)
    document = {"rows": rows, **figures.to_dict(), "networks": networks, "parameters": about}
    document |= {"sets": [asdict(one) for one in found]} if found else {}
    write_json(output, document)
    if as_json:
        write_text(None, json_line(document))
    else:
        say(describe(figures, rows, record, networks, alone=decision.positive is not None))
        if found and loaded.conformal is not None:
            say(_sets(found, sets, loaded.conformal.origin))


def describe(
    figures: Evaluation, rows: str, record: ParameterFit | None, networks: int, *, alone: bool = False
) -> str:
    """Return the figures as lines of text.

    Others say how the classifier's parameters were fitted if not as the score's, of how many networks it is the
    average if of more than one, and whether of several classes the positive one is shown `alone`.
    """
    from milpbn.solving.progress import parameter_lines
    from milpbn.util.plurals import counted

    weighted = figures.unweighted is not None
    weight = "" if figures.weight == figures.samples else f", total weight {figures.weight:g}"
    if weighted:
        weight += f"; they say as much as {figures.effective_size:.4g} of equal weight"
    detection = _detection(figures, alone or len(figures.classes) == 2)
    first = figures.has_rare_class or figures.decision is not None
    lines = [
        f"data         {figures.data}: {figures.samples} samples ({rows} rows{weight})",
        *_cost(figures),
        *(detection if first else []),
        f"accuracy     {accuracy_line(figures)}",
        f"majority     {_majority(figures)}",
        *_beside(figures),
        *([] if first else detection),
        f"mean margin  {figures.mean_log_margin:.6f} nats",
        f"log-loss     {figures.log_loss:.6f} nats{_within(figures.log_loss_interval)}",
        f"Brier score  {figures.brier:.6f}  (0 is best, 2 worst{_within(figures.brier_interval, '; {}')})",
    ]
    if figures.soft_margin is not None:
        lines.append(f"soft margin  {figures.soft_margin:.6f} nats  (gamma = {figures.gamma:.6g})")
    lines += parameter_lines(record, 13)
    lines += [f"classifier   average of {networks} networks"] if networks > 1 else []
    if figures.unlabelled:
        lines.append(f"left out     {counted(figures.unlabelled, 'row')} without a class label")
    for counts, label, what in (
        (figures.unknown_values, "unknown", " without a state"),
        (figures.missing_values, "missing", ", marginalised"),
    ):
        if counts:
            listed = ", ".join(f"{count} in {name}" for name, count in counts.items())
            lines.append(f"{label:<13}{sum(counts.values())} values{what}: {listed}")
    return "\n".join(
        [
            *lines,
            f"calibration  expected error {100 * figures.calibration_error:.2f} %; samples by the probability of their "
            "predicted class",
            *_reliability(figures),
            f"confusion    {'weight of the ' if weighted else ''}true class (rows) by predicted class (columns)",
            *_confusion(figures),
        ]
    )


def _sets(found: Sequence[SetFigures], asked: Values, origin: str) -> list[str]:
    """Return how often prediction sets hold the true class, and how large they are, of all rows and by class."""
    head = ["", "rows", "with the class", "95 % interval", "mean size", "one class"]
    rows = []
    for one in found:
        low, high = one.coverage_interval
        shares = [f"{100 * one.coverage:.2f} %", f"{100 * low:.2f} to {100 * high:.2f} %", f"{one.size:.3f}"]
        rows.append([one.label or "all", f"{one.rows}", *shares, f"{100 * one.sizes[0]:.1f} %"])
    whose = "rows of each class" if asked.by_class else "rows"
    return [
        f"sets         meant to hold the class of {100 * (1 - asked.error):g} % of the {whose}; calibrated on",
        f"             {origin}",
        *table_lines([head, *rows]),
    ]


def _within(interval: tuple[float, float] | None, form: str = "  ({})") -> str:
    if interval is None:
        return ""
    return form.format(f"95 % interval {interval[0]:.6f} to {interval[1]:.6f}")


def _cost(figures: Evaluation) -> list[str]:
    """Return how classes are chosen if not as the most probable ones, and what the decisions cost.

    Beside the cost stand what needs no classifier, and the best threshold.
    """
    found = figures.cost
    if figures.decision is None:
        return []
    lines = [f"decision     {figures.decision}"]
    if found is None:
        return lines
    lines += [
        f"cost         {found.cost:.6g} per row{_within(found.interval)}",
        f"             {found.majority:.6g} by always answering {figures.majority_class}",
    ]
    if found.abstained is not None:
        lines.append(f"             {found.always_answered:.6g} by never abstaining")
    if found.best_class != figures.majority_class:
        lines.append(f"             {found.constant:.6g} by always answering {found.best_class}")
    if found.oracle is not None:
        lines.append(
            f"             {found.oracle:.6g} by the best threshold on these rows, {found.threshold:.4g} for "
            f"{figures.positive}"
        )
    for name, share, what in (
        ("abstained", found.abstained, ""),
        ("answered", found.answered_right, " of the others are right"),
    ):
        if share is not None:
            lines.append(f"{name:<13}{100 * share[0]:.2f} %{what}  ({_interval(*share[1])})")
    return lines


def _detection(figures: Evaluation, alone: bool) -> list[str]:
    """Return how well the positive class is told from the others, or each class from all others."""
    from milpbn.network.discrimination import NAMES

    what = "rows" if figures.unweighted is None else "weight"
    if alone:
        found = figures.detected
        lines = [
            f"detecting    {found.label}: {found.rows} of {figures.samples} rows, {100 * found.share:.2f} % of the "
            f"{what}"
        ]
        lines += [f"  {name:<18} {value:>7}  ({within})" for name, value, within in found.shown()]
        lines.append(
            f"  {found.alarms_per_1000:.1f} of 1,000 {what} are predicted {found.label}; by threshold:"
        )
        return [*lines, *table_lines(found.shown_thresholds())] if found.thresholds else lines[:-1]
    rows = [[one.label, f"{one.rows}", *one.cells()] for one in figures.by_class]
    return ["each class against all others", *table_lines([["", "rows", *NAMES.values()], *rows])]


def _interval(low: float, high: float) -> str:
    return f"95 % interval {100 * low:.2f} to {100 * high:.2f} %"


def accuracy_line(figures: Evaluation) -> str:
    """Return the accuracy with its interval."""
    of = "" if figures.unweighted is None else " of the weight"
    within = f"{_interval(*figures.interval)}; +- {100 * figures.half_width:.2f}"
    return f"{100 * figures.accuracy:.2f} %{of}  ({within})"


def _majority(figures: Evaluation) -> str:
    within = _interval(*figures.majority_interval)
    return f"{100 * figures.majority_share:.2f} %  ({within}), by always answering {figures.majority_class}"


def _beside(figures: Evaluation) -> list[str]:
    """Return the figures of the rows without their weights, and of those whose class training saw."""
    from milpbn.util.plurals import counted

    def shown(part: Evaluation) -> str:
        return f"{accuracy_line(part)}, log-loss {part.log_loss:.6f} nats, Brier score {part.brier:.6f}"

    lines = []
    once, known = figures.unweighted, figures.known
    if once is not None:
        lines += [f"unweighted   {shown(once)};", f"             majority {_majority(once)}"]
    if known is not None:
        lines += [
            f"unseen       {counted(figures.unknown_class, 'sample')} of a class that training never saw: errors, with "
            "the probability 0;",
            f"             the other {known.samples}: accuracy {shown(known)}",
        ]
    return lines


def _reliability(figures: Evaluation) -> list[str]:
    """Return the reliability curve as a table."""
    head = ["probability", "samples" if figures.unweighted is None else "weight", "mean", "right"]
    rows = [
        [
            f"{100 * part.low:.0f} to {100 * part.high:.0f} %",
            f"{part.weight:g}",
            f"{100 * part.confidence:.1f} %",
            f"{100 * part.accuracy:.1f} %",
        ]
        for part in figures.reliability
    ]
    return table_lines([head, *rows])


def _confusion(figures: Evaluation) -> list[str]:
    names, values = figures.classes, figures.confusion.tolist()
    if figures.unknown_class:
        names, values = (*names, "(unseen)"), [*values, figures.unseen.tolist()]
    rows = [[name, *(f"{value:g}" for value in row)] for name, row in zip(names, values, strict=True)]
    return table_lines([["", *figures.classes], *rows], equal=True)


def table_lines(rows: list[list[str]], *, equal: bool = False) -> list[str]:
    """Return rows as lines with right-aligned cells; each column has its own width, or all have the same."""
    from milpbn.util.printing import aligned

    return ["  " + line for line in aligned(rows, equal=equal)]
