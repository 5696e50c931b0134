"""Structures whose predictions depend on few features, from structures with more of them."""

from __future__ import annotations

from collections.abc import Sequence

from milpbn.heuristics.information import mutual_information
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates, ParentSet
from milpbn.problem.problem import Problem


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


def with_few_features(problem: Problem, structure: Structure) -> Structure:
    """Return a structure without its least informative features, if predictions depend on too many of them.

    The features lose their place in the order of I(X; C), until `Rules.max_features` are left, or none may go.
    """
    rules, candidates = problem.rules, problem.candidates
    if rules.max_features is None or not rules.too_many_features(structure.parents):
        return structure
    information = mutual_information(problem.data)[-1]
    parents = list(structure.parents)
    for j in sorted(structure.markov_blanket, key=lambda j: information[j]):
        if not rules.too_many_features(parents):
            break
        parents = without_feature(candidates, parents, j) or parents
    return Structure(structure.names, tuple(parents))
