"""Tables of R packages on raw columns: `accurate` beside boosting and EBM, as on the page results/unseen.

    python benchmarks/r_tables.py --tables FOLDER [--methods ebm] [--cells FOLDER]

FOLDER has Ecdat/Mroz.csv and so on (of pydataset 0.2.0, resources/rdata/csv). The figures in `r_tables.json` and the
page's table are made anew from all cells, which are kept, so that a run goes on. `accurate` has no exact search.
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
from milpbn.network.additive import learning
from milpbn.network.additive.choice import Sources
from milpbn.network.additive.interactions import Room
from milpbn.network.additive.model import Additive
from milpbn.network.margins import log_posterior
from milpbn.problem.scores.spec import Score
from milpbn.solving.accurate import score_of_recipe, widest
from milpbn.util.budget import Budget

METHODS = ("accurate", "boosting", "ebm")


def too_long(*_: object) -> None:
    """End a fit of EBM, after 45 s of CPU."""
    raise TimeoutError


def read(about: dict[str, Any], folder: Path) -> Table:
    """Return a table: its class may be terciles of a number or whether a count is above 0."""
    frame = pd.read_csv(folder / f"{about['table']}.csv").drop(columns=about["left_out"])
    frame = frame.drop(columns=[name for name in frame.columns[:1] if name.startswith("Unnamed")])
    target, _, how = about["class"].partition(" ")
    frame = frame[frame[target].notna()]
    if how == "in terciles":
        frame[target] = pd.qcut(frame[target], 3, labels=["low", "mid", "high"])
    elif how:
        frame[target] = np.where(frame[target] > 0, "yes", "no")
    frame = frame.sample(1600, random_state=0).sort_index() if len(frame) > 1600 else frame
    frame[target] = frame[target].astype(str)
    frame = frame[frame.groupby(target)[target].transform("size") > 3].reset_index(drop=True)
    return read_table(frame, target=target, missing="state")


def cell(table: Table, name: str, method: str) -> dict[str, Any]:
    """Return the figures of a method on the test rows of a split."""
    classes = np.unique(table.frame[table.target].astype(str), return_inverse=True)[1]
    part = Part(name, table, *validation_split(classes, TEST_SHARE, int(name.removeprefix("split-"))))
    if method != "accurate":
        signal.setitimer(signal.ITIMER_PROF, 45.0 if method == "ebm" else 0.0)
        found = methods(0.0)[method].run(MethodInput(part, 0, 1, {}))
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        return dict(found)
    score = score_of_recipe(Score(), ())
    room = Room(widest(score, len(table.features), len(part.train_rows), 120.0))
    chosen = learning.choose_model(part.training, sources=Sources(None, room), budget=Budget(300.0))
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
    """Compute what is missing, and print the table."""
    made = parser(__doc__, data=None, output=RESULTS / "unseen" / "r_tables.json")
    made.add_argument("--tables", type=Path, required=True, help="folder of the packages' tables")
    made.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    made.add_argument("--cells", type=Path, default=Path("r_cells"), help="folder of the cells")
    options = made.parse_args()
    about, found = read_results(options.output), dict[Any, list[Any]]()
    signal.signal(signal.SIGPROF, too_long)
    for split, method, name in product(range(1, REPEATS + 1), METHODS, about):
        part = f"split-{split}"
        file = options.cells / f"{name}.{part}.{method}.json"
        if method in options.methods and not file.exists():
            try:
                write_results(file, cell(read(about[name], options.tables), part, method))
            except TimeoutError:
                print(f"{name}, {part}: {method} takes more than 45 s")
        if one := read_results(file):
            figures = Figures.from_dict(one["figures"])
            own = {"log_loss": figures.log_loss, "accuracy": figures.accuracy, "ece": one["ece"]}
            about[name]["splits"].setdefault(part, {})[method] = {k: round(v, 6) for k, v in own.items()}
            values = [figures.correct, 100 * figures.accuracy, figures.log_loss, figures.brier]
            found[name, method, part] = [*values, 100 * one["ece"], np.nan, np.nan]
    write_results(options.output, about)
    index = pd.MultiIndex.from_tuples(found, names=["data", "method", "part"])
    cells = pd.DataFrame([*found.values()], index, ["correct", *FORMATS])
    print("\n".join(line(cells, other) for other in METHODS[1:]))


if __name__ == "__main__":
    main()
