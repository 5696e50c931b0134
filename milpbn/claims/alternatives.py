"""What a result claims of the K best structures: their scores, a bound on all others, and which are the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar

from milpbn.claims.parts import ResultPart
from milpbn.network.structure import Structure
from milpbn.util.declared import NotNegative, Within, read_as
from milpbn.util.jsonable import Fields

#: Numbers of structures in the list, from 1.
Group = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Alternative:
    """One structure of the list, and its score in nats, computed from the data."""

    objective: float
    structure: Structure


@dataclass(frozen=True, kw_only=True)
class Alternatives(ResultPart):
    """The K best distinct structures, or those of them near the best one.

    Two are distinct if they give some variable other parents.
    """

    asked: Annotated[int, Within(2)]
    #: The best ones known, best first; the first is the result's structure. Fewer than K if no more are known.
    structures: tuple[Alternative, ...]
    #: No structure that is not in the list scores more, in nats. None if there is no bound, or no other structure.
    bound: float | None
    #: It is proved that there are no other structures over the candidate parent sets.
    exhausted: bool
    #: It is proved that no structure outside the list scores more than the cutoff, up to the tolerance of
    #: `milpbn.claims.gap.is_optimal`, or that there is no structure outside. Where a list by distance has fewer
    #: structures than K, none outside scores as much as the cutoff, either.
    optimal: bool
    #: Structures are listed whose score is at most so many nats below the best one; None for the K best.
    within: NotNegative | None = None
    #: Groups of structures whose classifiers have the same posteriors, by their numbers in the list, from 1
    #: (`milpbn.network.equivalence.same_posteriors`).
    same_posteriors: tuple[Group, ...] = ()
    #: Groups of Markov equivalent structures, by the same numbers (`milpbn.network.equivalence.markov_equivalent`).
    markov_equivalent: tuple[Group, ...] = ()

    #: Attributes that files of earlier versions lack.
    LATER: ClassVar = ("within",)

    @property
    def cutoff(self) -> float | None:
        """The score below which a structure is not listed: that of the K-th one, or the best score minus `within`.

        None if the list takes every structure.
        """
        if len(self.structures) == self.asked:
            return self.structures[-1].objective
        return None if self.within is None else self.structures[0].objective - self.within

    @classmethod
    def of(cls, f: Fields, structures: Iterable[Structure]) -> Alternatives:
        """Read what `to_dict` returned; the caller reads the structures in it, which need the name of the class."""
        scores = [one.number("objective") for one in f.objects("structures")]
        listed = tuple(
            Alternative(structure=structure, objective=score)
            for structure, score in zip(structures, scores, strict=True)
        )
        groups = {key: _read_groups(f, key, len(listed)) for key in ("same_posteriors", "markov_equivalent")}
        claim = read_as(cls, f, "structures", *groups, structures=listed, **groups)
        claim._check(f)
        return claim

    def _check(self, f: Fields) -> None:
        """Refuse a list whose parts contradict each other."""
        scores = [one.objective for one in self.structures]
        if not 1 <= len(scores) <= self.asked:
            raise f.contradiction(f"it lists {len(scores)} structures, where {self.asked} were asked for")
        if any(b > a for a, b in pairwise(scores)):
            raise f.contradiction("a structure of the list scores more than one before it")
        if len({one.structure.parents for one in self.structures}) < len(scores):
            raise f.contradiction("a structure is listed twice")
        if self.exhausted and self.bound is not None:
            raise f.contradiction("it bounds other structures, and says that there are none")
        cutoff = self.cutoff
        if cutoff is not None and self.bound is not None and self.bound < cutoff:
            raise f.contradiction(
                f"its bound {self.bound!r} on all other structures is below the last one's score"
            )


def _read_groups(f: Fields, key: str, n: int) -> tuple[Group, ...]:
    """Return groups of numbers from 1 to n; no number may be in two groups."""
    lists: Sequence[object] = f.items(key)
    groups = tuple(tuple(Fields({key: one}, "The result").wholes(key, 1, n)) for one in lists)
    members = [number for group in groups for number in group]
    if any(len(group) < 2 for group in groups) or len(set(members)) < len(members):
        raise f.contradiction(f"its groups {key!r} are not disjoint groups of two or more structures")
    return groups
