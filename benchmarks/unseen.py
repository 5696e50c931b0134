"""The recipe beside other methods on data sets on which nothing was chosen: the embedded instances that are not P12's.

    python benchmarks/unseen.py [--n-jobs 2]
    python benchmarks/unseen.py --only-cached

Protocol and methods are those of `milpbn reproduce p12`: 5-fold cross-validation, and everything learnt inside each
training part. The recipe has --time-limit seconds, a trial of SM's selection 2.5 s, and its final search 60 s. Cells
are kept under --output, one for each method on each part; a run that is killed goes on where it stopped, and writes
README.md there in the end.
"""

from __future__ import annotations

from common import RESULTS, add_run_options, compute, errors_as_sentences, parser, write_page

from milpbn.experiments.base import Budgets
from milpbn.experiments.cells import KeptCells
from milpbn.experiments.page import accuracy_table, probability_table, read_remarks, recipe_table
from milpbn.experiments.runner import Plan, missing
from milpbn.experiments.tables import collect

DATA = (
    "monks-1", "monks-2", "monks-3", "tic-tac-toe", "balance-scale", "led-7", "wine", "breast-cancer", "digits",
)  # fmt: skip
SHOWN = ("nb", "tan", "sm", "svm", "logistic", "boosting", "recipe")
INTRODUCTION = """# The recipe on data sets on which nothing was chosen

This page is written by `benchmarks/unseen.py`; the cells are in `cells.jsonl.gz`. The data are the embedded instances
(`milpbn instances`) that are not among the 19 data sets of [results/p12](../p12/README.md). The recipe and the settings
of all methods are those of results/p12, and were fixed before; these rows were never used for a choice.

The protocol is that of results/p12: 5-fold cross-validation (stratified, seed 0), and everything learnt inside each
training part. The recipe had {recipe:g} s for choice, final search and parameters together, SM {trial:g} s for each
trial of its selection and {final:g} s for the final search, on one thread. `svm`, `logistic` and `boosting` have
indicators of the same discretised columns."""


def main() -> None:
    """Compute what is missing, and write the page."""
    made = parser(__doc__, data=None, output=RESULTS / "unseen", time_limit=60.0, threads=1)
    add_run_options(made)
    options = made.parse_args()
    budgets = Budgets(selection=2.5, final=60.0, recipe=options.time_limit)
    plan = Plan(data=DATA, methods=SHOWN, budgets=budgets)
    store = KeptCells(options.output)
    with errors_as_sentences():
        compute(plan, store, options)
    waiting, failed = missing(plan, store)
    state = [f"- missing: {task.cell}" for task in waiting]
    state += [f"- failed: {task.cell}: {reason}" for task, reason in failed]
    collected = collect(plan, store)
    sections = [
        INTRODUCTION.format(recipe=budgets.recipe, trial=budgets.selection, final=budgets.final),
        "\n".join(state),
        read_remarks(options.output),
        recipe_table(collected),
        accuracy_table(collected),
        probability_table(collected),
    ]
    print(write_page(options.output, sections))


if __name__ == "__main__":
    main()
