"""Check a certificate of a score that is a sum of one term per variable and its parents, computed from the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.certificate.verify.claim import Claim
from milpbn.certificate.verify.duals import local_terms
from milpbn.certificate.verify.multipliers import ProvedSets, prove
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.problem.candidates import Candidates
from milpbn.problem.constraints import Rules
from milpbn.problem.rounding import EPS, score_error


def prove_decomposable(
    claim: Claim, data: Dataset, candidates: Candidates, rules: Rules, arrays: Mapping[str, NDArray[Any]]
) -> tuple[ProvedSets, float]:
    """Check the bound that a result claims; return what the proof holds, and the largest error of a structure's score.

    Raises InputError if the bound is not proved, or the result has lists that such a proof is not about.
    """
    score, result = claim.result.score, claim.result
    if result.alternatives is not None or result.proved is not None:
        raise InputError(
            f"A certificate of the score {score.name} proves nothing about the arcs of all optima and other best "
            "structures, which the result lists."
        )
    terms, errors = local_terms(data, candidates, score, rules)
    upper = terms + errors
    found = prove(candidates, upper + EPS * np.abs(upper), rules, arrays, claim.bound)
    return found, score_error(data, score.prior, 0.0, errors, candidates.offsets)
