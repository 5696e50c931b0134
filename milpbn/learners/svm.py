"""The support vector machine as a learner, with parameters chosen by validation (Peharz & Pernkopf 2012, P12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.learners.base import Control, Learned, Learner, setting
from milpbn.learners.svm_machine import CACHE, calibrated, fit_machine, indicators, width
from milpbn.trials.executors import alone, results, workers
from milpbn.trials.parts import FOLDS, validation_splits
from milpbn.util.budget import Budget
from milpbn.util.clock import SELECTION_SHARE
from milpbn.util.memory import available_memory

#: Kernel widths and trade-off factors of P12, section 6, which tries all pairs.
SIGMAS = tuple(2.0**k for k in range(-5, 6))
COSTS = tuple(2.0**k for k in range(-3, 6))
#: The geometric middle of `COSTS`.
MIDDLE_COST = 2.0
#: Range of both options. With widths outside of it, the kernel matrix of any data is constant or the identity.
SMALLEST, LARGEST = 1e-6, 1e6
#: Up to this number of rows a fit takes at most a second and runs in this process, where it cannot be stopped.
UNSTOPPABLE_ROWS = 1000
#: Number of rows of the fit that is made after the time limit, which takes a tenth of a second.
LATE_ROWS = 300
#: Share of the available memory that the kernel matrices of a validation may take.
MEMORY_SHARE = 0.25


@dataclass(frozen=True, kw_only=True)
class Svm(Learner):
    """Support vector machine, with two parameters that are chosen by validation, as P12 chooses gamma.

    Probabilities (`calibrated`) are fitted only if there is time.
    """

    name = "svm"
    is_network = False
    compiles = False
    summary = "Support vector machine with a Gaussian kernel on indicators; it has no graph."
    reference = "Peharz & Pernkopf 2012, section 6; Chang & Lin 2011."

    cost: float | None = setting(None, "C, the cost of a unit of slack; by default chosen by validation.")
    sigma: float | None = setting(None, "Width of the kernel; by default chosen by validation.")
    probabilities: bool = setting(True, "Also fit probabilities, for log-loss and Brier score.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("cost", "sigma"):
            value = getattr(self, name)
            if value is not None and not SMALLEST <= value <= LARGEST:
                raise InputError(f"{name} must lie between {SMALLEST:g} and {LARGEST:g}, got {value}.")

    def _fit(self, data: Dataset, control: Control, budget: Budget) -> Learned:
        """Choose the parameters and fit on all rows, or on `LATE_ROWS` of them if the fit has to be stopped."""
        if len(np.unique(data.y)) < 2:
            raise InputError(
                f"The data {data.name!r} have rows of one class only; an SVM needs at least two classes."
            )
        grid = grid_from_the_middle(
            data.n_features,
            SIGMAS if self.sigma is None else (self.sigma,),
            COSTS if self.cost is None else (self.cost,),
        )
        sigma, cost = grid[0]
        details: dict[str, Any] = {}
        if len(grid) > 1:
            rows = validation_splits(data.y, control.random_state)
            parts = [(data.take(fit), data.take(held)) for fit, held in rows]
            (sigma, cost), details = choose_pair(parts, grid, control, budget.share(SELECTION_SHARE))
        control.report(f"fitting sigma = {sigma:g}, C = {cost:g} on {data.n_samples} rows")
        predictor = None
        if data.n_samples > UNSTOPPABLE_ROWS:
            predictor = alone((fit_machine, data, sigma, cost), budget.over, killable=True)
        fitted = data.n_samples
        if predictor is None:
            kept = data if data.n_samples <= UNSTOPPABLE_ROWS else sample_rows(data, control.random_state)
            fitted = kept.n_samples
            if fitted < data.n_samples:
                control.report(f"the time is over; fitting on {fitted} of the rows instead")
            predictor = fit_machine(kept, sigma, cost)
        if self.probabilities and fitted == data.n_samples and not budget.over():
            # Not of the merged samples: a row that has no like in the training folds looks harder than it is.
            call = (_calibrated_or_none, data, sigma, cost, control.random_state)
            model = alone(call, budget.over, killable=data.n_samples > UNSTOPPABLE_ROWS)
            predictor = replace(predictor, calibrated=model)
        stopped = fitted < data.n_samples or details.get("stopped_early", False)
        return Learned(
            predictor=predictor,
            structure=None,
            details={
                "sigma": sigma,
                "cost": cost,
                "support_vectors": int(predictor.machine.n_support_.sum()),
                **details,
                "rows": fitted,
                "stopped_early": stopped,
            },
        )


def _calibrated_or_none(*arguments: Any) -> CalibratedClassifierCV | None:
    try:
        return calibrated(*arguments)
    except ValueError:  # scikit-learn's: a training fold has one class only
        return None


def sample_rows(data: Dataset, random_state: int) -> Dataset:
    """Return about `LATE_ROWS` random rows, in the proportions of the classes, with at least one row of each class."""
    if data.n_samples <= LATE_ROWS:
        return data
    order = np.random.default_rng(random_state).permutation(data.n_samples)
    by_class = order[np.argsort(data.y[order], kind="stable")]
    _, first = np.unique(data.y[by_class], return_index=True)
    even = np.linspace(0, data.n_samples - 1, max(0, LATE_ROWS - len(first)), dtype=np.int64)
    return data.take(np.sort(by_class[np.union1d(first, even)]))


def grid_from_the_middle(
    n_features: int, sigmas: Sequence[float] = SIGMAS, costs: Sequence[float] = COSTS
) -> list[tuple[float, float]]:
    """Return all pairs (sigma, C), the middle ones first, so that a short search does not try extreme values only.

    At the middle width, samples that differ in half of the features have the kernel e^-2. A width that ignores the
    number of features would make the kernel matrix the identity for many features.
    """
    middle = 0.5 * np.sqrt(n_features)
    grid = list(product(sigmas, costs))
    return sorted(grid, key=lambda pair: abs(np.log2(pair[0] / middle)) + abs(np.log2(pair[1] / MIDDLE_COST)))


@dataclass(frozen=True)
class ValidationSplit:
    """Training and held-out samples of a split, for machines with all pairs of sigma and C.

    Objects are equal if their tokens are, in whichever process they are.
    """

    fit: Dataset = field(compare=False)
    held: Dataset = field(compare=False)
    token: str = field(default_factory=lambda: uuid4().hex)

    @property
    def kernel_bytes(self) -> int:
        """Memory of the distances and of the kernel matrices between all samples and the training samples."""
        numbers = (self.fit.n_samples + self.held.n_samples) * self.fit.n_samples
        return numbers * (np.dtype(np.float64).itemsize + np.dtype(np.uint16).itemsize)

    def correct_weight(self, pair: tuple[float, float]) -> float:
        """Return the weight of the held-out rows that the machine with a pair (sigma, C) classifies correctly."""
        fit, held = self.fit, self.held
        predicted: NDArray[np.integer] | int = fit.y[0]
        if (fit.y != predicted).any():
            available = available_memory()
            if available is not None and self.kernel_bytes > MEMORY_SHARE * available:
                predicted = fit_machine(fit, *pair).machine.predict(indicators(held))
            else:
                predicted = self._predict(*pair)
        return float(held.weights[predicted == held.y].sum())

    def _predict(self, sigma: float, cost: float) -> NDArray[np.integer]:
        """Return the classes of the held-out samples by a machine on a kernel matrix, which LIBSVM only looks up."""
        own, other = squared_distances(self)
        of_distance = np.exp(-width(sigma) * np.arange(2 * self.fit.n_features + 1))
        machine = SVC(C=cost, kernel="precomputed", cache_size=CACHE)
        # mode="clip" checks no bounds first, which takes a third of the time of of_distance[own].
        machine.fit(of_distance.take(own, mode="clip"), self.fit.y, sample_weight=self.fit.weights)
        return machine.predict(of_distance.take(other, mode="clip"))


@lru_cache(maxsize=FOLDS)
def squared_distances(split: ValidationSplit) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Return |x - x'|^2 of indicators, between training samples, and from held-out to training samples.

    They are integers, in uint16 arrays of shapes (M, M) and (H, M) with M training and H held-out samples: two for each
    feature with different states, and one where the held-out sample's value has no state. All sigmas and costs share
    them, so a process keeps those of the last splits.
    """
    fit = indicators(split.fit).toarray().astype(np.float32)

    def distances(rows: NDArray[np.float32]) -> NDArray[np.uint16]:
        squares = rows @ fit.T  # integers below 2^24, which float32 has exactly
        squares *= -2.0
        squares += rows.sum(axis=1)[:, None]
        squares += fit.sum(axis=1)
        return squares.astype(np.uint16)

    return distances(fit), distances(indicators(split.held).toarray().astype(np.float32))


