"""Regret to Bayes: how much worse than the true posterior learners predict rows that published networks generate.

    python benchmarks/regret.py [child alarm] [--data-dir DIR] [--sizes 200 2000] [--methods readable ebm]
    python benchmarks/regret.py --page

Networks are the .bif.gz files of pgmpy's example models; --data-dir is by default that folder of the installed package.
Cells are kept under --output; a run that is killed goes on where it stopped, with small samples first.
"""

from __future__ import annotations

import gzip
import time
from functools import lru_cache
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from certified import Matrix, of_test_rows, solved
from common import RESULTS, errors_as_sentences, parse, parser, write_page
from matplotlib.figure import Figure
from raw import table_of
from raw_methods import rows_of

from milpbn.data import read_table
from milpbn.experiments.page import read_remarks
from milpbn.experiments.protocol import Part
from milpbn.learners.base import Control
from milpbn.learners.generative.forests import NaiveBayes, Tan
from milpbn.learners.raw_peers import Ebm, RawBoosting, RawLogistic, RawPeer
from milpbn.network.formats.bif import from_bif
from milpbn.trials.store import ARCHIVE, Store

#: Networks and the variable that is predicted.
NETWORKS = {
    "child": "Disease", "alarm": "HYPOVOLEMIA", "hepar2": "PBC", "insurance": "Accident", "hailfinder": "PlainsFcst",
    "water": "CNOD_12_30", "win95pts": "NtwrkCnfg", "andes": "NEED36", "munin1": "R_LNLW_MED_PATHO",
    "pathfinder": "Fault",
}  # fmt: skip
SIZES, TEST = (200, 500, 2000, 5000, 20_000, 50_000), 10_000
RAW: dict[str, RawPeer] = {"logistic": RawLogistic(), "boosting": RawBoosting(), "ebm": Ebm()}
METHODS = ("nb", "tan", "plain", "readable", "accurate", *RAW)


@lru_cache(maxsize=1)
def world(name: str, folder: Path) -> tuple[pd.DataFrame, Matrix, list[str]]:
    """Return training rows for the largest sample and the test rows, the posterior of the latter, its classes."""
    truth = from_bif(gzip.decompress((folder / f"{name}.bif.gz").read_bytes()).decode(), NETWORKS[name])
    sample = truth.sample(max(SIZES) + TEST, random_state=1)
    frame = "s" + pd.DataFrame(sample.labels, columns=sample.names).astype(str)  # "None" is no missing value
    return frame, truth.predict_proba(sample)[-TEST:], [f"s{label}" for label in truth.classes]


def predicted(name: str, part: Part, seconds: float) -> tuple[list[str], Matrix]:
    """Return labels and the probabilities of the test rows."""
    if name in RAW:
        rows, test = rows_of(part)
        model = RAW[name].fitted(rows)[0]
        labels = part.train.variables[-1].states
        return [labels[k] for k in model.classes_], model.predict_proba(test)
    if name in ("nb", "tan"):
        learner = NaiveBayes() if name == "nb" else Tan()
        return of_test_rows(learner.fit(part.train, Control(random_state=0, n_jobs=1)).predictor, part)
    return of_test_rows(solved(part, name, seconds).classifier, part)


def cell(data: str, size: int, name: str, options: Any) -> dict[str, Any]:
    """Return the mean over the test rows of sum_c p(c) log(p(c) / q(c)), in nats, its standard error, and more."""
    frame, p, states = world(data, options.data_dir)
    chosen = pd.concat([frame.iloc[:size], frame.iloc[-TEST:]], ignore_index=True)
    target = NETWORKS[data]
    table = read_table(chosen, target=target, nominal=[column for column in chosen if column != target])
    part = Part(f"{size}", table, np.arange(size), np.arange(size, size + TEST))
    began, work = time.monotonic(), time.process_time()
    labels, found = predicted(name, part, options.time_limit)
    taken = {"seconds": time.process_time() - work, "wall": time.monotonic() - began}
    q = np.zeros_like(p)
    q[:, [states.index(label) for label in labels]] = found
    log_p, log_q = (np.log(np.maximum(values, np.finfo(float).eps)) for values in (p, q))
    each = np.sum(p * (log_p - log_q), axis=1)
    about = {"regret": each.mean(), "error": each.std() / TEST**0.5, "bayes": -(p * log_p).sum(axis=1).mean()}
    about["accuracy lost"] = 100 * (p.max(axis=1) - p[np.arange(TEST), q.argmax(axis=1)]).mean()
    about |= {"limit": options.time_limit, "classes": len(states), "columns": chosen.shape[1] - 1}
    return {"data": data, "rows": size, "method": name, **about, **taken}


