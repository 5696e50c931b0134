"""Variable elimination in log-space, for many rows of evidence at a time.

The joint distribution is a product of factors. Eliminating a variable multiplies the factors that contain it, and
replaces them by their sum (or maximum) over its states. What remains of each step, the product before the sum, is the
variable's conditional distribution given the variables that are left, up to a constant. So marginals, samples and the
most probable states follow from the steps in reverse order (Dechter 1999, "Bucket elimination").

All numbers are logarithms. So no product underflows, however many variables there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING, UNKNOWN
from milpbn.network.cpt import Cpt, padded_table
from milpbn.network.structure import topological_order

#: The axis of the rows of evidence, which is no variable's.
_ROWS = -1
#: What eliminating a variable does with its states.
Reduction = Literal["sum", "max"]


class Factor(NamedTuple):
    """Logarithms of a function of some variables, one function per row of evidence, or one for all rows.

    The axes, (M or 1, states of each variable...), are in the order of the scope.
    """

    scope: tuple[int, ...]
    log: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Step:
    """What the elimination of a variable leaves behind.

    The separator is the set of the variables of its factors that are eliminated later. The product of its factors, in
    logarithms, has the shape (M or 1, states of the variable, states of each variable of the separator...).
    """

    variable: int
    separator: tuple[int, ...]
    log: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LogTable:
    """The logarithms of a variable's probability table in nats, with a position for unseen states.

    The class has the last of the `axes`. Those of features have one position more than `n_states`, the last one: there
    the factor of the variable itself is 1, and the row given an unseen state of a parent is uniform.
    """

    variable: int
    axes: tuple[int, ...]
    n_states: tuple[int, ...]
    log: NDArray[np.float64]

    @classmethod
    def of(cls, cpt: Cpt, class_index: int) -> LogTable:
        """Return the logarithms of a table."""
        features, log = padded_table(cpt, class_index)
        family = dict(zip((*cpt.parents, cpt.variable), cpt.table.shape, strict=True))
        axes = tuple(features)
        if class_index in family:
            axes += (class_index,)
        else:
            log = log[..., 0]
        return cls(cpt.variable, axes, tuple(family[v] for v in axes), log)


def factors_of(tables: Sequence[LogTable], codes: NDArray[np.intp], free: NDArray[np.bool_]) -> list[Factor]:
    """Return the factors of some rows: the tables, with the variables that are not free at the rows' states.

    Codes, shape (M, V), are the states of the rows, the class last; `free`, shape (V,), says which variables keep an
    axis, whose codes may be `MISSING`. A free variable that has an unseen state (`UNKNOWN`) in some row has one
    position more than states, the last one, for it.
    """
    extended = extended_variables(codes, free)
    factors = []
    for table in tables:
        fixed = [a for a, v in enumerate(table.axes) if not free[v]]
        kept = [a for a, v in enumerate(table.axes) if free[v]]
        # Without the position of an unseen state where no row has one.
        ends = (slice(table.n_states[a] + int(extended[table.axes[a]])) for a in kept)
        log = table.log.transpose(*fixed, *kept)[(*[slice(None)] * len(fixed), *ends)]
        chosen = tuple(codes[:, table.axes[a]] for a in fixed)
        factors.append(Factor(tuple(table.axes[a] for a in kept), log[chosen] if fixed else log[np.newaxis]))
    return factors


def extended_variables(codes: NDArray[np.intp], free: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the free variables that have an unseen state in some row, shape (V,)."""
    return free & (codes == UNKNOWN).any(axis=0)


def eliminate(
    factors: Sequence[Factor],
    order: Sequence[int],
    codes: NDArray[np.intp],
    n_states: Mapping[int, int],
    *,
    reduction: Reduction = "sum",
    keep: bool = True,
) -> tuple[list[Step], list[Factor]]:
    """Eliminate variables in this order, and return the steps and the factors over the others.

    A variable of the order is summed (or its maximum is taken) over its states in rows where its code, shape (M, V), is
    `MISSING`, and has its state in the others; `n_states` does not count the position of unseen states. To `keep` the
    steps, every variable of the order must be `MISSING` in every row.
    """
    rank = {v: k for k, v in enumerate(order)}
    buckets: dict[int, list[Factor]] = {v: [] for v in order}
    rest: list[Factor] = []

    def store(factor: Factor) -> None:
        first = min((v for v in factor.scope if v in rank), key=rank.__getitem__, default=None)
        (rest if first is None else buckets[first]).append(factor)

    for factor in factors:
        store(factor)
    steps: list[Step] = []
    for v in order:
        bucket = buckets.pop(v)
        separator = tuple(sorted({u for factor in bucket for u in factor.scope} - {v}))
        aligned = [_aligned(factor, (v, *separator)) for factor in bucket]
        known = codes[:, v] != MISSING
        if not known.any():
            product = _product(aligned)
            if keep:
                steps.append(Step(v, separator, product))
            message = _reduced(product[:, : n_states[v]], reduction)
        else:
            message = _message(aligned, codes[:, v], known, n_states[v], reduction)
        store(Factor(separator, message))
    return steps, rest


def aligned(values: NDArray[np.float64], own: Sequence[int], scope: Sequence[int]) -> NDArray[np.float64]:
    """Return an array with one axis per variable of `own` with one per variable of a scope; others have length 1."""
    lengths = dict(zip(own, values.shape, strict=True))
    return values.transpose([own.index(v) for v in scope if v in lengths]).reshape(
        [lengths.get(v, 1) for v in scope]
    )


