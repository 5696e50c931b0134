"""Signals at random instants: what SIGKILL, SIGTERM and SIGINT leave of commands with every output option.

    python tests/faults/kill.py [WORD ...] [--count 200] [--seconds S] [--output results/reliability/kill.json]

Every instant starts a command of `CELLS`, sends it a signal at a random time of its run, or just when it writes a file,
and checks (`examine`): every file that is there is complete; a result is verified with its certificate, a classifier
predicts, a model has its end; no process is left; a signal is obeyed, and a second one ends the process at once. The
instants of a cell follow each other in one folder. So each run meets what the killed ones have left; the cell ends with
a run that nobody disturbs, after which no temporary file may be left.

Instants are numbered, and their numbers are the seeds. A cell goes on where it stopped, until it has `--count` instants
or `--seconds` have passed. With words, only the cells whose names have all of them are run. While the file named by
`--pause` exists, no new instant begins.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared import (
    MARK,
    PROGRAM,
    RELIABILITY,
    add_pause,
    chosen,
    orphans,
    read_results,
    results_of,
    wait_while,
    write_results,
)

from milpbn.certificate.format import load_proof
from milpbn.certificate.verify.check import verify
from milpbn.data import Dataset, read_table
from milpbn.errors import InputError
from milpbn.learners.finished import UNFINISHED
from milpbn.milp.files.sidecar import Sidecar
from milpbn.network import load_classifier, read_structure
from milpbn.util.atomic import PREFIX

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
#: Seconds within which a signal must be obeyed, and a second one; on a busy machine times its load per core.
OBEYED = 3.0
#: Share of a run in which Python starts, and has not yet installed the program's handlers of signals.
EARLY = 0.2
#: Processor seconds that the start takes; on a busy machine they can come late.
START = 0.25
#: Seconds that child processes get to notice that their parent was killed.
ORPHAN_GRACE = 8.0
#: A process that ignores a signal for so many seconds is killed, and counts as a failure.
PATIENCE = 60.0
#: Share of the instants that come just when the process writes a file, and of those with a second signal.
AIMED, TWICE = 0.5, 0.3

#: Each check takes the path of a file and the training rows, and raises an exception if the file is broken.
Check = Callable[[Path, Dataset], object]


def check_trace(path: Path, data: Dataset) -> None:
    """Read a file of JSON lines, which ends with a whole line."""
    text = path.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        raise ValueError("the last line is not complete")
    for line in text.splitlines():
        json.loads(line)


def check_structure(path: Path, data: Dataset) -> None:
    """Read the structure of a file, as `--start` does."""
    if json.loads(path.read_text(encoding="utf-8")).get("structure") is not None:
        read_structure(path, data.names)


def check_certificate(path: Path, data: Dataset) -> None:
    """Verify a certificate by itself, and with the result beside it, where there are a structure and a bound."""
    header, _ = load_proof(path)
    # A selection's trials search over a part of the rows, and write the same files.
    whole = header["structure"] is not None and header["bound"] is not None
    if whole and header["data"]["sha256"] == data.sha256:
        verify(None, path, data)
    result = path.with_name("result.json")
    if result.exists():
        values = json.loads(result.read_text(encoding="utf-8"))
        of_a_trial = values["data"]["sha256"] != data.sha256 and values["status"]["reason"] == "running"
        if values["structure"] is None or values["bound"] is None or of_a_trial:
            return
        try:
            verify(values, path, data)
        except InputError:
            # A kill just between the two files of one run leaves an older certificate, which is verified by itself.
            if header["run"] != values["run"]:
                raise
            MOMENTS.append(str(path))


def check_model(path: Path, data: Dataset) -> None:
    """Check that a model has its end."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    if not text.rstrip().endswith(("End", "ENDATA")):
        raise ValueError("the model has no end")


