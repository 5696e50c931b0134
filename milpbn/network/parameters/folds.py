"""The choice of kappa and of the penalty's strength, or of a temperature, by log-loss on held-out rows.

Every fold has an offset of its own, from generative tables that were fitted to its training rows only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.folds import stratified_folds
from milpbn.network.cpt import class_log_joint, log_cpts
from milpbn.network.parameters.conditional import Design, DistinctRows, Stopped, fit_deviations, log_loss
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.prior import Prior
from milpbn.network.structure import Structure

#: Number of folds, or the number of rows if that is smaller.
FOLDS = 5
#: Strengths of the penalty, from strong to weak: each fit starts from that of the previous strength.
STRENGTHS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
#: Values of kappa that ``hybrid`` chooses from.
KAPPAS = (1.0, 0.75, 0.5, 0.25, 0.0)
#: A path ends after this many strengths in a row that did not lower the held-out log-loss.
PATIENCE = 2
#: Accuracy of the fits of folds; see `fit_deviations`.
TOLERANCE = 1e-3
#: Largest temperature factor.
LARGEST_FACTOR = 10.0
#: Notes of a record.
GENERATIVE = (
    "On held-out rows no other parameters were better than the generative ones, which the classifier has."
)
CUT_SHORT = "The time limit ended the choice of kappa and strength before all values were tried."


class Fold(NamedTuple):
    """Training and held-out rows of a fold, and the generative log-joint of both.

    The log-joints, shapes (U, C), are in nats, from tables of the training rows.
    """

    train: DistinctRows
    held_out: DistinctRows
    train_joint: NDArray[np.float64]
    held_out_joint: NDArray[np.float64]


def generative_log_joint(
    rows: DistinctRows, train: Dataset, structure: Structure, prior: Prior
) -> NDArray[np.float64]:
    """Return the log-joint of rows from the generative tables of training data, shape (U, C), in nats."""
    tables = log_cpts(train, structure, *prior)
    return class_log_joint(rows.codes, structure, tables, train.n_classes, np.asarray)


def make_folds(
    data: Dataset, structure: Structure, prior: Prior, design: Design, random_state: int
) -> list[Fold]:
    """Return the folds of training data with at least two rows, stratified by class."""
    folds = []
    for train, held_out in stratified_folds(data.y, min(FOLDS, data.n_samples), random_state):
        inside = data.take(train)
        rows, others = design.rows(inside), design.rows(data.take(held_out))
        both = (generative_log_joint(of, inside, structure, prior) for of in (rows, others))
        folds.append(Fold(rows, others, *both))
    return folds


def generative_loss(folds: Sequence[Fold]) -> float:
    """Return the mean held-out log-loss of generative parameters in nats."""
    return sum(log_loss(f.held_out_joint, f.held_out.weights) for f in folds) / _weight(folds)


def _weight(folds: Sequence[Fold]) -> float:
    return sum(f.held_out.weight for f in folds)


def choose_temperature(folds: Sequence[Fold]) -> ParameterFit:
    """Return the factor on the log-joint with the smallest held-out log-loss, a convex function of it."""
    weight = _weight(folds)

    def loss(factor: float) -> float:
        return sum(log_loss(factor * f.held_out_joint, f.held_out.weights) for f in folds) / weight

    ends = (0.0, LARGEST_FACTOR)
    found = scipy.optimize.minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-6})
    return _record("temperature", float(found.x), None, float(found.fun), generative_loss(folds), len(folds))


def _record(
    method: str,
    kappa: float,
    strength: float | None,
    loss: float,
    generative_loss: float,
    folds: int,
    complete: bool = True,
) -> ParameterFit:
    """Return the record of a choice; it has no kappa where the generative parameters were the best."""
    generative = strength is None and kappa == 1.0
    return ParameterFit(
        method=method,
        fitted=not generative,
        kappa=None if generative else kappa,
        strength=strength,
        held_out_log_loss=loss,
        generative_log_loss=generative_loss,
        folds=folds,
        note=" ".join([GENERATIVE] * generative + [CUT_SHORT] * (not complete)),
    )


def _simplest(
    tried: Mapping[tuple[float, float], NDArray[np.float64]], weights: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Return the best kappa, its largest strength within one standard error of the best, and the mean loss."""
    means = {pair: float(np.average(losses, weights=weights)) for pair, losses in tried.items()}
    best = min(means, key=means.__getitem__)

    def as_good(pair: tuple[float, float]) -> bool:
        more = tried[pair] - tried[best]
        return means[pair] <= means[best] + float(more.std(ddof=1)) / np.sqrt(len(weights))

    chosen = max((pair for pair in tried if pair[0] == best[0] and as_good(pair)), key=lambda pair: pair[1])
    return (*chosen, means[chosen])


def choose_kappa(
    folds: Sequence[Fold],
    method: str,
    kappas: Sequence[float],
    n_columns: int,
    *,
    stopping: Callable[[], bool],
    report: Callable[[str], None] = lambda line: None,
) -> ParameterFit:
    """Return kappa and strength by log-loss on held-out rows: the best kappa, with the strongest of the good penalties.

    For every kappa the strengths fall along `STRENGTHS`; each fit of a fold starts from its fit for the previous
    strength. The kappa is that of the smallest mean log-loss. Of its strengths the largest is taken that is no worse
    than the best by more than one standard error of the difference over the folds: the structure was chosen with the
    held-out rows, too, so that their loss is too small where the penalty is weak.

    Under ``hybrid`` generative parameters without deviations are among the choices. There are K = `n_columns` joint
    states. If `stopping` ends the choice, what was tried on all folds by then counts, and `Stopped` is raised if that
    is nothing. `report` is called with a line after every value.
    """
    weights = np.array([f.held_out.weight for f in folds])
    generative = _losses([f.held_out_joint for f in folds], folds)
    tried = {(1.0, np.inf): generative} if method == "hybrid" else {}
    untried = len(tried)
    complete = True
    try:
        for kappa in kappas:
            points = [np.zeros((n_columns, f.train.weights.shape[1])) for f in folds]
            least, idle = np.inf, 0
            for strength in STRENGTHS:
                for k, fold in enumerate(folds):
                    points[k] = fit_deviations(
                        fold.train,
                        kappa * fold.train_joint,
                        strength,
                        points[k],
                        tolerance=TOLERANCE,
                        stopping=stopping,
                    )
                both = zip(folds, points, strict=True)
                scores = [kappa * f.held_out_joint + f.held_out.indicators @ d for f, d in both]
                tried[kappa, strength] = _losses(scores, folds)
                value = float(np.average(tried[kappa, strength], weights=weights))
                report(f"parameters: kappa {kappa:g}, strength {strength:g}: held-out log-loss {value:.6f}")
                least, idle = (value, 0) if value < least else (least, idle + 1)
                if idle == PATIENCE:
                    break
    except Stopped:
        if len(tried) == untried:
            raise
        complete = False
    kappa, strength, loss = _simplest(tried, weights)
    deviating = strength if np.isfinite(strength) else None
    before = float(np.average(generative, weights=weights))
    return _record(method, kappa, deviating, loss, before, len(folds), complete)


def _losses(scores: Sequence[NDArray[np.float64]], folds: Sequence[Fold]) -> NDArray[np.float64]:
    """Return the mean log-loss of every fold's held-out rows, shape (folds,)."""
    return np.array(
        [log_loss(s, f.held_out.weights) / f.held_out.weight for s, f in zip(scores, folds, strict=True)]
    )