def marginal(joint: NDArray[np.float64], own: Sequence[int], kept: Sequence[int]) -> NDArray[np.float64]:
    """Return the sums of a joint distribution of the variables `own` with one axis per kept variable, in this order."""
    summed = joint.sum(axis=tuple(k for k, v in enumerate(own) if v not in kept))
    return aligned(summed, [v for v in own if v in kept], kept)


def _aligned(factor: Factor, scope: Sequence[int]) -> NDArray[np.float64]:
    return aligned(factor.log, (_ROWS, *factor.scope), (_ROWS, *scope))


def _product(logs: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    total = logs[0]
    for log in logs[1:]:
        total = total + log
    return total


def _message(
    logs: Sequence[NDArray[np.float64]],
    states: NDArray[np.intp],
    known: NDArray[np.bool_],
    n_states: int,
    reduction: Reduction,
) -> NDArray[np.float64]:
    """Return the message of a variable that is known in some rows and summed over in the others."""
    rows, hidden = np.flatnonzero(known), np.flatnonzero(~known)
    seen = _product([log[rows if len(log) > 1 else 0, states[rows]] for log in logs])
    if not hidden.size:
        return seen
    product = _product([log[hidden][:, :n_states] if len(log) > 1 else log[:, :n_states] for log in logs])
    summed = _reduced(product, reduction)
    message = np.empty((len(states), *seen.shape[1:]))
    message[rows] = seen
    message[hidden] = summed
    return message


def _reduced(log: NDArray[np.float64], reduction: Reduction) -> NDArray[np.float64]:
    """Return the logarithm of the sum, or the maximum, over the axis after the rows'."""
    top = log.max(axis=1)
    if reduction == "max":
        return top
    shift = np.where(np.isfinite(top), top, 0.0)
    away = np.exp(log - shift[:, np.newaxis]).sum(axis=1)
    with np.errstate(divide="ignore"):
        return np.log(away) + shift


def total_log(factors: Sequence[Factor], scope: Sequence[int] = ()) -> NDArray[np.float64]:
    """Return the product of factors over a scope as one array, shape (M or 1, states of each variable...)."""
    return _product([_aligned(factor, scope) for factor in factors])


def marginals(steps: Sequence[Step]) -> dict[int, NDArray[np.float64]]:
    """Return P(variable) of every eliminated variable, of the first row of evidence; each sums to 1.

    The steps must be all steps, of reduction "sum". Their joint distributions are computed from the last one backwards:
    P(variable, separator) = P(variable | separator) P(separator), and a later step has all variables of the separator.
    """
    joints: dict[int, NDArray[np.float64]] = {}
    place = {step.variable: k for k, step in enumerate(steps)}
    found: dict[int, NDArray[np.float64]] = {}
    for step in reversed(steps):
        joint = _conditional(step.log[0])
        if step.separator:
            holder = steps[min(place[u] for u in step.separator)]
            scope = (holder.variable, *holder.separator)
            joint = joint * marginal(joints[holder.variable], scope, step.separator)
        joints[step.variable] = joint
        own = joint.sum(axis=tuple(range(1, joint.ndim)))
        found[step.variable] = own / own.sum()
    return found


def draw(
    steps: Sequence[Step], codes: NDArray[np.intp], generator: np.random.Generator | None
) -> NDArray[np.intp]:
    """Return rows of states of all variables, shape (M, V): drawn, or the most probable ones without a generator.

    The steps are all those of one row of evidence, of reduction "sum" with a generator, else of "max". Variables
    without a step keep their states in `codes`, shape (M, V).
    """
    filled = codes.copy()
    for step in reversed(steps):
        log = np.moveaxis(step.log[0], 0, -1)[tuple(filled[:, u] for u in step.separator)]
        log = np.broadcast_to(log, (len(filled), log.shape[-1]))
        if generator is None:
            filled[:, step.variable] = log.argmax(axis=1)
            continue
        filled[:, step.variable] = _drawn(np.exp(log - log.max(axis=1, keepdims=True)), generator)
    return filled


def draw_forward(cpts: Sequence[Cpt], codes: NDArray[np.intp], generator: np.random.Generator) -> None:
    """Draw the variables that are still `MISSING` in rows, shape (M, V), from their tables, parents first, in place.

    All rows lack the same variables, none of which has a descendant with a state. The graph is acyclic.
    """
    order = topological_order([cpt.parents for cpt in cpts])
    assert order is not None
    for v in order:
        if len(codes) and codes[0, v] == MISSING:
            table = cpts[v].table
            given = [codes[:, u] for u in cpts[v].parents]
            odds = np.broadcast_to(table[tuple(given)], (len(codes), table.shape[-1]))
            unseen = np.logical_or.reduce([of_parent == UNKNOWN for of_parent in given], axis=0)
            codes[:, v] = _drawn(np.where(np.reshape(unseen, (-1, 1)), 1.0, odds), generator)


def _drawn(odds: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.intp]:
    """Return a state of each row, drawn with probabilities that are proportional to the odds, shape (M,)."""
    cumulated = odds.cumsum(axis=1)
    total = cumulated[:, -1]
    level = np.minimum(generator.random(len(odds)) * total, np.nextafter(total, 0.0))
    # The first state whose cumulated odds exceed the level, which is below the total.
    return np.asarray((cumulated <= level[:, np.newaxis]).sum(axis=1))


def _conditional(log: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities that sum to 1 over the first axis; all 0 where every logarithm is -inf."""
    top = log.max(axis=0)
    shift = np.where(np.isfinite(top), top, 0.0)
    odds = np.exp(log - shift)
    total = odds.sum(axis=0)
    return np.divide(odds, total, out=np.zeros_like(odds), where=total > 0)
