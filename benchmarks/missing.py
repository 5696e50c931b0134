"""Accuracy and log-loss where features of the test rows are missing, beside methods that need imputation.

    python benchmarks/missing.py [heart car] --data-dir DIR [--time-limit 10] [--only-cached]

Sets with test rows are split once; of the others all rows are held out once, in three stratified folds. Every method
learns from complete rows with the same states. In each test row a share of the features, chosen at random, is then
removed; the same cells for all methods, five times. The networks marginalise what is missing. The other methods get
the most frequent state of the training rows (`SimpleImputer`), and boosting also its own rule for missing values. No
setting is chosen on test rows: they are the constants below, and scikit-learn's defaults.

Figures are kept in results/missing/cells.jsonl.gz, a cell per part of a set, and a run that is killed goes on where it
stopped. README.md and missing.png there are written from all cells.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, command, parse, parser
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC

import milpbn
from milpbn.data import MISSING, UNKNOWN, Dataset, Table
from milpbn.data.folds import stratified_folds
from milpbn.trials.store import ARCHIVE, Store
from milpbn.util.atomic import atomic_path, atomic_write_text

SETS = (
    "australian",
    "car",
    "cleve",
    "diabetes",
    "heart",
    "mushroom",
    "segment",
    "shuttle-small",
    "soybean-large",
    "waveform-21",
)
#: Shares of the features that are removed from every test row, and how often.
SHARES, REPEATS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9), 5
#: Folds of sets without test rows, and the seed of folds, methods and removals.
FOLDS, SEED = 3, 0
#: The structures: the soft margin of Peharz & Pernkopf (2012), and the recipe's score with two parents, its most
#: frequent choice.
SOFT_MARGIN = milpbn.Score(p=0.9, max_parents=2)
LEAVE_ONE_OUT = milpbn.Score(name="cll", leave_one_out=True, hybrid=0.1, max_parents=2)
#: Smallest probability in a log-loss; calibrated machines can give 0.
LEAST = 1e-12
TITLES = {
    "sm": "SM network, marginalised",
    "sm-imputed": "SM network, imputed",
    "cll": "CLL network, marginalised",
    "cll-hybrid": "CLL network, hybrid parameters, marginalised",
    "svc": "SVM, imputed",
    "boosting": "boosting, imputed",
    "boosting-own": "boosting, own rule",
}
#: Class probabilities, shape (M, C), of feature codes, shape (M, N), in which `MISSING` stands for a missing value.
Model = Callable[[NDArray[np.int32]], NDArray[np.float64]]


def parts(table: Table) -> Iterator[tuple[str, Dataset, Dataset]]:
    """Yield a name, the training rows and the test rows of each part of a set."""
    if table.train_rows is not None:
        train = table.dataset("train")
        yield "test", train, table.encode(train.variables, "test")
        return
    classes = table.dataset("all").y
    for number, (inside, outside) in enumerate(stratified_folds(classes, FOLDS, SEED)):
        train = table.dataset(inside)
        yield f"fold-{number}", train, table.encode(train.variables, outside)


def models(train: Dataset, time_limit: float) -> dict[str, Model]:
    """Fit every method."""
    search: dict[str, Any] = {"time_limit": time_limit, "threads": 1, "random_state": SEED, "verbose": False}
    soft_margin = milpbn.solve(train, SOFT_MARGIN, **search).classifier
    found = milpbn.solve(train, LEAVE_ONE_OUT, parameters="hybrid", **search)
    plain = milpbn.Classifier.fit(train, found.structure)

    def network(classifier: milpbn.Classifier) -> Model:
        def predict(X: NDArray[np.int32]) -> NDArray[np.float64]:
            codes = np.column_stack([X, np.full(len(X), UNKNOWN, dtype=np.int32)])
            return classifier.predict_proba(Dataset("test", train.variables, codes, np.ones(len(X))))

        return predict

    most_frequent = SimpleImputer(missing_values=MISSING, strategy="most_frequent").fit(train.X)
    folds = stratified_folds(train.y, 5, SEED)
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    svc = make_pipeline(
        most_frequent, one_hot, CalibratedClassifierCV(SVC(), method="sigmoid", cv=folds, ensemble=False)
    ).fit(train.X, train.y)
    boosting = make_pipeline(most_frequent, one_hot, HistGradientBoostingClassifier(random_state=SEED)).fit(
        train.X, train.y
    )
    own = HistGradientBoostingClassifier(categorical_features=range(train.n_features), random_state=SEED)
    own.fit(train.X.astype(np.float64), train.y)
    return {
        "sm": network(soft_margin),
        "sm-imputed": lambda X: network(soft_margin)(most_frequent.transform(X)),
        "cll": network(plain),
        "cll-hybrid": network(found.classifier),
        "svc": svc.predict_proba,
        "boosting": boosting.predict_proba,
        # It takes negative codes, of states that training lacks as well, for missing values.
        "boosting-own": lambda X: own.predict_proba(np.where(X < 0, np.nan, X)),
    }


def measure(train: Dataset, test: Dataset, time_limit: float) -> dict[str, Any]:
    """Return the number of test rows, and for each method and share the sums of hits and of log-losses."""
    test = test.take(np.flatnonzero(test.y != UNKNOWN))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about classes with fewer rows than folds, and future defaults
        fitted = models(train, time_limit)
        figures: dict[str, dict[str, list[float]]] = {name: {} for name in fitted}
        for share in SHARES:
            repeats = REPEATS if share else 1
            sums = {name: np.zeros(2) for name in fitted}
            for repeat in range(repeats):
                X = removed(test.X, share, repeat)
                for name, model in fitted.items():
                    proba = np.maximum(model(X), LEAST)
                    own = proba[np.arange(len(X)), test.y]
                    hits = np.count_nonzero(proba.argmax(axis=1) == test.y)
                    sums[name] += np.array([hits, -np.log(own).sum()]) / repeats
            for name, total in sums.items():
                figures[name][f"{share:g}"] = total.tolist()
    return {"samples": test.n_samples, "features": test.n_features, "figures": figures}


def removed(X: NDArray[np.int32], share: float, repeat: int) -> NDArray[np.int32]:
    """Return feature codes with a share of every row removed; a larger share of a repeat removes more of the same."""
    ranks = np.random.default_rng([SEED, repeat]).random(X.shape).argsort(axis=1).argsort(axis=1)
    return np.where(ranks < round(share * X.shape[1]), np.int32(MISSING), X)


def cells(store: Store) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return accuracy in percent and log-loss, shape (shares, 2), by set and method; folds are pooled."""
    pooled: dict[str, dict[str, Any]] = {}
    rows: dict[str, int] = {}
    for _, kept in sorted(store.items()):
        name = kept["data"]
        rows[name] = rows.get(name, 0) + kept["samples"]
        for method, by_share in kept["figures"].items():
            sums = np.array([by_share[f"{share:g}"] for share in SHARES])
            of_set = pooled.setdefault(name, {})
            of_set[method] = of_set.get(method, 0.0) + sums
    return {
        name: {method: sums / rows[name] * [100.0, 1.0] for method, sums in of_set.items()}
        for name, of_set in pooled.items()
    }