def check_scores(path: Path, data: Dataset) -> None:
    """Count the lines of local scores against their headers."""
    lines = iter(path.read_text(encoding="utf-8").splitlines())
    for _ in range(int(next(lines))):
        for _ in range(int(next(lines).split()[1])):
            next(lines)
    if next(lines, None) is not None:
        raise ValueError("there are more lines than the headers say")


def _json(path: Path, data: Dataset) -> object:
    return json.loads(path.read_text(encoding="utf-8"))


def _any(path: Path, data: Dataset) -> None:
    """Accept any contents: a log belongs to its solver, and the next run reads a checkpoint and goes on."""


#: Certificates that were of an earlier moment of the run than the result beside them.
MOMENTS: list[str] = []
#: All options that write a file: the name of the file, and its check. A new option needs a line here.
OUTPUTS: dict[str, tuple[str, Check]] = {
    "--output": ("result.json", check_structure),
    "--classifier": ("classifier.json", lambda path, data: load_classifier(path).predict_proba(data)),
    "--certificate": ("proof.npz", check_certificate),
    "--trace": ("trace.jsonl", check_trace),
    "--log": ("solver.log", _any),
    "--checkpoint": ("state.npz", _any),
}
#: Files that no option names, by their endings.
OTHERS: dict[str, Check] = {
    ".lp": check_model,
    ".mps.gz": check_model,
    ".jkl": check_scores,
    ".json": _json,
    ".py": lambda path, data: compile(path.read_text(encoding="utf-8"), str(path), "exec"),
    ".sol": _any,
    ".mst": _any,
    UNFINISHED: _any,
}


@dataclass(frozen=True)
class Cell:
    """A command: its words, where TABLE is the table, and the options of `OUTPUTS` that it gets."""

    name: str
    words: str
    outputs: tuple[str, ...] = ()
    #: Python code to run instead of the command.
    code: str = ""

    def command(self, folder: Path, table: Path) -> list[str]:
        """Return the command line."""
        if self.code:
            return [sys.executable, "-c", self.code]
        words = [str(table) if word == "TABLE" else word for word in self.words.split()]
        words = [word.replace("FOLDER", str(folder)) for word in words]
        for option in self.outputs:
            words += [option, str(folder / OUTPUTS[option][0])]
        return [str(PROGRAM), *words]


#: Kernels that call each other, with two kinds of arguments, compiled into a cache of their own.
KERNELS = """
import numpy as np
from milpbn.util.compiled import kernel
{functions}
values = np.arange(4.0)
print(k3(values), k3(values.astype(np.int64)))
"""
FUNCTIONS = "\n".join(
    f"@kernel\ndef k{i}(x):\n    total = {f'k{i - 1}(x)' if i else '0.0'}\n    for v in x:\n"
    f"        total += v * {i}\n    return total"
    for i in range(4)
)
RESULT, CLASSIFIER = "--output", "--classifier"
ALL = (RESULT, CLASSIFIER, "--trace")
CELLS = (
    Cell("solve native", "solve TABLE --threads 1 --p 0.9 --time-limit 8", (*ALL, "--certificate")),
    Cell(
        "solve native checkpoint",
        "solve TABLE --threads 1 --p 0.9 --time-limit 3",
        (*ALL, "--certificate", "--checkpoint"),
    ),
    Cell(
        "solve branch-and-cut checkpoint",
        "solve TABLE --score bdeu --max-parents 3 --parent-sets all --threads 1 --time-limit 8",
        (*ALL, "--certificate", "--checkpoint"),
    ),
    Cell("solve native quick", "solve instance:corral --p 0.9 --threads 2", (*ALL, "--certificate")),
    Cell("solve highs", "solve instance:corral --p 0.9 --backend highs", (*ALL, "--log")),
    Cell("solve cbc", "solve instance:corral --p 0.9 --backend cbc", (*ALL, "--log")),
    Cell("solve cpsat", "solve instance:corral --p 0.9 --backend cpsat --time-limit 8", (*ALL, "--log")),
    Cell("solve scip", "solve instance:corral --p 0.9 --backend scip", (*ALL, "--log")),
    Cell("solve select", "solve instance:corral --p cv --time-limit 9", (*ALL, "--certificate")),
    Cell("learn tan", "learn tan TABLE", (RESULT, CLASSIFIER)),
    Cell("learn svm", "learn svm TABLE --threads 2", (RESULT,)),
    Cell(
        "learn differentiable-tan",
        "learn differentiable-tan TABLE --time-limit 8 --threads 1",
        (RESULT, CLASSIFIER, "--checkpoint"),
    ),
    Cell("compare split", "compare TABLE --learners sm,tan,svm --time-limit 3 --threads 1", (RESULT,)),
    Cell("compare folds", "compare TABLE --learners tan,naive-bayes --folds 3 --threads 1", (RESULT,)),
    Cell(
        "compare checkpoint",
        "compare TABLE --learners sm,differentiable-tan,tan --time-limit 4 --threads 1",
        (RESULT, "--checkpoint"),
    ),
    Cell("export lp", "export TABLE --output FOLDER/m.lp --script highspy --script gurobipy"),
    Cell("export mps", "export instance:corral --output FOLDER/m.mps.gz --reduced"),
    Cell("export jkl", "export TABLE --score bdeu --parent-sets all --output FOLDER/m.jkl"),
    Cell("verify", "verify INPUTS/result.json instance:corral --certificate INPUTS/proof.npz"),
    Cell("kernels", "", code=KERNELS.format(functions=FUNCTIONS)),
)


