"""The exact check of a result over local scores: the terms are the numbers of the file, so that nothing is rounded."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

from milpbn.certificate.exact.arithmetic import Ends, Json, known_form, need, number
from milpbn.certificate.exact.check import OPTIMALITY, ROUNDING, TOLERANCE, check_others, claimed_others
from milpbn.certificate.exact.multipliers import ExactRules, as_mask, prove_listed
from milpbn.certificate.format import load_proof


def check_local(
    claim: Json | None, certificate: str | os.PathLike[str], candidates: Any, scores: Any, sha256: str
) -> tuple[Ends, Fraction]:
    """Check structure, score, bound and optimality of a result over local scores, or raise NotProvedError.

    `claim` is the contents of the result's file; None checks the claims in the certificate's own header. `candidates`
    has the attributes `names`, `variable` and `flat` of a `Candidates`. Returns the structure's score, twice, and the
    proved bound.
    """
    header, arrays = load_proof(certificate)
    with known_form():
        return _check(header if claim is None else claim, arrays, candidates, scores.tolist(), sha256)


def _check(
    claim: Json, arrays: Json, candidates: Any, scores: list[float], sha256: str
) -> tuple[Ends, Fraction]:
    need(claim["data"]["sha256"] == sha256, "The local scores differ from those of the claim.")
    place = {name: i for i, name in enumerate(candidates.names)}
    families = list(zip(candidates.variable.tolist(), candidates.flat, strict=True))
    term_of = {family: Fraction(score) for family, score in zip(families, scores, strict=True)}

    def checked(one: Json) -> tuple[list[tuple[int, ...]], Fraction]:
        """Return the structure of a claim, and its score."""
        need(set(one["structure"]) == set(place), "The structure has other variables than the local scores.")
        structure = [tuple(sorted(place[j] for j in one["structure"][name])) for name in place]
        need(term_of.keys() >= {*enumerate(structure)}, "The structure has a parent set that is not listed.")
        placed: set[int] = set()
        for _ in structure:
            placed |= {i for i, s in enumerate(structure) if placed.issuperset(s)}
        need(len(placed) == len(structure), "The structure has a cycle.")
        score, z = (
            sum((term_of[family] for family in enumerate(structure)), Fraction(0)),
            number(one["objective"]),
        )
        close = abs(z - score) <= max(TOLERANCE * abs(score), ROUNDING)
        need(close, f"The structure scores {float(score)!r}, not {float(z)!r} as claimed.")
        return structure, score

    score = checked(claim)[1]
    z, bound = number(claim["objective"]), number(claim["bound"])
    limit = min(OPTIMALITY * max(Fraction(1), abs(z)), number(claim["tolerance"]))
    of, others = claim.get("alternatives"), claimed_others(claim.get("alternatives"))
    structures = None if of is None else [checked(one)[0] for one in of["structures"]]
    sets = [(i, as_mask(s), term_of[i, s]) for i, s in families]
    prove_listed(sets, ExactRules({}), arrays, bound, structures, others)
    check_others(of, others, lambda: bound, limit)
    need(bound >= z, "The bound is below the score of the structure.")
    need(bound - z <= limit or claim["status"]["reason"] != "optimal", "The structure is not proved optimal.")
    return (score, score), bound
