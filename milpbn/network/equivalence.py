"""Which classifiers are the same: equal class posteriors for all joint states, or equal but for smoothing.

A classifier's log-odds log P(c | z) - log P(c_1 | z) are a sum of functions of few features each: one for every table
whose family contains the class. Such a sum has exactly one expansion into interactions u_A, one for every set A of
features, where u_A(x_A) = 0 as soon as a feature of A is in its first state. Two classifiers therefore have the same
posteriors if and only if their interactions are the same, and nobody has to go through all joint states.

Structures that are Markov equivalent (Verma and Pearl 1990: the same edges, and the same v-structures) have the same
posteriors under maximum-likelihood parameters. Smoothed parameters differ a little.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.network.cpt import Cpt, fit_cpts
from milpbn.network.structure import Structure

#: Largest difference, in nats, between the log-odds of two classifiers whose posteriors count as the same. The rounding
#: errors of the logarithms of a hundred tables are much smaller.
SAME_POSTERIORS = 1e-9

#: By features (ascending indices): u_A, shape (classes, states of each feature...).
Interactions = dict[tuple[int, ...], NDArray[np.float64]]


def interactions(cpts: Sequence[Cpt]) -> Interactions:
    """Return the interactions of a classifier's log-odds against the first class; all probabilities are positive."""
    last, found = len(cpts) - 1, {}  # type: int, Interactions
    for cpt in cpts:
        family = (*cpt.parents, cpt.variable)
        if last not in family:
            continue  # the same factor for every class
        order = sorted(range(len(family)), key=lambda axis: (family[axis] != last, family[axis]))
        features = tuple(family[axis] for axis in order[1:])
        odds = np.log(np.transpose(cpt.table, order))
        odds = odds - odds[:1]
        for chosen in product((False, True), repeat=len(features)):
            part = odds
            # From the last axis to the first, so that the others keep their numbers.
            for axis in reversed(range(len(features))):
                first = part.take([0], axis=axis + 1)
                part = part - first if chosen[axis] else first.squeeze(axis + 1)
            members = tuple(j for j, inside in zip(features, chosen, strict=True) if inside)
            found[members] = found[members] + part if members in found else part
    return found


def posteriors_of(
    data: Dataset, structures: Sequence[Structure], smoothing: float, smoothing_towards: str
) -> list[Interactions]:
    """Return the interactions of structures under the parameters that `milpbn.network.cpt.fit_cpts` estimates."""
    found, known = [], dict[tuple[int, tuple[int, ...]], Cpt]()
    for structure in structures:  # long lists have most tables in common
        families = list(enumerate(structure.parents))
        if not known.keys() >= {*families}:
            known |= zip(families, fit_cpts(data, structure, smoothing, smoothing_towards), strict=True)
        found.append(interactions([known[family] for family in families]))
    return found


def largest_difference(one: Interactions, other: Interactions) -> float:
    """Return a bound on the difference between the log-odds of two classifiers, over all joint states, in nats."""
    total = 0.0
    for members in one.keys() | other.keys():
        difference = one.get(members, 0.0) - other.get(members, 0.0)
        total += float(np.abs(difference).max())
    return total


def same_posteriors(classifiers: Sequence[Interactions]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of two or more classifiers with the same posteriors, by their numbers from 1."""
    marks = [_mark(own) for own in classifiers]
    groups: list[list[int]] = []
    for number, own in enumerate(classifiers):
        for group in groups:
            first = group[0]
            # The marks differ by no more than the log-odds, and are compared much faster.
            if (
                abs(marks[first] - marks[number]) <= 2 * SAME_POSTERIORS
                and largest_difference(classifiers[first], own) <= SAME_POSTERIORS
            ):
                group.append(number)
                break
        else:
            groups.append([number])
    return _numbered(groups)


def markov_equivalent(structures: Sequence[Structure]) -> tuple[tuple[int, ...], ...]:
    """Return the groups of two or more Markov equivalent structures, by their numbers from 1."""
    groups = defaultdict(list)
    for number, structure in enumerate(structures):
        groups[_pattern(structure)].append(number)
    return _numbered(groups.values())


def _mark(own: Interactions) -> float:
    """Return a number of a classifier: the sum, over its interactions, of a mean with signs and weights below 1."""
    total = 0.0
    for members, values in own.items():
        weights = np.cos(np.arange(values.size) + sum((k + 2) * j for k, j in enumerate(members)))
        total += float((values.ravel() * weights).mean())
    return total


def _pattern(structure: Structure) -> tuple[frozenset[frozenset[int]], frozenset[tuple[int, frozenset[int]]]]:
    """Return edges and v-structures; a v-structure is a child and two of its parents that are no neighbours."""
    edges = frozenset(frozenset(arc) for arc in structure.arcs)
    colliders = {
        (i, frozenset((j, k)))
        for i, parents in enumerate(structure.parents)
        for j in parents
        for k in parents
        if j < k and frozenset((j, k)) not in edges
    }
    return edges, frozenset(colliders)


def _numbered(groups: Iterable[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Return the groups with two or more members, which count from 1."""
    return tuple(tuple(number + 1 for number in group) for group in groups if len(group) > 1)
