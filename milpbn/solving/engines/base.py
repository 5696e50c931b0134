"""The interface of an engine: a function from a problem to events and an outcome, and declared capabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from milpbn.certificate.multiplier_proof import MultiplierProof
from milpbn.engine.events import Events
from milpbn.engine.pool import Pool
from milpbn.engine.root import Root
from milpbn.engine.tree.dispatch import Dispatcher
from milpbn.network.structure import Structure
from milpbn.problem.problem import Problem
from milpbn.solvers.base import Capabilities, Outcome, Settings
from milpbn.solving.options import Options
from milpbn.util.saved_arrays import SavedArrays

CERTIFICATE_FULL = (
    "the certificate has its maximum size (500 MB); a search without a certificate could continue"
)
#: See `Outcome.proved_by`.
BY_SUBSETS = "proved by dynamic programming over subsets of variables"


@dataclass(frozen=True)
class Start:
    """What an engine starts from: the incumbent or the user's own start, the root bound, and an earlier search.

    The problem may lack parent sets of the structure. The root has the whole problem with its fixed parent sets. The
    engine goes on from a `saved` state (`Capabilities.resumes`). The dispatcher is what `Engine.dispatcher` gave. If a
    certificate is wanted, an engine that does not continue from the root records in `proof`. An engine that lists the
    best structures fills the pool, which the root, if there is one, has too.
    """

    structure: Structure | None = None
    root: Root | None = None
    saved: SavedArrays | None = None
    dispatcher: Dispatcher | None = None
    proof: MultiplierProof | None = None
    pool: Pool = field(default_factory=lambda: Pool(1))


class Engine(ABC):
    """An algorithm that maximises a problem. It is stateless: the state of a run is in the arguments of `run`."""

    #: Its name as a value of ``--backend``.
    name: str
    capabilities: Capabilities

    @property
    def source(self) -> str:
        """Its name in progress lines."""
        return self.name

    @abstractmethod
    def version(self) -> str:
        """Return name and version; raise InputError, which says how to get its solver, if that is not installed."""

    def check_options(self, options: Mapping[str, str]) -> None:
        """Raise InputError, which names it, if the engine does not take a solver option.

        Without a MILP none were accepted (`Capabilities.milp`).
        """
        assert not options

    def dispatcher(self, options: Options) -> AbstractContextManager[Dispatcher | None]:
        """Begin to start, or to connect, what expands nodes outside this process, if that is asked for.

        It is there when the search begins, and is closed with the block (`Capabilities.spreads`).
        """
        return nullcontext()

    @abstractmethod
    def run(self, problem: Problem, start: Start, settings: Settings, events: Events) -> Outcome:
        """Maximise a problem, reporting structures and bounds as they are found.

        Parameters
        ----------
        problem : Problem
            The problem without the parent sets that the root bound excludes.
        events : Events
            Receives structures and bounds. `Events.offer` returns the best structure known.

        Raises
        ------
        InputError
            If the solver or its licence is missing, or if the solver does not take an option.
        SolverError
            If the solver fails, or contradicts itself or the data.
        """
