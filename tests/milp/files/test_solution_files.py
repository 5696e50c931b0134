"""Solution files of actual runs and of the documented forms, intact and damaged."""

from __future__ import annotations

import contextlib
import gzip

import numpy as np
import pytest
from files_common import (
    knapsack,
    market_split,
    needs_scip,
    optimum,
    random_milp,
    run_cbc,
    run_highs,
    run_scip,
)

from milpbn.errors import InputError
from milpbn.milp.files.model_files import MPS_OBJECTIVE_SIGN, write_lp, write_mps
from milpbn.milp.files.solution import Solution
from milpbn.milp.files.solution_files import read_solution

CPLEX = """<?xml version = "1.0" encoding="UTF-8" standalone="yes"?>
<CPLEXSolution version="1.2">
 <header
   problemName="m.lp"
   solutionName="incumbent"
   solutionIndex="-1"
   objectiveValue="122.5"
   solutionTypeValue="3"
   solutionTypeString="primal"
   solutionStatusValue="107"
   solutionStatusString="time limit exceeded"
   solutionMethodString="mip"
   primalFeasible="1"
   dualFeasible="1"
   MIPNodes="0"
   MIPIterations="3"
   writeLevel="1"/>
 <quality
   epInt="1.0000000000000001e-05"
   maxX="40"/>
 <linearConstraints>
  <constraint name="c1" index="0" slack="0"/>
 </linearConstraints>
 <variables>
  <variable name="x1" index="0" value="40"/>
  <variable name="x2" index="1" value="-10.5"/>
 </variables>
</CPLEXSolution>
"""
INNER = CPLEX.partition("\n")[2]
POOL = (
    '<?xml version = "1.0"?>\n<CPLEXSolutions version="1.2">\n'
    + INNER.replace('"incumbent"', '"p1"').replace("40", "39")
    + INNER
    + "</CPLEXSolutions>\n"
)
GUROBI = "# Solution for model m\n# Objective value = 1.225e+02\nx1 40\nx2 -1.05e+01\nx3 0\n"
#: COPT 8.0, `Model.write`; Xpress 9.9, `writeSlxSol`.
COPT = "# Objective value 122.5\nx1                   40\nx2                   -10.5\n"
XPRESS = (
    "NAME          m\n  C x1                                     40\n  C x2                  -10.5\nENDATA\n"
)
SCIP = """solution status: time limit reached
objective value:                                122.5
x1                                                 40 \t(obj:3)
x2                                              -10.5 \t(obj:-0.25)
"""
HIGHS = """Model status
Time limit reached

# Primal solution values
Feasible
Objective 122.5
# Columns 2
x1 40
x2 -10.5
# Rows 1
c1 7

# Dual solution values
None
"""
CBC = """Stopped on time - objective value 122.50000000
      0 x1                    40                       3
**    7 x2                 -10.5                   -0.25
"""
#: The report of glpsol 5.0 (`-o`), shortened; a name of more than 12 characters stands alone on its line.
GLPK = """Problem:
Rows:       1
Columns:    3 (2 integer, 1 binary)
Non-zeros:  2
Status:     INTEGER OPTIMAL
Objective:  obj = 122.5 (MAXimum)

   No.   Row name        Activity     Lower bound   Upper bound
------ ------------    ------------- ------------- -------------
     1 c1                          7                           7

   No. Column name       Activity     Lower bound   Upper bound
------ ------------    ------------- ------------- -------------
     1 x1           *             40             0
     2 x2                      -10.5
     3 id_bdc77f270f356526
                    *              0             0             1

Integer feasibility conditions:

KKT.PE: max.abs.err = 2.22e-16 on row 1
        max.rel.err = 5.57e-17 on row 1
        High quality

End of output
"""
GLPK_RAW = "c Problem:    \nc Rows:       1\nc Columns:    2\nc\ns mip 1 2 o 122.5\ni 1 7\nj 1 40\nj 2 -10.5\ne o f\n"
SAMPLES = {"cplex": CPLEX, "gurobi": GUROBI, "copt": COPT, "xpress": XPRESS, "scip": SCIP, "highs": HIGHS}
SAMPLES |= {"cbc": CBC, "glpk": GLPK}


def read_text(tmp_path, text) -> Solution:
    path = tmp_path / "m.sol"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_solution(path)


