"""What the prior of the parameters adds to counts, for the verifier; written anew from the formulas.

The count of state j of variable i gets a sp t_j, and that of its other states a sp (1 - t_j), where a is the smoothing.
The mean t is 1 / sp, or (m_j + a) / (m + a sp) with the counts m of a table with fewer parents: none (``marginal``), or
the class if it is a parent (``class``). A family whose other parents have one state each has the mean 1 / sp. Under
leave-one-out scores one unit of the sample's weight is missing in m, too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.problem.candidates import ParentSet
from milpbn.problem.scores.spec import Score


class Added(NamedTuple):
    """What is added to the weight of a state, and to that of the other states of the variable."""

    part: NDArray[np.float64]
    rest: NDArray[np.float64]


def states(data: Dataset, members: ParentSet) -> tuple[NDArray[np.int64], int]:
    """Return the number of the joint state of some variables in every sample, shape (M,), and how many there are."""
    number, size = np.zeros(data.n_samples, dtype=np.int64), 1
    for j in members:
        r = int(data.n_states[j])
        number, size = number * r + data.codes[:, j], size * r
        if size > 4 * data.n_samples:
            kinds, number = np.unique(number, return_inverse=True)
            size = len(kinds)
    return number, size


def cell_priors(
    data: Dataset, i: int, features: ParentSet, n_above: int, score: Score
) -> tuple[Added, Added]:
    """Return what is added for the true class, and for competing classes (under SBM, for all other classes together).

    `features` are the parents of variable i without the class, which is the variable itself or another parent, and
    `n_above` is how many joint states of these parents the tables have. The arrays broadcast to the shape (n_above *
    states of a feature, C), or (n_above, C) for the class.
    """
    C, a, last = data.n_classes, score.smoothing, len(data.variables) - 1
    binary, unit = score.name == "sbm", 1.0 if score.leave_one_out else 0.0
    n_classes = 2 if binary else C
    r = n_classes if i == last else int(data.n_states[i])
    tells = any(data.n_states[j] > 1 for j in features)
    # Towards the marginal, the prior's table of a feature lacks the class, which the family has.
    lacks_class = i != last and score.smoothing_towards == "marginal" and n_classes > 1
    if score.smoothing_towards == "uniform" or not (tells or lacks_class):
        flat = Added(np.array([[a]]), np.array([[a * (r - 1)]]))
        return flat, flat
    # One row for every state of the feature, or a single one for the class; one column for every class.
    state = data.y * 0 if i == last else data.codes[:, i].astype(np.int64)
    rows = 1 if i == last else r
    m = data.total_weights(state * C + data.y, rows * C).reshape(rows, C)
    beside = data.other_weights(m, axis=1 if i == last else 0)
    if i == last:
        own = _mean(_less(m, unit), beside, a, r)
        other = _mean(beside, _less(m, unit), a, r) if binary else _mean(m, _less(beside, unit), a, r)
    elif score.smoothing_towards == "class":
        own = _mean(_less(m, unit), beside, a, r)
        other = _mean(m, beside, a, r)
        if binary:
            other = _mean(data.other_weights(m), data.other_weights(beside), a, r)
    else:
        m = data.total_weights(state, r).reshape(r, 1)
        own = other = _mean(_less(m, unit), data.other_weights(m, axis=0), a, r)
    times = n_above if i != last else 1
    own, other = (Added(*(np.tile(x, (times, 1)) for x in added)) for added in (own, other))
    return own, other


def row_prior(data: Dataset, i: int, parents: ParentSet, score: Score) -> Added:
    """Return what is added to n_{j|h} less one and to the other states of its row, under leave-one-out scores.

    The arrays broadcast to the shape (joint states of the parents, states), numbered as by `states`. Their entries mean
    something where n_{j|h} is not 0.
    """
    a, r, last = score.smoothing, int(data.n_states[i]), len(data.variables) - 1
    class_stays = score.smoothing_towards == "class" and last in parents
    removed = [j for j in parents if not (class_stays and j == last) and data.n_states[j] > 1]
    if score.smoothing_towards == "uniform" or not removed:
        return Added(np.array([[a]]), np.array([[a * (r - 1)]]))
    number, size = states(data, parents)
    group, n_groups = (data.y.astype(np.int64), data.n_classes) if class_stays else (number * 0, 1)
    m = data.total_weights(group * r + data.codes[:, i], n_groups * r).reshape(n_groups, r)
    group_of = np.zeros(size, dtype=np.int64)
    group_of[number] = group
    mean = _mean(_less(m, 1.0), data.other_weights(m), a, r)
    return Added(mean.part[group_of], mean.rest[group_of])


def _less(m: NDArray[np.float64], unit: float) -> NDArray[np.float64]:
    """Return weights without the unit where there is one."""
    return np.where(m > 0, m - unit, 0.0)


def _mean(m: NDArray[np.float64], beside: NDArray[np.float64], a: float, r: int) -> Added:
    whole = m + beside + a * r
    return Added(a * r * ((m + a) / whole), a * r * ((beside + a * (r - 1)) / whole))
