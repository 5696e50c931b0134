r"""Conditional probability tables with the posterior of unnormalised family weights (Roos et al. 2005).

A classifier with a weight :math:`w_i(x_i, x_{pa(i)}, c)` for every joint state of every family with the class has the
posterior :math:`P(c | x) \propto \exp \sum_i w_i`. Roos, Wettig, Grünwald, Myllymäki and Tirri (*On discriminative
Bayesian network classifiers and logistic regression*, Machine Learning 59, 2005) show that probability tables of the
same graph give the same posteriors if all parents of every such feature are adjacent. Going from children to parents,
each table is divided by its sum over the states of its variable, and the sum is a factor of the table of the last
parent, whose family holds all other parents. The sum over the class is the same for all classes, and drops out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from milpbn.network.cpt import Cpt
from milpbn.network.structure import Structure

#: Logarithm of the smallest probability of a table; float64 has no normal number below e^-708.
SMALLEST_LOG = -700.0


def normalised(structure: Structure, weights: Sequence[Cpt]) -> list[Cpt] | None:
    """Return probability tables whose posteriors are those of log-linear weights, up to rounding.

    Parameters
    ----------
    structure : Structure
        A structure for which `obstacle` returns None.
    weights : sequence of Cpt, length V
        Tables of finite weights in nats instead of probabilities. Those of features without the class as a parent
        have no part in the posterior; they must be logarithms of probabilities.

    Returns
    -------
    list of Cpt, length V, or None
        None if a probability would be below e^-700, and its logarithm inaccurate.

    Raises
    ------
    ValueError
        If the structure has an obstacle.
    """
    target = len(structure.names) - 1
    position = {i: rank for rank, i in enumerate(structure.topological_order())}
    logs = [cpt.table.copy() for cpt in weights]
    for i in sorted(position, key=position.__getitem__, reverse=True):
        parents = structure.parents[i]
        if i != target and target not in parents:
            continue
        sums = logsumexp(logs[i], axis=-1)
        logs[i] -= sums[..., np.newaxis]
        if i == target:
            continue
        host = max(parents, key=position.__getitem__)
        axes = (*structure.parents[host], host)
        if not set(parents) <= set(axes):
            raise ValueError(
                f"the family of {structure.names[host]!r} lacks a parent of {structure.names[i]!r}"
            )
        logs[host] += _spread(np.asarray(sums), parents, axes)
    if any(table.min() < SMALLEST_LOG for table in logs):
        return None
    return [replace(cpt, table=np.exp(table)) for cpt, table in zip(weights, logs, strict=True)]


def _spread(values: NDArray[np.float64], own: Sequence[int], axes: Sequence[int]) -> NDArray[np.float64]:
    """Return values with one axis per variable of `own` as an array that broadcasts over the variables `axes`."""
    order = [own.index(j) for j in axes if j in own]
    return values.transpose(order).reshape([values.shape[own.index(j)] if j in own else 1 for j in axes])


def obstacle(structure: Structure) -> str | None:
    """Return why probability tables cannot hold all family weights of a structure, as a clause; None if they can.

    The condition is that of Roos et al. (2005), Theorem 3: the parents of every feature that has the class among them
    are adjacent to each other.
    """
    target = len(structure.names) - 1
    names = structure.names
    for i, parents in enumerate(structure.parents[:target]):
        if target not in parents:
            continue
        for a in range(len(parents)):
            for b in range(a):
                one, other = parents[b], parents[a]
                if one in structure.parents[other] or other in structure.parents[one]:
                    continue
                if other == target:
                    return f"{names[one]!r}, a parent of {names[i]!r}, is not adjacent to the class"
                return (
                    f"{names[one]!r} and {names[other]!r}, parents of {names[i]!r}, are not adjacent (with max_parents "
                    "2 there are no such parents)"
                )
    return None


def completed(
    structure: Structure, objection: Callable[[Structure], str | None] | None = None
) -> tuple[Structure, list[tuple[int, int]], str | None]:
    """Add the arcs from the class to class-free feature parents that `normalised` needs.

    Parameters
    ----------
    structure : Structure
        Any structure.
    objection : callable, optional
        Returns a clause on how a structure breaks the user's constraints, such as "it has the forbidden arc C -> X", or
        None.

    Returns
    -------
    completed : Structure
        With the added arcs; the structure itself where none are needed, or where they would not suffice.
    added : list of (int, int)
        The added arcs as (parent, child).
    reason : str or None
        Why tables cannot hold the weights even so, as a clause; None if they can.
    """
    target = len(structure.names) - 1
    above = _ancestors(structure, target)
    parents, added = [set(p) for p in structure.parents], []
    waiting = [i for i in range(target) if target in parents[i]]
    while waiting:
        child = waiting.pop()
        for j in sorted(parents[child] - {target}):
            if target in parents[j] or j in parents[target]:
                continue
            if j in above:
                names = structure.names
                reason = (
                    f"{names[j]!r}, a parent of {names[child]!r}, is not adjacent to the class, and an arc from the "
                    "class to it would close a cycle"
                )
                return structure, [], reason
            parents[j].add(target)
            added.append((target, j))
            waiting.append(j)
    found = Structure(structure.names, tuple(tuple(p) for p in parents)) if added else structure
    why = obstacle(found)
    if why is None and added and objection is not None:
        clause = objection(found)
        if clause is not None:
            why = f"the structure with the arcs from the class that it needs breaks a constraint: {clause}"
    return (found, added, None) if why is None else (structure, [], why)


def _ancestors(structure: Structure, variable: int) -> set[int]:
    """Return the variables with a directed path to a variable."""
    found: set[int] = set()
    waiting = [variable]
    while waiting:
        new = set(structure.parents[waiting.pop()]) - found
        found |= new
        waiting += new
    return found


def with_class_axis(weights: Sequence[Cpt], structure: Structure, n_classes: int) -> list[Cpt]:
    """Return tables over the families of a structure that `completed` returned.

    A table whose family gained the class is repeated for every class: the feature's own factor still says nothing
    about the class.
    """
    out = []
    for cpt, parents in zip(weights, structure.parents, strict=True):
        table = cpt.table
        if parents != cpt.parents:  # the class is the last parent, before the variable's own axis
            table = np.repeat(table[..., np.newaxis, :], n_classes, axis=-2)
        out.append(Cpt(cpt.variable, parents, table))
    return out
