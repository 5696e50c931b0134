"""Time to build segment's SM model (P12 (19), about 3 million non-zeros) from its coefficients.

    python benchmarks/model.py --data DIR       DIR: catalog folder with segment.csv.gz

The issue's bar: at most 2 s. Writes results/model.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from milpbn.data import read_table
from milpbn.model.formulation import formulate
from milpbn.scores.problem import build_problem
from milpbn.scores.spec import Score

RESULTS = Path(__file__).resolve().parent.parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="catalog folder with segment.csv.gz")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    data = read_table("segment", data_dir=options.data).dataset("train")
    report = {}
    for class_parents in (False, True):
        score = Score(class_parents=class_parents)
        build_problem(data, score)
        coefficients, model = [], []
        for _ in range(options.runs):
            start = time.perf_counter()
            problem = build_problem(data, score)
            middle = time.perf_counter()
            formulation = formulate(problem)
            coefficients.append(middle - start)
            model.append(time.perf_counter() - middle)
        key = "with class parents" if class_parents else "no class parents"
        report[key] = {
            "columns": formulation.milp.n_columns,
            "rows": formulation.milp.n_rows,
            "nonzeros": int(formulation.milp.A.nnz),
            "coefficient_seconds": float(np.median(coefficients)),
            "model_seconds": float(np.median(model)),
        }
        print(key, json.dumps(report[key]))
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"command": "python benchmarks/model.py --data DIR", "results": report}, indent=1)
    (RESULTS / "model.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
