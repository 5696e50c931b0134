"""Time of one maximum branching, and of all reduced costs with it, by number of nodes; networkx beside it.

    python benchmarks/branching.py [--nodes 37 101 257 501] [--repeats 5]

`full` graphs have an arc between any two nodes, about as heavy as the one back, as arcs of TAN structures are: their
best arcs form cycles of two, again and again. `sparse` graphs have three arcs into every node, as the models of Newton
steps do. Processor times, the least of the repeats. Writes results/branchings.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np

from milpbn.atomic import atomic_write_text
from milpbn.bounds.branching import Arcs, maximum_arborescence

#: networkx takes a minute beyond.
MOST_NETWORKX = 101


def graph(n: int, sparse: bool, rng: np.random.Generator) -> Arcs:
    """Return a random graph in which every node can come from the root."""
    w = rng.gamma(0.5, size=(n, n))
    w += w.T + 0.01 * rng.normal(size=(n, n))
    w[0] = 0.001
    kept = np.ones((n, n), dtype=bool)
    if sparse:
        kept = rng.random((n, n)) < 2 / (n - 2)
        kept[0] = True
    np.fill_diagonal(kept, False)
    kept[:, 0] = False
    head, tail = np.nonzero(kept.T)
    first = np.searchsorted(head, np.arange(n + 1))
    return Arcs(first, tail.copy(), w[tail, head], np.zeros(len(tail), dtype=np.int64))


def least(action: Callable[[], object], repeats: int) -> float:
    """Return the least processor time of an action, milliseconds, after a first call that may compile."""
    action()
    times = []
    for _ in range(repeats):
        begun = time.thread_time()
        action()
        times.append(time.thread_time() - begun)
    return 1e3 * min(times)


def measure(arcs: Arcs, repeats: int) -> dict[str, float]:
    """Return the times of a graph, with networkx's where that ends."""
    n = len(arcs.first) - 1
    chosen, nothing, reduced = np.empty(n, dtype=np.int64), np.empty(0), np.empty(len(arcs.tail))
    found = {
        "arcs": len(arcs.tail),
        "ms": least(lambda: maximum_arborescence(arcs, chosen, nothing), repeats),
        "ms_with_reduced_costs": least(lambda: maximum_arborescence(arcs, chosen, reduced), repeats),
    }
    if n <= MOST_NETWORKX:
        heads = np.repeat(np.arange(n), np.diff(arcs.first))
        other = nx.DiGraph()
        other.add_weighted_edges_from(
            zip(arcs.tail.tolist(), heads.tolist(), arcs.weights.tolist(), strict=True)
        )
        best = nx.maximum_spanning_arborescence(other).size(weight="weight")
        assert abs(best - arcs.weights[chosen[1:]].sum()) < 1e-9 * abs(best)
        found["ms_networkx"] = least(lambda: nx.maximum_spanning_arborescence(other), 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[37, 101, 257, 501])
    parser.add_argument("--repeats", type=int, default=5)
    root = Path(__file__).resolve().parent.parent
    parser.add_argument("--output", type=Path, default=root / "results" / "branchings.json")
    options = parser.parse_args()
    command = f"python benchmarks/branching.py --nodes {' '.join(map(str, options.nodes))} --repeats {options.repeats}"
    results = {"command": command}
    for n in options.nodes:
        for kind in ("full", "sparse"):
            found = measure(graph(n, kind == "sparse", np.random.default_rng(n)), options.repeats)
            results[f"{kind} {n}"] = found
            print(kind, n, json.dumps(found), flush=True)
    atomic_write_text(options.output, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
