"""The question of a run: which score is maximised over which structures, on which data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from milpbn.errors import InputError
from milpbn.problem.constraints import Constraints
from milpbn.problem.problem import checked_constraints
from milpbn.problem.scores.spec import Score
from milpbn.problem.screening import Screen
from milpbn.problem.subset import Subset


@dataclass(frozen=True)
class Question:
    """What is asked. It is made once; everything that searches for the answer takes it."""

    #: Training data: a dataset, a table, or anything `read_table` reads; of a table with a split its training rows.
    data: Any
    score: Score
    constraints: Constraints | None = None
    #: The part of the problem that is searched; None for the whole.
    scope: Subset | Screen | None = None

    @classmethod
    def of(
        cls,
        data: Any,
        score: Score | str,
        constraints: Constraints | None = None,
        *,
        subset: int | None = None,
        screen: int | None = None,
        random_state: int = 0,
    ) -> Question:
        """Return the question that the arguments of `milpbn.solve` ask; the seed draws the subset.

        Raise InputError if the score is none, a number is impossible, or both a subset and a screening are asked for.
        """
        spec = Score(name=score) if isinstance(score, str) else score
        if not isinstance(spec, Score):
            raise InputError(f"score must be a Score or the name of one, got {score!r}.")
        chosen, screened = Subset.of(subset, random_state), Screen.of(screen, subset)
        return cls(data, spec, constraints, chosen or screened)

    @property
    def subset(self) -> int | None:
        """Number of representative samples; None without a subset."""
        return self.scope.samples if isinstance(self.scope, Subset) else None

    @property
    def screen(self) -> int | None:
        """Number of parent sets to keep per variable; None without a screening."""
        return self.scope.k if isinstance(self.scope, Screen) else None

    def check_paths(self, certificate: object) -> None:
        """Refuse constraints on paths beside a certificate of margins, or a screening, with an InputError."""
        asked = checked_constraints(self.constraints)
        if (paths := asked.path_options) and certificate is not None and self.score.is_margin:
            raise InputError(
                f"A certificate of the score {self.score.name} cannot hold constraints on paths ({paths}); leave out "
                "these or --certificate (certificate)."
            )
        if asked.ancestors and self.screen is not None:
            raise InputError(
                "The parent sets that --screen (screen) keeps may exclude the paths of --ancestor (ancestors); leave "
                "out one of the two."
            )

    def require_listable(self, most: int) -> None:
        """Refuse a list of the best structures where only a part of the problem is searched, with an InputError."""
        if most > 1 and self.scope is not None:
            option = "--subset (subset)" if self.subset is not None else "--screen (screen)"
            raise InputError(
                f"A list of the best structures (--n-best, --within) needs a search of the whole problem, and {option} "
                "searches a part of it; leave out one of the two."
            )
