"""The fit of monotone features: weights that are exactly monotone, and what they cost in log-loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.folds import stratified_folds
from milpbn.network.classifier import Classifier
from milpbn.network.cpt import Cpt, class_log_joint
from milpbn.network.monotone.changes import lifted, pooled, terms_of
from milpbn.network.monotone.check import MonotoneFit, check_monotone
from milpbn.network.monotone.constraints import MonotoneConstraint, StateOrder
from milpbn.network.monotone.inequalities import MonotoneRows, constrained_minimum
from milpbn.network.parameters.conditional import TOLERANCE as FREE_TOLERANCE
from milpbn.network.parameters.conditional import Stopped, curvature, objective
from milpbn.network.parameters.folds import STRENGTHS
from milpbn.network.parameters.log_linear import LogLinear
from milpbn.network.parameters.normalised import completed, normalised, widened
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.structure import Structure

#: Accuracy of the fit; see `constrained_minimum`, whose value is multiplied by the root of the total weight.
TOLERANCE = 1e-5


def monotone_weights(
    model: LogLinear,
    orders: Sequence[StateOrder],
    kappa: float,
    strength: float,
    stopping: Callable[[], bool],
) -> list[Cpt]:
    """Return the tables of weights that minimise the penalised loss among those that are monotone.

    The deviations are those from a share kappa of the generative weights in which neighbouring states of monotone
    features are joined where they break a constraint. These weights are also the result if there is no time for better
    ones.
    """
    variables, target = model.data.variables, model.data.n_features
    codes, shares = model.data.codes, dict[int, NDArray[np.float64]]()
    for i in (order.finest for order in orders):
        counts = np.bincount(codes[:, i], model.data.weights, variables[i].n_states)
        shares[i] = counts.astype(np.float64) + 1.0
    base = lifted(pooled(model.weights(kappa, None), variables, orders, shares), variables, orders)
    terms = terms_of(base, target, model.design.first)
    rows, _ = model.rows
    offset = class_log_joint(rows.codes, model.structure, base, model.data.n_classes, np.asarray)
    start = model.origin()
    found = constrained_minimum(
        lambda point: objective(point, rows, offset, strength),
        start,
        curvature(rows, strength),
        MonotoneRows.of(orders, terms, variables, start.shape),
        tolerance=TOLERANCE * np.sqrt(rows.weight),
        stopping=stopping,
    )
    best = lifted(model.design.tables(base, 1.0, found), variables, orders)
    return min((best, base), key=lambda weights: model.log_loss(weights, model.data))


def monotone_fit(
    model: LogLinear,
    orders: Sequence[StateOrder],
    classifier: Classifier,
    record: ParameterFit,
    random_state: int,
    stopping: Callable[[], bool],
) -> tuple[ParameterFit, list[Cpt]]:
    """Return the tables of weights, and the record with what the constraints cost on the training rows and in folds.

    Where the choice of kappa and strength has no deviations, they get the largest strength.
    """
    kappa, strength = 1.0 if record.kappa is None else min(1.0, record.kappa), record.strength
    if strength is None:
        strength = STRENGTHS[0]
        record = replace(record, method="hybrid", fitted=True, kappa=kappa, strength=strength, note="")
    places = {i for order in orders for i in order.places}

    def both(of: LogLinear) -> tuple[list[Cpt], list[Cpt]]:
        free = of.deviations(kappa, strength, of.origin(), FREE_TOLERANCE, stopping)
        return monotone_weights(of, orders, kappa, strength, stopping), of.weights(kappa, free)

    data, found = model.data, both(model)
    train, held_out = [model.log_loss(weights, data) for weights in found], [None, None]
    if record.folds is not None:
        with suppress(Stopped):
            sums = np.zeros(2)
            for inside, outside in stratified_folds(data.y, record.folds, random_state):
                part, rest = LogLinear(classifier, data.take(inside), None, places), data.take(outside)
                losses = [part.log_loss(weights, rest) for weights in both(part)]
                sums += np.array(losses) * rest.weights.sum()
            held_out = (sums / data.weights.sum()).tolist()
    costs = MonotoneFit(
        features=(),
        log_loss=train[0],
        free_log_loss=train[1],
        held_out_log_loss=held_out[0],
        free_held_out_log_loss=held_out[1],
    )
    return replace(record, monotone=costs), found[0]


def checked(
    classifier: Classifier, constraints: Sequence[MonotoneConstraint], record: ParameterFit
) -> ParameterFit:
    """Return a record with whether a classifier is monotone; `InputError` if that takes too much memory."""
    features = check_monotone(classifier.variables, classifier.cpts, constraints)
    costs = MonotoneFit(features=()) if record.monotone is None else record.monotone
    return replace(record, monotone=replace(costs, features=features))


def made_monotone(
    classifier: Classifier,
    monotone: Sequence[MonotoneConstraint],
    record: ParameterFit,
    objection: Callable[[Structure], str | None] | None = None,
) -> tuple[Classifier, ParameterFit]:
    """Return a classifier with weights that states of monotone features share, and its record.

    It takes no time. If tables cannot hold these weights, the classifier stays as it is, and the record says whether it
    is monotone.
    """
    if record.method == "ml":
        record = replace(record, method="hybrid")
    names, n_states = classifier.structure.names, [v.n_states for v in classifier.variables]
    whole, added, reason = completed(classifier.structure, n_states, objection)
    orders = [StateOrder.of(constraint, classifier.variables) for constraint in monotone]
    logs = [replace(cpt, table=np.log(cpt.table)) for cpt in classifier.cpts]
    named = {order.finest: classifier.variables[order.finest].name for order in orders}
    shares = {i: np.array([*classifier.posterior(name).values()]) for i, name in named.items()}
    weights = lifted(pooled(logs, classifier.variables, orders, shares), classifier.variables, orders)
    cpts = None if reason else normalised(whole, widened(weights, whole, n_states))
    if cpts is not None and any(one is not other for one, other in zip(weights, logs, strict=True)):
        arcs = tuple((names[a], names[b]) for a, b in added)
        note = f"{record.note} States of monotone features share weights.".strip()
        record = replace(record, method="hybrid", fitted=True, kappa=1.0, added_arcs=arcs, note=note)
        classifier = replace(classifier, structure=whole, cpts=tuple(cpts))
    record = checked(classifier, monotone, record)
    provenance = {**classifier.provenance, "parameters": record.to_dict()}
    return replace(classifier, provenance=provenance), record
