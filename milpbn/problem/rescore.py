"""Score a structure from the data alone: the check on every structure that a backend returns.

Nothing here reads the coefficients of the model. The parameters of the structure are estimated afresh, under
leave-one-out scores without each sample's own copy.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.sums import log_share
from milpbn.network.cpt import class_log_joint, log_cpts, require_match, require_states
from milpbn.network.prior import Prior, prior_parents, shrunk_counts, uniform_counts
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints, Rules, atoms, combine
from milpbn.problem.counts import joint_states, require_units
from milpbn.problem.rounding import EPS, table_error
from milpbn.problem.scores.spec import Score


def _log_joint(
    data: Dataset, structure: Structure, score: Score, rows: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return log P(c, z_m) of the selected samples, shape (selected, C); the parameters come from all samples.

    Under leave-one-out scores they come from all other samples, and what this adds to all classes alike is left out.
    """
    if score.kind.unit and score.prior.has_table:
        return _left_out_joint(data, structure, score.prior, rows)
    tables = log_cpts(data, structure, *score.prior)
    joint = class_log_joint(data.codes[rows], structure, tables, data.n_classes, np.asarray)
    if score.kind.unit:
        joint[np.arange(len(joint)), data.y[rows]] = _without_own_copy(data, structure, score.smoothing)[rows]
    return joint


def _without_own_copy(data: Dataset, structure: Structure, a: float) -> NDArray[np.float64]:
    """Return log P(c_m, z_m) of every sample, float64 array, shape (M,), with one unit of its weight left out.

    In a family with the class as a parent, n_{j|h} and n_h of the true class lack the unit, and no counts of other
    classes do. In the family of the class the n_h of all classes lack it; in a family without the class all classes
    have the same counts, which lack it. As in `_log_joint` for the other classes, these n_h and counts keep the unit
    here: their change adds the same to every class.
    """
    total, last = np.zeros(data.n_samples), data.n_variables - 1
    for i, parents in enumerate(structure.parents):
        above, size = joint_states(data.codes, parents, data.n_states)
        states = int(data.n_states[i])
        cell = above * states + data.codes[:, i]
        counts = data.total_weights(cell, size * states).reshape(size, states)
        n, rest = (values.ravel()[cell] for values in (counts, data.other_weights(counts)))
        unit = 1.0 if last in (i, *parents) else 0.0
        total += log_share(n - unit + a, rest + a * (states - 1) + (unit if i == last else 0.0))
    return total


