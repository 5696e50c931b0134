"""The memory forecast against the peak of a whole run: coefficients, model, and the solver's copies.

    python benchmarks/memory.py --data DIR [--seconds 40]

For each data set of the catalog folder DIR, a process of its own runs `milpbn.solve` and its largest resident set, less
what it held before the coefficients, is compared with the forecast. The bar: within 20 %. Writes results/memory.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from pathlib import Path

from milpbn.data import read_table
from milpbn.memory import peak_memory
from milpbn.scores.candidates import build_candidates
from milpbn.scores.forecast import solver_bytes, tensor_bytes
from milpbn.scores.spec import Score
from milpbn.solving import solve

RESULTS = Path(__file__).resolve().parent.parent / "results"
CASES = (("segment", "sm"), ("satimage", "sm"), ("letter", "sm"), ("letter", "sbm"))


def measure(name: str, score_name: str, data_dir: str, seconds: float, queue: multiprocessing.Queue) -> None:
    data, score = read_table(name, data_dir=data_dir).dataset("train"), Score(name=score_name)
    solve("corral", score, time_limit=10, verbose=False, backend="highs")  # kernels and libraries are loaded
    candidates = build_candidates(data.names, score)
    tensor, solver = (
        tensor_bytes(data.merged, candidates, score),
        solver_bytes(data.merged, candidates, score),
    )
    before = peak_memory() or 0
    result = solve(data, score, time_limit=seconds, verbose=False, backend="highs", root_bound=False)
    queue.put((tensor, solver, (peak_memory() or 0) - before, result.detail))
    queue.close()
    queue.join_thread()
    os._exit(0)  # a solver that was left behind must not hold the process


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="catalog folder")
    parser.add_argument("--seconds", type=float, default=40)
    options = parser.parse_args()
    report = {}
    for name, score in CASES:
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        process = context.Process(target=measure, args=(name, score, options.data, options.seconds, queue))
        process.start()
        tensor, solver, peak, detail = queue.get()
        process.join()
        report[f"{name} {score}"] = {
            "coefficients_bytes": tensor,
            "model_and_solver_bytes": solver,
            "peak_bytes": peak,
            "forecast_over_peak": (tensor + solver) / peak,
            "status": detail,
        }
        print(name, score, json.dumps(report[f"{name} {score}"]), flush=True)
    command = f"python benchmarks/memory.py --data DIR --seconds {options.seconds:g}"
    (RESULTS / "memory.json").write_text(json.dumps({"command": command, "results": report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
