"""Names, missing solvers and the claims of solvers behind PuLP."""

from __future__ import annotations

import pytest
from backend_cases import Recorder, installed, optimum, small_formulation

from milpbn.errors import InputError, SolverError
from milpbn.milp.milp import Milp
from milpbn.solvers.base import MilpEvents, Outcome, Settings
from milpbn.solvers.pulp_solvers import PulpSolver, pulp_names
from milpbn.solvers.registry import find_solver
from milpbn.solvers.support import child


@pytest.mark.parametrize(
    "short", ["cbc", "copt", "cplex", "glpk", "gurobi", "highs", "mosek", "scip", "xpress"]
)
def test_short_forms_in_any_case(short: str) -> None:
    assert find_solver(f"pulp:{short}").name == f"pulp:{short}"
    assert find_solver(f"PULP:{short.upper()}").name == f"pulp:{short.upper()}"


def test_every_solver_is_usable_or_says_what_it_needs() -> None:
    for name in pulp_names():
        if usable(name):
            assert "through PuLP" in PulpSolver(name).version()
        else:
            with pytest.raises(InputError, match=rf"pulp:{name} needs .*\.$"):
                PulpSolver(name).version()


def test_missing_solver_is_a_sentence_when_solving() -> None:
    missing = next((n for n in ("XPRESS", "CHOCO_CMD", "COPT_CMD") if not usable(n)), None)
    if missing is None:
        pytest.skip("every solver is installed")
    milp = small_formulation("mdl", 0).milp
    with pytest.raises(InputError, match=f"pulp:{missing} needs"):
        PulpSolver(missing).solve(milp, None, Settings(), Recorder(milp))


def usable(name: str) -> bool:
    try:
        PulpSolver(name).version()
    except InputError:
        return False
    return True


def test_unknown_solver_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"no solver 'nonesuch'; choose one of .*gurobi.*GUROBI_CMD"):
        PulpSolver("nonesuch")


def test_options_that_may_hide_a_gap_prove_nothing() -> None:
    milp = small_formulation("sm", 1).milp
    recorder = Recorder(milp)
    outcome = installed("pulp:cbc").solve(milp, None, Settings(options={"allow": "1000"}), recorder)
    assert not outcome.finished
    assert recorder.bounds == []
    recorder.check(optimum(milp))


class Dying(child.ChildSolver):
    """Its solver takes the whole process down."""

    name = "dying"

    def version(self) -> str:
        return "dying 1"

    def solve_here(self, milp: Milp, start: object, settings: Settings, events: MilpEvents) -> Outcome:
        import os

        os.abort()


class Raising(Dying):
    """Its solver raises something of its own."""

    def solve_here(self, milp: Milp, start: object, settings: Settings, events: MilpEvents) -> Outcome:
        raise KeyError("inside")


def test_a_crash_of_the_child_is_a_sentence() -> None:
    milp = small_formulation("mdl", 0).milp
    with pytest.raises(SolverError, match="dying crashed"):
        Dying().solve(milp, None, Settings(), Recorder(milp))
    with pytest.raises(SolverError, match=r"dying failed: KeyError: 'inside'\."):
        Raising().solve(milp, None, Settings(), Recorder(milp))
