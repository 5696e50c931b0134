"""Sizes of certificates of branch and cut, and seconds of both verifiers, on public files of local scores.

    python benchmarks/certificates.py FOLDER NAME ... [--time-limit 60] [--n-best 10]

FOLDER has .jkl files. Each is searched on one thread, for the best structure or a list of the best; seconds are those
of the process's CPU. Results are kept in results/decomposable/certificates.json.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from common import RESULTS, write_results

from milpbn.certificate.exact.arithmetic import NotProvedError
from milpbn.certificate.exact.local import check_local
from milpbn.certificate.verify.check import verify
from milpbn.milp.files.jkl_file import read_jkl
from milpbn.problem.local import LocalDataset
from milpbn.solving.local_scores import solve_local_scores
from milpbn.util.scratch import scratch_folder

OUTPUT = RESULTS / "decomposable" / "certificates.json"


def measured(path: Path, time_limit: float, n_best: int) -> dict[str, Any]:
    """Return the figures of a search, of its certificate, and of both verifiers."""
    local = read_jkl(path)
    with scratch_folder() as folder:
        proof = folder / "proof.npz"
        clocks = [time.process_time()]
        result = solve_local_scores(
            local, certificate=proof, time_limit=time_limit, n_best=n_best, threads=1, verbose=False
        )
        clocks.append(time.process_time())
        found = verify(result, proof, LocalDataset.of(local))
        clocks.append(time.process_time())
        try:
            check_local(result.to_dict(), proof, local)
            exact = "proved"
        except NotProvedError as error:
            exact = str(error)
        clocks.append(time.process_time())
        seconds = [round(b - a, 2) for a, b in pairwise(clocks)]
        return {
            "time_limit": time_limit,
            "parent_sets": local.candidates.n_sets,
            "status": str(result.reason),
            "list": None if result.alternatives is None else result.alternatives.optimal,
            "gap": None
            if result.bound is None or result.objective is None
            else result.bound - result.objective,
            "nodes": found.nodes,
            "bytes": proof.stat().st_size,
            "search_cpu": seconds[0],
            "verify_cpu": seconds[1],
            "exact": exact,
            "exact_cpu": seconds[2],
        }


def main() -> None:
    """Measure the files that are named, after a small one for which kernels are compiled."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--n-best", type=int, default=1)
    asked = parser.parse_args()
    cells = json.loads(OUTPUT.read_text())["cells"] if OUTPUT.exists() else {}
    for name in ["bnslim-survey-5000", *asked.names]:
        (path,) = asked.folder.glob(f"{name}.jkl*")
        cell = name if asked.n_best == 1 else f"{name}, the {asked.n_best} best"
        cells[cell] = measured(path, asked.time_limit, asked.n_best)
        print(cell, cells[cell], flush=True)
        write_results(OUTPUT, {"cells": cells})


if __name__ == "__main__":
    main()
