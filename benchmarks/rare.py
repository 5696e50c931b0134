"""The recipes on tables with a rare class, beside logistic regression and boosting as scikit-learn has them.

    python benchmarks/rare.py --data-dir DIR [--time-limit SECONDS] [--methods NAME ...] [--page] [TABLE ...]

Six real tables have one class against all others, whose rows are left out until it has 2, 5 or 10 % of all; half of the
rows train. Six tables are generated: 2,000 rows train and 20,000 test. A cell is a method on a table with a seed;
cells that the archive has are not computed again.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import RESULTS, errors_as_sentences, parse, parser
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import milpbn
from milpbn.trials.store import ARCHIVE, Store
from milpbn.util.atomic import atomic_write_text

TARGET = "rare"
#: Rows of a real table and of a generated one that train, at most, and generated rows that test.
MOST, TRAIN, TEST = 2500, 2000, 20_000
#: Real tables: the class that becomes rare, and its share.
REAL = {
    "adult": (1, 0.02),
    "waveform-21": (0, 0.02),
    "letter": (7, 0.05),
    "segment": (6, 0.05),
    "nursery": (3, 0.1),
    "satimage": (3, 0.1),
}
GENERATED = {
    f"{kind} {share:.0%}": (kind, share) for kind in ("additive", "steps", "pairs") for share in (0.02, 0.08)
}
FIGURES = {"roc_auc": "ROC-AUC", "average_precision": "average precision", "log_loss": "log-loss"}

Rows = tuple[pd.DataFrame, pd.DataFrame]


def real(name: str, seed: int, folder: Path) -> Rows:
    """Return training and test rows of a real table."""
    k, share = REAL[name]
    rng = np.random.default_rng(seed)
    frame = pd.read_csv(folder / f"{name}.csv.gz")
    target = frame.columns[-1]
    labels = sorted(frame[target].unique())
    is_rare = (frame[target] == labels[k]).to_numpy()
    own, others = (rng.permutation(np.flatnonzero(mask)) for mask in (is_rare, ~is_rare))
    others = others[: round(2 * MOST * (1 - share))]
    own = own[: round(len(others) * share / (1 - share))]
    frame = frame.drop(columns=target).assign(**{TARGET: np.where(is_rare, "yes", "no")})
    halves = [np.concatenate([rows[half::2] for rows in (own, others)]) for half in (0, 1)]
    return frame.iloc[halves[0]].reset_index(drop=True), frame.iloc[halves[1]].reset_index(drop=True)


def generated(name: str, seed: int) -> Rows:
    """Return training and test rows of a world of twelve numbers, of which some matter, and four nominal features."""
    kind, share = GENERATED[name]
    rng = np.random.default_rng([seed, len(kind), round(100 * share)])
    n = TRAIN + TEST
    x = rng.normal(size=(n, 12)) + 0.5 * rng.normal(size=(n, 1))
    nominal = rng.integers(0, 4, (n, 4))
    effects = rng.normal(size=(4, 4))
    score = effects[0][nominal[:, 0]] + effects[1][nominal[:, 1]]
    if kind == "additive":
        score = score + x[:, :6] @ rng.normal(size=6)
    elif kind == "steps":
        score = (
            score + 2.0 * (np.abs(x[:, 0]) > 1.2) - 1.5 * (np.abs(x[:, 1] - 0.5) < 0.7) + np.sin(2 * x[:, 2])
        )
    else:
        score = score + 1.5 * np.sign(x[:, 0] * x[:, 1]) + 1.5 * (x[:, 2] > 0) * (nominal[:, 2] > 1) + x[:, 3]
    lows, highs = -30.0, 30.0
    for _ in range(60):  # the constant with which the class has its share
        constant = (lows + highs) / 2
        lows, highs = (
            (lows, constant) if (1 / (1 + np.exp(-score - constant))).mean() > share else (constant, highs)
        )
    y = rng.random(n) < 1 / (1 + np.exp(-score - constant))
    columns = {f"x{i}": x[:, i] for i in range(12)} | {
        f"n{i}": np.array(list("abcd"))[nominal[:, i]] for i in range(4)
    }
    frame = pd.DataFrame(columns).assign(**{TARGET: np.where(y, "yes", "no")})
    return frame[:TRAIN].reset_index(drop=True), frame[TRAIN:].reset_index(drop=True)


def recipe(name: str) -> Callable[..., Any]:
    """Return a method that fits a recipe."""

    def fit(train: pd.DataFrame, test: pd.DataFrame, seconds: float, seed: int) -> tuple[Any, str]:
        result = milpbn.solve_selected(
            milpbn.read_table(train, target=TARGET, missing="state"),
            recipe=name,
            time_limit=seconds,
            threads=1,
            random_state=seed,
            verbose=False,
        )
        classifier = result.classifier
        assert classifier is not None
        found = classifier.predict_proba(test.drop(columns=TARGET))[:, classifier.classes.index("yes")]
        chosen = result.selection
        return (
            found,
            "" if chosen is None else f"{chosen.protocol}: {chosen.max_parents} {dict(chosen.options)}",
        )

    return fit


def logistic(train: pd.DataFrame, test: pd.DataFrame, seconds: float, seed: int) -> tuple[Any, str]:
    """Return the probabilities of a logistic regression whose penalty folds choose by log-loss."""
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    model = make_pipeline(columns, LogisticRegressionCV(scoring="neg_log_loss", max_iter=2000))
    model.fit(train.drop(columns=TARGET), train[TARGET] == "yes")
    return model.predict_proba(test.drop(columns=TARGET))[:, 1], ""


def boosting(train: pd.DataFrame, test: pd.DataFrame, seconds: float, seed: int) -> tuple[Any, str]:
    """Return the probabilities of gradient boosting with the settings that scikit-learn has."""
    nominal = make_column_selector(dtype_exclude="number")
    columns = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), nominal),
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    names = nominal(train.drop(columns=TARGET))
    model = make_pipeline(
        columns, HistGradientBoostingClassifier(categorical_features=names, random_state=seed)
    )
    model.fit(train.drop(columns=TARGET), train[TARGET] == "yes")
    return model.predict_proba(test.drop(columns=TARGET))[:, 1], ""


METHODS = {
    "logistic": logistic,
    "boosting": boosting,
    "readable": recipe("readable"),
    "accurate": recipe("accurate"),
}


def cell(method: str, table: str, seed: int, options: Any) -> dict[str, Any]:
    """Return the figures of a method on a table."""
    train, test = generated(table, seed) if table in GENERATED else real(table, seed, options.data_dir)
    began = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, note = METHODS[method.partition(" (")[0]](train, test, options.time_limit, seed)
    y = (test[TARGET] == "yes").to_numpy()
    return {
        "method": method,
        "table": table,
        "seed": seed,
        "time_limit": options.time_limit,
        "seconds": round(time.monotonic() - began, 1),
        "train": [len(train), int((train[TARGET] == "yes").sum())],
        "test": [len(test), int(y.sum())],
        "roc_auc": float(roc_auc_score(y, found)),
        "average_precision": float(average_precision_score(y, found)),
        "log_loss": float(log_loss(y, np.clip(found, 1e-15, 1 - 1e-15))),
        "note": note,
    }


ABOUT = """# Tables with a rare class

