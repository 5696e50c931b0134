"""What the benchmark on raw columns computes: methods on stratified splits of data sets.

It is a module of its own since other processes import it (``--n-jobs``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from raw_methods import methods

from milpbn.data import Table, read_table
from milpbn.data.folds import validation_split
from milpbn.experiments.cells import Cell
from milpbn.experiments.protocol import Part, PartRows, table_hash
from milpbn.experiments.runner import Study, Task

#: The embedded instances that are not among the data sets of the catalog.
EMBEDDED = (
    "monks-1", "monks-2", "monks-3", "tic-tac-toe", "balance-scale", "led-7", "wine", "breast-cancer", "digits",
)  # fmt: skip
#: Embedded instances whose integers are numbers, though there are few of them.
NUMBERS = ("balance-scale", "digits")
#: Methods from cheap to dear, as they are computed.
ORDER = ("naive-bayes", "logistic", "splines", "forest", "boosting", "svm", "readable", "accurate", "ebm")
DEAR = ("accurate", "readable", "ebm")
#: Share of the rows that test, number of splits, and rows times classes of a small data set at most.
TEST_SHARE, REPEATS, SMALL = 0.3, 3, 7000


def with_numbers(table: Table) -> Table:
    """Return a table whose columns are numbers if it is one of `NUMBERS`."""
    if table.name not in NUMBERS:
        return table
    return replace(table, kinds={**table.kinds, **dict.fromkeys(table.features, "continuous")})


@lru_cache(maxsize=64)
def _facts(name: str, data_dir: Path | None) -> tuple[str, int]:
    """Return the hash of a data set, and its rows times classes."""
    whole = with_numbers(read_table(name, data_dir=data_dir))
    return table_hash(whole), whole.n_rows * whole.frame[whole.target].nunique()


@dataclass(frozen=True, kw_only=True)
class RawStudy(Study):
    """Methods on splits of data sets."""

    data: tuple[str, ...]
    methods: tuple[str, ...]
    seconds: float
    repeats: int = REPEATS
    seed: int = 0
    data_dir: Path | None = None
    title: str = "raw"

    def tasks(self) -> list[Task]:
        """Return the tasks on small data sets by split, then those on large ones by method."""
        size = {name: _facts(name, self.data_dir)[1] for name in self.data}
        ordered = sorted(self.data, key=size.__getitem__)
        known = methods(self.seconds)
        chosen = sorted(self.methods, key=ORDER.index)
        parts = [f"split-{k}" for k in range(1, self.repeats + 1)]
        small = [name for name in ordered if size[name] <= SMALL]
        places = []
        for part in parts:  # dear methods go through a data set together, so that they can be compared early
            places += [(d, part, m) for m in chosen if m not in DEAR for d in small]
            places += [(d, part, m) for d in small for m in chosen if m in DEAR]
        places += [(d, p, m) for m in chosen for d in ordered if d not in small for p in parts]
        found = []
        for data, part, name in places:
            one = known[name]
            cell = Cell(data, _facts(data, self.data_dir)[0], part, name, one.options, self.seed, one.budget)
            found.append(Task(data, part, ((cell, one),)))
        return found

    def divided(self, table: Table) -> dict[str, PartRows]:
        """Return the stratified splits by name; their seeds are 1, 2, 3."""
        whole = with_numbers(table)
        classes = np.unique(whole.frame[whole.target].astype(str), return_inverse=True)[1]
        rows = {f"split-{k}": validation_split(classes, TEST_SHARE, k) for k in range(1, self.repeats + 1)}
        return {part: Part(part, whole, *these) for part, these in rows.items()}
