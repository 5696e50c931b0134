"""Search parameters at other values than the default: nodes, steps and CPU seconds of searches on one thread.

    python benchmarks/tuning.py --data-dir DIR [PARAMETER ...]      half and double of each parameter's default
    python benchmarks/tuning.py --data-dir DIR --extremes           values far away, for parameters without an effect
    python benchmarks/tuning.py --data-dir DIR --threads            CPU seconds with two threads, over those with one
    python benchmarks/tuning.py --report                            the ratios in the results, one line for each value

A PARAMETER is written like `steps.refresh` or `climb.restarts`; by default, those are measured whose evidence in
docs/tuning.md is this script's file. Factors below 1 take their square and their root instead of half and double.

Kernels contain the values as constants. So each value has a process of its own, with a copy of the folder of the
default's kernels, in which numba compiles those that contain the value. Every problem is searched with one value, the
default, and the other value, in alternating order, because the machine's speed drifts. Where a value changes nothing
in a search (and cannot change its seconds, either), the seconds are the default's. A search ends with proof or at a
gap, and after five times the default's seconds; then its numbers are those up to there. Nodes and steps do not depend
on the machine (but on its kind of processor, whose kernels add in another order). The ratios are geometric means over
the problems.

Every value is written to the results at once, and a later run of the script measures only what is missing.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import llvmlite.binding
from common import RESULTS, command, parse, parser, read_results, training_rows, write_results

import milpbn.engine.tuning as engine
import milpbn.heuristics.tuning as climbs
from milpbn.util.parameters import COMPARED


@dataclass(frozen=True, eq=False)
class Case:
    """A problem and the gap, as a share of the incumbent, at which its search ends; `children` limits all features."""

    data: str
    score: dict[str, Any]
    gap: float = 0.0
    children: int | None = None


#: Problems for most parameters.
GENERAL = {
    "hepatitis .9": Case("hepatitis", {"p": 0.9}, 0.0025),
    "australian .99": Case("australian", {"p": 0.99}),
    "shuttle-small .9": Case("shuttle-small", {"p": 0.9}),
    "heart .9": Case("heart", {"p": 0.9}, 0.006),
    "segment .99": Case("segment", {"p": 0.99}, 0.0025),
    "waveform-21 .9": Case("waveform-21", {"p": 0.9, "class_parents": False}, 0.014),
    "soybean-large .9": Case("soybean-large", {"p": 0.9}, 0.0036),
}
#: Problems with inequalities: three parents with more than 14 variables, or limits on children.
ROWS = {
    "hepatitis .9, three parents": Case("hepatitis", {"p": 0.9, "max_parents": 3}, 0.0025),
    "australian .9, three parents": Case("australian", {"p": 0.9, "max_parents": 3}, 0.0225),
    "soybean-large .99, one child": Case("soybean-large", {"p": 0.99}, 0.0135, 1),
    "segment .9, one child": Case("segment", {"p": 0.9}, 0.0095, 1),
    "heart .9, one child": Case("heart", {"p": 0.9}, 0.007, 1),
    "glass2 .9, one child": Case("glass2", {"p": 0.9}, 0.003, 1),
}
#: Problems under the conditional log-likelihood.
LIKELIHOOD = {
    "diabetes": Case("diabetes", {"name": "cll"}),
    "glass2": Case("glass2", {"name": "cll"}),
    "shuttle-small": Case("shuttle-small", {"name": "cll"}),
    "heart": Case("heart", {"name": "cll"}, 0.006),
    "hepatitis": Case("hepatitis", {"name": "cll"}, 0.003),
}
SETS = {"general": GENERAL, "rows": ROWS, "likelihood": LIKELIHOOD}
#: A search ends after this many times the default's seconds.
LONGEST = 5.0
#: Values instead of half and double.
NEIGHBOURS: dict[str, tuple[float, float]] = {
    "temperature.fastest_fall": (0.16, 0.63),
    "temperature.fast_fall": (0.36, 0.77),
    "temperature.slow_fall": (0.72, 0.92),
    "temperature.rise": (1.1, 1.44),
    "primal.pause_growth": (1.05, 1.2),
    "climb.fewest_changes": (1, 4),
    "climb.most_changes": (4, 12),
}
#: Values that switch a parameter's effect off, or change it a lot.
EXTREMES: dict[str, tuple[float, float]] = {
    "root.patience": (1, 10**9),
    "root.repeat": (0.01, 1.0),
    "root.slice_work": (1, 10**12),
    "temperature.lowest": (1e-9, 1e-3),
    "temperature.high_waste": (1.0, 1e9),
    "temperature.fast_fall": (0.1, 0.85),
    "temperature.rise": (1.0, 2.0),
    "steps.refresh": (16, 10**9),
    "steps.most_vertices": (100, 5000),
    "steps.smallest_share": (0.0, 1e-4),
    "node_steps.burst": (1, 64),
    "node_steps.bursts": (1, 64),
    "node_steps.most_steps": (48, 10**6),
    "node_steps.likelihood_width": (24.0, 1000.0),
    "tree.least_score": (1e-15, 1e-3),
    "tree.least_distance": (1e-9, 0.1),
    "primal.answer_distance": (0.0, 1e9),
    "primal.pause_growth": (1.0, 10.0),
    "primal.return_after": (0.0, 1e9),
    "multipliers.sweeps": (1, 100),
    "multipliers.rows_at_a_time": (1, 10**9),
    "multipliers.trials": (2, 100),
    "multipliers.least_fall": (0.0, 1e-4),
    "oracle.most_forced": (0, 2**62),
    "climb.least_gain": (1e-12, 1e-5),
}
#: Numbers of a search that do not change if a value changes nothing in its tree.
PATH = ("nodes", "steps", "incumbent")
#: Parameters, or parts, that can change the seconds of a search but not its tree.
TIMED = (
    "root.slice_work",
    "steps.curvature_block",
    "node_steps.burst",
    "multipliers",
    "primal",
    "oracle",
    "climb",
)
#: Parameters of threads, on which searches on one thread do not depend; --threads measures them.
OTHERS = ("root.parallel_from", "climb.parallel_from")
OUTPUT = RESULTS / "tuning.json"


def parameters() -> dict[str, Any]:
    """Return the fields of all parameters by their names on the command line."""
    parts = {f.name: f.default for f in fields(engine.Tuning)} | {"climb": climbs.TUNING}
    return {
        f"{part}.{f.name}": f
        for part, values in parts.items()
        for f in fields(values)
        if not is_dataclass(f.default)
    }


def use(changes: dict[str, float]) -> None:
    """Change parameters in this process, before the modules are imported that copy them."""
    for name, value in changes.items():
        part, field = name.split(".")
        if part == "climb":
            climbs.TUNING = replace(climbs.TUNING, **{field: value})
        else:
            changed = replace(getattr(engine.TUNING, part), **{field: value})
            engine.TUNING = replace(engine.TUNING, **{part: changed})


def search(case: Case, data_dir: Path, limit: float) -> dict[str, Any]:
    """Search a problem; return nodes, steps and CPU seconds, of which `limit` is the largest number."""
    from milpbn.util.compiled import _kernels

    while True:  # a search that compiles kernels, or reads them from disk, is repeated
        loaded = sum(len(kernel.overloads) for kernel in _kernels.values())
        found = _search(case, data_dir, limit)
        if loaded == sum(len(kernel.overloads) for kernel in _kernels.values()):
            return found


def _search(case: Case, data_dir: Path, limit: float) -> dict[str, Any]:
    from milpbn.engine.events import EventLog
    from milpbn.engine.root import Root
    from milpbn.engine.tree.search import BranchAndBound
    from milpbn.heuristics.local_search import search
    from milpbn.heuristics.starts import plain_starts
    from milpbn.problem.constraints import Constraints
    from milpbn.problem.problem import build_problem
    from milpbn.problem.scores.spec import Score

    data = training_rows(case.data, data_dir)
    limits = {} if case.children is None else {v.name: case.children for v in data.variables[:-1]}
    problem = build_problem(data, Score(**case.score), Constraints(max_children=limits), for_milp=False)
    begun = time.process_time()
    late = False

    class Listener(EventLog):
        """Stops at the gap and at the limit."""

        tree: BranchAndBound | None = None

        def __init__(self) -> None:
            super().__init__(self.ended)

        def ended(self) -> bool:
            nonlocal late
            late = time.process_time() > begun + limit
            if late or self.tree is None or not self.bounds:
                return late
            return self.bounds[-1] - self.tree.incumbent <= case.gap * abs(self.tree.incumbent)

    events = Listener()
    start = search(problem, plain_starts(problem))
    assert start is not None
    root = Root(problem, start)
    best = root.run(start, events)
    events.tree = tree = BranchAndBound(root, best, events)
    tree.run()
    return {
        "nodes": events.count,
        "steps": root.steps + tree.steps,
        "seconds": round(time.process_time() - begun, 3),
        "incumbent": tree.incumbent,
        **({"stopped": True} if late else {}),
    }


@contextmanager
def process(changes: dict[str, float], kernels: Path) -> Iterator[ProcessPoolExecutor]:
    """Yield a process with other values of some parameters, whose kernels are cached in a folder."""
    os.environ["NUMBA_CACHE_DIR"] = str(kernels)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, use, (changes,)) as pool:
        pool.submit(os.getpid).result()  # it starts now, while the variable is set
        yield pool


def neighbours(name: str, field: Any, extremes: bool) -> dict[str, float]:
    """Return the values with which a parameter is measured, by their names in the results."""
    if extremes:
        return dict(zip(("low", "high"), EXTREMES[name], strict=True)) if name in EXTREMES else {}
    kind = type(field.default)
    low, high = NEIGHBOURS.get(name, (kind(field.default / 2), kind(field.default * 2)))
    return {"half": low, "double": high}


def problems(name: str) -> str:
    """Return the key in `SETS` of the problems on which a parameter has an effect."""
    special = {"node_steps.likelihood_width": "likelihood"}
    return special.get(name, "rows" if name.startswith("multipliers.") else "general")


class Bench:
    """The searches with one value, the default, and another value."""

    def __init__(self, default: ProcessPoolExecutor, kernels: Path, data_dir: Path) -> None:
        self.default, self.kernels, self.data_dir = default, kernels, data_dir
        #: The default's latest run of each problem.
        self.base: dict[Case, dict[str, Any]] = {}

    def by_default(self, case: Case) -> dict[str, Any]:
        """Search a problem with the default."""
        self.base[case] = self.default.submit(search, case, self.data_dir, math.inf).result()
        return self.base[case]

    def measure(self, name: str, values: dict[str, float]) -> dict[str, Any]:
        """Search all problems of a parameter with two values; return a record for each."""
        records: dict[str, Any] = {key: {"value": value, "problems": {}} for key, value in values.items()}
        cases, timed = SETS[problems(name)], name.startswith(TIMED)
        for case in cases.values():
            if case not in self.base:
                self.by_default(case)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            processes = {}
            for key, value in values.items():
                shutil.copytree(self.kernels, folder / key)
                processes[key] = stack.enter_context(process({name: value}, folder / key))
            for number, (problem, case) in enumerate(cases.items()):
                base = self.base[case]
                order = sorted(processes, reverse=bool(number % 2))
                found, fresh = {}, False
                for key in order:
                    limit = LONGEST * base["seconds"]
                    found[key] = processes[key].submit(search, case, self.data_dir, limit).result()
                    if not fresh and (timed or any(found[key][k] != base[k] for k in PATH)):
                        base, fresh = self.by_default(case), True
                for key, run in found.items():
                    if not timed and all(run[k] == base[k] for k in PATH):
                        run["seconds"] = base["seconds"]
                    records[key]["problems"][problem] = {**run, "default": base}
        for record in records.values():
            record["ratios"] = ratios(record["problems"])
        return records


def ratios(problems: dict[str, Any]) -> dict[str, float]:
    """Return the geometric means over the problems of the ratios of nodes, steps and seconds to the default's."""
    out = {}
    for key in ("nodes", "steps", "seconds"):
        ratio = (run[key] / run["default"][key] for run in problems.values())
        out[key] = round(statistics.geometric_mean(ratio), 3)
    return out


