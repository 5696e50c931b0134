"""What the stages of a run produce: problem, root bound, proof, state of the search, outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from milpbn.certificate.format import Proof
from milpbn.engine.events import SavedState
from milpbn.engine.root import Root
from milpbn.problem.problem import Problem
from milpbn.solvers.base import Outcome


@dataclass(frozen=True)
class Products:
    """What the stages of a run have produced so far.

    Attributes
    ----------
    problem : Problem
        What is maximised; before the full problem is built, the same over small parent sets.
    reduced : Problem
        The same problem without the parent sets that reduced-cost fixing has excluded.
    root : Root or None
        The root bound, from which the native engine continues.
    proof : Proof or None
        The proof of the bound, if a certificate is wanted.
    search : callable or None
        Returns the state of the engine's search, from which another run can go on; None while there is none.
    outcome : Outcome
        How the engine ended.
    coefficient_seconds, model_seconds : float
        Seconds for data and coefficients, and seconds to build the MILP.
    shared, span : float
        What a solver's tolerances are relative to (`milpbn.claims.gap.solver_tolerance`).
    """

    problem: Problem
    reduced: Problem
    root: Root | None = None
    proof: Proof | None = None
    search: Callable[[], SavedState | None] | None = None
    outcome: Outcome = Outcome()  # noqa: RUF009  # frozen
    coefficient_seconds: float = 0.0
    model_seconds: float = 0.0
    shared: float = 0.0
    span: float = 0.0
