"""The project's own engine: no MILP and no solver, but `milpbn.bounds` on the problem itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from milpbn.backends.base import Backend, Capabilities, Events, Outcome, Settings
from milpbn.bounds.proof import Proof
from milpbn.bounds.root import Root
from milpbn.bounds.tree import Tree
from milpbn.errors import InputError
from milpbn.memory import available_memory
from milpbn.model.milp import Milp
from milpbn.network.structure import Structure
from milpbn.options import Options
from milpbn.scores.spec import Score

#: The scores that the engine bounds: concave in the class log-joints.
SCORES = ("sm", "sbm", "cll")
#: The share of the free memory that open parts of the search space may take.
MEMORY_SHARE = 0.5
#: Free memory, in bytes, where nobody says how much there is.
FALLBACK_MEMORY = 2**32
FULL = "the certificate is as large as it may be (500 MB); without one the search would have gone on"


class NativeBackend(Backend):
    """Branch and bound on the dual of the margin rows (`milpbn.bounds.tree`); its bounds are certified."""

    name: ClassVar[str] = "native"
    capabilities: ClassVar[Capabilities] = Capabilities()

    def version(self) -> str:
        """Return the project's own version."""
        from milpbn import __version__

        return f"milpbn {__version__} native"

    def check_options(self, options: Mapping[str, str]) -> None:
        """Refuse every solver option: there is no solver.

        Raises
        ------
        InputError
            If there are any.
        """
        if options:
            raise InputError(
                "The backend native is no solver with options of its own; leave out --solver-option."
            )

    def check_search(self, options: Options) -> None:
        """Refuse the options of a search that are for MILP solvers.

        Raises
        ------
        InputError
            Naming those that were given.
        """
        given = {
            "--no-warm-start": not options.warm_start,
            "--no-root-bound": not options.root_bound,
            f"--acyclicity {options.acyclicity}": options.acyclicity != Options.acyclicity,
            "--log": options.log is not None,
        }
        idle = [name for name, is_given in given.items() if is_given]
        if idle:
            raise InputError(
                f"The backend native, which auto chooses for this score, has no use for {', '.join(idle)}; leave it "
                "out, or name a MILP solver, --backend highs for instance."
            )

    def check_score(self, score: Score) -> None:
        """Refuse the scores that the engine has no bound for.

        Raises
        ------
        InputError
            Naming the backends that take the score.
        """
        if score.name not in SCORES:
            raise InputError(
                f"The backend native maximises {', '.join(SCORES)}, not {score.name}; use --backend highs or auto."
            )

    def solve(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: Events
    ) -> Outcome:
        """Refuse: the engine takes the problem, not its MILP; see `search`."""
        raise InputError("The backend native does not solve models; import a solver's solution instead.")

    def search(
        self,
        root: Root,
        best: Structure,
        settings: Settings,
        *,
        found: Callable[[Structure], Structure | None],
        bounded: Callable[[float], None],
        counted: Callable[[int], None],
        stopping: Callable[[], bool],
        reduce: bool,
        proof: Proof | None,
    ) -> Outcome:
        """Branch from where the root's bound ended, until proof or until it is told to stop.

        Parameters
        ----------
        root : Root
            The bounded problem.
        best : Structure
            The incumbent.
        settings : Settings
            Threads and seed are read.
        found, bounded, counted, stopping, reduce, proof
            See `milpbn.bounds.tree.Tree`.
        """

        def full() -> bool:
            return proof is not None and proof.full

        tree = Tree(
            root,
            best,
            found=found,
            bounded=bounded,
            counted=counted,
            stopping=lambda: stopping() or full(),
            threads=settings.threads,
            random_state=settings.seed,
            reduce=reduce,
            proof=proof,
            memory=MEMORY_SHARE * (available_memory() or FALLBACK_MEMORY),
        )
        finished = tree.run()
        if not finished and full():
            return Outcome(limit="memory", detail=FULL)
        return Outcome(finished=finished)
