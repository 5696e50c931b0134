"""The accuracies on the page of a report, with how well classes are told from the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset, dropped_notes
from milpbn.drawing.html import folded, words
from milpbn.errors import InputError
from milpbn.network.discrimination import NAMES
from milpbn.network.evaluation import Evaluation, evaluate
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.plotting import CURVES, draw_curve, draw_sets
from milpbn.report.template import CHART, figure
from milpbn.trials.judged import Judged


def figures_of(
    classifier: AnyClassifier | None, train: Dataset | None, test: Dataset | None
) -> list[tuple[str, Evaluation]]:
    """Return the figures of the training rows, and of the test rows if there are any; nothing without data."""
    if classifier is None or train is None:
        return []
    rows = [("training", train), *([] if test is None else [("test", test)])]
    return [(which, evaluate(classifier, data)) for which, data in rows]


def accuracies(
    result: Result,
    classifier: AnyClassifier | None,
    train: Dataset | None,
    test: Dataset | None,
    found: Sequence[tuple[str, Evaluation]],
) -> str:
    """Return what a classifier does on training and test rows: figures (`figures_of`), confusions and curves."""
    if classifier is None or train is None:
        return "<p>Give the data to see accuracies: milpbn report RESULT DATA.</p>"
    columns = [_figures(figures) for _, figures in found]
    names = dict.fromkeys(name for column in columns for name in column)
    lines = [(name, [column.get(name, "") for column in columns]) for name in names]
    table = _table("<th></th>", [f"{name} rows" for name, _ in found], lines)
    last, figures = found[-1]
    if len(figures.classes) > 2:
        table += _each_class(figures, last)
    text = (
        "These rows were not used for learning."
        if test is not None
        else "The data have no rows that were kept from learning, so that the accuracy on new rows may be lower."
    )
    dropped = dropped_notes(result.notes)
    if dropped and found[0][1].samples > result.data.samples:
        text += (
            f" {words(' '.join(dropped))} Here they are among the training rows, and what is missing is "
            "marginalised."
        )
    said = f"<p>{'Test rows: ' if test is not None else ''}{text}{_what_counts(figures)}</p>"
    confused = folded(f"Which classes are confused ({last} rows)", _confusion(figures))
    return table + said + confused + _detection(classifier, train if test is None else test, figures, last)


def _each_class(figures: Evaluation, which: str) -> str:
    """Return how well each class is told from all others, as a table."""
    lines = [(one.label, one.cells()) for one in figures.by_class if one.rows]
    return (
        f"<h3>Each class against all others ({which} rows)</h3>{_table('<th></th>', NAMES.values(), lines)}"
    )


def _detection(classifier: AnyClassifier, data: Dataset, figures: Evaluation, which: str) -> str:
    """Return curves, and with two classes the thresholds, of how well a class is told from the others."""
    positive = figures.positive if len(figures.classes) == 2 else None
    rows, parts = Judged.of(classifier, data), []
    if positive is not None and (shown := figures.detected.shown_thresholds()):
        head, *lines = shown
        table = _table(f"<th>{head[0]}</th>", head[1:], [(line[0], line[1:]) for line in lines])
        parts.append(folded(f"Thresholds of P({positive}), learnt on these {which} rows", table))
    with suppress(InputError):  # rows of one class only have no curves
        drawn = [
            figure(draw_curve(kind, rows, figures.classes, positive=positive, width=CHART)) for kind in CURVES
        ]
        parts.append(folded(f"ROC, precision and recall, gain, calibration ({which} rows)", "".join(drawn)))
    if classifier.conformal is not None and which == "test":
        parts.append(folded("Prediction sets (test rows)", figure(draw_sets(classifier, data, width=CHART))))
    return "".join(parts)


def _table(corner: str, head: Iterable[str], lines: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Return a table of numbers with names of its columns and rows; `corner` is the cell above the rows' names."""
    names = "".join(f'<th scope="col" class="n">{words(name)}</th>' for name in head)
    rows = ""
    for name, values in lines:
        cells = "".join(f'<td class="n">{value}</td>' for value in values)
        rows += f'<tr><th scope="row">{words(name)}</th>{cells}</tr>'
    return f'<div class="mb-scroll"><table><thead><tr>{corner}{names}</tr></thead><tbody>{rows}</tbody></table></div>'