@pytest.mark.parametrize("solver", SAMPLES)
@pytest.mark.parametrize("disguise", ["plain", "crlf", "bom", "gzip"])
def test_documented_forms_are_read(tmp_path, solver, disguise):
    text = SAMPLES[solver].encode()
    text = {
        "plain": text,
        "crlf": text.replace(b"\n", b"\r\n"),
        "bom": b"\xef\xbb\xbf" + text,
        "gzip": gzip.compress(text),
    }[disguise]
    solution = read_text(tmp_path, text)
    assert solution.format == solver
    assert {name: value for name, value in solution.values.items() if value} == {"x1": 40.0, "x2": -10.5}
    assert solution.objective == (None if solver == "xpress" else 122.5)
    assert solution.bound is None
    if solver in ("gurobi", "copt", "xpress"):
        assert (solution.status, solution.limit) == ("", None)
    elif solver == "glpk":
        assert (solution.status, solution.limit, solution.proved_bound) == ("INTEGER OPTIMAL", None, None)
    else:
        words = {"cplex": "time limit exceeded", "cbc": "Stopped on time"}
        assert solution.status.lower() == words.get(solver, "time limit reached").lower()
        assert solution.limit == "time"


def test_cplex_pool_gives_the_incumbent_else_the_first(tmp_path):
    assert read_text(tmp_path, POOL).values["x1"] == 40
    assert read_text(tmp_path, POOL.replace('"incumbent"', '"p2"')).values["x1"] == 39


def test_the_bound_of_cplex_is_read(tmp_path):
    assert read_text(tmp_path, CPLEX.replace("MIPNodes=", 'bestBound="130.5" MIPNodes=')).bound == 130.5


def test_the_bound_of_highs_1_16_is_read(tmp_path):
    """New in HiGHS 1.16: bound and gap of an optimum in the raw and sparse styles, and the word ``sparse``."""
    raw = HIGHS.replace("Time limit reached", "Optimal").replace(
        "Objective 122.5\n", "Objective 122.5\nObjective_bound 122.6\nMIP_rel_gap 0\n"
    )
    head, _, rest = raw.partition("# Columns 2\nx1 40\nx2 -10.5\n")
    assert rest
    sparse = head + "# Columns -2 sparse\nx1 40 1\nx2 -10.5 4\n" + rest
    for text in (raw, sparse):
        solution = read_text(tmp_path, text)
        assert (solution.format, solution.objective, solution.bound) == ("highs", 122.5, 122.6)
        assert solution.values == {"x1": 40.0, "x2": -10.5}
    assert read_text(tmp_path, raw.replace("122.6", "inf")).bound is None
    with pytest.raises(InputError, match="line 9: '# Columns 2 dense'"):
        read_text(tmp_path, raw.replace("# Columns 2", "# Columns 2 dense"))
    table = (
        "Columns\n    Index Status        Lower        Upper       Primal         Dual  Type        Name\n"
        "        0                   0           50           40               Integer     x1\nRows\n\n"
        "Model status: Optimal\n\nObjective value: 122.5\nObjective bound: 122.6\nMIP rel gap: 0%\n"
    )
    solution = read_text(tmp_path, table)
    assert (solution.values, solution.objective, solution.bound) == ({"x1": 40.0}, 122.5, 122.6)


def test_gurobi_without_comments_is_read(tmp_path):
    solution = read_text(tmp_path, "x1 40\nx2 -10.5\n")
    assert (solution.format, solution.objective, solution.values["x2"]) == ("gurobi", None, -10.5)


def test_cbc_with_rows_printed_first_is_read(tmp_path):
    text = "Optimal - objective value 1\n 0 r0 7 0\n 1 x1 2 0\n 0 x1 40 3\n 1 x2 -10.5 0\n"
    assert read_text(tmp_path, text).values == {"x1": 40.0, "x2": -10.5}


def test_the_report_of_a_linear_program_of_glpk_is_read(tmp_path):
    """Its columns have a state before the value, and its long names as well."""
    table = GLPK.replace("INTEGER OPTIMAL", "OPTIMAL").replace(
        "     1 x1           * ", "     1 x1           NU"
    )
    table = table.replace("                    *              0", "                    NS             0")
    assert read_text(tmp_path, table).values == {"x1": 40.0, "x2": -10.5, "id_bdc77f270f356526": 0.0}


def test_an_incumbent_of_glpk_is_not_called_optimal(tmp_path):
    assert read_text(tmp_path, GLPK).says_optimal
    assert not read_text(tmp_path, GLPK.replace("INTEGER OPTIMAL", "INTEGER NON-OPTIMAL")).says_optimal


@pytest.mark.parametrize("text", [GLPK_RAW, GLPK_RAW.partition("c\n")[2]])
def test_files_that_number_columns_are_refused_with_what_to_write_instead(tmp_path, text):
    with pytest.raises(InputError, match=r"numbers its columns and does not name them.*glpsol -o FILE"):
        read_text(tmp_path, text)