@dataclass
class Tally:
    """What the instants of a cell have found so far."""

    instants: int = 0
    signals: Counter[str] = field(default_factory=Counter)
    twice: int = 0
    while_writing: int = 0
    exit_codes: Counter[str] = field(default_factory=Counter)
    files_checked: int = 0
    #: Temporary files that the next run has to remove.
    left_for_next_run: int = 0
    #: Pairs of result and certificate of two moments of a run.
    two_moments: int = 0
    longest_to_obey: float = 0.0
    longest_to_obey_second: float = 0.0
    processor_seconds: float = 0.0
    failures: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, values: dict[str, Any]) -> Tally:
        """Return the tally of a results file."""
        counts = {key: Counter(values.get(key, {})) for key in ("signals", "exit_codes")}
        return cls(**{**values, **counts})


class Range:
    """A folder in which the instants of a cell follow each other."""

    def __init__(self, cell: Cell, folder: Path, table: Path, inputs: Path) -> None:
        self.cell, self.table = cell, table
        self.folder, self.temporary, self.cache = folder / "out", folder / "tmp", folder / "cache"
        for path in (self.folder, self.temporary, self.cache):
            path.mkdir(parents=True)
        source = table if "TABLE" in cell.words else "instance:corral"
        self.data = read_table(source).dataset("train")
        self.command = [word.replace("INPUTS", str(inputs)) for word in cell.command(self.folder, table)]
        self.cell_checks = {OUTPUTS[option][0]: OUTPUTS[option][1] for option in cell.outputs}
        if cell.name.startswith("compare"):
            self.cell_checks["result.json"] = _json
        self.seconds = 1.0
        #: Whether the last command came to its end, so that the next one would have nothing to do.
        self.ended = True
        #: Exit codes of a run that nobody disturbs. On a busy machine a time limit can come before any structure.
        self.ends = {0, 3} if "--time-limit" in cell.words else {0}

    def start(self, mark: str) -> subprocess.Popen[str]:
        """Start the command."""
        environment = os.environ | {MARK: mark, "TMPDIR": str(self.temporary), "PYTHONUNBUFFERED": "1"}
        if self.cell.code:
            environment["NUMBA_CACHE_DIR"] = str(self.cache)
        return subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment, start_new_session=True, cwd=self.folder.parent,
        )  # fmt: skip

    def undisturbed(self, *, last: bool = False) -> list[str]:
        """Run to the end, and return what is wrong then; the time it took is the range of the instants."""
        begun = time.monotonic()
        process = self.start(uuid.uuid4().hex)
        _, errors = process.communicate(timeout=600)
        self.seconds = time.monotonic() - begun
        wrong = self.examine()[0]
        if process.returncode not in self.ends:
            wrong.append(f"an undisturbed run ends with {process.returncode}: {errors.strip()[-500:]}")
        if last:
            wrong += [f"{path.name} stays for good" for path in self.leftovers(ended=True)]
        return wrong

    def leftovers(self, *, ended: bool = False) -> list[Path]:
        """Return temporary files and folders; those of a learner that goes on later, only if all have ended."""
        written, cached = self.folder.iterdir(), self.cache.rglob("*")
        found = [p for p in written if p.name.startswith(PREFIX) or (ended and p.name.endswith(UNFINISHED))]
        found += [p for p in cached if p.name.startswith(PREFIX) or ".tmp." in p.name]
        # The folder of empty lock files (milpbn-UID) stays, as the cache of the kernels does.
        return found + [p for p in self.temporary.iterdir() if p.name != f"milpbn-{os.getuid()}"]

    def forget(self) -> None:
        """Remove what an earlier run has left for the next: compiled kernels of code, the checkpoint of a command."""
        for path in self.cache.rglob("*.nb?") if self.cell.code else self.folder.glob("state.npz"):
            path.unlink()

    def examine(self) -> tuple[list[str], int]:
        """Return what is wrong with the files in the folder, and their number."""
        wrong, count = [], 0
        for path in sorted(self.folder.iterdir()):
            if path.name.startswith(PREFIX):
                continue
            check = self.cell_checks.get(path.name) or next(
                (check for ending, check in OTHERS.items() if path.name.endswith(ending)), None
            )
            if path.name == "m.json":
                check = lambda path, data: Sidecar.load(path)  # noqa: E731
            if check is None:
                wrong.append(f"an unknown file {path.name}")
                continue
            count += 1
            try:
                check(path, self.data)
            except Exception as error:
                wrong.append(f"{path.name}: {type(error).__name__}: {error}")
        return wrong, count

    def state(self) -> list[tuple[str, int, int]]:
        """Return names, sizes and times of the files, to notice a change."""
        found = []
        for entry in os.scandir(self.folder):
            try:
                status = entry.stat()
                found.append((entry.name, status.st_size, status.st_mtime_ns))
            except OSError:
                found.append((entry.name, -1, -1))
        return sorted(found)

    def until_written(self, process: subprocess.Popen[str], after: float, end: float) -> bool:
        """Sleep for `after` seconds, then wait for the next change in the folder; return whether there was one."""
        _wait(process, after)
        before, written = self.state(), False
        while process.poll() is None and time.monotonic() < end and not written:
            time.sleep(0.0005)
            written = self.state() != before
        return written

    def instant(self, seed: int, tally: Tally) -> None:
        """Disturb one run, and add what is found to the tally."""
        draw = random.Random(f"{self.cell.name} {seed}")
        number, aimed = draw.choice(SIGNALS), draw.random() < AIMED
        at, later = draw.uniform(0.0, 1.05 * self.seconds), draw.uniform(0.0, 0.004)
        second = draw.uniform(0.0, 1.0) if number != signal.SIGKILL and draw.random() < TWICE else None
        mark, begun = uuid.uuid4().hex, time.monotonic()
        allowed = OBEYED * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        process = self.start(mark)
        written = aimed and self.until_written(
            process, min(at, 0.6 * self.seconds), begun + 2.0 * self.seconds
        )
        _wait(process, later if aimed else at)
        running = process.poll() is None
        used = _processor_seconds(process.pid)
        sent = time.monotonic()
        _send(process, number)
        wrong: list[str] = []
        if second is not None and running:
            _wait(process, second)
            if process.poll() is None:
                tally.twice += 1
                again = time.monotonic()
                _send(process, number)
                _wait(process, PATIENCE)
                took = time.monotonic() - again
                tally.longest_to_obey_second = max(tally.longest_to_obey_second, round(took, 2))
                if took > allowed:
                    wrong.append(f"a second signal is obeyed after {took:.1f} s")
        if not _wait(process, PATIENCE):
            wrong.append(f"the signal is not obeyed within {PATIENCE:.0f} s")
            process.kill()
        took = time.monotonic() - sent
        output, errors = process.communicate()
        if running and number != signal.SIGKILL:
            tally.longest_to_obey = max(tally.longest_to_obey, round(took, 2))
            if took > allowed:
                wrong.append(f"{number.name} is obeyed after {took:.1f} s")
        code = process.returncode
        early = (sent - begun < max(0.5, EARLY * self.seconds) or used < START) and running
        if "Traceback" in errors and not early:
            wrong.append(f"a traceback: {errors.strip()[-800:]}")
        expected = {130, -number, *self.ends} if running else self.ends
        self.ended = code in self.ends and not self.cell.code
        # A command of Python code has no handlers of its own, and Python installs its own only after its start.
        if code not in expected and not (self.cell.code or (early and code == 1)):
            wrong.append(f"exit code {code} after {number.name}: {errors.strip()[-300:]}")
        # While the interpreter shuts down, a signal has its default effect. All is written then, and printed.
        if (
            code == -number
            and number != signal.SIGKILL
            and not (early or output or "Error:" in errors or self.cell.code)
        ):
            wrong.append(f"{number.name} has ended the process without a word after {sent - begun:.2f} s")
        wrong += [f"an orphan: {line}" for line in orphans(mark, ORPHAN_GRACE)]
        found, count = self.examine()
        wrong += found
        left = self.leftovers()
        new = [path for path in left if path.stat().st_mtime > self.started_at(begun)]
        tally.left_for_next_run += len(new)
        # Only SIGKILL, a second signal, or on a busy machine the guard thread may end a process while it writes.
        if number != signal.SIGKILL and code not in (130, -number) and not (self.cell.code or early):
            wrong += [f"{path.name} is left" for path in new]
        tally.instants += 1
        tally.signals[number.name] += 1
        tally.while_writing += written
        tally.exit_codes[str(code)] += 1
        tally.files_checked += count
        tally.two_moments += len(MOMENTS)
        MOMENTS.clear()
        if wrong:
            tally.failures.append(
                {"seed": seed, "signal": number.name, "at": round(sent - begun, 3), "what": wrong}
            )

    @staticmethod
    def started_at(begun: float) -> float:
        """Return the time of day of a monotonic time."""
        return time.time() - (time.monotonic() - begun)