def _left_out_joint(
    data: Dataset, structure: Structure, prior: Prior, rows: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return log P(c, z_m) of the selected samples with one unit of the sample's weight left out, in nats.

    This is for priors whose mean is a table of the data (`milpbn.network.prior`). The sample is left out of that table,
    too, so the log-probabilities of the other classes may change as well as that of the sample's own class. No weight
    is below 1. `rows` is a bool array of shape (M,), and the result a float64 array of shape (selected, C).

    Changes that are the same for all classes are not made: the unit stays in families without the class, and in the
    count n_h of the class variable's own family.
    """
    last, C = data.n_variables - 1, data.n_classes
    #: 1 for the sample's own class, else 0.
    own = (data.y[rows, None] == np.arange(C)).astype(np.float64)
    joint = np.zeros(own.shape)
    for i, parents in enumerate(structure.parents):
        part, rest = _counts(data, i, parents, rows)
        states = int(data.n_states[i])
        fewer = prior_parents(prior, parents, data.n_states)
        unit = own if last in (i, *parents) else np.zeros((1, 1))
        if fewer is None:
            added = uniform_counts(prior.smoothing, states)
        else:
            above, beside = _counts(data, i, fewer, rows)
            # Without the class among its variables, the prior's table lacks the unit in the sample's own state, which
            # all classes share. In the class variable's own family, the unit is one of the counts of the other states
            # for all classes but the true one.
            less = unit if last in (i, *fewer) or not unit.any() else np.ones((1, 1))
            beside = beside - (1.0 - unit) if i == last else beside
            added = shrunk_counts(above - less, beside, prior.smoothing, states)
        joint += log_share(part - unit + added.part, rest + added.rest + (unit if i == last else 0.0))
    return joint


def _counts(
    data: Dataset, i: int, parents: tuple[int, ...], rows: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the counts of the selected samples' states, and of the other states, given each class in turn.

    They have one column for every class if the class is among the variables, shape (m, C), else one column.
    """
    last, C = data.n_variables - 1, data.n_classes
    features = tuple(j for j in parents if j != last)
    above, size = joint_states(data.codes, features, data.n_states)
    place: list[NDArray[np.integer]] = [above]
    shape = [size]
    if i != last:
        place.append(data.codes[:, i])
        shape.append(int(data.n_states[i]))
    index = list(place)
    if last in (i, *parents):
        index.append(data.y)
        shape.append(C)
    cells = np.asarray(np.ravel_multi_index(tuple(index), shape))
    counts = data.total_weights(cells, math.prod(shape)).reshape(shape)
    rest = data.other_weights(counts, axis=1)  # over the variable's own states
    here = tuple(p[rows] for p in place)
    part, others = (values[here].reshape(int(rows.sum()), -1) for values in (counts, rest))
    return part, others


def _joints(
    data: Dataset, structure: Structure, score: Score
) -> tuple[NDArray[np.float64], NDArray[np.integer]]:
    """Return the joint log-probabilities of all samples, shape (M, Q), and the column of each one's own class.

    Under a binary margin, equation (21) of Peharz & Pernkopf (2012), the class variable is re-read as {c, not c} for
    each class c, parameters are estimated from these data, and they give the margins of the samples of class c.
    """
    if not score.kind.binary:
        return _log_joint(data, structure, score, np.ones(data.n_samples, dtype=bool)), data.y
    joint = np.empty((data.n_samples, 2))
    last = data.variables[-1]
    for c in range(data.n_classes):
        mine = data.y == c
        if not mine.any():
            continue
        codes = data.codes.copy()
        codes[:, -1] = np.where(mine, 0, 1)
        two = type(last)(last.name, ("1", "2"))
        binary = Dataset(data.name, (*data.variables[:-1], two), codes, data.weights)
        joint[mine] = _log_joint(binary, structure, score, mine)
    return joint, np.zeros(data.n_samples, dtype=np.int64)


def _samples_part(
    data: Dataset, structure: Structure, score: Score, weights: NDArray[np.float64]
) -> tuple[float, float]:
    """Return the samples' part of a margin score with the given weights, and a bound on its rounding error.

    A joint log-probability has a bounded relative error (`milpbn.problem.rounding`).
    """
    share = table_error(data, score.prior) + EPS * (data.n_variables + 4)
    values, errors = score.kind.sample_values(*_joints(data, structure, score), share)
    if not score.kind.sums_samples:
        return float(values.min()), float(errors.max())
    return math.fsum(weights * values), math.fsum(weights * (errors + 16 * EPS * np.abs(values)))


def standard_error(
    data: Dataset, structure: Structure, score: Score, sample_weights: NDArray[np.float64] | None = None
) -> float | None:
    """Return an estimate of the standard deviation of a structure's score over data sets of this size, in nats.

    It is sqrt(sum_m w_m (f_m - mean)^2), where f_m is what sample m adds to the score, and treats the parameters as
    fixed. None if the score is not a sum over samples, or contains a likelihood, which is a sum over families.
    """
    if not score.kind.sums_samples or score.kind.local_weights(data.total_weight)[0]:
        return None
    weights = data.weights if sample_weights is None else sample_weights
    values, _ = score.kind.sample_values(*_joints(data, structure, score), 0.0)
    if not np.isfinite(values).all():
        return None
    centred = values - math.fsum(weights * values) / math.fsum(weights)
    return math.sqrt(math.fsum(weights * centred**2))


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
        A structure over the same variables.
    score : Score
        The score and its options; its class in `milpbn.problem.scores` has the formula.
    rules : Rules or Constraints, optional
        Read for the arc weights only.
    sample_weights : float64 array, shape (M,), optional
        Weights of the samples' margins; by default those of the data. The parameters are estimated from all data.

    Returns
    -------
    float
        Nats. ``-inf`` for AICc with k >= M - 1.

    Raises
    ------
    InputError
        If the structure has other variables or another order of them, or if a value has no state; under leave-one-out
        scores also if a weight is below 1.
    """
    return rescored(data, structure, score, rules, sample_weights)[0]


def rescored(
    data: Dataset,
    structure: Structure,
    score: Score,
    rules: Rules | Constraints | None = None,
    sample_weights: NDArray[np.float64] | None = None,
) -> tuple[float, float]:
    """Return the score of a structure and a bound on its rounding error, in nats; the arguments are those of `rescore`.

    The exact score differs from the value by at most half the error. So two such values, for example from merged and
    from unmerged samples, differ by at most the error.
    """
    require_match(data, structure)
    require_states(data)
    require_units(data, score.kind.unit)
    if isinstance(rules, Constraints):
        rules = combine(atoms(rules, data.names))
    parts: list[float] = []
    error = 0.0
    if score.is_margin:
        weights = data.weights if sample_weights is None else sample_weights
        value, error = _samples_part(data, structure, score, weights)
        parts.append(value)
    sizes: list[float] = []
    if score.kind.has_local_terms:
        local = score.kind.local_value(data, structure.parents)
        parts += local.parts
        sizes += local.sizes
        error += local.error
    if rules is not None:
        arcs = [rules.arc_weights.get(arc, 0.0) for arc in structure.arcs]
        parts += arcs
        sizes += map(abs, arcs)
    error += math.fsum(score.kind.term_error(data, score.prior) * np.array(sizes))
    total = math.fsum(parts)
    if total == -math.inf:
        return total, 0.0
    return total, 2 * (error + 4 * EPS * math.fsum(map(abs, parts)))
