"""Nodes a second of two workers beside two threads, and what a search on many workers would reach.

    python benchmarks/many_machines.py --data-dir DIR rate [--seconds 60]
    python benchmarks/many_machines.py --data-dir DIR simulate

`rate` searches below the same root with two threads and with two Dask workers of one thread, and writes the ratio of
nodes a second, and what a part costs the calling process. `simulate` plays a search of an hour with the measured times
of nodes, of parts in the calling process, and a latency: how busy 16, 64, 256 and 1,024 workers would be.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import pickle
import time
from pathlib import Path
from typing import Any

from common import RESULTS, write_results

from milpbn import Score, read_table
from milpbn.certificate.format import Proof
from milpbn.distributed import dispatcher as spread
from milpbn.distributed.clusters import connected
from milpbn.engine.events import EventLog
from milpbn.engine.root import Root
from milpbn.engine.tree.dispatch import Dispatcher, ThreadDispatcher
from milpbn.engine.tree.search import BranchAndBound
from milpbn.engine.tree.subtree import SubtreeResult, SubtreeTask
from milpbn.problem.problem import build_problem
from milpbn.solving.api import solve
from milpbn.util.threads import library_threads, threads_used

OUTPUT = RESULTS / "many_machines.json"
PROBLEMS = ("segment", "letter")
P = 0.99
#: Seconds from sending a part to its arrival, and back: what Dask takes for one task (submit and result, 31 ms).
LATENCY = 0.031
HOUR = 3600.0


class Watched(BranchAndBound):
    """A search that measures what parts cost the calling process."""

    seconds = 0.0
    nodes = parts = size = 0

    def hand_out_subtree(self, most: int, seconds: float, least: float) -> SubtreeTask | None:
        """Measure the method."""
        begun = time.thread_time()
        task = super().hand_out_subtree(most, seconds, least)
        self.seconds += time.thread_time() - begun
        return task

    def take_back_subtree(self, task: SubtreeTask, result: SubtreeResult | None) -> None:
        """Measure the method and the size of the result."""
        if result is not None:
            self.size += len(pickle.dumps(result))
            self.parts += 1
            self.nodes += len(result.closed)
        begun = time.thread_time()
        super().take_back_subtree(task, result)
        self.seconds += time.thread_time() - begun


def searched(root: Root, best: Any, how: Dispatcher, seconds: float) -> tuple[float, Watched]:
    """Search for some seconds; return the nodes a second and the search."""
    end = time.monotonic() + seconds
    log = EventLog(lambda: time.monotonic() > end)
    tree = Watched(root, best, log, dispatcher=how)
    begun = time.monotonic()
    with library_threads(1):
        tree.run()
    return log.count / (time.monotonic() - begun), tree


def rate(name: str, data_dir: Path, seconds: float) -> dict[str, Any]:
    """Return nodes a second with two threads and with two workers, and the costs of parts."""
    data = read_table(name, data_dir=data_dir).dataset("train")
    problem = build_problem(data, Score(p=P))
    best = solve(data, Score(p=P), time_limit=20, verbose=False).structure
    found: dict[str, Any] = {}
    with connected(2, None) as client:
        client.wait_for_workers(2)
        for kind in ("threads", "workers", "threads", "workers"):
            root = Root(problem, best, proof=Proof())
            with threads_used(2):
                root.run(best, EventLog())
            how: Dispatcher = ThreadDispatcher(2) if kind == "threads" else spread.DaskDispatcher(client)
            nodes, tree = searched(root, best, how, seconds)
            found.setdefault(kind, []).append(round(nodes, 2))
            found.setdefault(f"bound of {kind}", []).append(round(tree.bound(), 2))
            if kind == "workers":
                found["parts"] = tree.parts
                found["seconds_here_a_node"] = tree.seconds / max(1, tree.nodes)
                found["bytes_a_node"] = round(tree.size / max(1, tree.nodes))
    found["ratio"] = round(sum(found["workers"]) / sum(found["threads"]), 3)
    return found


def simulated(workers: int, node: float, here: float, hours: float = 1.0) -> dict[str, float]:
    """Return the share of the time that workers are busy, and that the calling process is, in a simulated search.

    Every node has two children that stay open, as on letter. A part takes the nodes and the time that the dispatcher
    would give it; the calling process takes and hands out one part after the other.

    Parameters
    ----------
    workers : int
        Number of workers of one thread.
    node, here : float
        Seconds of a node on a worker, and in the calling process.
    """
    slots, n_open, out, busy, free_at, occupied = spread.PARTS * workers, 1, 0, 0.0, 0.0, 0.0
    waiting = [0.0] * workers  # when each worker has finished what it has
    heapq.heapify(waiting)
    events: list[tuple[float, int, int]] = []  # arrival of a result: time, nodes closed, nodes open
    clock, end = 0.0, hours * HOUR
    while clock < end:
        while out < slots and n_open:
            most, _, seconds = spread.part_size(n_open, workers, 1 / node)
            n_open -= most
            free_at = max(free_at, clock) + here  # handing out costs about as much as one node
            occupied += here
            begin = max(free_at + LATENCY / 2, heapq.heappop(waiting))
            n_closed = max(1, math.ceil(seconds / node))
            heapq.heappush(waiting, begin + n_closed * node)
            busy += max(0.0, min(end, begin + n_closed * node) - begin)
            heapq.heappush(events, (begin + n_closed * node + LATENCY / 2, n_closed, most + n_closed))
            out += 1
        clock, closed, opened = heapq.heappop(events)
        free_at = max(free_at, clock) + here * closed
        occupied += here * closed
        clock = free_at
        out -= 1
        n_open += opened
    return {"efficiency": round(busy / (workers * end), 3), "calling_process": round(occupied / end, 3)}


def main() -> None:
    """Read the command line, measure or simulate, and write the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("rate", "simulate"))
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    results = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    if given.what == "rate":
        for name in PROBLEMS:
            results[name] = rate(name, given.data_dir, given.seconds)
            print(name, json.dumps(results[name]), flush=True)
            write_results(OUTPUT, results)
        return
    results["simulated"] = {}
    for name in PROBLEMS:
        measured = results[name]
        node = 2 / (sum(measured["threads"]) / len(measured["threads"]))
        for workers in (16, 64, 256, 1024):
            found = simulated(workers, node, measured["seconds_here_a_node"])
            results["simulated"][f"{name} {workers}"] = found
            print(f"{name:10} {workers:5} workers: {json.dumps(found)}", flush=True)
    write_results(OUTPUT, results)


if __name__ == "__main__":
    main()
