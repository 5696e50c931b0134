"""Kills workers of a study at random moments; its tables must be those of one process.

    python benchmarks/study_kills.py [--kills 10] [--seed 0]

Two workers on this machine run a comparison over folds, and bootstraps, of an embedded data set. Whenever so many cells
are finished as was drawn before, a worker is drawn, and killed (SIGKILL) up to half a second later.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from common import RESULTS, write_results
from distributed import Client

import milpbn
from milpbn.distributed.clusters import connected
from milpbn.learners.base import Control
from milpbn.learners.repeated import compare_over_folds

OUTPUT = RESULTS / "study_kills.json"
DATA, FOLDS, REPEATS, SAMPLES = "monks-1", 5, 2, 40
LEARNERS = ("sm", "tan", "naive-bayes", "logistic")


class Killer:
    """Kills workers; called with a line of progress after every cell.

    Attributes
    ----------
    killed : list of int
        Number of finished cells at each kill.
    """

    def __init__(self, client: Client, cells: int, kills: int, rng: random.Random) -> None:
        self._client, self._rng = client, rng
        self._after = set(rng.sample(range(1, cells - 1), kills))
        self._seen, self.killed = 0, list[int]()

    def __call__(self, line: str) -> None:
        """Count a finished cell."""
        self._seen += 1
        if self._seen in self._after:
            threading.Timer(self._rng.uniform(0.0, 0.5), self._kill, (self._seen,)).start()

    def _kill(self, after: int) -> None:
        found: dict[str, int] = self._client.run(os.getpid, on_error="ignore")
        with suppress(IndexError, ProcessLookupError):  # none has started again yet
            os.kill(self._rng.choice(sorted(found.values())), signal.SIGKILL)
            self.killed.append(after)


def comparison(dask: object, report: Callable[[str], None]) -> Any:
    """Return the figures of a comparison, without times."""
    control = Control(random_state=1, report=report)
    found = compare_over_folds(
        milpbn.read_table(DATA), FOLDS, REPEATS, LEARNERS, score={"p": 0.9}, control=control, dask=dask
    )
    return without_seconds(found.to_dict())


def bootstrap(dask: object, report: Callable[[str], None]) -> Any:
    """Return runs and counts of bootstraps, without times."""
    found = milpbn.stability(
        DATA, milpbn.Score(p=0.9), samples=SAMPLES, time_limit_each=None, dask=dask, report=report
    )
    runs = {number: (run.structure, run.objective, run.bound) for number, run in found.runs.items()}
    return dict(sorted(runs.items())), found.shares()


def without_seconds(values: Any) -> Any:
    """Return JSON values without times."""
    if isinstance(values, dict):
        return {key: without_seconds(value) for key, value in values.items() if key != "seconds"}
    return [without_seconds(value) for value in values] if isinstance(values, list | tuple) else values


def main() -> None:
    """Run both studies in this process and on workers that are killed, and write whether they are the same."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--kills", type=int, default=10, help="kills in each study")
    made.add_argument("--seed", type=int, default=0)
    options = made.parse_args()
    rng, results = random.Random(options.seed), {"data": DATA, "seed": options.seed}
    with connected(2, None) as client:
        client.wait_for_workers(2)
        for study, cells in ((comparison, FOLDS * REPEATS * len(LEARNERS)), (bootstrap, SAMPLES)):
            alone = study(None, lambda line: None)
            killer, began = Killer(client, cells, options.kills, rng), time.monotonic()
            same = study(client, killer) == alone
            results[study.__name__] = {
                "cells": cells,
                "kills": len(killer.killed),
                "after_cells": killer.killed,
                "same_table": same,
                "seconds": round(time.monotonic() - began, 1),
            }
            print(study.__name__, results[study.__name__], flush=True)
            write_results(OUTPUT, results)


if __name__ == "__main__":
    main()
