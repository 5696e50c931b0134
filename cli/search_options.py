"""The options of the search: the backend, its limits, the start and the samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from milpbn.cli.sections import SEED, THREADS, given, once, option, option_group
from milpbn.cli.types import COUNT, FILE, NUMBER, SETTING, word

if TYPE_CHECKING:
    from milpbn.solving.options import Options


@dataclass(frozen=True)
class SearchOptions:
    """The options of the search.

    Attributes
    ----------
    options : Options
        How to search. Its start structure and its files are set later, by the verb.
    start : str or None
        File with the structure to start from.
    subset : int or None
        Number of representative samples that the search uses instead of all.
    screen : int or None
        Number of candidate parent sets per variable that screening keeps.
    """

    options: Options
    start: str | None
    subset: int | None
    screen: int | None


#: The shell completes the backends with names of their own, without importing them.
BACKEND = word("name", "auto", "native", "highs", "cbc", "cpsat", "scip")

#: Shared by all verbs that can maximise over a subset of the samples.
SUBSET = option(
    "--subset",
    type=COUNT,
    help="Search over this many weighted, representative samples; the bound then holds for their score only.",
)


#: Shared by all verbs that can search over screened parent sets.
SCREEN = option(
    "--screen",
    type=COUNT,
    metavar="K",
    help="Search over the K most promising candidate parent sets per variable; the bound then holds for these only.",
)


@option_group(
    "Search",
    "search",
    option(
        "--backend",
        type=BACKEND,
        help="native, highs, cbc, cpsat, scip, pulp:NAME, or auto (the default): native for the scores it can bound, "
        "highs for all others.",
    ),
    option(
        "--acyclicity",
        type=word("order|cluster", "order", "cluster"),
        help="How MILP solvers exclude cycles: order rows (the default), or cluster rows as cutting planes.",
    ),
    option("--time-limit", type=NUMBER, metavar="SECONDS", help="For everything, reading included."),
    option(
        "--gap-rel",
        "--gap",
        "gap_rel",
        type=NUMBER,
        help="Stop at this gap relative to the bound.",
    ),
    option("--gap-abs", type=NUMBER, metavar="NATS", help="Stop at this absolute gap."),
    option(*THREADS, "threads", type=COUNT, help="Number of threads; by default all cores."),
    option(*SEED, "random_state", type=COUNT, help="Random seed; default 0."),
    option("--start", type=FILE, help="Structure to start from: arc list, result or classifier file."),
    option(
        "--no-warm-start",
        is_flag=True,
        help="Do not start the MILP solver from the heuristics' best structure.",
    ),
    option("--no-root-bound", is_flag=True, help="Do not compute a root bound before the MILP solver runs."),
    option(
        "--no-reduce",
        is_flag=True,
        help="Give the MILP solver all parent sets, also those that the root bound excludes.",
    ),
    option("--no-merge", is_flag=True, help="Do not merge identical samples."),
    option(
        "--n-best",
        type=COUNT,
        metavar="K",
        help="Find the K best structures, and bound the score of all others; for example --n-best 10.",
    ),
    SUBSET,
    SCREEN,
    option(
        "--solver-option", type=SETTING, multiple=True, help="One of the solver's own parameters; repeatable."
    ),
)
def search_options(
    backend: str | None,
    acyclicity: str | None,
    time_limit: float | None,
    gap_rel: float | None,
    gap_abs: float | None,
    threads: int | None,
    random_state: int | None,
    start: str | None,
    no_warm_start: bool,
    no_root_bound: bool,
    no_reduce: bool,
    no_merge: bool,
    n_best: int | None,
    subset: int | None,
    screen: int | None,
    solver_option: tuple[tuple[str, str], ...],
) -> SearchOptions:
    """Gather the options of the search."""
    from milpbn.problem.screening import Screen
    from milpbn.problem.subset import Subset
    from milpbn.solving.options import Options

    Subset.of(subset)  # refuses an impossible size before the table is read
    Screen.of(screen, subset)
    known = given(
        {
            "backend": backend,
            "acyclicity": acyclicity,
            "time_limit": time_limit,
            "gap_rel": gap_rel,
            "gap_abs": gap_abs,
            "threads": threads,
            "random_state": random_state,
            "n_best": n_best,
        }
    )
    options = Options(
        **known,
        warm_start=not no_warm_start,
        root_bound=not no_root_bound,
        reduce=not no_reduce,
        merge=not no_merge,
        solver_options=once("--solver-option", {}, solver_option),
    )
    return SearchOptions(options, start, subset, screen)
