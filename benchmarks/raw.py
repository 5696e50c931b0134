"""What users would pick instead, on raw columns: EBM, boosting, forest, logistic regression, SVM, and our recipes.

    python benchmarks/raw.py [heart iris] --data-dir DIR [--methods ebm svm] [--repeats 1] [--time-limit 60]
    python benchmarks/raw.py --only-cached --data-dir DIR

Every method gets the raw columns, none of our cuts, and chooses its settings on training rows (`raw_methods.py` has
them). Cells are kept under --output; a run that is killed goes on where it stopped, and README.md there and its
pictures are written from all cells in the end. Small data sets come first, then the large ones, the cheapest methods
first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from common import RESULTS, add_run_options, compute, errors_as_sentences, parser, write_page
from raw_methods import Ours, methods
from raw_study import EMBEDDED, ORDER, REPEATS, RawStudy

from milpbn.data.catalog import catalog_names
from milpbn.drawing.chart import Bar, bars
from milpbn.drawing.scene import Scene
from milpbn.experiments.base import Figures
from milpbn.experiments.cells import KeptCells
from milpbn.experiments.page import read_remarks, table
from milpbn.experiments.runner import missing
from milpbn.experiments.statistics import LEVELS, outperforms
from milpbn.network.additive.record import STRUCTURES
from milpbn.plotting.canvas import save

#: The figures of a cell, and how they are written.
FORMATS = {"accuracy": ".2f", "log-loss": ".3f", "Brier": ".3f", "ECE": ".2f", "AUC": ".3f", "seconds": ".1f"}
#: Pictures of the first recipe beside other methods.
PICTURES = (
    ("ebm", "log-loss", "nats"),
    ("boosting", "log-loss", "nats"),
    ("svm", "accuracy", "points of accuracy"),
)

INTRODUCTION = """# What users would pick instead, on raw columns

This page is written by `benchmarks/raw.py --data-dir DIR`; the cells are in `cells.jsonl.gz`, each with its settings,
what was chosen, seconds and versions. `benchmarks/raw_methods.py` has the methods.

- **Data:** the 19 data sets of [results/p12](../p12/README.md) and the nine embedded instances (`milpbn instances`)
  that are not among them. Columns are numbers or texts as their catalogs say; those of balance-scale and digits are
  numbers. Rows with missing values are left out as in results/p12. No method gets our cuts.
- **Splits:** three random ones, stratified by class (seeds 1 to 3), 70 % of the rows train. Settings were fixed before
  test rows were scored. All choices are made on training rows: on a validation set of 20 % above 1,000 of them, on five
  folds below. One thread each, on a busy machine; seconds are those of the processor, the choice included.
- **accurate, readable:** `milpbn solve --recipe accurate` with at most {twice:g} s by the clock for everything, and
  `--recipe readable` with {seconds:g} s. The machine was busy except for `accurate`.
- **ebm:** `ExplainableBoostingClassifier` of interpret-core with its defaults, 14 bags, and pairs
  three times as many as features, for several classes, too. Where training rows can be separated, its rounds go on to
  their limit of 50,000, which takes minutes, and a quarter of an hour on the 56 rows of hepatitis.
- **boosting:** `HistGradientBoostingClassifier`, rate .05, native categories; 2, 6 or 31 leaves of at least 5 or 20
  rows, and the number of rounds, by held-out log-loss.
- **forest:** `RandomForestClassifier`, 500 trees, indicators of categories; leaves of at least 1 or 5 rows and sqrt or
  half of the columns at each split, by the log-loss of rows out of the bags.
- **logistic, splines:** `LogisticRegressionCV` on standardised numbers and indicators; ten values of C by held-out
  log-loss. `splines` has cubic splines of the numbers with six knots at quantiles.
- **svm:** `SVC` with a Gaussian kernel on standardised numbers and indicators; five values each of C and gamma by
  held-out accuracy, on at most 5,000 rows. Accuracy is that of the machine; probabilities are fitted to decision values
  of five folds: a sigmoid for two classes, a temperature for more, sigmoids where it fails.
- **naive-bayes:** five bins of the numbers, Laplace's estimates; for orientation.

