"""Optimal trees, risk scores and our networks on the same columns and folds, and what is proved of each.

    python benchmarks/certified.py [heart iris] --data-dir DIR [--methods gosdt plain] [--time-limit 20]
    python benchmarks/certified.py --page --data-dir DIR

Peers, from PyPI: pystreed 1.4.0 (with scikit-survival), imodels 3.0.4 (with mlxtend and numba), gosdt 1.0.4, fasterrisk
0.1.10 (with NumPy 2.3 or newer, put `tobytes` for its synonym `tostring` in `fasterrisk/rounding.py`). Those that are
absent are named and left out. Cells are kept under --output; a run that is killed goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from itertools import count, product
from multiprocessing import get_context
from typing import Any

import numpy as np
import pandas as pd
from common import RESULTS, errors_as_sentences, parse, parser, write_page
from numpy.typing import NDArray
from raw import pair, table_of, wins
from raw_methods import judged, rows_of, test_classes

import milpbn
from milpbn.claims.result import Result
from milpbn.data import read_table, stratified_folds
from milpbn.experiments.base import Figures
from milpbn.experiments.page import read_remarks, table
from milpbn.experiments.protocol import Part
from milpbn.trials.parts import validation_splits
from milpbn.trials.store import ARCHIVE, Store

DATA = (
    "corral", "iris", "glass2", "hepatitis", "heart", "cleve", "australian", "diabetes", "mofn-3-7-10", "car",
    "segment", "soybean-large", "shuttle-small", "mushroom", "nursery",
)  # fmt: skip
FOLDS = 3
Matrix = NDArray[Any]
#: A function that numbers leaves of rows, or gives their probabilities; and facts.
Learnt = tuple[Callable[[Matrix], Matrix], dict[str, Any]]


def leaves_of(tree: Any, x: Matrix) -> Matrix:
    """Return the leaves of binary rows in a tree of (column, tree where it is 1, tree where it is 0) and numbers."""
    if isinstance(tree, int):
        return np.full(len(x), tree)
    return np.where(x[:, tree[0]] > 0, leaves_of(tree[1], x), leaves_of(tree[2], x))


def streed(x: Matrix, y: Matrix, depth: float, seconds: float, *, tune: bool = True) -> Learnt:
    """Learn with pystreed: the least training error of all trees of a depth; its own folds tune the number of tests."""
    from pystreed import STreeDClassifier

    model = STreeDClassifier(max_depth=int(depth), hyper_tune=tune, time_limit=seconds).fit(x, y)
    number = count()

    def copied(node: Any) -> Any:
        inner = not node.is_leaf_node()
        return (node.feature, copied(node.right_child), copied(node.left_child)) if inner else next(number)

    tree = copied(model.tree_)
    known = {"leaves": next(number), "optimal": bool(model.fit_result.is_optimal())}
    return lambda rows: leaves_of(tree, np.asarray(model.binarizer_.transform(rows))), known


def small_tree(x: Matrix, y: Matrix, penalty: float, seconds: float) -> Learnt:
    """Learn with imodels: the least sum of error and penalties of all trees on all cuts between training values."""
    from imodels import FastSmallTreeClassifier

    model = FastSmallTreeClassifier(regularization=penalty, time_limit=seconds).fit(x, y)
    known = {"leaves": int(model.n_leaves_), "optimal": bool(model.optimal_)}
    return model.estimator_.apply, {**known, "gap": 1 - float(model.lowerbound_) / float(model.upperbound_)}


@lru_cache(maxsize=6)
def guessed_cuts(x: bytes, y: bytes) -> tuple[list[int], list[float]]:
    """Return the columns and values of GOSDT's guesses: of several classes, those of each against the others."""
    from gosdt import ThresholdGuessBinarizer

    guess, classes = ThresholdGuessBinarizer(n_estimators=40, max_depth=1), np.frombuffer(y, dtype=np.intp)
    matrix, there = np.frombuffer(x).reshape(len(classes), -1), np.unique(classes)
    found = {cut for k in there[len(there) == 2 :] for cut in guess.fit(matrix, classes == k).thresholds_}
    return [j for j, _ in sorted(found)], [value for _, value in sorted(found)]


def gosdt(x: Matrix, y: Matrix, penalty: float, seconds: float) -> Learnt:
    """Learn with GOSDT on guessed cuts, to a depth of 6 as in its README; reference labels would make bounds guess."""
    from gosdt import GOSDTClassifier

    columns, values = guessed_cuts(x.tobytes(), y.astype(np.intp).tobytes())
    limits = {"depth_budget": 6, "time_limit": max(1, round(seconds))}
    model = GOSDTClassifier(regularization=penalty, similar_support=False, **limits)
    with contextlib.redirect_stdout(io.StringIO()):
        model.fit(x[:, columns] <= values, y)
    found, number = model.get_result(), count()

    def copied(node: Any) -> Any:
        inner = hasattr(node, "feature")
        return (node.feature, copied(node.left_child), copied(node.right_child)) if inner else next(number)

    tree = copied(model.trees_[0].tree)
    low, high = found["lower_bound"], found["upper_bound"]
    known = {"leaves": next(number), "optimal": str(found["status"]).endswith("CONVERGED")}
    known["gap"] = 1 - low / high if high > 0 else 0.0
    return lambda x: leaves_of(tree, x[:, columns] <= values), known


