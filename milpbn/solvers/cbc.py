"""CBC: the executable that PuLP ships solves an .mps file; its bounds are read from its log."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from milpbn.errors import InputError
from milpbn.milp.files.dialects import write_start
from milpbn.milp.files.model_files import MPS_OBJECTIVE_SIGN, write_mps
from milpbn.milp.files.solution_files import read_solution
from milpbn.milp.milp import Milp
from milpbn.solvers.base import MilpEvents, Outcome, Settings, Solver, unknown_option
from milpbn.solvers.support.process import Exit, crash_of, open_log, run_process, temporary_files
from milpbn.solvers.support.repair import polish
from milpbn.util.scratch import scratch_folder

#: Maximum violation of a row by a solution after `polish`; CBC writes solutions with eight digits.
FEASIBILITY = 1e-6
#: Options of a second run: CBC 2.10.3 sometimes calls a point optimal whose integer columns its preprocessing made
#: fractional ("Postprocessing changed objective", whatever the size of the coefficients); without it, it does not.
WITHOUT_PREPROCESSING = {"preprocess": "off"}
#: Seconds that CBC gets to write its solution after an interrupt; its root heuristics ignore interrupts.
GRACE = 1.0


class CbcSolver(Solver):
    """CBC with bounds from its log, and one incumbent at the end, from its solution file.

    If CBC ignores interrupts and has to be killed, it leaves no solution, only its bound.
    """

    name = "cbc"

    def version(self) -> str:
        """Return CBC's version."""
        found = re.search(r"Version:\s*(\S+)", _ask(executable(), []))
        return f"CBC {found[1] if found else '(unknown version)'}"

    def solve(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: MilpEvents
    ) -> Outcome:
        """Maximise the MILP; see `Solver.solve`."""
        program = executable()
        check_options(program, settings)
        with scratch_folder() as folder, open_log(settings.log) as log_file:
            with temporary_files("CBC"):
                write_mps(milp, folder / "model.mps")
                if start is not None:
                    write_start("cbc", milp, start, folder / "start.sol")
            command = _command(program, folder, start is not None, settings)
            outcome = _run(milp, folder, command, settings, log_file, events)
            if outcome is None:
                plain = replace(settings, options={**settings.options, **WITHOUT_PREPROCESSING})
                (folder / "solution.sol").unlink()
                command = _command(program, folder, start is not None, plain)
                outcome = _run(milp, folder, command, plain, log_file, events)
            assert outcome is not None  # it is None only where CBC may preprocess
            return outcome


def _run(
    milp: Milp,
    folder: Path,
    command: list[str],
    settings: Settings,
    log_file: TextIO | None,
    events: MilpEvents,
) -> Outcome | None:
    """Run CBC; return None if it calls a point optimal that is not feasible (see `WITHOUT_PREPROCESSING`)."""
    log = CbcLog()

    def on_line(line: str) -> None:
        if log_file is not None:
            log_file.write(line + "\n")
        if log.feed(line):
            events.bound(MPS_OBJECTIVE_SIGN * log.bound + milp.constant)
        events.nodes(log.nodes)

    def stop() -> bool:
        return settings.remaining() == 0.0 or events.stopping()

    begin = time.monotonic()
    ended = run_process(command, on_line=on_line, stop=stop, grace=GRACE)
    # If its time runs out in preprocessing, CBC calls the model infeasible.
    seconds = settings.remaining()
    in_time = not ended.stopped and (seconds is None or seconds > 0.1 * (time.monotonic() - begin))
    proved = log.optimal and (log.completed or in_time) and not _cuts_off(settings)
    status, objective, is_point = _report_solution(milp, folder / "solution.sol", events)
    if proved and math.isfinite(objective):
        if not is_point and not chooses_preprocessing(settings):
            return None
        events.bound(MPS_OBJECTIVE_SIGN * objective + milp.constant)
        return Outcome(finished=True, detail=log.result)
    return _outcome(log, status, ended, in_time, "time" if seconds == 0.0 else "user")


def chooses_preprocessing(settings: Settings) -> bool:
    """Whether an option says how CBC preprocesses models."""
    return any(key.lower().startswith("prep") for key in settings.options)


def executable() -> str:
    """Return the path of CBC: PuLP's own, else the one on the search path; raise InputError if there is none."""
    import pulp

    bundled = str(getattr(pulp.PULP_CBC_CMD, "pulp_cbc_path", ""))
    if os.access(bundled, os.X_OK):
        return bundled
    found = shutil.which("cbc")
    if found is None:
        raise InputError(
            "There is no CBC for this machine; install it so that the command `cbc` runs, or choose another --backend."
        )
    return found


def _command(program: str, folder: Path, warm: bool, settings: Settings) -> list[str]:
    command = [program, str(folder / "model.mps")]
    seconds = settings.remaining()
    if seconds is not None:
        command += ["-sec", f"{max(0.01, seconds):.3f}"]
    # The gap is 0 because the caller's own gap test stops CBC.
    command += ["-timeMode", "elapsed", "-ratio", "0", "-allow", "0"]
    if settings.threads > 1:
        command += ["-threads", str(settings.threads)]
    command += ["-randomSeed", str(settings.seed), "-randomCbcSeed", str(settings.seed)]
    for key, text in settings.options.items():
        command += _option(key, text)
    if warm:
        command += ["-mips", str(folder / "start.sol")]
    return [*command, "-solve", "-solution", str(folder / "solution.sol")]


