"""How to search: everything that does not change which structure is best."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from milpbn.checks import convert_fields
from milpbn.errors import InputError
from milpbn.model.formulation import ACYCLICITY
from milpbn.network.structure import Structure
from milpbn.threads import all_cores


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to search: everything that does not change which structure is best.

    Attributes
    ----------
    backend : str
        ``auto``, ``native``, ``highs``, ``cbc``, ``cpsat``, ``scip`` or ``pulp:NAME``.
    acyclicity : {"order", "cluster"}
        Formulation of acyclicity, for a MILP solver; the backend native refuses another one than ``order``.
    time_limit : float or None
        Wall-clock seconds for everything, reading included.
    gap_rel, gap_abs : float
        Stop at a gap of at most this (relative to the bound; nats). 0 asks for a proof.
    threads : int or None
        Threads; by default all cores this process may use.
    random_state : int
        Seed.
    start : Structure or None
        A structure to begin with, for instance another learner's.
    warm_start : bool
        Hand the best structure of the heuristics to the MILP solver; native refuses to do without.
    root_bound : bool
        Compute the project's own bound before the MILP solver starts (`milpbn.bounds`); native refuses to do without.
    root_only : bool
        Stop after that, without a solver.
    reduce : bool
        Delete the parent sets that this bound shows no better structure has, before the model is made.
    merge : bool
        Merge identical samples.
    subset : int or None
        Sum the margins over so many representative samples only; the bound is then the subset's.
    solver_options : mapping of str to str
        Solver's own parameters.
    output : path or None
        ``result.json``, written when done and at least every 30 seconds.
    trace : path or None
        File for the any-time trace, JSON lines.
    certificate : path or None
        File that gets what proves the bound (`milpbn verify`); backend ``native`` only.
    log : path or None
        File for a MILP solver's own log; native refuses it.
    verbose : bool or None
        Progress lines on stderr; None shows them in a terminal or a notebook.
    """

    backend: str = "auto"
    acyclicity: str = "order"
    time_limit: float | None = None
    gap_rel: float = 0.0
    gap_abs: float = 0.0
    threads: int | None = None
    random_state: int = 0
    start: Structure | None = None
    warm_start: bool = True
    root_bound: bool = True
    root_only: bool = False
    reduce: bool = True
    merge: bool = True
    subset: int | None = None
    solver_options: Mapping[str, str] = field(default_factory=dict)
    output: str | os.PathLike[str] | None = None
    trace: str | os.PathLike[str] | None = None
    certificate: str | os.PathLike[str] | None = None
    log: str | os.PathLike[str] | None = None
    verbose: bool | None = None

    def __post_init__(self) -> None:
        convert_fields(self)
        if self.start is not None and not isinstance(self.start, Structure):
            raise InputError(
                f"start must be a Structure, got {type(self.start).__name__}; `Structure.from_mapping` makes one."
            )
        if self.time_limit is not None and not self.time_limit > 0:
            raise InputError(f"The time limit must be a positive number of seconds, got {self.time_limit}.")
        if self.threads is not None and self.threads < 1:
            raise InputError(f"The number of threads must be at least 1, got {self.threads}.")
        if self.subset is not None and self.subset < 1:
            raise InputError(f"A subset must have at least 1 sample, got {self.subset}.")
        if not 0 <= self.random_state < 2**31:
            raise InputError(f"The seed must lie between 0 and 2147483647, got {self.random_state}.")
        for word, gap in (("relative", self.gap_rel), ("absolute", self.gap_abs)):
            if not gap >= 0:
                raise InputError(f"The {word} gap at which to stop must be at least 0, got {gap}.")
        if self.acyclicity not in ACYCLICITY:
            raise InputError(
                f"There is no acyclicity {self.acyclicity!r}; choose one of {', '.join(ACYCLICITY)}."
            )

    def deadline(self, started: float) -> float | None:
        """Return when to stop, as a value of `time.monotonic`, for a run that began at `started`."""
        return None if self.time_limit is None else started + self.time_limit

    @property
    def n_threads(self) -> int:
        """Threads to use."""
        if self.threads is not None:
            return self.threads
        return all_cores()
