"""Support vector machine with a Gaussian kernel on indicator vectors: P12's black box to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC

from milpbn.clock import SELECTION_SHARE
from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import InputError
from milpbn.learners.base import Control, Learned, Learner, setting
from milpbn.learners.workers import results, workers
from milpbn.network.classifier import Source, encode
from milpbn.selection import validation_parts

#: P12, section 6: all combinations of the kernel's width and the trade-off factor.
SIGMAS = tuple(2.0**k for k in range(-5, 6))
COSTS = tuple(2.0**k for k in range(-3, 6))
#: Between the outermost, in powers of 2.
MIDDLE_COST = 2.0
#: Beyond this and its inverse the kernel of any data is constant, or no more than the identity.
SMALLEST = 1e-6
#: Rows that are fitted to in a second or less, within this process.
FEW = 1000


@dataclass(frozen=True, eq=False)
class SvmClassifier:
    """A fitted machine; `predict` takes what a `Classifier` takes.

    Attributes
    ----------
    variables : tuple of Variable
        Features first, the class variable last.
    machine : sklearn.svm.SVC
        On the indicators of the features' states; the indicators of a value without a state are all 0.
    """

    variables: tuple[Variable, ...]
    machine: SVC

    @property
    def classes(self) -> tuple[str, ...]:
        """Labels of all classes; those without training rows are never predicted."""
        return self.variables[-1].states

    def predict(self, source: Source) -> NDArray[np.object_]:
        """Return the label of each sample's class, shape (M,)."""
        found = self.machine.predict(indicators(encode(source, self.variables)))
        return np.array(self.classes, dtype=object)[found]


def indicators(data: Dataset) -> csr_array:
    """Return one column per state of every feature, shape (M, states); 1 where a sample has the state."""
    states = [np.arange(v.n_states) for v in data.variables[:-1]]
    return csr_array(OneHotEncoder(categories=states, handle_unknown="ignore").fit_transform(data.X))


def fit_machine(data: Dataset, sigma: float, cost: float) -> SvmClassifier:
    """Fit scikit-learn's LIBSVM with the kernel exp(-|x - x'|^2 / (2 sigma^2)) and weighted slacks.

    Parameters
    ----------
    data : Dataset
        Training data; a weight multiplies its sample's part of the loss.
    sigma : float
        Width of the kernel; two samples that differ in d features have a squared distance of 2 d.
    cost : float
        C, what a unit of slack costs.
    """
    machine = SVC(C=cost, gamma=1.0 / (2.0 * sigma**2))
    machine.fit(indicators(data), data.y, sample_weight=data.weights)
    return SvmClassifier(data.variables, machine)


