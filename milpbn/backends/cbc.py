"""CBC: the executable that PuLP ships, run on an .mps file, its bounds read from its log."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from milpbn.backends.base import Backend, Capabilities, Events, Outcome, Settings, unknown_option
from milpbn.backends.process import Exit, open_log, run_process
from milpbn.backends.repair import polish
from milpbn.errors import InputError, SolverError
from milpbn.model.milp import Milp
from milpbn.model.mps_file import MPS_OBJECTIVE_SIGN, write_mps
from milpbn.model.solution_files import read_solution
from milpbn.model.start_files import write_cbc_start

#: CBC's solutions hold eight digits; what violates the rows by more after `polish` is not one.
FEASIBILITY = 1e-6
#: Seconds that CBC gets to write its solution after an interrupt; it does not listen in its root heuristics.
GRACE = 1.0


class CbcBackend(Backend):
    """CBC with bounds from its log; incumbents come at the end, from its solution file.

    A CBC that has to be killed because it does not listen leaves no solution, only its bound.
    """

    name = "cbc"
    capabilities = Capabilities(solution_stream=False)

    def version(self) -> str:
        """Return CBC's version."""
        found = re.search(r"Version:\s*(\S+)", _ask(executable(), []))
        return f"CBC {found[1] if found else '(unknown version)'}"

    def solve(
        self, milp: Milp, start: NDArray[np.float64] | None, settings: Settings, events: Events
    ) -> Outcome:
        """Maximise the MILP; see `Backend.solve`."""
        program = executable()
        check_options(program, settings)
        with tempfile.TemporaryDirectory(prefix="milpbn-cbc-") as name, open_log(settings.log) as log_file:
            folder = Path(name)
            write_mps(milp, folder / "model.mps")
            if start is not None:
                write_cbc_start(milp, start, folder / "start.sol")
            log = CbcLog()

            def on_line(line: str) -> None:
                _write(log_file, line)
                if log.feed(line):
                    events.bound(MPS_OBJECTIVE_SIGN * log.bound + milp.constant)
                events.nodes(log.nodes)

            def stop() -> bool:
                return settings.remaining() == 0.0 or events.stopping()

            begin = time.monotonic()
            command = _command(program, folder, start is not None, settings)
            ended = run_process(command, on_line=on_line, stop=stop, grace=GRACE)
            # When its time runs out in preprocessing CBC calls a model infeasible.
            seconds = settings.remaining()
            in_time = not ended.stopped and (seconds is None or seconds > 0.1 * (time.monotonic() - begin))
            proved = log.optimal and (log.completed or in_time) and not _cuts_off(settings)
            status, objective = _report_solution(milp, folder / "solution.sol", events)
            if proved and math.isfinite(objective):
                events.bound(MPS_OBJECTIVE_SIGN * objective + milp.constant)
                return Outcome(finished=True, detail=log.result)
            return _outcome(log, status, ended, in_time, "time" if seconds == 0.0 else "user")


def executable() -> str:
    """Return the path of CBC: PuLP's own, else the one on the search path.

    Raises
    ------
    InputError
        If there is neither.
    """
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
    # A gap of 0: the caller stops CBC when its own gap test says so.
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
    """Try each option on a CBC without a model; it complains and goes on, so the complaint is what tells.

    Raises
    ------
    InputError
        If CBC complains.
    """
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
    # The first lines repeat the command.
    return text.partition("(default strategy")[2] if arguments else text


def _write(log_file: TextIO | None, line: str) -> None:
    if log_file is not None:
        log_file.write(line + "\n")


def _report_solution(milp: Milp, path: Path, events: Events) -> tuple[str, float]:
    """Report the point in CBC's solution file, if it holds one.

    Returns
    -------
    status : str
        CBC's word for it, empty without a file.
    objective : float
        Its objective in the file's sense, a minimisation, rounded downwards; -inf without one.
    """
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        status, _, value = file.readline().partition(" - objective value")
        with contextlib.suppress(InputError):
            values = read_solution(path).values
            x = polish(milp, np.array([values.get(name, 0.0) for name in milp.column_names]))
            if milp.violation(x) <= FEASIBILITY:
                events.point(x, "cbc")
        return status.strip(), _rounded_down(value.strip(), None)
    return "", -math.inf


def _cuts_off(settings: Settings) -> bool:
    """Whether an option lets CBC drop solutions that are better than the best: then 'optimal' proves nothing."""
    return any(key.lower().startswith(("inc", "cuto")) for key in settings.options)


def _outcome(log: CbcLog, status: str, ended: Exit, in_time: bool, reason: str) -> Outcome:
    detail = log.result or status
    if "infeasible" in (log.result + status).lower() and in_time:
        return Outcome(finished=True, infeasible=True, detail=detail)
    if ended.stopped:
        return Outcome(limit=reason, detail=detail or "killed")
    for limit, word in (("time", "time"), ("node", "node"), ("node", "solutions"), ("gap", "gap")):
        if word in log.result:
            return Outcome(limit=limit, detail=detail)
    if detail:
        return Outcome(limit="gap" if log.optimal else "time", detail=detail)
    raise SolverError(f"CBC failed with exit status {ended.code}.")


class CbcLog:
    """What CBC's log says so far, in the sense of the file it solves: a minimisation.

    Attributes
    ----------
    bound : float
        Best proven lower bound, -inf before the first. Printed digits are rounded downwards.
    nodes : int
        Nodes so far.
    completed : bool
        The tree was searched to the end.
    result : str
        CBC's last word, such as ``Stopped on time limit``.
    """

    def __init__(self) -> None:
        self.bound = -math.inf
        self.nodes = 0
        self.completed = False
        self.result = ""
        self._depth = 0

    @property
    def optimal(self) -> bool:
        """Whether CBC says that it has proved optimality, with a gap of 0."""
        return self.result.startswith("Optimal solution found") and "gap" not in self.result

    def feed(self, line: str) -> bool:
        """Read a line and return whether the bound has risen.

        Lines between ``Starting sub-tree`` and ``Ending sub-tree`` speak of a heuristic's restricted problem.
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
            # Interrupted, CBC 2.10.3 says "User ctrl-cuser ctrl-c".
            self.result = result[1].strip().partition("user ctrl")[0]
        before = self.bound
        for pattern, digits in _BOUNDS:
            if found := re.match(pattern, line):
                self.bound = max(self.bound, _rounded_down(found[1], digits))
        return self.bound > before


#: Lines with a valid bound, and to how many significant digits it is printed (None: see the text itself).
_BOUNDS = (
    (r"Continuous objective value is (\S+) -", 6),
    (r"Cbc0010I .*best possible (\S+)", 8),
    (r"Cbc0005I .*\(best possible (\S+)\)", 8),
    (r"Lower bound:\s+(\S+)", None),
)


def _rounded_down(text: str, digits: int | None) -> float:
    """Return the least number that would have been printed like this; -inf for CBC's infinities.

    Parameters
    ----------
    text : str
        A printed number.
    digits : int or None
        Significant digits it was rounded to (trailing zeros are not printed); None: as many decimals as the text has.
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
