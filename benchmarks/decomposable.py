"""Proofs and bounds of branch and cut on public files of local scores, beside MILP solvers and published seconds.

    python benchmarks/decomposable.py FOLDER [NAME ...] [--time-limit SECONDS] [--n-best K] [--tables TABLES]
    python benchmarks/decomposable.py FOLDER [NAME ...] --backend SOLVER [--acyclicity order] [--time-limit SECONDS]

FOLDER has .jkl files. With TABLES, a folder of tables of the UCI repository (.csv.gz), the files `uci-*` are made
there before, by milpbn's own scores. Each file is searched on one thread, by branch and cut in a new process, within
8 GiB; seconds and their limit are those of the CPU, child processes included, without imports and compilation. A MILP
solver gets by default 1.5 times the seconds of branch and cut, but at least 10 and at most 60. It has the start and the
block rows that every solver gets, but not the bound and structure of branch and cut (``--no-root-bound``). Results are
kept in results/decomposable/cells.json after every file, and results of files that are there are not measured again
unless they are named. Without FOLDER only the page is written.

    python benchmarks/decomposable.py FOLDER NAME ... --threads 2 [--repeats 3] [--time-limit 60]

searches with one thread and with two, in turn, without dynamic programming, into results/decomposable/threads.json.

    python benchmarks/decomposable.py FOLDER NAME ... --climbing SECONDS [--repeats 3]

climbs from several random orders, without any bound, into results/decomposable/climbing.json.

    python benchmarks/decomposable.py --scoring [SCORE ...]

measures how long three parents over 60 variables and 10,000 rows are scored, into results/decomposable/scoring.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import psutil
from common import RESULTS, write_page, write_results
from generated import random_network

from milpbn import MilpbnError
from milpbn.data import read_table
from milpbn.engine.parent_sets.climbing import AT_ONCE, OrderClimber
from milpbn.engine.parent_sets.cutting import Cutting
from milpbn.engine.parent_sets.search import Search
from milpbn.engine.parent_sets.sets import list_sets
from milpbn.experiments.page import read_remarks
from milpbn.milp.files.jkl_file import read_jkl
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score
from milpbn.solving.engines import branch_and_cut
from milpbn.solving.engines.base import BY_SUBSETS
from milpbn.solving.local_scores import export_local_scores, solve_local_scores
from milpbn.solving.warm_up import tiny_data
from milpbn.util import interrupts
from milpbn.util.budget import Budget
from milpbn.util.threads import threads_used

OUTPUT = RESULTS / "decomposable" / "cells.json"
SCORING, THREADS, CLIMBING = (OUTPUT.with_name(f"{name}.json") for name in ("scoring", "threads", "climbing"))
#: Parent sets that are scored one by one.
ONE_BY_ONE = 300
#: Searched first in every process, so that kernels are loaded and compiled before anything is measured.
WARM = "bnslim-survey-5000"
#: A solver's CPU seconds: this many times those of branch and cut, at least and at most.
TIMES, LEAST, MOST = 1.5, 10.0, 60.0
#: The best structure after so many CPU seconds is compared with what climbing finds.
EARLY = 30.0
#: Bytes that a search and its child processes may have.
MEMORY = 8 * 2**30

#: Tables, each with its score, its most parents, rows and columns that are left out, and which columns are cut at their
#: means: those of numbers, or all, with words numbered in the order of their first rows. These settings give as many
#: parent sets as the instances of the earlier measurements that the page quotes; letter has 3 more.
TABLES: dict[str, tuple[str, int, int | None, str, str]] = {
    "letter": ("bdeu", 2, None, "", "numbers"),
    "adult": ("bic", 3, 32561, "native-country", "all"),
    "mushroom": ("bic", 2, None, "", "none"),
    "soybean-large": ("bic", 3, 307, "", "all"),
    "wdbc": ("bic", 3, None, "", "all"),  # scikit-learn's breast cancer, as a table
}


def make_scores(tables: Path, folder: Path) -> None:
    """Write the local scores of the tables that are there and have none yet."""
    for name, (score, parents, rows, left_out, cut) in TABLES.items():
        path = folder / f"uci-{name}-{score}{parents}.jkl"
        if path.exists() or not (tables / f"{name}.csv.gz").exists():
            continue
        frame = pd.read_csv(tables / f"{name}.csv.gz", na_values="?", keep_default_na=False)[:rows]
        frame = frame.dropna().drop(columns=left_out or []) if cut == "all" else frame.fillna("?")
        for column in frame:
            values = frame[column]
            if not pd.api.types.is_numeric_dtype(values) and cut == "all":
                values = pd.Series(pd.factorize(values)[0], frame.index)
            if cut != "none" and pd.api.types.is_numeric_dtype(values):
                values = values > values.mean()
            frame[column] = values.astype(str)
        dataset = read_table(frame, target=frame.columns[-1], missing="state").dataset("train")
        export_local_scores(dataset, Score(name=score, max_parents=parents, parent_sets="all"), path=path)


class _Noted(Search):
    """A search that notes the gap of its root in nats, and the CPU seconds of each thread in the tree.

    There are none if the root proves the optimum.
    """

    root: ClassVar[list[float]] = []
    spent: ClassVar[list[float]] = []

    def __init__(self, cutting: Cutting, *arguments: Any, **options: Any) -> None:
        self.root.append(cutting.best_cost - cutting.bound)
        super().__init__(cutting, *arguments, **options)

    def expand(self) -> None:
        """Expand nodes."""
        begun = time.thread_time()
        super().expand()
        self.spent.append(time.thread_time() - begun)


def cpu() -> float:
    """Return the CPU seconds of this process and its children so far, those that have ended included."""
    used = 0.0
    for one in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            used += sum(one.cpu_times()[:4])
    return used


def slowed() -> float:
    """Return how many times the CPU seconds of this process pass on the clock, at least 1.

    The load of the machine would say more than that where a process has a core for itself.
    """
    begun, clock = time.process_time(), time.monotonic()
    while time.process_time() - begun < 0.5:
        pass
    return max(1.0, (time.monotonic() - clock) / (time.process_time() - begun))


@contextmanager
def interrupted_after(seconds: float) -> Iterator[list[float]]:
    """Interrupt the search in this process, as Ctrl-C does, once it and its children have used some CPU seconds.

    The list that it yields gets the `time.monotonic` value at `EARLY` CPU seconds.
    """
    begun, ended = cpu(), threading.Event()
    early: list[float] = []

    def watch() -> None:
        while not ended.wait(0.1):
            used = cpu() - begun
            if used > EARLY and not early:
                early.append(time.monotonic())
            if used > seconds:
                interrupts.note()
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield early
    finally:
        ended.set()
        watcher.join()


def measured(
    path: Path, backend: str, seconds: float, *, acyclicity: str = "order", n_best: int = 1, threads: int = 1
) -> dict[str, Any]:
    """Return score, bound, nodes and seconds of a search, and the largest memory of its process.

    `seconds` are of the CPU. The time limit, a share of which goes to the rounds at a solver's root, is half as long
    again, and longer by what other processes take.
    """
    options: dict[str, Any] = {"backend": backend, "verbose": False, "threads": threads}
    own = backend == "branch-and-cut"
    if not own:
        options |= {"root_bound": False, "acyclicity": acyclicity}
    for warm in path.parent.glob(f"{WARM}.jkl*"):
        solve_local_scores(warm, time_limit=600, **options)
    branch_and_cut.Search = _Noted  # type: ignore[misc]
    slower = 1.5 * slowed()
    begun, clock = cpu(), time.monotonic()
    try:
        with interrupted_after(seconds) as early:
            result = solve_local_scores(
                path,
                started=clock,
                time_limit=slower * seconds,
                n_best=n_best,
                memory_limit=MEMORY,
                **options,
            )
    except MilpbnError as error:
        return {"status": "refused", "why": str(error), "cpu": round(cpu() - begun, 2)}
    if result.structure is None:
        return {"status": "no structure", "cpu": round(cpu() - begun, 2)}
    used = cpu() - begun
    gap = None if result.bound is None or result.objective is None else result.bound - result.objective
    root = _Noted.root[-1] if _Noted.root else 0.0
    status, claim = str(result.reason), result.alternatives
    known = [
        score
        for at, score, _ in result.trace
        if score is not None and clock + at <= min(early, default=math.inf)
    ]
    if claim is not None:  # the gap is that between the last one and all others
        status = "optimal" if claim.optimal else "feasible"
        gap = None if claim.bound is None or claim.cutoff is None else claim.bound - claim.cutoff
    return {
        "variables": result.data.features,
        "parent_sets": result.parent_sets,
        "status": status,
        "score": result.objective,
        "score_early": known[-1] if known else None,
        "bound": result.bound,
        "gap_percent": None if gap is None else round(100 * gap / abs(result.objective or 1.0), 5),
        "root_gap_percent": round(100 * root / abs(result.objective or 1.0), 4) if own else None,
        "nodes": result.nodes,
        "subsets": result.detail == BY_SUBSETS,
        "cpu": round(used, 2),
        "limit": str(result.limit) if result.limit else None,
        # The least time that the search can take on as many idle cores: that of the root and of the longest thread.
        "cpu_of_longest": round(used - sum(_Noted.spent) + max(_Noted.spent, default=0.0), 2),
        "allowed": seconds,
        "load": round(os.getloadavg()[0], 1),
        "seconds": round(time.monotonic() - clock, 2),
        "memory_mib": memory(),
    }


def climbed(path: Path, seconds: float, seed: int) -> float:
    """Return the best score that climbing alone finds within some CPU seconds, from a random order."""
    local = read_jkl(path)
    listed = list_sets(local.candidates, local.scores)
    climber, end = OrderClimber(listed.sets, seed), cpu() + seconds
    climber.start(np.random.default_rng(seed).permutation(listed.sets.n_variables))
    while cpu() < end:
        climber.perturb(AT_ONCE, Budget(None))
    return listed.best - climber.cost


def by_climbing(paths: list[Path], seconds: float, starts: int) -> None:
    """Measure the scores of climbing from some random orders, and write all of them."""
    results = json.loads(CLIMBING.read_text()) if CLIMBING.exists() else {}
    for path in paths:
        found = results.setdefault(path.name.split(".jkl")[0], {"cpu_of_each": seconds, "scores": []})
        while len(found["scores"]) < starts:
            found["scores"].append(climbed(path, seconds, seed=len(found["scores"])))
            write_results(CLIMBING, results)
        print(path.name, json.dumps(found), flush=True)


def with_threads(paths: list[Path], threads: int, repeats: int, time_limit: float) -> None:
    """Measure searches on one thread and on several, in turn, and write all of them."""
    results = json.loads(THREADS.read_text()) if THREADS.exists() else {}
    for path in paths:
        cells = results.setdefault(path.name.split(".jkl")[0], [])
        for count in (1, threads) * repeats:
            with get_context("spawn").Pool(1, _without_subsets) as pool:
                cell = pool.apply(measured, (path, "branch-and-cut", time_limit), {"threads": count})
            kept = (
                "status",
                "score",
                "score_early",
                "gap_percent",
                "root_gap_percent",
                "nodes",
                "cpu",
                "cpu_of_longest",
                "seconds",
                "memory_mib",
                "load",
            )
            cells.append({"threads": count, **{name: cell[name] for name in kept}})
            print(path.name, json.dumps(cells[-1]), flush=True)
            write_results(THREADS, results)


def _without_subsets() -> None:
    branch_and_cut.MOST_SECONDS = 0.0


def scoring(score: str, threads: int) -> dict[str, Any]:
    """Return how long the parent sets of a generated table are scored, and how many are left.

    The seconds to score them one by one, as a structure is checked, are estimated from some of three parents.
    """
    rng = np.random.default_rng(0)
    data = read_table(random_network(), target="x0").dataset("train").merged
    spec = Score(name=score, max_parents=3, parent_sets="all")
    build_problem(tiny_data(), spec, for_milp=False, dominated=False)
    with threads_used(threads):
        before, begun, clock = memory(), cpu(), time.monotonic()
        problem = build_problem(data, spec, for_milp=False, dominated=False)
        used, waited = cpu() - begun, time.monotonic() - clock
    some = [tuple(rng.choice(np.arange(1, 60), 3, replace=False).tolist()) for _ in range(ONE_BY_ONE)]
    begun = cpu()
    for parents in some:
        spec.kind.family(data, 0, tuple(sorted(parents)))
    one_by_one = (cpu() - begun) / ONE_BY_ONE * problem.n_asked
    return {
        "score": score,
        "threads": threads,
        "variables": data.n_variables,
        "rows": data.n_samples,
        "parent_sets": problem.n_asked,
        "left": problem.candidates.n_sets,
        "cpu": round(used, 1),
        "seconds": round(waited, 1),
        "memory_mib": memory() - before,
        "cpu_one_by_one": round(one_by_one),
    }


def memory() -> int:
    """Return the largest memory that this process has used, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def page(results: dict[str, dict[str, Any]]) -> str:
    """Return the tables of the results: proofs, lists of the best structures, and MILP solvers."""
    text = ["## One best structure"]
    own = sorted(results["branch-and-cut"].items(), key=lambda item: item[1]["status"] != "optimal")
    text += _table(
        [
            "instance",
            "variables",
            "parent sets",
            "result",
            "CPU seconds",
            "nodes",
            "gap of the root",
            "score",
        ],
        [
            [
                name,
                cell["variables"],
                f"{cell['parent_sets']:,}",
                _told(cell),
                f"{cell['cpu']:.1f}",
                "subsets" if cell.get("subsets") else cell["nodes"] or "root",
                f"{cell['root_gap_percent']:.3g} %"
                if cell.get("root_gap_percent") and cell["nodes"]
                else "-",
                f"{cell['score']:,.4f}",
            ]
            for name, cell in own
        ],
    )
    solvers = [key for key in results if not key.startswith("branch-and-cut")]
    text.append("## MILP solvers")
    text += _table(
        [
            "instance",
            "branch and cut",
            *(key.replace("highs", "HiGHS").replace("scip", "SCIP").replace("cbc", "CBC") for key in solvers),
        ],
        [
            [name, *(_seconds(results[key].get(name)) for key in ("branch-and-cut", *solvers))]
            for name, _ in own
            if any(name in results[key] for key in solvers)
        ],
    )
    for key, cells in results.items():
        if not key.startswith("branch-and-cut, "):
            continue
        text.append(f"## {key.removeprefix('branch-and-cut, ').capitalize()}")
        text += _table(
            ["instance", "result", "CPU seconds", "nodes", "score"],
            [
                [name, _told(cell), f"{cell['cpu']:.1f}", cell["nodes"] or 1, f"{cell['score']:,.4f}"]
                for name, cell in cells.items()
            ],
        )
    return "\n\n".join(text)


