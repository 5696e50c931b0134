"""The result of a run: incumbent, bound, what each claims, and the format of ``result.json``."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from milpbn.claims.about import BackendInfo as BackendInfo
from milpbn.claims.about import DataSummary as DataSummary
from milpbn.claims.about import Seconds as Seconds
from milpbn.claims.alternatives import Alternatives
from milpbn.claims.card import result_card
from milpbn.claims.consistency import check_claims
from milpbn.claims.gap import Gap as Gap
from milpbn.claims.gap import integral_of, proves
from milpbn.claims.gap import is_optimal as is_optimal
from milpbn.claims.other_files import other_kind
from milpbn.claims.parts import Average, ProvedArcs, ScreenedClaim, Searched, SubsetClaim, as_json, read_pair
from milpbn.claims.reading import (
    TracePoint,
    check_among,
    read_alternatives,
    read_constraints,
    read_score,
    read_status,
    read_structure,
    read_trace,
    save_document,
)
from milpbn.claims.reasons import LIMITED, BoundSource, Limit, Reason, Status
from milpbn.claims.selection import Selection
from milpbn.data.request import DataRequest
from milpbn.errors import InputError, MilpbnError, SolverError
from milpbn.network.averaged import AveragedClassifier
from milpbn.network.classifier import Classifier
from milpbn.network.formats.classifier_files import load_any_classifier
from milpbn.network.parameters.record import ParameterFit
from milpbn.network.structure import Structure
from milpbn.problem.class_free import among
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.util.declared import NotNegative, read_as
from milpbn.util.jsonable import Fields, parse_object, read_text, shorten
from milpbn.version import __version__

#: The attributes of a result that are claims, or None, in the order of the file.
CLAIMS = ("proved", "subset", "screened", "alternatives", "selection", "parameters", "average", "request")


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
    tolerance : float or None
        The largest b - z in nats that counts as proved, for what was searched (`searched`). None in files of earlier
        versions, where it was relative to the score.
    standard_error : float or None
        Estimated standard deviation of the structure's score over data sets of this size, in nats, for what was
        searched (`searched`); see `milpbn.problem.rescore.standard_error`. None if it is not defined for the score.
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
        all samples, its bound one on every structure's score over them, or None, and the trace is the subset's.
    screened : ScreenedClaim or None
        Bound and gap over the parent sets that screening kept. The result's own bound is then None, and the trace has
        the bounds over the kept sets. None if no parent set was left out.
    alternatives : Alternatives or None
        The K best structures with a bound on all others, if more than one was asked for.
    selection : Selection or None
        How p and max_parents were chosen.
    parameters : ParameterFit or None
        How the classifier's parameters were fitted; None before the end of a run. The numbers above are of the
        structure under the score's own parameters, whatever this says.
    average : Average or None
        How many networks the classifier averages, if this was asked for. All else is about the first of them.
    request : DataRequest or None
        How the training data were read; None if they were no file and no name, or not read as a whole.
    notes : tuple of str
        What the user should know about data and bound, one sentence each: for instance how many rows were dropped, or
        which bound an import took.
    classifier : Classifier, AveragedClassifier or None
        The structure with its parameters, and with the arcs of ``parameters.added_arcs``. Under `average` the mean of
        several. It is not part of the JSON: a result that was read from a file has one only if `load` was told its
        file, and else raises an `InputError` that says so. None if no structure was found.
    """

    data: DataSummary
    score: Score
    constraints: Constraints = field(default_factory=Constraints)
    reason: Reason
    limit: Limit | None = None
    structure: Structure | None = None
    objective: float | None = None
    bound: float | None = None
    tolerance: NotNegative | None = None
    standard_error: NotNegative | None = None
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
    screened: ScreenedClaim | None = None
    alternatives: Alternatives | None = None
    selection: Selection | None = None
    parameters: ParameterFit | None = None
    average: Average | None = None
    request: DataRequest | None = None
    notes: tuple[str, ...] = ()
    classifier: Classifier | AveragedClassifier | None = field(
        default_factory=lambda: None, repr=False, compare=False
    )
    #: Value of the key ``format`` in its file; None without that key.
    FORMAT: ClassVar[str | None] = None
    #: Attributes that files of earlier versions lack.
    LATER: ClassVar = ("tolerance", "standard_error", "run", "nodes", "notes", *CLAIMS)

    def __repr__(self) -> str:
        gap = self.gap.absolute
        return (
            f"<Result of {shorten(self.data.name)}: {self.described_score}, {self.reason}{self.among_clause}, "
            f"score {'unknown' if self.objective is None else format(self.objective, '.6f')}, "
            f"gap {'unknown' if gap is None else format(gap, '.6f')} nats>"
        )

    @property
    def described_data(self) -> str:
        """The training data in words: numbers of samples and variables."""
        return self.data.described

    @property
    def described_score(self) -> str:
        """All that decides the value of a structure, in words: the score, weights of arcs, and how columns were cut."""
        return self.score.describe(
            arc_weights=self.constraints.arc_weights, discretisation=self.data.discretisation
        )

    def __getattr__(self, name: str) -> Any:
        if name == "classifier":  # `from_dict` removed it: the file has none
            raise InputError(
                "This result was read from result.json, which holds no classifier; read the file of --classifier, too, "
                "with Result.load('result.json', classifier='classifier.json') or milpbn.network.load_classifier."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

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
    def gap_se(self) -> float | None:
        """The gap of what was searched in standard errors of the score; None if one of the two is unknown or 0."""
        gap = self.searched.gap.absolute
        return None if gap is None or not self.standard_error else _number(gap / self.standard_error)

    @property
    def optimal(self) -> bool:
        """Whether the structure is proved optimal, among the structures that `among` names."""
        return self.reason is Reason.OPTIMAL

    def proves(self, objective: float | None, bound: float | None, error: float = 0.0) -> bool:
        """Whether a bound proves that a score, which may be `error` nats too high, is the best one."""
        return proves(objective, bound, self.tolerance, error)

    @property
    def among(self) -> str:
        """The structures that bound and optimum are about, as words after "among"; empty if all that are allowed."""
        return among(self.score, self.constraints)

    @property
    def among_clause(self) -> str:
        """The same for the end of a claim: a comma and "among ...", or empty."""
        return f", among {self.among}" if self.among else ""

    @property
    def searched(self) -> Searched:
        """Score and bound of what the search maximised; trace and certificate have the same numbers.

        They are those of the subset if the search ran over representative samples, those over the kept parent sets if
        it ran over screened ones, else the result's own.
        """
        if self.subset is not None:
            return self.subset
        if self.screened is not None:
            return self.screened
        return Searched(objective=self.objective, bound=self.bound, optimal=self.optimal)

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of ``result.json``: stable keys, unknown numbers as None, never NaN."""
        return {
            "version": __version__,
            "data": vars(self.data),
            "score": self.score.to_dict(),
            "constraints": self.constraints.to_dict(),
            "among": self.among or None,
            "status": as_json(Status(self.reason, self.limit, self.detail)),
            "objective": _number(self.objective),
            "bound": _number(self.bound),
            "tolerance": _number(self.tolerance),
            "gap": {key: _number(value) for key, value in vars(self.gap).items()},
            "standard_error": _number(self.standard_error),
            "gap_se": self.gap_se,
            "structure": None if self.structure is None else self.structure.to_mapping(),
            "class": None if self.structure is None or not self.data.classes else self.structure.names[-1],
            "backend": vars(self.backend),
            "bound_source": self.bound_source.value,
            "seconds": {key: round(value, 6) for key, value in vars(self.seconds).items()},
            "trace": [[round(t, 6), _number(z), _number(b)] for t, z, b in self.trace],
            "seed": self.seed,
            "run": self.run,
            "nodes": self.nodes,
            **{key: None if (claim := getattr(self, key)) is None else claim.to_dict() for key in CLAIMS},
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the numbers and the network."""
        return result_card(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write ``result.json`` atomically; raise InputError if it cannot be written."""
        save_document(path, self.to_dict())

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "The result") -> Self:
        """Read what `to_dict` returned.

        Raises InputError if a key is missing, its value unusable, or the result contradicts itself; `where` begins the
        sentence.
        """
        f = Fields(values, where)
        f.known(keys_of(cls))  # a key of a later version may limit what the others claim
        if "version" in f:
            f.text("version")
        status = read_status(f)
        objective, bound = read_pair(f)
        structure = read_structure(f, where)
        request = None if f.missing("request") else f.get("request")
        result = read_as(
            cls,
            f,
            *f,
            **vars(status),
            score=cls.read_score(f, where),
            constraints=read_constraints(f, where),
            structure=structure,
            objective=objective,
            bound=bound,
            trace=read_trace(f),
            alternatives=read_alternatives(f, structure, where),
            request=None if request is None else DataRequest.from_dict(request, f"{where}, request"),
            classifier=None,
        )
        check_among(f, result.among)
        check_claims(f, result)
        if result.structure is not None:
            object.__delattr__(result, "classifier")  # so that reading it raises, and does not return None
        return result

    @classmethod
    def read_score(cls, f: Fields, where: str) -> Score:
        """Read the score; see `from_dict`."""
        return read_score(f, where)

    @classmethod
    def load(cls, path: str | os.PathLike[str], classifier: str | os.PathLike[str] | None = None) -> Self:
        """Read a ``result.json``, and the classifier of the same run.

        Parameters
        ----------
        path : path-like
            The file of ``--output`` or `save`.
        classifier : path-like, optional
            The file of ``--classifier`` or `milpbn.network.save_classifier`; without it the result has no `classifier`.

        Raises
        ------
        InputError
            If a file cannot be read or is none of its kind, or if the classifier is of other data than the result.
        """
        result = cls.from_dict(cls.read(path), _where(path))
        if classifier is None:
            return result
        found = load_any_classifier(classifier)
        first = found.members[0] if isinstance(found, AveragedClassifier) else found
        data = getattr(first, "provenance", {}).get("data")
        if not isinstance(data, dict) or data.get("sha256") != result.data.sha256:
            raise InputError(
                f"The classifier {os.fspath(classifier)!r} is of other data than the result {os.fspath(path)!r}; "
                "give the files of one run."
            )
        object.__setattr__(result, "classifier", found)
        return result

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Return the contents of a ``result.json`` as they are written; raise InputError if it is no JSON object."""
        try:
            values = parse_object(read_text(path, "result"))
        except ValueError as error:
            raise InputError(f"{_where(path)} cannot be used: {error}") from None
        own = cls.FORMAT is not None and values.get("format") == cls.FORMAT
        if not own and (other := other_kind(values)):
            raise InputError(f"{_where(path)} cannot be used: {other}.")
        return values

    def primal_dual_integral(self) -> float | None:
        """Return the integral of the gap relative to the bound over the run's seconds (0 means an instant proof).

        While there is no incumbent or no bound, the gap counts as 1. The time in which parameters were retrained does
        not count, nor that of the other networks of an average, since the search was over.
        """
        end = self.seconds.total - self.seconds.parameters - self.seconds.average
        return integral_of(self.trace, end) if self.trace and end > 0 else None


def _where(path: str | os.PathLike[str]) -> str:
    return f"The result {str(path)!r}"


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


class NotSavedError(MilpbnError):
    """A file could not be written at the end of a search; the attribute `result` is what the search found."""

    exit_code = 2

    def __init__(self, text: str, result: Result) -> None:
        super().__init__(text)
        self.result = result


class FailedSearchError(SolverError):
    """A solver failed in the middle of a search; the attribute `result` is what the search had found before."""

    def __init__(self, text: str, result: Result) -> None:
        super().__init__(text)
        self.result = result


def keys_of(kind: type[Result]) -> tuple[str, ...]:
    """Return all keys of the file: the attributes, but for those under ``status``, and what follows from them."""
    own = (a.name for a in fields(kind) if a.name not in ("reason", "limit", "detail", "classifier"))
    return *own, "version", "among", "status", "gap", "gap_se", "class"
