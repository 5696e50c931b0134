"""The interface of a MILP solver: a function from a MILP to events and an outcome, and declared capabilities."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.milp.milp import Milp
from milpbn.problem.scores.base import ScoreKind, Shape
from milpbn.problem.scores.registry import score_names


@dataclass(frozen=True)
class Capabilities:
    """What an engine, or the MILP solver behind it, can do. Nothing else decides what it is asked for."""

    #: It maximises only scores that are sums over samples (`ScoreKind.sums_samples`); ``auto`` uses this.
    sums_only: bool = False
    #: It maximises only sums of one term per variable and its parent set, decomposable scores.
    local_only: bool = False
    #: It finds the K best structures, with a bound on all others.
    n_best: bool = False
    #: Its bounds are certified by the project's own arithmetic, and their proof can be written to a file.
    certificate: bool = False
    #: Its bounds are computed by the project's own arithmetic, so that they hold up to no tolerance.
    own_bounds: bool = False
    #: It solves a MILP. Then memory is forecast for one, and the options that concern a MILP are accepted.
    milp: bool = True
    #: It continues from the project's root bound, with the project's kernels and its own local search. Then the root
    #: bound is not cut short, no restarts come before it, and a run without limits is deterministic.
    continues_root: bool = False
    #: It can save the state of its search, and go on from there in another run.
    resumes: bool = False
    #: Its search can be spread over several processes and machines.
    spreads: bool = False
    #: It takes a complete starting point.
    warm_start: bool = True
    #: It reports its bound while it runs, not only at the end.
    bound_stream: bool = True
    #: It adds violated rows inside its tree (`Milp.lazy_rows`); otherwise they are added in rounds.
    lazy_rows: bool = False

    def maximises(self, kind: ScoreKind | type[ScoreKind]) -> bool:
        """Whether it can maximise scores of this kind."""
        if self.local_only:
            return kind.shape is Shape.LINEAR
        return kind.sums_samples or not self.sums_only

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the scores that it can maximise."""
        return score_names(self.maximises)


@dataclass(frozen=True)
class Settings:
    """Limits and options of one run of an engine, or of a solver within it."""

    #: `time.monotonic` value at which the solver has to stop.
    deadline: float | None = None
    threads: int = 1
    #: Processes on this machine that search instead of the threads, and share the memory.
    workers: int | None = None
    seed: int = 0
    #: The solver's own parameters (``--solver-option``), and the file for its own log.
    options: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    #: How a MILP excludes cycles: ``order`` or ``cluster``.
    acyclicity: str = "order"
    #: Fix parent sets to 0 that are proved to be in no better structure: in the native tree, and when a MILP is built.
    reduce: bool = True
    #: Stop before any branching; only for an engine that maximises sums of local terms.
    root_only: bool = False
    #: A checkpoint will ask for the state of the search.
    resumable: bool = False

    def remaining(self) -> float | None:
        """Return the seconds until the deadline, at least 0, or None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


class MilpEvents(Protocol):
    """Receives what a running solver reports. All methods may be called from any thread."""

    def point(self, x: NDArray[np.float64], source: str, objective: float | None = None) -> None:
        """Report a feasible point of the MILP, shape (n,), and its objective as stated by the solver, or None."""
        return

    def bound(self, value: float) -> None:
        """Report a valid upper bound on the MILP's objective, constant included."""
        return

    def nodes(self, count: int) -> None:
        """Report the number of branch-and-bound nodes so far."""
        return

    def stopping(self) -> bool:
        """Whether the solver has to stop now (deadline, interrupt, gap reached)."""
        return False


class IgnoredEvents(MilpEvents):
    """Events that nobody hears, of a run that nobody stops."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended, as the engine or solver states it; the caller judges by the numbers."""

    #: The search is complete, within the solver's tolerances.
    finished: bool = False
    #: The solver proved that no feasible point exists.
    infeasible: bool = False
    #: What stopped the solver, if anything did: ``time``, ``node``, ``memory``, ``gap`` or ``user``.
    limit: str | None = None
    #: The solver's own status.
    detail: str = ""
    #: What proved the optimum, where it was not the search after which the engine is named.
    proved_by: str = ""
    #: Seconds to formulate the MILP; 0 without one.
    model_seconds: float = 0.0


class Solver(ABC):
    """A MILP solver.

    Subclasses are stateless: the state of a run is in the arguments of `solve`.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities] = Capabilities()
    #: Whether the solver runs in a child process, so that `milpbn.solvers.support.canary` examines it there.
    examined_in_child: ClassVar[bool] = False

    @abstractmethod
    def version(self) -> str:
        """Return the solver's name and version; raise InputError, which says how to get it, if it is not installed."""

    def check_options(self, options: Mapping[str, str]) -> None:
        """Raise InputError for an option that the solver does not take, by solving a MILP of one column with it."""
        if options:
            one = np.ones(1)
            row = sp.csr_array(np.ones((1, 1)))
            tiny = Milp(one, 0.0, row, 0 * one, one, 0 * one, one, np.array([True]), ["x"], ["r"])
            self.solve(tiny, None, Settings(options=options), IgnoredEvents())

    @abstractmethod
    def solve(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: MilpEvents
    ) -> Outcome:
        """Maximise the MILP, reporting points and bounds as they are found.

        Parameters
        ----------
        milp : Milp
            The MILP; one with `Milp.lazy_rows` only if the solver has the capability. A point is reported only if it
            violates none of these rows.
        start : float64 array, shape (n,), or None
            A complete feasible point to start from.

        Raises
        ------
        InputError
            If the solver or its licence is missing, or if the solver does not take an option.
        SolverError
            If the solver fails.
        """


def parse_number(text: str) -> int | float | bool | str:
    """Return the value of an option as solvers write it: true or false, an integer, a float, else text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def unknown_option(solver: str, key: str, reason: str = "") -> InputError:
    """Return the error for an option that a solver does not take."""
    tail = f" ({reason})" if reason else ""
    return InputError(
        f"{solver} does not take the solver option {key!r} with that value{tail}; see its manual."
    )


@contextlib.contextmanager
def option_errors(solver: str, key: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn the solver's own errors about an option, when it is set within the block, into `unknown_option`."""
    try:
        yield
    except errors as error:
        raise unknown_option(solver, key) from error
