"""The options of a search that the command line has, declared once.

This module imports nothing that takes time, since the help of the command line reads it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, ulp

from milpbn.util.options import Range, option

#: Most structures in a list of the best ones.
MOST_LISTED = 1000


@dataclass(frozen=True, kw_only=True)
class DeclaredOptions:
    """How to search, and which files to write; `milpbn.solving.options.Options` describes each option."""

    backend: str = option(
        "auto",
        "native, branch-and-cut, highs, cbc, cpsat, scip, pulp:NAME, or auto (the default): native for sm, sbm and "
        "cll, branch-and-cut for ll, mdl, aic, bdeu and local scores, highs for all others.",
        takes="backend",
    )
    acyclicity: str = option(
        "order",
        "How MILP solvers exclude cycles: order rows (the default), or cluster rows as cutting planes.",
        completes=("order", "cluster"),
        metavar="order|cluster",
    )
    time_limit: float | None = option(
        None,
        "For everything, reading included.",
        metavar="SECONDS",
        range=Range(ulp(0), inf, "The time limit must be a positive number of seconds, got {value}."),
    )
    memory_limit: int | None = None
    gap_rel: float = option(
        0.0,
        "Stop at this gap relative to the bound.",
        spelling=("--gap-rel", "--gap"),
        range=Range(0, inf, "The relative gap at which to stop must be at least {low}, got {value}."),
    )
    gap_abs: float = option(
        0.0,
        "Stop at this absolute gap.",
        metavar="NATS",
        range=Range(0, inf, "The absolute gap at which to stop must be at least {low}, got {value}."),
    )
    gap_se: float = option(
        0.0,
        "Stop when the gap is at most this many standard errors of the score, its estimated standard deviation over "
        "data sets of this size. Example: --gap-se 1",
        metavar="X",
        range=Range(
            0, inf, "The gap in standard errors at which to stop must be at least {low}, got {value}."
        ),
    )
    threads: int | None = option(
        None,
        "Number of threads; by default all cores.",
        spelling=("--threads", "--n-jobs"),
        range=Range(1, 4096, "The number of threads must lie between {low} and {high}, got {value}."),
    )
    workers: int | None = option(
        None,
        "Search in this many processes of one thread on this machine (native backend; extra dask); a process that ends "
        "is replaced. Example: --workers 4",
        metavar="N",
        range=Range(1, 4096, "The number of workers must lie between {low} and {high}, got {value}."),
    )
    dask: object = option(
        None,
        "Search on the workers of a Dask cluster: the address of its scheduler, or its scheduler file (native backend; "
        "extra dask). Example: --dask tcp://node1:8786",
        metavar="ADDRESS|FILE",
        takes="text",
    )
    random_state: int = option(
        0,
        "Random seed; default 0.",
        spelling=("--seed", "--random-state"),
        range=Range(0, 2**31 - 1, "The seed must lie between {low} and {high}, got {value}."),
    )
    start: object = option(
        None, "Structure to start from: arc list, result or classifier file.", file="input"
    )
    warm_start: bool = option(
        True,
        "Do not start the MILP solver from the heuristics' best structure.",
        spelling=("--no-warm-start",),
    )
    root_bound: bool = option(
        True, "Do not compute a root bound before the MILP solver runs.", spelling=("--no-root-bound",)
    )
    root_only: bool = False
    reduce: bool = option(
        True,
        "Give the MILP solver all parent sets, also those that the root bound excludes.",
        spelling=("--no-reduce",),
    )
    merge: bool = option(True, "Do not merge identical samples.", spelling=("--no-merge",))
    n_best: int = option(
        1,
        "Find the K best structures, and bound the score of all others; for example --n-best 10.",
        metavar="K",
        # Every structure is scored from the data, and compared with the others.
        range=Range(
            1, MOST_LISTED, "The number of best structures must lie between {low} and {high}, got {value}."
        ),
    )
    within: float | None = option(
        None,
        "Find all structures whose score is at most this far below the best one; at most --n-best of them, by default "
        f"{MOST_LISTED}. 0 gives all best structures; under bdeu, 3 gives those at most 20 times less probable than "
        "the best. Example: --within 3",
        metavar="NATS",
        range=Range(
            0, inf, "The distance from the best score (--within, within) must be at least {low}, got {value}."
        ),
    )
    solver_options: Mapping[str, str] | None = option(
        dict, "One of the solver's own parameters; repeatable.", spelling=("--solver-option",)
    )
    parameters: str | None = option(
        None,
        "How the classifier's parameters are fitted after the search: relative frequencies (ml, the default of solve; "
        "learners have their own), maximum conditional likelihood (cll), the same but shrunk towards ml (hybrid), "
        "or the log-joint of ml times a factor (temperature). Folds choose their values unless these are given: "
        "cll:10, hybrid:0.5:10, temperature:0.7. Score and bound are always those under ml.",
        completes=("ml", "cll", "hybrid", "temperature"),
        metavar="ml|cll|hybrid|temperature",
    )
    monotone: object = None
    costs: object = None
    output: str | os.PathLike[str] | None = option(
        None, "The result as JSON (result.json), kept up to date while the search runs.", file="output"
    )
    trace: str | os.PathLike[str] | None = option(
        None, "Incumbent and bound at every change, as JSON lines.", file="output"
    )
    certificate: str | os.PathLike[str] | None = option(
        None, "The proof of the bound, for milpbn verify (backends native and branch-and-cut).", file="output"
    )
    checkpoint: str | os.PathLike[str] | None = option(
        None,
        "The state of the search, kept up to date (backends native and branch-and-cut). If FILE exists, the search "
        "goes on from it, also with another time limit or number of threads; so the same command begins and goes on.",
        file="output",
    )
    resume: bool = option(False, "Go on from --checkpoint; refuse to begin anew if there is none.")
    log: str | os.PathLike[str] | None = option(None, "The MILP solver's own log.", file="output")
