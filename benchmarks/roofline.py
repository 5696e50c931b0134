"""Rate of Frank-Wolfe steps on the whole model against NumPy products with the dense tensor of all coefficients.

    python benchmarks/roofline.py --data-dir DIR [--seconds 5] [--threads 1 2] [data sets]

A step of `milpbn.bounds.frank_wolfe.take_steps` asks for the coefficients twice: the dual weights' product with all
of them, and a direction's. Dense, these are duals @ alpha and alpha @ eta with the matrix of shape (M R, K), M merged
samples, R rows each (competing classes), K columns. The time of a step includes the branching, the line search and all
else, that of the products nothing else. Two rates: of pairwise Frank-Wolfe steps, and of the steps that a solve takes,
where it pays Newton steps, which go further and whose curvature over n entries costs some n / 2 products. Both begin
at a local optimum, as those of a solve do, again and again until the seconds are over. Sets whose matrix exceeds 4 GB
are left out. Writes results/roofline.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from milpbn.bounds.frank_wolfe import PAUSED, take_steps
from milpbn.bounds.point import STEPS
from milpbn.bounds.root import Root
from milpbn.data import read_table
from milpbn.learners.local_search import search
from milpbn.learners.tan import tan_structure
from milpbn.network.structure import Structure
from milpbn.scores.problem import Problem, build_problem
from milpbn.scores.spec import Score
from milpbn.threads import threads_used
from milpbn.warm_up import warm_up

RESULTS = Path(__file__).resolve().parent.parent / "results"
DATA = ("segment", "satimage", "letter", "soybean-large", "adult")
#: Largest matrix, in bytes.
LARGEST = 4e9


def pairwise_rate(problem: Problem, known: Structure, threads: int, seconds: float) -> float:
    """Return Frank-Wolfe steps per second, without Newton steps."""
    root, total, begun = Root(problem, known, threads=threads), 0, time.perf_counter()
    incumbent = root.value(known)
    while time.perf_counter() < begun + seconds:
        before = int(root.point.counts[STEPS])
        status = take_steps(
            root.model, root.node, root.point, incumbent, 0.0, -np.inf, 8, False, root.parallel
        )
        total += int(root.point.counts[STEPS]) - before
        if status != PAUSED:
            root = Root(problem, known, threads=threads)
    return total / (time.perf_counter() - begun)


def step_rate(problem: Problem, known: Structure, threads: int, seconds: float) -> tuple[float, int]:
    """Return steps per second, and the most steps that a run of the root took."""
    total, longest, spent = 0, 0, 0.0
    while spent < seconds:
        root = Root(problem, known, threads=threads)
        begun = time.perf_counter()
        root.run(
            known,
            stopping=_after(seconds - spent),
            bounded=lambda value: None,
            found=lambda structure: structure,
            reduce=False,
        )
        spent += time.perf_counter() - begun
        total, longest = total + root.steps, max(longest, root.steps)
    return total / spent, longest


def _after(seconds: float) -> Callable[[], bool]:
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() > end


def product_rate(alpha: np.ndarray, seconds: float) -> float:
    """Return pairs of products, alpha @ eta and duals @ alpha, per second."""
    rng = np.random.default_rng(0)
    duals, eta = rng.random(alpha.shape[0]), rng.random(alpha.shape[1])
    rows, columns = np.empty(alpha.shape[0]), np.empty(alpha.shape[1])

    def pair() -> None:
        np.matmul(alpha, eta, out=rows)
        np.matmul(duals, alpha, out=columns)

    pair()
    count, begun = 0, time.perf_counter()
    while time.perf_counter() < begun + seconds:
        pair()
        count += 1
    return count / (time.perf_counter() - begun)


def measure(
    name: str, p: float, threads: list[int], seconds: float, data_dir: str, queue: multiprocessing.Queue
) -> None:
    score = Score(p=p, class_parents=False)
    problem = build_problem(read_table(name, data_dir=data_dir).dataset("train"), score, for_milp=False)
    margins = problem.margins
    assert margins is not None
    warm_up(problem, bounds=True)
    M, R, K = margins.n_samples, problem.data.n_classes - 1, len(margins.columns)
    report: dict[str, object] = {"samples": M, "rows": R, "columns": K, "matrix_bytes": 8 * M * R * K}
    if 8 * M * R * K <= LARGEST:
        known = search(problem, [tan_structure(problem.data)], restarts=0)
        assert known is not None
        alpha = margins.alpha.reshape(M * R, K)
        for count in threads:
            with threadpool_limits(count), threads_used(count):
                pairwise = pairwise_rate(problem, known, count, seconds)
                steps, length = step_rate(problem, known, count, seconds)
                pairs = product_rate(alpha, seconds)
            report[f"threads {count}"] = {
                "product_pairs_per_second": pairs,
                "frank_wolfe_steps_per_second": pairwise,
                "ratio": pairwise / pairs,
                "steps_of_a_solve_per_second": steps,
                "steps_of_a_run": length,
                "ratio_of_a_solve": steps / pairs,
            }
    queue.put(report)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", nargs="*", default=DATA, help=f"by default {', '.join(DATA)}")
    parser.add_argument("--data-dir", required=True, help="catalog folder")
    parser.add_argument("--p", type=float, default=0.99)
    parser.add_argument("--seconds", type=float, default=5.0, help="per measurement")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--output", type=Path, default=RESULTS / "roofline.json")
    options = parser.parse_args()
    results = {}
    for name in options.data:
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        arguments = (name, options.p, options.threads, options.seconds, options.data_dir, queue)
        process = context.Process(target=measure, args=arguments)
        process.start()
        results[name] = queue.get()
        process.join()
        print(name, json.dumps(results[name]), flush=True)
    words = ["python benchmarks/roofline.py", *options.data, f"--data-dir DIR --p {options.p:g}"]
    words += [f"--seconds {options.seconds:g} --threads", *map(str, options.threads)]
    text = json.dumps({"command": " ".join(words), "results": results}, indent=1)
    options.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
