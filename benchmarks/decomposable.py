"""Proofs and bounds of branch and cut on public files of local scores, beside MILP solvers and published seconds.

    python benchmarks/decomposable.py FOLDER [NAME ...] [--time-limit 60] [--backend branch-and-cut]

FOLDER has .jkl files. Each is searched on one thread in a new process; seconds are those of the process's CPU, without
imports and compilation. Results are kept in results/decomposable/cells.json after every file, and results of files that
are there are not measured again unless they are named.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from common import RESULTS, write_page, write_results

from milpbn.errors import NoIncumbentError
from milpbn.experiments.page import read_remarks
from milpbn.solving.local_scores import solve_local_scores

OUTPUT = RESULTS / "decomposable" / "cells.json"
#: Searched first in every process, so that kernels are loaded and compiled before anything is measured.
WARM = "bnslim-survey-5000"


def cpu() -> float:
    """Return the CPU seconds of this process and its children so far."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def measured(path: Path, backend: str, time_limit: float) -> dict[str, Any]:
    """Return score, bound, nodes and seconds of a search, and the largest memory of its process."""
    options: dict[str, Any] = {"backend": backend, "verbose": False, "threads": 1}
    for warm in path.parent.glob(f"{WARM}.jkl*"):
        solve_local_scores(warm, time_limit=600, **options)
    begun, clock = cpu(), time.monotonic()
    own = backend == "branch-and-cut"  # the CPU of a solver's child process is not known
    try:
        result = solve_local_scores(path, time_limit=time_limit, **options)
    except NoIncumbentError:
        return {"status": "no structure", "cpu": round(cpu() - begun, 2)}
    gap = None if result.bound is None or result.objective is None else result.bound - result.objective
    return {
        "variables": result.variables,
        "parent_sets": result.parent_sets,
        "status": str(result.reason),
        "score": result.objective,
        "bound": result.bound,
        "gap_percent": None if gap is None else round(100 * gap / abs(result.objective or 1.0), 5),
        "nodes": result.nodes,
        "cpu": round(cpu() - begun, 2) if own else None,
        "seconds": round(time.monotonic() - clock, 2),
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def page(results: dict[str, dict[str, Any]]) -> str:
    """Return the page of the results, without what is said by hand in remarks.md."""
    lines = [
        "| instance | variables | parent sets | score | gap | nodes | CPU seconds | backend |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for backend, own in results.items():
        for name, cell in own.items():
            gap = cell["gap_percent"]
            told = "proved" if cell["status"] == "optimal" else "-" if gap is None else f"{gap:.3g} %"
            score = "-" if cell["score"] is None else f"{cell['score']:,.4f}"
            lines.append(
                f"| {name} | {cell['variables']} | {cell['parent_sets']:,} | {score} | {told} | "
                f"{cell['nodes'] or 1} | {'-' if cell['cpu'] is None else format(cell['cpu'], '.1f')} | {backend} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Read the command line, search all files that have no result yet, and write the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--backend", default="branch-and-cut")
    given = parser.parse_args()
    results = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    own = results.setdefault(given.backend, {})
    for path in sorted(given.folder.glob("*.jkl*")):
        name = path.name.split(".jkl")[0]
        if name not in given.names if given.names else name in own:
            continue
        with get_context("spawn").Pool(1) as pool:
            own[name] = pool.apply(measured, (path, given.backend, given.time_limit))
        print(name, json.dumps(own[name]), flush=True)
        write_results(OUTPUT, results)
    write_page(OUTPUT.parent, [read_remarks(OUTPUT.parent), page(results)])


if __name__ == "__main__":
    main()
