"""Thresholds with a sensitivity or a rate of alarms, from probabilities of training rows that folds hold out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.encodings import encodings_of
from milpbn.data.folds import stratified_folds
from milpbn.errors import InputError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.classifier import Classifier, TableClassifier
from milpbn.network.conformal import Tables
from milpbn.network.cpt import cells_of, fit_cpts
from milpbn.network.decisions import DecisionRule
from milpbn.network.discrimination import ClassFigures, Curve, class_figures
from milpbn.network.evaluation import labelled_rows, positive_class
from milpbn.network.margins import log_posterior
from milpbn.network.parameters.folds import FOLDS
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.parameters.record import ADDITIVE, recorded
from milpbn.network.parameters.refit import refit_classifier
from milpbn.network.prior import UNIFORM
from milpbn.util.validation import real_number

#: Largest difference of a probability between a classifier and one that is fitted anew to its training rows.
SAME = 1e-3
#: What can be done without folds.
INSTEAD = "give costs (--cost), or for sets rows that training has not seen (--conformal new)"


def decide_by_folds(
    classifier: TableClassifier | AveragedClassifier,
    train: Dataset,
    *,
    sensitivity: float | None = None,
    alarm_rate: float | None = None,
    positive: str | None = None,
    random_state: int = 0,
) -> tuple[TableClassifier | AveragedClassifier, ClassFigures]:
    """Return a classifier of two classes with a threshold, and what it does on held-out training rows.

    Folds hold out every training row once; the tables are fitted to the others, and the structure, its cuts and the
    parameters' kappa and strength stay as they are. The threshold is halfway between two of the probabilities.

    Parameters
    ----------
    classifier : Classifier or AveragedClassifier
        The classifier of the training rows.
    train : Dataset
        Its training rows, encoded by it.
    sensitivity : float, optional
        The threshold is the highest one that finds this share of the class; above 0, at most 1.
    alarm_rate : float, optional
        The threshold is the lowest one with at most this share of alarms; above 0, below 1. One of the two is given.
    positive : str, optional
        The class to detect; by default the rarer one.
    random_state : int
        Seed of the folds.

    Raises
    ------
    InputError
        If there are more than two classes, a share is out of range or cannot be reached, the rows are not those that
        the classifier was fitted to, or its tables are those of the recipe ``accurate``.
    """
    if (sensitivity is None) == (alarm_rate is None):
        raise InputError("Give either a sensitivity (--sensitivity) or a rate of alarms (--alarm-rate).")
    name, share = ("sensitivity", sensitivity) if alarm_rate is None else ("alarm_rate", alarm_rate)
    share = real_number(name, share)
    if not 0 < share <= 1 or (name == "alarm_rate" and share == 1):
        raise InputError(
            f"--{name.replace('_', '-')} ({name}) must be a share above 0 and "
            f"{'below' if name == 'alarm_rate' else 'at most'} 1, such as 0.9 for 90 %; got {share:g}."
        )
    classes = classifier.classes
    if len(classes) != 2:
        raise InputError(
            f"A threshold is for two classes, and there are {len(classes)}; give costs (--costs FILE)."
        )
    train = labelled_rows(train)
    detected = positive_class(classes, train, positive)
    assert detected is not None
    own = classes.index(detected)
    scores, truth = held_out_probabilities(classifier, train, random_state)[:, own], train.y == own
    curve = Curve.of(scores, truth, train.weights)
    reached = curve.recall >= share - 1e-12 if alarm_rate is None else curve.alarms <= share + 1e-12
    if not reached.any():
        first = 100 * float(curve.alarms[0])
        raise InputError(
            f"No threshold has at most {100 * share:g} % of alarms (--alarm-rate): {first:.2f} % of the rows have the "
            "same, highest probability."
        )
    k = int(np.argmax(reached)) if alarm_rate is None else int(np.flatnonzero(reached)[-1])
    threshold = float(np.append(curve.thresholds, 0.0)[k : k + 2].mean())
    origin = f"{name.replace('_', ' ')} {share:g}, learnt by {min(FOLDS, train.n_samples)} folds"
    decision = DecisionRule.at(threshold, detected, classes, origin)
    figures = class_figures(detected, scores, truth, scores > threshold, train.weights)
    return classifier.deciding(decision), figures


@dataclass(frozen=True, eq=False)
class HeldOutFold:
    """Rows that a fold holds out, the networks' tables by the other rows, and P(c | z_m) by these, shape (R, C)."""

    rows: NDArray[np.int64]
    tables: Tables
    probabilities: NDArray[np.float64]


def held_out_probabilities(
    classifier: TableClassifier | AveragedClassifier, train: Dataset, random_state: int = 0
) -> NDArray[np.float64]:
    """Return P(c | z_m) of training rows, each by tables of the folds that do not hold it, shape (M, C)."""
    found = np.empty((train.n_samples, len(classifier.classes)))
    for fold in held_out_folds(classifier, train, random_state):
        found[fold.rows] = fold.probabilities
    return found


