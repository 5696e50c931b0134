"""``milpbn evaluate``: accuracy and other figures of a classifier on samples whose class is known."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.outputs import check_outputs
from milpbn.cli.report import say
from milpbn.cli.sections import Verb, verb
from milpbn.cli.table_options import TableOptions, text_options
from milpbn.cli.types import DATA, FILE, FOLDER, NAME
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.data import Dataset
    from milpbn.data.raw_table import RawTable
    from milpbn.network import Evaluation
    from milpbn.network.formats.classifier_files import AnyClassifier
    from milpbn.network.parameters.record import ParameterFit

SPLIT = click.option(
    "--split",
    type=click.Choice(["all", "train", "test"]),
    help="Rows of the catalog's split; by default the test rows, or all rows where there is no split.",
)
WEIGHTS = click.option("--weights", type=NAME, help="Column of sample weights.")
IGNORE_UNSEEN = click.option(
    "--ignore-unseen",
    is_flag=True,
    help="Go on where a column has no value that occurs in the training data, as if it said nothing.",
)


DATA_DIR = click.option(
    "--data-dir", type=FOLDER, help="Folder of the catalog; by default the variable MILPBN_DATA."
)


@dataclass(frozen=True)
class RowOptions:
    """Which rows of the data count, with which weights, and how to read them.

    Attributes
    ----------
    split : str or None
        ``all``, ``train`` or ``test``; None for the usual ones of a verb.
    weights : str or None
        Column of sample weights.
    data_dir : str or None
        Folder of the catalog.
    form : mapping from str
        Options of text files, as keyword arguments of `milpbn.read_table`.
    ignore_unseen : bool
        Allow columns without any value of the training data.
    """

    split: str | None = None
    weights: str | None = None
    data_dir: str | None = None
    form: Mapping[str, Any] = field(default_factory=dict)
    ignore_unseen: bool = False

    @classmethod
    def of(cls, table: TableOptions, split: str | None) -> RowOptions:
        """Return the options of a table, for the rows of one split."""
        settings = table.settings
        return cls(split, settings.get("weights"), settings.get("data_dir"), table.form)


def row_options(command: Verb) -> Verb:
    """Add the options of `read_rows` to a verb, as its argument ``chosen``."""

    @functools.wraps(command)
    def with_rows(*args: Any, **values: Any) -> Any:
        own = {item.name: values.pop(item.name) for item in fields(RowOptions)}
        return command(*args, chosen=RowOptions(**own), **values)

    decorated: Verb = text_options(with_rows)
    for add in (DATA_DIR, IGNORE_UNSEEN, WEIGHTS, SPLIT):
        decorated = add(decorated)
    return decorated


@verb(short_help="Measure a classifier's accuracy.")
@click.argument("classifier", type=FILE)
@click.argument("data", type=DATA)
@row_options
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON object.")
@click.option("--output", type=FILE, help="Write the figures as JSON, too.")
@click.option("-q", "--quiet", is_flag=True, help="No notes on stderr.")
def evaluate(
    classifier: str,
    data: str,
    chosen: RowOptions,
    as_json: bool,
    output: str | None,
    quiet: bool,
) -> None:
    """Measure the accuracy of a classifier on DATA, with a 95 % interval, and show which classes it confuses.

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
      milpbn evaluate classifier.json test.csv --output figures.json
    """
    check_outputs({"--output": output}, [classifier, data])
    from milpbn.network import AveragedClassifier, load_any_classifier
    from milpbn.network import evaluate as count
    from milpbn.network.explanation.overall import recorded_gamma
    from milpbn.network.parameters.record import recorded
    from milpbn.util.atomic import atomic_write_text
    from milpbn.util.jsonable import dump_json

    loaded = load_any_classifier(classifier)
    samples, rows = read_rows(loaded, data, chosen)
    if not quiet:
        for note in samples.notes:
            say(note, err=True)
    figures = count(loaded, samples, recorded_gamma(getattr(loaded, "provenance", {})))
    networks = len(loaded.members) if isinstance(loaded, AveragedClassifier) else 1
    record = recorded(getattr(loaded, "provenance", {}))
    about = None if record is None else record.to_dict()
    document = {"rows": rows, **figures.to_dict(), "networks": networks, "parameters": about}
    if output is not None:
        atomic_write_text(output, dump_json(document))
    if as_json:
        click.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
    else:
        say(describe(figures, rows, record, networks))


def read_rows(
    classifier: AnyClassifier, data: str, chosen: RowOptions, default: str = "test"
) -> tuple[Dataset, str]:
    """Return the chosen rows, encoded, and their name: ``all``, ``train`` or ``test``.

    Without a choice of rows they are the `default` ones where the data have a split, and all elsewhere.
    """
    from milpbn.data import read_encodings

    loaded = load_table(classifier, data, chosen.data_dir, chosen.form)
    train_rows = None if loaded.entry is None else loaded.entry.train_rows
    if train_rows is None and chosen.split in ("train", "test"):
        raise InputError(
            f"The data {data!r} have no split into training and test rows; leave out --split {chosen.split}."
        )
    rows = chosen.split or ("all" if train_rows is None else default)
    frame = {"all": loaded.frame, "train": loaded.frame[:train_rows], "test": loaded.frame[train_rows:]}[rows]
    samples = read_encodings(
        replace(loaded, frame=frame),
        classifier.variable_sets,
        weights=chosen.weights,
        ignore_unseen=chosen.ignore_unseen,
    )
    return samples, rows


def load_table(
    classifier: AnyClassifier, data: str, data_dir: str | None, form: Mapping[str, Any]
) -> RawTable:
    """Return the cells of a table for prediction, read as the training table was where the options do not say how."""
    from milpbn.data.options import TextFormat
    from milpbn.data.sources import load_source
    from milpbn.network.classifier import form_of

    names = [variable.name for variable in classifier.variables]
    return load_source(data, data_dir, names, TextFormat.of(form).after(form_of(classifier)))


def describe(figures: Evaluation, rows: str, record: ParameterFit | None = None, networks: int = 1) -> str:
    """Return the figures as lines of text.

    Others say how the classifier's parameters were fitted if not as the score's, and of how many networks it is the
    average if of more than one.
    """
    from milpbn.solving.progress import parameter_lines
    from milpbn.util.plurals import counted

    weight = "" if figures.weight == figures.samples else f", total weight {figures.weight:g}"
    if figures.unweighted is not None:
        weight += f"; they say as much as {figures.effective_size:.4g} of equal weight"
    lines = [
        f"data         {figures.data}: {figures.samples} samples ({rows} rows{weight})",
        f"accuracy     {_accuracy(figures)}",
        f"majority     {_majority(figures)}",
        *_beside(figures),
        f"mean margin  {figures.mean_log_margin:.6f} nats",
        f"log-loss     {figures.log_loss:.6f} nats",
        f"Brier score  {figures.brier:.6f}  (0 is best, 2 worst)",
    ]
    if figures.soft_margin is not None:
        lines.append(f"soft margin  {figures.soft_margin:.6f} nats  (gamma = {figures.gamma:.6g})")
    lines += parameter_lines(record, 13)
    lines += [f"classifier   average of {networks} networks"] if networks > 1 else []
    if figures.unlabelled:
        lines.append(f"left out     {counted(figures.unlabelled, 'row')} without a class label")
    if figures.unknown_values:
        counts = ", ".join(f"{count} in {name}" for name, count in figures.unknown_values.items())
        lines.append(f"unknown      {sum(figures.unknown_values.values())} values without a state: {counts}")
    if figures.missing_values:
        counts = ", ".join(f"{count} in {name}" for name, count in figures.missing_values.items())
        lines.append(f"missing      {sum(figures.missing_values.values())} values, marginalised: {counts}")
    lines += [
        f"calibration  expected error {100 * figures.calibration_error:.2f} %; samples by the probability of their "
        "predicted class",
        *_reliability(figures),
    ]
    weights = "" if figures.unweighted is None else "weight of the "
    lines += [f"confusion    {weights}true class (rows) by predicted class (columns)", *_confusion(figures)]
    return "\n".join(lines)


def _accuracy(figures: Evaluation) -> str:
    low, high = figures.interval
    of = "" if figures.unweighted is None else " of the weight"
    return (
        f"{100 * figures.accuracy:.2f} %{of}  (95 % interval {100 * low:.2f} to {100 * high:.2f} %; "
        f"+- {100 * figures.half_width:.2f})"
    )


def _majority(figures: Evaluation) -> str:
    low, high = figures.majority_interval
    return (
        f"{100 * figures.majority_share:.2f} %  (95 % interval {100 * low:.2f} to {100 * high:.2f} %), by always "
        f"answering {figures.majority_class}"
    )


def _beside(figures: Evaluation) -> list[str]:
    """Return the figures of the rows without their weights, and of those whose class training saw."""
    from milpbn.util.plurals import counted

    lines = []
    once, known = figures.unweighted, figures.known
    if once is not None:
        lines += [
            f"unweighted   {_accuracy(once)}, log-loss {once.log_loss:.6f} nats, Brier score {once.brier:.6f};"
        ]
        lines += [f"             majority {_majority(once)}"]
    if known is not None:
        lines += [
            f"unseen       {counted(figures.unknown_class, 'sample')} of a class that training never saw: errors, with "
            "the probability 0;",
            f"             the other {known.samples}: accuracy {_accuracy(known)}, log-loss {known.log_loss:.6f} nats, "
            f"Brier score {known.brier:.6f}",
        ]
    return lines


def _reliability(figures: Evaluation) -> list[str]:
    """Return the reliability curve as a table."""
    head = ("probability", "samples" if figures.unweighted is None else "weight", "mean", "right")
    table = [
        (
            f"{100 * part.low:.0f} to {100 * part.high:.0f} %",
            f"{part.weight:g}",
            f"{100 * part.confidence:.1f} %",
            f"{100 * part.accuracy:.1f} %",
        )
        for part in figures.reliability
    ]
    widths = [max(len(row[k]) for row in (head, *table)) for k in range(len(head))]
    return ["  " + "  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in (head, *table)]


def _confusion(figures: Evaluation) -> list[str]:
    from milpbn.util.padding import columns_of, right_aligned

    names, values = figures.classes, figures.confusion.tolist()
    if figures.unknown_class:
        names, values = (*names, "(unseen)"), [*values, figures.unseen.tolist()]
    cells = [[f"{value:g}" for value in row] for row in values]
    width = max(columns_of(text) for text in (*names, *(cell for row in cells for cell in row)))
    table = [["", *figures.classes], *([label, *row] for label, row in zip(names, cells, strict=True))]
    return ["  " + "  ".join(right_aligned(text, width) for text in row) for row in table]
