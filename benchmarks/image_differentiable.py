"""Test errors of differentiable TAN and of hybrid parameters on image data (Roth & Pernkopf 2020).

    python benchmarks/image_differentiable.py [letter usps] --data-dir DIR [--structures chow-liu subset]

For every data set, fold and structure, at most 20 configurations (see `next_configuration`) are compared on some random
splits: they are trained on four fifths of the training rows, and their errors are counted on the other fifth. The
configuration with the fewest errors, the first of equals, is trained on all training rows, once per seed. Only these
classifiers see the test rows.

With `--race 6 12 24` the configurations are 20 random parent sets of Subset (section 4.2: five orderings; here
with four selections each), with gamma 30 and a learning rate of 0.03, which earlier searches chose most often. All are
compared on 6 random splits, the better half of them on 12, the better half of those on 24.

With `--recut DIR` as well (satimage only; DIR is the folder of the catalog), the values of held-out rows are cut as
those of test rows were: at cuts learnt from the other training rows. The 20 configurations are then two parent sets for
each ordering with two lambdas, from maximum-likelihood parameters. `--averaged-runs` applies to the chosen
configuration, not to those that are compared.

With `--as "usps fold 1 subset K=8 epochs 100 splits 2"` there is no search: the configuration that the named run chose
is trained. (The mnist row of the results is one: it took its configuration from the fourth search, with
`--output results/learners/images-differentiable-fourth-search.json`.)

Errors are written to results/learners/images-differentiable.json after every run; runs that are in the file are not
repeated. The files of finished searches contain the number of configurations and the chosen one, not all that were
compared.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import RESULTS, command, parse, parser, read_results, write_results
from images import DISCRETISED, FOLDS, cut, load, satimage_values
from joblib import Parallel, delayed
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.data.folds import validation_split
from milpbn.learners.base import Control
from milpbn.learners.differentiable import DifferentiableTan
from milpbn.learners.differentiable.presets import BATCH_SIZES, ORDERINGS

STRUCTURES = ("naive-bayes", "chow-liu", "random", "subset", "all", "heuristic", "pseudo-subset")
#: Share of the training rows on which configurations are compared.
HELD_OUT = 0.2
#: Configurations of a search, at most.
MOST = 20
#: Batch sizes of a search, those of the paper.
SIZES = [50, 100, 250]


def next_configuration(
    structure: str, k: int, base: DifferentiableTan, batch_sizes: list[int], errors: list[float]
) -> DifferentiableTan | None:
    """Return the configuration to try next, from the errors of those before it; None at the end.

    Every stage changes the best configuration of the stages before it; see `stages`.
    """
    tried: list[DifferentiableTan] = []
    for changes in stages(structure, k, base, batch_sizes):
        best = (
            tried[int(np.argmin(errors[: len(tried)]))] if tried else replace(base, structure=structure, k=k)
        )
        tried += [replace(best, **change) for change in changes]
        if len(errors) < len(tried):
            return tried[len(errors)] if len(errors) < MOST else None
    return None


def stages(
    structure: str, k: int, base: DifferentiableTan, batch_sizes: list[int]
) -> list[list[dict[str, Any]]]:
    """Return the changes that each stage of a search tries.

    The stages are: structures, if there are several; initial parameters, also with nearly no smoothing, because a state
    that a class never had is evidence against the class; gammas in nats with learning rates; lambdas; schedules and
    further structures.
    """
    sizes = [{"batch_size": size} for size in sorted({*batch_sizes} - {base.batch_size})]
    brief = {"epochs": max(1, base.epochs // 3)}
    first: list[dict[str, Any]]
    last: list[dict[str, Any]]
    if structure in ("naive-bayes", "chow-liu"):
        first, last = [{}], [*sizes, brief, *({**brief, **size} for size in sizes)]
    elif structure == "heuristic":
        first, last = [{"structure": f"heuristic-{letter}"} for letter in "cba"], [{"k": 5}, {"k": 2}, *sizes]
    else:
        first = [{"ordering": ordering} for ordering in range(5)]
        last = [*sizes] if structure == "all" else [{"selection": 1}, {"selection": 2}, *sizes]
    starts = [{"init": "ml", "smoothing": smoothing} for smoothing in (1.0, 1e-2, 1e-6)]
    rates = [
        {"gamma": gamma, "learning_rate": rate}
        for gamma, rate in product((10.0, 30.0, 100.0), (3e-2, 1e-1))
        if (gamma, rate) != (base.gamma, base.learning_rate)
    ]
    lambdas = [{"lambda_": lambda_} for lambda_ in (10.0, 100.0)]
    return [first, starts, rates, lambdas, last]


def error(learner: DifferentiableTan, train: Dataset, test: Dataset, seed: int) -> float:
    predictor = learner.fit(train, Control(random_state=seed)).predictor
    return 100 * float(np.mean(predictor.predict_codes(test) != test.y))


def options_of(learner: DifferentiableTan) -> dict[str, Any]:
    return {f.name: getattr(learner, f.name) for f in fields(learner)}


class Results:
    """The results file: read at the start, written after every run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = read_results(path)

    def keep(self) -> None:
        """Write all runs so far."""
        write_results(self.path, self.runs)


