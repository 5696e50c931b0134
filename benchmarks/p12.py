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

from dataclasses import replace

from common import (
    RESULTS,
    add_run_options,
    compute,
    errors_as_sentences,
    parse,
    parser,
    read_remarks,
    write_page,
)

from milpbn.data.catalog import catalog_names
from milpbn.experiments.base import Budgets
from milpbn.experiments.cells import KeptCells
from milpbn.experiments.methods import METHODS
from milpbn.experiments.page import page
from milpbn.experiments.runner import Plan

#: What is computed and shown by default; the average of four networks takes the time of four.
DEFAULT_METHODS = [name for name in METHODS if name != "recipe-average"]


def main() -> None:
    made = parser(__doc__, output=RESULTS / "p12", threads=1)
    made.add_argument(
        "--methods", nargs="+", default=DEFAULT_METHODS, choices=list(METHODS), metavar="METHOD"
    )
    made.add_argument(
        "--parts", nargs="+", default=[], metavar="PART", help="test, fold-1 ... fold-5; by default all"
    )
    for name, seconds, what in (
        ("--selection-budget", 10.0, "each trial of the selection"),
        ("--budget", 1800.0, "each final search"),
        ("--recipe-budget", 600.0, "the recipe: choice, final search and parameters together"),
    ):
        made.add_argument(name, type=float, default=seconds, metavar="SECONDS", help=f"of {what}")
    made.add_argument("--seed", type=int, default=0)
    add_run_options(made)
    options = parse(made, catalog=True)
    with errors_as_sentences():
        known = catalog_names(options.data_dir)
        everything = Plan(
            data=tuple(known),
            methods=tuple(DEFAULT_METHODS),
            budgets=Budgets(
                selection=options.selection_budget, final=options.budget, recipe=options.recipe_budget
            ),
            seed=options.seed,
            data_dir=options.data_dir,
        )
        plan = replace(
            everything,
            data=tuple(options.data or known),
            methods=tuple(options.methods),
            parts=tuple(options.parts),
        )
        store = KeptCells(options.output)
        compute(plan, store, options)
        write_page(options.output, [page(everything, store, read_remarks(options.output))])


if __name__ == "__main__":
    main()
