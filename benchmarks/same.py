"""Whether a change of the code changed searches: nodes, incumbent, bound and certificate of runs to proof.

    python benchmarks/same.py record results/same.json           run all cases and write a record
    python benchmarks/same.py compare results/same.json          run them again and compare with the record
    python benchmarks/same.py pair PYTHON [--rounds 5]           compare seconds per node with another installation
                                                                 (its interpreter), in turns: median of the ratios

Every run has one thread and no time limit, so that the native engine is deterministic. The runs of MILP solvers are so
small that their local search and root bound end after a number of steps, not after their share of the time. The size of
a certificate is that of its arrays, because the file also contains the run's random name.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import llvmlite.binding
import numpy as np
from common import write_results

import milpbn

#: Embedded instance, options of the score, constraints, options of the search.
Case = tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]
CASES: dict[str, Case] = {
    "sm corral .9": ("corral", {"p": 0.9}, {}, {}),
    "sm corral .99, three parents": ("corral", {"p": 0.99, "max_parents": 3}, {}, {}),
    "sm tic-tac-toe .9": ("tic-tac-toe", {"p": 0.9}, {}, {}),
    "sm tic-tac-toe .99, no class parents": ("tic-tac-toe", {"p": 0.99, "class_parents": False}, {}, {}),
    "sm tic-tac-toe .6, one parent": ("tic-tac-toe", {"p": 0.6, "max_parents": 1}, {}, {}),
    "sm mofn .9, no class parents": ("mofn-3-7-10", {"p": 0.9, "class_parents": False}, {}, {}),
    "sm tic-tac-toe .9, constraints": (
        "tic-tac-toe",
        {"p": 0.9, "class_parents": False},
        {
            "forbidden": (("top-left-square", "middle-middle-square"),),
            "required": (("top-left-square", "top-middle-square"),),
            "max_children": {"middle-middle-square": 2},
        },
        {},
    ),
    "sm tic-tac-toe .9, subset": ("tic-tac-toe", {"p": 0.9}, {}, {"subset": 100}),
    "sm tic-tac-toe .9, penalty": ("tic-tac-toe", {"p": 0.9, "penalty": "bic"}, {}, {}),
    "sbm corral .9": ("corral", {"name": "sbm", "p": 0.9}, {}, {}),
    "sbm tic-tac-toe .99": ("tic-tac-toe", {"name": "sbm", "p": 0.99, "class_parents": False}, {}, {}),
    "cll corral": ("corral", {"name": "cll"}, {}, {}),
    "cll corral, hybrid": ("corral", {"name": "cll", "hybrid": 0.1}, {}, {}),
    "ll corral": ("corral", {"name": "ll"}, {}, {}),
    "mdl tic-tac-toe, all sets": ("tic-tac-toe", {"name": "mdl", "parent_sets": "all"}, {}, {}),
    "aic corral": ("corral", {"name": "aic"}, {}, {}),
    "aicc corral": ("corral", {"name": "aicc"}, {}, {}),
    "bdeu corral": ("corral", {"name": "bdeu"}, {}, {}),
    "hard-margin corral": ("corral", {"name": "hard-margin"}, {}, {}),
    "highs: sm corral .9": ("corral", {"p": 0.9}, {}, {"backend": "highs"}),
    "highs, cluster: sm corral .9": ("corral", {"p": 0.9}, {}, {"backend": "highs", "acyclicity": "cluster"}),
    "cbc: sm corral .9": ("corral", {"p": 0.9}, {}, {"backend": "cbc"}),
    "cpsat: sm corral .99, one parent": (
        "corral",
        {"p": 0.99, "max_parents": 1},
        {},
        {"backend": "cpsat", "root_bound": False},
    ),
    "scip: sm corral .9": ("corral", {"p": 0.9}, {}, {"backend": "scip"}),
}
#: The keys that are compared; the seconds of each run are only recorded.
KEYS = ("nodes", "objective", "bound", "reason", "certificate")
#: The runs of `pair`, long enough to compare seconds per node.
TIMED = (
    "sm tic-tac-toe .9",
    "sm tic-tac-toe .6, one parent",
    "sm corral .99, three parents",
    "sbm tic-tac-toe .99",
)


def run(case: Case) -> dict[str, Any]:
    """Run a case, and return its record."""
    instance, score, constraints, options = case
    native = options.get("backend", "native") == "native" and score.get("name", "sm") in ("sm", "sbm", "cll")
    with tempfile.TemporaryDirectory() as folder:
        proof = Path(folder) / "proof.npz"
        if native:
            options = {**options, "certificate": proof}
        begun = time.perf_counter()
        result = milpbn.solve(
            milpbn.read_table(instance),
            milpbn.Score(**score),
            constraints=milpbn.Constraints(**constraints),
            threads=1,
            verbose=False,
            **options,
        )
        seconds = time.perf_counter() - begun
        found = result.to_dict()
        size = None
        if native:
            with np.load(proof) as arrays:
                size = sum(arrays[name].nbytes for name in arrays.files if name not in ("header", "digest"))
    claimed = found["subset"] or found
    return {
        "nodes": found["nodes"],
        "objective": claimed["objective"],
        "bound": claimed["bound"],
        "reason": found["status"]["reason"],
        "certificate": size,
        "seconds": round(seconds, 3),
        "search_seconds": found["seconds"]["solve"],
    }


def record(names: list[str]) -> dict[str, Any]:
    """Run some cases twice each, so that the seconds contain no compilation; keys whose values differ are null.

    CBC's nodes differ, for instance, because they are read from its log while it runs.
    """
    found = {}
    for name in names:
        try:
            first, again = run(CASES[name]), run(CASES[name])
        except milpbn.MilpbnError as error:
            found[name] = {"error": str(error)}
            print(f"{name:40} {error}", flush=True)
            continue
        varying = [key for key in KEYS if first[key] != again[key]]
        found[name] = {**again, **dict.fromkeys(varying), "varying": varying}
        print(f"{name:40} {json.dumps(found[name])}", flush=True)
    return found


def compare(before: dict[str, Any], after: dict[str, Any]) -> int:
    """Print the differences, and return the number of runs that differ."""
    differing = 0
    for name, old in before.items():
        new = after.get(name, {})
        changes = [
            f"{k}: {old.get(k)!r} -> {new.get(k)!r}" for k in (*KEYS, "error") if old.get(k) != new.get(k)
        ]
        differing += bool(changes)
        print(f"{name:40} {'; '.join(changes) or 'the same'}")
    print(f"{differing} of {len(before)} runs differ")
    return differing


def pair(other: str, rounds: int) -> None:
    """Print the ratio of seconds per node, this installation over another one; the two run in turns."""
    code = (
        "import os, runpy, sys, json; sys.path.append(os.path.dirname(sys.argv[1]));"  # has benchmarks/common.py
        "m = runpy.run_path(sys.argv[1]); m['run'](m['CASES'][sys.argv[2]]);"
        "print(json.dumps(m['run'](m['CASES'][sys.argv[2]])))"
    )

    def per_node(python: str, name: str) -> float:
        answer = subprocess.run(
            [python, "-P", "-c", code, __file__, name], capture_output=True, text=True, check=True
        ).stdout
        last = json.loads(answer.strip().splitlines()[-1])
        return float(last["search_seconds"]) / max(1, last["nodes"] or 1)

    for name in TIMED:
        ratios = [per_node(sys.executable, name) / per_node(other, name) for _ in range(rounds)]
        print(
            f"{name:40} {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}, {rounds} pairs)",
            flush=True,
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("record", "compare", "pair"))
    parser.add_argument("file", help="the record; with pair, the other tree's Python")
    parser.add_argument("--only", nargs="*", default=list(CASES), help="names of runs")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if given.what == "pair":
        pair(given.file, given.rounds)
        return
    if given.what == "record":
        found = {
            "version": milpbn.__version__,
            "python": sys.version.split()[0],
            "processor": llvmlite.binding.get_host_cpu_name(),
            "runs": record(given.only),
        }
        write_results(Path(given.file), found)
        return
    recorded = json.loads(Path(given.file).read_text(encoding="utf-8"))
    before, here = recorded["runs"], llvmlite.binding.get_host_cpu_name()
    if recorded.get("processor") != here:
        # Compiled code adds in another order there, so that nodes and last digits differ without any change.
        print(
            f"recorded on another processor ({recorded.get('processor')}, here {here}): record there and here anew"
        )
    sys.exit(bool(compare({k: before[k] for k in given.only if k in before}, record(given.only))))


if __name__ == "__main__":
    main()
