"""The exact check of a result over local scores: the terms are the numbers of the file, so that nothing is rounded."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Any

from milpbn.certificate.exact.arithmetic import ONE, Ends, Json, known_form, need, number
from milpbn.certificate.exact.check import OPTIMALITY, ROUNDING, TOLERANCE, prove_terms, structure_of
from milpbn.certificate.exact.problem import ExactProblem, Parents
from milpbn.certificate.format import load_proof


class ExactScores(ExactProblem):
    """The listed parent sets that obey the constraints; the term of each is its score and the weights of its arcs."""

    def __init__(self, local: Any, constraints: Json) -> None:
        names = local.candidates.names
        self.decomposable, self.class_parents, self.alike = True, True, False
        self.weights = [Fraction(1)]
        self.last = self.max_parents = len(names) - 1
        self._read_constraints(constraints, {name: i for i, name in enumerate(names)})
        families = zip(local.candidates.variable.tolist(), local.candidates.flat, strict=True)
        given = dict(zip(families, map(Fraction, local.scores.tolist()), strict=True))
        self._given = {family: score for family, score in given.items() if self.admits(*family)}
        self.parent_sets = list(self._given)
        self.linear = [self.local_terms(i, s)[1] * ONE for i, s in self.parent_sets]

    def local_terms(self, i: int, parents: Parents) -> Ends:
        """Return the score of a parent set with the weights of its arcs, twice."""
        term = self._given[i, parents]
        term += sum((self.arc_weights.get((j, i), Fraction(0)) for j in parents), Fraction(0))
        return term, term


def check_local(claim: Json | None, certificate: str | os.PathLike[str], local: Any) -> tuple[Ends, Fraction]:
    """Check structure, score, bound and optimality of a result over local scores, or raise NotProvedError.

    `claim` is the contents of the result's file; None checks the claims in the certificate's own header. `local` are
    `LocalScores`. Returns the structure's score, twice, and the proved bound.
    """
    header, arrays = load_proof(certificate)
    with known_form():
        return _check(header if claim is None else claim, arrays, local)


def _check(claim: Json, arrays: Json, local: Any) -> tuple[Ends, Fraction]:
    need(claim["data"]["sha256"] == local.sha256, "The local scores differ from those of the claim.")
    problem = ExactScores(local, claim.get("constraints") or {})
    place = {name: i for i, name in enumerate(local.candidates.names)}
    score, _ = problem.score(structure_of(problem, claim, place), problem.weights)
    z, bound = number(claim["objective"]), number(claim["bound"])
    close = abs(z - score) <= max(TOLERANCE * abs(score), ROUNDING)
    need(close, f"The structure scores {float(score)!r}, not {float(z)!r} as claimed.")
    limit = min(OPTIMALITY * max(Fraction(1), abs(z)), number(claim["tolerance"]))
    prove_terms(problem, claim, place, arrays, bound, limit)
    need(bound >= z, "The bound is below the score of the structure.")
    need(bound - z <= limit or claim["status"]["reason"] != "optimal", "The structure is not proved optimal.")
    return (score, score), bound
