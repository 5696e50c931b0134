"""The gap over time of the native engine, beside that of HiGHS on Peharz & Pernkopf's (2012) compact model.

    python benchmarks/gap_over_time.py segment adult --data-dir DIR [--p 0.9 0.99] [--time-limit 3600]
    python benchmarks/gap_over_time.py --report                     table and picture from earlier runs

Both backends get the same merged training rows, threads and first structure (of local search, computed once), and run
one after the other on the same machine. HiGHS gets the whole model with order rows (``--no-root-bound --no-reduce``).
Every run has a process of its own, which first solves a small problem, so that kernels and solver are loaded. The
clock, and with it the time limit, starts when `build_problem` has returned: after reading, and after the tables of the
coefficients. The dense coefficients and the model, which only HiGHS needs, count as time of the run, and so does the
local search at the start of both. The rows are the training rows of the catalog's split, or all rows without a split.

Every finished run is written at once to cells.jsonl.gz in the output folder; then table.md and gap_over_time.png.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, command, parse, parser, training_rows
from gap_report import FIRST_MOMENT, REFERENCE, Case, Record, draw, gap_text, runs_in, table

from milpbn import __version__
from milpbn.claims.result import Result, TracePoint
from milpbn.data.catalog import catalog_names, find_data_dir
from milpbn.errors import InputError, MilpbnError
from milpbn.heuristics.local_search import search as climb
from milpbn.heuristics.starts import plain_starts
from milpbn.network.structure import Structure
from milpbn.problem.problem import build_problem
from milpbn.problem.rescore import rescore
from milpbn.solving.api import solve
from milpbn.solving.engines.registry import get_engine
from milpbn.solving.job import Job
from milpbn.solving.options import Options
from milpbn.solving.run import run
from milpbn.trials.store import ARCHIVE, Store
from milpbn.util.atomic import atomic_write_text
from milpbn.util.budget import Budget
from milpbn.util.memory import available_memory, format_bytes

CHECKPOINTS = (5.0, 15.0, 60.0, 300.0, 3600.0)
#: The search for the common first structure ends after this number of seconds.
START_SECONDS = 60.0
#: A trace keeps the state at this number of moments, evenly spaced in the logarithm of time.
MOMENTS = 180
#: Options of the two backends.
OWN_OPTIONS: dict[str, dict[str, Any]] = {"native": {}, "highs": {"root_bound": False, "reduce": False}}


def find_start(case: Case, data_dir: Path | None) -> Record:
    """Return the structure that all runs start from, with its score and the seconds that it took."""
    problem = build_problem(training_rows(case.data, data_dir), case.spec, for_milp=False)
    begun = time.monotonic()
    structure = climb(
        problem, plain_starts(problem), stopping=lambda: time.monotonic() > begun + START_SECONDS
    )
    assert structure is not None
    objective = rescore(problem.data, structure, problem.score, problem.rules)
    seconds = round(time.monotonic() - begun, 3)
    return {"objective": objective, "seconds": seconds, "structure": structure.to_mapping()}


def search(
    case: Case, backend_name: str, start: Record, limit: float, threads: int, data_dir: Path | None
) -> Record:
    """Run one backend; return the record for its file."""
    own = {**OWN_OPTIONS[backend_name], "backend": backend_name, "threads": threads, "verbose": False}
    solve("instance:corral", case.spec, time_limit=30, **own)  # loads kernels and libraries
    data = training_rows(case.data, data_dir)
    engine = get_engine(backend_name)
    begun = time.monotonic()
    problem = build_problem(data, case.spec, for_milp=backend_name != "native")
    started = time.monotonic()
    structure = Structure.from_mapping(data.names, start["structure"])
    options = Options(start=structure, time_limit=limit, **own)
    result = run(Job(problem, data, options, engine, engine.version(), Budget(limit, began=started)))
    return {"coefficient_seconds": round(started - begun, 3), **describe(result)}


def describe(result: Result) -> Record:
    """Return the keys of a result that the record keeps, with the whole trace."""
    values = result.to_dict()
    keys = ("data", "status", "objective", "bound", "gap", "bound_source", "nodes", "seconds", "seed")
    return {"backend": values["backend"], **{key: values[key] for key in keys}, "trace": values["trace"]}


def apart(work: Callable[..., Record], *arguments: object) -> Record:
    """Call a function in a new process; return its record, or {"failure": sentence}."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(work, arguments, sender), daemon=True)
    process.start()
    sender.close()
    try:
        answer = receiver.recv()
        process.join()  # the next run needs its memory and cores
        return answer
    except EOFError:
        process.join()
        return {"failure": f"The process died with the exit code {process.exitcode}."}


