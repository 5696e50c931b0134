"""Check that a certificate proves a bound on every structure's score, and that the incumbent scores what it claims.

Everything is computed anew from the data, by code that shares nothing with the search but the definitions of the
candidate parent sets and of the score. For any weights lambda_m in the simplex over {gamma, competing classes},

    b(lambda) = gamma sum_m w_m lambda_{m,0} + max over structures of (linear + sum w_m lambda_{m,c} alpha_{m,c}) @ eta

bounds the score of every structure that the maximum is taken over. A certificate holds such weights for every leaf of
a tree of decisions, whose leaves together hold all structures, and for the parent sets that were deleted on the way,
because no structure of a part with one of them reaches the incumbent. To both it may add multipliers mu >= 0 of
inequalities a_r @ eta >= b_r that every structure obeys: sum_r mu_r (a_r @ eta - b_r) is never negative. So whatever a
file holds, what is accepted here is a bound. Rounding is on the safe side: see `verify_duals.Duals` and
`verify_maxima.branching_bound`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.proof import load_proof
from milpbn.bounds.verify_claim import (
    Claim,
    check_run,
    check_same,
    counted_samples,
    read_claim,
    score_of_structure,
    tolerance,
)
from milpbn.bounds.verify_duals import Duals
from milpbn.bounds.verify_maxima import heaviest, unproved
from milpbn.bounds.verify_space import EDGE, FORESTS, Space, is_empty, left_by, space_of
from milpbn.bounds.verify_tree import Tree
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.result import Gap, Result, is_optimal
from milpbn.scores.candidates import Candidates
from milpbn.scores.conflicts import resolve

#: Bounds that are computed at a time.
BLOCK = 128


@dataclass(frozen=True)
class Verification:
    """What was proved.

    Attributes
    ----------
    objective : float
        Score of the structure, from the data; of a search over a subset of the samples, over that.
    bound : float
        No structure scores more than this.
    samples : int or None
        Samples of the subset; None without one.
    nodes, leaves : int
        Parts of the search space, and those that were not split.
    deletions : int
        Deleted parent sets, counted in every part where they were deleted.
    arcs_in, arcs_out : int
        Listed arcs that every optimum has, and that none has; all of them proved.
    seconds : float
        Wall-clock time of the check.
    """

    objective: float
    bound: float
    nodes: int
    leaves: int
    deletions: int
    arcs_in: int
    arcs_out: int
    seconds: float
    samples: int | None = None

    @property
    def gap(self) -> Gap:
        """All gaps between objective and bound."""
        return Gap.between(self.objective, self.bound)


class _Job(NamedTuple):
    """A bound to check: of a leaf, or of the structures with one of some deleted entries (None at leaves)."""

    node: int
    mask: NDArray[np.bool_]
    edges: frozenset[tuple[int, int]]
    weights: int
    deleted: NDArray[np.int64] | None


def verify(
    result: Result | Mapping[str, Any] | None, certificate: str | os.PathLike[str], data: Dataset
) -> Verification:
    """Check that a certificate proves a result's bound, and that its structure has the score it claims.

    What a result says is checked with it: that its structure is optimal, and the arcs of every optimum.

    Parameters
    ----------
    result : Result, mapping or None
        A result, or its contents as in ``result.json``; None for what the certificate itself claims.
    certificate : path
        File of the option ``certificate`` of the same run.
    data : Dataset
        The training data of that run.

    Returns
    -------
    Verification

    Raises
    ------
    InputError
        In one sentence what is wrong: with the files, or with the claim.
    """
    began = time.monotonic()
    header, arrays = load_proof(os.fspath(certificate))
    values = header if result is None else result.to_dict() if isinstance(result, Result) else result
    claim = read_claim(values, "The certificate" if result is None else "The result")
    own = read_claim(header, "The certificate")
    check_same(claim, own, data)
    rules, candidates = resolve(claim.constraints, data.names, claim.score)
    merged = data.merged
    weights = counted_samples(claim, arrays, merged)
    objective = score_of_structure(claim, candidates, rules, merged, weights)
    tree = Tree(arrays, space_of(candidates), rules)
    duals = Duals(merged, candidates, claim.score, rules, weights)
    check = _Check(claim, objective, tree.space, duals, candidates, partial(is_empty, candidates, rules))
    bound = check.run(tree)
    if claim.optimal and not is_optimal(objective, claim.bound):
        raise InputError("The result calls its structure optimal, which its bound does not prove.")
    _check_arcs(claim, candidates, check)
    check_run(claim, own)
    return Verification(
        objective,
        max(bound, objective),
        len(tree.children) * 2 + 1,
        len(tree.leaves),
        sum(len(entries) for groups in tree.deletions.values() for _, entries in groups),
        len(claim.arcs["in"]),
        len(claim.arcs["out"]),
        time.monotonic() - began,
        claim.samples,
    )


def _check_arcs(claim: Claim, candidates: Candidates, check: _Check) -> None:
    """Refuse arcs that are listed as part of every optimum, or of none, and that the parts left do not decide."""
    place = {name: i for i, name in enumerate(candidates.names)}
    for key, undecided in (("in", check.lacking), ("out", check.having)):
        for parent, child in claim.arcs[key]:
            if parent not in place or child not in place:
                raise InputError(
                    f"The result speaks of the arc {parent} -> {child}, which the data have not."
                )
            if undecided[place[parent], place[child]]:
                every = "every optimum has" if key == "in" else "no optimum has"
                raise InputError(
                    f"The result says that {every} the arc {parent} -> {child}, which the certificate does not prove."
                )


class _Check:
    """The bounds of a tree's leaves and deletions, computed in blocks.

    Attributes
    ----------
    having, lacking : bool arrays, shape (V, V)
        By parent and child, arcs that a structure may have, and may lack, in a leaf whose bound reaches the incumbent.
    """

    def __init__(
        self,
        claim: Claim,
        objective: float,
        space: Space,
        duals: Duals,
        candidates: Candidates,
        is_empty: Callable[[NDArray[np.bool_]], bool],
    ) -> None:
        self.bound, self.objective, self.space, self.duals = claim.bound, objective, space, duals
        self.is_empty, self.optimal = is_empty, claim.optimal
        self._arcs = candidates.arcs if any(claim.arcs.values()) else None
        V = candidates.n_variables
        self.having, self.lacking = np.zeros((2, V, V), dtype=bool)
        self.limit = claim.bound + tolerance(claim.bound)
        self._left_by = lru_cache(maxsize=4096)(partial(left_by, space))

    @cached_property
    def simple(self) -> float:
        """What the tree need not prove, as the bound without any search does so."""
        return self.duals.without_search()

    def run(self, tree: Tree) -> float:
        """Return the bound that the tree proves; raise InputError at the first thing that it does not."""
        largest = -np.inf if tree.leaves else np.inf
        jobs = self._jobs(tree)
        while block := list(islice(jobs, BLOCK)):
            largest = max(largest, self._bound(tree, block))
        proved = float(largest if largest <= self.limit else min(largest, self.simple))
        if not proved <= self.limit:
            raise InputError(
                f"The certificate proves the bound {proved!r} only, not {self.bound!r} as the result claims."
            )
        return proved

    def _jobs(self, tree: Tree) -> Iterator[_Job]:
        """Yield all that is to be bounded, with what each part's decisions and deletions leave."""
        stack: list[tuple[int, NDArray[np.bool_], frozenset[tuple[int, int]]]] = [
            (0, np.ones(len(self.space.variable), dtype=bool), frozenset())
        ]
        while stack:
            node, mask, edges = stack.pop()
            for number, entries in tree.deletions.get(node, ()):
                yield _Job(node, mask.copy(), edges, number, entries)
                mask[entries] = False
            split = tree.children.get(node)
            if split is None:
                if tree.leaves:
                    yield _Job(node, mask, edges, tree.leaves[node], None)
                else:
                    self._note(mask)
                continue
            kind, a, b, inside, outside = split
            stack.append((outside, mask & self._left_by(kind, a, b, False), edges))
            more = edges
            if kind == EDGE and self.space.kind == FORESTS:
                more = edges | {(min(a, b), max(a, b))}
            stack.append((inside, mask & self._left_by(kind, a, b, True), more))

    def _bound(self, tree: Tree, block: list[_Job]) -> float:
        """Return the largest bound of the leaves in a block, and check its deletions."""
        # The last column gets the entries whose coefficients are 0.
        points = np.zeros((len(block), len(self.duals.entries) + 1))
        for row, job in zip(points, block, strict=True):
            entries, values = tree.weights(job.weights)
            with np.errstate(over="ignore"):  # refused below
                np.add.at(row, self.duals.column[entries], values)
        temperatures = tree.temperatures[[job.weights for job in block]]
        constants, gradients = self.duals.at(points[:, :-1], temperatures)
        for x, job in enumerate(block):
            constant, gradient = tree.prices(job.weights)
            constants[x] += constant
            gradients[x] += gradient
        if not (np.isfinite(constants).all() and np.isfinite(gradients).all()):
            raise InputError("The certificate holds weights at points that are too large.")
        V = len(self.space.offsets) - 1
        largest = -np.inf
        for job, constant, gradient in zip(block, constants, gradients, strict=True):
            forced = np.zeros((V, V), dtype=np.int64)
            for a, b in job.edges:
                forced[a + 1, b + 1] = forced[b + 1, a + 1] = 1
            # Of an optimum's proof it is asked too which leaves may hold an optimum.
            exact = job.deleted is not None or self.optimal
            limit = (self.objective if exact else self.limit) - constant
            arguments = (self.space, gradient, job.mask, forced, len(job.edges))
            if job.deleted is not None:
                entry = unproved(*arguments, job.deleted, limit)
                if entry >= 0:
                    raise InputError(
                        f"The certificate deletes the parent set {entry} in part {job.node} of the search space, "
                        "which a better structure may have for all that it proves."
                    )
                continue
            bound = float(constant + heaviest(*arguments, limit))
            if not (bound <= self.limit or self.simple <= self.limit):
                if self.is_empty(job.mask):
                    continue
                raise InputError(
                    f"The certificate proves the bound {bound!r} only in part {job.node} of the search space, "
                    f"not {self.bound!r} as the result claims."
                )
            largest = max(largest, bound)
            if not bound < self.objective:
                self._note(job.mask)
        return largest

    def _note(self, mask: NDArray[np.bool_]) -> None:
        """Take note of the arcs that structures of a part may have, and may lack."""
        if self._arcs is None:
            return
        parent, child, entry = self._arcs
        left = mask[entry]
        counts = np.zeros(self.having.shape, dtype=np.int64)
        np.add.at(counts, (parent[left], child[left]), 1)
        self.having |= counts > 0
        self.lacking |= counts < np.bincount(self.space.variable[mask], minlength=len(counts))
