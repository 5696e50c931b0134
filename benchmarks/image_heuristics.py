"""Test accuracy of discriminative heuristics on digits, beside Pernkopf, Wohlmayr & Mücke (2011), Table 1.

    python benchmarks/image_heuristics.py [usps mnist-subsampled] --data-dir DIR [--learners tan-omi-mm ...]

`images.py` describes the files in DIR. There are two settings: `paper` (scores by 5-fold cross-validation, zero
probabilities replaced by 1e-5) and `laplace` (scores on the training rows, smoothing 1). Gamma is chosen once per data
set and setting, by tan-omi-mm in cross-validation on the training rows. Every run is written at once to
results/learners/images-discriminative.json; runs that are already in the file are not repeated.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import fields
from typing import Any

from common import RESULTS, command, parse, parser, read_results, write_results
from images import load

from milpbn.data.dataset import Dataset
from milpbn.heuristics.trees import tan_structure
from milpbn.learners.base import Control
from milpbn.learners.discriminative.annealing import Annealing
from milpbn.learners.discriminative.family_changes import Estimation
from milpbn.learners.discriminative.learner import DiscriminativeLearner, MarginLearner
from milpbn.learners.discriminative.margin_search import GreedyLikelihood, GreedyMargin, GreedyRate
from milpbn.learners.generative.order_based import OrderLikelihood, OrderMargin, OrderRate
from milpbn.network import Classifier, Structure, evaluate
from milpbn.util.memory import peak_memory

SETTINGS: dict[str, dict[str, Any]] = {
    "paper": {"evaluation": "cv", "zero_probability": 1e-5},
    "laplace": {"evaluation": "train", "smoothing": 1.0},
}
FIXED = {"naive-bayes": lambda data: Structure.naive_bayes(data.names), "tan-cmi": tan_structure}
SEARCHES: dict[str, type[DiscriminativeLearner]] = {
    learner.name: learner
    for learner in (
        OrderMargin,  # first: it chooses gamma
        OrderRate,
        OrderLikelihood,
        GreedyMargin,
        GreedyRate,
        GreedyLikelihood,
        Annealing,
    )
}
#: Table 1 of the paper: accuracy and its standard deviation, in %.
PAPER = {
    "mnist": {
        "naive-bayes": (83.73, 0.37),
        "tan-cmi": (91.28, 0.28),
        "tan-omi-cr": (92.28, 0.27),
        "tan-omi-mm": (92.71, 0.26),
        "tan-cr": (92.63, 0.26),
        "tan-mm": (93.15, 0.25),
    },
    "usps": {
        "naive-bayes": (87.10, 0.61),
        "tan-cmi": (91.90, 0.50),
        "tan-omi-cr": (92.40, 0.48),
        "tan-omi-mm": (95.47, 0.37),
        "tan-cr": (92.70, 0.47),
        "tan-mm": (95.40, 0.37),
    },
}
PAPER["mnist-subsampled"] = PAPER["mnist"]


def learn(data: Dataset, name: str, setting: str, gamma: str | float, control: Control) -> dict[str, Any]:
    """Fit one learner; return its classifier, its options and its details."""
    options = SETTINGS[setting]
    if name in FIXED:
        estimation = Estimation(options.get("smoothing", 1.0), options.get("zero_probability"))
        return {"classifier": estimation.classifier(data, FIXED[name](data)), "options": {}, "details": {}}
    if issubclass(SEARCHES[name], MarginLearner):
        options = {**options, "gamma": gamma}
    learner = SEARCHES[name](**options)
    learned = learner.fit(data, control)
    own = {f.name: getattr(learner, f.name) for f in fields(learner)}
    details = {key: value for key, value in learned.details.items() if key != "order"}
    return {"classifier": learned.predictor, "options": own, "details": details}


def run(records: dict[str, Any], name: str, data: str, setting: str, options: argparse.Namespace) -> None:
    """Run one learner and write its record, unless the record exists."""
    key = f"{data} {setting} {name}"
    if key in records:
        return
    chooser = records.get(f"{data} {setting} {OrderMargin.name}", {"details": {"gamma": "cv"}})
    gamma = options.gamma if options.gamma is not None else chooser["details"]["gamma"]
    train, test = load(options.data_dir, data)
    control = Control(n_jobs=options.threads, time_limit=options.time_limit)
    wall, processor = time.perf_counter(), time.process_time()
    answer = learn(train, name, setting, gamma, control)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    classifier: Classifier = answer.pop("classifier")
    accuracy = 100 * evaluate(classifier, test).accuracy
    printed = PAPER[data].get(name)
    records[key] = {
        "command": command(options, data),
        "test_accuracy": accuracy,
        "p11": None if printed is None else {"accuracy": printed[0], "deviation": printed[1]},
        "seconds": wall,
        "processor_seconds": processor,
        "peak_bytes": peak_memory(),
        **answer,
    }
    write_results(options.output, records)
    beside = "" if printed is None else f", published {printed[0]:.2f} +- {printed[1]:.2f}"
    print(f"{key}: {accuracy:.2f} %{beside}, {wall:.1f} s, {processor:.1f} s of processor", flush=True)


def main() -> None:
    made = parser(
        __doc__,
        data=list(PAPER),
        output=RESULTS / "learners" / "images-discriminative.json",
        time_limit=math.inf,
        threads=1,
    )
    made.add_argument("--settings", nargs="+", choices=tuple(SETTINGS), default=list(SETTINGS))
    made.add_argument("--learners", nargs="+", default=[*FIXED, *SEARCHES], choices=(*FIXED, *SEARCHES))
    made.add_argument("--gamma", type=float, help="desired log-margin in nats; by default chosen")
    options = parse(made, list(PAPER))
    options.time_limit = None if options.time_limit == math.inf else options.time_limit
    records = read_results(options.output)
    warm_up = load(options.data_dir, options.data[0])[0].take(range(100))
    for name in options.learners:  # loads the kernels
        for setting in options.settings:
            learn(warm_up, name, setting, 1.0, Control(n_jobs=options.threads))
    for data in options.data:
        for setting in options.settings:
            for name in options.learners:
                run(records, name, data, setting, options)


if __name__ == "__main__":
    main()
