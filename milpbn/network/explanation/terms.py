"""The terms of log P(c, z): one per family, or per group of families that missing values join."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from milpbn.data.dataset import MISSING, UNKNOWN
from milpbn.network.cpt import Cpt, class_log_joint
from milpbn.network.inference.rows import log_joint_of_rows
from milpbn.network.structure import Structure, topological_order

#: Numbers of the terms of the samples that are computed together, 32 MB of float64.
_NUMBERS = 1 << 22


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of some samples."""

    #: Positions of the samples in the data, shape (R,).
    rows: NDArray[np.int64]
    #: The variables whose families make each term, each variable once.
    groups: tuple[tuple[int, ...], ...]
    #: The terms in nats, shape (R, G, C). Their sum over the groups is log P(c, z_m).
    log_probabilities: NDArray[np.float64]
    #: Variables whose families are taken apart (`milpbn.network.explanation.columns.taken_apart`).
    apart: tuple[int, ...] = ()
    #: Groups that are no families, but effects of several variables of families that are taken apart.
    together: tuple[tuple[int, ...], ...] = ()


def terms(
    codes: NDArray[np.int32],
    names: Sequence[str],
    cpts: Sequence[Cpt],
    n_classes: int,
    columns: Sequence[Sequence[int]] = (),
) -> Iterator[Terms]:
    """Yield the terms of all samples: the logarithms of the factors of (1) of Peharz and Pernkopf (2012).

    The sum over the states of a missing feature joins its family and those of its children in one term. A missing
    feature without known descendants has a term of its own, which is 0. Codes, shape (M, V), have the effect that
    `log_joint_of_rows` describes. There is one table per variable, in order; the graph of their parents may have
    cycles. The families of variables that code one column, given in `columns`, are one term.
    """
    step = max(1, _NUMBERS // (len(cpts) * n_classes))
    for start in range(0, len(codes), step):
        for part in _of_block(codes[start : start + step], names, cpts, n_classes, columns):
            yield replace(part, rows=part.rows + start)


def _of_block(
    codes: NDArray[np.int32],
    names: Sequence[str],
    cpts: Sequence[Cpt],
    n_classes: int,
    columns: Sequence[Sequence[int]],
) -> Iterator[Terms]:
    """Yield the terms of some samples, those with the same missing values together."""
    hidden = codes == MISSING
    hidden[:, -1] = False
    known = np.where(codes == MISSING, UNKNOWN, codes)
    structure = Structure.empty(tuple(names))  # of which `class_log_joint` reads the names only
    by_family = np.stack([class_log_joint(known, structure, [cpt], n_classes) for cpt in cpts], axis=1)
    patterns, of_row = np.unique(hidden, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        rows = np.flatnonzero(of_row.ravel() == k)
        absent = set(np.flatnonzero(pattern).tolist())
        unused = _without_known_descendants(cpts, absent)
        groups = _joined([cpt for cpt in cpts if cpt.variable not in unused], absent, len(cpts), columns)
        logs = np.zeros((len(rows), len(groups), n_classes))
        for g, group in enumerate(groups):
            used = [i for i in group if i not in unused]
            if absent.isdisjoint(group):
                for i in used:
                    logs[:, g] += by_family[rows, i]
            elif used:
                logs[:, g] = log_joint_of_rows(codes[rows], names, [cpts[i] for i in used], n_classes)
        yield Terms(rows, groups, logs)


def _without_known_descendants(cpts: Sequence[Cpt], hidden: set[int]) -> set[int]:
    """Return the hidden variables all of whose descendants are hidden: their tables sum to 1, if there is no cycle."""
    if topological_order([cpt.parents for cpt in cpts]) is None:
        return set()
    unused = set(hidden)
    while True:
        needed = {j for cpt in cpts if cpt.variable not in unused for j in cpt.parents} & unused
        if not needed:
            return unused
        unused -= needed


def _joined(
    cpts: Sequence[Cpt], hidden: set[int], n_variables: int, columns: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], ...]:
    """Return all variables in groups whose families share hidden variables, directly or through others, or a column."""
    shared = [(cpt.variable, j) for cpt in cpts for j in (cpt.variable, *cpt.parents) if j in hidden]
    shared += [(places[0], i) for places in columns for i in places]
    one, other = np.array(shared, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(one)), (one, other)), shape=(n_variables, n_variables))
    _, label = connected_components(graph, directed=False)
    groups: dict[int, list[int]] = {}
    for variable, number in enumerate(label.tolist()):
        groups.setdefault(number, []).append(variable)
    return tuple(map(tuple, groups.values()))


def base_rates(names: Sequence[str], cpts: Sequence[Cpt], n_classes: int) -> NDArray[np.float64]:
    """Return log P(c) of every class before any feature is known, shape (C,).

    If the class has parents and some class is impossible, all numbers are 0, and the parents keep the whole term.
    """
    row = np.full((1, len(cpts)), MISSING, dtype=np.int32)
    row[0, -1] = UNKNOWN
    if not cpts[-1].parents:  # the only term that is read; the others may be sums over cycles
        return class_log_joint(np.zeros_like(row), Structure.empty(tuple(names)), [cpts[-1]], n_classes)[0]
    (part,) = terms(row, names, cpts, n_classes)
    found = part.log_probabilities.sum(axis=1)[0]
    return found if np.isfinite(found).all() else np.zeros(n_classes)


def with_base_rate(part: Terms, base: NDArray[np.float64], parents: Sequence[int]) -> Terms:
    """Return terms, with the same sums, of which the last is the base rate of the classes; its group is ().

    The term of the class variable's family then has only what the parents of the class say. It is left out if there are
    none. `base` is as `base_rates` returns it.
    """
    last = max(i for group in part.groups for i in group)
    own = next(g for g, group in enumerate(part.groups) if last in group)
    logs = part.log_probabilities.copy()
    logs[:, own] = log_ratio(logs[:, own], np.broadcast_to(base, logs[:, own].shape))
    shares = np.broadcast_to(base, (len(logs), 1, len(base)))
    kept = [g for g in range(len(part.groups)) if g != own or parents]
    return Terms(
        part.rows,
        (*(part.groups[g] for g in kept), ()),
        np.concatenate([logs[:, kept], shares], axis=1),
    )


def log_ratio(own: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return own - other in nats, and 0 where both are equal, even where both are the logarithm of 0."""
    return np.subtract(own, other, out=np.zeros(np.shape(own)), where=own != other)
