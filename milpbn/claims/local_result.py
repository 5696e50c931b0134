"""The result of a search over local scores (``.jkl``), and the format of its file.

There are no data, so there is no classifier, and no score is computed from data. The keys are those of ``result.json``
that have a meaning here, with a key ``format`` that tells the two kinds of files apart.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from milpbn.claims.about import BackendInfo
from milpbn.claims.alternatives import Alternatives
from milpbn.claims.consistency import check_alternatives
from milpbn.claims.gap import Gap, proves
from milpbn.claims.parts import as_json
from milpbn.claims.reading import (
    TracePoint,
    read_alternatives,
    read_parents,
    read_status,
    read_trace,
    structure_of,
)
from milpbn.claims.reasons import WITH_STRUCTURE, BoundSource, Limit, Reason, Status
from milpbn.network.structure import Structure
from milpbn.util.atomic import atomic_write_text
from milpbn.util.declared import NotNegative, read_as
from milpbn.util.jsonable import Fields, dump_json
from milpbn.version import __version__

#: Value of the key ``format``.
FORMAT = "milpbn-local-scores-result"


@dataclass(frozen=True, kw_only=True)
class LocalResult:
    """Outcome of a search for the structure with the largest sum of local scores."""

    #: Name of the file of scores without its ending, and the hash of its variables, parent sets and scores.
    name: str
    sha256: str
    #: Number of variables, and of their parent sets in all.
    variables: int
    parent_sets: int
    reason: Reason
    limit: Limit | None
    detail: str
    #: The best structure that was found; its variables have the order of the file.
    structure: Structure | None
    #: Sum of its local scores, and an upper bound on the sum of every structure. The bound of a MILP solver holds up to
    #: its tolerances.
    objective: float | None
    bound: float | None
    #: The largest distance of the bound from the objective that counts as proved; None in files of earlier versions,
    #: where it was relative to the objective.
    tolerance: NotNegative | None = None
    backend: BackendInfo
    #: Wall-clock seconds, reading included.
    seconds: float
    trace: tuple[TracePoint, ...]
    seed: int
    nodes: int | None
    #: The best structures, if they were asked for.
    alternatives: Alternatives | None = None
    #: Attributes that files of earlier versions lack.
    LATER: ClassVar = ("tolerance",)

    @property
    def gap(self) -> Gap:
        """All gaps between objective and bound."""
        return Gap.between(self.objective, self.bound)

    @property
    def optimal(self) -> bool:
        """Whether the structure is proved optimal; by a MILP solver, up to its tolerances."""
        return self.reason is Reason.OPTIMAL

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of the file; unknown numbers are None."""
        return {
            "format": FORMAT,
            "version": __version__,
            "data": {key: getattr(self, key) for key in ("name", "sha256", "variables", "parent_sets")},
            "status": as_json(Status(self.reason, self.limit, self.detail)),
            "objective": self.objective,
            "bound": self.bound,
            "tolerance": self.tolerance,
            "gap": vars(self.gap),
            "structure": None if self.structure is None else self.structure.to_mapping(),
            "backend": vars(self.backend),
            "bound_source": BoundSource.SOLVER.value,
            "seconds": {"total": round(self.seconds, 6)},
            "trace": [[round(t, 6), z, b] for t, z, b in self.trace],
            "seed": self.seed,
            "nodes": self.nodes,
            "alternatives": as_json(self.alternatives),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result atomically; raise InputError if the file cannot be written."""
        atomic_write_text(path, dump_json(self.to_dict()))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "The result") -> LocalResult:
        """Read what `to_dict` returned.

        Raises InputError if a value is missing or impossible, or values contradict each other; `where` begins the
        sentence.
        """
        f = Fields(values, where)
        f.text("format", (FORMAT,))
        data, status = f.fields("data"), read_status(f)
        structure = None if f.missing("structure") else structure_of(read_parents(f), where)
        found = read_as(
            cls,
            f,
            *f,
            **vars(status),
            name=data.text("name"),
            sha256=data.text("sha256"),
            variables=data.whole("variables", 1),
            parent_sets=data.whole("parent_sets", 1),
            structure=structure,
            seconds=f.fields("seconds").number("total", 0.0),
            trace=read_trace(f),
            alternatives=read_alternatives(f, structure, where),
        )
        objective, bound = found.objective, found.bound
        if (structure is None) != (objective is None) or (
            found.reason in WITH_STRUCTURE and structure is None
        ):
            raise f.contradiction("its structure, its score and its status do not go together")
        if objective is not None and bound is not None and bound < objective:
            raise f.contradiction("its bound is below its score")
        if found.optimal and not proves(objective, bound, found.tolerance):
            raise f.contradiction("it calls its structure optimal, and its score and bound do not prove it")
        if structure is not None and len(structure.names) != found.variables:
            raise f.contradiction("its structure has another number of variables than its data")
        check_alternatives(f, found)
        return found
