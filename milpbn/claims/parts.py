"""Claims that are parts of a result: about a smaller problem, about arcs, and about an average of networks.

Each is a small frozen dataclass, and its attributes are the keys of its JSON object (`ResultPart`). `SubsetClaim` and
`ScreenedClaim` are claims about a smaller problem than the one the user asked for, with an objective and a bound of
their own. Another claim of this kind needs one more type beside them, and one more case in
`milpbn.claims.result.Result.searched`. What reads a claim raises `InputError` if a value is missing or impossible.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

from milpbn.claims.gap import Gap
from milpbn.network.structure import Structure
from milpbn.util.declared import Count, Within, read_as
from milpbn.util.jsonable import Fields

GAPS = ("absolute", "relative_to_bound", "relative_to_incumbent")
#: Relative difference up to which two numbers of a file are taken as the same number, written with fewer digits.
SAME_NUMBER = 1e-12

#: Parent and child.
Arc = tuple[str, str]


def as_json(value: Any) -> Any:
    """Return a claim, or an attribute of one, as JSON: a structure as the parents of every variable."""
    if isinstance(value, Structure):
        return value.to_mapping()
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, ResultPart):
        return value.to_dict()
    if is_dataclass(value):
        return as_json(vars(value))
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, tuple | list) else value


class ResultPart:
    """A dataclass that is read from a JSON object as it is declared (`read_as`), and written with the same keys."""

    #: Attributes that are not written.
    UNWRITTEN: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        names = (a.name for a in fields(self) if a.name not in self.UNWRITTEN)  # type: ignore[arg-type]
        return {name: as_json(getattr(self, name)) for name in names}

    @classmethod
    def read(cls, f: Fields) -> Self:
        """Read what `to_dict` returned."""
        return read_as(cls, f, **dict.fromkeys(cls.UNWRITTEN))


@dataclass(frozen=True, kw_only=True)
class Searched(ResultPart):
    """Score and bound of what a search maximised: over all samples and parent sets, or over some of either."""

    #: Score z of the result's structure, in nats.
    objective: float | None
    #: Proved upper bound b on every structure's score, in nats.
    bound: float | None
    #: It is proved that no structure has a better score.
    optimal: bool

    @property
    def gap(self) -> Gap:
        """All gaps between objective and bound."""
        return Gap.between(self.objective, self.bound)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values: score and bound after what they are about."""
        values = super().to_dict()
        objective, bound, optimal = (values.pop(key) for key in ("objective", "bound", "optimal"))
        numbers = {"objective": objective, "bound": bound, "gap": vars(self.gap), "optimal": optimal}
        return values | numbers

    @classmethod
    def read(cls, f: Fields) -> Self:
        """Read what `to_dict` returned."""
        objective, bound = read_pair(f)
        return read_as(cls, f, "objective", "bound", "gap", objective=objective, bound=bound)


@dataclass(frozen=True, kw_only=True)
class SubsetClaim(Searched):
    """Score and bound of the weighted sum over representative samples.

    The bound says nothing about the score over all samples, on which the result has a bound of its own.
    """

    #: Number of representative samples: the distinct rows with a weight above 0.
    samples: Count


@dataclass(frozen=True, kw_only=True)
class ScreenedClaim(Searched):
    """Score and bound over the candidate parent sets that screening kept.

    The score is that of the result. The bound says nothing about structures with other parent sets.
    """

    #: Number of parent sets to keep per variable.
    k: Count
    #: How the parent sets were ranked.
    criterion: str
    #: Number of all candidate parent sets, and of those that were ranked; small ones are kept unranked.
    total: Count
    ranked: Annotated[int, Within(0, "total")]
    #: Number of kept parent sets of every variable.
    kept: Mapping[str, Annotated[int, Within(1, "total")]]

    @property
    def n_kept(self) -> int:
        """Number of kept parent sets of all variables."""
        return sum(self.kept.values())

    @property
    def same_sets(self) -> tuple[object, ...]:
        """What two claims about the same parent sets have in common."""
        return self.k, self.criterion, self.total, self.ranked, dict(self.kept)

    @classmethod
    def read(cls, f: Fields) -> Self:
        """Read what `to_dict` returned; refuse a claim that leaves out no parent set, which would be about all."""
        claim = super().read(f)
        if claim.n_kept >= claim.total:
            raise f.contradiction(
                f"it keeps {claim.n_kept} of {claim.total} parent sets, so that none was left out"
            )
        return claim


