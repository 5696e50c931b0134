"""Read solution files of other solvers (what they prove: `milpbn.milp.files.solution`)."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from milpbn.errors import InputError
from milpbn.milp.files.solution import Solution
from milpbn.util.raw_files import decode, read_bytes, unpack_gzip


def read_solution(path: str | os.PathLike[str]) -> Solution:
    """Read a solution file of any of these solvers, which is recognised by its content.

    The formats are CPLEX's XML (of several solutions the incumbent, else the first), the .sol of Gurobi, COPT and SCIP,
    HiGHS's raw (0), pretty (1), GLPK's (3) and sparse (4) styles, CBC's solution text, GLPK's report (`glpsol -o`), and
    Xpress's .slx. Each may be gzipped.

    InputError if the file cannot be read, is truncated, damaged or of another format, or contains no solution. The
    sentence names the file and, if possible, the line.
    """
    file = Path(path)
    text = _text(file)
    lines = _Lines(file, text.splitlines())
    first = next((line.strip() for line in lines.lines if line.strip()), "")
    if first.startswith("<"):
        return _read_cplex(file, text)
    return _reader_of(first, lines)(lines)


def _text(file: Path) -> str:
    """Return the file's text, decompressed if the file begins with the bytes of gzip."""
    try:
        content = read_bytes(file)
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: the name holds a null character
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"The solution file {file} cannot be read ({reason}); check its path.") from error
    if content.startswith(b"\x1f\x8b"):
        content = unpack_gzip(content, str(file))
    try:
        text = decode(content)
    except UnicodeError:
        text = "\0"
    if "\0" in text:
        raise InputError(f"The solution file {file} is not text; give the .sol file that the solver wrote.")
    if not text.strip():
        raise InputError(f"The solution file {file} is empty; the solver wrote no solution.")
    return text


class _Lines:
    """The lines of a file, numbered from 1, with errors that name the file and the line."""

    def __init__(self, file: Path, lines: list[str]) -> None:
        self.file = file
        self.lines = lines

    def fail(self, number: int, reason: str) -> NoReturn:
        """Refuse the file because of one line."""
        raise InputError(f"The solution file {self.file} is unusable at line {number}: {reason}.")

    def no_solution(self, status: str) -> NoReturn:
        """Refuse a file that contains no solution."""
        said = f" (the solver's status is {status!r})" if status else ""
        raise InputError(
            f"The file {self.file} holds no solution{said}; let the solver run longer, or give it the start file."
        )

    def add(self, values: dict[str, float], number: int, name: str, value: str) -> None:
        """Add a column's value, which must be finite and the first under that name."""
        if name in values:
            self.fail(number, f"the column {name!r} appears a second time")
        values[name] = self.number(number, name, value)

    def number(self, number: int, name: str, value: str) -> float:
        """Return a value as a number, which must be finite."""
        parsed = _float(value)
        if parsed is None:
            self.fail(number, f"the value {value!r} of {name!r} is not a finite number")
        return parsed

    def add_pair(self, values: dict[str, float], number: int, line: str) -> None:
        """Add the value of a column, which are the first two words of a line, its name first."""
        words = line.split()
        if len(words) < 2:
            self.fail(
                number, f"a name and a value are expected, not {line.strip()!r}; the file may be cut off"
            )
        self.add(values, number, words[0], words[1])


