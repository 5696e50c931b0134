"""The root of a tree search as plain arrays, from which the search goes on in another run; without its pool."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.format import restored_rows
from milpbn.certificate.records import Inequalities
from milpbn.engine.root import Root
from milpbn.util.jsonable import LARGEST_NUMBER
from milpbn.util.saved_arrays import SavedArrays, UnfitError, count, number


def root_state(root: Root) -> dict[str, NDArray[Any]]:
    """Return what `restore_root` takes. The arrays are those of the root, which a tree search does not change."""
    point, state = root.point, root.point.state
    n = int(state.best_vertices)
    return {
        "allowed": root.allowed,
        "bound": number(root.bound),
        "steps": count(root.steps),
        "row_members": root.rows.members,
        "row_limit": root.rows.limit,
        "multipliers": root.multipliers,
        "point_bound": number(state.bound),
        "constant": number(state.constant),
        "temperature": number(state.best_temperature),
        "gradient": point.gradient,
        "vertices": point.best_vertices[:n],
        "shares": point.best_shares[:n],
    }


def restore_root(root: Root, saved: SavedArrays) -> None:
    """Give a root what `root_state` returned: bound, fixed parent sets, multipliers and the best point.

    Raises
    ------
    UnfitError
        If the arrays are not those of a root of this problem.
    """
    candidates, state = root.problem.candidates, root.point.state
    P, V, offsets = candidates.n_sets, candidates.n_variables, candidates.offsets
    allowed = saved.array("allowed", np.bool_, P).copy()
    if not np.logical_or.reduceat(allowed, offsets[:-1]).all():
        raise UnfitError("a variable has no parent sets")
    rows = restored_rows(saved)
    if len(rows.limit) and rows.members.shape[1] != V:
        raise UnfitError("the inequalities are about other variables")
    multipliers = saved.finite("multipliers", np.float64, len(rows.limit), least=0).copy()
    vertices = saved.array("vertices", np.int64, None, V, least=offsets[:-1], below=offsets[1:])
    shares = saved.finite("shares", np.float64, len(vertices), least=0)
    n = len(vertices)
    if n > len(root.point.best_shares):
        raise UnfitError("the point has too many vertices")
    root.bound, root.steps = saved.number("bound", LARGEST_NUMBER), saved.count("steps")
    root.allowed, root.multipliers = allowed, multipliers
    root.rows = Inequalities(rows.members.copy(), rows.limit.copy())
    root.point.best_vertices[:n], root.point.best_shares[:n] = vertices, shares
    root.point.gradient[:] = saved.finite("gradient", np.float64, P)
    state.best_vertices = n
    state.bound, state.constant = saved.number("point_bound"), saved.number("constant")
    state.best_temperature = saved.number("temperature")
    root.subproblem = root.current_subproblem()
    root.weights = root.current_weights()