That boosting takes its rounds from the mean over the folds, and the SVM a temperature, was settled after a look at
split 1 of iris and soybean-large, in favour of these two. Nothing of ours was chosen by test rows."""
BESIDE = """Means over the data sets that both have: accuracy and expected calibration error (ECE, ten bins) in percent,
log-loss in nats; by how much our log-loss is lower. Won and lost: on how many data sets one is better than the other at
the 68 % level, by the tests of results/p12 (paired t-test over the splits, which share rows, so that it is optimistic;
with one split, a binomial test of accuracy and none of log-loss)."""
#: Difference of log-losses in nats below which two are called equal.
SAME = 0.001
SOURCES = f"""Log-loss of held-out training rows, each source with penalties of its own, minus that of the
forest of pairs: the mean over the cells that compared both and its standard error, and in how many it is lower or
higher by more than {SAME:g}. Test rows have no part in it. The exact structure is that of a search in each fold:
what the search is worth to the same kind of tables."""
MEANS = "AUC is that of two classes; seconds are those of the processor for choice and fit together."


def read(study: RawStudy, store: KeptCells) -> pd.DataFrame:
    """Return the figures of all cells that are there, by data set, method and split."""
    rows = []
    for task in study.tasks():
        kept = store.read(task.cell)
        if kept is not None and kept.failure is None:
            figures = Figures.from_dict(dict(kept.found["figures"]))
            rows.append(
                {
                    **{"data": task.data, "method": task.cell.method, "part": task.part},
                    **{
                        "correct": figures.correct,
                        "accuracy": 100 * figures.accuracy,
                        "log-loss": figures.log_loss,
                    },
                    **{"Brier": figures.brier, "ECE": 100 * kept.found["ece"], "AUC": kept.found["auc"]},
                    "seconds": kept.processor,
                }
            )
    return pd.DataFrame(rows, columns=["data", "method", "part", "correct", *FORMATS]).set_index(
        ["data", "method", "part"]
    )


def pair(cells: pd.DataFrame, ours: str, other: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the cells of two methods on the splits that both have, by data set and split."""
    one, two = (cells.xs(name, level="method") for name in (ours, other))
    both = one.index.intersection(two.index)
    return one.loc[both], two.loc[both]


def wins(one: pd.DataFrame, two: pd.DataFrame, figure: str) -> tuple[int, int]:
    """Return on how many data sets each is better at the 68 % level, by the tests of P12's Table 3.

    Of log-losses, data sets with one split have no test.
    """
    counts = [0, 0]
    for data, ours in one.groupby(level="data"):
        theirs = two.loc[[data]]
        if figure == "accuracy":
            values = [list(ours["correct"]), list(theirs["correct"])]
        elif len(ours) > 1:
            values = [[np.array([-value]) for value in side[figure]] for side in (ours, theirs)]
        else:
            continue
        counts[0] += outperforms(values[0], values[1], LEVELS[0])
        counts[1] += outperforms(values[1], values[0], LEVELS[0])
    return counts[0], counts[1]


