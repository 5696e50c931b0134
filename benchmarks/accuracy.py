"""Which setting is recommended: candidates compared on held-out training rows. No test row is read.

    python benchmarks/accuracy.py [heart car] --data-dir DIR [--candidates fixed accurate] [--recipe-budget 25]
    python benchmarks/accuracy.py --only-cached --data-dir DIR

The training rows of the first part of each data set (its training set, or four of the five folds) are split once more:
5 folds, or a validation set of 20 % above 1,000 rows. Every candidate learns on one side, with a selection of its own
inside, and is measured on the other. Cells are kept in results/accuracy/cells.jsonl.gz, and a run that is killed goes
on where it stopped. README.md there is written from all cells: the means, and for every candidate the difference from
the recipe, paired over the data sets, with its 95 % interval.

For every data set, the page also names the candidate with the lowest mean log-loss on the other data sets. With
`--on-test-rows`, where this is not the recipe, that candidate learns on all training rows, and is measured on the test
rows beside the recipe's cell of results/p12. Nothing is chosen by these figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from common import RESULTS, add_run_options, compute, errors_as_sentences, parse, parser, write_page
from scipy.stats import t as student

from milpbn.data.catalog import catalog_names
from milpbn.experiments import methods
from milpbn.experiments.base import Budgets, Method
from milpbn.experiments.cells import KeptCells
from milpbn.experiments.methods import METHODS
from milpbn.experiments.recommended import RecommendedMethod
from milpbn.experiments.runner import Plan
from milpbn.experiments.tables import collect
from milpbn.solving.recipes import RECIPES

LEAVE_ONE_OUT = "score=cll leave-one-out=yes"
#: The candidates that are no method of the paper's tables: name, grid, and what decides.
CANDIDATES = {
    "accurate": (RECIPES["readable"].grid, RECIPES["readable"].by),
    "accurate-average-4": (RECIPES["readable"].grid, RECIPES["readable"].by),
    "accurate-by-accuracy": (RECIPES["readable"].grid, "accuracy"),
    "mdl-only": (f"{LEAVE_ONE_OUT} hybrid=.1,1 max-parents=1,2,3 parameters=hybrid", "log-loss"),
    "fixed": (f"{LEAVE_ONE_OUT} hybrid=.1 max-parents=2 parameters=hybrid", "log-loss"),
    "fixed-cll": (f"{LEAVE_ONE_OUT} max-parents=2 parameters=hybrid", "log-loss"),
    "fixed-sm": ("score=sm p=.9 leave-one-out=yes hybrid=.1 max-parents=2 parameters=hybrid", "log-loss"),
    "generative": (f"{LEAVE_ONE_OUT} hybrid=.1,1 max-parents=1,2,3 discretise=mdl,quantile:5", "log-loss"),
    "sm": ("score=sm p=.501,.6,.7,.8,.9,.95,.99,.999 max-parents=1,2", "accuracy"),
}
#: The candidate that is the recipe.
RECIPE = "accurate"
#: Mean accuracy in percent and mean log-loss in nats, by method and data set.
Means = dict[str, dict[str, tuple[float, float]]]
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

    kept = {name: METHODS[name] for name in (*OTHERS, "recipe")}
    methods.METHODS = kept | {name: made(name) for name in CANDIDATES}


def figures(plan: Plan, store: KeptCells) -> tuple[Means, dict[str, set[float]]]:
    """Return the means of accuracy and log-loss over the parts, by method and data set, and budgets by method.

    Data sets with a missing part are left out. Of cells with several budgets, the one with the largest counts.
    """
    budgets: dict[str, set[float]] = {}
    means: Means = {}
    for (data, method), entry in collect(plan, store).entries.items():
        budgets.setdefault(method, set()).update(entry.budgets)
        means.setdefault(method, {})[data] = (entry.accuracy, entry.log_loss)
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


def left_out(means: Means, name: str) -> list[tuple[float, str]]:
    """Return the candidates' mean log-losses on all data sets but one, the lowest first; only one if none is compared.

    Averages are no candidates here, since the recipe is one network; neither are candidates that lack a data set.
    """
    data = [other for other in sorted(means.get(RECIPE, {})) if other != name]
    names = [n for n in CANDIDATES if n not in AVERAGES and means.get(n, {}).keys() >= means[RECIPE].keys()]
    return sorted((float(np.mean([means[n][other][1] for other in data])), n) for n in names)


def choices(means: Means, known: Sequence[str]) -> list[str]:
    """Return the section about the candidates that are chosen on all data sets but one."""
    lines = [
        "",
        "## Chosen on the other data sets",
        "",
        "For every data set: the candidate with the lowest mean log-loss on the others (of those that all of these "
        "candidates have), and the next one.",
        "",
        "| left out | chosen | log-loss | next | log-loss |",
        "|---|---|---|---|---|",
    ]
    for name in known:
        (best, first), (second, next_) = left_out(means, name)[:2]
        lines.append(f"| {name} | {first} | {best:.4f} | {next_} | {second:.4f} |")
    return lines


def on_test_rows(means: Means, test: Means, known: Sequence[str]) -> list[str]:
    """Return the section about the test rows, with the recipe and with what was chosen on the other data sets."""
    lines = [
        "",
        "On the test rows, accuracy in percent / log-loss in nats: with the recipe "
        "([its cells](../p12/README.md)), and with what was chosen on the other data sets.",
        "",
        "| data | recipe | chosen on the others | |",
        "|---|---|---|---|",
    ]
    pairs = []
    for name in known:
        chosen = left_out(means, name)[0][1]
        ours, other = (
            test.get("recipe", {}).get(name),
            test.get("recipe" if chosen == RECIPE else chosen, {}).get(name),
        )
        if ours is None or other is None:
            continue
        pairs.append((ours, other))
        if chosen != RECIPE:
            lines.append(f"| {name} | {_both(ours)} | {_both(other)} | {chosen} |")
    if not pairs:
        return []
    one, two = (tuple(float(v) for v in np.mean([pair[k] for pair in pairs], axis=0)) for k in range(2))
    lines.append(f"| mean of {len(pairs)} | {_both(one)} | {_both(two)} | all others: the recipe |")
    return lines


def _both(pair: Sequence[float]) -> str:
    return f"{pair[0]:.2f} / {pair[1]:.3f}"


def page(means: Means, budgets: dict[str, set[float]], test: Means, known: Sequence[str]) -> str:
    """Return the page, from the figures on held-out training rows, their budgets, and the figures on test rows."""
    names = [name for name in (*CANDIDATES, *OTHERS) if name in means]
    data = sorted({name for sets in means.values() for name in sets})
    reference = means.get(RECIPE, {})
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
            if name != RECIPE
        ),
        "",
        "Accuracy in percent / log-loss in nats:",
        "",
        "| data | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for name in data:
        cells = [means[m].get(name) for m in names]
        lines.append(f"| {name} | " + " | ".join("-" if c is None else _both(c) for c in cells) + " |")
    if len(means.get(RECIPE, {})) > 2 and len(left_out(means, "")) > 1:
        lines += [*choices(means, known), *on_test_rows(means, test, known)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compute what is missing, and write the page."""
    register()
    made = parser(__doc__ or "", output=RESULTS / "accuracy", threads=1)
    known_methods = [*CANDIDATES, *OTHERS]
    made.add_argument("--candidates", nargs="+", default=known_methods, choices=known_methods, metavar="NAME")
    made.add_argument("--recipe-budget", type=float, default=25.0, metavar="SECONDS", help="of each fit")
    made.add_argument("--seed", type=int, default=0)
    add_run_options(made)
    made.add_argument("--on-test-rows", action="store_true", help="measure what the other data sets choose")
    options = parse(made, catalog=True)
    with errors_as_sentences():
        known = catalog_names(options.data_dir)
        budgets = Budgets(selection=10, final=10, recipe=options.recipe_budget)
        store = KeptCells(options.output)

        def plan(data: Sequence[str], names: Sequence[str], nested: bool = True) -> Plan:
            return Plan(
                data=tuple(data),
                methods=tuple(names),
                budgets=budgets,
                seed=options.seed,
                data_dir=options.data_dir,
                nested=nested,
            )

        compute(plan(options.data or known, options.candidates), store, options)
        means, seconds = figures(plan(known, known_methods), store)
        if options.on_test_rows:
            for name in options.data or known:
                chosen = left_out(means, name)[0][1]
                if chosen != RECIPE:
                    compute(plan([name], [chosen], nested=False), store, options)
        test = figures(plan(known, [*CANDIDATES], nested=False), store)[0]
        test |= figures(plan(known, ["recipe"], nested=False), KeptCells(RESULTS / "p12"))[0]
        write_page(options.output, [page(means, seconds, test, known)])


if __name__ == "__main__":
    main()
