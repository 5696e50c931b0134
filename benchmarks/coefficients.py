"""Time and memory of the margin coefficients against one NumPy gather that writes an array of that size.

    python benchmarks/coefficients.py                 letter's sizes, synthetic codes
    python benchmarks/coefficients.py --data DIR      the real letter of the catalog folder DIR

The issue's bars: at most 3 times the gather's time, peak memory at most 1.5 times the tensor, and a memory
forecast within 20 % of the peak. Each measurement runs in a process of its own; the peak is the largest
resident set beyond what the process held before. Writes results/coefficients.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from pathlib import Path

import numpy as np

from milpbn.data import Dataset, Variable, read_table
from milpbn.memory import peak_memory
from milpbn.scores.candidates import build_candidates
from milpbn.scores.families import family_tables
from milpbn.scores.forecast import tensor_bytes
from milpbn.scores.margins import margin_rows
from milpbn.scores.spec import Score

RESULTS = Path(__file__).resolve().parent.parent / "results"


def letter_like() -> Dataset:
    """15,000 rows, 16 features of 8 states, 26 classes: letter's sizes."""
    rng = np.random.default_rng(0)
    y = rng.integers(26, size=15000)
    X = (y[:, None] * rng.integers(1, 9, size=16) + rng.integers(0, 9, size=(15000, 16))) % 8
    states = tuple(str(s) for s in range(8))
    variables = [Variable(f"x{i}", states) for i in range(16)]
    variables.append(Variable("class", tuple(str(c) for c in range(26))))
    codes = np.column_stack([X, y]).astype(np.int32)
    return Dataset("letter-like", tuple(variables), codes, np.ones(15000))


def load(data_dir: str | None) -> Dataset:
    if data_dir is None:
        return letter_like()
    return read_table("letter", data_dir=data_dir).dataset("train")


def warm_up(data: Dataset, score: Score) -> None:
    """Load the compiled kernels, and start their threads."""
    small = data.take(np.arange(50))
    _ = margin_rows(small, build_candidates(data.names, score), score).alpha


def measure(kind: str, name: str, data_dir: str | None, queue: multiprocessing.Queue) -> None:
    data, score = load(data_dir), Score(name=name)
    candidates = build_candidates(data.names, score)
    warm_up(data, score)
    before = peak_memory() or 0
    if kind == "milpbn":
        start = time.perf_counter()
        alpha = margin_rows(data, candidates, score).alpha
        seconds = time.perf_counter() - start
        queue.put(
            (seconds, (peak_memory() or 0) - before, alpha.nbytes, tensor_bytes(data, candidates, score))
        )
    else:
        # The tables of SM for both scores: those of SBM have a row for every class, and leave the cache.
        tables = family_tables(data, candidates, 1.0, binary=False)
        n_rows = 1 if name == "sbm" else data.n_classes - 1
        # One gather per element, from a table in the cache: np.take over the cells of all rows.
        flat = tables.values[:, 0].copy()
        cells = np.stack([tables.start[k] + tables.cells(d) for k, d in enumerate(tables.domain)], axis=1)
        index = np.repeat(cells, n_rows, axis=0).astype(np.intp)
        start = time.perf_counter()
        np.take(flat, index)
        queue.put((time.perf_counter() - start, 0, 0, 0))


def run(kind: str, name: str, data_dir: str | None) -> tuple[float, int, int, int]:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=measure, args=(kind, name, data_dir, queue))
    process.start()
    answer = queue.get()
    process.join()
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="catalog folder with letter.csv.gz")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    report = {}
    for name in ("sm", "sbm"):
        ours, gathers = [], []
        for _ in range(options.runs):
            ours.append(run("milpbn", name, options.data))
            gathers.append(run("gather", name, options.data)[0])
        seconds = float(np.median([o[0] for o in ours]))
        gather = float(np.median(gathers))
        _, peak, tensor, forecast = ours[0]
        peak = int(np.median([o[1] for o in ours]))
        report[name] = {
            "tensor_bytes": tensor,
            "seconds": seconds,
            "gather_seconds": gather,
            "ratio": seconds / gather,
            "peak_over_tensor": peak / tensor,
            "forecast_over_peak": forecast / peak,
        }
        print(name, json.dumps(report[name]))
    RESULTS.mkdir(exist_ok=True)
    command = "python benchmarks/coefficients.py" + (" --data DIR" if options.data else "")
    text = json.dumps({"command": command, "results": report}, indent=1)
    (RESULTS / "coefficients.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
