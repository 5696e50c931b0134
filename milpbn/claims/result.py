"""The result of a run: incumbent, bound, what each claims, and the format of ``result.json``."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from milpbn.claims.about import BackendInfo as BackendInfo
from milpbn.claims.about import DataSummary as DataSummary
from milpbn.claims.about import Seconds as Seconds
from milpbn.claims.about import read_backend, read_data
from milpbn.claims.gap import Gap as Gap
from milpbn.claims.gap import is_optimal as is_optimal
from milpbn.claims.parts import ProvedArcs, Searched, Selection, SubsetClaim, read_pair
from milpbn.claims.reading import (
    BOUND_SOURCES,
    TracePoint,
    read_constraints,
    read_score,
    read_seconds,
    read_status,
    read_structure,
    read_trace,
)
from milpbn.claims.reasons import LIMITED, WITH_STRUCTURE, WITHOUT_STRUCTURE, BoundSource, Limit, Reason
from milpbn.errors import InputError, MilpbnError
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score, gamma_from_p
from milpbn.util.atomic import atomic_write_text
from milpbn.util.jsonable import Fields, parse_object, read_text
from milpbn.version import __version__

if TYPE_CHECKING:
    from milpbn.network.classifier import Classifier


#: Seconds by which sums of times may differ: each time is rounded to microseconds by itself.
TIME_ROUNDING = 5e-6


@dataclass(frozen=True, kw_only=True)
class Result:
    """Outcome of a run, with the contents of ``result.json``.

    Attributes
    ----------
    data : DataSummary
        Training data.
    score : Score
        What was maximised.
    constraints : Constraints
        What the structure had to obey.
    reason : Reason
        What is claimed of the structure; the constructor also takes its text.
    limit : Limit or None
        What stopped the run, only with ``feasible`` and ``no_solution``; the constructor also takes its text.
    structure : Structure or None
        The incumbent.
    objective, bound : float or None
        Score z of the incumbent, computed from the data, and proved upper bound b on every structure's score.
    bound_source : BoundSource
        Whose arithmetic the bound rests on; the constructor also takes the text.
    backend : BackendInfo
        The backend that searched.
    seconds : Seconds
        Wall-clock seconds: in total, and by stage.
    trace : tuple of (seconds, incumbent, bound)
        At every change; the incumbent never falls, the bound never rises.
    seed : int
        Random seed.
    run : str
        Random name of the run, which its certificate has too; empty for an imported solution.
    nodes : int or None
        Branch-and-bound nodes; those of discarded probes are not counted.
    detail : str
        The solver's own status.
    proved : ProvedArcs or None
        Arcs that every optimum has or lacks.
    subset : SubsetClaim or None
        Score and bound of a search over representative samples only. The result's own objective is then the score over
        all samples, its bound is None, and the trace is the subset's.
    selection : Selection or None
        How p and max_parents were chosen.
    parameters : ParameterFit or None
        How the classifier's parameters were fitted; None before the end of a run. The numbers above are of the
        structure under the score's own parameters, whatever this says.
    notes : tuple of str
        What the user should know about data and bound, one sentence each: for instance how many rows were dropped, or
        which bound an import took.
    classifier : Classifier or None
        The structure with its parameters, and with the arcs of ``parameters.added_arcs``; not part of the JSON.
    """

    data: DataSummary
    score: Score
    constraints: Constraints = field(default_factory=Constraints)
    reason: Reason
    limit: Limit | None = None
    structure: Structure | None = None
    objective: float | None = None
    bound: float | None = None
    bound_source: BoundSource = BoundSource.SOLVER
    backend: BackendInfo
    seconds: Seconds = field(default_factory=Seconds)
    trace: tuple[TracePoint, ...] = ()
    seed: int = 0
    run: str = ""
    nodes: int | None = None
    detail: str = ""
    proved: ProvedArcs | None = None
    subset: SubsetClaim | None = None
    selection: Selection | None = None
    parameters: ParameterFit | None = None
    notes: tuple[str, ...] = ()
    classifier: Classifier | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.reason not in tuple(Reason):
            raise ValueError(f"unknown reason {self.reason!r}")
        if self.limit is not None and (self.limit not in tuple(Limit) or self.reason not in LIMITED):
            raise ValueError(f"limit {self.limit!r} does not go with the reason {self.reason!r}")
        object.__setattr__(self, "reason", Reason(self.reason))
        object.__setattr__(self, "limit", None if self.limit is None else Limit(self.limit))
        object.__setattr__(self, "bound_source", BoundSource(self.bound_source))

    @property
    def gap(self) -> Gap:
        """All gaps between objective and bound."""
        return Gap.between(self.objective, self.bound)

    @property
    def optimal(self) -> bool:
        """Whether the structure is proved optimal."""
        return self.reason is Reason.OPTIMAL

    @property
    def searched(self) -> Searched:
        """Score and bound of what the search maximised; trace and certificate have the same numbers.

        They are those of the subset if the search ran over representative samples, else the result's own.
        """
        if self.subset is not None:
            return self.subset
        return Searched(objective=self.objective, bound=self.bound, optimal=self.optimal)

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of ``result.json``: stable keys, unknown numbers as None, never NaN."""
        gap, score = self.gap, self.score.to_dict()
        return {
            "version": __version__,
            "data": vars(self.data),
            "score": score,
            "constraints": self.constraints.to_dict(),
            "status": {
                "reason": self.reason.value,
                "limit": None if self.limit is None else self.limit.value,
                "detail": self.detail,
            },
            "objective": _number(self.objective),
            "bound": _number(self.bound),
            "gap": {key: _number(value) for key, value in vars(gap).items()},
            "structure": None if self.structure is None else self.structure.to_mapping(),
            "class": None if self.structure is None else self.structure.names[-1],
            "backend": vars(self.backend),
            "bound_source": self.bound_source.value,
            "seconds": {key: round(value, 6) for key, value in vars(self.seconds).items()},
            "trace": [[round(t, 6), _number(z), _number(b)] for t, z, b in self.trace],
            "seed": self.seed,
            "run": self.run,
            "nodes": self.nodes,
            "proved": None if self.proved is None else self.proved.to_dict(),
            "subset": None if self.subset is None else self.subset.to_dict(),
            "selection": None if self.selection is None else self.selection.to_dict(),
            "parameters": None if self.parameters is None else self.parameters.to_dict(),
            "notes": list(self.notes),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``result.json`` atomically.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        # UTF-8 cannot encode lone surrogates; JSON escapes them in the same form as Python.
        atomic_write_text(path, text.encode(errors="backslashreplace").decode())

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "The result") -> Result:
        """Read what `to_dict` returned.

        Raises
        ------
        InputError
            If a key is missing, its value unusable, or the result contradicts itself (see `milpbn.claims.reading`);
            `where` begins the sentence.
        """
        f = Fields(values, where)
        if "version" in f:
            f.text("version")
        status = read_status(f)
        objective, bound = read_pair(f)
        result = cls(
            data=read_data(f.fields("data")),
            score=read_score(f, where),
            constraints=read_constraints(f, where),
            reason=status.reason,
            limit=status.limit,
            detail=status.detail,
            structure=read_structure(f, where),
            objective=objective,
            bound=bound,
            bound_source=BoundSource(f.text("bound_source", BOUND_SOURCES)),
            backend=read_backend(f.fields("backend")),
            seconds=read_seconds(f.fields("seconds")),
            trace=read_trace(f),
            seed=f.whole("seed"),
            run="" if f.missing("run") else f.text("run"),
            nodes=None if f.missing("nodes") else f.whole("nodes"),
            proved=None if f.missing("proved") else ProvedArcs.read(f.fields("proved")),
            subset=None if f.missing("subset") else SubsetClaim.read(f.fields("subset")),
            selection=None if f.missing("selection") else Selection.read(f.fields("selection")),
            parameters=None if f.missing("parameters") else ParameterFit.read(f.fields("parameters")),
            notes=() if f.missing("notes") else tuple(f.texts("notes")),
        )
        _check_claims(f, result)
        return result

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
            If the file cannot be read or is not a JSON object.
        """
        try:
            return parse_object(read_text(path, "result"))
        except ValueError as error:
            raise InputError(f"{_where(path)} cannot be used: {error}") from None

    def primal_dual_integral(self) -> float | None:
        """Return the integral of the gap relative to the bound over the run's seconds (0 means an instant proof).

        While there is no incumbent or no bound, the gap counts as 1. The time in which parameters were retrained does
        not count, since the search was over.
        """
        end = self.seconds.total - self.seconds.parameters
        if not self.trace or end <= 0:
            return None
        total, last_t, last_gap = 0.0, 0.0, 1.0
        for t, z, b in self.trace:
            total += last_gap * (t - last_t)
            ratio = Gap.between(z, b).relative_to_bound
            last_t, last_gap = t, 1.0 if ratio is None else min(1.0, ratio)
        return total + last_gap * max(0.0, end - last_t)


def _where(path: str | os.PathLike[str]) -> str:
    return f"The result {str(path)!r}"


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _check_claims(f: Fields, told: Result) -> None:
    """Refuse a result whose parts contradict each other.

    Parameters
    ----------
    f : Fields
        The result as it was written; it makes the sentences, and has keys that a `Result` computes itself.
    told : Result
        What was read from it.

    Raises
    ------
    InputError
        In a sentence that names the two parts.
    """
    structure, searched = told.structure, told.searched
    _check_status(f, told)
    trace = told.trace
    if trace and trace[-1][1:] != (searched.objective, searched.bound):
        raise f.contradiction(f"its trace ends with other numbers ({trace[-1][1]!r}, {trace[-1][2]!r})")
    total, *parts = vars(told.seconds).values()
    if abs(total - sum(parts)) > TIME_ROUNDING * max(1.0, total):
        raise f.contradiction("its seconds do not add up")
    if trace and trace[-1][0] > total + TIME_ROUNDING:
        raise f.contradiction(f"its trace goes on after the {total!r} s that it took")
    if structure is not None and told.data.features != len(structure.names) - 1:
        raise f.contradiction("its structure has other variables than its data have features")
    for key, arcs in ({} if told.proved is None else told.proved.to_dict()).items():
        for arc in arcs:
            if structure is None or arc[0] == arc[1] or not {*arc} <= {*structure.names}:
                raise f.contradiction(
                    f"it lists the arc {arc[0]} -> {arc[1]} ({key}), which no structure over its variables can have"
                )
    _check_selection(f, told)
    for parent, child in () if told.parameters is None else told.parameters.added_arcs:
        features = () if structure is None else structure.names[:-1]
        if structure is None or parent != structure.names[-1] or child not in features:
            raise f.contradiction(
                f"it says that its classifier has the arc {parent} -> {child} as well, which is none from the class to "
                "a feature"
            )


def _check_status(f: Fields, told: Result) -> None:
    reason, structure, objective, subset = told.reason, told.structure, told.objective, told.subset
    if (structure is None) != (objective is None):
        raise f.contradiction("it has a structure without a score, or a score without a structure")
    if reason in (WITHOUT_STRUCTURE if structure is not None else WITH_STRUCTURE):
        raise f.contradiction(
            f"the reason {str(reason)!r} goes with{'out' if structure is not None else ''} a structure"
        )
    # The converse need not hold: rounding counts against the structure, so a result may stay feasible.
    proved = objective is not None and told.bound is not None and is_optimal(objective, told.bound)
    if reason == Reason.OPTIMAL and not proved:
        raise f.contradiction(
            f"it says {str(reason)!r}, but its bound does not prove that its structure is optimal"
        )
    if subset is None:
        return
    if told.bound is not None or told.proved is not None:
        raise f.contradiction("it has a bound or proved arcs for all rows, but only a subset was searched")
    if subset.samples > told.data.samples:
        raise f.contradiction("its subset has more samples than its data")
    if (subset.objective is None) != (objective is None):
        raise f.contradiction("it has only one of the two scores, over the subset and over all rows")
    if not subset.possible:
        raise f.contradiction(
            "it calls the subset's structure optimal, but its score and bound do not prove it"
        )


def _check_selection(f: Fields, told: Result) -> None:
    """Refuse chosen values of p and max_parents that are not the best of the trials, or not those of the score."""
    chosen, score = told.selection, told.score
    if chosen is None:
        return
    if chosen.max_parents != score.max_parents or (
        chosen.p is not None and gamma_from_p(chosen.p) != score.gamma
    ):
        raise f.contradiction("its score is not the one that was selected")
    for key, value in chosen.options.items():
        attribute = "name" if key == "score" else key.replace("-", "_")
        if getattr(score, attribute, value) != value:
            raise f.contradiction(f"its score has another {key} than the one that was selected")
    if not chosen.is_best:
        raise f.contradiction("the selected values are not the best of those that were tried")


class NotSavedError(MilpbnError):
    """A file could not be written at the end of a search; the attribute `result` is what the search found."""

    exit_code = 2

    def __init__(self, text: str, result: Result) -> None:
        super().__init__(text)
        self.result = result
