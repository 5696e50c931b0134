"""What a backend is: one function from a MILP to events and an outcome, and what it declares it can do."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.model.milp import Milp


@dataclass(frozen=True)
class Capabilities:
    """What a backend can do; what it cannot is refused early, in a sentence.

    Attributes
    ----------
    warm_start : bool
        Takes a complete starting point.
    bound_stream : bool
        Reports its bound while it runs, not only at the end.
    solution_stream : bool
        Hands over incumbents while it runs.
    float_coefficients : bool
        Solves the model as given; otherwise it solves a scaled relaxation whose bound is valid for it.
    lazy_rows : bool
        Adds violated rows inside its tree; otherwise they are added in rounds.
    """

    warm_start: bool = True
    bound_stream: bool = True
    solution_stream: bool = True
    float_coefficients: bool = True
    lazy_rows: bool = False


@dataclass(frozen=True)
class Settings:
    """Limits and options of one solver run.

    Attributes
    ----------
    deadline : float or None
        `time.monotonic` value at which the solver has to stop.
    threads : int
        Threads the solver may use.
    seed : int
        Random seed.
    gap_rel, gap_abs : float
        Stop when the gap is at most this; 0 asks for a proof. Relative to the bound, as the project reports.
    options : mapping of str to str
        Solver's own parameters (``--solver-option``).
    log : Path or None
        File that gets the solver's own log.
    """

    deadline: float | None = None
    threads: int = 1
    seed: int = 0
    gap_rel: float = 0.0
    gap_abs: float = 0.0
    options: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None

    def remaining(self) -> float | None:
        """Return the seconds until the deadline, at least 0, or None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


class Events(Protocol):
    """Where a running backend reports to. All methods may be called from any thread."""

    def point(self, x: NDArray[np.float64], source: str) -> None:
        """Report a feasible point of the MILP, shape (n,)."""

    def bound(self, value: float) -> None:
        """Report a valid upper bound on the MILP's objective, constant included."""

    def nodes(self, count: int) -> None:
        """Report the number of branch-and-bound nodes so far."""

    def stopping(self) -> bool:
        """Whether the backend has to stop now (deadline, interrupt, gap reached)."""
        ...


@dataclass(frozen=True)
class Outcome:
    """How a solver run ended, in the solver's view; the caller judges by the numbers.

    Attributes
    ----------
    finished : bool
        The solver searched everything (within its tolerances).
    infeasible : bool
        The solver proved that no point exists.
    limit : {"time", "node", "memory", "gap", "user"} or None
        What stopped it, where something did.
    detail : str
        The solver's own status word.
    """

    finished: bool = False
    infeasible: bool = False
    limit: str | None = None
    detail: str = ""


class Silence:
    """Events that nobody listens to."""

    def point(self, x: NDArray[np.float64], source: str) -> None:
        """Ignore a point."""

    def bound(self, value: float) -> None:
        """Ignore a bound."""

    def nodes(self, count: int) -> None:
        """Ignore a count."""

    def stopping(self) -> bool:
        """Never stop."""
        return False


class Backend(ABC):
    """One solver.

    Subclasses are stateless: everything of a run is in the arguments of `solve`.
    """

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities] = Capabilities()

    @abstractmethod
    def version(self) -> str:
        """Return the solver's name and version.

        Raises
        ------
        InputError
            If the solver is not installed; the text says how to get it.
        """

    def check_options(self, options: Mapping[str, str]) -> None:
        """Refuse solver options that the solver does not take, by solving a program of one column with them.

        Raises
        ------
        InputError
            Naming the option.
        """
        if options:
            one = np.ones(1)
            row = sp.csr_array(np.ones((1, 1)))
            tiny = Milp(one, 0.0, row, 0 * one, one, 0 * one, one, np.array([True]), ["x"], ["r"])
            self.solve(tiny, None, Settings(options=options), Silence())

    @abstractmethod
    def solve(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: Events
    ) -> Outcome:
        """Maximise the MILP, reporting points and bounds as they are found.

        Parameters
        ----------
        milp : Milp
            The program.
        start : float64 array, shape (n,), or None
            A complete feasible point to start from.
        settings : Settings
            Limits and options.
        events : Events
            Where to report.

        Returns
        -------
        Outcome

        Raises
        ------
        InputError
            If the solver or its licence is missing, or an option is not one of the solver's.
        SolverError
            If the solver fails.
        """


LazyRows = Callable[[NDArray[np.float64]], list[tuple[NDArray[np.int64], NDArray[np.float64], float]]]
"""From a point, integral or not, to violated rows (columns, values, lower bound); for backends with lazy rows."""


class LazyBackend(Backend):
    """A backend that adds violated rows inside its tree."""

    @abstractmethod
    def solve_lazily(
        self,
        milp: Milp,
        separate: LazyRows,
        start: NDArray[np.float64] | None,
        settings: Settings,
        events: Events,
    ) -> Outcome:
        """Maximise the MILP under the rows that `separate` finds; see `Backend.solve`.

        A point is only reported when `separate` finds nothing.
        """


def parse_number(text: str) -> int | float | bool | str:
    """Read an option's value the way solvers write them: true/false, an integer, a float, else text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def unknown_option(backend: str, key: str, reason: str = "") -> InputError:
    """Return the error for an option that a solver does not take."""
    tail = f" ({reason})" if reason else ""
    return InputError(
        f"{backend} does not take the solver option {key!r} with that value{tail}; see its manual."
    )
