"""SIGKILL at random instants of a search on workers: of a worker, a nanny, the scheduler, or the calling process.

    python tests/faults/kill_cluster.py [--runs 20] [--kills 100] [--seconds S] [--output FILE]

A run proves one problem with `milpbn solve --checkpoint`, on a scheduler and two workers, or on workers of its own. It
begins again as often as its calling process was killed: with another number of workers, or with none. What must hold:

- after a killed calling process, its certificate so far is verified, and no process of it is left;
- no bound after a checkpoint is larger than the checkpoint's, and no incumbent is smaller;
- the optimum in the end is that of one thread, and `milpbn verify` accepts its certificate.

Runs are numbered, and their numbers are the seeds. The script goes on where it stopped (results/reliability has what it
found), until there are `--runs` runs and `--kills` kills, or `--seconds` have passed.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
from kill import check_certificate
from running import random_data
from shared import MARK, PROGRAM, RELIABILITY, orphans, results_of, write_results

from milpbn.data import Dataset, read_table
from milpbn.errors import InputError
from milpbn.solving.api import solve
from milpbn.solving.checkpoint import SavedSearch, load_saved_search

#: Kills of a run, and the seconds before each.
KILLS, PAUSES = 5, (0.5, 6.0)
#: What is killed, and how often; and the options that a run goes on with.
VICTIMS = {"worker": 11, "nanny": 2, "scheduler": 3, "calling process": 5}
PLACES = {"--dask FILE": 6, "--workers 1": 1, "--workers 2": 2, "--workers 3": 1, "--threads 1": 1}
#: Seconds that a run may take, and that its processes get to notice that their parent was killed.
PATIENCE, GRACE = 900.0, 20.0
#: Exit codes of a search that stops because a part was lost three times, and of one that finds no scheduler.
GAVE_UP, NO_SCHEDULER = 4, 2
#: Rows and features of the problem; one thread takes 6 CPU seconds and 1,357 nodes.
ROWS, FEATURES, TABLE = 400, 16, "table.csv"


def make_table(path: Path) -> Dataset:
    """Write the table of the problem, and return its rows."""
    made = random_data([61, 0], n_features=FEATURES, n_samples=ROWS, n_classes=2)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([variable.name for variable in made.variables])
        writer.writerows([[f"s{code}" for code in row] for row in made.codes])
    return read_table(path).dataset("train")


class Cluster:
    """A scheduler and two workers with a nanny each; those that were killed are started again."""

    def __init__(self, folder: Path) -> None:
        self.file, self._folder = folder / "scheduler.json", folder
        self.scheduler: psutil.Popen | None = None
        self.nannies: list[psutil.Popen] = []

    def _start(self, *words: str) -> psutil.Popen:
        log = (self._folder / "cluster.log").open("a")
        return psutil.Popen(
            [sys.executable, "-m", "dask", *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip

    def complete(self) -> None:
        """Start what is missing. Workers do not outlive their scheduler."""
        where = "--scheduler-file", str(self.file)
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.end()
            self.file.unlink(missing_ok=True)
            address = "--host", "127.0.0.1", "--port", "0"
            self.scheduler = self._start("scheduler", *address, "--no-dashboard", *where)
        while not self.file.exists():
            time.sleep(0.1)
        self.nannies = [nanny for nanny in self.nannies if nanny.poll() is None]
        options = "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"
        while len(self.nannies) < 2:
            self.nannies.append(
                self._start("worker", *options, *where, "--local-directory", str(self._folder))
            )

    def end(self) -> None:
        """Kill all processes."""
        for process in [self.scheduler, *self.nannies]:
            for one in [] if process is None else family(process):
                kill(one)
            if process is not None:
                process.wait()
        self.scheduler, self.nannies = None, []


def family(process: psutil.Process) -> list[psutil.Process]:
    """Return the processes below a process, and itself at the end."""
    try:
        return [*process.children(recursive=True), process]
    except psutil.NoSuchProcess:
        return []


def kill(process: psutil.Process) -> bool:
    """Send SIGKILL; return whether the process was there."""
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return False
    return True


def names_of(process: psutil.Process) -> str:
    """Return the command line of a process."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


