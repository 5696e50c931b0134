"""Local scores that are given, as in a ``.jkl`` file, instead of computed from data.

A `LocalDataset` stands for the data of a search, and `LocalScore` for its score; all else is the same.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import InputError
from milpbn.network.prior import Prior
from milpbn.problem.candidates import Candidates
from milpbn.problem.conflicts import feasible_structure
from milpbn.problem.constraints import Rules
from milpbn.problem.rounding import EPS
from milpbn.problem.scores.base import ScoreKind, Shape
from milpbn.problem.scores.options import ALL
from milpbn.problem.scores.spec import Score
from milpbn.util.plurals import counted


@dataclass(frozen=True, eq=False)
class LocalScores:
    """A score for every candidate parent set of every variable; a structure's score is their sum.

    `scores`, float64 of shape (P,), is in the order of the parent sets; larger is better.
    """

    candidates: Candidates
    scores: NDArray[np.float64]

    @cached_property
    def largest(self) -> int:
        """Number of members of the largest parent set."""
        return max(map(len, self.candidates.flat))

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of names, parent sets and scores."""
        digest = hashlib.sha256(json.dumps([self.candidates.names, self.candidates.sets]).encode())
        digest.update(np.ascontiguousarray(self.scores, dtype="<f8").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class LocalDataset(Dataset):
    """Local scores in place of data: their variables, and one row without meaning."""

    local: LocalScores = field(kw_only=True)

    @classmethod
    def of(cls, local: LocalScores, name: str = "local scores") -> LocalDataset:
        """Return the data that stand for local scores of this name."""
        variables = tuple(Variable(variable, ("0", "1")) for variable in local.candidates.names)
        codes = np.zeros((1, len(variables)), dtype=np.int32)
        return cls(name, variables, codes, np.ones(1), has_class=False, local=local)

    @property
    def sha256(self) -> str:
        """SHA-256 of the scores, instead of that of the row."""
        return self.local.sha256

    @property
    def merged(self) -> LocalDataset:
        """The same: a row has no identical ones."""
        return self


class GivenTerms(ScoreKind):
    """A sum of one given number per variable and its parent set: that of a `LocalDataset`."""

    name = "local scores"
    shape = Shape.LINEAR
    certified = True

    @property
    def cap(self) -> float:
        """Infinity, since the numbers may be positive; see `ScoreKind.cap`."""
        return math.inf

    def term_error(self, data: Dataset, prior: Prior) -> float:
        """Return that of the sum of a number and the weights of arcs; see `ScoreKind.term_error`."""
        assert isinstance(data, LocalDataset)
        return EPS * max(8, data.local.largest)

    def family(self, data: Dataset, child: int, parents: tuple[int, ...]) -> tuple[float, float]:
        """Return the number of a listed parent set, and its size; see `ScoreKind.family`."""
        assert isinstance(data, LocalDataset)
        place = data.local.candidates.position(child, parents)
        assert place is not None
        score = float(data.local.scores[place])
        return score, abs(score)


@dataclass(frozen=True, kw_only=True, repr=False)
class LocalScore(Score):
    """The score that local scores add up to. No table defines it, so that it is none of the registered scores."""

    name: str = GivenTerms.name
    #: The listed parent sets are all that are allowed, whatever their size.
    max_parents: int = 10**6
    parent_sets: str = ALL

    def __post_init__(self) -> None:
        """Check nothing: no option of it comes from a user."""

    @cached_property
    def kind(self) -> ScoreKind:
        """The score's class."""
        return GivenTerms()

    @property
    def limits(self) -> str:
        """Say that the sizes of parent sets have no limits."""
        return "any number of parents"

    def describe(
        self, *, arc_weights: Mapping[tuple[str, str], float] | None = None, discretisation: str | None = None
    ) -> str:
        """Return that it is a sum, and the number of arcs with a weight of the user."""
        weights = f" and of the weights of {counted(len(arc_weights), 'arc')}" if arc_weights else ""
        return f"sum of local scores{weights}"

    def to_dict(self) -> dict[str, object]:
        """Return the options as of ``ll``, which files know: its claims are about all structures, too."""
        return {**super().to_dict(), "name": "ll"}


def obeying(local: LocalScores, rules: Rules) -> Candidates:
    """Return the listed parent sets that obey rules.

    InputError if a variable has none, or if every choice of them has a cycle.
    """
    candidates, ruled = local.candidates, rules != Rules()
    if ruled:
        own = ([s for s in sets if rules.admits(i, s)] for i, sets in enumerate(candidates.sets))
        candidates = Candidates(candidates.names, tuple(map(tuple, own)))
    for name, sets in zip(candidates.names, candidates.sets, strict=True):
        if not sets:
            raise InputError(
                f"The constraints leave the variable {name!r} none of its listed parent sets; relax them."
            )
    if not rules.max_children and feasible_structure(candidates, rules) is None:
        relax = "relax the constraints, or " if ruled else ""
        raise InputError(
            f"Every choice of the listed parent sets has a cycle; {relax}add smaller parent sets."
        )
    return candidates