def run(
    results: Results, folder: Path, name: str, fold: int, structure: str, options: argparse.Namespace
) -> None:
    """Choose a configuration, and count its errors on the test rows once per seed."""
    train, test = load(folder, name, fold)
    size = f" K={options.k}" if structure in ("subset", "heuristic", "pseudo-subset") else ""
    race = " ".join(map(str, options.race or ()))
    how = f"epochs {options.epochs} " + (f"race {race}" if race else f"splits {options.splits}")
    if options.recut:
        how += " recut"
    if options.averaged_runs > 1:
        how += f" mean of {options.averaged_runs}"
    if options.like:
        how = f"as {options.like}"
    key = f"{name} fold {fold} {structure}{size} {how}"
    entry = results.runs.setdefault(
        key, {"command": command(options, name), "search": [], "chosen": None, "test_errors": {}}
    )
    batch_size = BATCH_SIZES[name.split("-")[0]]
    if "search" not in entry:  # a finished search, whose log was removed
        chosen = entry["chosen"]
    elif options.like:
        like = results.runs[options.like]["chosen"]
        # Another data set has a batch size of its own.
        own = options.like.split()[0] == name
        chosen = like if own else {**like, "options": {**like["options"], "batch_size": batch_size}}
    else:
        base = DifferentiableTan(
            loss="hyb",
            lambda_=30.0,
            gamma=30.0,
            eta=10.0,
            learning_rate=1e-1,
            epochs=options.epochs,
            batch_size=batch_size,
        )
        if options.race:
            values = satimage_values(folder, fold, options.recut) if options.recut else None
            chosen = run_race(results, key, train, values, structure, base, options)
        else:
            chosen = search(results, key, train, structure, base, options)
    if entry["chosen"] != chosen:
        # The errors in the file are those of another configuration, chosen by an earlier, shorter search.
        entry["chosen"], entry["test_errors"] = chosen, {}
    learner = DifferentiableTan(
        **{**chosen["options"], "validation": 0.0, "averaged_runs": options.averaged_runs}
    )
    for seed in options.seeds:
        if str(seed) not in entry["test_errors"]:
            begun = time.perf_counter()
            entry["test_errors"][str(seed)] = error(learner, train, test, seed)
            entry["seconds"] = time.perf_counter() - begun
            results.keep()
    print(key, "test errors", entry["test_errors"], flush=True)


