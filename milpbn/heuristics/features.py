"""Structures whose predictions depend on fewer features."""

from __future__ import annotations

from collections.abc import Sequence

from milpbn.problem.candidates import Candidates, ParentSet


def without_feature(
    candidates: Candidates, parents: Sequence[ParentSet], feature: int
) -> list[ParentSet] | None:
    """Return the parents of all variables, with a feature out of the families with the class.

    It loses the class as a parent, and its arcs in these families. None if the candidates do not permit that.
    """
    c, out = candidates.n_variables - 1, list(parents)
    for i, own in enumerate(parents):
        if i == feature and c in own:
            own = next((s for s in candidates.sets[i] if c not in s and {*s} <= {*own}), own)
            if c in own:
                return None
        elif feature in own and (i == c or c in own):
            own = tuple(j for j in own if j != feature)
            if candidates.position(i, own) is None:
                return None
        out[i] = own
    return out