def _float(text: str) -> float | None:
    """Return the number that a text states, or None if the text is not a finite number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def _reader_of(first: str, lines: _Lines) -> Callable[[_Lines], Solution]:
    """Return the reader for the format of a file with this first line."""
    if first == "Model status":
        return _read_highs_raw
    if first == "Columns":
        return _read_highs_pretty
    if re.match(r"(solution status:|objective value:|no solution available)", first):
        return _read_scip
    if " - objective value" in first:
        return _read_cbc
    if first.startswith("Problem:"):
        return _read_glpk
    if re.match(r"c( Problem:|$)|s (mip|bas|ipt) ", first):
        return _refuse_glpk_raw
    words = first.split()
    if re.match(r"NAME\b", first) and "ROWS" not in map(str.strip, lines.lines):  # else it is a model
        return _read_xpress
    if first.startswith("#") or (len(words) == 2 and _float(words[1]) is not None):
        return _read_gurobi
    raise InputError(
        f"The file {lines.file} begins with {first[:60]!r}, so it is not a solution file of CPLEX, "
        "Gurobi, COPT, SCIP, HiGHS or CBC, nor a report of GLPK or an .slx file of Xpress; give the .sol file that the "
        "solver wrote."
    )


# -- CPLEX ------------------------------------------------------------------------------------------------


def _read_cplex(file: Path, text: str) -> Solution:
    """Read ``<CPLEXSolution>``, alone or inside ``<CPLEXSolutions>``."""
    reader = _CplexReader(file)
    try:
        reader.parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise InputError(
            f"The solution file {file} is unusable at line {error.lineno}: "
            f"it is cut off or not XML ({expat.ErrorString(error.code)})."
        ) from error
    except InputError:
        raise
    except (LookupError, ValueError) as error:
        raise InputError(
            f"The solution file {file} is unusable: it is not XML in a known encoding ({error})."
        ) from error
    if not reader.solutions:
        raise InputError(
            f"The file {file} is XML without a <CPLEXSolution>; give the .sol file that CPLEX wrote."
        )
    incumbents = [solution for solution in reader.solutions if solution[0].get("solutionName") == "incumbent"]
    header, values = (incumbents or reader.solutions)[0]
    status = header.get("solutionStatusString", "")
    if not values:
        reader.lines.no_solution(status)
    objective, bound = (_float(header.get(key, "")) for key in ("objectiveValue", "bestBound"))
    return Solution("cplex", values, objective, bound, status)


class _CplexReader:
    """Collect headers and values with expat, which knows the line of an element, unlike ElementTree."""

    def __init__(self, file: Path) -> None:
        self.solutions: list[tuple[dict[str, str], dict[str, float]]] = []
        self.lines = _Lines(file, [])
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "CPLEXSolution":
            self.solutions.append(({}, {}))
        elif tag == "header" and self.solutions:
            self.solutions[-1][0].update(attributes)
        elif tag == "variable" and self.solutions:
            number = self.parser.CurrentLineNumber
            if "name" not in attributes or "value" not in attributes:
                self.lines.fail(number, "a <variable> needs a name and a value; export with names")
            self.lines.add(self.solutions[-1][1], number, attributes["name"], attributes["value"])


# -- Gurobi, COPT and Xpress ------------------------------------------------------------------------------


def _read_gurobi(lines: _Lines) -> Solution:
    """Read comments, one of which may be ``# Objective value = 1.5`` (COPT: no ``=``), and ``name value`` lines."""
    values: dict[str, float] = {}
    solver, objective = "gurobi", None
    for number, line in enumerate(lines.lines, start=1):
        found = re.match(r"#\s*Objective value(\s*=\s*|\s+)(\S+)", line, re.IGNORECASE)
        if found:
            objective = lines.number(number, "Objective value", found[2])
            solver = "gurobi" if "=" in found[1] else "copt"
        elif line.strip() and not line.startswith("#"):
            lines.add_pair(values, number, line)
    if not values:
        lines.no_solution("")
    return Solution(solver, values, objective, None, "")


def _read_xpress(lines: _Lines) -> Solution:
    """Read the ``C name value`` lines of an .slx file, which has neither objective nor status, up to ``ENDATA``."""
    values: dict[str, float] = {}
    for number, line in enumerate(lines.lines, start=1):
        words = line.split()
        if words[:1] == ["ENDATA"]:
            return Solution("xpress", values, None, None, "") if values else lines.no_solution("")
        if words[:1] == ["C"]:
            lines.add_pair(values, number, " ".join(words[1:]))
    lines.fail(len(lines.lines), "the line 'ENDATA' is missing; the file is cut off")


