"""Candidate parent sets: which sets each variable may choose, and their places in eta."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.scores.constraints import Rules
from milpbn.scores.spec import Score

ParentSet = tuple[int, ...]


@dataclass(frozen=True)
class Candidates:
    """Candidate parent sets S_{i,k} of every variable; eta stacks their indicators (P12, section 3).

    Attributes
    ----------
    names : tuple of str, length V
        Variable names, the class last.
    sets : tuple of tuples of parent sets, length V
        For each variable its candidates, each an ascending tuple of variable indices.
    """

    names: tuple[str, ...]
    sets: tuple[tuple[ParentSet, ...], ...]

    @property
    def n_variables(self) -> int:
        """V = N + 1."""
        return len(self.names)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Start of each variable's block in eta, shape (V + 1,)."""
        return np.concatenate([[0], np.cumsum([len(s) for s in self.sets])]).astype(np.int64)

    @property
    def n_sets(self) -> int:
        """P, the length of eta."""
        return int(self.offsets[-1])

    @cached_property
    def variable(self) -> NDArray[np.int64]:
        """Variable of each entry of eta, shape (P,)."""
        return np.repeat(np.arange(self.n_variables), np.diff(self.offsets))

    @cached_property
    def flat(self) -> tuple[ParentSet, ...]:
        """Parent set of each entry of eta, length P."""
        return tuple(s for sets in self.sets for s in sets)

    @cached_property
    def _positions(self) -> list[dict[ParentSet, int]]:
        return [
            {s: int(o) + k for k, s in enumerate(sets)}
            for o, sets in zip(self.offsets, self.sets, strict=False)
        ]

    def position(self, variable: int, parents: ParentSet) -> int | None:
        """Return the index in eta of one variable's parent set, or None if it is no candidate."""
        return self._positions[variable].get(parents)

    @cached_property
    def feature_parent(self) -> NDArray[np.int64] | None:
        """The first feature among each entry's parents or -1, shape (P,); None if features may have two of them."""
        c = self.n_variables - 1
        members = [[j for j in s if j != c] for s in self.flat]
        if any(len(s) > 1 for s in members[: self.offsets[c]]):
            return None
        return np.array([s[0] if s else -1 for s in members], dtype=np.int64)

    @cached_property
    def arcs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(parent, child, entry of eta) of every arc in every candidate, three arrays of equal length."""
        triples = [
            (j, i, p) for p, (i, s) in enumerate(zip(self.variable, self.flat, strict=True)) for j in s
        ]
        table = np.array(triples, dtype=np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    def choice(self, structure: Structure, *, class_free_alike: bool) -> NDArray[np.int64] | None:
        """Return the entry of eta that each variable's parent set has, shape (V,), or None.

        Parameters
        ----------
        structure : Structure
            Over the same variables.
        class_free_alike : bool
            All sets of a feature without the class score the same (see `class_free_alike`): one that is no
            candidate is replaced by a candidate contained in it.
        """
        chosen = np.empty(self.n_variables, dtype=np.int64)
        for i, parents in enumerate(structure.parents):
            place = self.place(i, parents, class_free_alike=class_free_alike)
            if place is None:
                return None
            chosen[i] = place
        return chosen

    def place(self, i: int, parents: ParentSet, *, class_free_alike: bool) -> int | None:
        """Return the entry of eta that gives variable i these parents, or None; the argument is that of `choice`."""
        place = self.position(i, parents)
        c = self.n_variables - 1
        if place is None and class_free_alike and c not in (i, *parents):
            inside = (s for s in self.sets[i] if set(s) <= set(parents))
            return next((self.position(i, s) for s in inside), None)
        return place

    def first_outside(self, structure: Structure, *, class_free_alike: bool) -> int | None:
        """Return the first variable whose parents have no entry of eta (see `choice`), or None."""
        for i, parents in enumerate(structure.parents):
            if self.place(i, parents, class_free_alike=class_free_alike) is None:
                return i
        return None

    def heaviest(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return each variable's entry of largest weight, the first of equal ones, shape (V,); `weights` (P,)."""
        blocks = pairwise(self.offsets.tolist())
        return np.array([a + int(np.argmax(weights[a:b])) for a, b in blocks], dtype=np.int64)

    def structure(self, choice: Sequence[int] | NDArray[np.integer]) -> Structure:
        """Return the structure of one chosen entry of eta per variable.

        Raises
        ------
        InputError
            If the choice has a cycle.
        """
        return Structure(self.names, tuple(self.flat[int(p)] for p in choice))

    def __repr__(self) -> str:
        return f"Candidates({self.n_variables} variables, {self.n_sets} sets)"


