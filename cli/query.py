"""``milpbn query``: asks a classifier's network for probabilities of any variables, given the values of any others."""

from __future__ import annotations

import csv
import io
import warnings
from typing import TYPE_CHECKING

import click

from milpbn.cli.sections import flag, once, option, options, verb
from milpbn.cli.steps import json_line, say_notes, write_text
from milpbn.cli.types import COUNT, EVIDENCE, FILE, NAMES, OUTPUT
from milpbn.errors import InputError, MilpbnWarning

if TYPE_CHECKING:
    from milpbn.network.formats.classifier_files import AnyClassifier

#: What is said of classifiers whose parameters are not generative.
RETRAINED = (
    "The parameters of this classifier were fitted to P(class | features): other probabilities are those of the tables "
    "with this P(class | features) that are nearest to the generative ones, and need not be frequencies of the data."
)


@verb(short_help="Ask a classifier for any probabilities.")
@click.argument("classifier", type=FILE)
@options(
    option(
        "--evidence", EVIDENCE, "Known values of features or of the class; by default none.", multiple=True
    ),
    option("--of variables", NAMES, "Variables to ask for; by default all without a value.", multiple=True),
    flag("--mpe", "The most probable states of all variables together, instead."),
    option("--sample", COUNT, "Draw N rows of all variables, as CSV, instead.", metavar="N"),
    option("--seed --random-state seed", COUNT, "Seed of --sample; by default other rows each time."),
    option("--output", OUTPUT, "File for the answer; by default stdout."),
    flag("--json as_json", "Print the answer as one JSON object."),
)
def query(
    classifier: str,
    evidence: tuple[dict[str, str], ...],
    variables: tuple[tuple[str, ...], ...],
    mpe: bool,
    sample: int | None,
    seed: int | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Ask the network of CLASSIFIER for P(variable | evidence), exactly.

    Every variable that has no value in --evidence is summed over. A value is written as in a table; an interval of a
    discretised feature may be given by a number in it. A column may have two variables, with coarse and fine intervals,
    and a number is a value of both. A missing value such as NA is taken as unknown, or as the state of missing values.
    In the averages of --average, posteriors are the means of the networks' posteriors.

    \b
    Examples:
      milpbn query classifier.json --evidence colour=red,size=4.5 --of class
      milpbn query classifier.json --evidence class=good
      milpbn query classifier.json --evidence class=good --mpe
      milpbn query classifier.json --evidence class=good --sample 100 --seed 1 --output drawn.csv
    """
    asked = tuple(name for names in variables for name in names)
    if mpe + (sample is not None) + bool(asked) > 1:
        raise InputError("--of, --mpe and --sample are different questions; give one of them.")
    if seed is not None and sample is None:
        raise InputError("--seed is for --sample; add --sample N, or leave --seed out.")
    if sample is not None and as_json:
        raise InputError("--sample writes CSV; leave out --json.")
    values = once("--evidence", {}, (pair for given in evidence for pair in given.items()))
    from milpbn.network import load_any_classifier
    from milpbn.network.parameters.record import recorded

    loaded = load_any_classifier(classifier)
    fits = [recorded(getattr(one, "provenance", {})) for one in getattr(loaded, "members", [loaded])]
    if any(fit is not None and fit.fitted for fit in fits):
        click.echo(RETRAINED, err=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MilpbnWarning)
        if sample is not None:
            text = _samples(loaded, sample, values, seed)
        elif mpe:
            text = _explanation(loaded, values, as_json)
        else:
            marginals = {v: loaded.posterior(v, values) for v in asked} if asked else loaded.marginals(values)
            text = _posteriors(loaded, marginals, values, as_json)
    # Every variable and every network of an average warns of the same values.
    said = (str(one.message) for one in caught if issubclass(one.category, MilpbnWarning))
    say_notes(f"Warning: {sentence}" for sentence in dict.fromkeys(said))
    write_text(output, text)


def _samples(classifier: AnyClassifier, count: int, evidence: dict[str, str], seed: int | None) -> str:
    """Return drawn rows as CSV; the evidence is written as it was given."""
    if count < 1:
        raise InputError(f"--sample must be at least 1, got {count}.")
    data = classifier.sample(count, evidence, seed).of_columns()
    text = io.StringIO(newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(data.names)
    rows.writerows(
        [label if label is not None else evidence[name] for name, label in zip(data.names, row, strict=True)]
        for row in data.labels.tolist()
    )
    return text.getvalue()


def _explanation(classifier: AnyClassifier, evidence: dict[str, str], as_json: bool) -> str:
    found = classifier.most_probable_explanation(evidence)
    if as_json:
        return json_line({"evidence": evidence, **found._asdict()})
    from milpbn.network.inference.queries import known_variables
    from milpbn.util.printing import columns_of, padded

    given, titles = known_variables(classifier, evidence), _titles(classifier)
    width = max(map(columns_of, titles.values()))
    lines = [
        f"{padded(titles[name], width)}  {label}{'  (given)' if name in given else ''}"
        for name, label in found.states.items()
    ]
    lines.append(
        f"P(these | evidence) = exp({found.log_posterior:.6f}), P(these) = exp({found.log_joint:.6f})"
    )
    return "\n".join(lines) + "\n"


def _posteriors(
    classifier: AnyClassifier,
    posteriors: dict[str, dict[str, float]],
    evidence: dict[str, str],
    as_json: bool,
) -> str:
    if as_json:
        return json_line({"evidence": evidence, "posteriors": posteriors})
    from milpbn.util.printing import columns_of, padded

    titles = _titles(classifier)
    width = max((columns_of(label) for one in posteriors.values() for label in one), default=0)
    lines = []
    for name, one in posteriors.items():
        lines.append(titles.get(name, name))
        lines += [f"  {padded(label, width)}  {probability:.6f}" for label, probability in one.items()]
    return "\n".join(lines) + "\n"


def _titles(classifier: AnyClassifier) -> dict[str, str]:
    """Return the name of each variable, with the raw column of those that have another name."""
    named = {v.name: v.raw_column for v in classifier.variables}
    return {
        name: name if name == column else f"{name}, finer intervals of {column}"
        for name, column in named.items()
    }