def _wait(process: subprocess.Popen[str], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _send(process: subprocess.Popen[str], number: signal.Signals) -> None:
    if process.poll() is None:
        process.send_signal(number)


def _processor_seconds(process: int) -> float:
    """Return the processor seconds of a process so far; infinite if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("inf")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def make_table(path: Path) -> None:
    """Write a table whose search takes longer than its limit, but whose commands are quick."""
    draw = random.Random(5)
    lines = [",".join([f"x{i}" for i in range(9)] + ["class"])]
    for _ in range(160):
        row = [draw.randrange(3) for _ in range(9)]
        label = (row[0] + row[1] * row[2] + row[3]) % 3 if draw.random() < 0.8 else draw.randrange(3)
        lines.append(",".join([*(f"v{v}" for v in row), f"c{label}"]))
    path.write_text("\n".join(lines) + "\n")


def make_inputs(folder: Path) -> None:
    """Write a result with its certificate, which `verify` reads."""
    folder.mkdir()
    words = [str(PROGRAM), "solve", "instance:corral", "--p", "0.9", "-q"]
    for option in (RESULT, "--certificate"):
        words += [option, str(folder / OUTPUTS[option][0])]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def run_cell(cell: Cell, tally: Tally, options: argparse.Namespace, keep: Callable[[], None]) -> None:
    """Add the instants of a cell that are missing, within its seconds."""
    if tally.instants >= options.count:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, inputs = folder / "table.csv", folder / "inputs"
        make_table(table)
        if "INPUTS" in cell.words:
            make_inputs(inputs)
        here = Range(cell, folder / "cell", table, inputs)
        before, end = os.times(), time.monotonic() + options.seconds
        wrong = here.undisturbed()
        while tally.instants < options.count and time.monotonic() < end:
            wait_while(options.pause)
            if here.ended or random.Random(tally.instants).random() < 0.3:
                here.forget()
            here.instant(tally.instants, tally)
            keep()
        wrong += here.undisturbed(last=True)
        spent = sum(now - then for now, then in zip(os.times()[:4], before[:4], strict=True))
        tally.processor_seconds = round(tally.processor_seconds + spent, 1)
        if wrong:
            tally.failures.append({"seed": None, "signal": None, "at": None, "what": wrong})


HEAD = (
    "| command | instants | KILL, TERM, INT | while writing | twice | files read | left for the next run | "
    "obeyed within s | second signal s | CPU s | failures |"
)


def row_of(name: str, t: Tally, signals: bool = True) -> str:
    """Return the figures of a cell as a row of the table; without signals and times, of all cells together."""
    sent = ", ".join(str(t.signals[number.name]) for number in SIGNALS) if signals else ""
    times = [f"{x:.1f}" if signals else "" for x in (t.longest_to_obey, t.longest_to_obey_second)]
    counts = t.while_writing, t.twice, t.files_checked, t.left_for_next_run
    figures = (name, t.instants, sent, *counts, *times, f"{t.processor_seconds:.0f}", len(t.failures))
    return f"| {' | '.join(map(str, figures))} |".replace("|  |", "| |").replace("|  |", "| |")


def table_of(cells: dict[str, Any]) -> str:
    """Return the figures of all cells as a table of Markdown."""
    tallies = {name: Tally.read(values) for name, values in cells.items()}
    every = Tally(failures=[failure for t in tallies.values() for failure in t.failures])
    for key in (
        "instants",
        "while_writing",
        "twice",
        "files_checked",
        "left_for_next_run",
        "processor_seconds",
    ):
        setattr(every, key, sum(getattr(t, key) for t in tallies.values()))
    rows = [row_of(name, t) for name, t in tallies.items()]
    return "\n".join([HEAD, "|---" * 11 + "|", *rows, row_of("all", every, signals=False)])


def main() -> None:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("words", nargs="*", metavar="WORD", help="words that the names of the cells have")
    made.add_argument("--count", type=int, default=200, help="instants of each cell")
    made.add_argument("--seconds", type=float, default=float("inf"), help="seconds of each cell in this run")
    made.add_argument("--output", type=Path, default=RELIABILITY / "kill.json")
    add_pause(made)
    made.add_argument("--list", action="store_true", help="only list the cells")
    made.add_argument(
        "--table", action="store_true", help="only print the results so far as a table of Markdown"
    )
    options = made.parse_args()
    wanted = chosen(CELLS, options.words)
    if options.list:
        print("\n".join(cell.name for cell in wanted))
        return
    if options.table:
        print(table_of(read_results(options.output)["cells"]))
        return
    results = results_of(options.output)
    cells = results.setdefault("cells", {})
    failed = 0
    for cell in wanted:
        tally = Tally.read(cells.get(cell.name, {}))
        known = len(tally.failures)

        def keep(cell: Cell = cell, tally: Tally = tally) -> None:
            cells[cell.name] = vars(tally)
            write_results(options.output, results)

        run_cell(cell, tally, options, keep)
        keep()
        failed += len(tally.failures) - known
        print(row_of(cell.name, tally), flush=True)
        for failure in tally.failures[known:]:
            print(f"    {failure}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
