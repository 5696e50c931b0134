"""Parameters of exact structures by cross-validation on the training rows: accuracy and log-loss of every method.

    python benchmarks/parameters.py [NAME ...] [--score sm --max-parents 2] --data-dir DIR

Every fold learns its cuts, its structure (one search, which all methods share) and its parameters on its training rows.
"""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any

import numpy as np
from common import RESULTS, parse, parser

import milpbn
from milpbn.data import Dataset, Table, read_table, stratified_folds
from milpbn.network import evaluate
from milpbn.network.parameters.record import METHODS
from milpbn.network.parameters.refit import refit_classifier
from milpbn.util.atomic import atomic_write_text
from milpbn.util.jsonable import dump_json

SMALL = ("australian", "cleve", "diabetes", "heart", "hepatitis")
LARGER = ("car", "segment", "soybean-large", "waveform-21")
FOLDS = 5


def measure_fold(train: Dataset, test: Dataset, options: Namespace) -> dict[str, Any]:
    """Return the figures of every method on one fold, and the structure's gap."""
    score = milpbn.Score(name=options.score, max_parents=options.max_parents)
    result = milpbn.solve(train, score, time_limit=options.time_limit, threads=options.threads, verbose=False)
    assert result.classifier is not None
    figures: dict[str, Any] = {"gap": result.gap.relative_to_bound}
    for method in METHODS:
        begun = time.monotonic()
        classifier, record = refit_classifier(result.classifier, train, method)
        found = evaluate(classifier, test)
        figures[method] = {
            "accuracy": found.accuracy,
            "log_loss": found.log_loss,
            "seconds": time.monotonic() - begun,
            "record": record.to_dict(),
        }
    return figures


def measure(table: Table, options: Namespace) -> list[dict[str, Any]]:
    """Return the figures of every fold of a table's training rows."""
    rows = table.train_indices
    found = []
    for train, held_out in stratified_folds(table.dataset(rows).y, FOLDS, 0):
        data = table.dataset(rows[train])
        found.append(measure_fold(data, table.encode(data.variables, rows[held_out]), options))
    return found


def main() -> None:
    made = parser(
        __doc__,
        data=(*SMALL, *LARGER),
        output=RESULTS / "learners" / "parameters.json",
        time_limit=10.0,
        threads=1,
    )
    made.add_argument("--score", default="sm")
    made.add_argument("--max-parents", type=int, default=2)
    options = parse(made)
    document: dict[str, Any] = {
        "score": options.score,
        "max_parents": options.max_parents,
        "time_limit": options.time_limit,
        "folds": {},
    }
    print("| data | " + " | ".join(METHODS) + " |\n|---|" + "---|" * len(METHODS))
    for name in options.data:
        folds = measure(read_table(name, data_dir=options.data_dir), options)
        document["folds"][name] = folds
        cells = [
            f"{100 * np.mean([f[m]['accuracy'] for f in folds]):.2f} % / "
            f"{np.mean([f[m]['log_loss'] for f in folds]):.4f}"
            for m in METHODS
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        atomic_write_text(options.output, dump_json(document))


if __name__ == "__main__":
    main()
