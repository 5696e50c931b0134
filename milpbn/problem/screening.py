"""Candidate parent set screening: the k best parent sets of every variable, found without building all tables at once.

Screening changes the problem, as a subset of the samples does: candidate parent sets are left out of it. Small sets are
kept without being ranked; `milpbn.problem.ranking` ranks the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Admitted, Candidates, ParentSet
from milpbn.util.validation import whole_number

#: Largest size of the parent sets that are kept without being ranked, if all sets of that size fit.
SMALL = 2


@dataclass(frozen=True)
class Screen:
    """A search over only the k best candidate parent sets of every variable; InputError for an impossible k."""

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole_number("screen", self.k))
        if self.k < 1:
            raise InputError(f"Screening must keep at least 1 parent set per variable, got {self.k}.")

    @classmethod
    def of(cls, k: int | None, subset: int | None = None) -> Screen | None:
        """Return the screening that keeps k parent sets per variable, or None if no number is given.

        InputError refuses an impossible number, and a subset of the samples beside it.
        """
        chosen = None if k is None else cls(k)
        if chosen is not None and subset is not None:
            raise InputError(
                "A search over a subset of the samples cannot also be over screened parent sets, because its bound "
                "would hold neither for all samples nor for all parent sets; leave out --subset (subset) or --screen "
                "(screen)."
            )
        return chosen


@dataclass(frozen=True)
class Screened:
    """What a screening did.

    A variable keeps more than k sets only if `small_sets` returns more for it. `criterion` says how the sets were
    ranked. Of `total` candidate parent sets `ranked` were ranked: small sets are kept without being ranked, and a time
    limit may end the ranking.
    """

    k: int
    criterion: str
    total: int
    ranked: int


def small_sets(
    names: Sequence[str], admitted: Sequence[Admitted], k: int, start: Structure | None
) -> Candidates:
    """Return the parent sets that screening keeps without ranking them, at most k per variable but for the first kind.

    For every variable these are:

    - the sets whose only features are those that the rules require, so that a feasible problem stays feasible;
    - all sets of at most two members, or of at most one, if there are no more than k of them;
    - the variable's parent set in the user's start.

    `names` (the class last) and `admitted`, what rules and options admit, have one item for each of the V variables.
    """
    sizes = [next((s for s in range(SMALL, 0, -1) if own.count(s) <= k), 0) for own in admitted]
    return sets_up_to(names, admitted, sizes, start)


def sets_up_to(
    names: Sequence[str], admitted: Sequence[Admitted], sizes: Sequence[int], start: Structure | None = None
) -> Candidates:
    """Return every variable's sets of at most `sizes` members or of required features only, and those of the start.

    If some structure obeys the rules, then so does one over these sets, whatever the sizes: taking arcs away that no
    rule requires breaks none. The arguments are those of `small_sets`.
    """
    c = len(names) - 1
    given = start.parents if start is not None and start.names == tuple(names) else None
    sets = []
    for i, (own, size) in enumerate(zip(admitted, sizes, strict=True)):
        kept = own.sets(c, size)
        if given is not None and given[i] not in kept and own.contains(given[i], c):
            kept.append(given[i])
        sets.append(in_order(kept, c))
    return Candidates(tuple(names), tuple(sets))


def in_order(sets: Sequence[ParentSet], c: int) -> tuple[ParentSet, ...]:
    """Return parent sets without the class first, then by size and members."""
    return tuple(sorted(sets, key=lambda s: (c in s, len(s), s)))
