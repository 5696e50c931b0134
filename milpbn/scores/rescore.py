"""Score a structure from the data alone: the check on every structure that a backend returns.

Nothing here reads the coefficients of the model; parameters are counted anew for the one structure.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.network.cpt import class_log_joint, fit_cpts, require_match, require_states
from milpbn.network.margins import log_margins, log_posterior
from milpbn.network.structure import Structure
from milpbn.scores.constraints import Constraints, Rules, atoms, combine
from milpbn.scores.generative import bdeu, family_counts, log_likelihood, n_parameters
from milpbn.scores.spec import Score


def binary_log_margins(data: Dataset, structure: Structure, smoothing: float) -> NDArray[np.float64]:
    """Return the log of the binary margin of every sample, P12 (21), shape (M,).

    For each class c the class variable is re-read as {c, not c}, parameters are fitted to those data, and the
    samples of class c are compared under them.
    """
    result = np.empty(data.n_samples)
    last = data.variables[-1]
    for c in range(data.n_classes):
        mine = data.y == c
        if not mine.any():
            continue
        codes = data.codes.copy()
        codes[:, -1] = np.where(mine, 0, 1)
        two = type(last)(last.name, ("1", "2"))
        binary = Dataset(data.name, (*data.variables[:-1], two), codes, data.weights)
        joint = class_log_joint(codes[mine], structure, fit_cpts(binary, structure, smoothing), 2)
        result[mine] = joint[:, 0] - joint[:, 1]
    return result


def _discriminative(data: Dataset, structure: Structure, score: Score, weights: NDArray[np.float64]) -> float:
    """Return what the samples, so weighted, add to a margin score or to the conditional log-likelihood."""
    if score.name == "sbm":
        margins = binary_log_margins(data, structure, score.smoothing)
    else:
        cpts = fit_cpts(data, structure, score.smoothing)
        joint = class_log_joint(data.codes, structure, cpts, data.n_classes)
        if score.name == "cll":
            own = log_posterior(joint)[np.arange(data.n_samples), data.y]
            return math.fsum(weights * own)
        margins = log_margins(joint, data.y)
    if score.name == "hard-margin":
        return float(margins.min())
    assert score.gamma is not None
    return math.fsum(weights * np.minimum(margins, score.gamma))


def rescore(
    data: Dataset,
    structure: Structure,
    score: Score,
    rules: Rules | Constraints | None = None,
    sample_weights: NDArray[np.float64] | None = None,
) -> float:
    """Return the score of a structure, computed from the data.

    Parameters
    ----------
    data : Dataset
        Training data, merged or not.
    structure : Structure
        Over the same variables.
    score : Score
        Which score, with its options; P12 (9), (21), design of the generative ones in `generative`.
    rules : Rules or Constraints, optional
        Read for the arc weights only.
    sample_weights : float64 array, shape (M,), optional
        What the margins of the samples count; by default their weights. The parameters are those of the data.

    Returns
    -------
    float
        Nats. ``-inf`` for AICc with k >= M - 1.

    Raises
    ------
    InputError
        If the structure is over other variables, or in another order, or a value has no state.
    """
    require_match(data, structure)
    require_states(data)
    if isinstance(rules, Constraints):
        rules = combine(atoms(rules, data.names))
    total = 0.0
    if score.is_margin:
        weights = data.weights if sample_weights is None else sample_weights
        total = _discriminative(data, structure, score, weights)
    families = list(enumerate(structure.parents))
    M = float(data.weights.sum())
    if score.name == "bdeu":
        sizes = data.n_states
        for i, s in families:
            q = math.prod(int(sizes[j]) for j in s)
            total += bdeu(family_counts(data, i, s), q, score.equivalent_sample_size)
    elif score.has_local_terms:
        k = sum(n_parameters(data, i, s) for i, s in families)
        likelihood, per_parameter = score.local_weights(M)
        total += likelihood * sum(log_likelihood(family_counts(data, i, s)) for i, s in families)
        total -= per_parameter * k
        if score.name == "aicc":
            total -= k + k * (k + 1) / (M - k - 1) if k < M - 1 else math.inf
    if rules is not None:
        total += sum(rules.arc_weights.get(arc, 0.0) for arc in structure.arcs)
    return total
