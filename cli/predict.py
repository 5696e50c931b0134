"""``milpbn predict``: predicts classes and class probabilities of new samples."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from milpbn.cli.outputs import check_outputs
from milpbn.cli.sections import verb
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.data import Dataset
    from milpbn.network.formats.classifier_files import AnyClassifier


@verb(short_help="Predict the classes of samples.")
@click.argument("classifier")
@click.argument("data")
@click.option("--output", metavar="FILE", help="CSV file; by default the table goes to stdout.")
@click.option("--proba", is_flag=True, help="Add P(class | sample) of every class.")
@click.option("--joint", is_flag=True, help="Add log P(class, sample) of every class, in nats.")
@click.option("--data-dir", metavar="DIR", help="Folder of the catalog; by default the variable MILPBN_DATA.")
@click.option("-q", "--quiet", is_flag=True, help="No notes on stderr.")
def predict(
    classifier: str,
    data: str,
    output: str | None,
    proba: bool,
    joint: bool,
    data_dir: str | None,
    quiet: bool,
) -> None:
    """Predict the class of every row of DATA, in the order of the rows.

    Columns are found by name; the class column may be absent. Features that are missing, or whose column is absent, are
    marginalised: their states are summed over, exactly. Values that training never saw contribute nothing to the class
    scores. A note reports the numbers of both.

    \b
    Example:
      milpbn predict classifier.json new.csv --proba --output predicted.csv
    """
    check_outputs({"--output": output}, [classifier, data])

    from milpbn.data import read_encodings
    from milpbn.network import AveragedClassifier, load_any_classifier
    from milpbn.util.atomic import atomic_write_text

    loaded = load_any_classifier(classifier)
    if joint and isinstance(loaded, AveragedClassifier):
        raise InputError(
            f"The classifier {classifier!r} is an average of several networks, which has no joint probabilities; leave "
            "out --joint, or use --proba."
        )
    samples = read_encodings(data, loaded.variable_sets, data_dir=data_dir)
    if not quiet:
        for note in samples.notes:
            click.echo(note, err=True)
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(_rows(loaded, samples, proba, joint))
    if output is None:
        click.echo(text.getvalue(), nl=False, color=True)  # color=True keeps escape sequences inside labels
    else:
        atomic_write_text(output, text.getvalue())


def _rows(classifier: AnyClassifier, samples: Dataset, proba: bool, joint: bool) -> Iterator[list[object]]:
    """Yield the header and one row per sample: the predicted class, then a column per class and requested figure."""
    import numpy as np

    from milpbn.network import AveragedClassifier, log_posterior

    log_joint = (
        classifier.predict_log_posterior(samples)
        if isinstance(classifier, AveragedClassifier)
        else classifier.predict_log_joint(samples)
    )
    blocks, header = [], [classifier.variables[-1].name]
    if proba:
        blocks.append(np.exp(log_posterior(log_joint)))
        header += [f"P({label})" for label in classifier.classes]
    if joint:
        blocks.append(log_joint)
        header += [f"log_joint({label})" for label in classifier.classes]
    yield list(header)
    numbers = np.hstack(blocks).tolist() if blocks else [[]] * samples.n_samples
    for best, row in zip(log_joint.argmax(axis=1), numbers, strict=True):
        yield [classifier.classes[best], *row]
