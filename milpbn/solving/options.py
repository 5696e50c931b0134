"""The options of a search: they never change which structure is best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from milpbn.claims.result import Result
from milpbn.errors import InputError
from milpbn.milp.formulation import ACYCLICITY
from milpbn.network.parameters.method import ParameterMethod
from milpbn.network.structure import Structure
from milpbn.solvers.base import Settings
from milpbn.solving.declared import DeclaredOptions
from milpbn.util.clock import PARAMETERS_SHARE
from milpbn.util.threads import all_cores
from milpbn.util.validation import convert_fields

#: The most structures that a search lists. Every one of them is scored from the data, and compared with the others.
MOST_STRUCTURES = 1000


@dataclass(frozen=True, kw_only=True)
class Options(DeclaredOptions):
    """How to search. No option changes which structure is best; what does belongs to the problem.

    Attributes
    ----------
    backend : str
        ``auto``, ``native``, ``highs``, ``cbc``, ``cpsat``, ``scip`` or ``pulp:NAME``.
    acyclicity : {"order", "cluster"}
        How a MILP excludes cycles; the backend ``native`` refuses ``cluster``.
    time_limit : float or None
        Wall-clock seconds for everything, reading included.
    memory_limit : int or None
        Bytes of memory for the process and its child processes. A search that comes near the limit becomes depth-first,
        and stops there with what it has found; what is forecast to need more is refused.
    gap_rel, gap_abs : float
        Stop when the gap is at most this, relative to the bound or in nats. 0 asks for a proof.
    threads : int or None
        Threads; by default all cores this process may use.
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
    solver_options : mapping of str to str
        Parameters of the MILP solver itself.
    parameters : str or None
        How the found structure gets its parameters: ``ml``, ``cll``, ``hybrid`` or ``temperature``
        (`milpbn.network.parameters`). None means ``ml``, except that a recipe then chooses them; ``ml`` itself is taken
        at its word. What is not ``ml`` takes `PARAMETERS_SHARE` of a time limit, and no part in the
        search.
    output : path or None
        File for ``result.json``, written at the end, and meanwhile at every change, but not more than every 15 seconds.
    trace : path or None
        File for the any-time trace, as JSON lines.
    certificate : path or None
        File for the proof of the bound (`milpbn verify`); backend ``native`` only.
    checkpoint : path or None
        File for the state of the search, written at least every minute and at the end; backend ``native`` only. If it
        exists, the search goes on from it, and refuses one of other data or options.
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
        object.__setattr__(self, "solver_options", dict(self.solver_options or {}))
        if self.start is not None and not isinstance(self.start, Structure):
            raise InputError(
                f"start must be a Structure, got {type(self.start).__name__}; `Structure.from_mapping` makes one."
            )
        if self.time_limit is not None and not self.time_limit > 0:
            raise InputError(f"The time limit must be a positive number of seconds, got {self.time_limit}.")
        if self.threads is not None and self.threads < 1:
            raise InputError(f"The number of threads must be at least 1, got {self.threads}.")
        if not 1 <= self.n_best <= MOST_STRUCTURES:
            raise InputError(
                f"The number of best structures must lie between 1 and {MOST_STRUCTURES}, got {self.n_best}."
            )
        if not 0 <= self.random_state < 2**31:
            raise InputError(f"The seed must lie between 0 and 2147483647, got {self.random_state}.")
        for word, gap in (("relative", self.gap_rel), ("absolute", self.gap_abs)):
            if not gap >= 0:
                raise InputError(f"The {word} gap at which to stop must be at least 0, got {gap}.")
        ParameterMethod.parse(self.method)
        if self.resume and self.checkpoint is None:
            raise InputError(
                "--resume (resume) goes on from the file that --checkpoint (checkpoint) names; add it."
            )
        if self.acyclicity not in ACYCLICITY:
            raise InputError(
                f"There is no acyclicity {self.acyclicity!r}; choose one of {', '.join(ACYCLICITY)}."
            )

    def search_deadline(self, started: float) -> float | None:
        """Return the `time.monotonic` value at which the search has to stop, or None. What follows takes time, too."""
        if self.time_limit is None:
            return None
        share = 0.0 if self.method == "ml" else PARAMETERS_SHARE
        return started + (1.0 - share) * self.time_limit

    def settings(self, deadline: float | None) -> Settings:
        """Return what an engine or a solver needs to know of the options.

        Parameters
        ----------
        deadline : float or None
            `time.monotonic` value at which it has to stop.
        """
        return Settings(
            deadline=deadline,
            threads=self.n_threads,
            seed=self.random_state,
            gap_rel=self.gap_rel,
            gap_abs=self.gap_abs,
            options=self.solver_options,
            log=None if self.log is None else Path(self.log),
            acyclicity=self.acyclicity,
            reduce=self.reduce,
        )

    @classmethod
    def among(cls, arguments: Mapping[str, Any]) -> Options:
        """Return the options among a function's arguments, by their names.

        Functions that take options list each in their signature, for completion and type checkers. They call this
        method with their ``locals()``.
        """
        return cls(**{field.name: arguments[field.name] for field in fields(cls)})

    @property
    def method(self) -> str:
        """How the found structure gets its parameters: `parameters`, or ``ml`` if these are None."""
        return "ml" if self.parameters is None else self.parameters

    @property
    def n_threads(self) -> int:
        """Threads to use."""
        if self.threads is not None:
            return self.threads
        return all_cores()
