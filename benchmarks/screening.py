"""Searches with three parents over all and over screened candidate parent sets, in seconds of one processor.

    python benchmarks/screening.py [NAME ...] --data-dir DIR [--time-limit 60] [--k 100 200] [--p 0.9]

NAME is a data set, or `two-dependence`: 57 features with four states and 3,000 rows, sampled from a random network with
two feature parents (`generated.py`). Each run has a process of its own and one thread. Its clock is the processor time
of that process, for its time limit as well, so that other processes on the machine do not count; kernels are compiled
before. The runs are: two parents over all sets, three parents over all sets, and three over each number of kept sets.
Written are incumbent and bound at some moments, the seconds of the screening, and the accuracy on test rows (of data
with a split; of the generated data, on 3,000 further rows). Writes results/gaps/screening.json after every data set.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from common import RESULTS, alone, command, parse, parser, read_results, write_results
from generated import two_dependence

import milpbn
from milpbn.data import Dataset, read_table
from milpbn.problem.scores.spec import Score

#: Moments in seconds at which incumbent and bound are written; the end of the run comes last.
MOMENTS = (5.0, 10.0, 20.0, 30.0, 60.0)
GENERATED = "two-dependence"


def rows_of(name: str, options: argparse.Namespace) -> tuple[Dataset, Dataset | None]:
    """Return training and test rows."""
    if name == GENERATED:
        every = read_table(two_dependence(rows=6000)).dataset("train")
        return every.take(np.arange(3000)), every.take(np.arange(3000, 6000))
    table = read_table(name, data_dir=options.data_dir)
    train, test = table.dataset("train"), table.test_indices
    return train, table.encode(train.variables, test) if len(test) else None


def measure(name: str, max_parents: int, k: int | None, options: argparse.Namespace) -> dict[str, Any]:
    """Solve one data set, and return the figures to write."""
    train, test = rows_of(name, options)
    score = Score(name="sm", p=options.p, max_parents=max_parents, class_parents=options.class_parents)
    for parents, screen in ((2, None), (3, 8)):  # loads the kernels
        milpbn.solve(
            "tic-tac-toe",
            Score(max_parents=parents, class_parents=False),
            screen=screen,
            gap_rel=0.2,
            threads=1,
            verbose=False,
        )
    time.monotonic = time.process_time  # everything that reads the clock now reads that of this process
    result = milpbn.solve(train, score, screen=k, time_limit=options.time_limit, threads=1, verbose=False)
    searched = result.searched
    return {
        "max_parents": max_parents,
        "k": k,
        "kept": None if result.screened is None else result.screened.n_kept,
        "candidates": None if result.screened is None else result.screened.total,
        "ranked": None if result.screened is None else result.screened.ranked,
        "incumbent": searched.objective,
        "bound": searched.bound,
        "optimal": searched.optimal,
        "nodes": result.nodes,
        "seconds": result.seconds.total,
        "seconds_before_search": result.seconds.coefficients,
        "at": {str(int(s)): at(result, s) for s in MOMENTS if s <= options.time_limit},
        "accuracy": None if test is None else milpbn.evaluate(result.classifier, test).accuracy,
    }


def at(result: milpbn.Result, seconds: float) -> list[float | None]:
    """Return incumbent and bound at a moment."""
    reached = [point for point in result.trace if point[0] <= seconds]
    return list(reached[-1][1:]) if reached else [None, None]


def main() -> None:
    """Measure the data sets of the command line."""
    made = parser(
        __doc__,
        data=[GENERATED, "soybean-large", "satimage", "segment", "waveform-21", "heart", "nursery", "car"],
        output=RESULTS / "gaps" / "screening.json",
        time_limit=60.0,
    )
    made.add_argument("--k", type=int, nargs="+", default=[100, 200], help="parent sets to keep per variable")
    made.add_argument("--p", type=float, default=0.9)
    made.add_argument("--class-parents", action="store_true")
    options = parse(made)
    found = read_results(options.output)
    for name in options.data:
        runs = [(2, None), (3, None), *((3, k) for k in options.k)]
        found[name] = {
            "command": command(options, name),
            "score": f"sm, p = {options.p:g}{'' if options.class_parents else ', no class parents'}",
            "runs": [alone(measure, name, parents, k, options) for parents, k in runs],
        }
        for run in found[name]["runs"]:
            print(name, run, flush=True)
        write_results(options.output, found)


if __name__ == "__main__":
    main()
