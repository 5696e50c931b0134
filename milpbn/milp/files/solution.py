"""The content of a solution file of CPLEX, Gurobi, SCIP, HiGHS, CBC or GLPK, in one form.

The table shows what the files state about optimality, and which bound follows for a result
(`Solution.proved_bound`). The last column is for files without a bound, if the user gives none either:

======  ==================================  ==================  =====================================================
file    status that means "optimal"         bound in the file   bound that follows from the status
======  ==================================  ==================  =====================================================
CPLEX   ``integer optimal solution``        ``bestBound``, if   the objective: this status (101) means a gap of 0
        ``integer optimal, tolerance``      it is written       none: the file does not state the allowed gap
Gurobi  none: the file has no status        none                none
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


@dataclass(frozen=True)
class Solution:
    """The content of a solution file, with the signs and the status text of the file.

    Attributes
    ----------
    format : str
        ``cplex``, ``gurobi``, ``scip``, ``highs``, ``cbc`` or ``glpk``.
    values : dict of str to float
        Column values by name; a column that is missing is zero.
    objective : float or None
        Objective value of the file's program, without the model's constant; None if the file has none. For a solution
        of an .mps file see :data:`milpbn.milp.files.mps_file.MPS_OBJECTIVE_SIGN`.
    bound : float or None
        The solver's bound on this value. Only files of CPLEX, and of HiGHS since 1.16, can contain one.
    status : str
        The solver's status, verbatim; empty if the file has none.
    """

    format: str
    values: dict[str, float]
    objective: float | None
    bound: float | None
    status: str

    @property
    def solver(self) -> str:
        """The solver's name in its usual spelling."""
        return _NAMES[self.format]

    @property
    def says_optimal(self) -> bool:
        """Whether the status calls the solution optimal, within any gap."""
        return re.search(r"(?<!-)\boptimal\b", self.status, re.IGNORECASE) is not None

    @property
    def proved_bound(self) -> float | None:
        """The bound in the file; else the objective, if the status proves a gap of 0; else None."""
        if self.bound is None and self.status.lower() == _EXACT.get(self.format):
            return self.objective
        return self.bound

    @property
    def where_bound(self) -> str:
        """Where the solver's log has its bound, as part of a sentence."""
        return _LOGS[self.format]

    def bound_within(self, gap: float, maximised: bool) -> float | None:
        """Return the bound that follows from an optimal status within a relative gap; None without such a status.

        Parameters
        ----------
        gap : float
            The relative gap at which the solver was told to stop, at least 0 and below 1.
        maximised : bool
            Whether the file's program is a maximisation.

        Returns
        -------
        float or None
            In the sign of the file. CPLEX, Gurobi, HiGHS and SCIP divide the gap by the objective or by something
            smaller; CBC divides it by the larger one of objective and bound. They also stop within an absolute gap of
            1e-6 or less.
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


_NAMES = {
    "cplex": "CPLEX",
    "gurobi": "Gurobi",
    "scip": "SCIP",
    "highs": "HiGHS",
    "cbc": "CBC",
    "glpk": "GLPK or HiGHS",
}
#: The largest of the absolute gaps within which the solvers stop by default (those of CPLEX and HiGHS).
ABSOLUTE_GAP = 1e-6
_LOGS = {
    "cplex": "the number after 'Current MIP best bound' at the end of its log, else the last one under 'Best Bound'",
    "gurobi": "the number after 'best bound' in the line that begins with 'Best objective', at the end of its log",
    "highs": "the number after 'Dual bound' in the report at the end of its log",
    "scip": "the number after 'Dual Bound' at the end of its log",
    "cbc": "the number after 'Upper bound' or 'Lower bound' at the end of its log",
    "glpk": "the number after '<=' or '>=' in the last line of its log with 'mip =' (of HiGHS that after 'Dual bound')",
}
#: The status in lower case that a solver writes only after a proof with a gap of 0; see the table above.
_EXACT = {"cplex": "integer optimal solution", "scip": "optimal solution found", "cbc": "optimal"}

_LIMITS = {
    "time": r"\btime\b",
    "memory": r"\b(memory|tree size)\b",
    "gap": r"\b(gap|tolerance)\b",
    "node": r"\b(nodes?|iterations?|solution limit|solutions)\b",
    "user": r"\b(user|interrupt(ed)?|aborted|ctrl)",
}