def count_candidates(n_features: int, score: Score) -> int:
    """Return the number P of candidate sets without constraints, without listing them."""
    n, k = n_features, min(score.max_parents, n_features)
    feature_sets = sum(comb(n, size) for size in range(k + 1)) if score.class_parents else 1
    with_class = sum(comb(n - 1, size) for size in range(k))
    without = sum(comb(n - 1, size) for size in range(k + 1)) if score.parent_sets == "all" else 1
    return n * (with_class + without) + feature_sets


def build_candidates(names: Sequence[str], score: Score, rules: Rules | None = None) -> Candidates:
    """List every variable's candidate parent sets that obey the rules.

    A feature has {} and the sets that contain the class (P12, section 4), with ``parent_sets='all'`` every set.
    The class has every set of features, or only {} with ``class_parents=False``. Where rules require arcs
    into a feature, its class-free candidate is the smallest class-free set that satisfies them.

    Parameters
    ----------
    names : sequence of str, length V
        Variable names, the class last.
    score : Score
        Reads max_parents, class_parents and parent_sets.
    rules : Rules, optional
        Constraints in indices.

    Returns
    -------
    Candidates
        Possibly with an empty list for a variable that the rules leave nothing.
    """
    rules = rules or Rules()
    c = len(names) - 1
    sets: list[tuple[ParentSet, ...]] = []
    for i in range(c + 1):
        if i in rules.fixed:
            fixed = tuple(sorted(rules.fixed[i]))
            sets.append((fixed,) if rules.admits(i, fixed) else ())
            continue
        must = {j for j, child in rules.required if child == i}
        banned = {j for j, child in rules.forbidden if child == i}
        if must & banned:
            sets.append(())
            continue
        free = [j for j in range(c) if j != i and j not in must and j not in banned]
        base = tuple(sorted(must - {c}))
        if i == c:
            room = (score.max_parents if score.class_parents else 0) - len(must)
            sets.append(tuple(_extend(base, free, room)))
            continue
        own: list[ParentSet] = []
        if c not in must:
            room = score.max_parents - len(must)
            if score.parent_sets == "all":
                own += _extend(base, free, room)
            elif room >= 0:
                own.append(base)
        if c not in banned:
            room = score.max_parents - len(must | {c})
            own += [(*s, c) for s in _extend(base, free, room)]
        sets.append(tuple(own))
    return Candidates(tuple(names), tuple(sets))


def _extend(base: ParentSet, free: Iterable[int], room: int) -> list[ParentSet]:
    """Return `base` united with every subset of `free` of at most `room` members, smallest first."""
    members = list(free)
    sizes = range(min(room, len(members)) + 1)
    return [tuple(sorted((*base, *extra))) for size in sizes for extra in combinations(members, size)]


def class_free_alike(score: Score, rules: Rules) -> bool:
    """Return whether all parent sets of a feature without the class score the same.

    So it is under a margin score alone (P12, footnote 1); local terms and arc weights tell them apart.
    """
    return score.is_margin and not score.has_local_terms and not rules.arc_weights


def require_candidates(candidates: Candidates, score: Score) -> None:
    """Raise InputError if a variable has no candidate although no two constraints contradict each other."""
    for name, sets in zip(candidates.names, candidates.sets, strict=True):
        if not sets:
            raise InputError(
                f"The constraints leave the variable {name!r} no parent set with max_parents = {score.max_parents}"
                f"{'' if score.class_parents else ' and without class parents'}; relax them."
            )