def held_out_folds(
    classifier: TableClassifier | AveragedClassifier, train: Dataset, random_state: int = 0
) -> list[HeldOutFold]:
    """Return the folds of training rows; `InputError` if tables cannot be fitted to the others as the classifier's."""
    networks = _refitted(classifier, train)
    found = []
    for fit, held in stratified_folds(train.y, min(FOLDS, train.n_samples), random_state):
        fitted = [_fitted(member, data.take(fit)) for member, data in networks]
        p = [one.predict_proba(data.take(held)) for one, (_, data) in zip(fitted, networks, strict=True)]
        tables = tuple(tuple(cpt.table for cpt in one.cpts) for one in fitted)
        found.append(HeldOutFold(held, tables, np.mean(p, axis=0)))
    return found


def left_out_probabilities(
    classifier: TableClassifier | AveragedClassifier, train: Dataset
) -> NDArray[np.float64]:
    """Return P(c | z_m) of training rows, each by the tables of all other rows, shape (M, C).

    It needs no fit. A row counts in the tables of its own class only, where (n - w + a) / (n_h - w + a sp) takes the
    place of (n + a) / (n_h + a sp) for its weight w; the number of rows with the same parents of the class is in the
    probabilities of all classes, and cancels. Rows with missing features were in no table. `InputError` if the tables
    are not Laplace-smoothed counts of these rows.
    """
    found = []
    for member, data in _refitted(classifier, train):
        fit = recorded(member.provenance)
        if (fit is not None and fit.fitted) or not member.smoothing or member.smoothing_towards != UNIFORM:
            raise InputError(
                "Rows are left out one by one (--conformal leave-one-out) of tables that are counts with Laplace "
                "smoothing, and these are not; calibrate by folds (--conformal folds)."
            )
        logs, inside = member.predict_log_joint(data), np.flatnonzero((data.codes >= 0).all(axis=1))
        codes, w = data.codes[inside].astype(np.intp), data.weights[inside]
        target = data.n_features
        for cpt in member.cpts:
            if target not in (*cpt.parents, cpt.variable):
                continue
            of = cells_of(codes, cpt.parents, cpt.table.shape[:-1])
            total = np.bincount(of, w)[of] + member.smoothing * cpt.table.shape[-1]
            own = total * cpt.table[tuple(codes[:, (*cpt.parents, cpt.variable)].T)]
            less = np.log1p(-w / own) - (0.0 if cpt.variable == target else np.log1p(-w / total))
            logs[inside, codes[:, target]] += less
        found.append(np.exp(log_posterior(logs)))
    return np.asarray(np.mean(found, axis=0))


def _refitted(
    classifier: TableClassifier | AveragedClassifier, train: Dataset
) -> list[tuple[Classifier, Dataset]]:
    """Return the networks of a classifier, each with the rows to which it can be fitted.

    `InputError` if it cannot be fitted to rows, or was fitted to others.
    """
    parts = {part.variables: part for part in encodings_of(train)}
    networks: list[tuple[Classifier, Dataset]] = []
    members = classifier.members if isinstance(classifier, AveragedClassifier) else (classifier,)
    for member in members:
        if not isinstance(member, Classifier):
            raise InputError(f"The tables of a pseudo-TAN cannot be fitted by folds; {INSTEAD}.")
        data = _as_weighed(member, parts[member.variables])
        again = _fitted(member, data)
        if np.abs(again.predict_proba(data) - member.predict_proba(data)).max() > SAME:
            raise InputError(
                f"The tables of the classifier are not those that are fitted to the rows of {data.name!r}, so that "
                "folds cannot hold out rows: give its training data with the same weights (class weights cannot be "
                f"given here), or {INSTEAD}."
            )
        networks.append((member, data))
    return networks


def _as_weighed(classifier: Classifier, data: Dataset) -> Dataset:
    """Return rows with their weights times the factor that a leave-one-out score made them larger by, if it did."""
    about = classifier.provenance
    score, source = about.get("score"), about.get("data")
    if not (isinstance(score, Mapping) and score.get("leave_one_out") and isinstance(source, Mapping)):
        return data
    total, own = source.get("total_weight"), data.weights[(data.codes >= 0).all(axis=1)].sum()
    if not isinstance(total, float | int) or not 0 < total < np.inf or not own > 0:
        return data
    return replace(data, weights=data.weights * (total / own))


def _fitted(classifier: Classifier, data: Dataset) -> Classifier:
    """Return the classifier with tables of the complete rows of some data, by the method of its own."""
    rows = data.take(np.flatnonzero((data.codes >= 0).all(axis=1)))
    cpts = fit_cpts(rows, classifier.structure, classifier.smoothing, classifier.smoothing_towards)
    fitted = replace(classifier, cpts=tuple(cpts), decision=None, conformal=None, provenance={})
    fit = recorded(classifier.provenance)
    if fit is None or not fit.fitted:
        return fitted
    if fit.method == ADDITIVE:
        raise InputError(
            "Its tables on finer cuts (--recipe accurate) cannot be fitted by folds here; solve with --recipe "
            f"readable, or {INSTEAD}."
        )
    method = str(ParameterMethod(fit.method, fit.kappa, fit.strength))
    return refit_classifier(fitted, rows, method, monotone=fit.constraints)[0]
