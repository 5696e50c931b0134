"""The page of a run as Markdown: what is there, the three tables, and where they agree with the published numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from milpbn.experiments.cells import KeptCells
from milpbn.experiments.published import published
from milpbn.experiments.runner import Plan, Task, missing
from milpbn.experiments.tables import Collected, Entry, collect, gaps, verdicts, wins

#: Names of the methods in the tables.
TITLES = {
    "nb": "NB",
    "tan": "TAN",
    "mdl": "MDL",
    "sm": "SM",
    "sbm": "SBM",
    "svm": "SVM",
    "logistic": "logistic",
    "boosting": "boosting",
    "recipe": "recipe",
    "recipe-average": "average of four",
}
#: Methods with published accuracies whose agreement the page counts.
COUNTED = ("nb", "tan", "mdl", "sm", "sbm", "svm")


def page(plan: Plan, store: KeptCells, remarks: str = "") -> str:
    """Return the page of a run.

    The remarks are Markdown that stands between the summary and the tables: explanations of differences.
    """
    collected = collect(plan, store)
    sections = [
        _introduction(collected),
        _state(plan, store),
        _agreement(collected),
        remarks.strip(),
        _table_1(collected),
        accuracy_table(collected, "Table 2: accuracy in percent with 95 % intervals"),
        probability_table(collected),
        recipe_table(collected),
        _table_3(collected),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


INTRODUCTION = """# Tables 1 to 3 of Peharz & Pernkopf (2012)

{source}

This page is written by `milpbn reproduce p12`. The cells are in `cells.jsonl.gz`, one line for each method on each
part of a data set; the published numbers are in `milpbn/experiments/published.json`.

- **Data:** {sets} of the paper's 31 sets, with a test set or 5-fold cross-validation as in the paper. The
  paper's folds are not published; ours are stratified (seed {seed}). Its splits of car, mushroom, nursery and
  segment and its subset shuttle-small are not published either; ours are random ones of the same sizes. Rows
  with missing values are dropped, as in the paper, but for mushroom, where a missing value is a value.
- **Learnt inside each training part:** states, cuts (Fayyad & Irani 1993), gamma from the paper's eight values
  and max_parents from 1 and 2, by a validation set of 20 % above 1,000 training rows, else by 5 folds. The cuts
  are learnt anew in each of these splits. The support vector machine is validated on the same splits.
- **Budgets:** {selection:g} s for each trial of the selection, {final:g} s for each final search. The paper had
  2 hours for each optimisation. Trials that reach their limit count with the best structure found by then.
- **SM, SBM, MDL:** the class may have parents, as in the paper's formulation (19). With two classes SM and SBM
  are the same problem, which is computed once.
- **MDL, recipe:** optima are among structures in which every feature has the class among its parents, or no
  parents, as in the paper. Under SM and SBM this class leaves out no score.
