"""Which variables and tables a question needs, the order in which they are eliminated, and whether there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import MISSING
from milpbn.errors import InputError
from milpbn.network.cpt import Cpt
from milpbn.network.inference.elimination import LogTable, extended_variables
from milpbn.network.inference.order import Order, elimination_order
from milpbn.network.structure import topological_order
from milpbn.util.graphs import with_ancestors
from milpbn.util.memory import format_bytes, require_memory

#: Most numbers in the factors of one question, 2 GiB of float64.
MOST_NUMBERS = 2**28
#: Fewer numbers than this, 32 MiB, always fit.
_SMALL = 2**20
#: Bytes of a number of a factor. Products and their parts, steps and their joint distributions are there together.
_BYTES = 4 * 8


@dataclass(frozen=True, eq=False)
class EliminationPlan:
    """How to answer a question about rows of evidence.

    Attributes
    ----------
    tables : tuple of LogTable
        The tables that the answer depends on.
    free : bool array, shape (V,)
        Variables with an axis; the others have a state in every row.
    order : Order
        The order in which free variables are eliminated, with its costs per row.
    n_states : dict of int to int
        Numbers of states of the free variables.
    """

    tables: tuple[LogTable, ...]
    free: NDArray[np.bool_]
    order: Order
    n_states: dict[int, int]


class Planner:
    """Plans questions to one network.

    Parameters
    ----------
    cpts : sequence of Cpt
        All tables; that of the class variable, whose index is V - 1, may be absent.
    n_variables : int
        Number of variables V.
    """

    def __init__(self, cpts: Sequence[Cpt], n_variables: int) -> None:
        self.tables = [LogTable.of(cpt, n_variables - 1) for cpt in cpts]
        parents = {cpt.variable: cpt.parents for cpt in cpts}
        self._graph = [parents.get(v, ()) for v in range(n_variables)]
        self._acyclic = topological_order(self._graph) is not None

    def plan(
        self,
        codes: NDArray[np.intp],
        free: NDArray[np.bool_],
        kept: Sequence[int] = (),
        *,
        whole: bool = False,
    ) -> EliminationPlan:
        """Return the plan of eliminating the free variables, except for the kept ones.

        Parameters
        ----------
        codes : intp array, shape (M, V)
            The rows of evidence.
        free : bool array, shape (V,)
            Variables that are missing in some row, or kept.
        kept : sequence of int
            Variables that the answer is about.
        whole : bool
            Whether every variable matters. Else those without known or kept descendants are left out, because their
            tables sum to 1. (In a graph with cycles they do not, and all stay.)
        """
        relevant = self.tables
        if not whole and self._acyclic:
            known = np.flatnonzero((codes != MISSING).any(axis=0))
            needed = with_ancestors(self._graph, {*kept, *known.tolist()})
            relevant = [table for table in relevant if table.variable in needed]
        n_states = {
            v: n for table in relevant for v, n in zip(table.axes, table.n_states, strict=True) if free[v]
        }
        extended = extended_variables(codes, free)
        sizes = {v: n + int(extended[v]) for v, n in n_states.items()}
        scopes = [[v for v in table.axes if free[v]] for table in relevant]
        order = elimination_order(scopes, sizes, [v for v in kept if v in sizes])
        return EliminationPlan(tuple(relevant), free, order, n_states)


def require_room(plan: EliminationPlan, names: Sequence[str]) -> None:
    """Check that the factors of a plan, for one row of evidence, fit into memory.

    Raises
    ------
    InputError
        If they have more than `MOST_NUMBERS` numbers, or more than fit into the memory that is available.
    """
    needed = plan.order.total
    if needed < _SMALL:
        return
    remedy = "give values of more variables, or use a structure with fewer parents (max_parents)"
    n = len(plan.order.variables)
    hidden = f"{n} variable{'s' * (n != 1)} without a value" + (
        f", such as {names[plan.order.variables[0]]!r}" if n else ""
    )
    if needed > MOST_NUMBERS:
        size = f"of {format_bytes(needed * 8)}" if np.isfinite(needed) else "larger than any machine's memory"
        raise InputError(
            f"Exact inference over {hidden} would need tables {size} in this structure; the limit is "
            f"{format_bytes(MOST_NUMBERS * 8)}. {remedy[0].upper()}{remedy[1:]}."
        )
    require_memory(int(needed * _BYTES), f"Exact inference over {hidden}", remedy)
