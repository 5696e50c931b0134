"""The options of a search: they never change which structure is best."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from math import inf
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast

from milpbn.claims.gap import Target, tolerance_of
from milpbn.claims.result import Result
from milpbn.data import Dataset, Table
from milpbn.data.dataset import require_class
from milpbn.engine.pool import Pool
from milpbn.errors import InputError
from milpbn.milp.formulation import ACYCLICITY
from milpbn.network.decisions import DecisionRule
from milpbn.network.evaluation import rarest
from milpbn.network.monotone.constraints import MonotoneConstraint, any_monotone, read_monotone
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.structure import Structure
from milpbn.solvers.base import Settings
from milpbn.solving.declared import MOST_LISTED, DeclaredOptions
from milpbn.util.options import declared
from milpbn.util.threads import all_cores
from milpbn.util.validation import convert_fields

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Options(DeclaredOptions):
    """How to search. No option changes which structure is best; what does belongs to the problem.

    Attributes
    ----------
    backend : str
        ``auto``, ``native``, ``branch-and-cut``, ``highs``, ``cbc``, ``cpsat``, ``scip`` or ``pulp:NAME``.
    acyclicity : {"order", "cluster"}
        How a MILP excludes cycles; the backend ``native`` refuses ``cluster``.
    time_limit : float or None
        Wall-clock seconds for everything, reading included.
    memory_limit : int or None
        Bytes of memory for the process and its child processes. A search that comes near the limit becomes depth-first,
        and stops there with what it has found; what is forecast to need more is refused.
    gap_rel, gap_abs, gap_se : float
        Stop when the gap is at most this, relative to the bound, in nats, or in standard errors of the score
        (`Result.standard_error`). 0 asks for a proof.
    threads : int or None
        Threads; by default all cores this process may use.
    workers : int or None
        Search in so many processes on this machine, each with one thread (`milpbn.distributed`); ``native`` only.
    dask : str, Client or None
        Search on the workers of a Dask cluster: address or file of its scheduler, or a client; ``native`` only.
    random_state : int
        Seed.
    start : Structure or None
        A structure to start from, for instance the structure of another learner.
    warm_start : bool
        Start the MILP solver from the best structure of the heuristics; ``native`` refuses False.
    root_bound : bool
        Compute the project's own root bound (`milpbn.engine`) before the MILP solver starts; ``native`` refuses False.
    root_only : bool
        Stop after the root bound, without a solver.
    reduce : bool
        Fix parent sets to 0 that are proved to be in no better structure; a MILP is built without them.
    merge : bool
        Merge identical samples.
    n_best : int
        How many of the best structures to find, with a bound on all others (`Result.alternatives`). The run ends when
        they are proved, and the gaps at which to stop are those between the last of them and that bound.
    within : float or None
        Find all structures whose score is at most so many nats below the best one, but at most `n_best` of them, or
        1000 if `n_best` is 1. Scores that differ by less than the tolerance of a proof count as equal.
    solver_options : mapping
        Parameters of the MILP solver itself: text, numbers or truth values, by name.
    parameters : str or None
        How the found structure gets its parameters: ``ml``, ``cll``, ``hybrid`` or ``temperature``
        (`milpbn.network.parameters`). None means ``ml``, except that a recipe then chooses them. What is not ``ml``
        takes `milpbn.util.clock.PARAMETERS_SHARE` of a time limit, and no part in the search.
    monotone : mapping or None
        Features in which the log-odds of the class never fall (``"+"`` or 1) or never rise (``"-"`` or -1), whatever
        the other features are, such as ``{"age": "+"}``; for text, the states in their order
        (`milpbn.network.monotone.constraints.read_monotone`). Of two classes it is about the rarer one unless
        ``"positive"`` names it; more classes have to be numbers. `parameters` is then ``hybrid`` by default.
    costs : mapping, DataFrame or None
        What decisions cost, by true label and chosen label, or ``{"missed": 20, "false_alarm": 1}`` of two classes,
        where the rarer class is missed unless ``"positive"`` names it. The classifier then predicts the class of least
        expected cost (`milpbn.Classifier.deciding`).
    output : path or None
        File for ``result.json``, written at the end, and meanwhile when it changed, after pauses of up to 15 seconds.
    trace : path or None
        File for the any-time trace, as JSON lines.
    certificate : path or None
        File for the proof of the bound (`milpbn verify`); backends ``native`` and ``branch-and-cut`` only.
    checkpoint : path or None
        File for the state of the search, written at least every minute and at the end; backends ``native`` and
        ``branch-and-cut`` only. If it exists, the search goes on from it; one of other data or options is refused.
    resume : bool
        Refuse to begin anew if there is no checkpoint yet.
    log : path or None
        File for the MILP solver's own log; ``native`` refuses it.
    verbose : bool or None
        Whether to show progress lines on stderr; None shows them in a terminal or a notebook.
    interrupted : callable or None
        Called often, from any thread; the search ends as with Ctrl-C when it returns True.
    on_change : callable or None
        Called in the calling thread soon after a change of incumbent or bound, with the result so far, whose reason is
        ``running``; the search ends as with Ctrl-C when it returns True. Several changes within a short time make one
        call. The trials of a selection do not call it.
    """

    start: Structure | None = None
    verbose: bool | None = None
    interrupted: Callable[[], bool] | None = None
    on_change: Callable[[Result], bool | None] | None = None

    def __post_init__(self) -> None:
        convert_fields(self)
        own = self.solver_options or {}
        if not isinstance(own, Mapping):
            raise InputError(f"solver_options must be a mapping from names to values, got {own!r}.")
        texts = {str(key): str(v).lower() if isinstance(v, bool) else str(v) for key, v in own.items()}
        object.__setattr__(self, "solver_options", texts)
        if self.start is not None and not isinstance(self.start, Structure):
            raise InputError(
                f"start must be a Structure, got {type(self.start).__name__}; `Structure.from_mapping` makes one."
            )
        for item in declared(DeclaredOptions):
            value = getattr(self, item.name)
            if "range" in item.metadata and value is not None:
                item.metadata["range"].check(value)
        ParameterMethod.parse(self.method)
        if self.workers is not None and self.dask is not None:
            raise InputError(
                "--workers (workers) starts processes on this machine, and --dask (dask) takes those of a cluster; "
                "leave out one of them."
            )
        if self.resume and self.checkpoint is None:
            raise InputError(
                "--resume (resume) goes on from the file that --checkpoint (checkpoint) names; add it."
            )
        if self.acyclicity not in ACYCLICITY:
            raise InputError(
                f"There is no acyclicity {self.acyclicity!r}; choose one of {', '.join(ACYCLICITY)}."
            )

    def decision(self, data: Dataset | Table) -> DecisionRule | None:
        """Return how the classifier decides, from the costs and training data; `InputError` if they do not fit."""
        if self.costs is None:
            return None
        require_class(data, "A choice of the class by costs (--costs, costs)")
        data = data if isinstance(data, Dataset) else data.dataset("train")
        classes: Any = data.variables[-1].states
        return DecisionRule.of(cast(Any, self.costs), classes, classes[rarest(data)])

    def monotone_constraints(self, data: Dataset | Table) -> tuple[MonotoneConstraint, ...]:
        """Return which features shall be monotone; `InputError` if they cannot be."""
        if not any_monotone(self.monotone):
            return ()
        require_class(data, "A choice of monotone features (--monotone, monotone)")
        data = data if isinstance(data, Dataset) else data.dataset("train")
        return read_monotone(self.monotone, data.variables, data.variables[-1].states[rarest(data)])

    def settings(self, deadline: float | None) -> Settings:
        """Return what an engine or a solver needs to know of the options, with its deadline by `time.monotonic`."""
        return Settings(
            deadline=deadline,
            threads=self.n_threads,
            workers=self.workers,
            seed=self.random_state,
            options=self.solver_options or {},
            log=None if self.log is None else Path(self.log),
            acyclicity=self.acyclicity,
            reduce=self.reduce,
            root_only=self.root_only,
            resumable=self.checkpoint is not None,
        )

    @property
    def target(self) -> Target:
        """The gaps at which the search stops."""
        return Target(self.gap_rel, self.gap_abs, self.gap_se)

    @property
    def most_listed(self) -> int:
        """Number of structures in the list of the best ones, at most; 1 if no list is wanted."""
        return MOST_LISTED if self.within is not None and self.n_best == 1 else self.n_best

    def pool(self, error: float) -> Pool:
        """Return the empty pool of a search for the best structures; `error` bounds the rounding error of a score."""
        return Pool(self.most_listed, inf if self.within is None else self.within + tolerance_of(error))

    @property
    def method(self) -> str:
        """How the found structure gets its parameters: `parameters`; by default ``ml``, or what `monotone` needs."""
        if self.parameters is not None:
            return self.parameters
        return "hybrid" if any_monotone(self.monotone) else "ml"

    @property
    def n_threads(self) -> int:
        """Threads to use."""
        return all_cores() if self.threads is None else self.threads


class OptionKeywords(TypedDict, total=False):
    """All fields of `Options` as keyword arguments, for editors and type checkers."""

    backend: str
    acyclicity: str
    time_limit: float | None
    gap_rel: float
    gap_abs: float
    threads: int | None
    random_state: int
    start: Structure | None
    n_best: int
    within: float | None
    solver_options: Mapping[str, str] | None
    output: str | os.PathLike[str] | None
    trace: str | os.PathLike[str] | None
    certificate: str | os.PathLike[str] | None
    log: str | os.PathLike[str] | None
    checkpoint: str | os.PathLike[str] | None
    resume: bool
    verbose: bool | None
    interrupted: Callable[[], bool] | None
    gap_se: float
    memory_limit: int | None
    workers: int | None
    dask: object
    warm_start: bool
    root_bound: bool
    root_only: bool
    reduce: bool
    merge: bool
    parameters: str | None
    monotone: object
    costs: object
    on_change: Callable[[Result], bool | None] | None


def takes_options(function: F) -> F:
    """Decorate a function that takes options as keywords: its signature lists each with its default of `Options`."""
    own = signature(function)
    named = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
    for name, one in signature(Options).parameters.items():
        named.append(one.replace(default=None) if name == "solver_options" else one)
    shown = own.replace(parameters=named)

    @wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        try:
            shown.bind(*args, **given)
        except TypeError as error:
            raise TypeError(f"{function.__name__}() {error}") from None
        return function(*args, **given)

    checked.__signature__ = shown  # type: ignore[attr-defined]
    return cast(F, checked)
