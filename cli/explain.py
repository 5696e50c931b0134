"""``milpbn explain``: what a classifier has learnt, and why it predicts a class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.evaluate import RowOptions, read_rows, row_options
from milpbn.cli.outputs import check_outputs
from milpbn.cli.report import say
from milpbn.cli.sections import option, option_group, verb
from milpbn.cli.types import CLASS, COUNT, DATA, FILE, NUMBER
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.data import Dataset
    from milpbn.network.explanation import LocalExplanation, SeveralLocalExplanations
    from milpbn.network.formats.classifier_files import AnyClassifier
    from milpbn.solving.explaining import StructureExplanation


@dataclass(frozen=True)
class ExplainOptions:
    """What is explained, beside the classifier."""

    rows: tuple[int, ...]
    label: str | None
    against: str | None
    gamma: float | None
    result: str | None
    seconds: float

    def check(self, data: str | None, chosen: RowOptions) -> None:
        """Refuse options that contradict one another, or lack data."""
        about: dict[str, Any] = {"--row": self.rows or None, "--result": self.result, "--gamma": self.gamma}
        about |= {
            "--split": chosen.split,
            "--weights": chosen.weights,
            "--ignore-unseen": chosen.ignore_unseen or None,
            **{f"--{name.replace('_', '-')}": value for name, value in chosen.form.items()},
        }
        given = [name for name, value in about.items() if value is not None]
        if data is None and given:
            raise InputError(f"{given[0]} is about rows of data; add DATA behind the classifier.")
        if self.rows and chosen.weights is not None:
            raise InputError(
                "--weights changes no explanation of a single prediction; leave it out, or --row."
            )
        if self.rows and (self.result is not None or self.gamma is not None):
            raise InputError("--row explains single predictions; leave out --result and --gamma, or --row.")
        if not self.rows and (self.label is not None or self.against is not None):
            raise InputError("--label and --against are for the prediction of a row; add --row K.")
        if self.seconds and self.result is None:
            raise InputError("--seconds is for the searches of --result; add --result RESULT.")


asked_options = option_group(
    "Options",
    "asked",
    option(
        "--row", "rows", type=COUNT, multiple=True, help="Explain the prediction of this row, counted from 1."
    ),
    option("--label", type=CLASS, help="Class to explain; by default the most probable one."),
    option("--against", type=CLASS, help="Class to compare with; by default the second most probable one."),
    option(
        "--gamma", type=NUMBER, help="List the rows with a smaller log-margin; by default the classifier's."
    ),
    option(
        "--result",
        type=FILE,
        metavar="RESULT",
        help="Also explain the structure of this result.json of DATA.",
    ),
    option(
        "--seconds",
        type=NUMBER,
        default=0.0,
        help="With --result: search this long for the best structures without each feature.",
    ),
)(ExplainOptions)


@verb(short_help="Explain a classifier, or its predictions.")
@click.argument("classifier", type=FILE)
@click.argument("data", type=DATA, required=False)
@asked_options
@row_options
@click.option(
    "--shown", type=COUNT, default=20, show_default=True, help="Most lines of each part of the text."
)
@click.option("--output", type=FILE, help="JSON file with all numbers.")
@click.option("-q", "--quiet", is_flag=True, help="No notes on stderr.")
def explain(
    classifier: str,
    data: str | None,
    asked: ExplainOptions,
    chosen: RowOptions,
    shown: int,
    output: str | None,
    quiet: bool,
) -> None:
    """Explain CLASSIFIER by its tables of log-ratios, whose sums are the log-odds of every prediction.

    With DATA, the importance of the features, the histogram of the margins and the rows below gamma are added. With
    --row, the prediction of that row is written as a sum. With --result, DATA are the training rows of the result, and
    its structure is explained: arcs in every optimum or in none, what each feature is worth to the score, and the best
    structures that differ by one change.

    \b
    Examples:
      milpbn explain classifier.json
      milpbn explain classifier.json test.csv --row 3
      milpbn explain classifier.json train.csv --result result.json --seconds 10
    """
    asked.check(data, chosen)
    if shown < 1:
        raise InputError(f"--shown must be at least 1, got {shown}.")
    check_outputs({"--output": output}, [classifier, data, asked.result])

    from milpbn.network import load_any_classifier
    from milpbn.util.atomic import atomic_write_text
    from milpbn.util.jsonable import dump_json

    loaded = load_any_classifier(classifier)
    samples = None
    if data is not None:
        # A result is of training rows.
        default = "test" if asked.result is None else "train"
        samples, _ = read_rows(loaded, data, chosen, default)
        _check_rows(samples, asked.rows)
        if not quiet:
            for note in _row_notes(samples, asked.rows) if asked.rows else samples.notes:
                say(note, err=True)
    document: dict[str, Any]
    if asked.rows:
        assert samples is not None
        texts, document = _predictions(loaded, samples, asked, shown)
    else:
        found = loaded.explain_global(samples, gamma=asked.gamma)
        texts, document = [found.to_text(shown)], {"classifier": found.to_dict()}
    if asked.result is not None:
        assert samples is not None
        structure = _structure(asked.result, samples, asked.seconds)
        texts.append(structure.to_text(shown))
        document["structure"] = structure.to_dict()
    say("\n".join(texts))
    if output is not None:
        atomic_write_text(output, dump_json(document))


def _check_rows(samples: Dataset, rows: tuple[int, ...]) -> None:
    for row in rows:
        if not 1 <= row <= samples.n_samples:
            raise InputError(
                f"--row {row}: the data {samples.name!r} have the rows 1 to {samples.n_samples}."
            )


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
    classifier: AnyClassifier, samples: Dataset, asked: ExplainOptions, shown: int
) -> tuple[list[str], dict[str, Any]]:
    """Return the explanations of some rows as texts, and as JSON values."""
    from dataclasses import replace

    import numpy as np

    explained: Sequence[LocalExplanation | SeveralLocalExplanations] = classifier.explain_local(
        samples.take(np.array(asked.rows) - 1), label=asked.label, against=asked.against
    )
    found = [replace(one, sample=row - 1) for one, row in zip(explained, asked.rows, strict=True)]
    values = [{"row": row, **one.to_dict()} for one, row in zip(found, asked.rows, strict=True)]
    return [one.to_text(shown) for one in found], {"predictions": values}


def _structure(path: str, samples: Dataset, seconds: float) -> StructureExplanation:
    """Explain the structure of a result; rows that the search dropped are dropped here, too."""
    import numpy as np

    from milpbn.claims.result import Result
    from milpbn.solving.explaining import explain_result
    from milpbn.util import interrupts

    result = Result.load(path)
    complete = samples.take(np.flatnonzero((samples.codes >= 0).all(axis=1)))
    try:
        with interrupts.deferred():
            return explain_result(result, complete, seconds=seconds, interrupted=interrupts.requested)
    except InputError as error:
        raise InputError(f"--result {path!r}: {error}") from None
