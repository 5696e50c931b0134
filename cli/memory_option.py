"""The option that limits the memory of a verb, whatever the verb does."""

from __future__ import annotations

import click

from milpbn.cli.sections import option
from milpbn.cli.types import SIZE
from milpbn.util.memory import LEAST, limited


def _limit(context: click.Context, parameter: click.Parameter, most: int | None) -> None:
    context.with_resource(limited(most))


#: A decorator for verbs; its argument is the section of the help with the option. The limit holds until the verb ends.
memory_limit = option(
    "--memory-limit",
    type=SIZE,
    metavar="SIZE",
    expose_value=False,
    callback=_limit,
    help=f"For the process and its child processes, at least {LEAST // 2**20}MiB, for example 4GiB. Near it, the run "
    "stops with what it has found.",
)
