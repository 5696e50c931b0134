"""Scores of structures that stages and engines find: by the coefficients and from the data, which must agree."""

from __future__ import annotations

import time

from milpbn.errors import SolverError
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem

#: Relative difference between a structure's score by the coefficients and its score from the data that is an error.
MISMATCH = 1e-7


class CheckedScores:
    """Scores structures, refuses impossible ones, and measures how long that takes."""

    def __init__(self) -> None:
        self._scored, self._seconds = 0, 0.0

    @property
    def mean_seconds(self) -> float:
        """Mean time of scoring a structure from the data, in seconds."""
        return self._seconds / max(1, self._scored)

    def by_coefficients(self, problem: Problem, structure: Structure, source: str) -> float:
        """Return the score of a structure by the coefficients.

        Raises
        ------
        SolverError
            If it breaks a constraint of the user, or has a parent set that is no candidate.
        """
        objection = problem.objection(structure)
        choice = problem.choice(structure)
        if objection is None and (choice is None or not problem.obeys(structure)):
            objection = "it is outside the candidate parent sets"
        if objection is not None or choice is None:
            raise SolverError(
                f"A structure from {source} breaks the constraints: {objection}. Please report this."
            )
        return problem.value(problem.indicator(choice))

    def from_data(
        self, problem: Problem, structure: Structure, value: float, source: str
    ) -> tuple[float, float]:
        """Return the score of a structure from the data, and a bound on its rounding error.

        Raises
        ------
        SolverError
            If it is not `value`, the score by the coefficients.
        """
        began = time.monotonic()
        objective, error = problem.rescored(structure)
        self._scored, self._seconds = self._scored + 1, self._seconds + time.monotonic() - began
        if abs(objective - value) > MISMATCH * max(1.0, abs(value)) + problem.score_error + error:
            raise SolverError(
                f"A structure from {source} scores {objective!r} from the data and {value!r} in the model; "
                "please report this."
            )
        return objective, error
