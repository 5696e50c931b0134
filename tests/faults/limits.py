"""Time limits and interrupts of commands: every verb, backend, score and learner, on wide and large tables.

    python tests/faults/limits.py [WORD ...] --data-dir DIR [--images-dir DIR] [--output DIR] [--list]

Each cell is a command with a time limit or a signal. Its record, in the archive limits/cells.jsonl.gz of the output
folder, states how long the process lived beyond the limit (or the signal), its exit code, the longest time without a
line on stderr, its processor seconds, and the machine's load. On a busy machine a process may get fewer processor
seconds than its time limit; then it is `starved`, and its overrun means little. Cells that have a record are not run
again. A limit may be exceeded by 5 % or 2 s, whichever is larger; a signal must be obeyed within 2 s. Cells named
`cold` begin without compiled kernels. With words, only the cells whose names have all of them are run. Takes some 35
minutes.

    python tests/faults/limits.py --million [--output DIR]

Solves 1,000,000 rows of 30 features with 4 states and 3 classes (p = .9, two parents), and records peak memory and gap.
"""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from shared import PROGRAM, RELIABILITY, chosen, forest, parser, wide_continuous, wide_nominal

from milpbn.learners.registry import LEARNERS
from milpbn.trials.store import ARCHIVE, Store

#: A limit may be exceeded by this share of it or by these seconds, whichever is larger; a signal by these seconds.
SHARE, SECONDS = 0.05, 2.0
#: Longest time in seconds between two lines of progress; a second more is tolerated, for a busy machine.
SILENCE = 5.0
#: A process that lives this number of seconds beyond its limit is killed.
PATIENCE = 60.0
#: Learners that need a file or an option of their own.
NEEDS = {"parameters": ["--structure-file", "STRUCTURE"]}
GENERATIVE = ("ll", "mdl", "aic", "aicc", "bdeu")


@dataclass(frozen=True)
class Cell:
    """One command; `limit` is its time limit in seconds, or `after` the seconds after which it gets a signal."""

    name: str
    arguments: list[str]
    limit: float | None = None
    after: float | None = None
    signal: str = "SIGINT"
    cold: bool = False
    parts: int = 1
    answers: list[int] = field(default_factory=lambda: [0])


def cells() -> Iterator[Cell]:
    """Return all cells; `Files` replaces TABLE:name by the path of a table, and STRUCTURE and the like by files."""

    def both(name: str, arguments: list[str], limit: float, after: float, **extra: Any) -> Iterator[Cell]:
        yield Cell(f"{name} limit", [*arguments, "--time-limit", f"{limit:g}"], limit=limit, **extra)
        yield Cell(f"{name} signal", arguments, after=after, **{**extra, "answers": [0, 130]})

    for table in ("letter", "usps", "wide-continuous", "wide-nominal"):
        for parents in ("2", "3"):
            if (table, parents) == ("usps", "3"):
                continue  # refused: its tables would not fit the memory
            for score in ("sm", "sbm", "cll"):
                if table == "wide-nominal" and score != "sm":
                    continue
                base = [f"TABLE:{table}", "--score", score, "--max-parents", parents]
                yield from both(f"solve native {score} {table} {parents}", ["solve", *base], 6, 4)
        yield from both(f"bound sm {table}", ["bound", f"TABLE:{table}", "--max-parents", "2"], 6, 4)
        yield Cell(
            f"solve cold sm {table}",
            ["solve", f"TABLE:{table}", "--time-limit", "10"],
            limit=10,
            cold=True,
        )
    for backend in ("highs", "cbc", "cpsat", "scip"):
        for table in ("letter", "wide-continuous"):
            base = ["solve", f"TABLE:{table}", "--backend", backend]
            yield from both(f"solve {backend} sm {table}", base, 8, 6)
    for score in (*GENERATIVE, "hard-margin"):
        for table in ("letter", "wide-continuous"):
            base = ["solve", f"TABLE:{table}", "--score", score]
            yield Cell(f"solve auto {score} {table} limit", [*base, "--time-limit", "6"], limit=6)
    yield from both(
        "solve cv sm letter", ["solve", "TABLE:letter", "--p", "cv", "--max-parents", "cv"], 10, 6
    )
    for table in ("letter", "usps"):
        # `export` writes the time limit into the solvers' command lines, and has no limit itself.
        out = ["export", f"TABLE:{table}", "--output", "FOLDER/m.lp"]
        yield Cell(f"export {table} signal", out, after=3, answers=[0, 2, 130])
        yield Cell(f"export reduced {table} signal", [*out, "--reduced"], after=6, answers=[0, 2, 130])
    for name in LEARNERS:
        for table in ("letter", "usps"):
            if name == "all-orders" and table == "usps":
                continue  # refuses so many variables
            base = ["learn", name, f"TABLE:{table}", *NEEDS.get(name, [])]
            yield from both(f"learn {name} {table}", base, 5, 3, answers=[0])
        yield Cell(
            f"learn {name} wide-continuous limit",
            ["learn", name, "TABLE:wide-continuous", *NEEDS.get(name, []), "--time-limit", "4"],
            limit=4,
            answers=[0, 2],
        )
    for table in ("letter", "wide-continuous"):
        base = ["compare", f"TABLE:{table}"]
        yield Cell(
            f"compare {table} limit",
            [*base, "--also", "svm", "--time-limit", "4"],
            limit=4,
            parts=6,
            answers=[0, 3],
        )
        yield Cell(f"compare {table} signal", base, after=6, answers=[0, 130])
    for verb in (
        ["verify", "RESULT", "TABLE:letter", "--certificate", "CERTIFICATE"],
        ["score", "STRUCTURE", "TABLE:letter"],
        ["evaluate", "CLASSIFIER", "TABLE:letter"],
        ["precision", "CLASSIFIER", "TABLE:letter", "--bits", "64"],
        ["plot", "RESULT", "--output", "FOLDER/p.png"],
    ):
        yield Cell(f"{verb[0]} signal", verb, after=1.5, answers=[0, 130])
    for backend in ("native", "highs"):
        yield Cell(
            f"solve {backend} letter SIGTERM",
            ["solve", "TABLE:letter", "--backend", backend],
            after=5,
            signal="SIGTERM",
            answers=[0, 130],
        )


