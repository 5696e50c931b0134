"""``milpbn report``: a result as one web page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from milpbn.cli.decision_options import DecisionOptions, decision_options
from milpbn.cli.sections import Values, option, option_group, options, verb
from milpbn.cli.steps import write_json, write_text
from milpbn.cli.table_options import RowOptions, TableOptions, load_table, table_options
from milpbn.cli.types import DATA, FILE, NAME, OUTPUT, Parsed, parse_names
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.data import Dataset
    from milpbn.network.formats.classifier_files import AnyClassifier


@verb(name="report", short_help="Write a result as one web page.")
@click.argument("result", type=FILE)
@click.argument("data", type=DATA, required=False)
@options(
    option("--classifier", FILE, "The run's classifier; by default its parameters are estimated anew."),
    option("--output", OUTPUT, "The page, .html.", default="report.html", show_default=True),
    option("--card", OUTPUT, "Write the model card, the checklist and the figures, as JSON, too."),
)
@option_group(
    "Test rows",
    "tested",
    option("--test", DATA, "Rows that were not used for learning; default the test rows of DATA."),
    option("--id", NAME, "Column of --test that names its rows; it may be no column of DATA."),
    option(
        "--rows",
        Parsed("id,id,...", parse_names),
        "Rows to explain, by --id; by default those with the lowest margins.",
        multiple=True,
    ),
)(Values)
@decision_options("The class that is missed; default the rarer of two.")
@table_options
def page(
    result: str,
    data: str | None,
    classifier: str | None,
    output: str,
    card: str | None,
    tested: Values,
    decision: DecisionOptions,
    table: TableOptions,
) -> None:
    """Write RESULT, a result.json, as one web page: problem, answer, gap, network, explanations, accuracy, and search.

    The page is one file without scripts, and needs no network connection. With DATA, the training data of the result,
    it also has what the score loses without each arc, explanations, and accuracies, on the rows of --test, or on the
    test rows where the catalog splits the data. Give the same options of the table as in the run.

    With costs (--cost, --costs, or those of the classifier), decisions and what they cost stand first. The page ends
    with a checklist of what a publication of a Bayesian network should say, filled in as far as the result knows it.

    \b
    Example:
      milpbn solve tic-tac-toe --time-limit 60 --output result.json --classifier classifier.json
      milpbn report result.json tic-tac-toe --classifier classifier.json --output report.html
      milpbn report result.json train.csv --test test.csv --id patient --rows A17,B4 --card card.json
    """
    if not output.lower().endswith((".html", ".htm")):
        raise InputError(f"The report is a web page, whose name ends in .html; {output!r} does not.")

    from milpbn.claims.result import Result
    from milpbn.network import Classifier, load_any_classifier
    from milpbn.report import report
    from milpbn.solving.gains import arc_losses
    from milpbn.util import stages

    values = Result.read(result)
    loaded = Result.from_dict(values, f"The result {result!r}")
    network = None if classifier is None else load_any_classifier(classifier)
    train = test = losses = rows = None
    if tested.test is not None and data is None:
        raise InputError("--test is beside the training data; name them as DATA.")
    if (tested.id is not None or tested.rows) and None in (tested.test, tested.id):
        raise InputError("--id and --rows name rows of --test; give all of --test, --id and --rows.")
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
    if tested.test is not None and network is not None:
        test, rows = _test_rows(network, table.for_rows("all"), tested)
    if network is not None:
        network = decision.applied(network)
    version = values.get("version")
    text, about = report(
        loaded,
        network,
        train,
        test,
        losses,
        version if isinstance(version, str) else None,
        None if data is None else table.as_in(loaded).request(data),
        rows,
    )
    write_text(output, text)
    write_json(card, about)
    click.echo(f"report     {output}")


def _test_rows(
    classifier: AnyClassifier, how: RowOptions, tested: Values
) -> tuple[Dataset, dict[str, int] | None]:
    """Return the rows of ``--test``, and the positions of those of ``--rows`` by what they are called."""
    from milpbn.data.cells import texts_of
    from milpbn.network import AveragedClassifier

    samples, _ = how.read(classifier, tested.test)
    asked = [name for names in tested.rows for name in names]
    if not asked:
        return samples, None
    if isinstance(classifier, AveragedClassifier):
        raise InputError(
            "--rows needs one network to explain, and the classifier is an average; leave it out."
        )
    column, frame = tested.id, load_table(classifier, tested.test, how.data_dir, how.form).frame
    if column not in frame.columns:
        raise InputError(f"--id is {column!r}, which is no column of {tested.test!r}.")
    cells = texts_of(frame[column])
    for name in asked:
        if (count := cells.count(name)) != 1:
            raise InputError(
                f"--rows names {name!r}, which {count} rows of {tested.test!r} have as their {column}; name a row by a "
                "value of its own."
            )
    return samples, {f"{column} {name}": cells.index(name) for name in asked}
