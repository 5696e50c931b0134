r"""The joint distribution next to the generative one among all that have the posteriors of log-linear weights.

The posterior :math:`P(c | x) \propto \exp \sum_i w_i(x_i, x_{pa(i)}, c)` does not change if each weight gets a summand
:math:`u_i(x_i, x_{pa(i)})` without the class, but the joint distribution :math:`Q_u` of the normalised tables does. A
classifier needs the joint distribution where features are missing, since it sums over their states. Without summands
even P(c) may be far from the data's. The summands chosen here minimise

.. math:: KL(P \| Q_u) = KL(P(x) \| Q_u(x)) + \text{constant}

where P is the distribution of the generative tables of the same structure. Here :math:`Q_u(x)` is a log-linear model
with the summands as its parameters: :math:`Q_u(x) \propto \exp(\sum_i u_i) \sum_c \exp(\sum_i w_i)`, for each state of
the parents of the class, whose own distribution is that of P. So the problem is convex, and at its minimum every family
has the same distribution of its features under Q as under P: what iterative proportional fitting of the families
converges to (Deming and Stephan 1940). Here L-BFGS solves it. Every point on its way has the same posteriors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING
from milpbn.errors import InputError
from milpbn.network.convex import minimum
from milpbn.network.cpt import Cpt
from milpbn.network.inference.elimination import marginal, total_log
from milpbn.network.inference.plan import Planner
from milpbn.network.parameters.normalised import upward
from milpbn.network.structure import Structure

#: Largest number of iterations of the solver.
MAX_ITERATIONS = 300
#: The solver stops when no joint state's probability differs by more than this times its square root.
TOLERANCE = 1e-4
#: Joint states that are rarer count as if they were as frequent: else the solver moves the summands of nearly
#: impossible ones, such as a fine interval outside its coarse one, by thousands of nats.
RAREST = 1e-10


def nearest(
    structure: Structure,
    weights: Sequence[Cpt],
    generative: Sequence[Cpt],
    *,
    stopping: Callable[[], bool] = lambda: False,
) -> list[Cpt]:
    """Return weights with the same posteriors whose normalised tables are nearest to the generative ones.

    They have the summands of the last iteration if `stopping`, asked after each, returned True, and none if the
    distribution of the class's parents would need too much memory. Structure and weights are as for
    `milpbn.network.parameters.normalised.normalised`; `generative` are the logarithms of the generative tables of the
    same structure.
    """
    try:
        families = _Families(structure, generative)
    except InputError:
        return list(weights)
    logs = [cpt.table for cpt in weights]
    goal = families.margins([cpt.table for cpt in generative])
    if not goal.size:
        return list(weights)

    def loss(summands: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        log_sum, margins = families.evaluate(logs, summands)
        return log_sum - float(goal @ summands), margins - goal

    scale = 1.0 / np.sqrt(np.maximum(goal, RAREST))
    summands = minimum(
        loss, np.zeros_like(goal), scale, tolerance=TOLERANCE, iterations=MAX_ITERATIONS, stopping=stopping
    )
    tables = families.added(logs, summands)
    return [replace(cpt, table=table) for cpt, table in zip(weights, tables, strict=True)]


class _Families:
    """The families with the class, in an order in which margins pass from one to the next.

    Of the generative tables, given as logarithms, those of the ancestors of the class tell the distribution of its
    parents.
    """

    def __init__(self, structure: Structure, generative: Sequence[Cpt]) -> None:
        self._structure, self._target = structure, len(structure.names) - 1
        self._order = structure.topological_order()
        self._position = {i: rank for rank, i in enumerate(self._order)}
        #: Features with a summand: the class is among their parents, the last one of them.
        self._members = [i for i in self._order if self._target in structure.parents[i]]
        shapes = (generative[i].table.shape for i in self._members)
        self._shapes = [(*shape[:-2], shape[-1]) for shape in shapes]
        self._ends = np.cumsum([math.prod(shape) for shape in self._shapes])
        self._above = _distribution(generative, structure.parents[self._target], structure.names)

    def added(
        self, logs: Sequence[NDArray[np.float64]], summands: NDArray[np.float64]
    ) -> list[NDArray[np.float64]]:
        """Return weights with summands: one number for each joint state of a family without the class."""
        out = list(logs)
        parts = np.split(summands, self._ends[:-1])
        for i, shape, part in zip(self._members, self._shapes, parts, strict=True):
            out[i] = out[i] + part.reshape(shape)[..., np.newaxis, :]
        return out

    def evaluate(
        self, logs: Sequence[NDArray[np.float64]], summands: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the mean of the log-sum over the states of the class's parents, and its gradient: the margins."""
        tables, sums = upward(self._structure, self._order, self.added(logs, summands))
        return float((self._above * sums).sum()), self.margins(tables)

    def margins(self, tables: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the probabilities of the joint states of each family without the class; tables are logarithms."""
        parents = self._structure.parents
        joint = {self._target: self._above[..., np.newaxis] * np.exp(tables[self._target])}
        for i in self._members:
            host = max(parents[i], key=self._position.__getitem__)
            given = marginal(joint[host], (*parents[host], host), parents[i])
            joint[i] = given[..., np.newaxis] * np.exp(tables[i])
        return np.concatenate([np.zeros(0), *(joint[i].sum(axis=-2).ravel() for i in self._members)])


def _distribution(logs: Sequence[Cpt], variables: Sequence[int], names: Sequence[str]) -> NDArray[np.float64]:
    """Return the joint distribution of some variables, an axis each; `InputError` if it needs too much memory."""
    if not variables:
        return np.ones(())
    codes = np.full((1, len(logs)), MISSING, dtype=np.intp)
    cpts = [replace(cpt, table=np.exp(cpt.table)) for cpt in logs]
    plan = Planner(cpts, len(cpts)).plan(codes, codes[0] == MISSING, variables)
    plan.require_room(names)
    return np.asarray(np.exp(total_log(plan.eliminate(codes)[1], variables)[0]))