- **SVM:** the paper's grid, on indicators of the discretised data. The accuracy is that of the machine's own
  predictions; its probabilities are those of scikit-learn's `CalibratedClassifierCV(method="sigmoid",
  ensemble=False)` over 5 folds of the training rows.
- **logistic, boosting** (not in the paper): `LogisticRegressionCV` (10 values of C, chosen by accuracy on the
  same splits) and `HistGradientBoostingClassifier` with scikit-learn's defaults, on the same indicators. Their
  settings were fixed before any test row was scored.
- **recipe** (not in the paper): `milpbn solve --recipe readable`, with {recipe} s for choice, final search and
  parameters together. It was chosen on held-out training rows (`results/accuracy/`), before any test row was
  scored with it."""


def read_remarks(folder: Path) -> str:
    """Return what ``remarks.md`` in a folder of results says, for its page; "" if it does not exist."""
    path = folder / "remarks.md"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _introduction(collected: Collected) -> str:
    plan = collected.plan
    of_recipe = [
        b for (_, method), entry in collected.entries.items() if method == "recipe" for b in entry.budgets
    ]
    had = sorted(set(of_recipe)) or [plan.budgets.recipe]
    return INTRODUCTION.format(
        source=published().source,
        sets=len(plan.data),
        seed=plan.seed,
        selection=plan.budgets.selection,
        final=plan.budgets.final,
        recipe=f"{had[0]:g}" if len(had) == 1 else f"{had[0]:g} to {had[-1]:g}",
    )


def _state(plan: Plan, store: KeptCells) -> str:
    waiting, failed = missing(plan, store)
    lines = ["## What is there", ""]
    if not waiting and not failed:
        return "\n".join([*lines, "Everything is computed."])
    other = [task for task in waiting if store.read(task.cell, any_budget=True) is not None]
    absent = [task for task in waiting if task not in other]
    if absent:
        lines += [
            "Missing; `milpbn reproduce p12` with the same budgets computes it:",
            "",
            *_listed(absent),
            "",
        ]
    if other:
        lines += [
            "With other budgets for a trial, or for a final search without a proof; the tables show what was found "
            "with the most time (in Table 1 the seconds of the final search):",
            "",
            *_listed(other),
            "",
        ]
    if failed:
        lines += ["Failed:", "", *(f"- {task.cell}: {reason}" for task, reason in failed)]
    return "\n".join(lines).rstrip()


def _listed(those: Sequence[Task]) -> list[str]:
    """Return a line for every data set: its methods and the numbers of their parts."""
    lines = []
    for data, found in groupby(those, key=lambda task: task.data):
        counts = Counter(task.cell.method for task in found)
        lines.append(f"- {data}: {', '.join(f'{method} ({n})' for method, n in counts.items())}")
    return lines


def _agreement(collected: Collected) -> str:
    rows = []
    for method in COUNTED:
        if found := verdicts(collected, method):
            below = [f"{v.data} ({v.accuracy:.2f} < {v.lower:.2f})" for v in found if not v.holds]
            above = [v.data for v in found if v.above]
            mean = sum(v.accuracy - v.percent for v in found) / len(found)
            share = f"{sum(v.holds for v in found)} of {len(found)}"
            rows.append(
                [TITLES[method], share, ", ".join(above) or "-", ", ".join(below) or "-", f"{mean:+.2f}"]
            )
    compared = [gap for gap in gaps(collected) if gap.holds is not None]
    larger = [f"{TITLES[g.method]} on {g.data}" for g in compared if not g.holds]
    titles = ["method", "within or above", "above", "below the interval", "mean difference in points"]
    what = (
        "Accuracies within or above the published 95 % interval, of the data sets that are complete and have a "
        "published value:"
    )
    counts = f"{sum(bool(g.holds) for g in compared)} of {len(compared)}"
    more = f"; larger: {', '.join(larger)}." if larger else "."
    said = f"Gaps at most the published ones: {counts}{more}"
    return "\n\n".join([_section("Agreement with the paper", what, titles, rows), said])


def _table_1(collected: Collected) -> str:
    titles = ["data", "score", "gap, %", "published, %", "seconds", "proved optimal", "certified", "verified"]
    rows = []
    for gap in gaps(collected):
        entry = gap.entry
        worst = "-" if entry.worst_gap is None else f"{entry.worst_gap:.3f}"
        published_gap = "-" if gap.published is None else f"{gap.published:g}"
        counts = [
            f"{entry.count(claim)} of {len(entry.found)}" for claim in ("optimal", "certified", "verified")
        ]
        chosen = [entry.chosen(key) for key in ("p", "max_parents")]
        seconds = f"{max(entry.budgets):g}"
        rows.append([gap.data, TITLES[gap.method], worst, published_gap, seconds, *counts, *chosen])
    what = (
        "100 (bound - objective) / bound in percent at the values that validation chose; with cross-validation the "
        "largest of the folds. Seconds: budget of the final search, with cross-validation the largest that was needed. "
        "Published: after 2 hours of CPLEX; inf: only the empty graph; 0: solved to optimality, within CPLEX's "
        "tolerance. Certified: the bound is the project's own. Verified: its certificate was checked."
    )
    return _section("Table 1: gaps", what, [*titles, "p", "max_parents"], rows)


def accuracy_table(collected: Collected, title: str = "Accuracy in percent with 95 % intervals") -> str:
    """Return the accuracies of all methods, with the published ones below them where there are any."""
    methods, found, what = collected.plan.methods, [], ""
    if any(verdicts(collected, m) for m in methods):
        what = "The published value stands below ours. An asterisk: ours is below the published interval."
    for data in collected.plan.data:
        facts = collected.facts[data]
        below = {m for m in methods for v in verdicts(collected, m) if v.data == data and not v.holds}
        cells = []
        for m in methods:
            entry, paper = collected.entry(data, m), published().accuracy(data, m)
            ours = "-" if entry is None else f"{entry.accuracy:.2f} ± {entry.half_width:.2f}"
            theirs = "" if paper is None else f"<br>{paper.percent:.2f} ± {paper.half_width:.2f}"
            cells.append(ours + ("*" if m in below else "") + theirs)
        found.append([data, f"{facts.test_rows or '5 folds'}", *cells])
    return _section(title, what, ["data", "test rows", *(TITLES[m] for m in methods)], found)


def probability_table(collected: Collected) -> str:
    """Return log-loss and Brier score of all methods."""
    methods = collected.plan.methods

    def both(entry: Entry | None) -> str:
        return "-" if entry is None else f"{entry.log_loss:.3f} / {entry.brier:.3f}"

    rows = [[data, *(both(collected.entry(data, m)) for m in methods)] for data in collected.plan.data]
    what = (
        "Log-loss in nats / Brier score (0 to 2), means over the test rows. Probabilities are raised "
        "to 2.2e-16 before their logarithm is taken, as scikit-learn does."
    )
    return _section("Log-loss and Brier score", what, ["data", *(TITLES[m] for m in methods)], rows)


def recipe_table(collected: Collected) -> str:
    """Return means and wins of the recipe beside those of every other method, over the data sets that both have."""
    own = "recipe"
    if own not in collected.plan.methods:
        return ""
    titles = [
        "method",
        "data sets",
        "accuracy, recipe",
        "accuracy",
        "log-loss, recipe",
        "log-loss",
        "won",
        "lost",
    ]
    rows = []
    for method in collected.plan.methods:
        pairs = [(collected.entry(data, own), collected.entry(data, method)) for data in collected.plan.data]
        both = [(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
        if method == own or not both:
            continue
        n = len(both)
        means = [f"{sum(pair[k].accuracy for pair in both) / n:.2f}" for k in range(2)]
        means += [f"{sum(pair[k].log_loss for pair in both) / n:.3f}" for k in range(2)]
        won, lost = wins(collected, own, method)[0], wins(collected, method, own)[0]
        rows.append([TITLES[method], f"{n}", *means, f"{won}", f"{lost}"])
    what = (
        "Means over the data sets that both have: accuracy in percent and log-loss in nats, of the recipe and of the "
        "other method; on how many of the data sets one outperforms the other at the 68 % level, by the tests of "
        "the paper's Table 3."
    )
    return _section("The recipe beside the other methods", what, titles, rows)


def _table_3(collected: Collected) -> str:
    methods, rows = collected.plan.methods, []
    for row in methods:
        cells = []
        for column in methods:
            if row == column:
                cells.append("-")
                continue
            low, high, n = wins(collected, row, column)
            paper = published().wins.get(row, {}).get(column)
            cells.append(f"{low}/{high} [{n}]" + ("" if paper is None else f"<br>{paper[0]}/{paper[1]}"))
        rows.append([TITLES[row], *cells])
    what = (
        "On how many data sets the method of the row outperforms that of the column: one-sided paired t-test over the "
        "folds; one-sided binomial test on the test rows that one of the two classifies correctly and the other does "
        "not. In brackets: how many data sets both methods have. Below: the published counts, which are over 31 sets."
    )
    return _section("Table 3: wins at 68 % / 95 %", what, ["", *(TITLES[m] for m in methods)], rows)


def _section(title: str, what: str, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a heading, what a table shows, and the table."""
    return "\n".join([f"## {title}", "", *([what, ""] if what else []), *table(titles, rows)])


def table(titles: Sequence[str], rows: Iterable[Sequence[str]] = ()) -> list[str]:
    """Return the lines of a table from the titles of its columns and the cells of its rows."""
    return [f"| {' | '.join(cells)} |" for cells in (titles, ["---"] * len(titles), *rows)]
