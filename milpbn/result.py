"""What a run found: the incumbent, the bound, what each claims, and the result.json contract."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from milpbn.atomic import atomic_write_text
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.network.jsonable import parse_object, read_text
from milpbn.network.structure import Structure
from milpbn.scores.constraints import Constraints
from milpbn.scores.spec import Score

if TYPE_CHECKING:
    from milpbn.network.classifier import Classifier

#: A structure is proved optimal when b - z <= OPTIMALITY * max(1, |z|).
OPTIMALITY = 1e-6

REASONS = ("optimal", "feasible", "no_solution", "infeasible", "error")
LIMITS = ("time", "node", "memory", "gap", "user")
#: Who vouches for the bound: the project's own arithmetic, or a MILP solver up to its tolerances.
BOUND_SOURCES = ("certified", "solver")

TracePoint = tuple[float, float | None, float | None]


def is_optimal(objective: float, bound: float) -> bool:
    """Whether the bound proves the objective optimal, from the two numbers alone."""
    return math.isfinite(objective) and bound - objective <= OPTIMALITY * max(1.0, abs(objective))


@dataclass(frozen=True)
class Gap:
    """Distance between incumbent z and bound b.

    Attributes
    ----------
    absolute : float or None
        b - z in nats.
    relative_to_bound : float or None
        (b - z) / |b|, Table 1 of P12 (there in percent).
    relative_to_incumbent : float or None
        (b - z) / |z|, what HiGHS and Gurobi print.
    """

    absolute: float | None = None
    relative_to_bound: float | None = None
    relative_to_incumbent: float | None = None

    @classmethod
    def between(cls, objective: float | None, bound: float | None) -> Gap:
        """Return the gaps between two numbers; None for what they do not define."""
        if objective is None or bound is None:
            return cls()
        absolute = max(0.0, bound - objective)

        def ratio(denominator: float) -> float | None:
            if absolute == 0.0:
                return 0.0
            return absolute / abs(denominator) if abs(denominator) > 1e-9 else None

        return cls(absolute, ratio(bound), ratio(objective))


@dataclass(frozen=True)
class DataSummary:
    """What the result was learnt from.

    Attributes
    ----------
    name, sha256 : str
        Name, and hash of names, states, codes and weights (`Dataset.sha256`).
    samples, unique_samples : int
        Training rows, and different ones among them.
    features, classes : int
        N and the number of classes.
    """

    name: str
    sha256: str
    samples: int
    unique_samples: int
    features: int
    classes: int

    @classmethod
    def of(cls, data: Dataset) -> DataSummary:
        """Summarise a training set."""
        return cls(
            data.name, data.sha256, data.n_samples, data.merged.n_samples, data.n_features, data.n_classes
        )


@dataclass(frozen=True)
class BackendInfo:
    """Which solver ran: registry name, version, threads (None where a solution file does not say)."""

    name: str
    version: str
    threads: int | None


@dataclass(frozen=True)
class Seconds:
    """Wall-clock seconds: of all, of reading and coefficients, of the model, of the search."""

    total: float = 0.0
    coefficients: float = 0.0
    model: float = 0.0
    solve: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Result:
    """Outcome of a run, in the form of ``result.json``.

    Attributes
    ----------
    data : DataSummary
        Training data.
    score : Score
        What was maximised.
    constraints : Constraints
        What the structure had to obey.
    reason : {"optimal", "feasible", "no_solution", "infeasible", "error"}
        ``optimal`` is computed from objective and bound, never copied from a solver.
    limit : {"time", "node", "memory", "gap", "user"} or None
        The limit that stopped the run, only with ``feasible`` and ``no_solution``.
    structure : Structure or None
        The incumbent.
    objective, bound : float or None
        Score z of the incumbent, computed from the data, and proved upper bound b on every structure's score.
    bound_source : {"certified", "solver"}
        Who vouches for the bound.
    backend : BackendInfo
        Who searched.
    seconds : Seconds
        Where the time went.
    trace : tuple of (seconds, incumbent, bound)
        At every change; the incumbent never falls, the bound never rises.
    seed : int
        Random seed.
    run : str
        Random name of the run, which its certificate has too; empty where there was none.
    nodes : int or None
        Branch-and-bound nodes.
    detail : str
        The solver's own status.
    proved : mapping or None
        Arcs that every optimum has (``in``) or lacks (``out``), as pairs of names, among the candidate sets.
    subset : mapping or None
        Of a search over representative samples only: the number of different ones (``samples``), and the
        ``objective``, ``bound`` and ``gap`` of the sum over them, and whether it is proved that no structure has a
        better one (``optimal``). The result's own objective is that of all data, it has no bound, and the trace is
        the subset's.
    selection : mapping or None
        How p and max_parents were chosen (`milpbn.selection.Selection.to_dict`).
    classifier : Classifier or None
        Fitted parameters of the structure; not part of the JSON.
    """

    data: DataSummary
    score: Score
    constraints: Constraints = field(default_factory=Constraints)
    reason: str
    limit: str | None = None
    structure: Structure | None = None
    objective: float | None = None
    bound: float | None = None
    bound_source: str = "solver"
    backend: BackendInfo
    seconds: Seconds = field(default_factory=Seconds)
    trace: tuple[TracePoint, ...] = ()
    seed: int = 0
    run: str = ""
    nodes: int | None = None
    detail: str = ""
    proved: Mapping[str, Any] | None = None
    subset: Mapping[str, Any] | None = None
    selection: Mapping[str, Any] | None = None
    classifier: Classifier | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.reason not in REASONS:
            raise ValueError(f"unknown reason {self.reason!r}")
        if self.limit is not None and (
            self.limit not in LIMITS or self.reason not in ("feasible", "no_solution")
        ):
            raise ValueError(f"limit {self.limit!r} does not go with the reason {self.reason!r}")

    @property
    def gap(self) -> Gap:
        """All gaps between objective and bound."""
        return Gap.between(self.objective, self.bound)

    @property
    def optimal(self) -> bool:
        """Whether the structure is proved optimal."""
        return self.reason == "optimal"

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of ``result.json``: stable keys, unknown numbers as None, never NaN."""
        from milpbn import __version__

        gap, score = self.gap, self.score.to_dict()
        return {
            "version": __version__,
            "data": vars(self.data),
            "score": score,
            "constraints": self.constraints.to_dict(),
            "status": {"reason": self.reason, "limit": self.limit, "detail": self.detail},
            "objective": _number(self.objective),
            "bound": _number(self.bound),
            "gap": {key: _number(value) for key, value in vars(gap).items()},
            "structure": None if self.structure is None else self.structure.to_mapping(),
            "class": None if self.structure is None else self.structure.names[-1],
            "backend": vars(self.backend),
            "bound_source": self.bound_source,
            "seconds": {key: round(value, 6) for key, value in vars(self.seconds).items()},
            "trace": [[round(t, 6), _number(z), _number(b)] for t, z, b in self.trace],
            "seed": self.seed,
            "run": self.run,
            "nodes": self.nodes,
            "proved": None if self.proved is None else dict(self.proved),
            "subset": None if self.subset is None else dict(self.subset),
            "selection": None if self.selection is None else dict(self.selection),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``result.json`` atomically.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        atomic_write_text(
            path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "The result") -> Result:
        """Read what `to_dict` returned.

        Raises
        ------
        InputError
            If a key is missing or its value unusable; `where` begins the sentence.
        """
        try:
            structure = None
            if values["structure"] is not None:
                # The class variable is the last one here, whatever order a tool gave the keys.
                names = sorted(values["structure"], key=lambda name: name == values.get("class"))
                structure = Structure.from_mapping(names, values["structure"])
            return cls(
                data=DataSummary(**values["data"]),
                score=Score.from_dict(values["score"]),
                constraints=Constraints.from_dict(values.get("constraints", {})),
                reason=values["status"]["reason"],
                limit=values["status"]["limit"],
                detail=values["status"].get("detail", ""),
                structure=structure,
                objective=_finite(values["objective"]),
                bound=_finite(values["bound"]),
                bound_source=values["bound_source"],
                backend=BackendInfo(**values["backend"]),
                seconds=Seconds(**values["seconds"]),
                trace=tuple((float(t), _finite(z), _finite(b)) for t, z, b in values["trace"]),
                seed=values["seed"],
                run=str(values.get("run", "")),
                nodes=values.get("nodes"),
                proved=values.get("proved"),
                subset=values.get("subset"),
                selection=values.get("selection"),
            )
        except KeyError as error:
            raise InputError(
                f"{where} lacks the key {error.args[0]!r}; is it a result.json of milpbn?"
            ) from None
        except (TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InputError):
                raise InputError(f"{where}: {error}") from None
            raise InputError(
                f"{where} does not have the form of a result.json of milpbn ({error})."
            ) from None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read a ``result.json``.

        Raises
        ------
        InputError
            If the file cannot be read or is not a result.
        """
        return cls.from_dict(cls.read(path), _where(path))

    @staticmethod
    def read(path: str | os.PathLike[str]) -> dict[str, Any]:
        """Return the contents of a ``result.json`` as they are written.

        Raises
        ------
        InputError
            If the file cannot be read or is no JSON object.
        """
        try:
            return parse_object(read_text(path, "result"))
        except ValueError as error:
            raise InputError(f"{_where(path)} cannot be used: {error}") from None

    def primal_dual_integral(self) -> float | None:
        """Return the integral of the gap relative to the bound over the run's seconds (0 is instant proof).

        A moment without incumbent or bound counts as a gap of 1.
        """
        if not self.trace or self.seconds.total <= 0:
            return None
        total, last_t, last_gap = 0.0, 0.0, 1.0
        for t, z, b in self.trace:
            total += last_gap * (t - last_t)
            ratio = Gap.between(z, b).relative_to_bound
            last_t, last_gap = t, 1.0 if ratio is None else min(1.0, ratio)
        return total + last_gap * max(0.0, self.seconds.total - last_t)


def _where(path: str | os.PathLike[str]) -> str:
    return f"The result {str(path)!r}"


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _finite(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{value!r} is no finite number.")
    return float(value)
