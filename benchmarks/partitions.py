"""Table 2 of Peharz & Pernkopf (2012) over several partitions of the rows, where the paper does not publish its own.

    python benchmarks/partitions.py [glass2 letter] --data-dir DIR [--seeds 1 2]
    python benchmarks/partitions.py --only-cached

`benchmarks/p12.py` has one partition of each data set, and the accuracy on another one differs, often by more than
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, parse, parser, read_results, write_results

from milpbn.data import Table, read_table
from milpbn.data.catalog import catalog_names
from milpbn.errors import DataWarning
from milpbn.experiments.base import Budgets, MethodInput
from milpbn.experiments.cells import Store
from milpbn.experiments.methods import method
from milpbn.experiments.page import TITLES
from milpbn.experiments.protocol import TEST_SET, Part, parts
from milpbn.experiments.published import published
from milpbn.experiments.runner import Plan
from milpbn.experiments.tables import Collected, collect
from milpbn.solving.warm_up import compile_all
from milpbn.util.atomic import atomic_write_text

#: The data sets whose folds or split the paper does not publish; those that take the most time last.
DATA = [
    "iris", "corral", "glass2", "shuttle-small", "car", "mushroom", "nursery", "diabetes", "hepatitis", "waveform-21",
    "letter", "segment", "cleve", "heart", "australian", "soybean-large",
]  # fmt: skip
METHODS = ("nb", "tan", "mdl", "sm", "sbm")
INTRODUCTION = """# Table 2 of Peharz & Pernkopf (2012) over several partitions

{source}

This page is written by `benchmarks/partitions.py`. The paper does not publish the folds of its cross-validations, nor
most of its training and test rows. So a difference between its numbers and those of [results/p12](../p12/README.md)
may be one of the rows. Here the protocol of results/p12 is repeated on other partitions of the same sizes: 5 stratified
folds, or random training and test rows (seeds {seeds}). adult, mofn-3-7-10 and satimage are not repeated: their splits
come with the data. Each trial of the selection had {selection:g} s, each final search {final:g} s, on one thread.

