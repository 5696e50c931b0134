"""Searches in a loop over random tables: memory, threads, open files, child processes and temporary files stay flat.

    python tests/faults/load.py api [--seconds S] [--output results/reliability/load.json]
    python tests/faults/load.py command [--seconds S]
    python tests/faults/load.py letter --data-dir DIR [--time-limit 3600]

`api` calls `milpbn.solve` in one process, with every backend in turn, all kinds of scores, and files; every certificate
is verified. What leaks shows there. `command` starts `milpbn solve` again and again, and looks for what each process
leaves behind: child processes, temporary files, locked files. Each run adds a session to the results, with its samples
of the process; the hours add up. While the file named by `--pause` exists, no new search begins, and the clock stands
still. Run it at a low priority: `nice -n 19 python tests/faults/load.py ...`.

`letter` solves letter for an hour with a certificate, and checks that the certificate stays below its maximum size and
is verified. It takes all cores for the hour, or as many as `--threads` says.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from shared import MARK, PROGRAM, RELIABILITY, add_pause, orphans, results_of, wait_while, write_results

import milpbn
from milpbn.certificate.format import LARGEST
from milpbn.certificate.verify.check import verify
from milpbn.data import Dataset, read_table
from milpbn.util.memory import used_memory

#: Searches of `api` before the first sample: imports, kernels and the solvers' own pools come with them.
WARM = 30
#: Seconds between two samples, and largest growth that counts as flat, as a share of the memory after the start.
SAMPLE_EVERY, FLAT = 20.0, 0.02
BACKENDS = ("native", "native", "native", "highs", "cbc", "scip", "cpsat")


def random_table(draw: random.Random) -> pd.DataFrame:
    """Return a table of 3 to 5 features with 2 or 3 states, and 20 to 90 rows."""
    features, rows = draw.randint(3, 5), draw.randint(20, 90)
    states = [draw.randint(2, 3) for _ in range(features)]
    classes = draw.randint(2, 3)
    lines = []
    for _ in range(rows):
        row = [draw.randrange(n) for n in states]
        label = (row[0] + row[1]) % classes if draw.random() < 0.7 else draw.randrange(classes)
        lines.append([*(f"s{x}" for x in row), f"c{label}"])
    return pd.DataFrame(lines, columns=[*(f"x{i}" for i in range(features)), "class"])


def sample(began: float, runs: int) -> dict[str, float]:
    """Return what this process holds now, after the allocator has given back what it keeps free."""
    gc.collect()
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(
            0
        )  # of glibc; without it, pieces that SCIP and HiGHS freed count as well
    folder = Path("/proc/self")
    resident = int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    children = sum(len((task / "children").read_text().split()) for task in (folder / "task").iterdir())
    return {
        "seconds": round(began, 1),
        "runs": runs,
        "rss_bytes": resident,
        "rss_with_children_bytes": used_memory() or 0,
        "malloc_used_bytes": _malloc_used(),
        "threads": threading.active_count(),
        "system_threads": len(list((folder / "task").iterdir())),
        "open_files": len(list((folder / "fd").iterdir())),
        "children": children,
        "temporary_files": len(list(Path(tempfile.gettempdir()).iterdir())),
    }


class _Malloc(ctypes.Structure):
    """What `mallinfo2` of glibc returns."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in [
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        ]
    )  # fmt: skip


def _malloc_used() -> int:
    """Return the bytes that C and C++ code holds; 0 without glibc. Resident memory beyond it is fragmentation."""
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return 0
    ask.restype = _Malloc
    found = ask()
    return int(found.uordblks + found.hblkhd)


class Clock:
    """Seconds of work, without those in which a file says to pause."""

    def __init__(self, pause: Path | None) -> None:
        self._pause, self._lost, self._began = pause, 0.0, time.monotonic()

    def seconds(self) -> float:
        """Wait while the file exists; return the seconds of work so far."""
        self._lost += wait_while(self._pause)
        return time.monotonic() - self._began - self._lost