def by_set(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the means of the figures over the splits."""
    return cells[list(FORMATS)].groupby(level="data", sort=False).mean()


def beside(cells: pd.DataFrame, ours: str) -> list[str]:
    """Return the table of a recipe beside every other method."""
    lines = [f"## {ours} beside the others", "", BESIDE, ""]
    titles = ["method", "sets", "accuracy", "its", "log-loss", "its", "lower by", "ECE", "its"]
    lines += table([*titles, "won, accuracy", "lost", "won, log-loss", "lost"])
    for name in cells.index.unique("method").drop(ours):
        one, two = pair(cells, ours, name)
        if len(one) == 0:
            continue
        a, b = by_set(one).mean(), by_set(two).mean()
        found = [
            f"{side[figure]:{FORMATS[figure]}}"
            for figure in ("accuracy", "log-loss", "ECE")
            for side in (a, b)
        ]
        found.insert(4, f"{1 - a['log-loss'] / b['log-loss']:.1%}")
        counts = [*wins(one, two, "accuracy"), *wins(one, two, "log-loss")]
        lines.append(
            " | ".join(["", name, str(one.index.unique("data").size), *found, *map(str, counts), ""]).strip()
        )
    return ["\n".join(lines)]


def table_of(title: str, rows: pd.DataFrame, formats: Mapping[str, str] | str) -> str:
    """Return a table of numbers, "-" for those that are missing."""
    lines = [title, "", *table([rows.index.name or "", *map(str, rows.columns)])]
    for name, row in rows.iterrows():
        cells = [f"{v:{formats if isinstance(formats, str) else formats[k]}}" for k, v in row.items()]
        lines.append(f"| {name} | " + " | ".join("-" if cell == "nan" else cell for cell in cells) + " |")
    return "\n".join(lines)


def picture(cells: pd.DataFrame, ours: str, other: str, figure: str, label: str) -> Scene:
    """Draw the differences of two methods by data set, the means and the range of the splits."""
    one, two = pair(cells, ours, other)
    differences = (one[figure] - two[figure]).groupby(level="data")
    mean, low, high = differences.mean().sort_values(), differences.min(), differences.max()
    colours = ("class-edge", "unused-edge", "feature-edge")
    sign = np.sign(mean).astype(int) * (-1 if figure == "accuracy" else 1) + 1
    rows = [
        Bar(
            str(name),
            None,
            value,
            f"{value:+{FORMATS[figure]}}",
            colours[sign[name]],
            (low[name], high[name]),
        )
        for name, value in mean.items()
    ]
    return bars(
        rows,
        title=f"{ours} minus {other}: {figure}",
        label=label,
        notes=list(zip(colours, (f"{ours} is better", "equal", f"{other} is better"), strict=True)),
        lines=["Dots are means over the splits of a data set, lines their range."],
    )


def page(study: RawStudy, store: KeptCells, folder: Path) -> list[str]:
    """Return the sections of the page, and write its pictures."""
    cells = read(study, store)
    names = [name for name in methods(study.seconds) if name in cells.index.unique("method")]
    recipes = [name for name in names if isinstance(methods(study.seconds)[name], Ours)]
    introduction = INTRODUCTION.format(seconds=study.seconds, twice=2 * study.seconds)
    sections = [introduction, _missing(study, store), read_remarks(folder)]
    if not names:
        return sections
    for ours in recipes:
        sections += beside(cells, ours)
    sections += sources(study, store)
    done = [
        data for data, rows in cells.groupby(level="data") if rows.index.unique("method").size == len(names)
    ]
    common = cells.loc[done]
    means = {n: by_set(common.xs(n, level="method")).mean() for n in names}
    title = f"## Means over the {len(done)} data sets that all methods have\n\n{MEANS}"
    sections.append(table_of(title, pd.DataFrame(means).T[list(FORMATS)], FORMATS))
    for other, figure, label in PICTURES:
        if recipes and other in names:
            file = f"{other}-{figure}.svg"
            save(picture(cells, recipes[0], other, figure, label), folder / file)
            sections.append(f"![{recipes[0]} minus {other}, {figure}]({file})")
    for figure in ("accuracy", "log-loss", "seconds"):
        rows = cells[figure].groupby(level=["data", "method"], sort=False).mean().unstack()[names]
        sections.append(table_of(f"## {figure.capitalize()} by data set", rows, FORMATS[figure]))
    return sections


def sources(study: RawStudy, store: KeptCells) -> list[str]:
    """Return the table of where the interactions of `accurate` came from, by held-out training rows."""
    differences: dict[str, list[float]] = {name: [] for name in STRUCTURES}
    chosen: Counter[str] = Counter()
    for task in study.tasks():
        kept = store.read(task.cell) if task.cell.method == "accurate" else None
        if kept is None or kept.failure is not None:
            continue
        found = kept.found["choice"]["parameters"].get("additive")
        if found is None:
            continue
        chosen[found["trials"][found["chosen"]]["structure"]] += 1
        first = {trial["structure"]: trial["log_loss"] for trial in reversed(found["trials"])}
        if None in first.values():  # the only candidate, without time for folds
            continue
        for name, value in first.items():
            differences[name].append(value - first["forest"])
    if not chosen:
        return []
    lines = ["## Where the interactions of accurate come from", "", SOURCES, ""]
    lines += table(["interactions", "cells", "chosen", "log-loss - forest's", "lower", "higher"])
    for name, values in differences.items():
        if values:
            error = np.std(values) / np.sqrt(len(values))
            counts = [np.sum(np.array(values) < -SAME), np.sum(np.array(values) > SAME)]
            mean = f"{np.mean(values):+.4f} ± {error:.4f}"
            cells = [STRUCTURES[name], len(values), chosen[name], mean, *counts]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return ["\n".join(lines)]


def _missing(study: RawStudy, store: KeptCells) -> str:
    """Return which data sets lack a method, which cells failed, and how many of all cells are there."""
    waiting, failed = missing(study, store)
    lines = [f"- {task.cell} failed: {reason}" for task, reason in failed]
    for name in methods(study.seconds):
        absent = Counter(task.data for task in waiting if task.cell.method == name)
        there = study.repeats * len(study.data) - absent.total()
        without = [data for data, count in absent.items() if count == study.repeats] if there else []
        if absent:
            lines.append(
                f"- {name}: {there} cells are there{'; none of ' * bool(without)}{', '.join(without)}"
            )
    heading = (
        f"Not everything is computed yet, of {study.repeats} splits of {len(study.data)} data sets each:"
    )
    return "\n".join([heading, "", *lines]) if lines else ""


def main() -> None:
    """Compute what is missing, and write the page."""
    made = parser(__doc__ or "", output=RESULTS / "raw", time_limit=60.0, threads=1)
    made.add_argument("--methods", nargs="+", default=list(ORDER), choices=ORDER, metavar="NAME")
    made.add_argument("--repeats", type=int, default=REPEATS, help="splits of each data set")
    add_run_options(made)
    options = made.parse_args()
    if options.data_dir is None:
        made.error("name the catalog's folder with --data-dir or the variable MILPBN_DATA")
    with errors_as_sentences():
        known = (*catalog_names(options.data_dir), *EMBEDDED)
        asked = set(options.data or known)
        if asked - set(known):
            made.error(f"there is no data set {min(asked - set(known))}; choose from {', '.join(known)}")

        def study(data: Sequence[str], names: Sequence[str], repeats: int) -> RawStudy:
            where = {"data_dir": options.data_dir, "seconds": options.time_limit, "repeats": repeats}
            return RawStudy(data=tuple(data), methods=tuple(names), **where)

        store = KeptCells(options.output)
        compute(study([n for n in known if n in asked], options.methods, options.repeats), store, options)
        write_page(options.output, page(study(known, ORDER, REPEATS), store, options.output))


if __name__ == "__main__":
    main()
