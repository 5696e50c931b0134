"""Table 2 of Peharz & Pernkopf (2012) over several partitions of the rows, where the paper does not publish its own.

    python benchmarks/partitions.py [glass2 letter] --data-dir DIR [--seeds 1 2]
    python benchmarks/partitions.py --only-cached --data-dir DIR

`milpbn reproduce p12` has one partition of each data set, and the accuracy on another one differs, often by more than
the methods do. Here the methods of the paper are repeated on other partitions of the same sizes: 5 stratified folds of
another seed, or random training and test rows. Not repeated are adult, mofn-3-7-10 and satimage, whose splits come with
the data. Values of p and max_parents are chosen anew on each partition, with --selection-budget seconds for a trial;
the final search has --time-limit seconds. SM on letter and soybean-large, which the paper does not have, is left out.

The results of a seed are in a file of its own under --output, which is written after every method on every part; a run
that is killed goes on where it stopped. README.md there has the means over all partitions, that of results/p12 among
them, beside the published intervals.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import (
    RESULTS,
    other_partition,
    parse,
    parser,
    read_results,
    write_page,
    write_results,
)

from milpbn.data import read_table
from milpbn.data.catalog import catalog_names
from milpbn.errors import DataWarning
from milpbn.experiments.base import Budgets, MethodInput
from milpbn.experiments.cells import KeptCells
from milpbn.experiments.methods import method
from milpbn.experiments.page import TITLES, read_remarks
from milpbn.experiments.protocol import Part
from milpbn.experiments.published import published
from milpbn.experiments.runner import Plan
from milpbn.experiments.tables import DECIMALS, Collected, collect
from milpbn.solving.warm_up import compile_all

#: The data sets whose folds or split the paper does not publish; those that take the most time last.
DATA = [
    "iris", "corral", "glass2", "shuttle-small", "car", "mushroom", "nursery", "diabetes", "hepatitis", "waveform-21",
    "letter", "segment", "cleve", "heart", "australian", "soybean-large",
]  # fmt: skip
METHODS = ("nb", "tan", "mdl", "sm", "sbm")
#: Mean accuracy in percent by data set and method.
Means = Mapping[tuple[str, str], float]
INTRODUCTION = """# Table 2 of Peharz & Pernkopf (2012) over several partitions

{source}

This page is written by `benchmarks/partitions.py`. The paper does not publish the folds of its cross-validations, nor
most of its training and test rows. So its numbers and those of [results/p12](../p12/README.md) may differ
because the rows do. Here the protocol of results/p12 is repeated on other partitions of the same sizes: 5 stratified
folds, or random training and test rows (seeds {seeds}). adult, mofn-3-7-10 and satimage are not repeated: their splits
come with the data. Each trial of the selection had {selection:g} s, each final search {final:g} s, on one thread.

Mean accuracy in percent, and the lowest and the highest, over the partition of results/p12 and the others. Below: the
published value with its 95 % interval, which is that of one partition. An asterisk: the mean is below this interval.
The first table counts these means. The second one repeats only the folds of the cross-validations, and has the test
sets of results/p12. Nothing was chosen by these numbers."""


def measured(part: Part, name: str, n_classes: int, seed: int, budgets: Budgets) -> dict[str, Any]:
    """Return the accuracy of a method on a part, with what it chose and proved."""
    found: Mapping[str, Any] = {}
    for step in method(name, budgets, n_classes).steps:
        found = step.run(MethodInput(part, seed, 1, found))
    kept = {"accuracy": found["figures"]["accuracy"]}
    if "search" in found:
        kept |= {"choice": found["choice"], "gap": found["search"]["gap"]["relative_to_bound"]}
    return kept


def run_seed(data: list[str], data_dir: Path | None, seed: int, budgets: Budgets, path: Path) -> None:
    """Compute what the file of a seed lacks."""
    given = {"selection": budgets.selection, "final": budgets.final}
    kept = {"budgets": given} | read_results(path)
    if kept["budgets"] != given:
        raise SystemExit(f"{path} has other budgets, {kept['budgets']}; name another folder with --output.")
    for name in data:
        table = read_table(name, data_dir=data_dir)
        n_classes = table.dataset("all").n_classes
        for part in other_partition(table, seed):
            for one in METHODS:
                absent = published().accuracy(name, one) is None or (one == "sbm" and n_classes == 2)
                key = f"{name} {part.name} {one}"
                if absent or key in kept:
                    continue
                kept[key] = measured(part, one, n_classes, seed, budgets)
                write_results(path, kept)
                print(time.strftime("%H:%M:%S"), "seed", seed, key, kept[key], flush=True)


def spent(others: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the budgets of the seeds; all must have had the same."""
    found = [results["budgets"] for results in others]
    if not found or any(one != found[0] for one in found):
        raise SystemExit(
            "There are no seeds with the same budgets; compute them first, or name their folder with --output."
        )
    return dict(found[0])


