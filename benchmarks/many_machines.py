"""Nodes a second of two workers beside two threads, and what a search on many workers would reach.

    python benchmarks/many_machines.py --data-dir DIR rate [--seconds 60] [--rounds 3]
    python benchmarks/many_machines.py --data-dir DIR cost
    python benchmarks/many_machines.py --data-dir DIR simulate
    python benchmarks/many_machines.py --data-dir DIR plan

`rate` searches below the same root with two threads and with two Dask workers of one thread, in turns, and writes the
nodes a second and a CPU second. Each run takes so many CPU seconds a thread or worker. The CPU seconds of workers
include those of the calling process. They are the same however busy the machine is: nodes a CPU second are half of what
two idle cores would give as long as the workers never wait, so the share of the time that they search is written, too.
The workers have searched before, as the kernels of the threads are loaded before. It also records the CPU seconds and
the number of open children of nodes.

`cost` measures what parts and nodes cost the calling process and the scheduler, all threads and the transport included:
workers close nodes without any steps, with results as large as those of real nodes, in parts of two sizes.

`simulate` plays a quarter of an hour with the recorded nodes, these costs and a latency: how busy 16, 64, 256 and
1,024 workers are.
`plan` says what letter costs and takes to some gaps.
"""

from __future__ import annotations

import argparse
import gzip
import heapq
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from common import RESULTS, write_results
from distributed import Client

from milpbn import Score, read_table
from milpbn.certificate.format import Proof
from milpbn.certificate.records import DualWeights
from milpbn.distributed import dispatcher as spread
from milpbn.distributed.clusters import connected
from milpbn.engine.events import EventLog
from milpbn.engine.root import Root
from milpbn.engine.tree.branching_rule import Observations
from milpbn.engine.tree.dispatch import Dispatcher, ThreadDispatcher
from milpbn.engine.tree.expansion import Expansion, NodeTask
from milpbn.engine.tree.node import Node
from milpbn.engine.tree.search import BranchAndBound
from milpbn.engine.tree.subtree import SubtreeResult, SubtreeTask
from milpbn.problem.problem import build_problem
from milpbn.solving.api import solve
from milpbn.solving.outlook import forecast
from milpbn.util.threads import library_threads, threads_used

OUTPUT = RESULTS / "many_machines.json"
PROBLEMS = ("segment", "letter")
P = 0.99
WORKERS = (16, 64, 256, 1024)
#: The gaps of `plan`, relative to the bound.
GAPS = (0.02, 0.01, 0.006, 0.005, 0.002, 0.001)
#: Seconds from sending a part to its arrival, and back: what Dask takes for one task (submit and result, 31 ms).
LATENCY = 0.031
HOUR = 3600.0
#: Seconds that workers search before the first measurement.
WARM_SECONDS = 5.0
#: Nodes that are recorded of each problem, and drawn of them.
RECORDED, DRAWN = 2000, 1_000_000
#: Nodes of the parts in `cost`, and how many parts there are.
PART_NODES, COST_PARTS = (5, 100), 100
#: Seconds that a search goes on for before, so that its nodes are as large as most.
GROWN_SECONDS = 20.0
#: Seconds for which both do nothing, so that what that takes is known.
IDLE_SECONDS = 10.0