def threads(name: str, data_dir: Path) -> dict[str, Any]:
    """Return the sizes of a data set, and the CPU seconds on two threads over those on one.

    The sizes are those that `parallel_from` is compared with, at the root (12 steps) and in a climb (the changes of
    four variables). The smallest seconds of some turns count.
    """
    from milpbn.engine.events import EventLog
    from milpbn.engine.root import Root
    from milpbn.heuristics.local_search import LocalSearch
    from milpbn.heuristics.starts import plain_starts
    from milpbn.problem.problem import build_problem
    from milpbn.problem.scores.spec import Score
    from milpbn.util.threads import threads_used

    problem = build_problem(training_rows(name, data_dir), Score(p=0.99), for_milp=False)
    assert problem.margins is not None
    start = next(iter(plain_starts(problem)))
    climb, root = LocalSearch(problem, start), Root(problem, start)

    def steps(parallel: bool) -> None:
        root = Root(problem, start)
        root.parallel = parallel
        root.run(start, EventLog(), reduce=False, max_steps=12)

    def changes(parallel: bool) -> None:
        climb.parallel = parallel
        for variable in range(4):
            climb.scores(variable)

    def ratio(work: Callable[[bool], None], turns: int) -> float:
        least = [math.inf, math.inf]
        for _ in range(turns):
            for parallel in (False, True):
                begun = time.process_time()
                with threads_used(2):
                    work(parallel)
                least[parallel] = min(least[parallel], time.process_time() - begun)
        return round(least[1] / least[0], 3)

    return {
        "root": {
            "size": root.point.logits.shape[0] * len(root.model.tables.sizes),
            "ratio": ratio(steps, 5),
        },
        "climb": {"size": problem.margins.n_rows * len(problem.margins.columns), "ratio": ratio(changes, 40)},
    }


