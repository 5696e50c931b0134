"""``milpbn solve scores.jkl``: the best structure for given local scores, without data."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import click

from milpbn.cli.sections import SectionedOption, typed
from milpbn.cli.steps import show_stages
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.problem.local import LocalDataset

#: Sections of the help whose options have a meaning without data, and the options in them that have none.
SECTIONS = ("Search", "Constraints", "Output")
WITHOUT = {"gap_se", "merge", "subset", "screen", "workers", "dask", "classifier"}


def is_local_scores(source: str | None) -> bool:
    """Whether a source is a file of local scores, by its ending."""
    return source is not None and source.lower().removesuffix(".gz").endswith((".jkl", ".pss"))


def refuse_others(path: str, allowed: Collection[str | None]) -> None:
    """Refuse options that were given and are not allowed for a file of local scores, with an InputError."""
    refused = [spelling for name, spelling in typed().items() if name not in allowed]
    if refused:
        verb, them = ("is", "it") if len(refused) == 1 else ("are", "them")
        raise InputError(
            f"{', '.join(refused)} {verb} not available for local scores ({path!r}); leave {them} out."
        )


def read_scores(path: str, began: float, time_limit: float | None, *, quiet: bool) -> LocalDataset:
    """Show stages, and return what stands for the data of a file of local scores; the time limit counts from `began`.

    Raises InputError if the file is unusable, or an option of the verb concerns data, a score or a classifier.
    """
    known = (one for one in click.get_current_context().command.params if isinstance(one, SectionedOption))
    refuse_others(path, {one.name for one in known if one.section.startswith(SECTIONS)} - WITHOUT)

    from milpbn.solving.local_scores import local_dataset
    from milpbn.util.budget import Budget

    show_stages(began, quiet=quiet)
    return Budget(time_limit, began=began).before(lambda: local_dataset(path), "the local scores were read")
