"""Priors of the parameters by cross-validation on the training rows: accuracy and log-loss of each mean and strength.

    python benchmarks/smoothing.py [NAME ...] --data-dir DIR [--time-limit 1]

Every fold learns its cuts, states, structure and parameters on its own training rows, with the same prior in score
and parameters. The folds are the same for all priors. TAN, whose structure does not depend on the prior, shows the
effect on parameters alone; with --only tan nothing else is measured, and the rest of the results file stays. At the
end come the means over the data sets, with the difference from Laplace smoothing with 1 and its standard error over
the sets.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np
from common import RESULTS, parse, parser, read_results, write_results

import milpbn
from milpbn.data import Dataset, Table, read_table, stratified_folds
from milpbn.learners.generative.tan import Tan
from milpbn.network import Classifier, evaluate
from milpbn.network.prior import Prior

SETS = (
    "iris",
    "glass2",
    "hepatitis",
    "heart",
    "cleve",
    "diabetes",
    "australian",
    "car",
    "soybean-large",
)
FOLDS = 5
PRIORS = (
    *(Prior(a, "uniform") for a in (1.0, 0.1, 0.5, 3.0)),
    *(Prior(a, "marginal") for a in (0.5, 1.0, 3.0)),
    *(Prior(a, "class") for a in (1.0, 3.0, 10.0)),
)
#: Options of each score; TAN has none.
SCORES: dict[str, dict[str, Any]] = {
    "sm .9, 2 parents": {"name": "sm", "p": 0.9, "max_parents": 2},
    "cll leave-one-out, 2 parents": {"name": "cll", "leave_one_out": True, "max_parents": 2},
    "sm .9, 3 parents": {"name": "sm", "p": 0.9, "max_parents": 3},
    "cll leave-one-out, 3 parents": {"name": "cll", "leave_one_out": True, "max_parents": 3},
    "tan": {},
}


def classifier_of(
    data: Dataset, given: dict[str, Any], prior: Prior, options: Namespace
) -> tuple[Classifier, bool]:
    """Return the classifier of a score or of TAN under a prior, and whether its structure is proved optimal."""
    if not given:
        learned = Tan(smoothing=prior.smoothing, smoothing_towards=prior.towards).fit(data)
        assert isinstance(learned.predictor, Classifier)
        return learned.predictor, False
    score = milpbn.Score(**given, smoothing=prior.smoothing, smoothing_towards=prior.towards)
    result = milpbn.solve(data, score, time_limit=options.time_limit, threads=options.threads, verbose=False)
    assert result.classifier is not None
    return result.classifier, result.optimal


def measure(table: Table, options: Namespace) -> dict[str, Any]:
    """Return accuracy, log-loss and number of proved optima by score and prior, over all folds of the training rows."""
    rows = table.train_indices
    folds = []
    for train, held_out in stratified_folds(table.dataset(rows).y, FOLDS, 0):
        data = table.dataset(rows[train])
        folds.append((data, table.encode(data.variables, rows[held_out])))
    found: dict[str, Any] = {}
    for name, given in SCORES.items():
        if not name.startswith(options.only):
            continue
        here = found.setdefault(name, {})
        for prior in PRIORS:
            right = loss = weight = 0.0
            proved = 0
            for data, test in folds:
                classifier, optimal = classifier_of(data, given, prior, options)
                figures = evaluate(classifier, test)
                right += figures.accuracy * figures.weight
                loss += figures.log_loss * figures.weight
                weight += figures.weight
                proved += optimal
            here[f"{prior.towards} {prior.smoothing:g}"] = {
                "accuracy": right / weight,
                "log_loss": loss / weight,
                "proved": proved,
            }
    return found


def show(sets: dict[str, Any]) -> None:
    """Print the means over the data sets by score and prior."""
    base = f"{PRIORS[0].towards} {PRIORS[0].smoothing:g}"
    for score in next(iter(sets.values())):
        print(f"\n{score}, {len(sets)} sets\n")
        print("| prior | accuracy in % | difference | log-loss in nats | difference | lower on |")
        print("|---|---|---|---|---|---|")
        for prior in next(iter(sets.values()))[score]:
            cells = []
            for key, factor, digits in (("accuracy", 100.0, 2), ("log_loss", 1.0, 4)):
                values = np.array([factor * found[score][prior][key] for found in sets.values()])
                more = values - [factor * found[score][base][key] for found in sets.values()]
                error = more.std(ddof=1) / np.sqrt(len(more)) if len(more) > 1 else 0.0
                cells.append(f"{values.mean():.{digits}f} | {more.mean():+.{digits}f} +- {error:.{digits}f}")
            print(f"| {prior} | {' | '.join(cells)} | {int((more < 0).sum())} of {len(more)} |")


def main() -> None:
    made = parser(
        __doc__, data=SETS, output=RESULTS / "learners" / "smoothing.json", time_limit=1.0, threads=1
    )
    made.add_argument("--only", default="", metavar="TEXT", help="scores whose name begins with this text")
    options = parse(made)
    document = read_results(options.output)
    for name in options.data:
        found = measure(read_table(name, data_dir=options.data_dir), options)
        document = {**document, "time_limit": options.time_limit}
        sets = document.get("sets", {})
        document["sets"] = {**sets, name: {**sets.get(name, {}), **found}}
        write_results(options.output, document)
        print(f"measured {name}", flush=True)
    show(document["sets"])


if __name__ == "__main__":
    main()
