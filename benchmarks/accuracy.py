"""Which setting is recommended: candidates compared on held-out training rows. No test row is read.

    python benchmarks/accuracy.py [heart car] --data-dir DIR [--candidates fixed accurate] [--recipe-budget 25]
    python benchmarks/accuracy.py --only-cached --data-dir DIR

The training rows of the first part of each data set (its training set, or four of the five folds) are split once more:
5 folds, or a validation set of 20 % above 1,000 rows. Every candidate learns on one side, with a selection of its own
inside, and is measured on the other. Cells are kept under results/accuracy/cells, one JSON file each, and a run that is
killed goes on where it stopped. README.md there is written from all cells: the means, and for every candidate the
difference from the recipe, paired over the data sets, with its 95 % interval.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from common import RESULTS, parser
from scipy.stats import t as student

from milpbn.data.catalog import catalog_names
from milpbn.errors import DataWarning, MilpbnError
from milpbn.experiments import methods
from milpbn.experiments.base import Budgets, Method
from milpbn.experiments.cells import Store
from milpbn.experiments.figures import Figures
from milpbn.experiments.methods import METHODS
from milpbn.experiments.recommended import RecommendedMethod
from milpbn.experiments.runner import Plan, missing, run_plan, tasks
from milpbn.solving.recipes import RECIPES
from milpbn.util.atomic import atomic_write_text

LEAVE_ONE_OUT = "score=cll leave-one-out=yes"
#: The candidates that are no method of the paper's tables: name, grid, and what decides.
CANDIDATES = {
    "accurate": (RECIPES["accurate"].grid, RECIPES["accurate"].by),
    "accurate-average-4": (RECIPES["accurate"].grid, RECIPES["accurate"].by),
    "accurate-by-accuracy": (RECIPES["accurate"].grid, "accuracy"),
    "mdl-only": (f"{LEAVE_ONE_OUT} hybrid=.1,1 max-parents=1,2,3 parameters=hybrid", "log-loss"),
    "fixed": (f"{LEAVE_ONE_OUT} hybrid=.1 max-parents=2 parameters=hybrid", "log-loss"),
    "fixed-cll": (f"{LEAVE_ONE_OUT} max-parents=2 parameters=hybrid", "log-loss"),
    "fixed-sm": ("score=sm p=.9 leave-one-out=yes hybrid=.1 max-parents=2 parameters=hybrid", "log-loss"),
    "generative": (f"{LEAVE_ONE_OUT} hybrid=.1,1 max-parents=1,2,3 discretise=mdl,quantile:5", "log-loss"),
    "sm": ("score=sm p=.501,.6,.7,.8,.9,.95,.99,.999 max-parents=1,2", "accuracy"),
}
#: Candidates that average the networks of so many of the best settings.
AVERAGES = {"accurate-average-4": 4}
#: Methods of the tables that are compared as they are.
OTHERS = ("logistic", "boosting", "svm")


def register() -> None:
    """Make the candidates methods of the experiments."""

    def made(name: str) -> Callable[[Budgets], Method]:
        grid, by = CANDIDATES[name]
        return lambda budgets: RecommendedMethod(
            title=name, grid=grid, by=by, seconds=budgets.recipe, average=AVERAGES.get(name, 1)
        )

    methods.METHODS = {name: METHODS[name] for name in OTHERS} | {name: made(name) for name in CANDIDATES}


def figures(
    plan: Plan, store: Store
) -> tuple[dict[str, dict[str, tuple[float, float]]], dict[str, set[float]]]:
    """Return accuracy and log-loss by method and data set, over all rows of the inner parts, and budgets by method.

    Data sets with a missing part are left out. Of cells with several budgets, the one with the largest counts.
    """
    budgets: dict[str, set[float]] = {}
    found: dict[str, dict[str, list[Figures]]] = {}
    count: dict[tuple[str, str], int] = {}
    for task in tasks(plan):
        key = (task.cell.method, task.data)
        count[key] = count.get(key, 0) + 1
        kept = store.read(task.cell, any_budget=True)
        if kept is not None and kept.failure is None:
            budgets.setdefault(key[0], set()).update([] if kept.budget is None else [kept.budget])
            found.setdefault(key[0], {}).setdefault(key[1], []).append(
                Figures.from_dict(kept.found["figures"])
            )
    means: dict[str, dict[str, tuple[float, float]]] = {}
    for method, sets in found.items():
        for data, parts in sets.items():
            if len(parts) < count[method, data]:
                continue
            rows = np.array([len(f.correct) for f in parts])
            accuracy = float(np.average([f.accuracy for f in parts], weights=rows))
            means.setdefault(method, {})[data] = (
                100 * accuracy,
                float(np.average([f.log_loss for f in parts], weights=rows)),
            )
    return means, budgets


def paired(one: dict[str, tuple[float, float]], other: dict[str, tuple[float, float]], column: int) -> str:
    """Return the mean difference over the data sets of both, with its 95 % interval (Student's t)."""
    both = sorted(one.keys() & other.keys())
    d = np.array([one[name][column] - other[name][column] for name in both])
    if len(d) < 2:
        return "-"
    half = student.ppf(0.975, len(d) - 1) * d.std(ddof=1) / np.sqrt(len(d))
    digits = 2 if column == 0 else 3
    return f"{d.mean():+.{digits}f} ± {half:.{digits}f} ({len(d)} sets)"


def left_out(means: dict[str, dict[str, tuple[float, float]]]) -> list[str]:
    """Return lines that name, for every data set, the candidate with the lowest mean log-loss on the other ones.

    Averages are no candidates here, since the recipe is one network; neither are candidates that lack a data set.
    """
    data = sorted(means.get("accurate", {}))
    names = [n for n in CANDIDATES if n not in AVERAGES and means.get(n, {}).keys() >= set(data)]
    if len(data) < 3 or len(names) < 2:
        return []
    lines = [
        "",
        f"## Chosen on the other {len(data) - 1} data sets",
        "",
        "The candidate with the lowest mean log-loss on all data sets but one, and the next one, with these means. Of "
        f"{', '.join(names)}.",
        "",
        "| left out | chosen | log-loss | next | log-loss |",
        "|---|---|---|---|---|",
    ]
    for name in data:
        others = [other for other in data if other != name]
        ranked = sorted((float(np.mean([means[n][other][1] for other in others])), n) for n in names)
        (best, first), (second, next_) = ranked[:2]
        lines.append(f"| {name} | {first} | {best:.4f} | {next_} | {second:.4f} |")
    return lines


def page(means: dict[str, dict[str, tuple[float, float]]], budgets: dict[str, set[float]]) -> str:
    """Return the page."""
    names = [name for name in (*CANDIDATES, *OTHERS) if name in means]
    data = sorted({name for sets in means.values() for name in sets})
    reference = means.get("accurate", {})
    lines = [
        "# The recommended setting, chosen on held-out training rows",
        "",
        (__doc__ or "").split("\n\n")[2].replace("\n", " "),
        "",
        "Written by `python benchmarks/accuracy.py`, on a busy machine. Seconds: of a fit, its choice included; where "
        "there are cells with several, those with the most count.",
        "",
        "| candidate | grid | decided by | seconds |",
        "|---|---|---|---|",
        *(
            f"| {name} | `{CANDIDATES[name][0]}` | {CANDIDATES[name][1]} "
            f"| {', '.join(f'{seconds:g}' for seconds in sorted(budgets[name]))} |"
            for name in names
            if name in CANDIDATES
        ),
        "",
        "Differences of each method from `accurate`, mean over the data sets that both have, with 95 % intervals:",
        "",
        "| method | accuracy, points | log-loss, nats |",
        "|---|---|---|",
        *(
            f"| {name} | {paired(means[name], reference, 0)} | {paired(means[name], reference, 1)} |"
            for name in names
            if name != "accurate"
        ),
        "",
        "Accuracy in percent / log-loss in nats:",
        "",
        "| data | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for name in data:
        cells = [means[m].get(name) for m in names]
        lines.append(
            f"| {name} | "
            + " | ".join("-" if c is None else f"{c[0]:.2f} / {c[1]:.3f}" for c in cells)
            + " |"
        )
    return "\n".join([*lines, *left_out(means)]) + "\n"


def main() -> None:
    """Compute what is missing, and write the page."""
    warnings.simplefilter("ignore", DataWarning)
    register()
    made = parser(__doc__ or "", output=RESULTS / "accuracy", threads=1)
    known_methods = [*CANDIDATES, *OTHERS]
    made.add_argument("--candidates", nargs="+", default=known_methods, choices=known_methods, metavar="NAME")
    made.add_argument("--recipe-budget", type=float, default=25.0, metavar="SECONDS", help="of each fit")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--n-jobs", type=int, default=1, help="processes")
    made.add_argument("--only-cached", action="store_true", help="compute nothing; name what is missing")
    options = made.parse_args()
    if options.data_dir is None:
        made.error("name the catalog's folder with --data-dir or the variable MILPBN_DATA")
    try:
        known = catalog_names(options.data_dir)
        budgets = Budgets(selection=10, final=10, recipe=options.recipe_budget)
        store = Store(options.output / "cells")

        def plan(data: list[str], names: list[str]) -> Plan:
            return Plan(
                data=tuple(data),
                methods=tuple(names),
                budgets=budgets,
                seed=options.seed,
                data_dir=options.data_dir,
                nested=True,
            )

        wanted = plan(options.data or known, options.candidates)
        if options.only_cached:
            waiting, failed = missing(wanted, store)
            print(json.dumps({"missing": len(waiting), "failed": len(failed)}))
        else:
            began = time.monotonic()
            for done in run_plan(wanted, store, n_jobs=options.n_jobs, threads=options.threads):
                told = done.kept.failure or (
                    f"accuracy {100 * done.kept.found['figures']['accuracy']:.2f} %, log-loss "
                    f"{done.kept.found['figures']['log_loss']:.3f}, {done.kept.found.get('choice')}"
                )
                print(f"{time.monotonic() - began:.0f} s  {done.task.cell}  {told}", flush=True)
        text = page(*figures(plan(known, known_methods), store))
        options.output.mkdir(parents=True, exist_ok=True)
        atomic_write_text(options.output / "README.md", text)
    except MilpbnError as error:
        print(error, file=sys.stderr)
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    main()
