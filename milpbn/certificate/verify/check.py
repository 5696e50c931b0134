"""Check that a certificate proves a bound on every structure's score, and that the incumbent has its claimed score.

Everything is computed again from the data, by code that shares only the definitions of the candidate parent sets and
of the score with the search. For any dual weights lambda_m in the simplex over {gamma, competing classes},

    b(lambda) = gamma sum_m w_m lambda_{m,0} + max over structures of (linear + sum w_m lambda_{m,c} alpha_{m,c}) @ eta

bounds the score of every structure over which the maximum is taken. A certificate holds a tree of branching decisions,
whose leaves together contain all structures, and dual weights for every leaf. A leaf with a single structure is bounded
by the score of this structure as well. The certificate also holds dual weights for the reduced-cost fixings: they
remove parent sets from a node because no structure of the node with one of them reaches the incumbent. Both may come
with multipliers mu >= 0 of inequalities a_r @ eta >= b_r that every structure obeys, because
sum_r mu_r (a_r @ eta - b_r) is never negative. If a result lists the K best structures, fixings remove only what scores
less than the last of them, and the bound on all others is that of the leaves which hold anything but one listed
structure (`milpbn.certificate.verify.alternatives`). Every file that is accepted here therefore proves its bound.
Decomposable scores have proofs of another kind (`milpbn.certificate.verify.multipliers`).
Rounding is on the safe side: see `milpbn.problem.rounding` and `milpbn.certificate.verify.maxima.branching_bound`.
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

from milpbn.certificate.format import arrays_on_all, load_proof
from milpbn.certificate.verify.alternatives import Listed, read_listed
from milpbn.certificate.verify.claim import (
    DECOMPOSABLE,
    Claim,
    check_rest,
    check_same,
    counted_samples,
    read_claim,
    score_of_structure,
    searched_sets,
)
from milpbn.certificate.verify.duals import ClaimedDuals
from milpbn.certificate.verify.maxima import heaviest, unproved
from milpbn.certificate.verify.multipliers import prove_decomposable
from milpbn.certificate.verify.space import EDGE, FORESTS, bound_of_only, left_by, space_of
from milpbn.certificate.verify.tree import ProofTree
from milpbn.claims.result import Gap, Result
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.counts import require_units
from milpbn.problem.forecast import TABLES, tables_bytes
from milpbn.problem.rescore import rescored
from milpbn.problem.scores.spec import Score
from milpbn.util.memory import require_memory

#: Number of bounds that are computed together.
BLOCK = 128


@dataclass(frozen=True)
class Verification:
    """The facts that a certificate proves."""

    #: Score of the structure, computed from the data; over the subset, if a subset of the samples was searched.
    objective: float
    #: Upper bound on every structure's score.
    bound: float
    #: Number of nodes of the tree, and of nodes without children.
    nodes: int
    leaves: int
    #: Number of parent sets that reduced-cost fixing removed, counted at every node that removes them.
    deletions: int
    #: Number of listed arcs that every optimum has, and that no optimum has. All of them are proved.
    arcs_in: int
    arcs_out: int
    seconds: float
    #: Number of samples of the subset; None without one.
    samples: int | None = None
    #: Score of the structure and upper bound over all samples, where a result of a subset claims such a bound.
    on_all: tuple[float, float] | None = None
    #: Number of parent sets over which the bound holds, and of all; None if it holds over all.
    kept: int | None = None
    total: int | None = None
    #: Number of structures in the list of the K best; None without one.
    listed: int | None = None
    #: Upper bound on every structure's score that is not listed; -inf if there are no others. None without a list,
    #: and for a list without a bound.
    others: float | None = None
    #: The structures that bound and optimum are about (`milpbn.problem.class_free.among`); empty if all are meant.
    among: str = ""

    @property
    def gap(self) -> Gap:
        """Absolute and relative gap between objective and bound."""
        return Gap.between(self.objective, self.bound)


class _BoundCheck(NamedTuple):
    """A bound to check: of a leaf, or of the structures that a reduced-cost fixing excludes."""

    node: int
    #: Parent sets that the node's structures may have, shape (P,).
    mask: NDArray[np.bool_]
    #: Edges that the node's structures must have.
    edges: frozenset[tuple[int, int]]
    #: Number of the dual weights in the certificate.
    weights: int
    #: Parent sets that the fixing removes; None for a leaf.
    fixed: NDArray[np.int64] | None


def verify(
    result: Result | Mapping[str, Any] | None, certificate: str | os.PathLike[str], data: Dataset
) -> Verification:
    """Check that a certificate proves a result's bound, and that the result's structure has the claimed score.

    The result's other claims are checked, too: that its structure is optimal, and which arcs all or no optima have.

    Parameters
    ----------
    result : Result, mapping or None
        A result, or its contents as in ``result.json``; None checks the claims in the certificate's own header.
    certificate : path
        File that the option ``certificate`` of the same run wrote.
    data : Dataset
        The training data of that run.

    Returns
    -------
    Verification

    Raises
    ------
    InputError
        If a file cannot be read, or a claim is not proved; the message is one sentence.
    """
    began = time.monotonic()
    header, arrays = load_proof(os.fspath(certificate))
    values: object = header if result is None else result.to_dict() if isinstance(result, Result) else result
    claim = read_claim(values, "The certificate" if result is None else "The result")
    header_claim = read_claim(header, "The certificate")
    check_same(claim, header_claim, data)
    claimed, score = claim.result, claim.result.score
    rules, candidates = searched_sets(claim, arrays, data)
    require_units(data, score.kind.unit)
    merged = data.merged
    weights = counted_samples(claim, arrays, merged)
    objective, error = score_of_structure(claim, candidates, rules, merged, weights)
    if score.name in DECOMPOSABLE:
        listed = read_listed(claimed, candidates, rules, merged)
        sets, most = prove_decomposable(claim, merged, candidates, rules, arrays, listed)
        check_rest(claim, header_claim, merged, weights, error, most)
        seconds = time.monotonic() - began
        return Verification(objective, claim.bound, *sets, 0, 0, seconds, **_scope(claimed) | listing(listed))
    require_memory(tables_bytes(merged, candidates, score), TABLES, "take a machine with more of it")
    tree, duals, only = _parts(arrays, merged, candidates, rules, score, weights)
    # The incumbent scores at least objective - error; structures that a fixing excludes must score less.
    best, known = objective, objective - error
    if header_claim.objective > claim.objective:
        # The certificate is newer than the result, and so is the incumbent of its fixings.
        best, error_of_best = score_of_structure(header_claim, candidates, rules, merged, weights)
        known = max(known, best - error_of_best)
    listed = read_listed(claimed, candidates, rules, merged)
    check = _Check(claim, known, tree, duals, candidates, only, listed)
    bound = check.run()
    _check_arcs(claim, candidates, check)
    check_rest(claim, header_claim, merged, weights, error, duals.score_error())
    on_all = _prove_on_all(claim, arrays, merged, candidates, rules)
    return Verification(
        objective,
        max(bound, objective, best),
        len(tree.children) * 2 + 1,
        len(tree.leaves),
        sum(len(parent_sets) for fixings in tree.fixings.values() for _, parent_sets in fixings),
        len(claim.arcs.inside),
        len(claim.arcs.outside),
        time.monotonic() - began,
        claim.samples,
        on_all,
        **_scope(claimed),
        **listing(listed),
    )


def _parts(
    arrays: Mapping[str, NDArray[Any]],
    data: Dataset,
    candidates: Candidates,
    rules: Rules,
    score: Score,
    weights: NDArray[np.float64] | None,
) -> tuple[ProofTree, ClaimedDuals, Callable[[NDArray[np.bool_]], float]]:
    """Return the tree of a proof, its duals over samples with these weights, and the bound of a single structure."""

    def highest(structure: Structure) -> float:
        value, error = rescored(data, structure, score, rules, weights)
        return value + error

    duals = ClaimedDuals(data, candidates, score, rules, weights)
    only = partial(bound_of_only, candidates, rules, highest)
    return ProofTree(arrays, space_of(candidates), rules), duals, only


def _prove_on_all(
    claim: Claim, arrays: Mapping[str, NDArray[Any]], data: Dataset, candidates: Candidates, rules: Rules
) -> tuple[float, float] | None:
    """Return score and proved bound over all samples of a result of a subset; None if it claims no such bound.

    Raises InputError if the certificate does not prove the claimed bound.
    """
    result = claim.result
    if claim.samples is None or result.bound is None or result.objective is None:
        return None
    whole = claim._replace(objective=result.objective, bound=result.bound)
    tree, duals, only = _parts(arrays_on_all(arrays), data, candidates, rules, result.score, None)
    # Fixings remove what scores less than the bound: the search may have known better structures than the claimed one.
    bound = _Check(whole, result.bound, tree, duals, candidates, only, None).run()
    structure = Structure.from_mapping(data.names, claim.structure.to_mapping())
    objective, _ = rescored(data, structure, result.score, rules)
    return objective, max(bound, result.bound if tree.fixings else objective)


def listing(listed: Listed | None) -> dict[str, Any]:
    """Return what is proved of a list."""
    if listed is None:
        return {}
    return {"listed": len(listed.choices), "others": None if listed.bound == np.inf else listed.bound}


def _scope(result: Result) -> dict[str, Any]:
    """Return over which structures the bound of a result holds."""
    screened = result.screened
    counts = {} if screened is None else {"kept": screened.n_kept, "total": screened.total}
    return {**counts, "among": result.among}


def _check_arcs(claim: Claim, candidates: Candidates, check: _Check) -> None:
    """Raise InputError if an arc is listed as part of all or of no optima, and the tree does not prove it."""
    place = {name: i for i, name in enumerate(candidates.names)}
    for every, arcs, undecided in (
        ("every optimum has", claim.arcs.inside, check.lacking),
        ("no optimum has", claim.arcs.outside, check.having),
    ):
        for parent, child in arcs:
            if parent not in place or child not in place:
                raise InputError(
                    f"The result lists the arc {parent} -> {child} between variables that the data do not have."
                )
            if undecided[place[parent], place[child]]:
                raise InputError(
                    f"The result says that {every} the arc {parent} -> {child}, which the certificate does not prove."
                )


class _Check:
    """The bounds of a tree's leaves and reduced-cost fixings, computed in blocks."""

    def __init__(
        self,
        claim: Claim,
        objective: float,
        tree: ProofTree,
        duals: ClaimedDuals,
        candidates: Candidates,
        bound_of_only: Callable[[NDArray[np.bool_]], float],
        listed: Listed | None,
    ) -> None:
        # Bounds are compared without a tolerance, because the search adds the verifier's rounding errors to its bound.
        self.bound, self.objective, self.tree, self.duals = claim.bound, objective, tree, duals
        self.space, self.bound_of_only, self.listed = tree.space, bound_of_only, listed
        # Reduced-cost fixing leaves out structures that score less than this.
        self.cutoff = objective if listed is None else min(objective, listed.cutoff)
        self.candidates, self.most_features = candidates, claim.result.constraints.max_features
        self._arcs = candidates.arcs if claim.arcs.inside or claim.arcs.outside else None
        #: Whether it matters which leaves' bounds reach the incumbent: for claims about optima and their arcs.
        self.exact = claim.optimal or self._arcs is not None or listed is not None
        V = candidates.n_variables
        #: By parent and child: arcs that structures may have, and may lack, in leaves that reach the incumbent.
        self.having, self.lacking = np.zeros((2, V, V), dtype=bool)
        self._left_by = lru_cache(maxsize=4096)(partial(left_by, tree.space))

    @cached_property
    def without_search(self) -> float:
        """The bound without search, which needs no tree as its proof."""
        return self.duals.without_search()

    def run(self) -> float:
        """Return the bound that the tree proves; raise InputError at the first bound that it does not prove."""
        largest = -np.inf if self.tree.leaves else np.inf
        jobs = self._checks()
        while block := list(islice(jobs, BLOCK)):
            largest = max(largest, self._bound(block))
        if not self.tree.leaves and self.listed is not None:
            self._check_others(largest, 0)
        proved = float(largest if largest <= self.bound else min(largest, self.without_search))
        if not proved <= self.bound:
            raise InputError(
                f"The certificate only proves the bound {proved!r}, not {self.bound!r} as the result claims."
            )
        return proved

    def _checks(self) -> Iterator[_BoundCheck]:
        """Yield a job for every fixing and leaf, with the parent sets and edges of its node."""
        tree = self.tree
        stack: list[tuple[int, NDArray[np.bool_], frozenset[tuple[int, int]]]] = [
            (0, np.ones(len(self.space.variable), dtype=bool), frozenset())
        ]
        while stack:
            node, mask, edges = stack.pop()
            if self.most_features is not None:
                mask = self.candidates.without_more_features(mask, self.most_features)
            for number, fixed in tree.fixings.get(node, ()):
                yield _BoundCheck(node, mask.copy(), edges, number, fixed)
                mask[fixed] = False
            branch = tree.children.get(node)
            if branch is None:
                if tree.leaves:
                    yield _BoundCheck(node, mask, edges, tree.leaves[node], None)
                else:
                    self._note(mask)
                continue
            kind, a, b, inside, outside = branch
            stack.append((outside, mask & self._left_by(kind, a, b, False), edges))
            more = edges
            if kind == EDGE and self.space.kind == FORESTS:
                more = edges | {(min(a, b), max(a, b))}
            stack.append((inside, mask & self._left_by(kind, a, b, True), more))

    def _duals_of(self, block: list[_BoundCheck]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return constants, shape (B,), and gradients, shape (B, P), of a block's bounds with their multipliers."""
        # The last column takes the parent sets whose coefficients are 0.
        points = np.zeros((len(block), len(self.duals.parent_sets) + 1))
        for row, job in zip(points, block, strict=True):
            parent_sets, eta = self.tree.point(job.weights)
            with np.errstate(over="ignore"):  # refused below
                np.add.at(row, self.duals.column[parent_sets], eta)
        temperatures = self.tree.temperatures[[job.weights for job in block]]
        constants, gradients = self.duals.at(points[:, :-1], temperatures)
        for x, job in enumerate(block):
            constant, gradient = self.tree.multiplier_terms(job.weights)
            constants[x] += constant
            gradients[x] += gradient
        if not (np.isfinite(constants).all() and np.isfinite(gradients).all()):
            raise InputError("The certificate holds points or multipliers that are too large.")
        return constants, gradients

    def _bound(self, block: list[_BoundCheck]) -> float:
        """Return the largest bound of the leaves in a block, and check the block's reduced-cost fixings."""
        V = len(self.space.offsets) - 1
        largest = -np.inf
        for job, constant, gradient in zip(block, *self._duals_of(block), strict=True):
            forced = np.zeros((V, V), dtype=np.int64)
            for a, b in job.edges:
                forced[a + 1, b + 1] = forced[b + 1, a + 1] = 1
            limit = (self.cutoff if self.exact or job.fixed is not None else self.bound) - constant
            arguments = (self.space, gradient, job.mask, forced, len(job.edges))
            if job.fixed is not None:
                parent_set = unproved(*arguments, np.sort(job.fixed), limit)
                if parent_set >= 0:
                    raise InputError(
                        f"The certificate removes parent set {parent_set} at node {job.node}, but does not prove that "
                        "no better structure has it."
                    )
                continue
            bound = float(constant + heaviest(*arguments, limit))
            if not bound < self.cutoff:
                # The score of a single structure needs no dual weights, and is exact but for rounding.
                bound = min(bound, self.bound_of_only(job.mask))
            if self.listed is not None and not self.listed.holds_only(job.mask, V):
                self._check_others(bound, job.node)
            if not (bound <= self.bound or self.without_search <= self.bound):
                raise InputError(
                    f"The certificate only proves the bound {bound!r} at node {job.node}, not {self.bound!r} as the "
                    "result claims."
                )
            largest = max(largest, bound)  # no bound is NaN: see `heaviest`
            if not bound < self.objective:
                self._note(job.mask)
        return largest

    def _check_others(self, bound: float, node: int) -> None:
        """Raise InputError if a node with structures that are not listed exceeds the bound on these."""
        assert self.listed is not None
        if bound <= self.listed.bound or self.without_search <= self.listed.bound:
            return
        raise InputError(
            f"The certificate only proves the bound {bound!r} for structures of node {node} that are not listed, not "
            f"{self.listed.bound!r} as the result claims."
        )

    def _note(self, mask: NDArray[np.bool_]) -> None:
        """Add the arcs that structures of these parent sets may have, and may lack, to `having` and `lacking`."""
        if self._arcs is None:
            return
        parent, child, parent_set = self._arcs
        left = mask[parent_set]
        counts = np.zeros(self.having.shape, dtype=np.int64)
        np.add.at(counts, (parent[left], child[left]), 1)
        self.having |= counts > 0
        self.lacking |= counts < np.bincount(self.space.variable[mask], minlength=len(counts))