def _option(key: str, text: str) -> list[str]:
    return [f"-{key}", text] if text else [f"-{key}"]


def check_options(program: str, settings: Settings) -> None:
    """Try each option on CBC without a model; raise InputError if CBC complains, which else ignores wrong options."""
    for key, text in settings.options.items():
        answer = _ask(program, _option(key, text))
        complaint = re.search(
            r"No match for .*|Multiple matches for .*|String of .* is illegal.*|.* was provided for .*valid range.*"
            r"|Possible options for .*|Unable to open file .*|.*not valid.*",
            answer,
        )
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", key) or complaint:
            raise unknown_option("CBC", key, complaint[0].strip("<> ") if complaint else "")


def _ask(program: str, arguments: list[str]) -> str:
    try:
        done = subprocess.run(
            [program, *arguments, "-quit"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"CBC at {program} does not run ({error}); choose another --backend.") from error
    text = done.stdout.decode(errors="replace")
    # The first lines of the output repeat the command.
    return text.partition("(default strategy")[2] if arguments else text


def _report_solution(milp: Milp, path: Path, events: MilpEvents) -> tuple[str, float, bool]:
    """Report the point in CBC's solution file, if it holds one; return CBC's status, which is empty without a file.

    The second value is the objective of the minimisation in the file, rounded downwards; -inf without one. The third
    says whether there is a feasible point.
    """
    reported = False
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        status, _, value = file.readline().partition(" - objective value")
        with contextlib.suppress(InputError):
            found = read_solution(path)
            x = polish(milp, np.array([found.values.get(name, 0.0) for name in milp.column_names]))
            if milp.violation(x) <= FEASIBILITY:
                assert found.objective is not None  # the first line has it
                events.point(x, "cbc", MPS_OBJECTIVE_SIGN * found.objective + milp.constant)
                reported = True
        return status.strip(), _rounded_down(value.strip(), None), reported
    return "", -math.inf, reported


def _cuts_off(settings: Settings) -> bool:
    """Whether an option can make CBC discard good solutions, so that its status 'optimal' proves nothing."""
    return any(key.lower().startswith(("inc", "cuto")) for key in settings.options)


def _outcome(log: CbcLog, status: str, ended: Exit, in_time: bool, reason: str) -> Outcome:
    detail = log.result or status
    if "infeasible" in (log.result + status).lower() and in_time:
        return Outcome(finished=True, infeasible=True, detail=detail)
    if ended.stopped:
        return Outcome(limit=reason, detail=detail or "killed")
    for limit, word in (("time", "time"), ("node", "node"), ("node", "solution limit"), ("gap", "gap")):
        if word in log.result:
            return Outcome(limit=limit, detail=detail)
    if detail:
        return Outcome(limit="gap" if log.optimal else "time", detail=detail)
    raise crash_of("cbc", ended.code)


class CbcLog:
    """Bound, nodes and result read from CBC's log so far. CBC solves the file as a minimisation."""

    def __init__(self) -> None:
        #: Best proven lower bound, -inf before the first. Printed numbers are rounded downwards.
        self.bound = -math.inf
        self.nodes = 0
        #: Whether the tree was searched to the end.
        self.completed = False
        #: CBC's result, such as ``Stopped on time limit``.
        self.result = ""
        self._depth = 0

    @property
    def optimal(self) -> bool:
        """Whether CBC states that it has proved optimality with a gap of 0."""
        return self.result.startswith("Optimal solution found") and "gap" not in self.result

    def feed(self, line: str) -> bool:
        """Read a line and return whether the bound has risen.

        Lines between ``Starting sub-tree`` and ``Ending sub-tree`` are about the restricted problem of a heuristic.
        """
        if line.startswith("Cbc0028I"):
            self._depth += 1
        elif line.startswith("Cbc0029I"):
            self._depth = max(0, self._depth - 1)
        if self._depth:
            return False
        if line.startswith(("Cbc0001I", "Cbc0005I", "Cbc0010I")):
            self.completed = line.startswith("Cbc0001I")
            if nodes := re.search(r"(?:After|and) (\d+) nodes", line):
                self.nodes = max(self.nodes, int(nodes[1]))
        elif result := re.match(r"Result - (.*)", line):
            # After an interrupt, CBC 2.10.3 prints "User ctrl-cuser ctrl-c".
            self.result = result[1].strip().partition("user ctrl")[0]
        before = self.bound
        for pattern, digits in _BOUNDS:
            if found := re.match(pattern, line):
                self.bound = max(self.bound, _rounded_down(found[1], digits))
        return self.bound > before


#: Patterns of lines with a valid bound, and the number of its significant digits (None: as many as are printed).
_BOUNDS = (
    (r"Continuous objective value is (\S+) -", 6),
    (r"Cbc0010I .*best possible (\S+)", 8),
    (r"Cbc0005I .*\(best possible (\S+)\)", 8),
    (r"Lower bound:\s+(\S+)", None),
)


def _rounded_down(text: str, digits: int | None) -> float:
    """Return the smallest number that is printed as this text; -inf for CBC's infinities.

    `digits` is the number of significant digits to which it was rounded (CBC does not print trailing zeros). None means
    the number of decimals in the text.
    """
    try:
        value = float(text)
    except ValueError:
        return -math.inf
    if not math.isfinite(value) or abs(value) > 1e30:
        return -math.inf
    if digits is None:
        unit = 10.0 ** -len(text.partition(".")[2])
    else:
        unit = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - digits) if value else 0.0
    return value - 0.5 * unit