@pytest.mark.parametrize(
    ("status", "limit"),
    [
        ("integer optimal solution", None),
        ("Optimal", None),
        ("optimal solution found", None),
        ("integer optimal, tolerance", "gap"),
        ("gap limit reached", "gap"),
        ("node limit exceeded, integer feasible", "node"),
        ("Stopped on iterations", "node"),
        ("Solution limit reached", "node"),
        ("memory limit reached", "memory"),
        ("aborted, integer feasible", "user"),
        ("user interrupt", "user"),
        ("Interrupted by user", "user"),
    ],
)
def test_limits_are_recognised(status, limit):
    assert Solution("cplex", {}, None, None, status).limit == limit


@pytest.mark.parametrize("suffix", ["lp", "mps"])
@pytest.mark.parametrize(
    "solver", ["highs-0", "highs-1", "highs-3", "highs-4", "cbc", pytest.param("scip", marks=needs_scip)]
)
def test_solutions_of_real_solvers_are_read_as_optimal(tmp_path, solver, suffix):
    model = random_milp(8)
    value, _ = optimum(model)
    path, solution_path = tmp_path / f"m.{suffix}", tmp_path / "m.sol"
    (write_lp if suffix == "lp" else write_mps)(model, path)
    if solver.startswith("highs"):
        run_highs(path, solution_path, style=int(solver[-1]))
    elif solver == "scip":
        run_scip(path, solution_path)
    else:
        run_cbc(path, solution_path)
    solution = read_solution(solution_path)
    x = np.array([solution.values.get(name, 0.0) for name in model.column_names])
    assert solution.format == ("glpk" if solver == "highs-3" else solver.partition("-")[0])
    assert set(solution.values) <= set(model.column_names)
    # HiGHS's table has 6 digits, CBC's list 8.
    assert model.objective(x) == pytest.approx(value, rel=1e-4)
    assert model.violation(x) < 1e-2
    sign = 1 if suffix == "lp" else MPS_OBJECTIVE_SIGN
    assert sign * solution.objective + model.constant == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("solver", ["highs", "cbc", pytest.param("scip", marks=needs_scip)])
def test_solutions_of_stopped_solvers_are_read_as_limited(tmp_path, solver):
    """A file with an incumbent states the limit; a file without an incumbent is refused."""
    for model, seconds, solved in ((knapsack(), 1, True), (market_split(), 0.4, False)):
        path, solution_path = tmp_path / "m.lp", tmp_path / "m.sol"
        write_lp(model, path)
        if solver == "highs":
            run_highs(path, solution_path, time_limit=seconds)
        elif solver == "scip":
            run_scip(path, solution_path, time_limit=seconds)
        else:
            run_cbc(path, solution_path, "-sec", str(seconds), "-timeMode", "elapsed")
        if solved:
            solution = read_solution(solution_path)
            assert solution.limit == (None if solver == "scip" else "time")
            x = np.array([solution.values.get(name, 0.0) for name in model.column_names])
            assert model.violation(x) < 1e-6
            assert model.objective(x) == pytest.approx(solution.objective)
        else:
            with pytest.raises(InputError, match="no solution"):
                read_solution(solution_path)


NO_SOLUTION = {
    "scip": "solution status: infeasible\nno solution available\n",
    "scip-status-only": "solution status: time limit reached\n",
    "highs": "Model status\nInfeasible\n\n# Primal solution values\nNone\n\n# Dual solution values\nNone\n",
    "highs-infeasible-point": HIGHS.replace("Feasible", "Infeasible"),
    "cbc-infeasible": "Infeasible - objective value 2.00000000\n      0 x  1  1\n",
    "cbc-integer": "Integer infeasible - objective value 2.00000000\n      0 x  0.5  1\n",
    "cbc-time": "Stopped on time (no integer solution - continuous used) - objective value 9.5\n 0 x 0.5 1\n",
    "cbc-unbounded": "Unbounded - objective value 0.00000000\n",
    "cplex": CPLEX.partition(" <linear")[0] + "</CPLEXSolution>\n",
    "scip-infinite": "solution status: time limit reached\nobjective value:    +infinity\n",
    "gurobi": "# Solution for model m\n# Objective value = 0\n",
    "glpk": GLPK.replace("INTEGER OPTIMAL", "INTEGER UNDEFINED"),
    "glpk-infeasible": GLPK.replace("INTEGER OPTIMAL", "INFEASIBLE (FINAL)"),
}


@pytest.mark.parametrize("text", NO_SOLUTION.values(), ids=NO_SOLUTION)
def test_files_without_a_solution_are_refused(tmp_path, text):
    with pytest.raises(InputError, match=r"m\.sol holds no solution"):
        read_text(tmp_path, text)


