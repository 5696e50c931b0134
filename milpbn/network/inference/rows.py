"""Log-joints of rows with missing values: exact sums over the states of what is missing.

If the features are a forest given the class, the time is linear in the number of features. Rows are computed together:
a feature that is missing in some of them only is summed over in these rows, and takes its state in the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING
from milpbn.network.cpt import Cpt, class_log_joint
from milpbn.network.inference.elimination import total_log
from milpbn.network.inference.plan import EliminationPlan, Planner
from milpbn.network.structure import Structure

#: Numbers in the factors of the rows that are computed together; at most 128 MB of float64 exist at the same time.
_NUMBERS = 1 << 24
#: Numbers that are computed in the time that a set of rows takes beside its numbers: planning, and calls of NumPy.
_OVERHEAD = 500_000


def log_joint_of_rows(
    codes: NDArray[np.int32], names: Sequence[str], cpts: Sequence[Cpt], n_classes: int
) -> NDArray[np.float64]:
    """Return log P(c, known values of z_m) for every sample and class.

    A row without missing values gets the number of `milpbn.network.cpt.class_log_joint`, to the last bit. For the
    others it is the logarithm of the sum of exp(that number) over all states of the missing features. If the tables
    form no acyclic graph (a pseudo-TAN), it is the same sum.

    Parameters
    ----------
    codes : int32 array, shape (M, V)
        State codes; `UNKNOWN` and `MISSING` are allowed. The last column, the class, is ignored.
    names : sequence of str, length V
        Names of the variables, for messages.
    cpts : sequence of Cpt
        One table per variable; that of the class may be absent.
    n_classes : int
        Number of classes C.

    Returns
    -------
    float64 array, shape (M, C)
        In nats.

    Raises
    ------
    InputError
        If the sums would need too much memory, or a code is out of range.
    """
    structure = Structure.empty(tuple(names))  # of which `class_log_joint` reads the names only
    missing = codes[:, :-1] == MISSING
    incomplete = np.flatnonzero(missing.any(axis=1))
    # Also checks the shape and the range of all codes but `MISSING`.
    found = class_log_joint(np.where(codes == MISSING, 0, codes), structure, cpts, n_classes)
    if not incomplete.size:
        return found
    rows = codes[incomplete].astype(np.intp)
    rows[:, -1] = MISSING
    log_joint = np.empty((len(rows), n_classes))
    for chosen, plan in _plans(rows, cpts):
        plan.require_room(names)
        step = int(_NUMBERS / max(1.0, plan.order.total)) or 1
        for start in range(0, len(chosen), step):
            part = chosen[start : start + step]
            log_joint[part] = total_log(plan.eliminate(rows[part])[1], (codes.shape[1] - 1,))
    found[incomplete] = log_joint
    return found


def _plans(
    codes: NDArray[np.intp], cpts: Sequence[Cpt]
) -> Iterator[tuple[NDArray[np.intp], EliminationPlan]]:
    """Yield sets of rows and how to compute them: all rows at once, or those with the same missing features.

    At once, the features that are missing in any row are eliminated in every row. That is faster, unless the factors
    become large, or few sets of features are missing.
    """
    planner = Planner(cpts, codes.shape[1])
    hidden = codes == MISSING
    patterns, of_row = np.unique(hidden, axis=0, return_inverse=True)
    kept = [codes.shape[1] - 1]
    together = planner.plan(codes, hidden.any(axis=0), kept)
    if len(patterns) == 1 or together.order.total * len(codes) <= _OVERHEAD * len(patterns):
        yield np.arange(len(codes)), together
        return
    by_pattern = np.argsort(of_row.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(of_row.ravel(), minlength=len(patterns)))
    for pattern, rows in zip(patterns, np.split(by_pattern, ends[:-1]), strict=True):
        yield rows, planner.plan(codes[rows], pattern, kept)
