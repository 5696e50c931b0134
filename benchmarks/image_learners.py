"""Test errors of the generative learners on the discretised image data of Roth & Pernkopf (2020).

    python benchmarks/image_learners.py --data-dir DIR [--data letter mnist-cubic]

DIR holds what `images.py` says. Parameters are closed-form, smoothing 1; no option is chosen on the test rows. The
published columns are naive Bayes ML and Chow-Liu ML of their Table 1. Data sets are added to
results/learners/images-generative.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from images import FOLDS, RESULTS, load

from milpbn.atomic import atomic_write_text
from milpbn.learners.base import Learner
from milpbn.learners.chow_liu import ChowLiu
from milpbn.learners.multinet import MultinetLearner
from milpbn.learners.naive_bayes import NaiveBayes
from milpbn.learners.tan import Tan
from milpbn.network.evaluation import accuracy

#: Published test errors in percent.
PUBLISHED = {
    "letter": {"naive-bayes": 25.89, "tan": 15.23},
    "satimage": {"naive-bayes": 17.95, "tan": 11.90},
    "usps": {"naive-bayes": 13.11, "tan": 8.74},
    "mnist": {"naive-bayes": 17.34, "tan": 7.03},
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
    parser.add_argument("--data", nargs="+", choices=FOLDS, default=list(FOLDS))
    parser.add_argument("--output", type=Path, default=RESULTS / "images-generative.json")
    options = parser.parse_args()
    document = {"command": "python benchmarks/image_learners.py --data-dir DIR", "results": {}}
    if options.output.exists():
        document["results"] = json.loads(options.output.read_text(encoding="utf-8"))["results"]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    for name in options.data:
        found = measure(options.data_dir, name, PUBLISHED[name.split("-")[0]])
        document["results"][name] = found
        print(name, json.dumps(found, indent=1), flush=True)
        atomic_write_text(options.output, json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
