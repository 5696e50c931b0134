"""The recipe's score with and without parent sets that lack the class: proofs, seconds, and figures on held-out rows.

    python benchmarks/class_free.py [heart car] --data-dir DIR [--time-limit 4]

The score is that of the recipe (`milpbn.solving.recipes`) with one, two and three parents. Its candidate parent sets of
a feature are those of Peharz & Pernkopf (2012), {} and the sets with the class (paper), or all sets (all). The training
rows are split into five stratified folds, with states and cuts from each fold's own training rows. No test row is read.
"""

from __future__ import annotations

import json
import time
from argparse import Namespace
from itertools import product
from typing import Any

import numpy as np
from common import RESULTS, command, parse, parser, read_results, write_results
from scipy.stats import t as student

import milpbn
from milpbn.data import Dataset, Table, read_table, stratified_folds
from milpbn.network import evaluate
from milpbn.network.parameters.refit import refit_classifier

SMALL = (
    "australian",
    "car",
    "cleve",
    "corral",
    "diabetes",
    "glass2",
    "heart",
    "hepatitis",
    "iris",
    "mofn-3-7-10",
)
FOLDS = 5
#: What is compared, and the parents of the recipe.
SETS, MAX_PARENTS = ("paper", "all"), (1, 2, 3)
#: Parameters whose figures are measured: the score's own, and those of the recipe.
PARAMETERS = ("ml", "hybrid")


def measure_fold(train: Dataset, test: Dataset, score: milpbn.Score, options: Namespace) -> dict[str, Any]:
    """Return the search's numbers and the figures on the held-out rows."""
    begun = time.process_time()
    result = milpbn.solve(train, score, time_limit=options.time_limit, threads=options.threads, verbose=False)
    assert result.classifier is not None
    assert result.structure is not None
    found: dict[str, Any] = {
        "objective": result.objective,
        "bound": result.bound,
        "gap": result.gap.absolute,
        "optimal": result.optimal,
        "seconds": result.seconds.total,
        "processor_seconds": time.process_time() - begun,
        "class_free_arcs": sum(
            len(parents)
            for parents in result.structure.parents[:-1]
            if len(result.structure.names) - 1 not in parents
        ),
        "arcs": len(result.structure.arcs),
    }
    for method in PARAMETERS:
        classifier, _ = refit_classifier(result.classifier, train, method)
        figures = evaluate(classifier, test)
        found[method] = {"accuracy": figures.accuracy, "log_loss": figures.log_loss}
    return found


def measure(table: Table, options: Namespace) -> dict[str, dict[str, Any]]:
    """Return the means over the folds of a table's training rows, by parents and parent sets."""
    rows = table.train_indices
    found: dict[str, list[dict[str, Any]]] = {}
    for train, held_out in stratified_folds(table.dataset(rows).y, FOLDS, 0):
        data = table.dataset(rows[train])
        test = table.encode(data.variables, rows[held_out])
        for parents, sets in product(MAX_PARENTS, SETS):
            score = milpbn.Score(
                name="cll", leave_one_out=True, hybrid=0.1, max_parents=parents, parent_sets=sets
            )
            found.setdefault(f"{parents} {sets}", []).append(measure_fold(data, test, score, options))
    return {key: averaged(folds) for key, folds in found.items()}


def averaged(folds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means over folds, and of proofs the number."""
    found: dict[str, Any] = {"proved": sum(fold["optimal"] for fold in folds)}
    for key in ("objective", "bound", "gap", "seconds", "processor_seconds", "class_free_arcs", "arcs"):
        found[key] = round(float(np.mean([fold[key] for fold in folds])), 4)
    for method in PARAMETERS:
        found[method] = {
            key: round(float(np.mean([fold[method][key] for fold in folds])), 5)
            for key in ("accuracy", "log_loss")
        }
    return found


def differences(means: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """Return all sets minus the paper's, paired over the data sets: mean and half of the 95 % interval, and proofs."""
    found: dict[str, Any] = {}
    for parents in MAX_PARENTS:
        own = found[str(parents)] = {
            sets: {
                "proved": sum(of[f"{parents} {sets}"]["proved"] for of in means.values()),
                "processor_seconds": round(
                    float(np.mean([of[f"{parents} {sets}"]["processor_seconds"] for of in means.values()])), 3
                ),
            }
            for sets in SETS
        }
        own["folds"] = FOLDS * len(means)
        for method, key in product(PARAMETERS, ("accuracy", "log_loss")):
            d = np.array(
                [
                    of[f"{parents} all"][method][key] - of[f"{parents} paper"][method][key]
                    for of in means.values()
                ]
            )
            half = student.ppf(0.975, max(1, len(d) - 1)) * d.std(ddof=min(1, len(d) - 1)) / np.sqrt(len(d))
            own[f"{method} {key}"] = [round(float(d.mean()), 5), round(float(half), 5)]
    return found


def main() -> None:
    made = parser(__doc__, data=SMALL, output=RESULTS / "class_free.json", time_limit=4.0, threads=1)
    options = parse(made)
    document = read_results(options.output)
    document |= {"command": command(options), "time_limit": options.time_limit}
    for name in options.data:
        means = document.setdefault("means", {})
        means[name] = measure(read_table(name, data_dir=options.data_dir), options)
        document["all_minus_paper"] = differences(means)
        write_results(options.output, document)
        print(name, json.dumps(means[name]), flush=True)
    print(json.dumps(document["all_minus_paper"], indent=1))


if __name__ == "__main__":
    main()
