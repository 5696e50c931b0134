"""Tables 1 to 3 of Peharz & Pernkopf (2012) by their protocol: accuracy, gaps and wins, beside the published numbers.

    python benchmarks/p12.py [iris heart] [--methods nb sm] [--parts fold-1] --data-dir DIR [--n-jobs 2]
    python benchmarks/p12.py --only-cached --data-dir DIR

Every method on every part of a data set is a cell, which is kept under --output; a run that is killed goes on where it
stopped. `--only-cached` computes nothing and names what is missing. Both write README.md there, with the
remarks of remarks.md.

With the default budgets the whole table takes at most some 21 hours with --n-jobs 2 on two cores: 3,664 trials of at
most 10 s, 57 final searches of at most half an hour, and some three hours for support vector machines and the rest
(iris and corral, which are solved in seconds, are not counted). MDL has one trial for each max_parents, of a second.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

from common import RESULTS, parser, read_remarks, write_page

from milpbn.data.catalog import catalog_names
from milpbn.errors import DataWarning, MilpbnError
from milpbn.experiments.base import Budgets
from milpbn.experiments.cells import KeptCells
from milpbn.experiments.methods import METHODS
from milpbn.experiments.page import page
from milpbn.experiments.runner import Finished, Plan, Task, missing, run_plan

#: What is computed and shown by default; the average of four networks takes the time of four.
DEFAULT_METHODS = [name for name in METHODS if name != "recipe-average"]


def told(done: Finished) -> str:
    """Return what a task found, in a few words."""
    if done.kept.failure is not None:
        return f"failed: {done.kept.failure}"
    found = done.kept.found
    words = [f"accuracy {100 * found['figures']['accuracy']:.2f} %"]
    words += [f"{key} = {value}" for key, value in found.get("choice", {}).items()]
    search: dict[str, Any] = found.get("search", {})
    if search:
        gap = search["gap"]["relative_to_bound"]
        verified = ", verified" if search["verified"] else ""
        words.append(f"{search['reason']}, gap {100 * gap:.3f} %{verified}" if gap is not None else "no gap")
    return ", ".join(words)


def announce(task: Task) -> None:
    """Say that a task begins."""
    print(f"{time.strftime('%H:%M:%S')}  {task.cell} ...", file=sys.stderr, flush=True)


def main() -> None:
    warnings.simplefilter("ignore", DataWarning)  # the page says that rows with missing values are dropped
    made = parser(__doc__, output=RESULTS / "p12", threads=1)
    made.add_argument(
        "--methods", nargs="+", default=DEFAULT_METHODS, choices=list(METHODS), metavar="METHOD"
    )
    made.add_argument(
        "--parts", nargs="+", default=[], metavar="PART", help="test, fold-1 ... fold-5; by default all"
    )
    made.add_argument(
        "--selection-budget",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="of each trial of the selection",
    )
    made.add_argument("--budget", type=float, default=1800.0, metavar="SECONDS", help="of each final search")
    made.add_argument(
        "--recipe-budget",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="of the recipe: choice, final search and parameters together",
    )
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--n-jobs", type=int, default=1, help="processes")
    made.add_argument("--only-cached", action="store_true", help="compute nothing; name what is missing")
    made.add_argument("--retry-failed", action="store_true", help="compute failed cells again")
    options = made.parse_args()
    if options.data_dir is None:
        made.error("name the catalog's folder with --data-dir or the variable MILPBN_DATA")
    try:
        known = catalog_names(options.data_dir)
        unknown = [name for name in options.data if name not in known]
        if unknown:
            made.error(f"there is no data set {unknown[0]}; choose from {', '.join(known)}")
        budgets = Budgets(
            selection=options.selection_budget, final=options.budget, recipe=options.recipe_budget
        )
        everything = Plan(
            data=tuple(known),
            methods=tuple(DEFAULT_METHODS),
            budgets=budgets,
            seed=options.seed,
            data_dir=options.data_dir,
        )
        plan = Plan(
            data=tuple(options.data or known),
            methods=tuple(options.methods),
            parts=tuple(options.parts),
            budgets=budgets,
            seed=options.seed,
            data_dir=options.data_dir,
        )
        store = KeptCells(options.output)
        work(plan, store, options)
        write_page(options.output, [page(everything, store, read_remarks(options.output))])
    except MilpbnError as error:
        print(error, file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        print("Interrupted; the finished cells are kept.", file=sys.stderr)
        raise SystemExit(130) from None


def work(plan: Plan, store: KeptCells, options: Any) -> None:
    """Compute what is missing, or name it."""
    waiting, failed = missing(plan, store, retry_failed=options.retry_failed)
    if options.only_cached:
        for task in waiting:
            print(f"missing: {task.cell} ({task.cell.key[:12]})")
        for task, reason in failed:
            print(f"failed: {task.cell}: {reason}")
        print(json.dumps({"missing": len(waiting), "failed": len(failed)}))
        return
    began = time.monotonic()
    finished = run_plan(
        plan,
        store,
        n_jobs=options.n_jobs,
        threads=options.threads,
        retry_failed=options.retry_failed,
        started=announce,
        compiling=lambda done, of: print(f"compiling kernels: {done} of {of}", file=sys.stderr, flush=True),
    )
    for count, done in enumerate(finished, start=1):
        print(
            f"{count}/{len(waiting)}  {time.monotonic() - began:.0f} s  {done.task.cell}  {told(done)}  "
            f"({done.seconds:.1f} s)",
            flush=True,
        )
    for task, reason in failed:
        print(f"failed before: {task.cell}: {reason}")


if __name__ == "__main__":
    main()
