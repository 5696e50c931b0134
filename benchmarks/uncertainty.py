"""How often prediction sets hold the true class, and intervals of probabilities the true probability.

    python benchmarks/uncertainty.py [--draws N]

Every draw is a new network of eight features with two to four states (naive Bayes, or a tree of features besides) with
tables from Dirichlet distributions, a sample of training rows, and 2,000 new rows. Unequal weights are those of rows
that were selected with unequal probabilities, by the inverse of these; new rows are not selected. Sets are calibrated
by folds of the training rows, on these rows left out of the tables one by one, and on as many new rows. The structure
of the classifiers is the network's, or a TAN that is learnt from the training rows ("learnt").
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from common import RESULTS, parser, write_results
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING, Dataset, Variable
from milpbn.network import Classifier, Cpt, Structure
from milpbn.network.parameters.sets import calibrate_sets
from milpbn.sklearn import TANClassifier

FEATURES, NEW = 8, 2000
#: The Dirichlet constant of the tables on which sets are measured: the classes are hard to tell.
HARD = 10.0
#: Rows, classes, structure of the network, structure of the classifier, and weights.
SETS = (
    (100, 2, "naive Bayes", "right", "equal"),
    (300, 2, "tree", "right", "equal"),
    (300, 3, "tree", "learnt", "equal"),
    (100, 2, "tree", "learnt", "equal"),
    (300, 2, "naive Bayes", "right", "by feature"),
    (300, 3, "tree", "right", "by class"),
    (1000, 5, "tree", "learnt", "random"),
)
#: Rows, structure, Dirichlet constant of the true tables, weights, share of missing values in new rows, and smoothing.
INTERVALS = (
    (50, "naive Bayes", 1.0, "equal", 0.0, 1.0),
    (300, "naive Bayes", 1.0, "equal", 0.0, 1.0),
    (300, "naive Bayes", 1.0, "equal", 0.3, 1.0),
    (300, "tree", 1.0, "equal", 0.0, 1.0),
    (1000, "tree", 1.0, "equal", 0.0, 1.0),
    (300, "naive Bayes", 1.0, "by feature", 0.0, 1.0),
    (300, "naive Bayes", 1.0, "random", 0.0, 1.0),
    (300, "naive Bayes", 0.3, "equal", 0.0, 1.0),
    (300, "naive Bayes", 0.3, "equal", 0.0, 0.3),
    (300, "naive Bayes", 5.0, "equal", 0.0, 1.0),
)


def network(rng: np.random.Generator, classes: int, kind: str, constant: float = 1.0) -> Classifier:
    """Return a network with drawn tables."""
    sizes = [*rng.integers(2, 5, FEATURES).tolist(), classes]
    variables = tuple(Variable(f"x{i}", tuple(f"s{k}" for k in range(n))) for i, n in enumerate(sizes))
    tree = [tuple(rng.integers(0, i, 1).tolist()) if i and kind == "tree" else () for i in range(FEATURES)]
    structure = Structure(tuple(v.name for v in variables), (*((*own, FEATURES) for own in tree), ()))
    cpts = [
        Cpt(i, own, rng.dirichlet(np.full(sizes[i], constant), [sizes[j] for j in own]))
        for i, own in enumerate(structure.parents)
    ]
    return Classifier(variables, structure, tuple(cpts))


def sample(truth: Classifier, n: int, weights: str, rng: np.random.Generator) -> Dataset:
    """Return weighted rows of a network."""
    if weights in ("equal", "random"):
        rows = truth.sample(n, random_state=rng)
        return rows if weights == "equal" else replace(rows, weights=rng.exponential(size=n) + 0.05)
    many = truth.sample(10 * n, random_state=rng)
    code = many.y if weights == "by class" else many.codes[:, 0]
    chance = 0.8 ** (2 * code)
    kept = np.flatnonzero(rng.random(10 * n) < chance)[:n]
    return replace(many.take(kept), weights=1 / chance[kept])


def learnt(train: Dataset, truth: Classifier, how: str) -> Classifier:
    """Return a classifier of training rows in the network's variables."""
    structure = truth.structure
    if how == "learnt":
        X = train.codes[:, :-1].astype(str)
        found = TANClassifier().fit(X, train.y, train.weights).structure_
        names = dict(zip([*(f"x{i}" for i in range(FEATURES)), "class"], structure.names, strict=True))
        renamed = {names[child]: [names[p] for p in own] for child, own in found.items()}
        structure = Structure.from_mapping(structure.names, renamed)
    return Classifier.fit(train, structure)