This page is written by `benchmarks/rare.py --data-dir DIR`; the cells are in `cells.jsonl.gz`, each with rows, seconds
and what was chosen.

- **Tables:** six real ones with one class against all others, whose rows are left out until it has 2 % (adult,
  waveform-21), 5 % (letter, segment) or 10 % (nursery, satimage); half of the rows train. Six generated ones with 2 or
  8 %: the log-odds are a sum (additive), have steps and waves (steps), or products of two columns (pairs). One seed.
- **logistic:** `LogisticRegressionCV` by log-loss on standardised numbers and indicators. **boosting:**
  `HistGradientBoostingClassifier` with its defaults and native categories.
- **accurate:** `solve --recipe accurate --time-limit 60`, before it had interactions beyond a forest.
- **readable:** `--recipe readable` with 30 s and with 120 s. **readable (before)** is that of b0827a65 with 30 s:
  one validation set of 20 %, and the best value alone.
  One thread each, on two cores with a load of about ten, so that these limits are short.

"""


def page(cells: list[dict[str, Any]]) -> str:
    """Return means over the tables that every method has, differences of the recipes, and each table's figures."""
    frame = pd.DataFrame(cells).drop_duplicates(["method", "table", "seed"], keep="last")
    methods = [*dict.fromkeys(frame["method"])]
    by_table = frame.pivot_table(index="table", columns="method", values=list(FIGURES)).dropna()
    rows = frame.drop_duplicates("table").set_index("table")["train"]
    line = "| " + " | ".join(["", *FIGURES.values()]) + " |\n|---" + "|---" * len(FIGURES) + "|\n"
    text = f"Means over {len(by_table)} tables:\n\n" + line
    for method in methods:
        text += f"| {method} | " + " | ".join(f"{by_table[f][method].mean():.4f}" for f in FIGURES) + " |\n"
    text += "\nDifferences, with the standard error over the tables:\n\n" + line
    for ours, theirs in product(methods[2:], methods[:2]):
        differences = [by_table[f][ours] - by_table[f][theirs] for f in FIGURES]
        shown = (f"{d.mean():+.4f} ({d.std(ddof=1) / len(d) ** 0.5:.4f})" for d in differences)
        text += f"| {ours} - {theirs} | " + " | ".join(shown) + " |\n"
    for f, title in FIGURES.items():
        text += f"\n| {title} | training rows, of the class | " + " | ".join(methods) + " |\n"
        text += "|---|---|" + "---|" * len(methods) + "\n"
        for table, own in by_table[f].iterrows():
            values = " | ".join(f"{own[method]:.3f}" for method in methods)
            text += f"| {table} | {rows[table][0]}, {rows[table][1]} | {values} |\n"
    return ABOUT + text


def main() -> None:
    """Compute the cells that are missing, and print the tables of the page."""
    tables = (*REAL, *GENERATED)
    arguments = parser(
        __doc__, data=tables, names="tables", output=RESULTS / "rare" / ARCHIVE, time_limit=30.0
    )
    arguments.add_argument("--methods", nargs="+", default=list(METHODS))
    arguments.add_argument("--seeds", type=int, default=1)
    arguments.add_argument("--page", action="store_true", help="Compute nothing.")
    options = parse(arguments, tables)
    store = Store(options.output)
    with errors_as_sentences():
        for seed in range(options.seeds):
            for table in () if options.page else options.data:
                for method in options.methods:
                    key = f"{method} {table} {seed}"
                    if key not in store:
                        store.add({key: cell(method, table, seed, options)})
                        print(store[key], flush=True)
        shown = page([store[key] for key in store])
        print(shown)
        atomic_write_text(options.output.parent / "README.md", shown)


if __name__ == "__main__":
    main()