def search(
    results: Results,
    key: str,
    train: Dataset,
    structure: str,
    base: DifferentiableTan,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Return the record of the configuration with the fewest errors on held-out training rows."""
    entry = results.runs[key]
    tried = [item["validation_error"] for item in entry["search"]]
    while (learner := next_configuration(structure, options.k, base, options.batch_sizes, tried)) is not None:
        begun = time.perf_counter()
        watched = replace(learner, validation=HELD_OUT)
        errors = [validation_error(watched, train, seed) for seed in range(options.splits)]
        tried.append(float(np.mean(errors)))
        entry["search"].append(
            {
                "options": options_of(watched),
                "validation_error": tried[-1],
                "seconds": (time.perf_counter() - begun) / options.splits,
            }
        )
        results.keep()
        print(key, json.dumps(entry["search"][-1]), flush=True)
    return dict(entry["search"][int(np.argmin(tried))])


def run_race(
    results: Results,
    key: str,
    train: Dataset,
    values: NDArray[np.float64] | None,
    structure: str,
    base: DifferentiableTan,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Return the record of the parent sets with the fewest errors; the better half is compared on more splits."""
    entry = results.runs[key]
    base = replace(base, structure=structure, k=options.k, learning_rate=3e-2, validation=HELD_OUT)
    if not entry["search"]:
        entry["search"] = [
            {"options": options_of(replace(base, **changes)), "validation_errors": []}
            for changes in entrants(recut=values is not None)
        ]
    left = list(entry["search"])
    with Parallel(n_jobs=options.threads) as parallel:
        for splits in options.race:
            for seed in range(splits):
                new = [item for item in left if len(item["validation_errors"]) == seed]
                parts = None if values is None or not new else recut(train, values, seed)
                errors = parallel(
                    delayed(validation_error)(DifferentiableTan(**item["options"]), train, seed, parts)
                    for item in new
                )
                for item, found in zip(new, errors, strict=True):
                    item["validation_errors"].append(found)
                results.keep()
            for item in left:
                # Only of this round's splits: a resumed run may have errors on more.
                item["validation_error"] = float(np.mean(item["validation_errors"][:splits]))
            left.sort(key=lambda item: item["validation_error"])
            print(key, splits, [round(item["validation_error"], 2) for item in left], flush=True)
            best, left = left[0], left[: -(-len(left) // 2)]
    return dict(best)


def entrants(recut: bool) -> list[dict[str, Any]]:
    """Return the options in which the configurations of a race differ."""
    if not recut:
        return [{"ordering": o, "selection": s} for o in range(ORDERINGS) for s in range(MOST // ORDERINGS)]
    return [
        {"ordering": o, "selection": s, "lambda_": lambda_, "init": "ml"}
        for o in range(ORDERINGS)
        for s in range(MOST // ORDERINGS // 2)
        for lambda_ in (10.0, 30.0)
    ]


def recut(train: Dataset, values: NDArray[np.float64], seed: int) -> tuple[Dataset, Dataset]:
    """Return training and held-out rows of a random split, both cut at cuts learnt from the training rows."""
    fitted, held_out = validation_split(train.y, HELD_OUT, seed)
    data = cut(train.name, values, train.y, fitted)
    return data.take(fitted), data.take(held_out)


def validation_error(
    learner: DifferentiableTan, train: Dataset, seed: int, parts: tuple[Dataset, Dataset] | None = None
) -> float:
    """Return the error in % on held-out rows: those of the learner's own split, or those given."""
    if parts is not None:
        return error(replace(learner, validation=0.0), *parts, seed)
    return 100 * float(learner.fit(train, Control(random_state=seed)).details["validation_error"])


def main() -> None:
    made = parser(
        __doc__, data=DISCRETISED, output=RESULTS / "learners" / "images-differentiable.json", threads=1
    )
    made.add_argument("--structures", nargs="+", choices=STRUCTURES, default=["chow-liu", "subset"])
    made.add_argument("--k", type=int, default=8, help="candidate parents")
    made.add_argument("--as", dest="like", metavar="KEY", help="train what this run chose, without a search")
    made.add_argument("--seeds", type=int, nargs="+", default=[0])
    made.add_argument("--epochs", type=int, default=100)
    made.add_argument("--splits", type=int, default=5, help="random splits of the search")
    made.add_argument(
        "--race", type=int, nargs="+", help="numbers of splits; after each round the better half goes on"
    )
    made.add_argument(
        "--recut", metavar="DIR", help="folder of the catalog; a race cuts the values of held-out rows anew"
    )
    made.add_argument("--averaged-runs", type=int, default=1, help="average this number of runs")
    made.add_argument(
        "--batch-sizes", type=int, nargs="+", default=SIZES, help="batch sizes that a search tries"
    )
    options = parse(made, list(FOLDS))
    if options.recut and (not options.race or options.data != ["satimage"]):
        made.error("--recut needs --race, and satimage as the only data set.")
    results = Results(options.output)
    for structure in options.structures:
        for name in options.data:
            if structure == "heuristic" and name in ("letter", "satimage"):
                continue
            for fold in range(1, FOLDS[name] + 1):
                run(results, options.data_dir, name, fold, structure, options)


if __name__ == "__main__":
    main()
