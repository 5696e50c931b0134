"""``milpbn explain``: what a classifier has learnt, and why it predicts a class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.decision_options import monotone_option
from milpbn.cli.report import say
from milpbn.cli.search_options import NO_NOTES
from milpbn.cli.sections import Values, option, option_group, options, verb
from milpbn.cli.steps import say_notes, write_json
from milpbn.cli.table_options import RowOptions, TableOptions, row_options
from milpbn.cli.types import CLASS, COUNT, DATA, FILE, NUMBER, OUTPUT
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.data import Dataset
    from milpbn.network.explanation import LocalExplanation, SeveralLocalExplanations
    from milpbn.network.formats.classifier_files import AnyClassifier
    from milpbn.network.monotone.check import MonotoneCheck
    from milpbn.solving.explaining import StructureExplanation


@verb(short_help="Explain a classifier, or its predictions.")
@click.argument("classifier", type=FILE)
@click.argument("data", type=DATA, required=False)
@option_group(
    "Options",
    "asked",
    option("--row rows", COUNT, "Explain the prediction of this row, counted from 1.", multiple=True),
    option("--label", CLASS, "Class to explain; by default the most probable one."),
    option("--against", CLASS, "Class to compare with; by default the second most probable one."),
    option("--gamma", NUMBER, "List the rows with a smaller log-margin; by default the classifier's."),
    monotone_option("Check in which of these features the log-odds of a class"),
    option("--positive", CLASS, "The class that --monotone is about; default the rarer of two."),
    option("--result", FILE, "Also explain the structure of this result.json of DATA.", metavar="RESULT"),
    option(
        "--seconds",
        NUMBER,
        "With --result: search this long for the best structures without each feature.",
        default=0.0,
    ),
)(Values)
@row_options
@options(
    option("--shown", COUNT, "Most lines of each part of the text.", default=20, show_default=True),
    option("--output", OUTPUT, "JSON file with all numbers."),
    NO_NOTES,
)
def explain(
    classifier: str,
    data: str | None,
    asked: Values,
    chosen: RowOptions,
    shown: int,
    output: str | None,
    quiet: bool,
) -> None:
    """Explain CLASSIFIER by its tables of log-ratios, whose sums are the log-odds of every prediction.

    With DATA, the importance of the features, the histogram of the margins and the rows below gamma are added. With
    --row, the prediction of that row is written as a sum, with the 95 % interval of its probability (as predict
    --interval). With --result, DATA are the training rows of the result, and
    its structure is explained: arcs in every optimum or in none, what each feature is worth to the score, and the best
    structures that differ by one change.

    \b
    Examples:
      milpbn explain classifier.json
      milpbn explain classifier.json test.csv --row 3
      milpbn explain classifier.json --monotone age=+
      milpbn explain classifier.json train.csv --result result.json --seconds 10
    """
    _check(data, asked, chosen)
    if shown < 1:
        raise InputError(f"--shown must be at least 1, got {shown}.")

    from milpbn.network import load_any_classifier

    loaded = load_any_classifier(classifier)
    samples = None
    if data is not None:
        # A result is of training rows.
        samples, _ = chosen.read(loaded, data, "test" if asked.result is None else "train")
        for row in asked.rows:
            check_row(row, samples)
        say_notes(_row_notes(samples, asked.rows) if asked.rows else samples.notes, quiet=quiet)
    document: dict[str, Any]
    if asked.rows:
        assert samples is not None
        texts, document = _predictions(loaded, samples, asked, shown)
    else:
        found = loaded.explain_global(samples, gamma=asked.gamma)
        texts, document = [found.to_text(shown)], {"classifier": found.to_dict()}
        if checks := _monotone(loaded, asked):
            texts.append("\n".join(["monotone, over all complete rows:", *(f"  {one}" for one in checks)]))
            document["monotone"] = [one.to_dict() for one in checks]
    if asked.result is not None:
        assert samples is not None
        assert data is not None
        structure = _structure(asked.result, data, chosen, samples, asked.seconds)
        texts.append(structure.to_text(shown))
        document["structure"] = structure.to_dict()
    say("\n".join(texts))
    write_json(output, document)


def _check(data: str | None, asked: Values, chosen: RowOptions) -> None:
    """Refuse options that contradict one another, or lack data."""
    about = {"--row": asked.rows or None, "--result": asked.result, "--gamma": asked.gamma}
    about |= {"--split": chosen.split, "--weights": chosen.weights}
    about |= {"--ignore-unseen": chosen.ignore_unseen or None}
    about |= {f"--{name.replace('_', '-')}": value for name, value in chosen.form.items()}
    given = [name for name, value in about.items() if value is not None]
    if data is None and given:
        raise InputError(f"{given[0]} is about rows of data; add DATA behind the classifier.")
    if asked.rows and chosen.weights is not None:
        raise InputError("--weights changes no explanation of a single prediction; leave it out, or --row.")
    if asked.rows and (asked.result is not None or asked.gamma is not None):
        raise InputError("--row explains single predictions; leave out --result and --gamma, or --row.")
    if asked.rows and asked.monotone is not None:
        raise InputError("--monotone is about all complete rows; leave out --row, or --monotone.")
    if not asked.rows and (asked.label is not None or asked.against is not None):
        raise InputError("--label and --against are for the prediction of a row; add --row K.")
    if asked.seconds and asked.result is None:
        raise InputError("--seconds is for the searches of --result; add --result RESULT.")


def check_row(row: int, samples: Dataset) -> None:
    """Refuse the number of a row that the data do not have."""
    if not 1 <= row <= samples.n_samples:
        raise InputError(f"--row {row}: the data {samples.name!r} have the rows 1 to {samples.n_samples}.")


def _row_notes(samples: Dataset, rows: tuple[int, ...]) -> Iterator[str]:
    """Yield a sentence for each of some rows that lacks values, or has values that training never saw."""
    from milpbn.data.encodings import missing_values, unknown_values

    for row in rows:
        one = samples.take([row - 1])
        parts = []
        if missing := missing_values(one):
            parts.append(f"without {', '.join(map(repr, missing))}, marginalised")
        if unknown := unknown_values(one):
            parts.append(
                f"with values of {', '.join(map(repr, unknown))} that training never saw, which contribute nothing"
            )
        if parts:
            yield f"Row {row}: {'; '.join(parts)}."


def _predictions(
    classifier: AnyClassifier, samples: Dataset, asked: Values, shown: int
) -> tuple[list[str], dict[str, Any]]:
    """Return the explanations of some rows as texts, and as JSON values."""
    import numpy as np

    from milpbn.network import Classifier

    rows = samples.take(np.array(asked.rows) - 1)
    explained: Sequence[LocalExplanation | SeveralLocalExplanations] = classifier.explain_local(
        rows, label=asked.label, against=asked.against
    )
    found = [one.at(row - 1) for one, row in zip(explained, asked.rows, strict=True)]
    values = [{"row": row, **one.to_dict()} for one, row in zip(found, asked.rows, strict=True)]
    texts = [one.to_text(shown) for one in found]
    if isinstance(classifier, Classifier):
        said, intervals = classifier.intervals_in_words(rows, [one.label for one in found])
        texts = [f"{text}\n  {interval}" for text, interval in zip(texts, said, strict=True)]
        if intervals is not None:
            values = [{**one, "intervals": own.tolist()} for one, own in zip(values, intervals, strict=True)]
    return texts, {"predictions": values}


def _monotone(classifier: AnyClassifier, asked: Values) -> tuple[MonotoneCheck, ...]:
    """Return whether the features are monotone that --monotone names, or that the classifier was fitted for."""
    from milpbn.network.monotone.check import check_classifier
    from milpbn.network.parameters.record import recorded_checks

    if asked.monotone is None:
        return recorded_checks(classifier)
    return check_classifier(classifier, asked.monotone, asked.positive)


def _structure(
    path: str, data: str, chosen: RowOptions, samples: Dataset, seconds: float
) -> StructureExplanation:
    """Explain the structure of a result by its training rows, which are read as in the run if the result says how.

    Else they are the rows of the classifier, without those that lack values, as the search dropped them.
    """
    import numpy as np

    from milpbn.claims.result import Result
    from milpbn.solving.explaining import explain_result
    from milpbn.util import interrupts

    result = Result.load(path)
    if result.request is not None:
        given = chosen.form if chosen.data_dir is None else {**chosen.form, "data_dir": chosen.data_dir}
        known = TableOptions(result.request.rows, {**result.request.options, **given})
        rows = known.read(data, in_units=result.score.needs_units).dataset("train")
    else:
        searched = () if result.structure is None else result.structure.names
        if set(searched) < set(samples.names):  # the classifier has finer intervals besides
            samples = samples.of_variables(searched)
        rows = samples.take(np.flatnonzero((samples.codes >= 0).all(axis=1)))
    try:
        with interrupts.deferred():
            return explain_result(result, rows, seconds=seconds, interrupted=interrupts.requested)
    except InputError as error:
        raise InputError(f"--result {path!r}: {error}") from None
