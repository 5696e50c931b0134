"""The content of a solution file of another solver, in one form.

The table shows what the files state about optimality, and which bound follows for a result
(`Solution.proved_bound`). The last column is for files without a bound, if the user gives none either:

======  ==================================  ==================  =====================================================
file    status that means "optimal"         bound in the file   bound that follows from the status
======  ==================================  ==================  =====================================================
CPLEX   ``integer optimal solution``        ``bestBound``, if   the objective: this status (101) means a gap of 0
        ``integer optimal, tolerance``      it is written       none: the file does not state the allowed gap
Gurobi  none: the file has no status        none                none (the same for COPT and Xpress)
HiGHS   ``Optimal``                         from version 1.16   none: ``mip_rel_gap`` may be above 0 (default 1e-4)
SCIP    ``optimal solution found`` (shell;  none                the objective: after a gap limit the status is
        PySCIPOpt writes no status)                             ``gap limit reached``
CBC     ``Optimal``                         none                the objective: after a gap limit CBC writes the other
        ``Optimal (within gap tolerance)``                      none: the file does not state the allowed gap
GLPK    ``INTEGER OPTIMAL``                 none                none: HiGHS writes the same format
======  ==================================  ==================  =====================================================

Where no bound follows, the result has the project's own bound, and the user is told so, with the place of the solver's
bound in its log (`Solution.where_bound`).

If the user says at which relative gap the solver was told to stop, a status that means "optimal" gives a bound, too
(`Solution.bound_within`). The solvers' own gaps are 1e-4 (CPLEX, Gurobi, HiGHS) and 0 (SCIP, CBC, GLPK).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Solution:
    """The content of a solution file, with the signs and the status text of the file."""

    #: ``cplex``, ``gurobi``, ``copt``, ``xpress``, ``scip``, ``highs``, ``cbc`` or ``glpk``.
    format: str
    #: Column values by name; a column that is missing is zero.
    values: dict[str, float]
    #: Objective value of the file's program, without the model's constant; None if the file has none. For a solution of
    #: an .mps file see `milpbn.milp.files.model_files.MPS_OBJECTIVE_SIGN`.
    objective: float | None
    #: The solver's bound on this value. Only files of CPLEX, and of HiGHS since 1.16, can contain one.
    bound: float | None
    #: The solver's status, verbatim; empty if the file has none.
    status: str

    @property
    def solver(self) -> str:
        """The solver's name in its usual spelling."""
        return _SOLVERS[self.format].name

    @property
    def says_optimal(self) -> bool:
        """Whether the status calls the solution optimal, within any gap."""
        return re.search(r"(?<!-)\boptimal\b", self.status, re.IGNORECASE) is not None

    @property
    def proved_bound(self) -> float | None:
        """The bound in the file; else the objective, if the status proves a gap of 0; else None."""
        if self.bound is None and self.status.lower() == _SOLVERS[self.format].exact:
            return self.objective
        return self.bound

    @property
    def where_bound(self) -> str:
        """Where the solver's log has its bound, as part of a sentence."""
        return _SOLVERS[self.format].where_bound

    def bound_within(self, gap: float, maximised: bool) -> float | None:
        """Return the bound that follows from an optimal status within a relative gap; None without such a status.

        The bound has the sign of the file, whose program may be a maximisation. `gap`, at least 0 and below 1, is the
        relative gap at which the solver was told to stop. CPLEX, Gurobi, HiGHS and SCIP divide the gap by the objective
        or by something smaller; CBC divides it by the larger one of objective and bound. They also stop within an
        absolute gap of 1e-6 or less.
        """
        if self.objective is None or not self.says_optimal:
            return None
        share = gap / (1.0 - gap) if self.format == "cbc" else gap
        distance = share * abs(self.objective) + ABSOLUTE_GAP
        return self.objective + distance if maximised else self.objective - distance

    @property
    def limit(self) -> str | None:
        """The limit that stopped the solver (time, node, memory, gap or user), None if the status names none."""
        for limit, words in _LIMITS.items():
            if re.search(words, self.status, re.IGNORECASE):
                return limit
        return None


#: The largest of the absolute gaps within which the solvers stop by default (those of CPLEX and HiGHS).
ABSOLUTE_GAP = 1e-6


class _Solver(NamedTuple):
    #: Its name in the usual spelling, and where its log has the bound, as part of a sentence.
    name: str
    where_bound: str
    #: The status in lower case that it writes only after a proof with a gap of 0; see the table above.
    exact: str | None = None


_SOLVERS = {
    "cplex": _Solver(
        "CPLEX",
        "the number after 'Current MIP best bound' at the end of its log, else the last one under 'Best Bound'",
        "integer optimal solution",
    ),
    "gurobi": _Solver(
        "Gurobi",
        "the number after 'best bound' in the line that begins with 'Best objective', at the end of its log",
    ),
    "copt": _Solver("COPT", "the number after 'Best bound' at the end of its log"),
    "xpress": _Solver("Xpress", "the number after 'Final MIP bound' at the end of its log"),
    "highs": _Solver("HiGHS", "the number after 'Dual bound' in the report at the end of its log"),
    "scip": _Solver("SCIP", "the number after 'Dual Bound' at the end of its log", "optimal solution found"),
    "cbc": _Solver("CBC", "the number after 'Upper bound' or 'Lower bound' at the end of its log", "optimal"),
    "glpk": _Solver(
        "GLPK or HiGHS",
        "the number after '<=' or '>=' in the last line of its log with 'mip =' (of HiGHS that after 'Dual bound')",
    ),
}
_LIMITS = {
    "time": r"\btime\b",
    "memory": r"\b(memory|tree size)\b",
    "gap": r"\b(gap|tolerance)\b",
    "node": r"\b(nodes?|iterations?|solution limit|solutions)\b",
    "user": r"\b(user|interrupt(ed)?|aborted|ctrl)",
}
