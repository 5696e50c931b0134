"""The options of the search: the backend, its limits, the start and the samples; and options that many verbs have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from milpbn.cli.declared import options_of
from milpbn.cli.sections import Addable, flag, given, once, option, option_group
from milpbn.cli.types import COUNT, OUTPUT, SETTING, SIZE, STREAM
from milpbn.solving.declared import DeclaredOptions
from milpbn.util.memory import LEAST, limited

if TYPE_CHECKING:
    from milpbn.solving.options import Options


@dataclass(frozen=True)
class SearchOptions:
    """How to search, the file of the start structure, and the sizes of a subset and of screening.

    The verb sets the start structure and the files of `options` later.
    """

    options: Options
    start: str | None
    subset: int | None
    screen: int | None


def of_search(*names: str, **changed: Any) -> list[Addable]:
    """Return options that `DeclaredOptions` declares; settings that differ from the declaration by name."""
    streams = {name: {"type": STREAM} for name in ("trace", "log") if name in names}
    return options_of(DeclaredOptions, names, **streams, **changed)


#: Help of --dask for verbs that spread searches, not the nodes of one search.
DASK = (
    "{} on the workers of a Dask cluster, each with one thread: the address of its scheduler, or its scheduler file "
    "(extra dask). Example: --dask tcp://node1:8786"
)
#: Shared by all verbs that can maximise over a subset of the samples.
SUBSET = option(
    "--subset",
    COUNT,
    "Search over this many weighted, representative samples, and bound the score over all of them afterwards.",
)
#: Shared by all verbs that can search over screened parent sets.
SCREEN = option(
    "--screen",
    COUNT,
    "Search over the K most promising candidate parent sets per variable; the bound then holds for these only.",
    metavar="K",
)
#: Shared by the verbs that return classifiers.
(PARAMETERS,) = of_search("parameters")
CLASSIFIER = option(
    "--classifier", OUTPUT, "The classifier as JSON, for predict, evaluate, query, explain and others."
)
#: Shared by the verbs that print notes and progress, and by those that print notes only.
QUIET = flag("-q --quiet", "No notes and no progress on stderr.")
NO_NOTES = flag("-q --quiet", "No notes on stderr.")


#: Limits the memory of a verb until it ends, whatever the verb does. The limit is no argument of the verb.
MEMORY_LIMIT = option(
    "--memory-limit",
    SIZE,
    f"For the process and its child processes, at least {LEAST // 2**20}MiB, for example 4GiB. Near it, the run "
    "stops with what it has found.",
    metavar="SIZE",
    expose_value=False,
    callback=lambda context, parameter, most: context.with_resource(limited(most)),
)


def gather(
    solver_options: Sequence[tuple[str, str]] = (),
    start: str | None = None,
    subset: int | None = None,
    screen: int | None = None,
    **options: Any,
) -> SearchOptions:
    """Gather the options of the search, and refuse impossible numbers before the table is read."""
    from milpbn.problem.screening import Screen
    from milpbn.problem.subset import Subset
    from milpbn.solving.options import Options

    Subset.of(subset)
    Screen.of(screen, subset)
    own = once("--solver-option", {}, solver_options)
    return SearchOptions(Options(**given(**options), solver_options=own), start, subset, screen)


search_options = option_group(
    "Search",
    "search",
    *of_search(
        *("backend", "acyclicity", "time_limit", "gap_rel", "gap_abs", "gap_se"),
        *("threads", "workers", "dask", "random_state", "start"),
    ),
    *of_search("warm_start", "root_bound", "reduce", "merge", "n_best", "within"),
    SUBSET,
    SCREEN,
    *of_search("solver_options", solver_options={"type": SETTING, "multiple": True, "default": ()}),
)(gather)
