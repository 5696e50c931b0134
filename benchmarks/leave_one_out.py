"""Leave-one-out scores beside the usual ones: time and memory of the coefficients, and accuracy on held-out rows.

    python benchmarks/leave_one_out.py car adult letter --data-dir DIR [--rounds 9] [--max-parents 2]
    python benchmarks/leave_one_out.py --accuracy heart australian diabetes --data-dir DIR [--time-limit 20]

The first form builds the tables of all parent sets with and without leave-one-out in turns, after one of each. It
prints the median of the paired ratios of the processor seconds, and the ratios of the memory held and of its peak. The
second form splits the training rows into five stratified folds, with states and cuts from each fold's own training
rows, and prints the accuracy and the log-loss on the held-out rows, of all folds together. Both print JSON.
"""

from __future__ import annotations

import json
import statistics
import time
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
from common import parse, parser, training_rows

import milpbn
from milpbn.data.dataset import Dataset
from milpbn.data.folds import stratified_folds
from milpbn.network.evaluation import evaluate
from milpbn.problem.candidates import build_candidates
from milpbn.problem.margins import margin_rows
from milpbn.problem.scores.spec import Score

#: The scores whose accuracies are compared.
SCORES = (Score(name="cll"), Score(p=0.9), Score(p=0.99))


def coefficients(data: Dataset, score: Score, rounds: int) -> dict[str, float]:
    """Return the paired ratios, leave-one-out to usual, of the seconds and bytes of all tables."""
    candidates = build_candidates(data.names, score)

    def build(leave_one_out: bool) -> tuple[float, int]:
        began = time.process_time()
        rows = margin_rows(data, candidates, replace(score, leave_one_out=leave_one_out))
        seconds = time.process_time() - began
        tables = rows.tables
        held = sum(value.nbytes for value in vars(tables).values() if isinstance(value, np.ndarray))
        return seconds, held

    def peak(leave_one_out: bool) -> int:
        tracemalloc.start()
        build(leave_one_out)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    for leave_one_out in (False, True):
        build(leave_one_out)
    pairs = [(build(False)[0], build(True)[0]) for _ in range(rounds)]
    return {
        "parent_sets": candidates.n_sets,
        "seconds_usual": statistics.median(usual for usual, _ in pairs),
        "seconds_leave_one_out": statistics.median(own for _, own in pairs),
        "seconds_ratio": statistics.median(own / usual for usual, own in pairs),
        "bytes_ratio": build(True)[1] / build(False)[1],
        "peak_ratio": peak(True) / peak(False),
    }


def held_out(name: str, score: Score, options: Any) -> dict[str, float]:
    """Return accuracy in percent, log-loss in nats and number of proved optima of a score over five folds."""
    table = milpbn.read_table(name, data_dir=options.data_dir)
    rows = np.arange(len(table.frame)) if table.train_rows is None else np.arange(table.train_rows)
    labels = np.unique(table.frame[table.target].to_numpy()[rows].astype(str), return_inverse=True)[1]
    right = loss = weight = proved = 0.0
    for train, test in stratified_folds(labels, 5, options.seed):
        data = table.dataset(rows[train])
        result = milpbn.solve(data, score, time_limit=options.time_limit, threads=1, verbose=False)
        found = evaluate(result.classifier, table.encode(data.variables, rows[test]))
        right, loss = right + found.accuracy * found.weight, loss + found.log_loss * found.weight
        weight, proved = weight + found.weight, proved + result.optimal
    return {"accuracy": 100 * right / weight, "log_loss": loss / weight, "proved": proved}


def main() -> None:
    made = parser(__doc__, data=("car", "adult", "letter"), time_limit=20.0)
    made.add_argument("--accuracy", action="store_true", help="compare accuracies on held-out rows")
    made.add_argument("--rounds", type=int, default=9, help="pairs of tables that are built")
    made.add_argument("--max-parents", type=int, default=2)
    made.add_argument("--seed", type=int, default=0, help="of the folds")
    options = parse(made)
    for name in options.data:
        if not options.accuracy:
            data = training_rows(name, options.data_dir).merged
            for score in (
                Score(max_parents=options.max_parents),
                Score(name="sbm", max_parents=options.max_parents),
            ):
                print(name, score.name, json.dumps(coefficients(data, score, options.rounds)), flush=True)
            continue
        for score in (replace(score, max_parents=options.max_parents) for score in SCORES):
            for leave_one_out in (False, True):
                found = held_out(name, replace(score, leave_one_out=leave_one_out), options)
                print(name, replace(score, leave_one_out=leave_one_out), json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
