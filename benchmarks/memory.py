"""The memory forecast beside the peak of a whole run: coefficients, model, and the solver's copies.

    python benchmarks/memory.py [segment satimage letter] --data-dir DIR [--time-limit 40]

A new process runs `milpbn.solve` on each data set. Its largest resident set, minus the memory that it had before the
coefficients, is compared with the forecast. The aim is a difference of at most 20 %. Writes results/memory.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from common import RESULTS, alone, command, parse, parser, read_results, training_rows, write_results

from milpbn.problem.candidates import build_candidates
from milpbn.problem.forecast import solver_bytes, tensor_bytes
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import solve
from milpbn.util.memory import peak_memory

#: Scores to measure on a data set; on all others, only sm.
SCORES = {"letter": ("sm", "sbm")}


def measure(name: str, score_name: str, data_dir: Path, seconds: float) -> dict[str, Any]:
    """Solve one data set, and return forecast and peak in bytes."""
    data, score = training_rows(name, data_dir), Score(name=score_name)
    solve("corral", score, time_limit=10, verbose=False, backend="highs")  # loads kernels and libraries
    candidates = build_candidates(data.names, score)
    tensor, solver = (size(data.merged, candidates, score) for size in (tensor_bytes, solver_bytes))
    before = peak_memory() or 0
    result = solve(data, score, time_limit=seconds, verbose=False, backend="highs", root_bound=False)
    peak = (peak_memory() or 0) - before
    return {
        "coefficients_bytes": tensor,
        "model_and_solver_bytes": solver,
        "peak_bytes": peak,
        "forecast_over_peak": (tensor + solver) / peak,
        "status": result.detail,
    }


def main() -> None:
    options = parse(
        parser(
            __doc__, data=("segment", "satimage", "letter"), output=RESULTS / "memory.json", time_limit=40.0
        )
    )
    kept = read_results(options.output)
    for name in options.data:
        for score in SCORES.get(name, ("sm",)):
            found = alone(measure, name, score, options.data_dir, options.time_limit)
            kept[f"{name} {score}"] = {"command": command(options, name), **found}
            write_results(options.output, kept)
            print(name, score, json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