def _seconds(cell: dict[str, Any] | None) -> str:
    """Return the CPU seconds of a proof, or how an unfinished search ended."""
    if cell is None:
        return "-"
    if "score" not in cell:
        return cell["status"]
    if cell["status"] == "optimal":
        return f"{cell['cpu']:.1f}"
    return f"{_told(cell)} after {cell['cpu']:.0f}"


def _told(cell: dict[str, Any]) -> str:
    """Return whether a search ended with a proof, or its gap."""
    gap = cell["gap_percent"]
    return "proved" if cell["status"] == "optimal" else "no bound" if gap is None else f"open: {gap:.3g} %"


def _table(head: list[str], rows: list[list[Any]]) -> list[str]:
    """Return a table as one paragraph."""
    lines = [head, ["---"] * len(head), *rows]
    return ["\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)]


def main() -> None:
    """Read the command line, search all files that have no result yet, and write the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--scoring", nargs="*", default=None)
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--backend", default="branch-and-cut")
    parser.add_argument("--acyclicity", default="order", choices=("order", "cluster"))
    parser.add_argument("--n-best", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--climbing", type=float, metavar="SECONDS")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if given.scoring is not None:
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            asked = [
                (score, threads) for score in given.scoring or ["bdeu", "bic", "aic"] for threads in (1, 2)
            ]
            write_results(SCORING, {"cells": pool.starmap(scoring, asked, chunksize=1)})
        print(SCORING.read_text())
        return
    results = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    if given.tables is not None:
        make_scores(given.tables, given.folder)
    found = [path for name in given.names for path in given.folder.glob(f"{name}.jkl*")]
    if given.climbing:
        by_climbing(found, given.climbing, given.repeats)
        return
    if given.threads > 1:
        with_threads(found, given.threads, given.repeats, given.time_limit or MOST)
        return
    key = given.backend
    if given.n_best > 1:
        key += f", the {given.n_best} best"
    elif key != "branch-and-cut":
        key += f", {given.acyclicity}"
    own = results.setdefault(key, {})
    # The largest memory is that of a process, which is why branch and cut gets a new one for each file.
    with get_context("spawn").Pool(1, maxtasksperchild=1 if "branch" in key else None) as pool:
        for path in sorted(given.folder.glob("*.jkl*")) if given.folder else ():
            name = path.name.split(".jkl")[0]
            if name not in given.names if given.names else name in own:
                continue
            allowed = given.time_limit or MOST
            if given.time_limit is None and key != "branch-and-cut":
                allowed = min(MOST, max(LEAST, TIMES * results["branch-and-cut"][name]["cpu"]))
            how = {"acyclicity": given.acyclicity, "n_best": given.n_best}
            own[name] = pool.apply(measured, (path, given.backend, allowed), how)
            print(name, json.dumps(own[name]), flush=True)
            write_results(OUTPUT, results)
    write_page(OUTPUT.parent, [read_remarks(OUTPUT.parent).replace("{tables}", page(results))])


if __name__ == "__main__":
    main()
