"""The root of a tree search as plain arrays, from which the search goes on in another run; without its pool."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.format import restored_rows
from milpbn.certificate.records import Inequalities
from milpbn.engine.root import Root
from milpbn.util.saved_arrays import SavedArrays, count, number


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
        If the arrays have other shapes than those of a root of this problem, or indices that it does not have.
    """
    candidates, state = root.problem.candidates, root.point.state
    offsets = candidates.offsets
    rows = restored_rows(saved)
    vertices = saved.array(
        "vertices", np.int64, None, candidates.n_variables, least=offsets[:-1], below=offsets[1:]
    )
    n = len(vertices)
    root.bound, root.steps = saved.number("bound"), saved.count("steps")
    root.allowed = saved.array("allowed", np.bool_, candidates.n_sets).copy()
    root.multipliers = saved.array("multipliers", np.float64, len(rows.limit)).copy()
    root.rows = Inequalities(rows.members.copy(), rows.limit.copy())
    root.point.best_vertices[:n] = vertices
    root.point.best_shares[:n] = saved.array("shares", np.float64, n)
    root.point.gradient[:] = saved.array("gradient", np.float64, candidates.n_sets)
    state.best_vertices = n
    state.bound, state.constant = saved.number("point_bound"), saved.number("constant")
    state.best_temperature = saved.number("temperature")
    root.subproblem = root.current_subproblem()
    root.weights = root.current_weights()
