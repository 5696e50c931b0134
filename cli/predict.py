"""``milpbn predict``: predicts classes and class probabilities of new samples."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.evaluate import DATA_DIR, IGNORE_UNSEEN, load_table
from milpbn.cli.outputs import check_outputs
from milpbn.cli.report import say
from milpbn.cli.sections import option, option_group, verb
from milpbn.cli.table_options import text_options
from milpbn.cli.types import DATA, FILE, NAMES
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.data import Dataset
    from milpbn.data.raw_table import RawTable
    from milpbn.network.formats.classifier_files import AnyClassifier


@dataclass(frozen=True)
class PredictOptions:
    """What is written for every row, and where."""

    output: str | None
    proba: bool
    joint: bool
    keep: tuple[tuple[str, ...], ...]


written_options = option_group(
    "Options",
    "written",
    option("--output", type=FILE, help="CSV file; by default the table goes to stdout."),
    option("--proba", is_flag=True, help="Add P(class | sample) of every class."),
    option("--joint", is_flag=True, help="Add log P(class, sample) of every class, in nats."),
    option(
        "--keep",
        type=NAMES,
        multiple=True,
        help="Columns of DATA to write before the predictions; by default the identifiers that training left out.",
    ),
)(PredictOptions)


@verb(short_help="Predict the classes of samples.")
@click.argument("classifier", type=FILE)
@click.argument("data", type=DATA)
@written_options
@IGNORE_UNSEEN
@DATA_DIR
@text_options
@click.option("-q", "--quiet", is_flag=True, help="No notes on stderr.")
def predict(
    classifier: str,
    data: str,
    written: PredictOptions,
    ignore_unseen: bool,
    data_dir: str | None,
    form: dict[str, Any],
    quiet: bool,
) -> None:
    """Predict the class of every row of DATA, in the order of the rows.

    Columns are found by name; the class column may be absent. Features that are missing, or whose column is absent, are
    marginalised: their states are summed over, exactly. Values that training never saw contribute nothing to the class
    scores. A note reports the numbers of both. A column with such values only is refused, unless --ignore-unseen says
    that it is right. Columns that look like identifiers were left out of training; where DATA
    has them, they are written before the predictions, or the columns of --keep instead.

    \b
    Examples:
      milpbn predict classifier.json new.csv --proba --output predicted.csv
      milpbn predict classifier.json new.csv --keep customer,date
    """
    check_outputs({"--output": written.output}, [classifier, data])

    from milpbn.data import read_encodings
    from milpbn.network import AveragedClassifier, load_any_classifier
    from milpbn.util.atomic import atomic_write_text

    loaded = load_any_classifier(classifier)
    if written.joint and isinstance(loaded, AveragedClassifier):
        raise InputError(
            f"The classifier {classifier!r} is an average of several networks, which has no joint probabilities; leave "
            "out --joint, or use --proba."
        )
    table = load_table(loaded, data, data_dir, form)
    kept = _kept_columns(loaded, table, [name for names in written.keep for name in names])
    samples = read_encodings(table, loaded.variable_sets, ignore_unseen=ignore_unseen)
    if not quiet:
        for note in samples.notes:
            say(note, err=True)
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(
        _rows(loaded, samples, kept, written.proba, written.joint)
    )
    if written.output is None:
        click.echo(text.getvalue(), nl=False, color=True)  # color=True keeps escape sequences inside labels
    else:
        atomic_write_text(written.output, text.getvalue())


def _kept_columns(classifier: AnyClassifier, table: RawTable, asked: Sequence[str]) -> dict[str, list[str]]:
    """Return the cells of the columns that are written before the predictions; missing ones are empty."""
    from milpbn.data.labels import label_of
    from milpbn.data.row_index import is_unnamed
    from milpbn.network.classifier import left_out_of

    frame = table.frame
    for name in asked:
        if name not in frame.columns:
            columns = ", ".join(str(c) for c in frame.columns)
            raise InputError(f"--keep names {name!r}, which is not a column of {table.where} ({columns}).")
    first = getattr(classifier, "members", (classifier,))[0]
    left_out = left_out_of(getattr(first, "provenance", {}))
    identifiers = [
        name
        for name, why in left_out.items()
        if name in frame.columns and (why == "identifier" or (why == "row index" and not is_unnamed(name)))
    ]
    return {
        name: [
            "" if empty else label_of(cell)
            for cell, empty in zip(frame[name], frame[name].isna(), strict=True)
        ]
        for name in dict.fromkeys(asked or identifiers)
    }


def _rows(
    classifier: AnyClassifier, samples: Dataset, kept: Mapping[str, Sequence[str]], proba: bool, joint: bool
) -> Iterator[list[object]]:
    """Yield the header and one row per sample: kept cells, the predicted class, a column per class and figure."""
    import numpy as np

    from milpbn.network import AveragedClassifier, log_posterior

    log_joint = (
        classifier.predict_log_posterior(samples)
        if isinstance(classifier, AveragedClassifier)
        else classifier.predict_log_joint(samples)
    )
    target = classifier.variables[-1].name
    blocks, header = [], [*kept, f"predicted {target}" if target in kept else target]
    if proba:
        blocks.append(np.exp(log_posterior(log_joint)))
        header += [f"P({label})" for label in classifier.classes]
    if joint:
        blocks.append(log_joint)
        header += [f"log_joint({label})" for label in classifier.classes]
    yield list(header)
    numbers = np.hstack(blocks).tolist() if blocks else [[]] * samples.n_samples
    cells = list(zip(*kept.values(), strict=True)) if kept else [()] * samples.n_samples
    for before, best, row in zip(cells, log_joint.argmax(axis=1), numbers, strict=True):
        yield [*before, classifier.classes[best], *row]