def accuracies(others: Sequence[Mapping[str, Any]], first: Collected, data: str, name: str) -> list[float]:
    """Return the accuracy on each partition that is complete, in percent: that of results/p12, then the others."""
    entry = first.entry(data, name)
    found = [] if entry is None else [entry.accuracy]
    stored = "sm" if name == "sbm" and first.facts[data].classes == 2 else name  # with two classes SBM is SM
    keys = [f"{data} {part} {stored}" for part in first.facts[data].parts]
    complete = [results for results in others if all(key in results for key in keys)]
    return [
        *found,
        *(100 * statistics.fmean(results[key]["accuracy"] for key in keys) for results in complete),
    ]


def agreement(found: Means, first: Collected, title: str) -> list[str]:
    """Return the lines that count, for each method, how many means are within or above the published intervals."""
    lines = [f"| {title} | within or above | below the interval |", "| --- | --- | --- |"]
    for name in METHODS:
        pairs = [(data, found[data, name]) for data in first.plan.data if (data, name) in found]
        below = [
            f"{data} ({mean:.2f} < {lower(data, name):.2f})"
            for data, mean in pairs
            if is_below(data, name, mean)
        ]
        lines.append(
            f"| {TITLES[name]} | {len(pairs) - len(below)} of {len(pairs)} | {', '.join(below) or '-'} |"
        )
    return [*lines, ""]


def lower(data: str, name: str) -> float:
    """Return the lower end of a published interval."""
    known = published().accuracy(data, name)
    assert known is not None
    return known.lower


def is_below(data: str, name: str, mean: float) -> bool:
    """Return whether a mean is below the published interval, both rounded as published."""
    return round(mean, DECIMALS) < round(lower(data, name), DECIMALS)


def tables(others: Sequence[Mapping[str, Any]], first: Collected) -> str:
    """Return the counts over all partitions, those with the test sets of results/p12, and all means."""
    found = {
        (data, name): accuracies(others, first, data, name)
        for data in first.plan.data
        for name in METHODS
        if published().accuracy(data, name) is not None
    }
    found = {key: values for key, values in found.items() if values}
    means = {key: statistics.fmean(values) for key, values in found.items()}
    fixed = {
        (data, name): found[data, name][0] if first.facts[data].test_rows else mean
        for (data, name), mean in means.items()
    }
    rows = [
        f"| data | partitions | {' | '.join(TITLES[name] for name in METHODS)} |",
        f"| --- | --- |{' --- |' * 5}",
    ]
    for data in first.plan.data:
        cells = [data, str(len(found[data, "nb"]))]
        for name in METHODS:
            if (data, name) not in found:
                cells.append("")
                continue
            values, known = found[data, name], published().accuracy(data, name)
            assert known is not None
            star = "*" if is_below(data, name, means[data, name]) else ""
            spread = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
            cells.append(
                f"{means[data, name]:.2f}{star}{spread}<br>{known.percent:.2f} ({known.lower:.2f} to {known.upper:.2f})"
            )
        rows.append(f"| {' | '.join(cells)} |")
    counts = agreement(means, first, "all partitions")
    return "\n".join([*counts, *agreement(fixed, first, "other folds, the test sets of results/p12"), *rows])


def main() -> None:
    """Compute what is missing, and write the page."""
    warnings.simplefilter("ignore", DataWarning)
    made = parser(__doc__, data=DATA, output=RESULTS / "partitions", time_limit=60.0)
    made.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4], help="seeds of the partitions")
    made.add_argument("--selection-budget", type=float, default=2.5, metavar="SECONDS", help="of each trial")
    made.add_argument("--only-cached", action="store_true", help="compute nothing; write the page")
    options = parse(made, DATA, catalog=True)
    budgets = Budgets(selection=options.selection_budget, final=options.time_limit)
    if not options.only_cached:
        compile_all()
        for seed in options.seeds:
            run_seed(options.data, options.data_dir, seed, budgets, options.output / f"seed-{seed}.json")
    files = sorted(options.output.glob("seed-*.json"))
    others = [read_results(path) for path in files]
    plan = Plan(
        data=tuple(catalog_names(options.data_dir)),
        methods=METHODS,
        budgets=Budgets(selection=10.0, final=1800.0),
        data_dir=options.data_dir,
    )
    introduction = INTRODUCTION.format(
        source=published().source,
        seeds=", ".join(path.stem.removeprefix("seed-") for path in files),
        **spent(others),
    )
    first = collect(plan, KeptCells(RESULTS / "p12"))
    print(write_page(options.output, [introduction, read_remarks(options.output), tables(others, first)]))


if __name__ == "__main__":
    main()