def _what_counts(figures: Evaluation) -> str:
    """Return sentences on weights, on rows of classes that training never saw, and on the intervals."""
    if figures.unweighted is None:
        sentences = ["Numbers in brackets are 95 % intervals; that of the accuracy is Wilson's."]
    else:
        sentences = [
            "All figures are weighted, except where the table says that rows count once. Intervals are score "
            f"intervals: the rows say as much as {figures.effective_size:.4g} of equal weight."
        ]
    if figures.unknown_class:
        sentences.append("A class that training never saw is an error, with the probability 0.")
    return " " + " ".join(sentences)


def _figures(figures: Evaluation) -> dict[str, str]:
    known, once = figures.known, figures.unweighted
    accuracy = {
        "accuracy": f"{100 * figures.accuracy:.2f} %",
        "95 % interval": _interval(figures),
        "majority class": f"{100 * figures.majority_share:.2f} %",
    }
    detected = {}
    if len(figures.classes) == 2:
        detected[f"rows of class {figures.positive}"] = f"{figures.detected.rows}"
        for name, value, interval in figures.detected.shown():
            detected[name] = f"{value} ({interval.removeprefix('95 % interval ')})"
    rare = figures.has_rare_class or figures.decision is not None
    first, then = (detected, accuracy) if rare else (accuracy, detected)
    return {
        "samples": f"{figures.samples}",
        **_costs(figures),
        **first,
        **then,
        "log-loss (nats)": f"{figures.log_loss:.4f}",
        "Brier score": f"{figures.brier:.4f}",
        "calibration error": f"{100 * figures.calibration_error:.2f} %",
        "mean log-margin": f"{figures.mean_log_margin:.4f}",
        **({} if once is None else _short("rows count once", once)),
        **({} if known is None else _short(f"{known.samples} samples of classes that training saw", known)),
    }


def _costs(figures: Evaluation) -> dict[str, str]:
    """Return how classes are chosen if not as the most probable ones, and what that costs."""
    found = figures.cost
    rows = {} if figures.decision is None else {"predicted": figures.decision}
    if found is None:
        return rows
    low, high = found.interval or (np.nan, np.nan)
    rows["cost per row"] = f"{found.cost:.4g} ({low:.4g} to {high:.4g})"
    rows[f"always {figures.majority_class}"] = f"{found.majority:.4g}"
    for name, share in (("abstained", found.abstained), ("accuracy of the answers", found.answered_right)):
        if share is not None:
            rows[name] = f"{100 * share[0]:.2f} % ({100 * share[1][0]:.2f} to {100 * share[1][1]:.2f} %)"
    if found.oracle is not None:
        rows["best threshold on these rows"] = f"{found.oracle:.4g}, at {found.threshold:.4g}"
    return rows


def _short(which: str, figures: Evaluation) -> dict[str, str]:
    return {
        f"accuracy, {which}": f"{100 * figures.accuracy:.2f} %",
        f"95 % interval, {which}": _interval(figures),
        f"log-loss, {which}": f"{figures.log_loss:.4f}",
    }


def _interval(figures: Evaluation) -> str:
    low, high = figures.interval
    return f"{100 * low:.2f} to {100 * high:.2f} %"


def _confusion(figures: Evaluation, most: int = 26) -> str:
    if len(figures.classes) > most:
        return f"<p>The table of {len(figures.classes)} classes is too large for this page.</p>"
    weights = list(zip(figures.classes, figures.confusion.tolist(), strict=True))
    weights += [("(unseen)", figures.unseen.tolist())] if figures.unknown_class else []
    lines = [(name, [f"{value:g}" for value in line]) for name, line in weights]
    return _table('<th scope="col">class \\ predicted</th>', figures.classes, lines)
