"""What monotone features cost: log-loss and ROC-AUC of held-out rows with the constraints and without.

    python benchmarks/monotone.py [NAME ...]

The network is the best one under cll that 60 seconds find, its parameters are ``hybrid``, the same kappa and strength
with the constraints and without. adult has its own test rows; of the other tables five folds hold out every row.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import RESULTS, parser, write_results
from sklearn.metrics import log_loss, roc_auc_score

import milpbn
from milpbn.data import Dataset, Table
from milpbn.data.folds import stratified_folds
from milpbn.network import Classifier
from milpbn.network.monotone.check import check_monotone
from milpbn.network.monotone.constraints import read_monotone
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.parameters.refit import refit_classifier

#: What a domain expert would expect, with the class it is about.
CONSTRAINTS: dict[str, tuple[str, dict[str, str]]] = {
    "diabetes": ("tested_positive", {"plas": "+", "mass": "+", "age": "+", "pedi": "+"}),
    "heart": (
        "present",
        {"age": "+", "resting_blood_pressure": "+", "serum_cholestoral": "+", "oldpeak": "+"},
    ),
    "adult": (">50K", {"age": "+", "education-num": "+", "capital-gain": "+", "hours-per-week": "+"}),
}


#: Time limit of each search.
SECONDS = 60.0


def judged(classifier: Classifier, rows: Dataset) -> dict[str, float]:
    """Return log-loss and ROC-AUC of rows."""
    found = classifier.predict_proba(rows)
    return {
        "log_loss": float(log_loss(rows.y, found, labels=[0, 1])),
        "roc_auc": float(roc_auc_score(rows.y, found[:, 1])),
    }


def compared(train: Dataset, test: Dataset, positive: str, asked: dict[str, str]) -> dict[str, Any]:
    """Return what the constraints change on one split."""
    constraints = read_monotone(asked, train.variables, positive)
    score = milpbn.Score("cll", leave_one_out=True)
    result = milpbn.solve(train, score, time_limit=SECONDS, threads=1, verbose=False)
    plain = result.classifier
    assert isinstance(plain, Classifier)
    began = time.process_time()
    bound, record = refit_classifier(plain, train, "hybrid", monotone=constraints)
    seconds = time.process_time() - began
    assert record.monotone is not None
    assert record.monotone.holds
    free, _ = refit_classifier(plain, train, str(ParameterMethod("hybrid", record.kappa, record.strength)))
    checks = check_monotone(free.variables, free.cpts, constraints)
    return {
        "rows": train.n_samples,
        "largest_fall_without": max(0.0, -min(check.smallest for check in checks)),
        "broken_without": sum(not check.holds for check in checks),
        "used": sum(check.combinations > 0 for check in checks),
        "seconds": seconds,
        "with": judged(bound, test),
        "without": judged(free, test),
    }


def splits(table: Table) -> list[tuple[Dataset, Dataset]]:
    """Return training and held-out rows, cut on the training rows."""
    if table.name == "adult":
        data = table.dataset("train")
        return [(data, table.encode(data.variables, table.test_indices))]
    index = np.flatnonzero(table.complete)
    classes = table.columns[table.target].codes[index]
    found = []
    for train, held in stratified_folds(classes, 5, 0):
        data = table.dataset(index[train])
        found.append((data, table.encode(data.variables, index[held])))
    return found


def main() -> None:
    """Compare on all tables, and write the numbers."""
    args = parser(__doc__, data=tuple(CONSTRAINTS)).parse_args()
    cells = []
    for name in args.data:
        positive, asked = CONSTRAINTS[name]
        table = milpbn.read_table(name, discretise="quantile:8", data_dir=args.data_dir)
        for number, (train, test) in enumerate(splits(table)):
            cells.append({"data": name, "split": number, **compared(train, test, positive, asked)})
            print(cells[-1], flush=True)
    write_results(RESULTS / "monotone.json", {"cells": cells})


if __name__ == "__main__":
    main()
