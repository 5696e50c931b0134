"""How often each arc is in the optimum of a bootstrap sample: the record of the runs, its file, and its table.

Efron's bootstrap: every sample has as many rows as the table, drawn with replacement. States and cuts are those of the
whole table. An arc that is in the optimum of most samples does not hang on a few rows.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from milpbn.claims.about import DataSummary
from milpbn.claims.parts import Arc, ResultPart
from milpbn.claims.reading import read_constraints, read_parents, read_score, save_document
from milpbn.network.structure import Structure
from milpbn.problem.class_free import among
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.util.declared import Count, NotNegative, read_as
from milpbn.util.jsonable import Fields
from milpbn.version import __version__

#: What the file of a stability run begins with.
FORMAT = "milpbn stability"


@dataclass(frozen=True, kw_only=True)
class SampleRun(ResultPart):
    """One search."""

    #: The parents of every variable; None if no structure was found.
    structure: Mapping[str, tuple[str, ...]] | None
    #: Score and bound on the sample, in nats; scores of different samples cannot be compared.
    objective: float | None = None
    bound: float | None = None
    #: Whether the structure is proved best on the sample.
    optimal: bool = False
    seconds: NotNegative = 0.0
    #: Why the search failed, as a sentence; empty if it did not.
    failure: str = ""

    @property
    def arcs(self) -> set[Arc]:
        """The arcs (parent, child) of the structure."""
        return {(parent, child) for child, own in (self.structure or {}).items() for parent in own}

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        return super().to_dict() | {"seconds": round(self.seconds, 6)}

    @classmethod
    def read(cls, f: Fields, names: tuple[str, ...] | None = None) -> Self:
        """Read what `to_dict` returned; the structure must be one over the names, if these are given."""
        structure = None
        if not f.missing("structure"):
            structure = {name: tuple(parents) for name, parents in read_parents(f).items()}
            if names is not None and set(structure) != set(names):
                raise f.contradiction("its structure has other variables than the data")
            Structure.from_mapping(tuple(structure), structure)  # refuses cycles and unknown parents
        return read_as(cls, f, *f, structure=structure)


@dataclass(frozen=True)
class ArcShare:
    """How often an arc, or an edge in either direction, is in a structure."""

    #: The arc; for an edge, the direction that is more frequent.
    parent: str
    child: str
    #: Number of structures with it, for an edge in either direction; and of those that are proved best on their sample.
    count: int
    proved: int
    #: For an edge, the number of structures with the arc from child to parent; always 0 for an arc of the class.
    backwards: int
    #: ``->`` if the structure of all rows has the arc, ``<-`` if it has the opposite one; else empty.
    in_all_rows: str


@dataclass(frozen=True, kw_only=True)
class Stability:
    """The runs on bootstrap samples of one table, and the run on all rows."""

    #: All rows.
    data: DataSummary
    #: Features first, the class last.
    names: tuple[str, ...]
    score: Score
    constraints: Constraints
    #: Seed of the samples. Sample k is the same for any number of samples.
    seed: int
    #: Seconds of every run.
    time_limit_each: NotNegative | None
    backend: str
    asked: Count
    #: The run on the table itself.
    all_rows: SampleRun
    #: By the number of the sample, from 1: the runs that are finished.
    runs: Mapping[int, SampleRun]

    @property
    def n_structures(self) -> int:
        """Number of samples for which there is a structure."""
        return sum(run.structure is not None for run in self.runs.values())

    @property
    def n_proved(self) -> int:
        """Number of samples whose structure is proved best."""
        return sum(run.optimal for run in self.runs.values())

    @property
    def same_as(self) -> tuple[object, ...]:
        """What two files have in common whose runs may be joined."""
        return (
            self.data.sha256,
            self.score.to_dict(),
            self.constraints.to_dict(),
            self.seed,
            self.time_limit_each,
            self.backend,
        )

    def shares(self) -> list[ArcShare]:
        """Return all arcs of the class and edges between features that some structure has, the most frequent first."""
        counts: Counter[Arc] = Counter()
        proved: Counter[Arc] = Counter()
        for run in self.runs.values():
            counts.update(run.arcs)
            if run.optimal:
                proved.update(run.arcs)
        target, rows = self.names[-1], self.all_rows.arcs
        found = []
        for parent, child in sorted(counts.keys() | rows):
            back, undirected = (child, parent), target not in (parent, child)
            mine, other = counts[parent, child], counts[back] if undirected else 0
            if undirected and (other, parent) > (mine, child) and (other or back in rows):
                continue  # listed in the other direction
            if undirected and other == mine and parent > child:
                continue
            shown = "->" if (parent, child) in rows else "<-" if undirected and back in rows else ""
            sure = proved[parent, child] + (proved[back] if undirected else 0)
            found.append(ArcShare(parent, child, mine + other, sure, other, shown))
        return sorted(found, key=lambda share: (-share.count, share.parent, share.child))

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of the file."""
        return {
            "format": FORMAT,
            "version": __version__,
            "data": vars(self.data),
            "names": list(self.names),
            "score": self.score.to_dict(),
            "constraints": self.constraints.to_dict(),
            "seed": self.seed,
            "time_limit_each": self.time_limit_each,
            "backend": self.backend,
            "asked": self.asked,
            "proved": self.n_proved,
            "structures": self.n_structures,
            "arcs": [vars(share) for share in self.shares()],
            "all_rows": self.all_rows.to_dict(),
            "runs": {str(number): run.to_dict() for number, run in sorted(self.runs.items())},
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file atomically; raise InputError if it cannot be written."""
        save_document(path, self.to_dict())

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str) -> Stability:
        """Read what `to_dict` returned; the counts are computed anew.

        Raises InputError if a value is missing or impossible; `where` begins the sentence.
        """
        f = Fields(values, where)
        names = tuple(f.texts("names"))
        runs = f.fields("runs")
        if len(names) < 2 or len(set(names)) < len(names):
            raise f.contradiction("its names are not those of features and a class")
        if not all(number.isdecimal() and number.isascii() and int(number) >= 1 for number in runs):
            raise f.contradiction("its runs are not numbered from 1")
        return read_as(
            cls,
            f,
            *f,
            names=names,
            score=read_score(f, where),
            constraints=read_constraints(f, where),
            all_rows=SampleRun.read(f.fields("all_rows"), names),
            runs={int(number): SampleRun.read(runs.fields(number), names) for number in runs},
        )

    def __str__(self) -> str:
        """Return the table."""
        finished, total = len(self.runs), self.n_structures
        failed = [run.failure for run in self.runs.values() if run.failure]
        weights, cuts = self.constraints.arc_weights, self.data.discretisation
        lines = [
            f"data       {self.data.name}: {self.data.samples} samples, {self.data.features} features, "
            f"{self.data.classes} classes",
            f"score      {self.score.describe(arc_weights=weights, discretisation=cuts)}",
            f"samples    {finished} of {self.asked} bootstrap samples searched, {self.n_proved} proved; "
            f"seed {self.seed}",
        ]
        if failed:
            lines.append(f"           {len(failed)} failed, for example: {failed[0]}")
        only = among(self.score, self.constraints)
        if only:
            lines.append(f"among      {only}")
        if not self.all_rows.optimal:
            lines.append("           the structure of all rows is not proved best")
        if not total:
            return "\n".join(lines)
        unproved = total > self.n_proved
        if unproved:
            lines.append(
                "           the shares are of all structures found; those of proved optima are beside them"
            )
        lines.append(f"{'share':>7}{'  proved' if unproved else ''}  all rows  arc, or edge of two features")
        for share in self.shares():
            part = f"{share.count / total:7.2f}"
            if unproved:
                part += f"{share.proved / self.n_proved:8.2f}" if self.n_proved else f"{'-':>8}"
            words = f"{share.parent} -> {share.child}"
            if self.names[-1] not in (share.parent, share.child):
                ahead = share.count - share.backwards
                words = f"{share.parent} - {share.child}  ({ahead / total:.2f} ->, {share.backwards / total:.2f} <-)"
            lines.append(f"{part}  {share.in_all_rows or '':^8}  {words}")
        return "\n".join(lines)
