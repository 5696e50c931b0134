"""The command ``milpbn``: its verbs, and the one place that turns their errors into exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import chain
from typing import Any, NoReturn

import click

from milpbn.cli.report import report
from milpbn.version import __version__

#: The verbs by task, the main job first; each is a function in a module of its name.
VERBS = {
    "Learn": ("solve", "bound", "learn", "compare", "stability", "price"),
    "Check": ("verify", "score", "library"),
    "Use a classifier": ("predict", "evaluate", "decide", "monitor", "query", "precision"),
    "Look": ("explain", "plot", "page", "info"),
    "Other programs": ("export", "import_", "convert", "backends"),
    "Data and papers": ("data", "instances", "reproduce"),
    "This installation": ("compile_",),
}
#: Set by the shell when it asks for completions.
_COMPLETING = "_MILPBN_COMPLETE"


class App(click.Group):
    """A group of verbs in which every error becomes one sentence and an exit code (see `report`)."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order they were added, the main job first."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs task by task."""
        width = max(map(len, self.commands))
        for task, modules in VERBS.items():
            with formatter.section(task):
                verbs = [_verb(module) for module in modules]
                rows = [(str(verb.name).ljust(width), verb.get_short_help_str(limit=90)) for verb in verbs]
                formatter.write_dl(rows)

    def main(self, args: Sequence[str] | None = None, *positional: Any, **extra: Any) -> NoReturn:
        """Run and exit, as click does."""
        extra.pop("standalone_mode", None)
        sys.exit(self.run(args, **extra))

    def run(self, args: Sequence[str] | None = None, **extra: Any) -> int:
        """Run the command line, by default that of the process, and return its exit code.

        `extra` is for the click context; ``obj`` is the `time.monotonic` value from which time limits count.
        """
        arguments = list(sys.argv[1:] if args is None else args)
        extra.setdefault("prog_name", "milpbn")
        if _COMPLETING in os.environ:
            from milpbn.cli import bash_completion  # noqa: F401  # takes the place of click's own class
        try:
            return super().main(arguments, standalone_mode=False, **extra) or 0
        except SystemExit:
            return 0  # click exits like this when the reader of stdout, such as `head`, closes the pipe
        except (Exception, KeyboardInterrupt) as error:
            if _COMPLETING in os.environ:  # nothing may be printed beside the user's command line
                return 1
            return report(error, debug="--debug" in arguments)


@click.group(cls=App, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="milpbn", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.pass_context
def app(context: click.Context) -> int | None:
    """Learn the structure of a Bayesian network classifier, with a proven gap.

    \b
    Example:
      milpbn solve table.csv --target class --time-limit 60 --classifier classifier.json
      milpbn evaluate classifier.json test.csv

    For the options of a verb: milpbn VERB --help. Exit codes: 0 a classifier was found (with any gap), 1 an alarm of
    monitor, 2 unusable options or data, 3 no structure was found within the limits, 4 the solver failed, 130
    interrupted before a structure was found.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
    return None


def _verb(module: str) -> click.Command:
    command: click.Command = getattr(import_module(f"milpbn.cli.{module}"), module)
    return command


for _name in chain.from_iterable(VERBS.values()):
    app.add_command(_verb(_name))