# -- SCIP -------------------------------------------------------------------------------------------------


def _read_scip(lines: _Lines) -> Solution:
    """Read ``objective value:`` and ``name value (obj:c)`` lines, no zeros; SCIP's shell has ``solution status:``."""
    values: dict[str, float] = {}
    status, objective, available = "", None, False
    for number, line in enumerate(lines.lines, start=1):
        rest = line.partition(":")[2]
        if line.startswith("solution status:"):
            status = rest.strip()
        elif line.startswith("objective value:"):
            objective, available = _float(rest.strip()), True
        elif line.startswith("no solution available"):
            lines.no_solution(status)
        elif line.strip():
            if available and not re.search(r"\(obj:\S+\)\s*$", line):
                lines.fail(
                    number, f"the line {line.strip()!r} does not end in (obj:...); the file may be cut off"
                )
            lines.add_pair(values, number, line)
    if not available or not values:  # without a solution the objective is infinite
        lines.no_solution(status)
    return Solution("scip", values, objective, None, status)


# -- HiGHS ------------------------------------------------------------------------------------------------


def _read_highs_raw(lines: _Lines) -> Solution:
    """Read styles 0 (raw) and 4 (sparse, with a negative number of columns), which have sections with ``#`` headings.

    Since version 1.16 a line with the bound follows the objective of an optimum, and style 4 has the word ``sparse``
    after the number of columns.
    """
    text = [line.strip() for line in lines.lines]
    status = next((line for line in text[text.index("Model status") + 1 :] if line), "")
    if "# Primal solution values" not in text:
        lines.fail(len(text), "the heading '# Primal solution values' is missing; the file may be cut off")
    primal = text.index("# Primal solution values") + 1
    if primal >= len(text) or text[primal] != "Feasible":
        lines.no_solution(status)
    objective = bound = None
    for i, line in enumerate(text[primal:], start=primal):
        if line.startswith("Objective "):
            objective = _float(line.split()[1])
        elif line.startswith("Objective_bound "):
            bound = _float(line.split()[1])
        elif line.startswith("# Columns "):
            count = re.fullmatch(r"# Columns (-?[0-9]{1,18})( sparse)?", line)
            if count is None:
                lines.fail(i + 1, f"{line!r} does not give a number of columns")
            return Solution(
                "highs", _highs_columns(lines, i + 1, abs(int(count[1]))), objective, bound, status
            )
    lines.fail(len(text), "the heading '# Columns' is missing; the file may be cut off")


def _highs_columns(lines: _Lines, start: int, count: int) -> dict[str, float]:
    """Return the values of ``count`` lines, the first of which has the index ``start``."""
    values: dict[str, float] = {}
    for i in range(start, start + count):
        line = lines.lines[i] if i < len(lines.lines) else ""
        if not line.strip() or line.startswith("#"):
            lines.fail(
                i + 1, f"{count} columns are announced but only {i - start} follow; the file is cut off"
            )
        lines.add_pair(values, i + 1, line)
    return values


def _read_highs_pretty(lines: _Lines) -> Solution:
    """Read style 1, a table; each value has 6 digits and is right-aligned under the heading ``Primal``."""
    text = "\n".join(lines.lines)
    status, objective, bound = (
        re.search(rf"^{key}: *(.*)$", text, re.M)
        for key in ("Model status", "Objective value", "Objective bound")
    )
    heading = lines.lines[1] if len(lines.lines) > 1 else ""
    if status is None or objective is None or not re.search(r"Upper.*Primal.*Name", heading):
        lines.fail(
            len(lines.lines), "a table that ends in 'Objective value:' is expected; the file is cut off"
        )
    value = slice(heading.index("Upper") + len("Upper"), heading.index("Primal") + len("Primal"))
    values: dict[str, float] = {}
    for number, line in enumerate(lines.lines[2:], start=3):
        if line.startswith("Rows"):
            break
        cell = line[value].strip()
        if not cell:
            lines.no_solution(status[1])
        lines.add(values, number, line[heading.index("Name") :].strip(), cell)
    stated = None if bound is None else _float(bound[1])
    return Solution("highs", values, _float(objective[1]), stated, status[1])


