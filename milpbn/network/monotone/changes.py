r"""How log-odds change along the states of a column, whatever the other columns are.

For complete rows the log-odds of two classes are a sum of one table per family with the class. From one state of a
column to the next, only the families that hold the column change. Their change is a sum of tables over the other
columns of these families, and its minimum says whether the log-odds can fall:

.. math:: \min_z \sum_i \bigl( t_i(s + 1, z_i) - t_i(s, z_i) \bigr)

Columns are eliminated one after the other, as in inference, with minima in the place of sums. So the minimum is that
over all combinations of the other columns' states, without a list of them.

There are two ways to make weights monotone. `lifted` adds a function of the column alone that raises every negative
minimum to 0; it changes nothing along other columns, and is for small violations. `pooled` gives neighbouring states
the same weights, as isotonic regression does, and is for large ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Variable, by_column
from milpbn.data.variables import coarser_codes
from milpbn.errors import InputError
from milpbn.network.cpt import Cpt
from milpbn.network.inference.elimination import aligned
from milpbn.network.inference.plan import elimination_order
from milpbn.network.monotone.constraints import StateOrder
from milpbn.util.jsonable import LARGEST_COUNT

#: A change down to minus this counts as none, in nats: logarithms of probabilities are rounded.
TIE = 1e-12
#: Most numbers of a table that an elimination makes.
MAX_ENTRIES = 20_000_000


class Term(NamedTuple):
    """A table with one axis per variable without the class: the scores of its cells, shape (cells, C), in nats.

    Unknowns are added to them, from the one of number `first`; None for none.
    """

    axes: tuple[int, ...]
    scores: NDArray[np.float64]
    first: int | None


def terms_of(
    tables: Sequence[Cpt], target: int, first: Callable[[int], int | None] = lambda family: None
) -> list[Term]:
    """Return the tables that have the class; `first` returns the number of a family's first unknown."""
    found = []
    for cpt in tables:
        axes = (*cpt.parents, cpt.variable)
        if target in axes:
            scores = np.moveaxis(cpt.table, axes.index(target), -1)
            own = tuple(i for i in axes if i != target)
            found.append(Term(own, scores.reshape(-1, scores.shape[-1]), first(cpt.variable)))
    return found


class Bucket(NamedTuple):
    """A step of an elimination: the sum of the member tables over a scope, minimised over the columns not in `kept`.

    The minimum is a table over `kept`, with the next number after all earlier tables.
    """

    members: list[int]
    scope: tuple[int, ...]
    kept: tuple[int, ...]


class Elimination(NamedTuple):
    """How the smallest changes along a column follow from those of the terms that hold it.

    Where variables code the same column, the one with the most states among those of the terms stands for it. For each
    term, `scopes` has its columns other than that, and `ends` the cells of its flattened table after and before each
    step from one state to the next, shape (S - 1, states of each column of the scope...).
    """

    terms: list[Term]
    scopes: list[tuple[int, ...]]
    ends: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    sizes: dict[int, int]
    buckets: list[Bucket]


def elimination(order: StateOrder, terms: Sequence[Term], variables: Sequence[Variable]) -> Elimination:
    """Return the elimination for those terms that hold the monotone column; `InputError` if a table is too large."""
    terms = [term for term in terms if {*term.axes} & {*order.places}]
    used = {i for term in terms for i in term.axes}
    finest: dict[int, int] = {}
    for places in by_column(variables).values():
        own = [order.finest] if order.finest in places else [i for i in places if i in used]
        finest |= dict.fromkeys(places, max(own, key=lambda i: variables[i].n_states, default=-1))
    scopes, ends = [], []
    for axes, _, _ in terms:
        scope = tuple(dict.fromkeys(finest[i] for i in axes))
        index = []
        for i in axes:
            shape = [-1 if j == finest[i] else 1 for j in scope]
            index.append(coarser_codes(variables[finest[i]], variables[i]).reshape(shape))
        shape = [variables[i].n_states for i in axes]
        cells = np.ravel_multi_index(tuple(np.broadcast_arrays(*index)), shape)
        along = np.moveaxis(cells, scope.index(order.finest), 0)[list(order.codes)]
        scopes.append(tuple(i for i in scope if i != order.finest))
        ends.append((along[1:], along[:-1]))
    sizes = {i: variables[i].n_states for scope in scopes for i in scope}
    most = MAX_ENTRIES // max(1, len(order.codes) * len(order.classes))
    return Elimination(terms, scopes, ends, sizes, _buckets(scopes, sizes, most))


