"""What a set-packing MILP would bound better than the linear relaxation that the engine's multipliers come from.

    python benchmarks/set_packing.py --data-dir DIR [--data segment ...] [--seconds 30]

SM at p = .99, three parents, no class parents, training rows, more variables than the oracle puts into orders. At the
dual weights that the root's steps end with, the heaviest choice of parent sets is bounded three ways: every variable
for itself; by the linear program with clusters on demand (`bounds/multipliers.py`); and as a whole-number program in
HiGHS, with clusters until its choice is acyclic, or its bound after ten minutes. All in nats above the weight of the
best structure known, with the seconds that they took. Writes results/set-packing.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from milpbn import solve
from milpbn.atomic import atomic_write_text
from milpbn.bounds.inequalities import CLUSTER, Inequalities, add_row, inequalities_of, node_of, side
from milpbn.bounds.multipliers import best_multipliers
from milpbn.bounds.root import Root
from milpbn.data import read_table
from milpbn.model.clusters import fractional_clusters
from milpbn.scores.candidates import Candidates
from milpbn.scores.problem import build_problem
from milpbn.scores.spec import Score

RESULTS = Path(__file__).resolve().parent.parent / "results"
#: Seconds for the whole-number programs of a data set.
LONGEST = 600.0
DATA = ("segment", "hepatitis", "waveform-21", "soybean-large", "satimage")


def best_alone(candidates: Candidates, values: NDArray[np.float64], allowed: NDArray[np.bool_]) -> float:
    """Return the sum of every variable's largest value."""
    return float(np.maximum.reduceat(np.where(allowed, values, -np.inf), candidates.offsets[:-1]).sum())


def heaviest(
    root: Root,
    candidates: Candidates,
    rows: Inequalities,
    values: NDArray[np.float64],
    entries: NDArray[np.int64],
) -> tuple[float, int]:
    """Bound the sum of values of any acyclic choice among some entries; return how many programs that took, too."""
    end = time.perf_counter() + LONGEST
    k, owner = len(entries), np.asarray(candidates.variable)[entries]
    one = sp.csr_array((np.ones(k), (owner, np.arange(k))), shape=(candidates.n_variables, k))
    for solved in range(1, 1000):
        constraints = [LinearConstraint(one, 1, 1)]
        for r in range(len(rows.limit)):
            row = np.zeros(candidates.n_sets)
            add_row(root.model.oracle, rows, r, 1.0, row)
            constraints.append(LinearConstraint(row[entries], side(rows, r), np.inf))
        found = milp(
            -values[entries],
            integrality=np.ones(k),
            bounds=Bounds(0, 1),
            constraints=constraints,
            options={"mip_rel_gap": 0.0, "time_limit": max(1.0, end - time.perf_counter())},
        )
        if found.x is None or found.status != 0:
            return -float(found.mip_dual_bound), solved
        eta = np.zeros(candidates.n_sets)
        eta[entries] = np.round(found.x)
        new = fractional_clusters(candidates, eta, nodes=100)
        if not new:
            return -float(found.mip_dual_bound), solved
        more = inequalities_of(new, [CLUSTER] * len(new), candidates.n_variables)
        rows = Inequalities(*(np.concatenate(both) for both in zip(rows, more, strict=True)))
    raise SystemExit("no acyclic choice after 1,000 programs")


def measure(name: str, folder: str, seconds: float) -> dict[str, Any]:
    """Return the three bounds at the root's weights."""
    data = read_table(name, data_dir=folder).dataset("train")
    score = Score(p=0.99, class_parents=False, max_parents=3)
    known = solve(data, score, backend="native", time_limit=seconds, verbose=False).structure
    problem = build_problem(data, score, for_milp=False)
    candidates = problem.candidates
    root = Root(problem, known)
    end = time.perf_counter() + seconds
    root.run(
        known,
        stopping=lambda: time.perf_counter() > end,
        bounded=lambda _: None,
        found=lambda _: None,
        reduce=False,
    )
    choice = problem.choice(known)
    assert choice is not None
    weights = root.point.gradient - (root.node.linear - root.model.linear)
    none = inequalities_of([], [], candidates.n_variables)
    begun = time.perf_counter()
    rows, multipliers = best_multipliers(
        root.model.oracle, candidates, none, weights, root.allowed, choice, lambda: False
    )
    linear_seconds = time.perf_counter() - begun
    node = node_of(root.model, rows, multipliers, root.allowed, root.no_edges, 0)
    values = weights + node.linear - root.model.linear
    linear = best_alone(candidates, values, root.allowed) + node.constant
    # Reduced costs: no other entry is in a choice as heavy as the known one.
    own = float(weights[choice].sum())
    alone = np.maximum.reduceat(np.where(root.allowed, values, -np.inf), candidates.offsets[:-1])
    lost = alone[np.asarray(candidates.variable)] - values
    entries = np.flatnonzero(root.allowed & (linear - lost >= own - 1e-6))
    begun = time.perf_counter()
    whole, programs = heaviest(root, candidates, rows, weights, entries)
    return {
        "command": f"python benchmarks/set_packing.py --data-dir DIR --data {name} --seconds {seconds:g}",
        "every variable for itself": best_alone(candidates, weights, root.allowed) - own,
        "linear program with clusters": linear - own,
        "set-packing MILP": whole - own,
        "clusters": len(rows.limit),
        "parent sets": [candidates.n_sets, len(entries)],
        "seconds of the linear program": linear_seconds,
        "seconds of the MILP": time.perf_counter() - begun,
        "programs of the MILP": programs,
        "steps of the root": root.steps,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", required=True, help="catalog folder")
    parser.add_argument("--data", nargs="+", default=DATA, metavar="NAME")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="of a search for the known structure, and of the root"
    )
    options = parser.parse_args()
    path = RESULTS / "set-packing.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    for name in options.data:
        kept[name] = measure(name, options.data_dir, options.seconds)
        print(name, json.dumps(kept[name]), flush=True)
        atomic_write_text(path, json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main()
