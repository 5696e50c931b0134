"""The native engine: branch and bound on the problem itself, without a MILP and without a solver."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from types import ModuleType

from milpbn.engine.events import Events
from milpbn.engine.tree.dispatch import Dispatcher, ThreadDispatcher
from milpbn.engine.tree.search import BranchAndBound
from milpbn.problem.problem import Problem
from milpbn.solvers.base import Capabilities, Outcome, Settings
from milpbn.solving.engines.base import CERTIFICATE_FULL, Engine, Start
from milpbn.solving.options import Options
from milpbn.util import stages
from milpbn.util.extras import import_extra
from milpbn.util.memory import available_memory
from milpbn.version import __version__

#: Share of the free memory that open nodes and the proof may take.
MEMORY_SHARE = 0.5
#: Free memory in bytes to assume where the system does not tell it.
FALLBACK_MEMORY = 2**32


class NativeEngine(Engine):
    """Branch and bound on the dual of the margin rows (`milpbn.engine.tree.search`); its bounds are certified."""

    name = "native"
    source = "branch and bound"
    capabilities = Capabilities(
        sums_only=True,
        n_best=True,
        certificate=True,
        own_bounds=True,
        milp=False,
        continues_root=True,
        resumes=True,
        spreads=True,
    )

    def version(self) -> str:
        """Return the project's own version."""
        return f"milpbn {__version__} native"

    def dispatcher(self, options: Options) -> AbstractContextManager[Dispatcher | None]:
        """Start workers on this machine, or connect to those of a cluster, if the options ask for them."""
        if options.workers is None and options.dask is None:
            return nullcontext()
        made: AbstractContextManager[Dispatcher] = distributed_module().dispatcher(
            options.workers, options.dask, options.n_threads, options.checkpoint or options.output
        )
        return made

    def run(self, problem: Problem, start: Start, settings: Settings, events: Events) -> Outcome:
        """Branch from where the root bound ended, until proof or until told to stop.

        `start` must have a structure and a root. The root's problem and fixed parent sets are used, not `problem`.
        """
        stages.enter("branch and bound")
        root, free = start.root, available_memory()
        assert root is not None
        assert start.structure is not None
        tree = BranchAndBound(
            root,
            start.structure,
            events,
            dispatcher=start.dispatcher or ThreadDispatcher(settings.threads),
            random_state=settings.seed,
            reduce=settings.reduce,
            memory=MEMORY_SHARE * (FALLBACK_MEMORY if free is None else free) / (1 + (settings.workers or 0)),
            saved=start.saved,
        )
        if start.saved is not None:
            start.saved.drop()
        events.resumable(tree.state)
        finished = tree.run()
        if not finished and root.proof is not None and root.proof.full:
            return Outcome(limit="memory", detail=CERTIFICATE_FULL)
        return Outcome(finished=finished)


def distributed_module() -> ModuleType:
    """Return `milpbn.distributed.clusters`; raise InputError if Dask, an extra, is missing."""
    import_extra("distributed", "dask", "A search on several workers (--workers, --dask)")
    return import_module("milpbn.distributed.clusters")
