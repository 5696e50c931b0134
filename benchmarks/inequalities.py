"""What multipliers of clusters and of child limits are worth: the engine's gap with and without them, in one run.

    python benchmarks/inequalities.py --data-dir DIR [--time-limit 60] [--only NAME]

SM, no class parents, training rows, two threads, the same seed. "three parents" has more variables than the oracle puts
into orders; "N children" is a limit for every feature under two parents. Writes results/inequalities.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from milpbn import solve
from milpbn.atomic import atomic_write_text
from milpbn.bounds.root import Root
from milpbn.data import read_table
from milpbn.scores.constraints import Constraints
from milpbn.scores.spec import Score

RESULTS = Path(__file__).resolve().parent.parent / "results"
THREE, ONE, TWO = "three parents", "1 child", "2 children"
CASES = (
    ("segment", 0.99, THREE),
    ("waveform-21", 0.99, THREE),
    ("soybean-large", 0.99, THREE),
    ("segment", 0.99, ONE),
    ("segment", 0.99, TWO),
    ("heart", 0.9, ONE),
    ("heart", 0.9, TWO),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", required=True, help="catalog folder")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--only", metavar="NAME", help="one data set")
    options = parser.parse_args()
    path = RESULTS / "inequalities.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    price = Root._price
    for name, p, case in CASES:
        if options.only not in (None, name):
            continue
        data = read_table(name, data_dir=options.data_dir).dataset("train")
        score = Score(p=p, class_parents=False, max_parents=3 if case == THREE else 2)
        rules = None if case == THREE else Constraints(max_children={"*": int(case[0])})
        # Compiles what is not compiled yet.
        solve(data, score, constraints=rules, backend="native", time_limit=5, threads=2, verbose=False)
        entry: dict[str, object] = {
            "command": f"python benchmarks/inequalities.py --data-dir DIR --time-limit {options.time_limit:g} "
            f"--only {name}"
        }
        for key in ("without", "with"):
            Root._price = price if key == "with" else (lambda *_: False)  # type: ignore[method-assign, assignment]
            result = solve(
                data,
                score,
                constraints=rules,
                backend="native",
                time_limit=options.time_limit,
                threads=2,
                verbose=False,
            )
            entry[key] = {
                "objective": result.objective,
                "bound": result.bound,
                "gap_percent": 100 * result.gap.relative_to_bound,
                "nodes": result.nodes,
                "seconds": result.seconds.total,
            }
        label = f"{name} p={p:g}, {case}"
        kept[label] = entry
        print(label, entry, flush=True)
        atomic_write_text(path, json.dumps(kept, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
