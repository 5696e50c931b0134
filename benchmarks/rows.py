"""What the samples' rows that no structure needs cost a MILP solver: HiGHS with and without them, in one run.

    python benchmarks/rows.py car nursery adult segment --data-dir DIR [--p 0.99] [--time-limit 120]

SM, max_parents 2, no class parents, training rows, the parent sets that the root's bound has left, one thread, both
from the same structure. Writes results/rows.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from milpbn.atomic import atomic_write_text
from milpbn.backends.base import Settings
from milpbn.backends.registry import get_backend
from milpbn.backends.rounds import solve_formulation
from milpbn.bounds.root import root_bound
from milpbn.data import read_table
from milpbn.learners.first_incumbent import first_incumbent
from milpbn.model.formulation import formulate
from milpbn.result import Gap
from milpbn.scores.problem import build_problem
from milpbn.scores.spec import Score
from milpbn.session import Session

RESULTS = Path(__file__).resolve().parent.parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--data-dir", required=True, help="catalog folder")
    parser.add_argument("--p", type=float, default=0.99)
    parser.add_argument("--time-limit", type=float, default=120.0, metavar="SECONDS")
    options = parser.parse_args()
    path = RESULTS / "rows.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    for name in options.data:
        data = read_table(name, data_dir=options.data_dir).dataset("train")
        problem = build_problem(data, Score(p=options.p, class_parents=False))
        best = first_incumbent(problem)
        smaller, _ = root_bound(
            problem, best, stopping=lambda: False, bounded=lambda _: None, found=lambda _, best=best: best
        )
        entry: dict[str, object] = {
            "command": f"python benchmarks/rows.py {name} --data-dir DIR --p {options.p:g} "
            f"--time-limit {options.time_limit:g}"
        }
        for reduce in (False, True):
            started = time.monotonic()
            session = Session(problem, started=started, deadline=started + options.time_limit)
            session.formulation = formulate(smaller, reduce=reduce)
            settings = Settings(deadline=started + options.time_limit, threads=1)
            solve_formulation(get_backend("highs"), session.formulation, best, settings, session)
            entry["without" if reduce else "with"] = {
                "rows": session.formulation.milp.n_rows,
                "seconds": session.elapsed(),
                "gap": Gap.between(session.objective, session.best_bound).relative_to_bound,
                "nodes": session.node_count,
            }
        kept[f"{name} p {options.p:g}"] = entry
        atomic_write_text(path, json.dumps(kept, indent=1) + "\n")
        print(name, json.dumps(entry), flush=True)


if __name__ == "__main__":
    main()
