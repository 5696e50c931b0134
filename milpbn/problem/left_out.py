"""Joint log-probabilities of samples and classes, from parameters that do not count the sample.

This is for priors whose mean is a table of the data (`milpbn.network.prior`). The sample is left out of that table,
too, so the log-probabilities of the other classes may change as well as that of the sample's own class. The
coefficients are not used here, so that the scores computed here check them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.sums import log_share
from milpbn.network.prior import Prior, prior_parents, shrunk_counts, uniform_counts
from milpbn.network.structure import Structure
from milpbn.problem.counts import joint_states

#: Counts of a state and of the variable's other states, for each sample and class; arrays of shape (m, C) or (m, 1).
Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


def left_out_joint(
    data: Dataset, structure: Structure, prior: Prior, rows: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return log P(c, z_m) of the selected samples with one unit of the sample's weight left out.

    Changes that are the same for all classes are not made: the unit stays in families without the class, and in the
    count n_h of the class variable's own family.

    Parameters
    ----------
    data : Dataset
        Training data without weights below 1.
    structure : Structure
        Parent sets.
    prior : Prior
        Prior of the parameters.
    rows : bool array, shape (M,)
        The selected samples.

    Returns
    -------
    float64 array, shape (selected, C)
        In nats.
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


def _counts(data: Dataset, i: int, parents: tuple[int, ...], rows: NDArray[np.bool_]) -> Pair:
    """Return the counts of the selected samples' states, and of the other states, given each class in turn.

    They have one column for every class if the class is among the variables.
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
