r"""Conditional probability tables with the posterior of unnormalised family weights (Roos et al. 2005).

A classifier with a weight :math:`w_i(x_i, x_{pa(i)}, c)` for every joint state of every family with the class has the
posterior :math:`P(c | x) \propto \exp \sum_i w_i`. Roos, Wettig, Grünwald, Myllymäki and Tirri (*On discriminative
Bayesian network classifiers and logistic regression*, Machine Learning 59, 2005) show that probability tables of the
same graph give the same posteriors if all parents of every such feature are adjacent. Going from children to parents,
each table is divided by its sum over the states of its variable, and the sum is a factor of the table of the last
parent, whose family holds all other parents. The sum over the class is the same for all classes, and drops out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from milpbn.network.cpt import Cpt
from milpbn.network.inference.elimination import aligned
from milpbn.network.structure import Structure
from milpbn.util.graphs import with_ancestors

#: Largest number of entries of all tables that have additional parents: about 10 MB of a classifier's file.
MAX_ENTRIES = 500_000
#: Logarithm of the smallest probability of a table; float64 has no normal number below e^-708.
SMALLEST_LOG = -700.0


def normalised(structure: Structure, weights: Sequence[Cpt]) -> list[Cpt] | None:
    """Return probability tables whose posteriors are those of log-linear weights, up to rounding.

    None if a probability would be below e^-700, and its logarithm inaccurate. `completed` adds no arc to the structure,
    and has no reason against it. The weights are finite, in nats, in the place of the probabilities of tables. Those of
    features without the class as a parent have no part in the posterior, and must be logarithms of probabilities.
    """
    order = structure.topological_order()
    logs = upward(structure, order, [cpt.table for cpt in weights])[0]
    if any(table.min() < SMALLEST_LOG for table in logs):
        return None
    return [replace(cpt, table=np.exp(table)) for cpt, table in zip(weights, logs, strict=True)]


def upward(
    structure: Structure, order: Sequence[int], logs: Sequence[NDArray[np.float64]]
) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Normalise log-linear weights, in nats and the shapes of the tables, from children to parents; see `normalised`.

    The order of the variables has parents before children. Returned are the logarithms of the probability tables; and
    the logarithm of the sum over the class, and so over all its descendants, for each state of its parents, an axis for
    each.
    """
    target = len(structure.names) - 1
    position = {i: rank for rank, i in enumerate(order)}
    tables, sums = list(logs), np.zeros(())
    for i in reversed(order):
        parents = structure.parents[i]
        if i != target and target not in parents:
            continue
        top = tables[i].max(axis=-1)
        sums = np.asarray(top + np.log(np.exp(tables[i] - top[..., np.newaxis]).sum(axis=-1)))
        tables[i] = tables[i] - sums[..., np.newaxis]
        if i == target:
            break
        host = max(parents, key=position.__getitem__)
        tables[host] = tables[host] + aligned(sums, parents, (*structure.parents[host], host))
    return tables, sums


def completed(
    structure: Structure,
    n_states: Sequence[int] | NDArray[np.integer],
    objection: Callable[[Structure], str | None] | None = None,
) -> tuple[Structure, list[tuple[int, int]], str | None]:
    """Add the arcs that `normalised` needs: from the class to its grandchildren, and between parents of one child.

    All added arcs follow one order, in which the ancestors of the class come first, then the class, then the other
    variables; so no cycle can arise. Their tables may have `MAX_ENTRIES` entries in all.

    None are needed under the condition of Roos et al. (2005), Theorem 3: the parents of every feature that has the
    class among them are adjacent to each other. Two parents of the class need not be, as its own table holds both.
    Returned are the structure with the added arcs (the structure itself where none are needed, or where they would not
    suffice), the added arcs, and a clause on why tables cannot hold the weights even with more arcs, or None if they
    can. `objection` returns a clause on how a structure breaks the user's constraints, such as "it has the forbidden
    arc C -> X", or None.
    """
    target = len(structure.names) - 1
    names = structure.names
    above = with_ancestors(structure.parents, structure.parents[target])
    order = structure.topological_order()
    order = [i for i in order if i in above] + [target] + [i for i in order if i not in above and i != target]
    position = {i: rank for rank, i in enumerate(order)}
    parents, added = [set(p) for p in structure.parents], []
    # From children to parents: an added arc only changes the family of a variable that comes later in this loop.
    for child in reversed(order):
        if child == target or target not in parents[child]:
            continue
        for one, other in combinations(sorted(parents[child], key=position.__getitem__), 2):
            # A table with both as axes can hold a normaliser over them.
            if other in parents[one] or one in parents[other] or {one, other} <= parents[target]:
                continue
            if other == target:
                reason = (
                    f"{names[one]!r}, a parent of {names[child]!r}, is not adjacent to the class, and an arc from the "
                    "class to it would close a cycle"
                )
                return structure, [], reason
            parents[other].add(one)
            added.append((one, other))
    if not added:
        return structure, [], None
    size = sum(math.prod(int(n_states[j]) for j in (i, *parents[i])) for i in {child for _, child in added})
    if size > MAX_ENTRIES:
        reason = (
            "parents of one child are not adjacent, and tables with the arcs between them would have "
            f"{size:,} entries"
        )
        return structure, [], reason
    found = Structure(names, tuple(tuple(p) for p in parents))
    clause = None if objection is None else objection(found)
    if clause is not None:
        return structure, [], f"the structure with the arcs that it needs breaks a constraint: {clause}"
    return found, added, None


def widened(
    weights: Sequence[Cpt], structure: Structure, n_states: Sequence[int] | NDArray[np.integer]
) -> list[Cpt]:
    """Return tables over the families of a structure that `completed` returned.

    A table whose family gained parents is repeated for every state of them: the weights themselves do not depend on
    these parents.
    """
    out = []
    for cpt, parents in zip(weights, structure.parents, strict=True):
        table = cpt.table
        if parents != cpt.parents:
            table = np.expand_dims(table, [axis for axis, j in enumerate(parents) if j not in cpt.parents])
            table = np.broadcast_to(table, [int(n_states[j]) for j in (*parents, cpt.variable)]).copy()
        out.append(Cpt(cpt.variable, parents, table))
    return out
