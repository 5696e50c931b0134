"""Discriminative scores and searches as slowly and plainly as they are defined: the oracle of the incremental ones."""

from __future__ import annotations

from itertools import combinations
from math import log

import networkx as nx
import numpy as np

from milpbn.data.dataset import Dataset
from milpbn.data.folds import stratified_folds
from milpbn.network import Cpt, Structure, class_log_joint, fit_cpts, log_margins, log_posterior

#: Scores nearer than this are equal.
EQUAL = 1e-9


def log_joint(data: Dataset, parents, smoothing=1.0, zero=None, fold=None) -> np.ndarray:
    """log P(c, x_m), shape (M, C); with folds, each sample's parameters are those of the other folds."""
    structure = Structure(data.names, (*((*p, data.n_features) for p in parents), ()))
    if fold is None:
        return class_log_joint(data.codes, structure, cpts(data, structure, smoothing, zero), data.n_classes)
    out = np.empty((data.n_samples, data.n_classes))
    for f in np.unique(fold):
        own = cpts(data.take(np.flatnonzero(fold != f)), structure, smoothing, zero)
        out[fold == f] = class_log_joint(data.codes[fold == f], structure, own, data.n_classes)
    return out


def cpts(data: Dataset, structure: Structure, smoothing: float, zero: float | None) -> list[Cpt]:
    if zero is None:
        return fit_cpts(data, structure, smoothing)
    out = []
    for cpt in fit_cpts(data, structure, 0.0):
        rows = cpt.table.reshape(-1, cpt.table.shape[-1]).copy()
        for row in rows:
            for state, p in enumerate(row):
                if p == 0:
                    row[state] = zero
            row /= row.sum()
        out.append(Cpt(cpt.variable, cpt.parents, rows.reshape(cpt.table.shape)))
    return out


def score(data: Dataset, parents, criterion: str, gamma=1.0, **options) -> float:
    joint = log_joint(data, parents, **options)
    every = np.arange(data.n_samples)
    if criterion == "cr":
        first = (joint >= joint.max(axis=1, keepdims=True) - EQUAL).argmax(axis=1)
        return float(data.weights @ (first == data.y))
    if criterion == "cl":
        return float(data.weights @ log_posterior(joint)[every, data.y])
    return float(data.weights @ np.minimum(log_margins(joint, data.y), gamma))


def folds_of(data: Dataset, seed: int = 0) -> np.ndarray:
    """The folds that a learner makes of merged data."""
    fold = np.empty(data.n_samples, dtype=int)
    for number, (_, held_out) in enumerate(stratified_folds(data.y, 5, seed)):
        fold[held_out] = number
    return fold


def first_best(values) -> int:
    return int(np.flatnonzero(np.array(values) >= max(values) - EQUAL)[0])


def greedy(data: Dataset, criterion: str, **options):
    """Hill climbing from naive Bayes; the arcs (parent, child) in the order of their addition, and their scores."""
    N = data.n_features
    parents = [()] * N
    value = score(data, parents, criterion, **options)
    path = []
    while True:
        trials = []
        for child in range(N):
            for parent in range(N):
                if parents[child] or parent == child:
                    continue
                graph = nx.DiGraph([(p[0], i) for i, p in enumerate(parents) if p] + [(parent, child)])
                if nx.is_directed_acyclic_graph(graph):
                    trial = [(parent,) if i == child else p for i, p in enumerate(parents)]
                    trials.append((parent, child, trial, score(data, trial, criterion, **options)))
        if not trials:
            return path
        parent, child, trial, best = trials[first_best([t[-1] for t in trials])]
        if best <= value + EQUAL:
            return path
        parents, value = trial, best
        path.append(((parent, child), best))


def entropy(data: Dataset, given) -> float:
    """H(C | some features) of the relative frequencies, in nats."""
    cells: dict = {}
    for row, w in zip(data.codes.tolist(), data.weights.tolist(), strict=True):
        counts = cells.setdefault(tuple(row[j] for j in given), {})
        counts[row[-1]] = counts.get(row[-1], 0.0) + w
    return sum(-n * log(n / sum(c.values())) for c in cells.values() for n in c.values()) / data.weights.sum()


def information_order(data: Dataset) -> list[int]:
    order: list[int] = []
    left = list(range(data.n_features))
    while left:
        gain = [entropy(data, order) - entropy(data, [*order, i]) for i in left]
        ties = [i for i, g in zip(left, gain, strict=True) if g >= max(gain) - EQUAL]
        alone = [entropy(data, []) - entropy(data, [i]) for i in ties]
        best = ties[first_best(alone)]
        order.append(best)
        left.remove(best)
    return order


def order_based(data: Dataset, criterion: str, k: int, **options):
    """Parents by the order-based heuristic, and their score."""
    order = information_order(data)
    parents = [()] * data.n_features
    value = score(data, parents, criterion, **options)
    for place, child in enumerate(order):
        sets = [s for size in range(1, k + 1) for s in combinations(sorted(order[:place]), size)]
        if not sets:
            continue
        values = [
            score(data, [s if i == child else p for i, p in enumerate(parents)], criterion, **options)
            for s in sets
        ]
        best = first_best(values)
        if values[best] > value + EQUAL:
            parents[child], value = sets[best], values[best]
    return parents, value
