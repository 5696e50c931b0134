"""``milpbn solve scores.jkl``: the best structure for given local scores, without data."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from milpbn.cli.report import say
from milpbn.cli.sections import typed
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.solving.options import Options

#: Options of the search that have a meaning without data.
PASSED_ON = (
    *("backend", "time_limit", "gap_rel", "gap_abs", "threads", "random_state", "n_best", "within"),
    *("solver_options", "output", "certificate", "trace", "log", "checkpoint", "resume"),
)
#: All such options.
ALLOWED = {*PASSED_ON, "acyclicity", "start", "quiet", "verbose"}


def is_local_scores(source: str | None) -> bool:
    """Whether a source is a file of local scores, by its ending."""
    return source is not None and source.lower().removesuffix(".gz").endswith((".jkl", ".pss"))


def refuse_others(path: str, allowed: Collection[str]) -> None:
    """Refuse options that were given and are not allowed for a file of local scores, with an InputError."""
    refused = [spelling for name, spelling in typed().items() if name not in allowed]
    if refused:
        verb, them = ("is", "it") if len(refused) == 1 else ("are", "them")
        raise InputError(
            f"{', '.join(refused)} {verb} not available for local scores ({path!r}); leave {them} out."
        )


def solve_scores(path: str, options: Options, start: str | None, started: float) -> int:
    """Solve a file of local scores, print the closing block, and return the exit code.

    Raises
    ------
    InputError
        If an option concerns data, a score or a classifier, or the file is unusable.
    """
    refuse_others(path, ALLOWED)

    from milpbn.milp.files.jkl_file import read_jkl
    from milpbn.network import read_structure
    from milpbn.solving.local_scores import describe, scores_name, solve_local_scores

    scores = read_jkl(path)
    result = solve_local_scores(
        scores,
        name=scores_name(path),
        acyclicity=options.acyclicity if "acyclicity" in typed() else "cluster",
        start=None if start is None else read_structure(start, scores.candidates.names),
        verbose=options.verbose,
        started=started,
        **{name: getattr(options, name) for name in PASSED_ON},
    )
    say(describe(result))
    return 0