def report(results: dict[str, Any]) -> None:
    """Print the ratios of every value: nodes, steps, seconds, and the smallest and largest ratio of steps."""
    for name, values in results["parameters"].items():
        for key, record in values.items():
            steps = [run["steps"] / run["default"]["steps"] for run in record["problems"].values()]
            means = " ".join(f"{kind} {ratio:5.3f}" for kind, ratio in record["ratios"].items())
            spread = f"({min(steps):.2f} to {max(steps):.2f})"
            print(f"{name:32} {key:7} {record['value']:<10g} {means} {spread}")


def main() -> None:
    made = parser(__doc__, names="parameters, such as steps.refresh", output=OUTPUT)
    made.add_argument("--extremes", action="store_true", help="values far from the default")
    made.add_argument("--threads", action="store_true", help="threads instead of searches on one thread")
    made.add_argument("--report", action="store_true", help="print the results only")
    options = parse(made, list(parameters()))
    results = {"parameters": {}, **read_results(options.output)}
    if options.report:
        report(results)
        return
    if options.data_dir is None:
        made.error("--data-dir names no folder, and MILPBN_DATA is not set")
    known = parameters()
    names = options.data or [
        n for n, f in known.items() if f.metadata["evidence"] == COMPARED and n not in OTHERS
    ]
    processor = llvmlite.binding.get_host_cpu_name()
    results = {"command": command(options), "processor": processor, **results}
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"
    with tempfile.TemporaryDirectory() as folder, process({}, Path(folder)) as default:
        if options.threads:
            results["threads"] = {
                name: default.submit(threads, name, options.data_dir).result()
                for name in ("segment", "letter", "satimage")
            }
            write_results(options.output, results)
            return
        bench = Bench(default, Path(folder), options.data_dir)
        for name in names:
            values = neighbours(name, known[name], options.extremes)
            done = results["parameters"].setdefault(name, {})
            values = {key: value for key, value in values.items() if key not in done}
            if not values:
                continue
            done |= bench.measure(name, values)
            write_results(options.output, results)
            for key in values:
                print(name, key, done[key]["value"], done[key]["ratios"], flush=True)


if __name__ == "__main__":
    main()
