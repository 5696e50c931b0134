"""Candidate parent sets: which sets each variable may choose, and their indices in eta."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, pairwise
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.class_free import has_larger
from milpbn.problem.constraints import Rules
from milpbn.problem.scores.spec import Score
from milpbn.util.budget import Budget
from milpbn.util.graphs import families_with_class
from milpbn.util.plurals import counted

ParentSet = tuple[int, ...]

#: In `Candidates.forest_parent`: a feature has several feature parents.
SEVERAL = -2


@dataclass(frozen=True)
class Candidates:
    """Candidate parent sets S_{i,k} of every variable (section 3 of Peharz & Pernkopf 2012, P12).

    `names` has the V variables, the class last, and `sets` the candidates of each, ascending tuples of variable
    indices. The vector eta has one binary indicator for each parent set, variable by variable; it has length P.
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
        """Variable of each parent set, shape (P,)."""
        return np.repeat(np.arange(self.n_variables), np.diff(self.offsets))

    @cached_property
    def flat(self) -> tuple[ParentSet, ...]:
        """All parent sets in the order of eta, length P."""
        return tuple(s for sets in self.sets for s in sets)

    @cached_property
    def _positions(self) -> list[dict[ParentSet, int]]:
        return [
            {s: int(o) + k for k, s in enumerate(sets)}
            for o, sets in zip(self.offsets, self.sets, strict=False)
        ]

    def position(self, variable: int, parents: ParentSet) -> int | None:
        """Return the index in eta of one variable's parent set, or None if the set is not a candidate."""
        return self._positions[variable].get(parents)

    @cached_property
    def feature_parent(self) -> NDArray[np.int64] | None:
        """The first feature in each parent set, or -1, shape (P,); None if a feature may have two feature parents."""
        known = self.forest_parent
        return None if known is None or SEVERAL in known else known

    @cached_property
    def forest_parent(self) -> NDArray[np.int64] | None:
        """The first feature in each parent set, or -1, shape (P,), and `SEVERAL` for class-free sets of several.

        None if a feature may have two feature parents beside the class.
        """
        c, found = self.n_variables - 1, np.full(self.n_sets, -1, dtype=np.int64)
        for p, s in enumerate(self.flat):
            features = s[:-1] if s and s[-1] == c else s
            if len(features) > 1 and p < self.offsets[c]:
                if features is not s:
                    return None
                found[p] = SEVERAL
            elif features:
                found[p] = features[0]
        return found

    @cached_property
    def arcs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Parent, child and parent set (its index in eta) of every arc in every candidate, three arrays."""
        sizes = np.fromiter(map(len, self.flat), dtype=np.int64, count=self.n_sets)
        parent = np.fromiter(chain.from_iterable(self.flat), dtype=np.int64, count=int(sizes.sum()))
        of = np.repeat(np.arange(self.n_sets), sizes)
        return parent, self.variable[of], of

    @cached_property
    def firsts(self) -> NDArray[np.int64]:
        """Place of the first arc of each parent set in `arcs`, and the number of arcs, shape (P + 1,)."""
        return np.searchsorted(self.arcs[2], np.arange(self.n_sets + 1))

    @cached_property
    def uses(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Feature, variable and parent set (its index in eta) of every feature in a family with the class.

        Three arrays. The family is that of the variable with the parent set, so that the feature is in the Markov
        blanket of the class if the parent set is chosen. The feature may be the variable itself.
        """
        parent, child, of = self.arcs
        c = self.n_variables - 1
        with_class = np.zeros(self.n_sets, dtype=bool)
        with_class[of[parent == c]] = True
        there = with_class[of] | (child == c)
        return np.where(parent == c, child, parent)[there], child[there], of[there]

    def certain_parents(self, allowed: NDArray[np.bool_]) -> list[ParentSet]:
        """Return the parents that each variable has whichever of its allowed candidates, shape (P,), it gets."""
        parent, child, of = self.arcs
        having = np.zeros((self.n_variables, self.n_variables), dtype=np.int64)
        np.add.at(having, (parent[allowed[of]], child[allowed[of]]), 1)
        left = np.bincount(self.variable[allowed], minlength=self.n_variables)
        return [tuple(np.flatnonzero(column).tolist()) for column in ((having == left) & (left > 0)).T]

    def without_more_features(self, allowed: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
        """Return allowed parent sets, shape (P,), without those that put too many features into the Markov blanket.

        If every choice of allowed candidates has the same `most` features in the blanket of the class, sets that would
        add another one are left out. If every choice has more than `most`, no structure is left, and `allowed` is
        returned as it is.
        """
        feature, _, of = self.uses
        while True:
            certain = families_with_class(self.certain_parents(allowed))
            more = of[~np.isin(feature, [*certain])]
            if len(certain) - 1 != most or not allowed[more].any():
                return allowed
            allowed = allowed.copy()
            allowed[more] = False

    def choice(self, structure: Structure) -> NDArray[np.int64] | None:
        """Return the index in eta of each variable's parent set, shape (V,); None if one of them is not a candidate."""
        places = [self.position(i, parents) for i, parents in enumerate(structure.parents)]
        return None if None in places else np.array(places, dtype=np.int64)

    def stand_in(self, i: int, parents: ParentSet) -> ParentSet | None:
        """Return a candidate of variable i that scores no less than a parent set, or None if there is none.

        This is the set itself if it is a candidate. For a feature's set without the class it may be a subset of it.
        Call this only where the smallest class-free set suffices (`milpbn.problem.class_free.smallest_suffices`).
        """
        if self.position(i, parents) is not None:
            return parents
        if self.n_variables - 1 in (i, *parents):
            return None
        return next((s for s in self.sets[i] if set(s) <= set(parents)), None)

    def best_inside(self, i: int, parents: ParentSet, weights: NDArray[np.float64]) -> ParentSet:
        """Return the heaviest candidate of variable i that is a subset of some parents, for weights (P,).

        It is the parents themselves if they are a candidate, or if no candidate is a subset of them.
        """
        if self.position(i, parents) is not None:
            return parents
        heavy = weights[self.offsets[i] : self.offsets[i + 1]].tolist()
        inside = [(w, s) for w, s in zip(heavy, self.sets[i], strict=True) if set(s).issubset(parents)]
        return max(inside, default=(0.0, parents))[1]

    def heaviest(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the index of each variable's parent set of largest weight, the first of a tie, for weights (P,)."""
        blocks = pairwise(self.offsets.tolist())
        return np.array([a + int(np.argmax(weights[a:b])) for a, b in blocks], dtype=np.int64)

    def structure(self, choice: Sequence[int] | NDArray[np.integer]) -> Structure:
        """Return the structure of one chosen parent set (its index in eta) per variable; InputError for a cycle."""
        return Structure(self.names, tuple(self.flat[int(p)] for p in choice))

    def __repr__(self) -> str:
        return f"Candidates({counted(self.n_variables, 'variable')}, {counted(self.n_sets, 'set')})"


class Admitted(NamedTuple):
    """The parent sets that rules and options admit for one variable.

    They are the `required` features with further ones of the `free` features, both ascending, and with the class or
    without it. `without_class` and `with_class` are the most free features in a set without and with the class; -1 if
    there is no such set.
    """

    required: ParentSet
    free: ParentSet
    without_class: int
    with_class: int

    def contains(self, parents: Sequence[int], c: int) -> bool:
        """Return whether an ascending parent set is one of them; `c` is the index of the class."""
        features = {j for j in parents if j != c}
        further = features - {*self.required}
        room = self.with_class if c in parents else self.without_class
        known = features.issuperset(self.required) and further.issubset(self.free)
        return known and len(further) <= room and tuple(sorted({*parents})) == tuple(parents)

    def count(self, size: int) -> int:
        """Return how many have at most `size` members, or no free feature."""
        n = len(self.free)
        return sum(comb(n, k) for room in self._rooms(size) for k in range(min(room, n) + 1))

    def sets(self, c: int, size: int) -> list[ParentSet]:
        """Return those with at most `size` members or no free feature: without the class first, then by size."""
        without, with_class = self._rooms(size)
        own = _extend(self.required, self.free, without)
        return own + [(*s, c) for s in _extend(self.required, self.free, with_class)]

    def up_to(self, size: int) -> Admitted:
        """Return those with at most `size` members or no free feature."""
        without, with_class = self._rooms(size)
        return self._replace(without_class=without, with_class=with_class)

    def largest(self, states: Sequence[int]) -> list[ParentSet]:
        """Return the set without the class that has most joint states, and that with the class, if there are any.

        `states` has the number of states of every variable, the class last.
        """
        c = len(states) - 1
        free = sorted(self.free, key=lambda j: states[j], reverse=True)
        own = [self.required + tuple(free[: self.without_class])] if self.without_class >= 0 else []
        return own + ([(*self.required, *free[: self.with_class], c)] if self.with_class >= 0 else [])

    @property
    def largest_size(self) -> int:
        """The number of members of the largest set; -1 without any."""
        sizes = (self.without_class, 0), (self.with_class, 1)
        return max(len(self.required) + min(r, len(self.free)) + own if r >= 0 else -1 for r, own in sizes)

    def _rooms(self, size: int) -> tuple[int, int]:
        size -= len(self.required)
        return min(self.without_class, max(0, size)), min(self.with_class, max(0, size - 1))


def admitted_sets(n_features: int, score: Score, rules: Rules) -> list[Admitted]:
    """Return for every variable, the class last, which parent sets its rules and options admit.

    The candidates of a feature are all sets that contain the class, and {} (P12, section 4) or all sets without the
    class (`milpbn.problem.class_free.has_larger`). The candidates of the class are all sets of features, or only {}
    with ``class_parents=False``. If rules require arcs into a feature, the smallest class-free set that satisfies them
    takes the place of {}. No set has more than `max_parents` members.
    """
    c = n_features
    larger = has_larger(score, rules)
    into: tuple[dict[int, set[int]], dict[int, set[int]]] = {}, {}
    for arcs, parents in zip((rules.required, rules.forbidden), into, strict=True):
        for j, i in arcs:
            parents.setdefault(i, set()).add(j)
    out = []
    for i in range(c + 1):
        must, banned = (parents.get(i, set()) for parents in into)
        required = tuple(sorted(must - {c}))
        if i in rules.fixed:
            fixed = rules.fixed[i]
            fits = 0 if rules.admits(i, fixed) else -1
            without, with_class = (-1, fits) if c in fixed else (fits, -1)
            out.append(Admitted(tuple(sorted(fixed - {c})), (), without, with_class))
            continue
        if must & banned:
            out.append(Admitted(required, (), -1, -1))
            continue
        free = tuple(j for j in range(c) if j != i and j not in must and j not in banned)
        if i == c:
            room = (score.max_parents if score.class_parents else 0) - len(must)
            out.append(Admitted(required, free, max(-1, room), -1))
            continue
        without = with_class = -1
        if c not in must:
            room = score.max_parents - len(must)
            without = room if larger else min(room, 0)
        if c not in banned:
            with_class = score.max_parents - len(must | {c})
        out.append(Admitted(required, free, max(-1, without), max(-1, with_class)))
    return out


def count_candidates(n_features: int, score: Score, rules: Rules | None = None) -> int:
    """Return the number P of candidate sets that `build_candidates` would list, without listing them.

    A variable with a fixed parent set counts as one, even if the rules do not admit that set.
    """
    rules = rules or Rules()
    return sum(
        1 if i in rules.fixed else own.count(n_features)
        for i, own in enumerate(admitted_sets(n_features, score, rules))
    )


def build_candidates(names: Sequence[str], score: Score, rules: Rules | None = None) -> Candidates:
    """List every variable's candidate parent sets that obey the rules (see `admitted_sets`); a list may be empty."""
    return list_candidates(names, admitted_sets(len(names) - 1, score, rules or Rules()))


def list_candidates(
    names: Sequence[str], admitted: Sequence[Admitted], budget: Budget | None = None
) -> Candidates:
    """List the parent sets that rules and options admit; NoIncumbentError if the budget is used up."""
    budget = budget or Budget()
    c, sets = len(names) - 1, []
    for own in admitted:
        budget.check("parent sets were listed", "parent sets")
        sets.append(tuple(own.sets(c, c + 1)))
    return Candidates(tuple(names), tuple(sets))


def _extend(base: ParentSet, free: Iterable[int], room: int) -> list[ParentSet]:
    """Return the union of `base` with every subset of `free` of at most `room` members, smallest first."""
    members = list(free)
    sizes = range(min(room, len(members)) + 1)
    return [tuple(sorted((*base, *extra))) for size in sizes for extra in combinations(members, size)]


def require_candidates(candidates: Candidates, score: Score) -> None:
    """Raise InputError if a variable has no candidate parent set."""
    for name, sets in zip(candidates.names, candidates.sets, strict=True):
        if not sets:
            raise InputError(
                f"The constraints leave the variable {name!r} no parent set with {score.limits}; relax them."
            )
