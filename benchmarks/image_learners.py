"""Test errors of the generative learners on the discretised image data of Roth & Pernkopf (2020).

    python benchmarks/image_learners.py [letter mnist-cubic] --data-dir DIR

`images.py` describes the files in DIR. Parameters are closed-form with smoothing 1; no option is chosen on the test
rows. `published` is from the columns "naive Bayes ML" and "Chow-Liu ML" of their Table 1. Data sets are added to
results/learners/images-generative.json.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
from common import RESULTS, parse, parser, read_results, write_results
from images import FOLDS, load

from milpbn.learners.base import Learner
from milpbn.learners.generative.chow_liu import ChowLiu
from milpbn.learners.generative.multinet import MultinetLearner
from milpbn.learners.generative.naive_bayes import NaiveBayes
from milpbn.learners.generative.tan import Tan
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
    made = parser(__doc__, data=list(FOLDS), output=RESULTS / "learners" / "images-generative.json")
    options = parse(made, list(FOLDS))
    document = {"command": "python benchmarks/image_learners.py --data-dir DIR", "results": {}}
    document |= read_results(options.output)
    for name in options.data:
        found = measure(options.data_dir, name, PUBLISHED[name.split("-")[0]])
        document["results"][name] = found
        print(name, json.dumps(found, indent=1), flush=True)
        write_results(options.output, document)


if __name__ == "__main__":
    main()