def read_pair(f: Fields) -> tuple[float | None, float | None]:
    """Return score and bound, and refuse gaps beside them that do not follow from them."""
    objective, bound = f.optional("objective", f.number), f.optional("bound", f.number)
    if objective is not None and bound is not None and bound < objective:
        raise f.contradiction(f"the bound {bound!r} is below the score {objective!r}")
    gap = f.fields("gap")
    gap.known(GAPS)
    for key, value in vars(Gap.between(objective, bound)).items():
        stated = gap.optional(key, gap.number, 0.0)
        if not same_number(stated, value):
            raise f.contradiction(f"the gap ({key}: {stated!r}) is not that of score and bound ({value!r})")
    return objective, bound


def same_number(a: float | None, b: float | None) -> bool:
    """Whether two numbers are the same up to `SAME_NUMBER`; None equals only None."""
    return a is b if a is None or b is None else math.isclose(a, b, rel_tol=SAME_NUMBER, abs_tol=0.0)


@dataclass(frozen=True)
class ProvedArcs(ResultPart):
    """Arcs (parent, child) that every optimal structure over the candidate parent sets has, and arcs that none has.

    Their keys in the JSON are ``in`` and ``out``.
    """

    inside: tuple[Arc, ...] = ()
    outside: tuple[Arc, ...] = ()

    @classmethod
    def of(cls, arcs: Mapping[str, Iterable[Iterable[str]]]) -> ProvedArcs:
        """Build the claim from lists of arcs under the keys ``in`` and ``out``."""
        inside, outside = (
            tuple((parent, child) for parent, child in arcs.get(key, ())) for key in ("in", "out")
        )
        return cls(inside, outside)

    def to_dict(self) -> dict[str, list[list[str]]]:
        """Return JSON-safe values."""
        return {"in": [list(arc) for arc in self.inside], "out": [list(arc) for arc in self.outside]}

    @classmethod
    def read(cls, f: Fields) -> ProvedArcs:
        """Read what `to_dict` returned; refuse an arc that is listed twice."""
        f.known(("in", "out"))
        arcs = {key: [(row.text("0"), row.text("1")) for row in f.rows(key, 2)] for key in ("in", "out")}
        seen: dict[Arc, str] = {}
        for key, listed in arcs.items():
            for arc in listed:
                before = seen.setdefault(arc, key)
                if before is not key:
                    raise f.contradiction(f"every optimum, and none, has the arc {arc[0]} -> {arc[1]}")
            if len(listed) > sum(found == key for found in seen.values()):
                raise f.contradiction(f"an arc is listed twice under {key!r}")
        return cls.of(arcs)


@dataclass(frozen=True, kw_only=True)
class Average(ResultPart):
    """What a run says of a classifier that averages several networks.

    All else in the result is about the first network.
    """

    #: Number of networks that were asked for.
    asked: Count
    #: Number of networks in the classifier. With 1 it is a single network.
    networks: Annotated[int, Within(1, "asked")]
    #: Whether the user stopped the run before it had all networks.
    interrupted: bool = False
    #: Why there are fewer than were asked for, as a clause; empty if there are not.
    note: str = ""

    def describe(self) -> list[str]:
        """Return sentences for the user."""
        said = [f"average of {self.networks} networks; score, bound, gap and certificate are of the first"]
        if self.networks == 1:
            said = ["one network, not an average"]
        return said + ([f"{self.asked} were asked for: {self.note}"] if self.networks < self.asked else [])

    @classmethod
    def read(cls, f: Fields) -> Self:
        """Read what `to_dict` returned."""
        read = super().read(f)
        missing = read.networks < read.asked
        if missing != bool(read.note) or (read.interrupted and not missing):
            raise f.contradiction("it says why networks are missing although none is, or the reverse")
        return read
