"""``milpbn report``: a result as one web page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from milpbn.cli.outputs import check_outputs
from milpbn.cli.sections import verb
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import DATA, FILE
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.data.dataset import Dataset
    from milpbn.network.formats.classifier_files import AnyClassifier


@verb(name="report", short_help="Write a result as one web page.")
@click.argument("result", type=FILE)
@click.argument("data", type=DATA, required=False)
@click.option(
    "--classifier", type=FILE, help="The run's classifier; by default its parameters are estimated anew."
)
@click.option("--output", type=FILE, default="report.html", show_default=True, help="The page, .html.")
@table_options
def page(result: str, data: str | None, classifier: str | None, output: str, table: TableOptions) -> None:
    """Write RESULT, a result.json, as one web page: problem, answer, gap, network, explanations, accuracy, and search.

    The page is one file without scripts, and needs no network connection. With DATA, the training data of the result,
    it also has what the score loses without each arc, explanations, and accuracies, on the test rows where the catalog
    splits the data. Give the same options of the table as in the run.

    \b
    Example:
      milpbn solve tic-tac-toe --time-limit 60 --output result.json --classifier classifier.json
      milpbn report result.json tic-tac-toe --classifier classifier.json --output report.html
    """
    if not output.lower().endswith((".html", ".htm")):
        raise InputError(f"The report is a web page, whose name ends in .html; {output!r} does not.")
    check_outputs({"--output": output}, [result, data, classifier])

    from milpbn.claims.result import Result
    from milpbn.network import Classifier, load_any_classifier
    from milpbn.report import report_page
    from milpbn.solving.arc_losses import arc_losses
    from milpbn.util import stages
    from milpbn.util.atomic import atomic_write_text

    values = Result.read(result)
    loaded = Result.from_dict(values, f"The result {result!r}")
    network = None if classifier is None else load_any_classifier(classifier)
    train = test = losses = None
    if data is not None:
        with stages.shown():
            read, train = table.read_of(loaded, data)
            test = None if not read.test_indices.size else read.encode(train.variables, "test")
            if loaded.structure is not None:
                losses = arc_losses(train, loaded.structure, loaded.score)
                score = loaded.score
                if network is None:
                    network = Classifier.fit(
                        train,
                        loaded.structure,
                        score.smoothing,
                        {} if score.gamma is None else {"score": score.to_dict()},
                        smoothing_towards=score.smoothing_towards,
                    )
                else:
                    train, test = _encoded(network, data, table, test is not None)
    version = values.get("version")
    atomic_write_text(
        output,
        report_page(
            loaded,
            classifier=network,
            train=train,
            test=test,
            losses=losses,
            version=version if isinstance(version, str) else None,
            request=None if data is None else table.request(data),
        ),
    )
    click.echo(f"report     {output}")


def _encoded(
    network: AnyClassifier, data: str, table: TableOptions, split: bool
) -> tuple[Dataset, Dataset | None]:
    """Return the training rows, and the test rows if there are any, as codes of the states of a classifier's file."""
    from milpbn.cli.evaluate import RowOptions, read_rows

    if not split:
        return read_rows(network, data, RowOptions.of(table, "all"))[0], None
    train, test = (read_rows(network, data, RowOptions.of(table, rows))[0] for rows in ("train", "test"))
    return train, test
