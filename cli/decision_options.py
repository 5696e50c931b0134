"""The options of decisions: what they cost, and which class is missed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from milpbn.cli.sections import option, option_group
from milpbn.cli.types import CLASS, FILE, TEXT
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.network.formats.classifier_files import AnyClassifier

COST = option(
    "--cost",
    TEXT,
    "What an error costs, of two classes: predict the class of least expected cost.",
    nargs=2,
    metavar="missed=X false-alarm=Y",
)
COSTS = option(
    "--costs costs_file",
    FILE,
    "The same for any classes: a CSV file with the true labels in the first column, and a column of costs for each "
    "predicted label.",
)


@dataclass(frozen=True)
class DecisionOptions:
    """The costs as `milpbn.solve` takes them, with the class that is missed; and the class to detect."""

    costs: dict[str, Any] | None
    positive: str | None

    def applied(self, classifier: AnyClassifier) -> AnyClassifier:
        """Return a classifier with these costs; without any, with its own."""
        return classifier if self.costs is None else classifier.deciding(self.costs)


def _gather(cost: tuple[str, str] | None, costs_file: str | None, positive: str | None) -> DecisionOptions:
    if cost and costs_file is not None:
        raise InputError("--cost and --costs both say what decisions cost; leave out one of them.")
    if costs_file is not None:
        return DecisionOptions(_read(costs_file), positive)
    if not cost:
        return DecisionOptions(None, positive)
    found: dict[str, Any] = {} if positive is None else {"positive": positive}
    for word in cost:
        key, equals, value = word.partition("=")
        key = key.replace("-", "_")
        if not equals or key not in ("missed", "false_alarm") or key in found:
            raise InputError(f"--cost has {word!r}; write --cost missed=20 false-alarm=1.")
        found[key] = value
    return DecisionOptions(found, positive)


def _read(path: str) -> dict[str, dict[str, str]]:
    """Return the costs in a file by true label and predicted label."""
    import csv

    from milpbn.util.jsonable import read_text

    rows = [row for row in csv.reader(read_text(path, "file of costs").splitlines()) if row]
    if len(rows) < 2:
        raise InputError(
            f"The file of costs {path!r} needs a line with the predicted labels, and a line for each true label."
        )
    labels, found = [label.strip() for label in rows[0][1:]], {}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise InputError(
                f"The file of costs {path!r} has {len(row)} cells in line {number}, and {len(rows[0])} in the first."
            )
        found[row[0].strip()] = dict(zip(labels, (cell.strip() for cell in row[1:]), strict=True))
    return found


def decision_options(positive: str) -> Any:
    """Return a decorator that adds the argument ``decision`` to a verb; `positive` is the help of ``--positive``."""
    return option_group("Decision", "decision", COST, COSTS, option("--positive", CLASS, positive))(_gather)