def write_page(output: Path, line: str, time_limit: float) -> None:
    """Write README.md and missing.png from all cells."""
    found = cells(Store(output / ARCHIVE))
    means = {method: np.mean([of_set[method] for of_set in found.values()], axis=0) for method in TITLES}
    heading = "| " + " | ".join(["", *TITLES.values()]) + " |\n" + "|---" * (len(TITLES) + 1) + "|\n"

    def row(label: str, numbers: list[float], digits: int, best: Callable[..., float]) -> str:
        shown = [round(x, digits) for x in numbers]
        marked = [f"**{x:.{digits}f}**" if x == best(shown) else f"{x:.{digits}f}" for x in shown]
        return "| " + " | ".join([label, *marked]) + " |\n"

    def table(which: int) -> str:
        digits, best = ((1, max), (3, min))[which]
        return heading + "".join(
            row(f"{100 * share:.0f} %", [float(means[m][k, which]) for m in TITLES], digits, best)
            for k, share in enumerate(SHARES)
        )

    def by_set(which: int, share: float) -> str:
        digits, best, k = *((1, max), (3, min))[which], SHARES.index(share)
        return heading + "".join(
            row(name, [float(of_set[m][k, which]) for m in TITLES], digits, best)
            for name, of_set in found.items()
        )

    atomic_write_text(
        output / "README.md",
        f"""# Missing features

Written by `{line}`. A share of the features is removed at
random from every test row; the methods have learnt from complete rows. Means over {len(found)} sets:
{", ".join(found)}.
Sets with test rows use them, the others {FOLDS} stratified folds; every number is the mean of {REPEATS} random
removals, the same for all methods. The best number of a row is bold.

What was compared, fixed before any test row was scored: the network of the soft margin at p = .9 with two parents;
the network of the leave-one-out conditional log-likelihood with `hybrid` = .1 and two parents, with Laplace-smoothed
parameters and with `--parameters hybrid`, which the recipe has; a support vector machine (`SVC`, probabilities by
`CalibratedClassifierCV`) and gradient boosting (`HistGradientBoostingClassifier`) on indicators of the same states,
with scikit-learn's default settings. "Imputed" puts the most frequent state of the training rows into every gap
(`SimpleImputer`). "Own rule" is boosting on the states themselves: where training saw no missing value, it sends
missing ones to the child with more training rows. A search had {time_limit:g} seconds on one thread.

![Accuracy and log-loss over the share of missing features](missing.png)

## Accuracy, percent

{table(0)}
## Log-loss, nats

{table(1)}
## Accuracy with all features, by set

{by_set(0, 0.0)}
## Accuracy with half of the features, by set

{by_set(0, 0.5)}
## Log-loss with all features, by set

{by_set(1, 0.0)}
## Log-loss with half of the features, by set

{by_set(1, 0.5)}""",
    )
    draw(output / "missing.png", means, len(found))