def choose_pair(
    parts: Sequence[tuple[Dataset, Dataset]],
    grid: Sequence[tuple[float, float]],
    control: Control,
    budget: Budget,
) -> tuple[tuple[float, float], dict[str, Any]]:
    """Return the pair (sigma, C) with the best accuracy on held-out rows, and details of the search.

    The parts are training and held-out samples. Only pairs that were tried on all of them within the budget are
    compared; of equally accurate ones, the first in the grid is chosen.
    """
    total = sum(float(held.weights.sum()) for _, held in parts)
    best = grid[0]
    accuracy: float | None = None
    tried = 0
    largest = max(fit.n_samples + held.n_samples for fit, held in parts)
    splits = [ValidationSplit(fit.merged, held.merged) for fit, held in parts]
    with workers(min(control.n_jobs, len(parts)), killable=largest > UNSTOPPABLE_ROWS) as pool:
        for pair in grid:
            scores = results(pool, [(split.correct_weight, pair) for split in splits], budget.over)
            if scores is None:
                break
            tried += 1
            share = sum(scores) / total
            if accuracy is None or share > accuracy:
                best, accuracy = pair, share
                control.report(f"sigma = {pair[0]:g}, C = {pair[1]:g}: {100 * share:.2f} % on held-out rows")
    return best, {"validation_accuracy": accuracy, "tried": tried, "stopped_early": tried < len(grid)}
