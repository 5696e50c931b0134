"""Probability tables with the posteriors of an additive model, and the network that has them.

Every coarse feature has the class and the structure's parents as parents, every fine variable the class and its coarse
one. A fine interval outside the coarse one has the weight `IMPOSSIBLE`, a probability of nearly 0; no complete row has
such a pair, so that it changes no posterior. What the posterior leaves open, the distribution of the features, is the
nearest to the data's (`milpbn.network.parameters.nearest`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.resolutions import nested
from milpbn.network.additive.fitting import by_class
from milpbn.network.additive.model import Additive
from milpbn.network.cpt import Cpt, log_cpts
from milpbn.network.inference.elimination import aligned
from milpbn.network.monotone.changes import lifted
from milpbn.network.monotone.constraints import StateOrder
from milpbn.network.parameters.nearest import nearest
from milpbn.network.parameters.normalised import completed, normalised, widened
from milpbn.network.structure import Structure

#: Weight in nats of a fine state outside its coarse one.
IMPOSSIBLE = -40.0
#: Laplace's constant of the tables that say how the features are distributed.
SMOOTHING = 1.0


def network_of(data: Dataset, structure: Structure | None = None) -> Structure:
    """Return the network over data with fine variables whose coarse features have the parents of a structure.

    The class is a parent of every feature. The structure is over the coarse features and the class; None for one
    without arcs between features.
    """
    target = data.n_features
    parents: list[tuple[int, ...]] = [(target,)] * target + [()]
    for fine, (coarse, _) in nested(data).items():
        parents[fine] = (coarse, target)
    if structure is not None:
        place = {name: i for i, name in enumerate(data.names)}
        for name, own in zip(structure.names[:-1], structure.parents, strict=False):
            others = (place[structure.names[j]] for j in own)
            parents[place[name]] = tuple(sorted({*others, target}))
    return Structure(data.names, tuple(parents))


def interactions_of(structure: Structure) -> list[tuple[int, ...]]:
    """Return the features of each family with the class and with more than one feature, ascending."""
    target = len(structure.names) - 1
    return [
        tuple(sorted((*(j for j in own if j != target), i)))
        for i, own in enumerate(structure.parents[:-1])
        if target in own and len(own) > 1
    ]


def tables_of(
    model: Additive,
    weights: NDArray[np.float64],
    kappa: float,
    structure: Structure,
    *,
    orders: Sequence[StateOrder] = (),
    stopping: Callable[[], bool] = lambda: False,
) -> tuple[Structure, tuple[Cpt, ...]] | str:
    """Return a network and its probability tables with the posteriors of an additive model, or why there are none.

    The posteriors are exactly monotone along these orders.

    The network has the arcs of `network_of`'s for this structure of the coarse features, and those that
    `milpbn.network.parameters.normalised.completed` adds.
    """
    data = model.data
    network = network_of(data, structure)
    whole, _, reason = completed(network, data.n_states)
    if reason is not None:
        return reason
    generative = _possible(log_cpts(data, network, SMOOTHING), data)
    target = data.n_features
    tables = [_without_class(cpt, target) for cpt in generative]

    def add(variable: int, values: NDArray[np.float64], own: Sequence[int]) -> None:
        axes = (*network.parents[variable], variable)
        tables[variable] = tables[variable] + aligned(values, (*own, target), axes)

    families = [{i, *own} for i, own in enumerate(network.parents)]

    def holder(block: Sequence[int]) -> int:
        if len(block) < 2:
            return block[0] if block else target
        return next(i for i, own in enumerate(families) if own.issuperset(block))

    for number, block in enumerate(model.terms.blocks):
        own = by_class(weights[model.terms.slice(number)])
        add(holder(block), own.reshape(*model.terms.shape(block), -1), block)
    for scope, table in model.bayes.tables():
        add(holder(scope), kappa * table, scope)
    found = _masked([Cpt(c.variable, c.parents, t) for c, t in zip(generative, tables, strict=True)], data)
    found = lifted(found, data.variables, orders)
    if whole != network:
        found, generative = (
            widened(found, whole, data.n_states),
            _possible(log_cpts(data, whole, SMOOTHING), data),
        )
    cpts = normalised(whole, nearest(whole, found, generative, stopping=stopping))
    if cpts is None:
        return "a probability is below the smallest that float64 holds accurately"
    return whole, tuple(cpts)


def _without_class(cpt: Cpt, target: int) -> NDArray[np.float64]:
    """Return the logarithms of a table, averaged over the classes."""
    axes = (*cpt.parents, cpt.variable)
    return np.broadcast_to(cpt.table.mean(axis=axes.index(target), keepdims=True), cpt.table.shape)


def _masked(cpts: Sequence[Cpt], data: Dataset) -> list[Cpt]:
    """Return logarithms of tables with `IMPOSSIBLE` for every fine state outside its coarse one."""
    out = list(cpts)
    for fine, (coarse, states) in nested(data).items():
        cpt = cpts[fine]
        outside = np.arange(data.n_states[coarse])[:, None] != states
        axes = (*cpt.parents, fine)
        mask = np.broadcast_to(aligned(outside, (coarse, fine), axes), cpt.table.shape)
        out[fine] = replace(cpt, table=np.where(mask, IMPOSSIBLE, cpt.table))
    return out


def _possible(logs: Sequence[Cpt], data: Dataset) -> list[Cpt]:
    """Return logarithms of probability tables of which fine states outside their coarse one have nearly none."""
    found = []
    for cpt in _masked(logs, data):
        top = cpt.table.max(axis=-1, keepdims=True)
        total = top + np.log(np.exp(cpt.table - top).sum(axis=-1, keepdims=True))
        found.append(replace(cpt, table=cpt.table - total))
    return found