def draw(path: Path, means: dict[str, NDArray[np.float64]], n_sets: int) -> None:
    """Draw the means over the sets as two panels."""
    import matplotlib.pyplot as plt

    styles = {
        "sm": ("C0", "o-"),
        "sm-imputed": ("C0", "o:"),
        "cll": ("C2", "s-"),
        "cll-hybrid": ("C1", "D-"),
        "svc": ("C3", "^:"),
        "boosting": ("C4", "v:"),
        "boosting-own": ("C4", "v--"),
    }
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    for which, (axis, label) in enumerate(
        zip(axes, ("accuracy, percent", "log-loss, nats (lower is better)"), strict=True)
    ):
        for method, (colour, style) in styles.items():
            axis.plot(
                [100 * s for s in SHARES],
                means[method][:, which],
                style,
                color=colour,
                label=TITLES[method],
                markersize=4.5,
            )
        axis.set(xlabel="features removed from every test row, percent", ylabel=label)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8, loc="lower left")
    figure.suptitle(f"Missing features at prediction: means over {n_sets} sets", fontsize=11)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150, format="png")
    plt.close(figure)


def measure_set(name: str, options: Namespace) -> None:
    """Measure the parts of a set that have no cell yet."""
    table, store = milpbn.read_table(name, data_dir=options.data_dir), Store(options.output / ARCHIVE)
    for part, train, test in parts(table):
        if f"{name}-{part}" in store:
            continue
        print(name, part, flush=True)
        found = measure(train, test, options.time_limit)
        kept = {"data": name, "part": part, "time_limit": options.time_limit, **found}
        store.add({f"{name}-{part}": kept})


def main() -> None:
    made = parser(__doc__, data=SETS, output=RESULTS / "missing", time_limit=10.0)
    made.add_argument("--only-cached", action="store_true", help="write the page from the cells that exist")
    options = parse(made)
    warnings.simplefilter(
        "ignore", milpbn.DataWarning
    )  # rows with missing values are dropped, as in the paper
    if not options.only_cached:
        for name in options.data:
            measure_set(name, options)
    write_page(options.output, command(options).replace(" --only-cached", ""), options.time_limit)


if __name__ == "__main__":
    main()