# -- CBC --------------------------------------------------------------------------------------------------


def _read_cbc(lines: _Lines) -> Solution:
    """Read ``STATUS - objective value Z``, then ``index name value reduced-cost`` lines.

    ``**`` marks values that violate a bound or row. With ``-printingOptions all`` the rows precede the columns, and
    the index starts again at 0 with the first column.
    """
    values: dict[str, float] = {}
    status, objective, last = "", None, -1
    for number, line in enumerate(lines.lines, start=1):
        if not line.strip():
            continue
        if not status:
            status, _, rest = line.strip().partition(" - objective value")
            objective = lines.number(number, "objective value", rest.strip())
            # After such a status the file lists values of the relaxation.
            if re.search("infeasible|unbounded|no integer solution|no feasible", status, re.IGNORECASE):
                lines.no_solution(status)
            continue
        words = line.replace("**", " ").split()
        if len(words) != 4 or not re.fullmatch("[0-9]{1,18}", words[0]):
            lines.fail(
                number, f"{line.strip()!r} is not an index, name, value and reduced cost; it may be cut off"
            )
        index = int(words[0])
        if index <= last:
            values.clear()
        last = index
        lines.add(values, number, words[1], words[2])
    return Solution("cbc", values, objective, None, status)


# -- GLPK, and HiGHS in GLPK's styles ----------------------------------------------------------------------


def _read_glpk(lines: _Lines) -> Solution:
    """Read the report of ``glpsol -o`` and HiGHS's style 3: a heading, a table of the rows, and one of the columns.

    Values have 6 digits. After a name of more than 12 characters a line begins anew. Reports without a solution have
    tables as well.
    """
    heading = {key: rest.strip() for key, _, rest in (line.partition(":") for line in lines.lines[:10])}
    status = heading.get("Status", "")
    if not re.fullmatch("(INTEGER )?(NON-)?OPTIMAL|FEASIBLE", status):
        lines.no_solution(status)
    stated = re.search(r"= *(\S+) \(M..imum\)", heading.get("Objective", ""))
    count = re.match("[0-9]{1,18}", heading.get("Columns", ""))
    at = next((i for i, line in enumerate(lines.lines) if re.match(r"\s*No\.\s+Column name", line)), None)
    if at is None or count is None or not any(line.strip() == "End of output" for line in lines.lines[at:]):
        lines.fail(
            len(lines.lines), "a table of columns and 'End of output' are expected; the file is cut off"
        )
    values: dict[str, float] = {}
    at += 2  # the line of the headings, and the one below it
    for expected in range(1, int(count[0]) + 1):
        words = lines.lines[at].split() if at < len(lines.lines) else []
        if len(words) == 2 and at + 1 < len(lines.lines):
            at += 1
            words += lines.lines[at].split()
        if words[2:3] and words[2] in _GLPK_MARKS:
            del words[2]
        if len(words) < 3 or words[0] != str(expected):
            lines.fail(at + 1, f"column {expected} of {count[0]} is expected; the file may be cut off")
        lines.add(values, at + 1, words[1], words[2])
        at += 1
    return Solution("glpk", values, None if stated is None else _float(stated[1]), None, status)


#: What stands before a value: an integer column, and the states of columns in the solution of a linear program.
_GLPK_MARKS = {"*", "B", "NL", "NU", "NF", "NS"}


def _refuse_glpk_raw(lines: _Lines) -> NoReturn:
    raise InputError(
        f"The file {lines.file} numbers its columns and does not name them, as glpsol --write and HiGHS's style 2 do, "
        "so that it cannot be told whether it belongs to this model; write the solution with glpsol -o FILE, or in "
        "HiGHS's style 0, 1, 3 or 4."
    )