def _answer(work: Callable[..., Record], arguments: tuple[object, ...], sender: Connection) -> None:
    try:
        answer = work(*arguments)
    except MilpbnError as error:
        answer = {"failure": str(error)}
    except MemoryError:
        answer = {"failure": "Out of memory."}
    sender.send(answer)
    sender.close()
    os._exit(0)  # do not wait for a solver that still runs in a thread


def thinned(trace: Sequence[TracePoint], marks: Iterable[float]) -> list[TracePoint]:
    """Return the last change before each of `MOMENTS` moments, and before each of the marks."""
    if len(trace) <= MOMENTS:
        return list(trace)
    times = [point[0] for point in trace]
    moments = [*np.geomspace(FIRST_MOMENT, max(times[-1], 2 * FIRST_MOMENT), MOMENTS), *marks]
    last = np.searchsorted(times, moments, side="right") - 1
    return [trace[k] for k in sorted({0, len(trace) - 1, *last[last >= 0].tolist()})]


def machine() -> Record:
    """Describe the machine, without its name."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    memory = available_memory()
    return {
        "processor": model,
        "cores": Options().n_threads,
        "free_memory": None if memory is None else format_bytes(memory),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def measure(case: Case, options: argparse.Namespace, store: Store) -> None:
    """Run the backends of a case, with `--resume` only those without a record, and keep their records."""
    limits = {"native": options.time_limit, "highs": options.highs_time_limit}
    wanted = [name for name, limit in limits.items() if limit > 0]
    known = {name: store.get(case.key(name)) for name in limits}
    if options.resume:
        wanted = [name for name in wanted if known[name] is None]
    if not wanted:
        return
    # The backends of a case are compared from the same start: take that of an earlier run, if there is one.
    start = None
    if options.resume:
        start = next((record["start"] for record in known.values() if record), None)
    start = start or apart(find_start, case, options.data_dir)
    if "failure" in start:
        print(f"{case.data} p={case.p} {case.setting}: {start['failure']}", flush=True)
        return
    for name in wanted:
        answer = apart(search, case, name, start, limits[name], options.threads, options.data_dir)
        if answer.get("status", {}).get("limit") == "user":
            raise KeyboardInterrupt
        if "trace" in answer:
            answer["trace"] = thinned(answer["trace"], [*options.checkpoints, REFERENCE])
        head = {
            "command": command(options, case.data),
            "milpbn": __version__,
            "machine": machine(),
            "case": asdict(case),
            "backend": {"name": name},
            "threads": options.threads,
            "time_limit": limits[name],
            "start": start,
        }
        record = {**head, **answer}
        store.add({case.key(name): record})
        told = record.get("failure") or f"{record['status']['reason']}, gap {gap_text(record, math.inf)} %"
        print(f"{case.data} p={case.p} {case.setting}, {name}: {told}", flush=True)


def read_options() -> argparse.Namespace:
    made = parser(__doc__, output=RESULTS / "gaps", time_limit=3600.0, threads=Options().n_threads)
    made.add_argument("--p", type=float, nargs="+", default=[0.9, 0.99], help="no effect with --score cll")
    made.add_argument("--score", choices=["sm", "sbm", "cll"], default="sm")
    made.add_argument("--max-parents", type=int, default=2)
    made.add_argument("--class-parents", action="store_true")
    made.add_argument(
        "--highs-time-limit", type=float, default=REFERENCE, metavar="SECONDS", help="0: without HiGHS"
    )
    made.add_argument("--checkpoints", type=float, nargs="+", default=list(CHECKPOINTS), metavar="SECONDS")
    made.add_argument("--resume", action="store_true", help="run only what has no record yet")
    made.add_argument(
        "--report", action="store_true", help="run nothing; write table and picture from the records"
    )
    return parse(made)


def main() -> None:
    options = read_options()
    store = Store(options.output / ARCHIVE)
    if not options.report:
        catalog = find_data_dir(options.data_dir)
        names = options.data or ([] if catalog is None else catalog_names(catalog))
        if not names:
            raise InputError("Name data sets, or a catalog folder with --data-dir.")
        for data in names:
            for p in [None] if options.score == "cll" else options.p:
                measure(
                    Case(data, options.score, p, options.max_parents, options.class_parents), options, store
                )
    runs = runs_in(store)
    if not runs:
        raise InputError("There are no runs to report.")
    atomic_write_text(options.output / "table.md", table(runs, options.checkpoints))
    draw(runs, options.output / "gap_over_time.png")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"Error: {error}")