def draw(cells: pd.DataFrame, path: Path) -> None:
    """Draw the regrets over the numbers of training rows, a panel for every network."""
    networks = cells["data"].unique()
    figure = Figure(figsize=(10, 1 + 2.6 * -(-len(networks) // 3)), layout="constrained")
    for k, data in enumerate(networks):
        panel = figure.add_subplot(-(-len(networks) // 3), 3, k + 1, xscale="log", yscale="log")
        panel.set(title=f"{data}: {NETWORKS[data]}", xlabel="training rows", ylabel="regret, nats")
        for name in METHODS:
            own = cells[(cells["data"] == data) & (cells["method"] == name)]
            panel.errorbar(own["rows"], own["regret"], own["error"], label=name, fmt="o-", ms=3, lw=1)
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=len(METHODS))
    figure.savefig(path, metadata={"Date": None})


def page(cells: pd.DataFrame) -> list[str]:
    """Return the tables: the networks, mean regrets by size, and every sample."""
    names = [name for name in METHODS if name in set(cells["method"])]
    about = cells.groupby("data", sort=False)[["columns", "classes", "bayes"]].first()
    by_size = cells.pivot_table(index=["rows", "data"], columns="method", values="regret")[names].groupby(
        level="rows"
    )
    means = by_size.agg(lambda regrets: np.exp(np.log(regrets).mean(skipna=False))).assign(
        networks=by_size.size()
    )
    title = "## Geometric mean of the regrets in nats, of the methods that have all networks"
    sections = [table_of("## Networks", about, ".4g"), table_of(title, means, ".3g")]
    cells = cells.assign(sample=cells["data"] + ", " + cells["rows"].astype(str))
    for figure, form in (("regret", ".4f"), ("error", ".4f"), ("accuracy lost", ".2f"), ("seconds", ".0f")):
        table = cells.pivot_table(index="sample", columns="method", values=figure, sort=False)[names]
        sections.append(table_of(f"## {figure} by network and training rows", table, form))
    return sections


def main() -> None:
    """Compute what is missing, and write the page."""
    made = parser(__doc__, data=tuple(NETWORKS), names="networks", output=RESULTS / "regret", time_limit=20.0)
    made.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="NAME")
    made.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), choices=SIZES, metavar="ROWS")
    made.add_argument("--page", action="store_true", help="compute nothing")
    if (spec := find_spec("pgmpy")) is not None and spec.origin is not None:
        made.set_defaults(data_dir=Path(spec.origin).parent / "utils" / "example_models")
    options = parse(made, tuple(NETWORKS))
    if options.data_dir is None:
        made.error("install pgmpy, or name the folder of the .bif.gz files with --data-dir")
    store = Store(options.output / ARCHIVE)
    with errors_as_sentences():
        for size, data, name in () if options.page else product(options.sizes, options.data, options.methods):
            key = f"{name} {data} {size}"
            if key not in store:
                store.add({key: cell(data, size, name, options)})
                print(key, {n: round(store[key][n], 4) for n in ("regret", "error", "wall")}, flush=True)
        order = {name: k for k, name in enumerate(NETWORKS)}
        cells = pd.DataFrame(list(store.values())).sort_values(
            ["data", "rows"], key=lambda v: v.replace(order)
        )
        draw(cells, options.output / "regret.svg")
        picture = "![Regret over training rows](regret.svg)"
        write_page(options.output, [read_remarks(options.output), picture, *page(cells)])


if __name__ == "__main__":
    main()