class Watched(BranchAndBound):
    """A search that records its nodes and parts."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._local = threading.local()
        #: CPU seconds and number of open children of the nodes that this process has expanded.
        self.recorded: list[tuple[float, int]] = []
        #: Parts and nodes taken back, the seconds of workers in them, and the CPU seconds of climbs here.
        self.parts = self.nodes = 0
        self.searched = self.climbed = 0.0

    def hand_out(self, *, wait: bool) -> NodeTask | None:
        """Start the clock of this thread."""
        task = super().hand_out(wait=wait)
        self._local.begun = time.thread_time()
        return task

    def take_back(self, task: NodeTask, expansion: Expansion | None) -> None:
        """Stop the clock of this thread."""
        if expansion is not None:
            self.recorded.append((time.thread_time() - self._local.begun, len(expansion.nodes.open)))
        super().take_back(task, expansion)

    def take_back_subtree(self, task: SubtreeTask, result: SubtreeResult | None) -> None:
        """Count the part."""
        if result is not None:
            self.parts += 1
            self.nodes += result.n_closed
            self.searched += result.seconds
        super().take_back_subtree(task, result)

    def climb(self) -> None:
        """Measure the climb."""
        begun = time.thread_time()
        super().climb()
        self.climbed += time.thread_time() - begun


def prepared(name: str, data_dir: Path) -> Callable[[], tuple[Root, Any]]:
    """Return a function that bounds the root and returns it with the incumbent."""
    data = read_table(name, data_dir=data_dir).dataset("train")
    problem = build_problem(data, Score(p=P))
    best = solve(data, Score(p=P), time_limit=10, verbose=False).structure

    def root() -> tuple[Root, Any]:
        new = Root(problem, best, proof=Proof())
        with threads_used(2):
            new.run(best, EventLog())
        return new, best

    return root


def searched(root: tuple[Root, Any], how: Dispatcher, over: Callable[[], bool]) -> Watched:
    """Search until it is over, and return the search."""
    tree = Watched(*root, EventLog(over), dispatcher=how)
    with library_threads(1):
        tree.run()
    return tree


def until(seconds: float) -> Callable[[], bool]:
    """Return a function that says whether so many seconds have passed."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def reached(spent: Callable[[], float], end: float) -> bool:
    """Return whether so many seconds are spent."""
    return spent() > end