DAMAGED = {
    "empty": (b"", "is empty"),
    "blank": (b"\n \n", "is empty"),
    "binary": (bytes(range(256)), "not text"),
    "zeros": (b"x1 0\n\0\0\0", "not text"),
    "gzip-cut": (gzip.compress(SCIP.encode() * 50)[:-20], "not an intact gzip file"),
    "other": ("Dear solver,\n", "Dear solver"),
    "mps-model": ("NAME m\nROWS\n N obj\nCOLUMNS\nENDATA\n", "begins with 'NAME m', so it is not a solution"),
    "model": ("Maximize\n obj: x\nEnd\n", "Maximize"),
    "json": ('{"SolutionInfo": {}}\n', "CPLEX, Gurobi, COPT, SCIP, HiGHS or CBC"),
    "cplex-cut": (CPLEX[:-60], "line 26: it is cut off or not XML"),
    "cplex-other-xml": ("<html></html>", "without a <CPLEXSolution>"),
    "cplex-no-name": (CPLEX.replace('name="x2" ', ""), "line 26: a <variable> needs a name"),
    "cplex-nan": (CPLEX.replace("-10.5", "nan"), "line 26: the value 'nan' of 'x2'"),
    "cplex-twice": (CPLEX.replace('"x2"', '"x1"'), "line 26: the column 'x1' appears a second time"),
    "gurobi-cut": (GUROBI + "x4\n", "line 6: a name and a value"),
    "gurobi-word": (GUROBI.replace("x1 40", "x1 forty"), "line 3: the value 'forty' of 'x1'"),
    "gurobi-underscore": (GUROBI.replace("x1 40", "x1 4_0"), "line 3: the value '4_0'"),
    "gurobi-twice": (GUROBI + "x1 40\n", "line 6: the column 'x1' appears a second time"),
    "gurobi-objective": (GUROBI.replace("1.225e+02", "inf"), "line 2: the value 'inf' of 'Objective value'"),
    "xpress-cut": (XPRESS[:-8], "line 3: the line 'ENDATA' is missing"),
    "scip-cut": (SCIP[:-8], r"line 4: .*\(obj:"),
    "scip-infinite": (SCIP.replace("40", "1e+400"), "line 3: the value '1e\\+400' of 'x1'"),
    "scip-twice": (SCIP.replace("x2", "x1"), "line 4: the column 'x1' appears"),
    "highs-cut": (HIGHS[: HIGHS.index("x2")], "line 9: 2 columns are announced but only 1 follow"),
    "highs-cut-early": ("Model status\nOptimal\n", "line 2: the heading '# Primal"),
    "highs-cut-before-columns": (HIGHS[: HIGHS.index("# Columns")], "line 6: the heading '# Columns'"),
    "highs-count": (HIGHS.replace("Columns 2", "Columns two"), "line 7: '# Columns two'"),
    "highs-short": (HIGHS.replace("# Columns 2", "# Columns 3"), "line 10: 3 columns are announced"),
    "highs-value": (HIGHS.replace("x1 40", "x1 ?"), r"line 8: the value '\?'"),
    "highs-table-cut": ("Columns\n    Index Status  Lower  Upper  Primal  Name\n", "line 2: a table"),
    "highs-status-cut": ("Model status\n", "line 1: the heading"),
    "cbc-cut": (CBC[:-25], "line 3: .* is not an index, name, value"),
    "cbc-word": (CBC.replace(" 40 ", " xx "), "line 2: the value 'xx' of 'x1'"),
    "cbc-objective": ("Optimal - objective value\n", "line 1: the value '' of 'objective value'"),
    "glpk-cut": (GLPK.partition("Integer feas")[0], "line 18: a table of columns and 'End of output'"),
    "glpk-lines": (GLPK.replace("     2 x2 ", "     3 x2 "), "line 15: column 2 of 3 is expected"),
    "glpk-short": (GLPK.replace("Columns:    3", "Columns:    4"), "line 18: column 4 of 4 is expected"),
    "glpk-value": (GLPK.replace(" 40 ", " xx "), "line 14: the value 'xx' of 'x1'"),
    "glpk-twice": (GLPK.replace("x2", "x1"), "line 15: the column 'x1' appears"),
    "cbc-twice": (CBC.replace("x2", "x1"), "line 3: the column 'x1' appears"),
}


@pytest.mark.parametrize(("text", "words"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_are_named_with_the_line(tmp_path, text, words):
    with pytest.raises(InputError, match=words) as caught:
        read_text(tmp_path, text)
    assert "m.sol" in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders_are_refused(tmp_path):
    for path in (tmp_path / "none.sol", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_solution(path)


@pytest.mark.parametrize("solver", SAMPLES)
def test_no_truncation_escapes_as_another_error(tmp_path, solver):
    for cut in range(0, len(SAMPLES[solver]), 3):  # within every word and number, and at its ends
        with contextlib.suppress(InputError):
            read_text(tmp_path, SAMPLES[solver][:cut])
