"""The choice of kappa and of the penalty's strength, or of a temperature, by log-loss on held-out rows.

Every fold has an offset of its own, from generative tables that were fitted to its training rows only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from milpbn.data.dataset import Dataset
from milpbn.data.folds import stratified_folds
from milpbn.network.cpt import class_log_joint, log_cpts
from milpbn.network.parameters.conditional import Stopped, fit_deviations, log_loss
from milpbn.network.parameters.design import Design, Rows
from milpbn.network.structure import Structure

#: Number of folds, or the number of rows if that is smaller.
FOLDS = 5
#: Strengths of the penalty, from strong to weak: the path along which each fit starts from the one before.
STRENGTHS = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)
#: Values of kappa that ``hybrid`` chooses from.
KAPPAS = (1.0, 0.5, 0.0)
#: A path ends after this many strengths in a row that did not lower the held-out log-loss.
PATIENCE = 2
#: Accuracy of the fits of folds; see `fit_deviations`.
TOLERANCE = 1e-3
#: Largest temperature factor.
LARGEST_FACTOR = 10.0


class Fold(NamedTuple):
    """One fold: training and held-out rows, and the generative log-joint of both.

    Attributes
    ----------
    train, held_out : Rows
        Distinct rows.
    train_joint, held_out_joint : float64 arrays, shapes (U, C)
        Log-joint in nats, from tables of the training rows.
    """

    train: Rows
    held_out: Rows
    train_joint: NDArray[np.float64]
    held_out_joint: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the held-out rows chose.

    Attributes
    ----------
    kappa : float
        Share of the generative log-joint.
    strength : float or None
        Strength of the penalty; None for no deviations at all.
    log_loss, generative_log_loss : float
        Mean held-out log-loss in nats, of the choice and of generative parameters.
    folds : int
        Number of folds.
    start : float64 array, shape (K, C), or None
        Mean of the folds' deviations, from which the fit to all rows starts; None without deviations.
    complete : bool
        Whether all values were tried that had to be.
    """

    kappa: float
    strength: float | None
    log_loss: float
    generative_log_loss: float
    folds: int
    start: NDArray[np.float64] | None = None
    complete: bool = True


def joint(rows: Rows, train: Dataset, structure: Structure, smoothing: float) -> NDArray[np.float64]:
    """Return the log-joint of rows from the generative tables of training data, shape (U, C), in nats."""
    tables = log_cpts(train, structure, smoothing)
    return class_log_joint(rows.codes, structure, tables, train.n_classes, np.asarray)


def make_folds(
    data: Dataset, structure: Structure, smoothing: float, design: Design, random_state: int
) -> list[Fold]:
    """Return the folds of training data with at least two rows, stratified by class."""
    folds = []
    for train, held_out in stratified_folds(data.y, min(FOLDS, data.n_samples), random_state):
        inside = data.take(train)
        rows, others = design.rows(inside), design.rows(data.take(held_out))
        both = (joint(of, inside, structure, smoothing) for of in (rows, others))
        folds.append(Fold(rows, others, *both))
    return folds


def generative_loss(folds: Sequence[Fold]) -> float:
    """Return the mean held-out log-loss of generative parameters in nats."""
    return sum(log_loss(f.held_out_joint, f.held_out.weights) for f in folds) / _weight(folds)


def _weight(folds: Sequence[Fold]) -> float:
    return sum(f.held_out.weight for f in folds)


def choose_temperature(folds: Sequence[Fold]) -> Choice:
    """Return the factor on the log-joint with the smallest held-out log-loss, a convex function of it."""
    weight = _weight(folds)

    def loss(factor: float) -> float:
        return sum(log_loss(factor * f.held_out_joint, f.held_out.weights) for f in folds) / weight

    found = minimize_scalar(loss, bounds=(0.0, LARGEST_FACTOR), method="bounded", options={"xatol": 1e-6})
    return Choice(
        kappa=float(found.x),
        strength=None,
        log_loss=float(found.fun),
        generative_log_loss=generative_loss(folds),
        folds=len(folds),
    )


def choose(
    folds: Sequence[Fold],
    kappas: Sequence[float],
    n_columns: int,
    *,
    with_generative: bool,
    stopping: Callable[[], bool],
    report: Callable[[str], None] = lambda line: None,
) -> Choice | None:
    """Return the kappa and the strength with the smallest mean held-out log-loss.

    For every kappa the strengths fall along `STRENGTHS`; the fits of a fold start from its fit for the strength before.

    Parameters
    ----------
    folds : sequence of Fold
        Return value of `make_folds`.
    kappas : sequence of float
        Values to try, in this order.
    n_columns : int
        Number K of joint states.
    with_generative : bool
        Whether generative parameters without deviations are among the choices.
    stopping : callable
        Ends the choice; what was tried on all folds by then counts.
    report : callable
        Called with a line after every value.

    Returns
    -------
    Choice or None
        None if nothing was tried on all folds.
    """
    weight, base = _weight(folds), generative_loss(folds)
    generative = Choice(kappa=1.0, strength=None, log_loss=base, generative_log_loss=base, folds=len(folds))
    best = generative if with_generative else None
    complete = True
    try:
        for kappa in kappas:
            points = [np.zeros((n_columns, f.train.weights.shape[1])) for f in folds]
            least, idle = np.inf, 0
            for strength in STRENGTHS:
                total = 0.0
                for k, fold in enumerate(folds):
                    points[k] = fit_deviations(
                        fold.train,
                        kappa * fold.train_joint,
                        strength,
                        points[k],
                        tolerance=TOLERANCE,
                        stopping=stopping,
                    )
                    scores = kappa * fold.held_out_joint + fold.held_out.indicators @ points[k]
                    total += log_loss(scores, fold.held_out.weights)
                value = total / weight
                report(f"parameters: kappa {kappa:g}, strength {strength:g}: held-out log-loss {value:.6f}")
                if best is None or value < best.log_loss:
                    start = sum(points[1:], start=points[0]) / len(folds)
                    best = replace(generative, kappa=kappa, strength=strength, log_loss=value, start=start)
                least, idle = (value, 0) if value < least else (least, idle + 1)
                if idle == PATIENCE:
                    break
    except Stopped:
        complete = False
    if best is None or (not complete and best.start is None):
        return None
    return replace(best, complete=complete)
