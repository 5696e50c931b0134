"""Test errors of the generative learners on the discretised image data of Roth & Pernkopf (2020).

    python benchmarks/image_learners.py --data-dir DIR

DIR holds letter-discretised.npz, satimage-discretised.npz and usps-discretised.npz with the arrays x_tr_foldK,
t_tr_foldK, x_te_foldK, t_te_foldK and n_folds; states are numbered from 1. Parameters are closed-form, smoothing 1; no
option is chosen on the test rows. The published columns are naive Bayes ML and Chow-Liu ML of their Table 1. Writes
results/learners/images-generative.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from image_differentiable import FOLDS, load

from milpbn.learners.base import Learner
from milpbn.learners.chow_liu import ChowLiu
from milpbn.learners.multinet import MultinetLearner
from milpbn.learners.naive_bayes import NaiveBayes
from milpbn.learners.tan import Tan
from milpbn.network.evaluation import accuracy

RESULTS = Path(__file__).resolve().parent.parent / "results" / "learners"
#: Published test errors in percent.
PUBLISHED = {
    "letter": {"naive-bayes": 25.89, "tan": 15.23},
    "satimage": {"naive-bayes": 17.95, "tan": 11.90},
    "usps": {"naive-bayes": 13.11, "tan": 8.74},
}
LEARNERS: dict[str, Learner] = {
    "naive-bayes": NaiveBayes(),
    "tan": Tan(),
    **{f"tan --penalty {p}": Tan(penalty=p) for p in ("bic", "aic", "aicc", "holdout")},
    "chow-liu": ChowLiu(),
    **{f"chow-liu --penalty {p}": ChowLiu(penalty=p) for p in ("bic", "aic", "aicc", "holdout")},
    "multinet": MultinetLearner(),
    **{f"multinet --penalty {p}": MultinetLearner(penalty=p) for p in ("bic", "aic", "holdout")},
}


def measure(folder: Path, name: str, published: dict[str, float]) -> dict[str, object]:
    """Return the mean test error and the seconds to learn of every learner on one data set."""
    errors: dict[str, list[float]] = {name: [] for name in LEARNERS}
    seconds = dict.fromkeys(LEARNERS, 0.0)
    for fold in range(1, FOLDS[name] + 1):
        train, test = load(folder, name, fold)
        for key, learner in LEARNERS.items():
            begun = time.perf_counter()
            learned = learner.fit(train)
            seconds[key] += time.perf_counter() - begun
            errors[key].append(100 * (1 - accuracy(learned.predictor, test)))
    return {
        key: {
            "test_error_percent": round(float(np.mean(values)), 4),
            **({"published": published[key]} if key in published else {}),
            "folds": [round(value, 4) for value in values],
            "seconds_per_fold": round(seconds[key] / len(values), 3),
        }
        for key, values in errors.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of the .npz files")
    parser.add_argument("--output", type=Path, default=RESULTS / "images-generative.json")
    options = parser.parse_args()
    results = {}
    for name in FOLDS:
        results[name] = measure(options.data_dir, name, PUBLISHED[name])
        print(name, json.dumps(results[name], indent=1), flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    document = {"command": "python benchmarks/image_learners.py --data-dir DIR", "results": results}
    options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