@dataclass(frozen=True, kw_only=True)
class Svm(Learner):
    """Support vector machine, its two parameters chosen by validation as P12 chooses gamma.

    Attributes
    ----------
    cost : float or None
        C; None: the best of `COSTS`.
    sigma : float or None
        Width of the kernel; None: the best of `SIGMAS`.
    """

    name = "svm"
    is_network = False
    summary = "Support vector machine with a Gaussian kernel on indicators; no graph at all."
    reference = "Peharz & Pernkopf 2012, section 6; Chang & Lin 2011."

    cost: float | None = setting(None, "C, what a unit of slack costs; otherwise by validation.")
    sigma: float | None = setting(None, "Width of the kernel; otherwise by validation.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("cost", "sigma"):
            value = getattr(self, name)
            if value is not None and not SMALLEST <= value <= 1 / SMALLEST:
                raise InputError(f"{name} must lie between {SMALLEST:g} and {1 / SMALLEST:g}, got {value}.")

    def _fit(self, data: Dataset, control: Control) -> Learned:
        """Choose the parameters and fit on all rows, or where time or the user ends that, on a sample of them.

        Raises
        ------
        InputError
            If there is only one class, or too few rows to validate on.
        """
        if len(np.unique(data.y)) < 2:
            raise InputError(f"The data {data.name!r} has one class only; there is nothing to separate.")
        stopping = control.watch()
        grid = list(
            product(
                SIGMAS if self.sigma is None else (self.sigma,), COSTS if self.cost is None else (self.cost,)
            )
        )
        # From the middle outwards: with little time only extreme machines would be known. Samples that differ in half
        # of the features have a kernel of e^-2 there; a width that knows nothing of their number is the identity's.
        middle = 0.5 * np.sqrt(data.n_features)
        grid.sort(key=lambda pair: abs(np.log2(pair[0] / middle)) + abs(np.log2(pair[1] / MIDDLE_COST)))
        sigma, cost = grid[0]
        details: dict[str, Any] = {}
        if len(grid) > 1:
            (sigma, cost), details = _validate(data, grid, control)
        control.report(f"fitting sigma = {sigma:g}, C = {cost:g} on {data.n_samples} rows")
        predictor = None
        if data.n_samples > FEW:
            with workers(1, killable=True) as pool:
                (predictor,) = results(pool, [(fit_machine, data, sigma, cost)], stopping) or (None,)
        rows = data.n_samples
        if predictor is None:
            few = _few_rows(data, control.random_state)
            rows = few.n_samples
            if rows < data.n_samples:
                control.report(f"there was no time for that; fitting on {rows} rows")
            predictor = fit_machine(few, sigma, cost)
        stopped = rows < data.n_samples or details.get("stopped_early", False)
        return Learned(
            predictor=predictor,
            structure=None,
            details={
                "sigma": sigma,
                "cost": cost,
                "support_vectors": int(predictor.machine.n_support_.sum()),
                **details,
                "rows": rows,
                "stopped_early": stopped,
            },
        )


def _few_rows(data: Dataset, random_state: int) -> Dataset:
    """Return at most `FEW` rows, evenly spread over the classes, with one row of each class at least."""
    if data.n_samples <= FEW:
        return data
    order = np.random.default_rng(random_state).permutation(data.n_samples)
    by_class = order[np.argsort(data.y[order], kind="stable")]
    _, first = np.unique(data.y[by_class], return_index=True)
    even = np.linspace(0, data.n_samples - 1, max(0, FEW - len(first)), dtype=np.int64)
    return data.take(np.sort(by_class[np.union1d(first, even)]))


def _validate(
    data: Dataset, grid: Sequence[tuple[float, float]], control: Control
) -> tuple[tuple[float, float], dict[str, Any]]:
    """Return the pair with the most weight classified correctly on held-out rows; of equals the first in the grid.

    A pair counts once it was tried on all parts; when its share of the time is over, the best of those wins.
    """
    if control.time_limit is not None:
        control = replace(control, time_limit=SELECTION_SHARE * control.time_limit)
    stopping = control.watch()
    parts = [
        (data.take(fit), data.take(held)) for fit, held in validation_parts(data.y, control.random_state)
    ]
    total = sum(float(held.weights.sum()) for _, held in parts)
    best, right = grid[0], -1.0
    tried = 0
    with workers(min(control.n_jobs, len(parts)), killable=data.n_samples > FEW) as pool:
        for pair in grid:
            scores = results(pool, [(_right, fit, held, pair) for fit, held in parts], stopping)
            if scores is None:
                break
            tried += 1
            share = sum(scores) / total
            if share > right:
                best, right = pair, share
                control.report(f"sigma = {pair[0]:g}, C = {pair[1]:g}: {100 * share:.2f} % on held-out rows")
    accuracy = None if tried == 0 else right
    return best, {"validation_accuracy": accuracy, "tried": tried, "stopped_early": tried < len(grid)}


def _right(fit: Dataset, held: Dataset, pair: tuple[float, float]) -> float:
    """Return the weight of the held-out rows that a machine classifies correctly."""
    found: NDArray[np.integer] | int = fit.y[0]
    if (fit.y != found).any():
        found = fit_machine(fit, *pair).machine.predict(indicators(held))
    return float(held.weights[found == held.y].sum())
