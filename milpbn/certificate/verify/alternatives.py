"""The claim about the K best structures, for the verifier: what needs no tree, and what the tree must prove."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.claims.alternatives import Alternatives, Group
from milpbn.claims.reasons import Reason
from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.equivalence import markov_equivalent, posteriors_of, same_posteriors
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.gate import objection
from milpbn.problem.rescore import rescored
from milpbn.problem.scores.spec import Score

#: A number below every score, and one that can be subtracted from without becoming infinite.
BELOW_ALL = -1e300


class Listed(NamedTuple):
    """What the tree has to prove of the K best structures."""

    #: By the parent sets of a listed structure (`key_of`), its number.
    choices: Mapping[bytes, int]
    #: Structures below this number belong into no list, so that reduced-cost fixing may leave them out.
    cutoff: float
    #: The claimed bound on all structures that are not listed; inf without one, -inf if there are none.
    bound: float

    def holds_only(self, mask: NDArray[np.bool_], n_variables: int) -> bool:
        """Whether a node with these parent sets, shape (P,), holds one listed structure and no other one."""
        only = np.flatnonzero(mask)
        return len(only) == n_variables and key_of(only) in self.choices


def key_of(choice: NDArray[np.integer]) -> bytes:
    """Return the bytes of the ascending indices of a structure's parent sets."""
    return np.asarray(choice, dtype=np.int64).tobytes()


def read_listed(result: Result, candidates: Candidates, rules: Rules, data: Dataset) -> Listed | None:
    """Check the listed structures and their scores, and return what is left for the tree; None without a list.

    Raise InputError if a listed structure is not allowed, is listed twice, or has another score or other equals than
    claimed.
    """
    claim = result.alternatives
    if claim is None:
        return None
    choices: dict[bytes, int] = {}
    cutoff = last_error = math.inf
    structures = [
        Structure.from_mapping(candidates.names, one.structure.to_mapping()) for one in claim.structures
    ]
    for number, (structure, one) in enumerate(zip(structures, claim.structures, strict=True), start=1):
        reason, choice = objection(structure, result.score, result.constraints), candidates.choice(structure)
        if reason is None and (choice is None or rules.over_limit(structure.parents) is not None):
            reason = "the bound does not cover it"
        if reason is not None or choice is None:
            raise InputError(f"Structure {number} of the list is ruled out: {reason}.")
        value, last_error = rescored(data, structure, result.score, rules)
        if not abs(value - one.objective) <= last_error:
            raise InputError(
                f"Structure {number} of the list scores {value!r}, not {one.objective!r} as the result claims."
            )
        cutoff = min(cutoff, value - last_error)
        if choices.setdefault(key_of(choice), number) != number:
            raise InputError(f"Structure {number} of the list is there twice.")
    _check_optimal(result, claim, last_error)
    if result.reason is not Reason.RUNNING:  # a running search does not compare the structures
        _check_groups(claim, structures, data, result.score)
    bound = claim.bound
    if bound is None:
        bound = -math.inf if claim.exhausted else math.inf
    # Nothing may be left out if the list takes every structure, or holds all.
    least = None if claim.exhausted else claim.cutoff
    return Listed(choices, BELOW_ALL if least is None else min(cutoff, least), bound)


def _check_optimal(result: Result, claim: Alternatives, error: float) -> None:
    """Raise InputError if the list is called the best one, and its claimed bound does not say so."""
    if claim.optimal and not (claim.exhausted or result.proves(claim.cutoff, claim.bound, error)):
        raise InputError(
            "The result calls its list of structures the best one, which its bound does not prove."
        )


def _check_groups(claim: Alternatives, structures: Sequence[Structure], data: Dataset, score: Score) -> None:
    """Raise InputError if other structures than claimed have the same posteriors, or are Markov equivalent."""
    found: tuple[Group, ...] = ()
    if data.has_class:
        found = same_posteriors(posteriors_of(data, structures, score.smoothing, score.smoothing_towards))
    for what, groups, claimed in (
        ("have the same posteriors", found, claim.same_posteriors),
        ("are Markov equivalent", markov_equivalent(structures), claim.markov_equivalent),
    ):
        if groups != claimed:
            raise InputError(f"Other structures of the list {what} than the result says.")
