"""Check a proof by multipliers (`milpbn.certificate.multiplier_proof`) with rounding on the safe side.

Every parent set has a term that is at least its exact one. The cost of a set is the largest term of its variable minus
its own term. So a bound on scores is the sum of these largest terms minus a bound on costs, and all numbers that are
added are at least 0. With U = 2^-53, the relative error of a sum of n such numbers is at most (n - 1) U in any order.

If a result lists several structures, the tree proves a bound on all others: a leaf may hold one that is listed. The
listed ones have to be within the bound on all structures by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.format import kept_candidates
from milpbn.certificate.verify.alternatives import Listed, key_of
from milpbn.certificate.verify.claim import Claim
from milpbn.certificate.verify.duals import local_terms
from milpbn.certificate.verify.order import MemberSets
from milpbn.certificate.verify.paths import obeys_paths
from milpbn.certificate.verify.rows import read_rows
from milpbn.certificate.verify.space import ARC, PARENT_SET
from milpbn.certificate.verify.tree import MOST
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.rounding import EPS, score_error
from milpbn.util.memory import require_memory
from milpbn.util.saved_arrays import SavedArrays, UnfitError

#: The kind of the decision that a comes before b, as certificates write it.
ORDER = 4
#: Largest multiplier: beyond those of the largest terms, and sums of its products with 64-bit integers are finite.
LARGEST_MULTIPLIER = 1e120
#: Entries of rows that are kept; 16 bytes each.
MOST_ENTRIES = 20_000_000
#: So many pairs of a searched set and another one are compared at once; 5 bytes each.
PAIRS_AT_ONCE = 5_000_000
U = EPS / 2
_NONE = np.zeros(0, dtype=np.int32)


class ProvedSets(NamedTuple):
    """What a proof by multipliers has shown: numbers of nodes, of leaves, and of sets that steps removed."""

    nodes: int
    leaves: int
    removed: int


def prove(
    candidates: Candidates,
    terms: NDArray[np.float64],
    rules: Rules,
    arrays: Mapping[str, NDArray[Any]],
    bound: float,
    listed: Collection[bytes] | None = None,
) -> ProvedSets:
    """Check that no acyclic structure that obeys the rules has a sum of terms above a bound, but for listed ones.

    `terms`, shape (P,), are at least the exact ones. The bound is -inf if there are no others than the `listed`
    structures (`key_of`); None without a list. Raises InputError if the arrays are damaged, or prove less.
    """
    V, P = candidates.n_variables, candidates.n_sets
    require_memory(4 * V * P, "checking the certificate", "take a machine with more of it")
    try:
        saved = SavedArrays(dict(arrays))
        tree, searched = _StepTree(saved, candidates, rules), _places(saved, candidates)
    except UnfitError as error:
        raise InputError(f"The certificate is damaged: {error}.") from None
    if (listed is not None or rules.ancestors) and not searched.all():
        raise InputError(
            "The certificate leaves out parent sets, which a list, or a constraint on ancestors, needs all of."
        )
    return _Walk(tree, *_searched(candidates, terms, searched), bound, listed or ()).run()


def prove_listed(
    candidates: Candidates,
    terms: NDArray[np.float64],
    rules: Rules,
    arrays: Mapping[str, NDArray[Any]],
    bound: float,
    listed: Listed | None,
) -> ProvedSets:
    """Check a bound on all structures, and that of a list on all others, if there is one; see `prove`."""
    if listed is None:
        return prove(candidates, terms, rules, arrays, bound)
    highest = max(math.fsum(terms[np.frombuffer(key, dtype=np.int64)]) for key in listed.choices)
    if highest + EPS * abs(highest) > bound:
        raise InputError(
            f"A structure of the list may score {highest!r}, which is above the bound {bound!r}."
        )
    return prove(candidates, terms, rules, arrays, min(bound, listed.bound), listed.choices)


def prove_decomposable(
    claim: Claim,
    data: Dataset,
    candidates: Candidates,
    rules: Rules,
    arrays: Mapping[str, NDArray[Any]],
    listed: Listed | None,
) -> tuple[ProvedSets, float]:
    """Check the bounds that a result claims; return what the proof holds, and the largest error of a structure's score.

    Raises InputError if a bound is not proved, or the result has lists that such a proof is not about.
    """
    score, result = claim.result.score, claim.result
    if result.proved is not None:
        raise InputError(
            f"A certificate of the score {score.name} proves nothing about the arcs of all optima, which the result "
            "lists."
        )
    terms, errors = local_terms(data, candidates, score, rules)
    upper = terms + errors
    upper += EPS * np.abs(upper)
    found = prove_listed(candidates, upper, rules, arrays, claim.bound, listed)
    return found, score_error(data, score.prior, 0.0, errors, candidates.offsets)


def _places(saved: SavedArrays, candidates: Candidates) -> NDArray[np.bool_]:
    """Return which candidates were searched, shape (P,); all, if the file does not say it. Raises UnfitError."""
    if "searched_variable" not in saved:
        return np.ones(candidates.n_sets, dtype=bool)
    sets = kept_candidates(saved, candidates.names, "searched")
    searched = np.zeros(candidates.n_sets, dtype=bool)
    for i, s in zip(sets.variable.tolist(), sets.flat, strict=True):
        place = candidates.position(i, s)
        if place is None:
            raise UnfitError("it has a parent set that is no candidate")
        searched[place] = True
    return searched


def _searched(
    candidates: Candidates, terms: NDArray[np.float64], searched: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], MemberSets, NDArray[np.float64]]:
    """Return numbers and members of the sets of the search, and terms that are at least those that they stand for.

    A structure with a set that was not searched stays acyclic, and within the limits, if a subset takes its place.
    """
    is_parent = np.zeros((candidates.n_sets, candidates.n_variables), dtype=bool)
    parent, _, of = candidates.arcs
    is_parent[of, parent] = True
    raised = terms.copy()
    for begin, end in pairwise(candidates.offsets.tolist()):
        own = begin + np.flatnonzero(searched[begin:end])
        rest = begin + np.flatnonzero(~searched[begin:end])
        own = own[np.argsort(-terms[own], kind="stable")]
        inside = is_parent[own].astype(np.float32)
        at_once = max(1, PAIRS_AT_ONCE // max(1, len(own)))
        for first in range(0, len(rest), at_once):
            some = rest[first : first + at_once]
            subset = inside @ ~is_parent[some].T == 0  # no member of the one is outside of the other
            if not subset.any(axis=0).all():
                raise InputError(
                    "The certificate leaves out a parent set of which no subset was searched, and so proves nothing."
                )
            # Of the subsets, the first one has the largest term.
            np.maximum.at(raised, own[subset.argmax(axis=0)], terms[some])
    return (
        np.flatnonzero(searched),
        MemberSets(candidates.variable[searched], is_parent[searched]),
        raised[searched],
    )


class _StepTree:
    """A certificate's arrays after checking: rows, decisions and steps. Raises UnfitError if they do not fit together.

    `children` has (kind, a, b, first, second) of every branched node, `steps` its steps in their order: numbers of
    rows, and their multipliers. `owner` has the variable of every candidate.
    """

    def __init__(self, saved: SavedArrays, candidates: Candidates, rules: Rules) -> None:
        V, self.owner, self.rules = candidates.n_variables, candidates.variable, rules
        self.rows = read_rows(saved, V, rules)
        branches = saved.array("branches", np.int32, None, 6).tolist()
        nodes = saved.array("step_node", np.int32, None).tolist()
        sizes = saved.array("multipliers_size", np.int64, len(nodes), below=MOST)
        numbers = saved.array("multiplier_row", np.int32, int(sizes.sum()), below=len(self.rows))
        multipliers = saved.array("multiplier", np.float64, len(numbers))
        if not ((multipliers >= 0) & (multipliers <= LARGEST_MULTIPLIER)).all():
            raise UnfitError("a multiplier is negative or too large")
        self.children = {node: tuple(branch) for node, *branch in branches}
        self.steps: dict[int, list[tuple[NDArray[np.int32], NDArray[np.float64]]]] = {}
        ends = np.cumsum(sizes)[:-1]
        for node, *step in zip(nodes, np.split(numbers, ends), np.split(multipliers, ends), strict=False):
            self.steps.setdefault(node, []).append((step[0], step[1]))
        self._check(len(branches), V)

    def _check(self, n_branches: int, V: int) -> None:
        seen = [0, *(child for branch in self.children.values() for child in branch[3:])]
        if len(self.children) < n_branches or len({*seen}) < len(seen):
            raise UnfitError("it has a node twice")
        if not {*seen}.issuperset((*self.children, *self.steps)):
            raise UnfitError("it never reaches a node")
        for kind, a, b, *_ in self.children.values():
            of_arc = kind in (ARC, ORDER) and a != b and 0 <= a < V and 0 <= b < V
            if not (of_arc or (kind == PARENT_SET and 0 <= a < len(self.owner))):
                raise UnfitError("it has an unknown decision")


class _Walk:
    """The walk through a tree: every leaf has to have no parent sets left, or a bound on costs that suffices.

    `terms`, shape (K,), are those of the `sets`, whose numbers as candidates are `number`. A leaf may also hold one
    structure only, which is `listed` or breaks a constraint on paths. From the cost `least` on, a structure does not
    exceed the claimed bound, or there is none.
    """

    def __init__(
        self,
        tree: _StepTree,
        number: NDArray[np.int64],
        sets: MemberSets,
        terms: NDArray[np.float64],
        bound: float,
        listed: Collection[bytes],
    ) -> None:
        starts = np.flatnonzero(np.diff(sets.variable, prepend=-1))
        largest = np.maximum.reduceat(terms, starts)
        costs = largest[sets.variable] - terms
        best, most = math.fsum(largest), math.fsum(np.maximum.reduceat(costs, starts))
        self._tree, self._best, self._bound, self._listed = tree, best, bound, listed
        self._least = min(
            best - bound + 4 * U * (abs(best) + abs(bound)), np.nextafter(most * (1 + 4 * U), np.inf)
        )
        self._removed = 0
        self._take(number, sets, costs)

    def _take(self, number: NDArray[np.int64], sets: MemberSets, costs: NDArray[np.float64]) -> None:
        self._number, self._sets, self._costs = number, sets, costs
        self._entries: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        self._n_entries = 0

    def run(self) -> ProvedSets:
        """Check all nodes; raise InputError at the first leaf that is not proved."""
        tree, V = self._tree, self._sets.n_variables
        allowed, before = np.ones(len(self._costs), dtype=bool), np.zeros((V, V), dtype=bool)
        for a, d in tree.rules.ancestors:
            self._decide(allowed, before, ORDER, a, d, True)
        leaves = 0
        reached, done = self._apply(0, allowed, before)
        # Few sets are left below the root.
        sets = self._sets
        kept = MemberSets(sets.variable[allowed], sets.is_parent[allowed])
        self._take(self._number[allowed], kept, self._costs[allowed])
        stack = [(0, np.ones(len(self._costs), dtype=bool), before, reached, done)]
        while stack:
            node, allowed, before, reached, done = stack.pop()
            branch = tree.children.get(node)
            if done or branch is None:
                leaves += 1
                if not done and not self._settled(allowed):
                    raise InputError(
                        f"The certificate only proves the bound {self._best - reached!r} at node {node}, not "
                        f"{self._bound!r} as the result claims."
                    )
                continue
            kind, a, b, *children = branch
            for child, first in zip(children, (True, False), strict=True):
                own, order = allowed.copy(), before.copy()
                self._decide(own, order, kind, a, b, first)
                found, closed = self._apply(child, own, order)
                stack.append((child, own, order, max(reached, found), closed))
        return ProvedSets(2 * len(tree.children) + 1, leaves, self._removed)

    def _settled(self, allowed: NDArray[np.bool_]) -> bool:
        """Whether a node holds one acyclic structure only, which is listed or breaks a constraint on paths."""
        only = np.flatnonzero(allowed)
        if len(only) > self._sets.n_variables:
            return False
        parents = [np.flatnonzero(own).tolist() for own in self._sets.is_parent[only]]
        rules = self._tree.rules
        broken = rules.too_many_features(parents) or not obeys_paths(rules, parents)
        return broken or key_of(self._number[only]) in self._listed

    def _decide(
        self, allowed: NDArray[np.bool_], before: NDArray[np.bool_], kind: int, a: int, b: int, first: bool
    ) -> None:
        """Leave the structures for which a decision is true, or (not `first`) those for which it is false."""
        if kind == ORDER:
            # The diagonal has an entry if the decision contradicts what is known already.
            a, b = (a, b) if first else (b, a)
            before |= (before[:, a] | (np.arange(len(before)) == a))[:, None] & (
                before[b] | (np.arange(len(before)) == b)
            )
        elif kind == ARC:
            allowed &= (self._sets.variable != b) | (self._sets.is_parent[:, a] == first)
        else:
            allowed &= (self._sets.variable != self._tree.owner[a]) | ((self._number == a) == first)

    def _apply(self, node: int, allowed: NDArray[np.bool_], before: NDArray[np.bool_]) -> tuple[float, bool]:
        """Take the steps of a node; return its best bound on costs, and whether the node is proved."""
        reached = -np.inf
        for step in [(_NONE, np.zeros(0)), *self._tree.steps.get(node, ())]:
            if before.diagonal().any() or not self._sets.close(allowed, before):
                return reached, True
            cost, with_set = self._bounds(allowed, *step)
            reached = max(reached, cost)
            if cost >= self._least:
                return reached, True
            gone = allowed & (with_set >= self._least)
            self._removed += int(gone.sum())
            allowed &= ~gone
        return reached, not self._sets.close(allowed, before)

    def _bounds(
        self, allowed: NDArray[np.bool_], rows: NDArray[np.int32], multipliers: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return a lower bound on the costs of allowed structures, and on those with each set, shape (K,).

        Every reduced cost is a sum of at most k + 1 terms, k the number of rows, each with an error of at most 2 U.
        """
        own = [self._terms(r) for r in rows.tolist()]
        places = np.concatenate([_NONE, *(sets for sets, _ in own)])
        weights = np.concatenate([[], *(y * a for y, (_, a) in zip(multipliers, own, strict=True))])
        reduced = self._costs + np.bincount(places, weights, len(self._costs))
        right = math.fsum(y * self._tree.rows[r].right for r, y in zip(rows, multipliers, strict=True))
        error = (len(rows) + 6) * U
        variable = self._sets.variable
        least = np.minimum.reduceat(reduced[allowed], np.flatnonzero(np.diff(variable[allowed], prepend=-1)))
        cost = math.fsum(least) * (1 - error) - right * (1 + 4 * U)
        with_set = cost + (reduced * (1 - error) - least[variable] * (1 + error)) - error * abs(cost)
        return cost, with_set

    def _terms(self, r: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the sets in an inequality and their terms, which are kept while there is room."""
        if r not in self._entries:
            if self._n_entries > MOST_ENTRIES:
                self._take(self._number, self._sets, self._costs)
            self._entries[r] = self._tree.rows[r].terms(self._sets)
            self._n_entries += len(self._entries[r][0])
        return self._entries[r]
