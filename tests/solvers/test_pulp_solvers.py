"""Names, missing solvers and the claims of solvers behind PuLP."""

from __future__ import annotations

import pytest
from backend_cases import Recorder, installed, optimum, small_formulation

from milpbn.errors import InputError
from milpbn.solvers.base import Settings
from milpbn.solvers.pulp_solvers import PulpSolver, pulp_names
from milpbn.solvers.registry import find_solver


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
