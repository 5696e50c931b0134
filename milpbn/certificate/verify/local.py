"""Check that a certificate proves the claims of a result over local scores (``.jkl``), which has no data."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.format import load_proof
from milpbn.certificate.verify.alternatives import read_listed
from milpbn.certificate.verify.check import Verification, listing
from milpbn.certificate.verify.multipliers import prove_listed
from milpbn.claims.gap import proves, tolerance_of
from milpbn.claims.local_result import LocalResult
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.rounding import EPS


def verify_local(
    result: Mapping[str, Any] | None,
    certificate: str | os.PathLike[str],
    candidates: Candidates,
    scores: NDArray[np.float64],
    sha256: str,
) -> Verification:
    """Check that a certificate proves the claims of a result over local scores, or those of its own header (None).

    `scores`, shape (P,), are those of the candidates in the file of local scores, `sha256` is the hash of both. Raises
    InputError if a file cannot be read, or a claim is not proved; the message is one sentence.
    """
    began = time.monotonic()
    header, arrays = load_proof(certificate)
    what = "The certificate" if result is None else "The result"
    # A header has no times.
    values = {**header, "seconds": {"total": 0.0}, "trace": []} if result is None else result
    claim = LocalResult.from_dict(values, what)
    if claim.structure is None or claim.objective is None or claim.bound is None:
        raise InputError(f"{what} holds no structure or no bound, so that there is nothing to verify.")
    sizes = candidates.n_variables, candidates.n_sets
    if claim.sha256 != sha256 or (claim.variables, claim.parent_sets) != sizes:
        raise InputError("The result is of other local scores than these; give the file of that run.")
    if sorted(claim.structure.names) != sorted(candidates.names):
        raise InputError("The result's structure has other variables than the local scores.")
    choice = candidates.choice(Structure.from_mapping(candidates.names, claim.structure.to_mapping()))
    if choice is None:
        raise InputError("The result's structure has a parent set that the local scores do not list.")
    objective, error = _sum(scores, choice)
    if not abs(objective - claim.objective) <= error:
        raise InputError(f"The structure scores {objective!r}, not {claim.objective!r} as the result claims.")

    def scored(structure: Structure) -> tuple[float, float]:
        own = candidates.choice(structure)
        assert own is not None  # else the structure is refused before
        return _sum(scores, own)

    listed = read_listed(claim, candidates, lambda structure: None, scored)
    found = prove_listed(candidates, scores, Rules(), arrays, claim.bound, listed)
    largest = np.maximum.reduceat(2 * EPS * np.abs(scores), candidates.offsets[:-1])
    tolerance = tolerance_of(math.fsum(largest))
    if claim.tolerance is None or claim.tolerance > tolerance * (1 + 4 * EPS):
        raise InputError(
            f"The result takes a gap of {claim.tolerance!r} for a proof of optimality; with these scores only one of "
            f"up to {tolerance!r} is."
        )
    if claim.optimal and not proves(objective, claim.bound, claim.tolerance):
        raise InputError("The result calls its structure optimal, which its bound does not prove.")
    return Verification(objective, claim.bound, *found, 0, 0, time.monotonic() - began, **listing(listed))


def _sum(scores: NDArray[np.float64], choice: NDArray[np.int64]) -> tuple[float, float]:
    """Return the sum of some scores, and a bound on its rounding error."""
    return math.fsum(scores[choice]), 4 * EPS * math.fsum(np.abs(scores[choice]))
