"""``milpbn report``: a result as one web page."""

from __future__ import annotations

import click

from milpbn.cli.sections import option, options, verb
from milpbn.cli.steps import write_text
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import DATA, FILE, OUTPUT
from milpbn.errors import InputError


@verb(name="report", short_help="Write a result as one web page.")
@click.argument("result", type=FILE)
@click.argument("data", type=DATA, required=False)
@options(
    option("--classifier", FILE, "The run's classifier; by default its parameters are estimated anew."),
    option("--output", OUTPUT, "The page, .html.", default="report.html", show_default=True),
)
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

    from milpbn.claims.result import Result
    from milpbn.network import Classifier, load_any_classifier
    from milpbn.report import report_page
    from milpbn.solving.gains import arc_losses
    from milpbn.util import stages

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
                else:  # codes of the states of the classifier's file
                    train, _ = table.for_rows("all" if test is None else "train").read(network, data)
                    test = None if test is None else table.for_rows("test").read(network, data)[0]
    version = values.get("version")
    text = report_page(
        loaded,
        classifier=network,
        train=train,
        test=test,
        losses=losses,
        version=version if isinstance(version, str) else None,
        request=None if data is None else table.request(data),
    )
    write_text(output, text)
    click.echo(f"report     {output}")