def of_sets(world: tuple[int, int, str, str, str], draws: int) -> list[dict[str, Any]]:
    """Return mean coverage, with its standard error over the draws, and mean size of sets."""
    n, classes, kind, how, weights = world
    rng, found = np.random.default_rng(0), {}
    for _ in range(draws):
        truth = network(rng, classes, kind, HARD)
        train, new = sample(truth, n, weights, rng), truth.sample(NEW, random_state=rng)
        classifier = learnt(train, truth, how)
        for on in ("folds", "leave-one-out", "new"):
            rows = sample(truth, n, weights, rng) if on == "new" else train
            calibrated = calibrate_sets(classifier, rows, on)
            for error, by_class in ((0.05, False), (0.1, False), (0.1, True)):
                inside = calibrated.predict_set(new, error, by_class=by_class)
                # The promise by class is that of each class; the last one stands for all.
                counted = new.y == classes - 1 if by_class else np.ones(NEW, dtype=bool)
                held = inside[np.arange(NEW), new.y][counted].mean()
                found.setdefault((on, error, by_class), []).append((held, inside.sum(axis=1).mean()))
    about = dict(zip(("rows", "classes", "network", "structure", "weights"), world, strict=True))
    return [
        {**about, "calibrated": on, "error": error, "by_class": by_class, **_of(np.array(values))}
        for (on, error, by_class), values in found.items()
    ]


def _of(values: NDArray[np.float64]) -> dict[str, float]:
    """Return the means of coverage and size (or width), and the standard error of the first."""
    mean, error = values.mean(axis=0), values[:, 0].std(ddof=1) / np.sqrt(len(values))
    return {
        "coverage": round(float(mean[0]), 4),
        "se": round(float(error), 4),
        "size": round(float(mean[1]), 4),
    }


def of_intervals(world: tuple[int, str, float, str, float, float], draws: int) -> dict[str, Any]:
    """Return the share of intervals that hold the true probability, and their mean width."""
    n, kind, constant, weights, missing, smoothing = world
    rng, found = np.random.default_rng(1), []
    for k in range(draws):
        truth = network(rng, 2, kind, constant)
        classifier = Classifier.fit(sample(truth, n, weights, rng), truth.structure, smoothing)
        new = truth.sample(100, random_state=rng)
        codes = new.codes.copy()
        codes[:, :-1][rng.random((100, FEATURES)) < missing] = MISSING
        new = replace(new, codes=codes)
        low, high = (ends[:, 0] for ends in classifier.predict_interval(new, random_state=k))
        p = truth.predict_proba(new)[:, 0]
        found.append(((low <= p) & (p <= high), high - low))
    about = dict(zip(("rows", "network", "constant", "weights", "missing", "smoothing"), world, strict=True))
    return {**about, **_of(np.array(found).mean(axis=2))}


def main() -> None:
    """Measure all worlds, and write the file."""
    reader = parser(__doc__, data=None, output=RESULTS / "uncertainty.json")
    reader.add_argument("--draws", type=int, default=200)
    options = reader.parse_args()
    found = {
        "draws": options.draws,
        "sets": [line for world in SETS for line in of_sets(world, options.draws)],
        "intervals": [of_intervals(world, options.draws) for world in INTERVALS],
    }
    command = f"python benchmarks/uncertainty.py --draws {options.draws}"
    write_results(options.output, {"command": command, **found})


if __name__ == "__main__":
    main()