Mean accuracy in percent, and the lowest and the highest, over the partition of results/p12 and the others. Below: the
published value with its 95 % interval, which is that of one partition. An asterisk: the mean is below this interval.
Nothing was chosen by these numbers."""


def divided(table: Table, seed: int) -> list[Part]:
    """Return the parts of another partition, of the same sizes."""
    n = len(table.train_indices)
    if not table.test_indices.size:
        return parts(table, seed)
    rows = np.random.default_rng(seed).permutation(np.concatenate([table.train_indices, table.test_indices]))
    return [Part(TEST_SET, table, np.sort(rows[:n]), np.sort(rows[n:]))]


def measured(part: Part, name: str, n_classes: int, seed: int, budgets: Budgets) -> dict[str, Any]:
    """Return the accuracy of a method on a part, with what it chose and proved."""
    steps = [method(name, budgets, n_classes)]
    while (needed := steps[0].needs) is not None:
        steps.insert(0, needed)
    found: Mapping[str, Any] = {}
    for step in steps:
        found = step.run(MethodInput(part, seed, 1, found))
    kept = {"accuracy": found["figures"]["accuracy"]}
    if "search" in found:
        kept |= {"choice": found["choice"], "gap": found["search"]["gap"]["relative_to_bound"]}
    return kept


def run_seed(data: list[str], data_dir: Path | None, seed: int, budgets: Budgets, path: Path) -> None:
    """Compute what the file of a seed lacks."""
    kept = {"budgets": {"selection": budgets.selection, "final": budgets.final}} | read_results(path)
    for name in data:
        table = read_table(name, data_dir=data_dir)
        n_classes = table.dataset("all").n_classes
        for part in divided(table, seed):
            for one in METHODS:
                absent = published().accuracy(name, one) is None or (one == "sbm" and n_classes == 2)
                key = f"{name} {part.name} {one}"
                if absent or key in kept:
                    continue
                kept[key] = measured(part, one, n_classes, seed, budgets)
                write_results(path, kept)
                print(time.strftime("%H:%M:%S"), "seed", seed, key, kept[key], flush=True)


def accuracies(folder: Path, first: Collected, data: str, name: str) -> list[float]:
    """Return the accuracy on each partition that is complete, in percent: that of results/p12, then the others."""
    entry = first.entry(data, name)
    found = [] if entry is None else [entry.accuracy]
    stored = "sm" if name == "sbm" and first.facts[data].classes == 2 else name  # with two classes SBM is SM
    for path in sorted(folder.glob("seed-*.json")):
        results = read_results(path)
        keys = [f"{data} {part} {stored}" for part in first.facts[data].parts]
        if all(key in results for key in keys):
            found.append(100 * statistics.fmean(results[key]["accuracy"] for key in keys))
    return found


def table(folder: Path, first: Collected) -> str:
    """Return how many means are within or above the published intervals, and the means."""
    below: dict[str, list[str]] = {name: [] for name in METHODS}
    counted = dict.fromkeys(METHODS, 0)
    rows = [
        f"| data | partitions | {' | '.join(TITLES[name] for name in METHODS)} |",
        f"| --- | --- |{' --- |' * 5}",
    ]
    for data in first.plan.data:
        cells = [data, f"{len(accuracies(folder, first, data, 'nb'))}"]
        for name in METHODS:
            found, known = accuracies(folder, first, data, name), published().accuracy(data, name)
            if not found or known is None:
                cells.append("")
                continue
            mean = statistics.fmean(found)
            star = "*" if round(mean, 2) < round(known.lower, 2) else ""
            counted[name] += 1
            below[name] += [f"{data} ({mean:.2f} < {known.lower:.2f})"] if star else []
            spread = f" ({min(found):.2f} to {max(found):.2f})" if len(found) > 1 else ""
            cells.append(
                f"{mean:.2f}{star}{spread}<br>{known.percent:.2f} ({known.lower:.2f} to {known.upper:.2f})"
            )
        rows.append(f"| {' | '.join(cells)} |")
    counts = ["| method | within or above | below the interval |", "| --- | --- | --- |"]
    for name in METHODS:
        held = counted[name] - len(below[name])
        counts.append(f"| {TITLES[name]} | {held} of {counted[name]} | {', '.join(below[name]) or '-'} |")
    return "\n".join([*counts, "", *rows])


def main() -> None:
    """Compute what is missing, and write the page."""
    warnings.simplefilter("ignore", DataWarning)
    made = parser(__doc__, data=DATA, output=RESULTS / "partitions", time_limit=60.0)
    made.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4], help="seeds of the partitions")
    made.add_argument("--selection-budget", type=float, default=2.5, metavar="SECONDS", help="of each trial")
    made.add_argument("--only-cached", action="store_true", help="compute nothing; write the page")
    options = parse(made, DATA)
    budgets = Budgets(selection=options.selection_budget, final=options.time_limit)
    if not options.only_cached:
        compile_all()
        for seed in options.seeds:
            path = options.output / f"seed-{seed}.json"
            run_seed(options.data, options.data_dir, seed, budgets, path)
    plan = Plan(
        data=tuple(catalog_names(options.data_dir)),
        methods=METHODS,
        budgets=Budgets(selection=10.0, final=1800.0),
        data_dir=options.data_dir,
    )
    first = collect(plan, Store(RESULTS / "p12" / "cells"))
    seeds = [path.stem.removeprefix("seed-") for path in sorted(options.output.glob("seed-*.json"))]
    introduction = INTRODUCTION.format(
        source=published().source, seeds=", ".join(seeds), selection=budgets.selection, final=budgets.final
    )
    remarks = options.output / "remarks.md"
    sections = [
        introduction,
        remarks.read_text(encoding="utf-8").strip() if remarks.exists() else "",
        table(options.output, first),
    ]
    text = "\n\n".join(section for section in sections if section) + "\n"
    atomic_write_text(options.output / "README.md", text)
    print(text)


if __name__ == "__main__":
    main()
