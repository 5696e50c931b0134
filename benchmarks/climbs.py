"""Climbs of the local search: from naive Bayes, and from where a perturbation of three variables leads.

    python benchmarks/climbs.py --data-dir DIR [--source DIR ...]

One thread, kernels compiled before, no class parents; SM at p = .99. Other source trees can be named to be compared, in
turns, each in a process of its own. Writes results/climbs.json: seconds of all climbs, and the score that they end at.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from milpbn.atomic import atomic_write_text
from milpbn.data import read_table
from milpbn.learners.local_search import LocalSearch
from milpbn.network.structure import Structure
from milpbn.scores.problem import build_problem
from milpbn.scores.spec import Score

ROOT = Path(__file__).resolve().parent.parent
CASES = (("satimage", "sm"), ("satimage", "cll"), ("letter", "cll"), ("segment", "cll"))
CLIMBS = 8


def climbs(name: str, score: str, data_dir: str | None, n: int) -> dict[str, float]:
    """Climb from naive Bayes, perturb and climb again, n times."""
    spec = Score(name=score, class_parents=False, **({"p": 0.99} if score == "sm" else {}))
    problem = build_problem(read_table(name, data_dir=data_dir).dataset("train"), spec, for_milp=False)
    search = LocalSearch(problem, Structure.naive_bayes(problem.candidates.names), parallel=False)
    rng = np.random.default_rng(0)
    begun = time.perf_counter()
    search.climb(rng)
    first = time.perf_counter() - begun
    for _ in range(n):
        search.perturb(rng, 3)
        search.climb(rng)
    return {"first": first, "seconds": time.perf_counter() - begun, "value": search.value}


def elsewhere(source: Path, name: str, score: str, data_dir: str | None) -> dict[str, float]:
    """Let another source tree climb."""
    command = [sys.executable, "-P", __file__, "--case", name, score]
    if data_dir:
        command += ["--data-dir", data_dir]
    run = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(source)}, check=True, stdout=subprocess.PIPE
    )
    return dict(json.loads(run.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--data-dir", metavar="DIR", help="catalog folder; by default the variable MILPBN_DATA"
    )
    parser.add_argument("--source", nargs="+", type=Path, default=[ROOT])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--output", type=Path, default=ROOT / "results" / "climbs.json")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        name, score = options.case
        climbs("iris", score, options.data_dir, 1)  # compiles
        print(json.dumps(climbs(name, score, options.data_dir, CLIMBS)))
        return
    rows: list[dict[str, Any]] = []
    for name, score in CASES:
        turns = [
            [elsewhere(source, name, score, options.data_dir) for source in options.source]
            for _ in range(options.turns)
        ]
        for number in range(len(options.source)):
            best = min((turn[number] for turn in turns), key=lambda run: run["seconds"])
            rows.append({"data": name, "score": score, "source": number, **best})
            print(rows[-1], flush=True)
    atomic_write_text(
        options.output,
        json.dumps(
            {"command": "python benchmarks/climbs.py --data-dir DIR --source BEFORE NOW", "results": rows},
            indent=1,
        )
        + "\n",
    )


if __name__ == "__main__":
    main()