class Run:
    """One search from its beginning to its proof, with everything that is killed meanwhile."""

    def __init__(self, seed: int, folder: Path, cluster: Cluster, data: Dataset, optimum: float) -> None:
        self.seed, self.data, self._optimum, self._cluster = seed, data, optimum, cluster
        self._draw, self._mark, self._table = random.Random(seed), uuid.uuid4().hex, folder.parent / TABLE
        self._output, self._proof = folder / "result.json", folder / "proof.npz"
        self._checkpoint = folder / "state.npz"
        self._saved: list[SavedSearch] = []
        self.kills: Counter[str] = Counter()
        self.starts: list[str] = []
        #: Searches that ended with a sentence about the cluster, by their exit codes.
        self.said: Counter[int] = Counter()
        self.wrong: list[str] = []

    def _start(self) -> psutil.Popen:
        first = {place: n for place, n in PLACES.items() if self.starts or place != "--threads 1"}
        place = self._draw.choices(list(first), list(first.values()))[0]
        self.starts.append(place)
        if "--dask" in place:
            self._cluster.complete()
        words = place.replace("FILE", str(self._cluster.file)).split()
        files = "--output", self._output, "--certificate", self._proof, "--checkpoint", self._checkpoint
        if "--threads" not in place:
            words += ["--threads", "1"]
        return psutil.Popen(
            [str(PROGRAM), "solve", str(self._table), *words, *map(str, files), "-q"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {MARK: self._mark}, start_new_session=True,
        )  # fmt: skip

    def _victims(self, kind: str, calling: psutil.Popen) -> list[psutil.Process]:
        """Return the processes of a kind that take part in the search."""
        if kind == "calling process":
            return [calling]
        if "--dask" not in self.starts[-1]:
            below = family(calling)[:-1]
            nannies = [one for one in below if "dask worker" in names_of(one)]
        else:
            if kind == "scheduler":
                return [self._cluster.scheduler]
            nannies = self._cluster.nannies
        if kind == "nanny":
            return nannies
        spawned = [one for nanny in nannies for one in family(nanny)[:-1]]
        return [one for one in spawned if "spawn_main" in names_of(one)]

    def _kill_one(self, calling: psutil.Popen) -> None:
        kind = self._draw.choices(list(VICTIMS), list(VICTIMS.values()))[0]
        there = self._victims(kind, calling) if kind != "scheduler" or "--dask" in self.starts[-1] else []
        if there and kill(self._draw.choice(there)):
            self.kills[kind] += 1

    def to_the_end(self) -> None:
        """Search, kill and go on until the proof."""
        began = time.monotonic()
        try:
            while time.monotonic() < began + PATIENCE:
                if self._once():
                    return
            self.wrong.append(f"no proof within {PATIENCE:.0f} s")
        finally:
            self.wrong += [f"an orphan: {line}" for line in orphans(self._mark, GRACE)]

    def _once(self) -> bool:
        """Let one command search until it ends or is killed; return whether it has ended with a proof."""
        calling = self._start()
        while self.kills.total() < KILLS:
            try:
                calling.wait(self._draw.uniform(*PAUSES))
                break
            except psutil.TimeoutExpired:
                self._kill_one(calling)
                if "--dask" in self.starts[-1]:
                    self._restart_workers()
        try:
            _, errors = calling.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            calling.send_signal(signal.SIGABRT)
            self.wrong.append(f"after {PATIENCE:.0f} s the search has not ended")
            calling.wait()
            return True
        self._examine(calling.returncode, errors)
        return calling.returncode == 0 or bool(self.wrong)

    def _restart_workers(self) -> None:
        """Start killed workers again, as their users would."""
        scheduler = self._cluster.scheduler
        if scheduler is not None and scheduler.poll() is None:
            self._cluster.complete()

    def _examine(self, code: int, errors: str) -> None:
        if "Traceback" in errors:
            self.wrong.append(f"a traceback: {errors.strip()[:3000]}")
        # The scheduler may be killed just before a search that needs it.
        if (code == GAVE_UP and "workers ended while they searched" in errors) or (
            code == NO_SCHEDULER and "no Dask scheduler answers" in errors and self.kills["scheduler"]
        ):
            self.said[code] += 1
        elif code not in (0, -signal.SIGKILL):
            self.wrong.append(f"exit code {code}: {errors.strip()[-300:]}")
        if self._checkpoint.exists():
            saved = load_saved_search(self._checkpoint)
            # Without a tree, the root is bounded anew, from a better structure.
            self._saved.append(saved if saved.tree is not None else saved._replace(bound=math.inf))
        if self._proof.exists():
            try:
                check_certificate(self._proof, self.data)
            except (InputError, ValueError, KeyError) as error:
                self.wrong.append(f"the certificate: {error}")
        for before, after in zip(self._saved, self._saved[1:], strict=False):
            if after.bound > before.bound or after.objective < before.objective:
                self.wrong.append(
                    f"worse after a checkpoint: {before.objective}, {before.bound}; {after.objective}, {after.bound}"
                )
        if code == 0:
            self._examine_end()

    def _examine_end(self) -> None:
        """Check the result of the search that came to its end."""
        values = json.loads(self._output.read_text())
        if values["status"]["reason"] != "optimal" or abs(values["objective"] - self._optimum) > 1e-9:
            self.wrong.append(f"{values['status']['reason']} at {values['objective']}, not {self._optimum}")
        for saved in self._saved:
            later = [bound for seconds, _, bound in values["trace"] if seconds > saved.seconds]
            if None in later or (later and max(later) > saved.bound):
                self.wrong.append(f"bounds up to {max(later)} after {saved.bound} in the checkpoint")
        words = [
            str(PROGRAM),
            "verify",
            str(self._output),
            str(self._table),
            "--certificate",
            str(self._proof),
        ]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            self.wrong.append(f"not verified: {(done.stdout + done.stderr).strip()[-300:]}")

    def record(self, seconds: float) -> dict[str, Any]:
        """Return what the results file keeps."""
        resumed = [round(saved.bound, 3) for saved in self._saved if math.isfinite(saved.bound)]
        return {
            "seed": self.seed, "rows": ROWS, "kills": dict(self.kills), "starts": self.starts, "said": dict(self.said),
            "seconds": round(seconds, 1), "bounds": resumed, "failures": self.wrong,
        }  # fmt: skip


def main() -> None:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("--runs", type=int, default=20, help="least number of runs")
    made.add_argument("--kills", type=int, default=100, help="least number of kills of all runs")
    made.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no run after so many seconds"
    )
    made.add_argument("--output", type=Path, default=RELIABILITY / "kill_cluster.json")
    options = made.parse_args()
    results, began, failed = results_of(options.output), time.monotonic(), 0
    runs = results.setdefault("runs", [])
    with tempfile.TemporaryDirectory() as name:
        data, cluster = make_table(Path(name, TABLE)), Cluster(Path(name))
        optimum = solve(data, "sm", threads=1, verbose=False).objective
        while len(runs) < options.runs or sum(sum(run["kills"].values()) for run in runs) < options.kills:
            if time.monotonic() - began > options.seconds:
                break
            folder, begun = Path(name, str(len(runs))), time.monotonic()
            folder.mkdir()
            run = Run(len(runs), folder, cluster, data, optimum)
            try:
                run.to_the_end()
            except BaseException:
                cluster.end()
                raise
            runs.append(run.record(time.monotonic() - begun))
            write_results(options.output, results)
            failed += bool(run.wrong)
            print(runs[-1], flush=True)
        cluster.end()
    kills = Counter[str]()
    for one in runs:
        kills.update(one["kills"])
    print(f"{len(runs)} runs, {kills.total()} kills: {dict(kills)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