def search(draw: random.Random, folder: Path) -> str:
    """Solve a random table with random options; return the backend, or raise an exception if something is wrong."""
    table, backend = random_table(draw), draw.choice(BACKENDS)
    name = draw.choice(("sm", "sm", "sbm", "cll") if backend == "native" else ("sm", "sbm", "bdeu", "mdl"))
    score = milpbn.Score(name=name)
    if name in ("sm", "sbm"):
        score = milpbn.Score(name=name, p=draw.choice((0.6, 0.9, 0.99)))
    path = folder / "table.csv"
    table.to_csv(path, index=False)
    data = read_table(path).dataset("train")
    certificate = folder / "proof.npz" if backend == "native" else None
    files = {"output": folder / "result.json", "trace": folder / "trace.jsonl", "certificate": certificate}
    threads, seed = draw.choice((1, 2)), draw.randrange(1000)
    result = milpbn.solve(
        data,
        score,
        backend=backend,
        threads=threads,
        random_state=seed,
        time_limit=60,
        verbose=False,
        **files,
    )
    if result.structure is None:
        raise AssertionError(f"{backend} found no structure: {result.reason}, {result.limit}")
    if certificate is not None:
        verify(result, certificate, data)
    return backend


def work(
    options: argparse.Namespace,
    keep: Callable[[dict[str, Any]], None],
    one: Callable[[int], str],
    look: Callable[[float, int], dict[str, float]],
    warm: int = 0,
) -> None:
    """Do one piece of work after another for the seconds of the session, and keep its figures.

    `one` returns the backend of its search, and raises AssertionError for what is wrong; `look` takes a sample of the
    seconds and runs so far, the first one after `warm` runs.
    """
    clock = Clock(options.pause)
    session: dict[str, Any] = {
        "mode": options.mode,
        "seed": options.seed,
        "backends": {},
        "failures": [],
        "samples": [],
    }
    counts: Counter[str] = Counter()
    runs, sampled = 0, -SAMPLE_EVERY

    def note(sampling: bool) -> None:
        if sampling:
            session["samples"].append(look(clock.seconds(), runs))
        keep(session | figures(session, clock.seconds(), runs, counts))

    while (now := clock.seconds()) < options.seconds:
        try:
            counts[one(runs)] += 1
        except Exception as error:
            session["failures"].append(f"run {runs}: {type(error).__name__}: {error}")
        runs += 1
        if runs >= warm and now >= sampled + SAMPLE_EVERY:
            sampled = now
            note(True)
    note(options.mode == "api")


def api(options: argparse.Namespace, keep: Callable[[dict[str, Any]], None]) -> None:
    """Search in this process."""
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        tempfile.tempdir = name  # its temporary files are counted
        folder = Path(name, "files")
        folder.mkdir()
        work(options, keep, lambda run: search(draw, folder), sample, WARM)
        tempfile.tempdir = None


def command(options: argparse.Namespace, keep: Callable[[dict[str, Any]], None]) -> None:
    """Start the command again and again."""
    draw = random.Random(options.seed)

    def one(run: int) -> str:
        random_table(draw).to_csv(folder / "table.csv", index=False)
        backend = draw.choice(BACKENDS)
        words = ["solve", folder / "table.csv", "--p", "0.9", "--backend", backend, "-q", "--threads", "1"]
        words += ["--output", folder / "result.json", "--time-limit", "60"]
        mark = f"{os.getpid()}-{run}"
        environment = os.environ | {"TMPDIR": str(temporary), MARK: mark}
        asked = [str(PROGRAM), *map(str, words)]
        done = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
        left = [p.name for p in temporary.iterdir() if p.name != f"milpbn-{os.getuid()}"]
        left += [p.name for p in folder.iterdir() if p.name not in ("table.csv", "result.json")]
        alive = orphans(mark, 1.0)
        if done.returncode or left or alive:
            said = f"exit {done.returncode}: {done.stderr.strip()[-300:]}" if done.returncode else "exit 0"
            raise AssertionError(f"{backend}: {said}; files left {left}; processes left {alive}")
        return backend

    def look(seconds: float, runs: int) -> dict[str, float]:
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        return {"seconds": round(seconds, 1), "runs": runs, "largest_peak_bytes": peak}

    with tempfile.TemporaryDirectory() as name:
        temporary, folder = Path(name, "tmp"), Path(name, "files")
        temporary.mkdir()
        folder.mkdir()
        work(options, keep, one, look)


