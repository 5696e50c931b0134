"""The options of decisions: what they cost, and which class is missed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from milpbn.cli.sections import Values, flag, given, option, option_group
from milpbn.cli.types import CLASS, FILE, MONOTONE, NUMBER, Parsed
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.network.formats.classifier_files import AnyClassifier


def _parse_cost(text: str) -> tuple[str, str]:
    """Return the key and the value of a word of ``--cost``."""
    key, equals, value = text.partition("=")
    key = key.replace("-", "_")
    if not equals or key not in ("missed", "false_alarm"):
        raise ValueError("is neither missed=X nor false-alarm=Y; write --cost missed=20 false-alarm=1")
    return key, value


COST = option(
    "--cost",
    Parsed("missed=X|false-alarm=Y", _parse_cost),
    "What an error costs, of two classes: predict the class of least expected cost.",
    nargs=2,
    metavar="missed=X false-alarm=Y",
)
COSTS = option(
    "--costs costs_file",
    FILE,
    "The same for any classes: a CSV file with the true labels in the first column, and a column of costs for each "
    "predicted label, and possibly one of abstain.",
)


ABSTAIN = option(
    "--abstain",
    NUMBER,
    'What the answer "do not know" costs, which is given where that costs less than any class; without other costs, '
    "where an error costs 1.",
    metavar="COST",
)


def monotone_option(help_text: str) -> Any:
    """Return the option ``--monotone`` with a beginning of its help."""
    return option(
        "--monotone",
        MONOTONE,
        f"{help_text} never fall (+) or never rise (-), whatever the others are; for text, the states in their order. "
        "Example: --monotone age=+,income=-,grade=low:mid:high",
    )


def with_positive(monotone: dict[str, str] | None, positive: str | None) -> dict[str, str] | None:
    """Return what ``--monotone`` says with the class that ``--positive`` names."""
    return monotone if monotone is None or positive is None else {**monotone, "--positive": positive}


@dataclass(frozen=True)
class DecisionOptions:
    """The costs as `milpbn.solve` takes them, with the class that is missed; and the class to detect."""

    costs: dict[str, Any] | None
    positive: str | None

    def applied(self, classifier: AnyClassifier) -> AnyClassifier:
        """Return a classifier with these costs; without any, with its own."""
        return classifier if self.costs is None else classifier.deciding(self.costs)


def _gather(
    cost: tuple[tuple[str, str], ...] | None,
    costs_file: str | None,
    abstain: float | None,
    positive: str | None,
) -> DecisionOptions:
    if cost and costs_file is not None:
        raise InputError("--cost and --costs both say what decisions cost; leave out one of them.")
    if costs_file is not None:
        costs = _read(costs_file)
        if abstain is not None and any("abstain" in (label, *row) for label, row in costs.items()):
            raise InputError(
                f"--abstain gives a cost, and the file of costs {costs_file!r} has 'abstain', too: leave out "
                "--abstain; if a class is called so, rename it."
            )
        return DecisionOptions(costs | given(abstain=abstain), positive)
    if not cost:
        return DecisionOptions(given(abstain=abstain) or None, positive)
    found: dict[str, Any] = {} if positive is None else {"positive": positive}
    if len(dict(cost)) < len(cost):
        raise InputError(
            f"--cost says {cost[0][0].replace('_', '-')} twice; write --cost missed=20 false-alarm=1."
        )
    return DecisionOptions(found | dict(cost) | given(abstain=abstain), positive)


def _read(path: str) -> dict[str, Any]:
    """Return the costs in a file by true label and predicted label."""
    from milpbn.data.separators import divide
    from milpbn.util.jsonable import read_text

    records = divide(read_text(path, "file of costs"), f"the file of costs {path!r}").records
    rows = [([cell.strip() for cell in record.cells], record.line) for record in records]
    if len(rows) < 2:
        raise InputError(
            f"The file of costs {path!r} needs a line with the predicted labels, and a line for each true label."
        )
    (head, _), found = rows[0], {}
    for row, line in rows[1:]:
        if len(row) != len(head):
            raise InputError(
                f"The file of costs {path!r} has {len(row)} cells in line {line}, and {len(head)} in the first."
            )
        found[row[0]] = dict(zip(head[1:], row[1:], strict=True))
    if found.keys() <= set(head):  # otherwise the labels themselves are refused, with the classes
        counts = Counter([row[0] for row, _ in rows[1:]]) | Counter(head[1:])
        twice = [label for label, count in counts.items() if count > 1]
        if twice:
            raise InputError(
                f"The file of costs {path!r} has the label {twice[0]!r} twice; each may occur once."
            )
    return found


def decision_options(positive: str) -> Any:
    """Return a decorator that adds the argument ``decision`` to a verb; `positive` is the help of ``--positive``."""
    return option_group("Decision", "decision", COST, COSTS, ABSTAIN, option("--positive", CLASS, positive))(
        _gather
    )


@option_group(
    "Options",
    "sets",
    option(
        "--conformal error",
        NUMBER,
        "Sets that lack the true class in at most this share of the rows, such as 0.1; milpbn decide calibrates them.",
        metavar="SHARE",
    ),
    flag("--per-class by_class", "With --conformal: at most this share of the rows of each class."),
)
def set_options(error: float | None, by_class: bool) -> Values:
    """Add the argument ``sets`` to verbs that give sets of classes; its error is None if they are not wanted."""
    if by_class and error is None:
        raise InputError("--per-class is about sets; add --conformal SHARE, such as --conformal 0.1.")
    return Values(error=error, by_class=by_class)


def set_notes(classifier: AnyClassifier, sets: Values) -> list[str]:
    """Return the notes on sets that the verbs print."""
    if sets.error is None or classifier.conformal is None:
        return []
    doubt = classifier.conformal.rare_classes(classifier.classes, sets.error, by_class=sets.by_class)
    return [] if doubt is None else [doubt]
