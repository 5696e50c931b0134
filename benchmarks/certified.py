"""Optimal trees, risk scores and our networks on the same columns and folds, and what is proved of each.

    python benchmarks/certified.py [heart iris] --data-dir DIR [--methods gosdt plain] [--time-limit 20]
    python benchmarks/certified.py --only-cached --data-dir DIR

Peers, from PyPI: pystreed 1.4.0 (with scikit-survival), imodels 3.0.4 (with mlxtend and numba), gosdt 1.0.4, fasterrisk
0.1.10 (with NumPy 2.3 or newer, put `tobytes` for its synonym `tostring` in `fasterrisk/rounding.py`). Those that are
absent are named and left out. Cells are kept under --output; a run that is killed goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import RESULTS, add_run_options, compute, errors_as_sentences, parse, parser, write_page
from numpy.typing import NDArray
from raw import by_set, pair, read, table_of, wins
from raw_methods import RawMethod, RawRows, judged, test_classes
from raw_study import RawStudy

import milpbn
from milpbn.claims.result import Result
from milpbn.data import Table, stratified_folds
from milpbn.experiments.base import Method, MethodInput
from milpbn.experiments.cells import Cell, KeptCells
from milpbn.experiments.page import head, read_remarks
from milpbn.experiments.protocol import Part, PartRows
from milpbn.experiments.runner import Task, facts, missing
from milpbn.trials.parts import validation_splits

#: Data sets, small ones first.
DATA = (
    "corral", "iris", "glass2", "hepatitis", "heart", "cleve", "australian", "diabetes", "mofn-3-7-10", "car",
    "segment", "soybean-large", "shuttle-small", "mushroom", "nursery",
)  # fmt: skip
Matrix = NDArray[Any]
#: What a learner returns: a function of rows, which numbers their leaves or gives their probabilities, and facts.
Learnt = tuple[Callable[[Matrix], Matrix], dict[str, Any]]


def leaves_of(tree: Any, x: Matrix) -> Matrix:
    """Return the leaves of binary rows in a tree of (column, tree where it is 1, tree where it is 0) and numbers."""
    if isinstance(tree, int):
        return np.full(len(x), tree)
    return np.where(x[:, tree[0]] > 0, leaves_of(tree[1], x), leaves_of(tree[2], x))


def streed(x: Matrix, y: Matrix, depth: float, seconds: float) -> Learnt:
    """Learn with pystreed: the least training error of all trees of a depth; its own folds choose the tests' number."""
    from pystreed import STreeDClassifier

    model = STreeDClassifier(max_depth=int(depth), hyper_tune=True, time_limit=seconds).fit(x, y)
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
    gap = 1 - float(model.lowerbound_) / float(model.upperbound_)
    return model.estimator_.apply, {
        "leaves": int(model.n_leaves_),
        "optimal": bool(model.optimal_),
        "gap": gap,
    }


@lru_cache(maxsize=6)
def guessed_cuts(x: bytes, y: bytes) -> tuple[list[int], list[float]]:
    """Return the columns and values of GOSDT's guesses; kept for all penalties.

    Its binariser reads the stumps of the first class only; with more classes it gets each of them against the others.
    """
    from gosdt import ThresholdGuessBinarizer

    guess, classes = ThresholdGuessBinarizer(n_estimators=40, max_depth=1), np.frombuffer(y, dtype=np.intp)
    matrix, there = np.frombuffer(x).reshape(len(classes), -1), np.unique(classes)
    found = {cut for k in there[len(there) == 2 :] for cut in guess.fit(matrix, classes == k).thresholds_}
    return [j for j, _ in sorted(found)], [value for _, value in sorted(found)]


def gosdt(x: Matrix, y: Matrix, penalty: float, seconds: float) -> Learnt:
    """Learn with GOSDT on cuts that 40 boosted stumps guess, with a depth of 6, as in its README.

    There are no reference labels: with them its bound would be a guess.
    """
    from gosdt import GOSDTClassifier

    columns, values = guessed_cuts(x.tobytes(), y.tobytes())
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
    known = {
        "optimal": str(found["status"]).endswith("CONVERGED"),
        "gap": 1 - low / high if high > 0 else 0.0,
    }
    return lambda x: leaves_of(tree, x[:, columns] <= values), {"leaves": next(number), **known}


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


class Encoded:
    """A model as scikit-learn has them, of an encoder and the probabilities of encoded rows."""

    def __init__(self, encode: Any, of_rows: Callable[[Matrix], Matrix], classes: int) -> None:
        self.encode, self.of_rows, self.classes_ = encode, of_rows, np.arange(classes)

    def predict_proba(self, frame: pd.DataFrame) -> Matrix:
        """Return the probabilities of raw rows."""
        return self.of_rows(self.encode.transform(frame).astype(float))


