"""``milpbn predict``: predicts classes and class probabilities of new samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.decision_options import DecisionOptions, decision_options, set_notes, set_options
from milpbn.cli.search_options import NO_NOTES
from milpbn.cli.sections import Values, flag, option, option_group, options, verb
from milpbn.cli.steps import say_notes, write_text
from milpbn.cli.table_options import DATA_DIR, IGNORE_UNSEEN, load_table, text_options
from milpbn.cli.types import DATA, FILE, NAMES, OUTPUT
from milpbn.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from milpbn.data import Dataset
    from milpbn.data.raw_table import RawTable
    from milpbn.network.formats.classifier_files import AnyClassifier


@verb(short_help="Predict the classes of samples.")
@click.argument("classifier", type=FILE)
@click.argument("data", type=DATA)
@option_group(
    "Options",
    "written",
    option("--output", OUTPUT, "CSV file; by default the table goes to stdout."),
    flag("--proba", "Add P(class | sample) of every class."),
    flag("--interval", "Add P(class | sample) with its 95 % interval, from how few rows the tables come."),
    flag("--joint", "Add log P(class, sample) of every class, in nats."),
    flag("--strangeness", "Add the share of rows of the network that are more probable than the row."),
    option(
        "--keep",
        NAMES,
        "Columns of DATA to write before the predictions; by default the identifiers that training left out.",
        multiple=True,
    ),
)(Values)
@set_options
@decision_options("The class that is missed; default the rarer of two.")
@options(IGNORE_UNSEEN, DATA_DIR)
@text_options
@options(NO_NOTES)
def predict(
    classifier: str,
    data: str,
    written: Values,
    sets: Values,
    decision: DecisionOptions,
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

    With --strangeness, a row that is less probable than nearly all rows that the network generates has a number near 1,
    whatever its class. Features that the row lacks, and values that training never saw, are left out of both.

    With costs (--cost, --costs, or those of CLASSIFIER), the class of least expected cost is predicted, else the most
    probable one. With --abstain, it is "do not know" where that costs less.

    With --interval, each probability stands between the ends of its interval: 95 % of the networks have it there whose
    tables are drawn by what the training rows say of them, for this structure. Tables that are not smoothed counts
    (--parameters cll, hybrid or temperature, --recipe accurate) have none.

    With --conformal 0.1, the column "set" has the classes that are not ruled out, with " | " between them: at most 10 %
    of the sets lack the true class. CLASSIFIER must be calibrated (milpbn decide --conformal).

    \b
    Examples:
      milpbn predict classifier.json new.csv --proba --output predicted.csv
      milpbn predict classifier.json new.csv --keep customer,date
      milpbn predict classifier.json new.csv --cost missed=20 false-alarm=1 --positive sick
      milpbn predict classifier.json new.csv --abstain 0.1
      milpbn predict classifier.json new.csv --interval
      milpbn predict calibrated.json new.csv --conformal 0.1
    """
    from milpbn.data import read_encodings
    from milpbn.network import AveragedClassifier, load_any_classifier

    loaded = decision.applied(load_any_classifier(classifier))
    needing = "--joint" if written.joint else "--strangeness" if written.strangeness else None
    if needing is not None and isinstance(loaded, AveragedClassifier):
        raise InputError(
            f"The classifier {classifier!r} is an average of several networks, which has no joint probabilities; leave "
            f"out {needing}, or use --proba."
        )
    table = load_table(loaded, data, data_dir, form)
    kept = _kept_columns(loaded, table, [name for names in written.keep for name in names])
    samples = read_encodings(table, loaded.variable_sets, ignore_unseen=ignore_unseen)
    say_notes(samples.notes, quiet=quiet)
    found = _predictions(loaded, samples, kept, written, sets)
    say_notes(set_notes(loaded, sets), quiet=quiet)
    write_text(written.output, found.to_csv(index=False, lineterminator="\n"))


def _kept_columns(classifier: AnyClassifier, table: RawTable, asked: Sequence[str]) -> pd.DataFrame:
    """Return the cells of the columns that are written before the predictions; missing ones are empty."""
    import pandas as pd

    from milpbn.data.cells import texts_of
    from milpbn.data.left_out import left_out_of
    from milpbn.data.row_index import is_unnamed

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
    return pd.DataFrame({name: texts_of(frame[name]) for name in dict.fromkeys(asked or identifiers)})


def _predictions(
    classifier: AnyClassifier, samples: Dataset, kept: pd.DataFrame, written: Values, sets: Values
) -> pd.DataFrame:
    """Return one row per sample: kept cells, the predicted class, a column per class and figure."""
    import numpy as np
    import pandas as pd

    from milpbn.network import AveragedClassifier, log_posterior

    log_joint = (
        classifier.predict_log_posterior(samples)
        if isinstance(classifier, AveragedClassifier)
        else classifier.predict_log_joint(samples)
    )
    target, labels = classifier.variables[-1].name, np.array(classifier.classes, dtype=object)
    blocks = [kept, pd.DataFrame({target: classifier.answered(log_joint, labels)})]
    if sets.error is not None:
        inside = classifier.predict_set(samples, sets.error, by_class=sets.by_class)
        blocks.append(pd.DataFrame({"set": [" | ".join(labels[row]) for row in inside]}))
    if written.proba or written.interval:
        found = {"P": np.exp(log_posterior(log_joint))}
        if written.interval:
            low, high = classifier.predict_interval(samples)
            found = {"low": low, **found, "high": high}
        columns = {f"{key}({x})": p[:, c] for c, x in enumerate(labels) for key, p in found.items()}
        blocks.append(pd.DataFrame(columns))
    if written.joint:
        blocks.append(pd.DataFrame(log_joint, columns=[f"log_joint({x})" for x in labels]))
    if written.strangeness:
        from milpbn.network.monitoring import strangeness

        assert not isinstance(classifier, AveragedClassifier)
        blocks.append(pd.DataFrame({"strangeness": strangeness(classifier, samples)}))
    whole, names = pd.concat(blocks, axis=1), list[str]()
    for column in map(str, whole.columns):
        while column in names:
            column = f"predicted {column}"
        names.append(column)
    return whole.set_axis(names, axis=1)