def risk_score(x: Matrix, y: Matrix, points: float, seconds: float) -> Learnt:
    """Learn with FasterRisk, on its conditions `column <= value`, at most 99 a column; it has no time limit."""
    from fasterrisk.binarization_util import BinBinarizer
    from fasterrisk.fasterrisk import RiskScoreClassifier, RiskScoreOptimizer

    binary = BinBinarizer()
    binary.fit(pd.DataFrame(x).rename(columns="c{}".format))

    def conditions(x: Matrix) -> Matrix:
        return binary.transform(pd.DataFrame(x).rename(columns="c{}".format))[0].to_numpy(float)

    search = RiskScoreOptimizer(X=conditions(x), y=2.0 * y - 1, k=int(points))
    search.optimize()
    multiplier, constant, weights = (found[0] for found in search.get_models())
    model = RiskScoreClassifier(multiplier, constant, weights)
    known = {"size": int(np.count_nonzero(weights)), "optimal": False}
    return lambda x: np.column_stack([1 - (risk := model.predict_prob(conditions(x))), risk]), known


#: Penalties of a leaf that are compared.
PENALTIES = (0.1, 0.05, 0.01, 0.005, 0.001)
#: The peers: package, learner, settings that are compared.
PEERS: dict[str, tuple[str, Callable[..., Learnt], tuple[float, ...]]] = {
    "streed-3": ("pystreed", streed, (3.0,)),
    "streed-4": ("pystreed", streed, (4.0,)),
    "imodels": ("imodels", small_tree, PENALTIES),
    "gosdt": ("gosdt", gosdt, PENALTIES),
    "fasterrisk-5": ("fasterrisk", risk_score, (5.0,)),
    "fasterrisk-10": ("fasterrisk", risk_score, (10.0,)),
}
METHODS = ("readable", "plain", *PEERS)
#: pystreed ends the process if the time is up while it tunes; these take the place of the others then.
PEERS |= {f"streed-{d} untuned": ("pystreed", partial(streed, tune=False), (d,)) for d in (3, 4)}


def probabilities(part: Part, name: str, seconds: float) -> tuple[Matrix, dict[str, Any]]:
    """Return a peer's probabilities of the test rows, in a leaf (n_k + 1) / (n + K), and facts.

    Settings are compared by accuracy on inner folds in half of the seconds.
    """
    began, (package, learner, settings) = time.monotonic(), PEERS[name]
    rows, test_rows = rows_of(part)
    y, n_classes = rows.classes, part.train.n_classes
    encode = rows.encoder(("passthrough", rows.numbers))
    x, test = encode.fit_transform(rows.frame).astype(float), encode.transform(test_rows).astype(float)
    splits = validation_splits(y, 0) if len(settings) > 1 else []
    share = seconds / 2 / max(1, len(splits) * len(settings))

    def learn(own: Matrix, others: Matrix, setting: float, seconds: float) -> tuple[Matrix, dict[str, Any]]:
        found, known = learner(x[own], y[own], setting, seconds)
        if "leaves" not in known:
            return found(others), known
        places = found(x[own])
        counts = np.ones((places.max() + 1, n_classes))
        np.add.at(counts, (places, y[own]), 1)
        size = 2 * known["leaves"] - 1  # leaves and tests
        return (counts / counts.sum(axis=1, keepdims=True))[found(others)], {"size": size, **known}

    def right(setting: float) -> float:
        return sum(np.mean(learn(a, x[b], setting, share)[0].argmax(axis=1) == y[b]) for a, b in splits)

    chosen = max(settings, key=right)
    found, known = learn(np.arange(len(y)), test, chosen, max(share, seconds - time.monotonic() + began))
    return found, {"setting": chosen, "version": version(package), **known}


def solved(part: Part, recipe: str, seconds: float) -> Result:
    """Return what a recipe, or a ``plain`` `solve` with the default soft margin, finds from the training rows."""
    limits: Any = {"time_limit": seconds, "threads": 1, "random_state": 0, "verbose": False}
    if recipe == "plain":
        return milpbn.solve(part.training, **limits)
    return milpbn.solve_selected(part.training, recipe=recipe, **limits)


def of_test_rows(classifier: Any, part: Part) -> tuple[list[str], Matrix]:
    """Return the labels and the probabilities of the test rows."""
    test = part.table.frame.iloc[part.test_rows][[*part.table.features]]
    return [str(label) for label in classifier.classes], classifier.predict_proba(test)