class Files:
    """Tables and other files that the commands read, each made at its first use."""

    def __init__(self, folder: Path, data: Path | None, images: Path | None) -> None:
        self.folder, self.data, self.images = folder, data, images

    def arguments(self, cell: Cell, own: Path) -> list[str]:
        """Return a cell's arguments with paths in place of names; raise FileNotFoundError if the data are missing."""
        out = []
        for word in cell.arguments:
            if word.startswith("TABLE:"):
                word = str(self.table(word.removeprefix("TABLE:")))
            elif word in ("STRUCTURE", "RESULT", "CERTIFICATE", "CLASSIFIER"):
                word = str(self.solved(word))
            out.append(word.replace("FOLDER", str(own)))
        return out

    def table(self, name: str) -> Path:
        """Return the path of a table."""
        if name == "letter":
            if self.data is None:
                raise FileNotFoundError("letter needs --data-dir")
            return self.data / "letter.csv.gz"
        path = self.folder / f"{name}.csv"
        if not path.exists():
            self.made(name).to_csv(path, index=False)
        return path

    def made(self, name: str) -> pd.DataFrame:
        """Return a table as a frame."""
        if name == "wide-continuous":
            return wide_continuous()
        if name == "wide-nominal":
            return wide_nominal()
        if self.images is None:
            raise FileNotFoundError("usps needs --images-dir")
        with np.load(self.images / "usps-discretised.npz", allow_pickle=False) as archive:
            x, y = archive["x_tr_fold1"].astype(int), archive["t_tr_fold1"].ravel().astype(int)
        frame = pd.DataFrame({f"x{i + 1}": np.char.add("s", x[:, i].astype(str)) for i in range(x.shape[1])})
        frame["class"] = np.char.add("c", y.astype(str))
        return frame

    def solved(self, word: str) -> Path:
        """Return a file that a short search on letter writes."""
        files = {
            "RESULT": "json",
            "STRUCTURE": "json",
            "CERTIFICATE": "certificate",
            "CLASSIFIER": "classifier",
        }
        path = self.folder / f"letter.{files[word]}"
        if not path.exists():
            words = ["solve", self.table("letter"), "--time-limit", "30", "--no-class-parents", "-q"]
            for option, file in (
                ("output", "json"),
                ("certificate", "certificate"),
                ("classifier", "classifier"),
            ):
                words += [f"--{option}", self.folder / f"letter.{file}"]
            subprocess.run([str(PROGRAM), *map(str, words)], check=True, stdout=subprocess.DEVNULL)
        return path