def rate(name: str, data_dir: Path, seconds: float, rounds: int) -> Iterator[dict[str, Any]]:
    """Yield after each round nodes a second and a CPU second of threads and of workers, and the recorded nodes."""
    root = prepared(name, data_dir)
    runs: dict[str, list[dict[str, float]]] = {"threads": [], "workers": []}
    recorded: list[tuple[float, int]] = []
    with connected(2, None) as client:
        client.wait_for_workers(2)
        theirs = [psutil.Process(pid) for pid in client.run(os.getpid).values()]

        def spent(kind: str) -> float:
            """Return the CPU seconds of what searches: this process, or the workers."""
            times = [process.cpu_times() for process in theirs]
            return sum(one.user + one.system for one in times) if kind == "workers" else time.process_time()

        for kind in ("warm", *("threads", "workers") * rounds):
            how: Dispatcher = ThreadDispatcher(2) if kind == "threads" else spread.DaskDispatcher(client)
            at, which = root(), "threads" if kind == "threads" else "workers"
            own, wall = time.process_time(), time.monotonic()
            end = spent(which) + 2 * (WARM_SECONDS if kind == "warm" else seconds)
            tree = searched(at, how, partial(reached, partial(spent, which), end))
            wall, own = time.monotonic() - wall, time.process_time() - own
            cpu = own + (spent(which) - end + 2 * seconds if kind == "workers" else 0.0)
            if kind == "warm":
                continue
            nodes = tree.nodes + len(tree.recorded)
            one = {
                "a_second": nodes / wall,
                "a_cpu_second": nodes / cpu,
                "bound": tree.bound(),
                "seconds": wall,
                "load": os.getloadavg()[0],
            }
            if kind == "workers":
                one |= {"calling_process": own / cpu, "climbs": tree.climbed / cpu, "parts": tree.parts}
                one["searching"] = tree.searched / (2 * wall)
            recorded += tree.recorded
            runs[kind].append({key: float(f"{value:.6g}") for key, value in one.items()})
            print(name, kind, json.dumps(runs[kind][-1]), flush=True)
            if kind == "workers":
                every = max(1, len(recorded) // RECORDED)
                yield {
                    **runs,
                    "ratio": ratio(runs, "a_second"),
                    "ratio_cpu": ratio(runs, "a_cpu_second"),
                    "nodes_ms": [round(1000 * spent, 2) for spent, _ in recorded[::every]],
                    "nodes_open": "".join(str(opened) for _, opened in recorded[::every]),
                }


def ratio(runs: dict[str, list[dict[str, float]]], key: str) -> float:
    """Return the ratio of the medians of workers and threads."""
    workers, threads = (np.median([run[key] for run in runs[kind]]) for kind in ("workers", "threads"))
    return round(float(workers / threads), 3)


def pretended(name: str, number: int, sent: bytes, n_closed: int) -> bytes:
    """Return a result as large as that of a real search that closes so many nodes; each has two open children."""
    task: SubtreeTask = pickle.loads(sent)
    open_ = [(node.number, node) for node in task.nodes]
    branches, last = [], task.last
    for _ in range(n_closed):
        number, node = open_.pop(0)
        branches.append((number, 0, 0, 1, last + 1, last + 2))
        open_ += [(last + 1, node), (last + 2, node)]
        last += 2
    new = [(number, node) for number, node in open_ if number > task.last]
    fixed = open_[-2 * n_closed :]
    gone = np.arange(40, dtype=np.int32)

    def weights(nodes: list[tuple[int, Node]]) -> list[DualWeights]:
        """Return equal dual weights as objects of their own, as they are in a real result."""
        return [DualWeights(bytes(bytearray(node.weights.data))) for _, node in nodes]

    def numbers(nodes: list[tuple[int, Node]]) -> Any:
        return np.array([number for number, _ in nodes], dtype=np.int64)

    result = SubtreeResult(
        n_closed=n_closed,
        branches=np.array(branches, dtype=np.int64),
        fixing_nodes=numbers(fixed),
        fixings=[(one, gone.tobytes()) for one in weights(fixed)],
        leaf_nodes=numbers(new),
        leaves=weights(new),
        pruned=[],
        open_nodes=numbers(open_),
        open_bounds=np.array([node.bound for _, node in open_]),
        open=[bytes(bytearray(node.data)) if number > task.last else b"" for number, node in open_],
        gains=Observations(np.arange(100), np.zeros(100), np.zeros(100)),
        steps=0,
        discarded=0,
        structures=[],
        seconds=0.0,
    )
    return pickle.dumps(result)


class Pretending(spread.DaskDispatcher):
    """Has workers close nodes without any steps, in parts of one size."""

    def __init__(self, client: Client, size: int) -> None:
        super().__init__(client)
        self._size = size
        spread.search_part = partial(pretended, n_closed=size)  # type: ignore[assignment]

    @property
    def _rate(self) -> float:
        return self._size / spread.FIRST_SECONDS


@contextmanager
def small_cluster() -> Iterator[tuple[Client, psutil.Process]]:
    """Yield a client of a scheduler in a process of its own with two workers, and that process."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "scheduler.json")
        dask = [sys.executable, "-m", "dask"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        common = ["--scheduler-file", file, "--no-dashboard"]
        scheduler = subprocess.Popen(
            [*dask, "scheduler", *common, "--host", "127.0.0.1", "--port", "0"], **quiet
        )
        workers = subprocess.Popen(
            [*dask, "worker", *common, "--nworkers", "2", "--nthreads", "1", "--memory-limit", "0"], **quiet
        )
        try:
            with Client(scheduler_file=file, set_as_default=False) as client:
                client.wait_for_workers(2)
                yield client, psutil.Process(scheduler.pid)
        finally:
            workers.terminate()
            workers.wait()
            scheduler.terminate()
            scheduler.wait()


def cost(name: str, data_dir: Path) -> dict[str, float]:
    """Return the CPU seconds of a part and of a node in the calling process and in the scheduler.

    What both take while nothing happens is subtracted.
    """
    over = until(GROWN_SECONDS)
    tree = searched(prepared(name, data_dir)(), ThreadDispatcher(2), lambda: over())
    rows, spent = [], []
    with small_cluster() as (client, scheduler):

        def clocks() -> Any:
            """Return the CPU seconds of this process and of the scheduler, and the time."""
            there = scheduler.cpu_times()
            return np.array([time.process_time(), there.user + there.system, time.monotonic()])

        for size in (PART_NODES[0], *PART_NODES):  # the first time, connections are made
            tree.nodes, tree.parts, tree.climbed = 0, 0, 0.0
            tree.budget.stopped = tree.events.budget.stopped = None
            over = partial(reached, lambda: tree.nodes, COST_PARTS * size)
            tree._dispatcher = Pretending(client, size)
            before = clocks()
            tree.run()
            took = clocks() - before - [tree.climbed, 0, 0]
            rows.append((tree.parts, tree.nodes))
            spent.append(took)
            print(
                name, "parts, nodes:", rows[-1], "seconds here, in the scheduler, in all:", took, flush=True
            )
        before = clocks()
        time.sleep(IDLE_SECONDS)
        idle = (clocks() - before) / IDLE_SECONDS
    busy = np.array(spent) - np.outer(np.array(spent)[:, 2], idle)
    part, node = np.linalg.solve(np.array(rows[1:]), busy[1:, :2])
    found = dict(zip(("part", "part_scheduler", "node", "node_scheduler"), (*part, *node), strict=True))
    return {key: float(f"{value:.3g}") for key, value in found.items()}


def simulated(workers: int, nodes: Nodes, costs: dict[str, float], hours: float = 0.25) -> dict[str, float]:
    """Return the share of the time that workers, calling process and scheduler are busy in a simulated search.

    A part takes the nodes and the time that the dispatcher would give it, and its nodes have recorded times and
    children. The scheduler and the calling process handle one part after the other.

    Parameters
    ----------
    workers : int
        Number of workers of one thread.
    nodes : Nodes
        The recorded nodes.
    costs : dict
        What `cost` returned.
    """
    end, slots, rate = hours * HOUR, spread.PARTS * workers, 1 / nodes.mean
    caller, scheduler = (
        Server(costs["part"], costs["node"]),
        Server(costs["part_scheduler"], costs["node_scheduler"]),
    )
    idle_from = [0.0] * workers  # a heap: when each worker has finished what it has
    arrivals: list[tuple[float, int, int]] = []  # a heap: time, nodes closed, nodes open
    n_open, out, busy, closed, clock = 1, 0, 0.0, 0, 0.0
    while clock < end:
        while out < slots and n_open:
            most, _, seconds = spread.part_size(n_open, workers, rate)
            n_open -= most
            begin = max(clock + LATENCY / 2, heapq.heappop(idle_from))
            n_closed, left, took = nodes.searched(most, seconds)
            heapq.heappush(idle_from, begin + took)
            busy += max(0.0, min(end, begin + took) - begin)
            heapq.heappush(arrivals, (begin + took, n_closed, left))
            out += 1
        if not arrivals:
            break
        done, n_closed, left = heapq.heappop(arrivals)
        clock = caller.handle(scheduler.handle(done, n_closed) + LATENCY / 2, n_closed)
        closed += n_closed
        out -= 1
        n_open += left
    shares = {"efficiency": busy / workers, "calling_process": caller.busy, "scheduler": scheduler.busy}
    return {
        **{key: round(value / end, 3) for key, value in shares.items()},
        "nodes_a_second": round(closed / end, 1),
    }


class Server:
    """A process that handles one part after the other, each for some time."""

    def __init__(self, part: float, node: float) -> None:
        self._part, self._node, self._free, self.busy = part, node, 0.0, 0.0

    def handle(self, arrival: float, nodes: int) -> float:
        """Return when a part is handled that arrives at some time."""
        takes = self._part + nodes * self._node
        self._free = max(self._free, arrival) + takes
        self.busy += takes
        return self._free


class Nodes:
    """Recorded nodes, drawn again and again: the seconds and the number of open children of each.

    The seconds are scaled to the mean of the hour's run, which had a core of its own.
    """

    def __init__(self, name: str, found: dict[str, Any]) -> None:
        rng, run = np.random.default_rng(0), hour(name)
        seconds = np.array(found["nodes_ms"])
        self.mean = run["seconds"]["total"] / (run["nodes"] / 2)  # every branching makes two of the nodes
        seconds *= self.mean / seconds.mean()
        drawn = rng.integers(len(seconds), size=DRAWN)
        #: The seconds, and the number of open nodes, after each of the drawn nodes.
        self._seconds = np.cumsum(seconds[drawn])
        self._open = np.cumsum(np.array([int(one) for one in found["nodes_open"]])[drawn] - 1)
        self._starts = iter(rng.integers(DRAWN // 2, size=DRAWN).tolist())

    def searched(self, most: int, seconds: float) -> tuple[int, int, float]:
        """Return the nodes closed and left open, and the seconds, of a search below some nodes for some time."""
        start = next(self._starts)
        began, had = self._seconds[start], self._open[start]
        stop = int(np.searchsorted(self._seconds, began + seconds))
        left = most - had + self._open[start + 1 : stop + 1]
        dry = np.flatnonzero(left <= 0)
        n = int(dry[0]) + 1 if len(dry) else len(left)
        return n, max(0, int(left[n - 1])), float(self._seconds[start + n] - began)


def hour(name: str) -> dict[str, Any]:
    """Return the hour's run on one thread."""
    text = gzip.decompress((RESULTS / "gaps" / "hour" / "cells.jsonl.gz").read_bytes()).decode()
    return next(
        run for run in map(json.loads, text.splitlines()) if run["key"].startswith(f"{name}-sm-p0.99-")
    )


def plan(results: dict[str, Any]) -> list[dict[str, float]]:
    """Return the CPU hours that letter takes to some gaps, and the hours on workers of one thread.

    The work is the forecast (`milpbn.solving.outlook`) from the hour on one thread in `results/gaps/hour`.
    """
    run = hour("letter")
    trace = [(seconds, objective, bound) for seconds, objective, bound in run["trace"]]
    rows = []
    for gap in GAPS:
        made = forecast(trace, run["time_limit"], gap)
        if made is None:
            continue
        row = {"gap": gap, "bound": run["objective"] / (1 - gap), "fall_a_doubling": made.fall}
        for key, seconds in (("", made.seconds), ("_least", made.least), ("_most", made.most)):
            row[f"cpu_hours{key}"] = seconds * run["threads"] / HOUR
        for workers, found in results["letter"]["simulated"].items():
            row[f"hours_{workers}"] = row["cpu_hours"] / (int(workers) * found["efficiency"])
        rows.append({key: float(f"{value:.6g}") for key, value in row.items()})
        print(json.dumps(rows[-1]))
    return rows


def main() -> None:
    """Read the command line, measure or simulate, and write the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("rate", "cost", "simulate", "plan"))
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--problem", choices=PROBLEMS, action="append")
    given = parser.parse_args()
    results = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    if given.what == "plan":
        results["letter to a gap"] = plan(results)
        write_results(OUTPUT, results)
        return
    for name in given.problem or PROBLEMS:
        own = results.setdefault(name, {})
        if given.what == "rate":
            found = rate(name, given.data_dir, given.seconds, given.rounds)
        elif given.what == "cost":
            found = iter([{"costs": cost(name, given.data_dir)}])
        else:
            found = iter(
                [{"simulated": {str(w): simulated(w, Nodes(name, own), own["costs"]) for w in WORKERS}}]
            )
        for part in found:
            own |= part
            write_results(OUTPUT, results)
        shown = {key: value for key, value in own.items() if not key.startswith("nodes_")}
        print(name, json.dumps(shown, indent=1), flush=True)


if __name__ == "__main__":
    main()