def figures(session: dict[str, Any], seconds: float, runs: int, counts: Counter[str]) -> dict[str, Any]:
    """Return the figures of a session so far: its size, and the growth between its third and last quarter.

    The first searches with each backend and kind of score load libraries and kernels: after some 1,300 random searches
    `malloc_used_bytes` stops growing.
    """
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    made: dict[str, Any] = {
        "seconds": round(seconds, 1),
        "runs": runs,
        "backends": dict(counts),
        "processor_seconds": round(sum(u.ru_utime + u.ru_stime for u in usage), 1),
    }
    samples = session["samples"]
    if session["mode"] == "api" and len(samples) >= 8:
        quarter = len(samples) // 4
        for key in samples[0].keys() - {"seconds", "runs", "rss_with_children_bytes"}:
            third = statistics.median(s[key] for s in samples[-2 * quarter : -quarter])
            last = statistics.median(s[key] for s in samples[-quarter:])
            made[f"{key}_third_and_last_quarter"] = [third, last]
        third, last = made["rss_bytes_third_and_last_quarter"]
        made["flat"] = last <= third * (1 + FLAT)
    return made


def letter(options: argparse.Namespace) -> dict[str, Any]:
    """Solve letter with a certificate, and verify it."""
    with tempfile.TemporaryDirectory() as name:
        result, proof = Path(name, "letter.json"), Path(name, "letter.npz")
        source = str(options.data_dir / "letter.csv.gz") if options.data_dir else "letter"
        words = [str(PROGRAM), "solve", source, "--no-class-parents", "--time-limit", str(options.time_limit)]
        words += ["--output", str(result), "--certificate", str(proof)]
        if options.threads:
            words += ["--threads", str(options.threads)]
        began = time.monotonic()
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        status = re.search(r"^status +(.*)$", done.stdout, re.M)
        data: Dataset = read_table(source).dataset("train")
        proved = verify(milpbn.Result.load(result), proof, data)
        return {
            "command": " ".join(["milpbn", "solve", Path(source).name, *words[3:6], *words[10:]]),
            "version": version("milpbn"),
            "seconds": round(time.monotonic() - began, 1),
            "status": status[1] if status else "",
            "certificate_bytes": proof.stat().st_size,
            "largest_bytes": LARGEST,
            "peak_bytes": usage.ru_maxrss * 1024,
            "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
            "objective": proved.objective,
            "bound": proved.bound,
            "leaves": proved.leaves,
        }


def line_of(session: dict[str, Any]) -> str:
    """Return a session in a line."""
    parts = [
        f"{session['mode']:<8} {session['seconds'] / 3600:.2f} h, {session['runs']} searches, "
        f"{session['processor_seconds']:.0f} CPU s, {len(session['failures'])} failures"
    ]
    for key, unit in (("rss_bytes", 2**20), ("system_threads", 1), ("open_files", 1), ("children", 1)):
        pair = session.get(f"{key}_third_and_last_quarter")
        if pair:
            parts.append(f"{key.removesuffix('_bytes')} {pair[0] / unit:.4g} -> {pair[1] / unit:.4g}")
    return "; ".join(parts)


def main() -> None:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("mode", choices=("api", "command", "letter", "show"))
    made.add_argument("--seconds", type=float, default=3600.0, help="seconds of this session")
    made.add_argument("--seed", type=int, help="by default the number of sessions so far")
    add_pause(made)
    made.add_argument("--data-dir", type=Path, default=os.environ.get("MILPBN_DATA"), metavar="DIR")
    made.add_argument("--time-limit", type=float, default=3600.0, metavar="SECONDS", help="of letter")
    made.add_argument("--threads", type=int, help="of letter; by default one for each core")
    made.add_argument("--output", type=Path, default=RELIABILITY / "load.json")
    options = made.parse_args()
    results = results_of(options.output)
    sessions: list[dict[str, Any]] = results.setdefault("sessions", [])
    if options.mode == "letter":
        results["letter"] = letter(options)
        write_results(options.output, results)
        print(results["letter"])
        return
    if options.mode != "show":
        if options.seed is None:
            options.seed = len(sessions)
        number = len(sessions)

        def keep(session: dict[str, Any]) -> None:
            sessions[number:] = [session]
            results["hours"] = {
                mode: round(sum(s["seconds"] for s in sessions if s["mode"] == mode) / 3600, 3)
                for mode in ("api", "command")
            }
            write_results(options.output, results)

        (api if options.mode == "api" else command)(options, keep)
    for session in sessions:
        print(line_of(session))
        for failure in session["failures"]:
            print(f"    {failure}")
    print(f"hours so far: {results.get('hours')}")
    sys.exit(1 if any(s["failures"] or s.get("flat") is False for s in sessions) else 0)


if __name__ == "__main__":
    main()
