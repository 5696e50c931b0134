"""What the stages of a run produce: problems, root, proof, and the outcome of the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from milpbn.certificate.format import Proof
from milpbn.certificate.multiplier_proof import MultiplierProof
from milpbn.engine.events import SavedState
from milpbn.engine.root import Root
from milpbn.problem.problem import Problem
from milpbn.solvers.base import Outcome


@dataclass(frozen=True)
class Products:
    """Problems, root, proof and outcome.

    Before the full problem is built, `problem` is the same over small parent sets; `reduced` is `problem` without the
    parent sets that reduced-cost fixing has excluded. `search` returns the state of the engine's search, from which
    another run can go on. The seconds are those for data and coefficients, and those to build the MILP. `shared` and
    `span` are what a solver's tolerances are relative to (`milpbn.claims.gap.solver_tolerance`). If a certificate is
    wanted, the engine records in `proof`, or in `multiplier_proof` if it maximises decomposable scores. After a
    search over a subset of the samples, `bound_on_all` is one on the score over all of them, `proof_on_all` its proof.
    """

    problem: Problem
    reduced: Problem
    root: Root | None = None
    proof: Proof | None = None
    multiplier_proof: MultiplierProof | None = None
    bound_on_all: float | None = None
    proof_on_all: Proof | None = None
    search: Callable[[], SavedState | None] | None = None
    outcome: Outcome = Outcome()  # noqa: RUF009  # frozen
    coefficient_seconds: float = 0.0
    model_seconds: float = 0.0
    shared: float = 0.0
    span: float = 0.0