def cell(name: str, part: Part, seconds: float) -> dict[str, Any]:
    """Return the figures of a method on a fold."""
    began, work = time.monotonic(), time.process_time()
    if name in PEERS:
        labels, (found, known) = list(part.train.variables[-1].states), probabilities(part, name, seconds)
    else:
        result = solved(part, name, seconds)
        labels, found = of_test_rows(result.classifier, part)
        known = {"size": result.classifier.n_parameters, "arcs": len(result.structure.arcs)}
        known |= {"optimal": result.reason == "optimal", "gap": result.gap.relative_to_bound}
    taken = {"seconds": time.process_time() - work, "wall": time.monotonic() - began, "limit": seconds}
    judgement = judged(found, found.argmax(axis=1), test_classes(part, labels))
    return {
        "data": part.table.name,
        "method": name.split()[0],
        "part": part.name,
        **known,
        **judgement,
        **taken,
    }


def page(cells: pd.DataFrame) -> list[str]:
    """Return the tables of the page: proofs, means, differences, and every data set."""
    names = [name for name in METHODS if name in cells.index.unique("method")]
    proofs = cells.groupby(level="method", sort=False)
    gaps = cells["gap"].where(~cells["optimal"]).groupby(level="method").median()
    proved = pd.DataFrame(
        {"cells": proofs.size(), "optimal": proofs["optimal"].sum(), "open gap, %": 100 * gaps}
    )
    sections = [table_of("## What is proved", proved.loc[names], ".4g")]
    formats = {"accuracy": ".2f", "log-loss": ".3f", "AUC": ".3f", "size": ".0f", "seconds": ".1f"}
    means = cells[list(formats)].groupby(level=["data", "method"], sort=False).mean()
    for own in (names, [name for name in names if "risk" not in name]):
        of = means[means.index.isin(own, level="method")]
        whole = of[of.groupby(level="data")["size"].transform("size") == len(own)]
        title = f"## Means over {', '.join(whole.index.unique('data'))}"
        sections.append(table_of(title, whole.groupby(level="method").mean().reindex(own), formats))
    for ours in names[:2]:
        lines = [f"## {ours} minus the others", ""]
        lines += table(["method", "data sets", "accuracy", "won", "lost", "log-loss", "won", "lost"])
        for other in (name for name in names if name != ours):
            one, two = pair(cells, ours, other)
            row = [other, f"{one.index.unique('data').size}"]
            for figure, form in (("accuracy", ".2f"), ("log-loss", ".3f")):
                values = (one[figure] - two[figure]).groupby(level="data").mean()
                row.append(f"{values.mean():+{form}} ± {values.sem():{form}}")
                row += map(str, wins(one, two, figure))
            lines.append(f"| {' | '.join(row)} |")
        sections.append("\n".join(lines))
    for figure, form in formats.items():
        sections.append(table_of(f"## {figure} by data set", means[figure].unstack(sort=False)[names], form))
    return sections


def forked(name: str, part: Part, seconds: float) -> dict[str, Any]:
    """Do the same as `cell` in a fork of this process, which may end."""
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        return pool.submit(cell, name, part, seconds).result()


def main() -> None:
    """Compute what is missing, and write the page."""
    made = parser(__doc__, data=DATA, output=RESULTS / "certified", time_limit=20.0)
    made.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="NAME")
    made.add_argument("--page", action="store_true", help="compute nothing")
    options = parse(made, DATA, catalog=True)
    absent = [name for name, (package, *_) in PEERS.items() if find_spec(package) is None]
    if absent:
        print(f"left out, their packages are not installed: {', '.join(absent)}", flush=True)
    store = Store(options.output / ARCHIVE)
    with errors_as_sentences():
        for k, data in () if options.page else product(range(FOLDS), options.data):
            table = read_table(data, data_dir=options.data_dir)
            labels, y = np.unique(table.frame[table.target].astype(str), return_inverse=True)
            part = Part(f"fold-{k + 1}", table, *stratified_folds(y, FOLDS, 1)[k])
            several = len(labels) > 2
            for name in (n for n in options.methods if n not in absent and not (several and "risk" in n)):
                key = f"{name} {data} {part.name} {options.time_limit:g}"
                if key not in store:
                    try:
                        found = (forked if "streed" in name else cell)(name, part, options.time_limit)
                    except BrokenProcessPool:
                        found = forked(f"{name} untuned", part, options.time_limit) | {"untuned": True}
                    store.add({key: found})
                    print(key, {n: store[key].get(n) for n in ("size", "optimal", "gap", "wall")}, flush=True)
        cells = pd.DataFrame([{**one, **one["figures"]} for one in store.values()]).sort_values(
            "limit", kind="stable"
        )
        cells = cells.drop_duplicates(["data", "method", "part"], keep="last").set_index(
            ["data", "method", "part"]
        )
        cells = cells.rename(columns={"log_loss": "log-loss", "auc": "AUC"})
        cells["accuracy"] *= 100
        cells["correct"] = [Figures.from_dict(values).correct for values in cells["figures"]]
        write_page(options.output, [read_remarks(options.output), *page(cells)])


if __name__ == "__main__":
    main()