@dataclass(frozen=True, kw_only=True)
class Peer(RawMethod):
    """One of `PEERS`; its settings are compared by accuracy in half of the seconds, the first of equal ones counts.

    Probabilities in a leaf are (n_k + 1) / (n + K) of its training rows.
    """

    name: str = ""
    seconds: float
    settings: tuple[float, ...]

    def fit(self, rows: RawRows, seed: int) -> tuple[Any, dict[str, Any]]:
        """Choose the setting, and fit all rows in the time that is left."""
        began, y, classes = time.monotonic(), rows.classes, len(rows.labels)
        encode = rows.encoder(("passthrough", rows.numbers))
        x = encode.fit_transform(rows.train).astype(float)
        splits = validation_splits(y, seed) if len(self.settings) > 1 else []
        share = self.seconds / 2 / max(1, len(splits) * len(self.settings))

        def learn(own: Matrix, setting: float, seconds: float) -> Learnt:
            found, known = PEERS[self.name][1](x[own], y[own], setting, seconds)
            if "leaves" not in known:
                return found, known
            places = found(x[own])
            counts = np.ones((places.max() + 1, classes))
            np.add.at(counts, (places, y[own]), 1)
            known["size"] = 2 * known["leaves"] - 1  # leaves and tests
            return lambda x: (counts / counts.sum(axis=1, keepdims=True))[found(x)], known

        right = [
            sum(np.mean(learn(a, one, share)[0](x[b]).argmax(axis=1) == y[b]) for a, b in splits)
            for one in self.settings
        ]
        chosen = self.settings[int(np.argmax(right))]
        left = max(share, self.seconds - time.monotonic() + began)
        model, known = learn(np.arange(len(y)), chosen, left)
        return Encoded(encode, model, classes), {
            "setting": chosen,
            "version": version(PEERS[self.name][0]),
            **known,
        }


def solved(part: Part, recipe: str, seconds: float, seed: int) -> Result:
    """Return what a recipe, or a ``plain`` `solve` with the default soft margin, finds from the training rows."""
    limits: Any = {"time_limit": seconds, "threads": 1, "random_state": seed, "verbose": False}
    if recipe == "plain":
        return milpbn.solve(part.training, **limits)
    return milpbn.solve_selected(part.training, recipe=recipe, **limits)


@dataclass(frozen=True, kw_only=True)
class Network(Method):
    """A network of this package, whose name is that of a recipe, or ``plain``."""

    name: str = ""
    seconds: float

    def run(self, given: MethodInput) -> dict[str, Any]:
        """Search, and judge the test rows."""
        part = given.part
        assert isinstance(part, Part)
        result = solved(part, self.name, self.seconds, given.seed)
        classifier = result.classifier
        assert classifier is not None
        probabilities = classifier.predict_proba(
            part.table.frame.iloc[part.test_rows][[*part.table.features]]
        )
        actual = test_classes(part, [str(label) for label in classifier.classes])
        known = {"size": classifier.n_parameters, "arcs": len(result.structure.arcs)}
        known |= {"optimal": result.reason == "optimal", "gap": result.gap.relative_to_bound}
        return judged(probabilities, probabilities.argmax(axis=1), actual) | {"choice": known}


@dataclass(frozen=True, kw_only=True)
class CertifiedStudy(RawStudy):
    """The methods on stratified folds; the first fold of all data sets comes first."""

    title: str = "certified"

    def tasks(self) -> list[Task]:
        """Return the tasks by fold, data set and method."""
        found = []
        for part in (f"fold-{k}" for k in range(1, self.repeats + 1)):
            for data in self.data:
                about = facts(data, self.data_dir)
                for name in self.methods:
                    if about.classes > 2 and "risk" in name:
                        continue
                    one: Method = Network(name=name, seconds=self.seconds)
                    if name in PEERS:
                        one = Peer(name=name, seconds=self.seconds, settings=PEERS[name][2])
                    cell = Cell(data, about.sha256, part, name, one.options, self.seed, one.budget)
                    found.append(Task(data, part, ((cell, one),)))
        return found

    def divided(self, table: Table) -> dict[str, PartRows]:
        """Return the folds by name."""
        classes = np.unique(table.frame[table.target].astype(str), return_inverse=True)[1]
        folds = stratified_folds(classes, self.repeats, 1)
        return {f"fold-{k}": Part(f"fold-{k}", table, *rows) for k, rows in enumerate(folds, 1)}


def page(study: CertifiedStudy, store: KeptCells, folder: Path) -> list[str]:
    """Return the sections of the page."""
    return [read_remarks(folder)]


def main() -> None:
    """Compute what is missing, and write the page."""
    made = parser(__doc__, data=DATA, output=RESULTS / "certified", time_limit=20.0, threads=1)
    made.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="NAME")
    add_run_options(made)
    options = parse(made, DATA, catalog=True)
    absent = [name for name, (package, *_) in PEERS.items() if find_spec(package) is None]
    if absent:
        print(f"left out, their packages are not installed: {', '.join(absent)}", flush=True)
    where = {"data_dir": options.data_dir, "seconds": options.time_limit}
    with errors_as_sentences():
        chosen = tuple(name for name in METHODS if name in options.methods and name not in absent)
        store = KeptCells(options.output)
        compute(CertifiedStudy(data=tuple(options.data), methods=chosen, **where), store, options)
        whole = CertifiedStudy(data=DATA, methods=METHODS, **where)
        write_page(options.output, page(whole, store, options.output))


if __name__ == "__main__":
    main()
