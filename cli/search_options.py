"""The options of the search: the backend, its limits, the start and the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from milpbn.cli.declared import options_of
from milpbn.cli.sections import Addable, given, once, option, option_group
from milpbn.cli.types import COUNT, FILE, SETTING
from milpbn.solving.declared import DeclaredOptions

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


def of_search(*names: str, **changed: Any) -> list[Addable]:
    """Return options that `DeclaredOptions` declares; settings that differ from the declaration by name."""
    return options_of(DeclaredOptions, names, **changed)


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
#: Shared by the verbs that return classifiers.
(PARAMETERS,) = of_search("parameters")
CLASSIFIER = option(
    "--classifier",
    type=FILE,
    help="The classifier as JSON, for predict, evaluate, query, explain and others.",
)
#: Shared by the verbs that print notes and progress.
QUIET = option("-q", "--quiet", is_flag=True, help="No notes and no progress on stderr.")


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
        "backend", "acyclicity", "time_limit", "gap_rel", "gap_abs", "threads", "random_state", "start"
    ),
    *of_search("warm_start", "root_bound", "reduce", "merge", "n_best"),
    SUBSET,
    SCREEN,
    *of_search("solver_options", solver_options={"type": SETTING, "multiple": True, "default": ()}),
)(gather)