def measure(cell: Cell, files: Files) -> dict[str, Any]:
    """Run a cell, and return its record."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(PROGRAM), *files.arguments(cell, Path(folder))]
        environment = dict(os.environ)
        if cell.cold:
            environment["NUMBA_CACHE_DIR"] = str(Path(folder, "cache"))
        load = os.getloadavg()[0]
        with open(Path(folder, "stdout"), "w+") as stdout:
            begun = time.monotonic()
            process = subprocess.Popen(
                command,
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                start_new_session=True,
            )
            lines: list[tuple[float, str]] = []
            reader = threading.Thread(target=_listen, args=(process, begun, lines), daemon=True)
            reader.start()
            end = begun + (cell.limit or 0.0) * cell.parts
            if cell.after is not None:
                if not _ends(process, cell.after):
                    process.send_signal(getattr(signal, cell.signal))
                end = time.monotonic()
            killed = not _ends(process, max(0.0, end - time.monotonic()) + PATIENCE)
            if killed:
                os.killpg(process.pid, signal.SIGKILL)
            _, status, usage = os.wait4(process.pid, 0)
            over = time.monotonic() - end
            seconds = time.monotonic() - begun
            reader.join(2.0)
            stdout.seek(0)
            answer = stdout.read()
    # Signals as a shell reports them, 128 + number: one that comes after the work, while the interpreter shuts down,
    # ends the process without the program's own exit code.
    code = os.waitstatus_to_exitcode(status)
    code = 128 - code if code < 0 else code
    cpu = usage.ru_utime + usage.ru_stime
    allowed = SECONDS if cell.limit is None else max(SECONDS, SHARE * cell.limit * cell.parts)
    times = [0.0, *(t for t, _ in lines), seconds]
    incumbent = re.search(r"^incumbent +(\S+)", answer, re.MULTILINE)
    return {
        **asdict(cell),
        "command": " ".join(["milpbn", *cell.arguments]),
        "seconds": round(seconds, 2),
        "over": round(over, 2),
        "allowed": allowed,
        "exit_code": code,
        "killed": killed,
        "silence": round(float(np.diff(times).max()), 2),
        "cpu_seconds": round(cpu, 2),
        "peak_bytes": usage.ru_maxrss * 1024,
        "load_before": round(load, 2),
        "load_after": round(os.getloadavg()[0], 2),
        "incumbent": None if incumbent is None else incumbent.group(1),
        "last_line": lines[-1][1].strip()[:200] if lines else "",
        "starved": cell.limit is not None and over > allowed and cpu < cell.limit * cell.parts,
        "ok": over <= allowed and code in cell.answers,
    }


def _listen(process: subprocess.Popen[str], begun: float, lines: list[tuple[float, str]]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        lines.append((time.monotonic() - begun, line))


def _ends(process: subprocess.Popen[str], seconds: float) -> bool:
    """Wait up to some seconds for the end of a process, without taking its exit status; return whether it ended."""
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return True
        time.sleep(0.02)
    return False


def million(files: Files, rows: int = 1_000_000) -> dict[str, Any]:
    """Solve the large table with a limit of two minutes; see the head of this file."""
    path = files.folder / "forest.csv"
    if not path.exists():
        forest(rows).to_csv(path, index=False)
    output = files.folder / "million.json"
    words = ["solve", str(path), "--p=0.9", "--max-parents=2", "--time-limit=120", f"--output={output}"]
    cell = Cell("million rows", words, limit=120)
    record = measure(cell, files)
    if output.exists():
        result = json.loads(output.read_text())
        record["gap"] = result["gap"]["relative_to_bound"]
        reached = [
            t for t, z, b in result["trace"] if z is not None and b is not None and (b - z) / abs(b) <= 0.01
        ]
        record["seconds_to_one_percent"] = reached[0] if reached else None
        output.unlink()
    record["ok"] = record["ok"] and record.get("gap", 1.0) <= 0.01 and record["peak_bytes"] <= 3 * 2**30
    return record


def table_of(records: list[dict[str, Any]]) -> str:
    """Return a summary, and one line per overrun, wrong answer or silence."""
    bad = [r for r in records if not r["ok"]]
    quiet = [r for r in records if r["silence"] > SILENCE + 1.0]
    lines = [
        f"{len(records)} cells, {len(bad)} overruns or wrong exit codes, {len(quiet)} with a long silence on stderr"
    ]
    for r in sorted(bad, key=lambda r: -r["over"]):
        lines.append(
            f"  {r['name']:<44} over {r['over']:6.2f} s (allowed {r['allowed']:.1f}), exit {r['exit_code']}, "
            f"cpu {r['cpu_seconds']:.1f} s, load {r['load_after']:.1f}  {r['last_line'][:60]}"
        )
    lines += [f"  {r['name']:<44} silent for {r['silence']:.1f} s" for r in quiet]
    return "\n".join(lines)


def main() -> None:
    made = parser(__doc__, names="words that the names of the cells have", output=RELIABILITY)
    made.add_argument("--images-dir", type=Path, metavar="DIR", help="folder with usps-discretised.npz")
    made.add_argument(
        "--files",
        type=Path,
        metavar="DIR",
        help="folder for the generated tables; by default a temporary one",
    )
    made.add_argument("--list", action="store_true", help="only list the cells")
    made.add_argument("--million", action="store_true", help="solve a million rows instead")
    options = made.parse_args()
    wanted = chosen(cells(), options.data)
    if options.list:
        print("\n".join(cell.name for cell in wanted))
        return
    store = Store(options.output / "limits" / ARCHIVE)
    machine = {"python": platform.python_version(), "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory() as temporary:
        files = Files(options.files or Path(temporary), options.data_dir, options.images_dir)
        files.folder.mkdir(parents=True, exist_ok=True)
        if options.million:
            record = million(files) | machine
            store.add({record["name"]: record})
            print(json.dumps(record, indent=1))
            return
        records = []
        for number, cell in enumerate(wanted):
            if cell.name not in store:
                try:
                    record = measure(cell, files) | machine
                except FileNotFoundError as error:
                    print(f"{cell.name}: skipped, {error}", flush=True)
                    continue
                store.add({cell.name: record})
                word = "ok " if record["ok"] else "BAD"
                print(
                    f"{number + 1:4}/{len(wanted)} {word} {cell.name:<44} over {record['over']:6.2f} s, "
                    f"exit {record['exit_code']}, silence {record['silence']:.1f} s, load {record['load_after']:.1f}",
                    flush=True,
                )
            records.append(store[cell.name])
    print(table_of(records))


if __name__ == "__main__":
    main()