def _buckets(scopes: Sequence[tuple[int, ...]], sizes: Mapping[int, int], most: int) -> list[Bucket]:
    """Return the steps of an elimination; the last one keeps nothing and has all that is left."""
    order = elimination_order(scopes, sizes)
    if order.largest > most:
        raise InputError(
            f"Whether a feature is monotone depends on more than {most:,} joint states of other features at once, "
            "which are too many; give variables fewer parents (--max-parents)."
        )
    left = {number: frozenset(scope) for number, scope in enumerate(scopes)}
    found: list[Bucket] = []
    for v in order.variables:
        members = [number for number, own in left.items() if v in own]
        if members:  # else it was not kept when another variable was eliminated
            scope = frozenset().union(*(left.pop(number) for number in members))
            kept = scope & frozenset().union(*left.values())
            left[len(scopes) + len(found)] = kept
            found.append(Bucket(members, tuple(sorted(scope)), tuple(sorted(kept))))
    if not found or len(left) > 1:
        found.append(Bucket(list(left), (), ()))
    return found


def differences(values: NDArray[np.float64], classes: Sequence[int]) -> NDArray[np.float64]:
    """Return what each class has more than the one before, along the last axis."""
    return np.diff(values[..., list(classes)])


def smallest_changes(
    order: StateOrder, variables: Sequence[Variable], logs: Sequence[Cpt]
) -> tuple[NDArray[np.float64], int]:
    """Return the smallest change of the log-odds at each step, and over how many joint states of other columns.

    They follow from finite logarithms of tables, or log-linear weights, in nats. The changes, shape (S - 1, C - 1), are
    those of each class but the first against the one before. There are 0 joint states if the log-odds of complete rows
    do not depend on the column.
    """
    terms, scopes, ends, sizes, buckets = elimination(order, terms_of(logs, len(variables) - 1), variables)
    shape = max(len(order.codes) - 1, 0), len(order.classes) - 1
    changes = []
    for term, (after, before) in zip(terms, ends, strict=True):
        odds = differences(term.scores, order.classes)
        changes.append(np.moveaxis(odds[after] - odds[before], -1, 1))
    lead = (-1, -2)  # the steps and the classes
    for bucket in buckets:
        total = np.zeros((*shape, *(1 for _ in bucket.scope)))
        for number in bucket.members:
            total = total + aligned(changes[number], (*lead, *scopes[number]), (*lead, *bucket.scope))
        gone = tuple(k + 2 for k, i in enumerate(bucket.scope) if i not in bucket.kept)
        scopes.append(bucket.kept)
        changes.append(total.min(axis=gone))
    combinations = math.prod(sizes.values()) if terms and shape[0] else 0
    return changes[-1], min(combinations, LARGEST_COUNT)


def lifted(weights: Sequence[Cpt], variables: Sequence[Variable], orders: Sequence[StateOrder]) -> list[Cpt]:
    """Return log-linear weights of which all log-odds are monotone, as near as functions of single columns allow.

    Along a column each change whose smallest value is negative gets as much as it lacks, and `TIE` in addition. The
    function has the mean 0 over the states; the state of missing values gets nothing.
    """
    out, target = list(weights), len(variables) - 1
    for order in orders:
        least, _ = smallest_changes(order, variables, out)
        if not (least < 0).any():
            continue
        lack = np.where(least < TIE, TIE - least, 0.0)
        # From changes of log-odds between classes, and between states, to scores.
        scores = np.zeros((len(order.codes), len(order.classes)))
        scores[1:, 1:] = np.cumsum(np.cumsum(lack, axis=0), axis=1)
        scores -= scores.mean(axis=0)
        added = np.zeros((variables[order.finest].n_states, len(order.classes)))
        added[np.ix_(order.codes, order.classes)] = scores
        number, axes = next(
            (k, axes)
            for k, axes in enumerate((*cpt.parents, cpt.variable) for cpt in out)
            if target in axes and order.finest in axes
        )
        out[number] = replace(
            out[number], table=out[number].table + aligned(added, (order.finest, target), axes)
        )
    return out


def pooled(
    weights: Sequence[Cpt],
    variables: Sequence[Variable],
    orders: Sequence[StateOrder],
    shares: Mapping[int, NDArray[np.float64]],
) -> list[Cpt]:
    """Return log-linear weights that are monotone because neighbouring states of a column have the same ones.

    As in isotonic regression, the two neighbouring states with the smallest change are joined until no change is
    negative. Joined states get the mean of their weights; `shares` has, by variable, how much each state counts in it.
    Columns with several variables stay as they are.
    """
    out, target = list(weights), len(variables) - 1
    for order in orders:
        if len(order.places) > 1:
            continue
        block = np.arange(len(order.codes))
        while (least := smallest_changes(order, variables, out)[0].min(axis=1, initial=0.0)).any():
            worst = int(least.argmin())
            block[block == block[worst + 1]] = block[worst]
            joined = np.array(order.codes)[block == block[worst]]
            share = shares[order.finest][joined] / shares[order.finest][joined].sum()
            for k, cpt in enumerate(out):
                axes = (*cpt.parents, cpt.variable)
                if target in axes and order.finest in axes:
                    table = np.moveaxis(cpt.table.copy(), axes.index(order.finest), 0)
                    table[joined] = np.tensordot(share, table[joined], 1)
                    out[k] = replace(cpt, table=np.moveaxis(table, 0, axes.index(order.finest)))
    return out
