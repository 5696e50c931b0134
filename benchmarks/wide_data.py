"""The native engine on images: usps (256 features) and mnist at 14 x 14 (196 features, 60,000 rows).

    python benchmarks/wide_data.py [usps mnist] --data-dir DIR [--time-limit 600] [--threads 2]

`images.py` describes the files in DIR. The score is SM at p = .99, with max_parents 2 and no class parents. Incumbent,
bound, gap and peak memory are written together with the score of naive Bayes, with `--heuristic` also the score of
TAN-OMI-MM with the same gamma on the training rows (takes minutes), and the loose bound gamma times M. Every run has
a process of its own; kernels are compiled before. Writes results/gaps/wide.json after every data set.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from common import RESULTS, alone, command, parse, parser, read_results, write_results
from images import FOLDS, load

from milpbn.learners.base import Control
from milpbn.learners.generative.order_based import OrderMargin
from milpbn.network.structure import Structure
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.spec import Score, gamma_from_p
from milpbn.solving.api import solve
from milpbn.util.memory import peak_memory


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Solve one data set, and return the figures to write."""
    train, _ = load(options.data_dir, name)
    score = Score(name="sm", p=options.p, class_parents=False)
    solve("tic-tac-toe", score, time_limit=120, verbose=False, threads=options.threads)  # loads the kernels
    read = peak_memory() or 0
    result = solve(
        train, score, time_limit=options.time_limit, verbose=False, threads=options.threads, backend="native"
    )
    return {
        "rows": train.n_samples,
        "features": train.n_features,
        "incumbent": result.objective,
        "bound": result.bound,
        "gap": None if result.gap is None else result.gap.relative_to_bound,
        "nodes": result.nodes,
        "seconds": result.seconds.total,
        "peak_bytes": peak_memory(),
        "peak_bytes_before": read,
        "trace": result.trace,
    }


def references(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the scores that a result is compared with."""
    train, _ = load(options.data_dir, name)
    score = Score(name="sm", p=options.p, class_parents=False)
    gamma = gamma_from_p(options.p)
    known = {
        "naive_bayes": rescore(train, Structure.naive_bayes(train.names), score),
        "trivial_bound": gamma * float(train.weights.sum()),
    }
    if options.heuristic:
        begun = time.perf_counter()
        learner = OrderMargin(gamma=gamma, evaluation="train")
        structure = learner.fit(train, Control(random_state=0, n_jobs=options.threads)).structure
        assert structure is not None
        known["tan_omi_mm"] = rescore(train, structure, score)
        known["tan_omi_mm_seconds"] = time.perf_counter() - begun
    return known


def main() -> None:
    made = parser(
        __doc__, data=("usps", "mnist"), output=RESULTS / "gaps" / "wide.json", time_limit=600.0, threads=2
    )
    made.add_argument("--p", type=float, default=0.99)
    made.add_argument("--heuristic", action="store_true", help="also learn TAN-OMI-MM")
    options = parse(made, list(FOLDS))
    kept = read_results(options.output)
    for name in options.data:
        run = alone(measure, name, options)
        known = references(name, options)
        run["naive_bayes_gap"] = 1 - known["naive_bayes"] / known["trivial_bound"]
        kept[name] = {"command": command(options, name), **known, **run}
        write_results(options.output, kept)
        print(name, {key: value for key, value in kept[name].items() if key != "trace"}, flush=True)


if __name__ == "__main__":
    main()
