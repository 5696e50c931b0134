"""Options of a learner on the command line, built from the fields of its dataclass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import Field, fields
from typing import Any

import click

from milpbn.cli.declared import declared_option
from milpbn.cli.outputs import named_files
from milpbn.cli.sections import Addable, Verb, given, option, option_group
from milpbn.errors import InputError
from milpbn.util.options import declared, spelling, types_of


def learner_options(learner: type[Any]) -> Callable[[Verb], Verb]:
    """Return a decorator that adds the options of a learner to a verb, as its argument ``options``.

    The argument maps fields to the values that were given; all other fields keep the learner's defaults. A bool becomes
    a pair of flags.
    """
    own = (_option(learner, item) for item in declared(learner) if item.init)
    return option_group("Learner", "options", *own)(given)


def read_options(
    learner: type[Any], words: Sequence[tuple[str, str]]
) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
    """Return a learner's options, parsed as `learner_options` parses them, and the files that they name.

    The words are names and values. A name is written as on the command line without its leading dashes, or as in
    Python. The value of a flag is yes or no. Raise InputError, whose sentence names the option, if the learner has no
    such option, or its value cannot be parsed.
    """

    @click.command(add_help_option=False)
    @learner_options(learner)
    def gather(options: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
        return options, named_files()

    flags = {name for p in gather.params if getattr(p, "is_flag", False) for name in p.opts}
    arguments = []
    for name, value in ((name.rstrip("_").replace("_", "-"), value) for name, value in words):
        if f"--{name}" not in flags:
            arguments += [f"--{name}", value]
        elif value in ("yes", "no"):
            arguments.append(f"--{name}" if value == "yes" else f"--no-{name}")
        else:
            raise InputError(f"{learner.name}.{name} is yes or no, got {value!r}.")
    try:
        return gather.main(arguments, standalone_mode=False)
    except click.UsageError as error:
        text = error.format_message().rstrip(".")
        known = ", ".join(item.name for item in fields(learner)) or "none"
        raise InputError(f"{learner.name}: {text}; its options are {known}.") from error


def _option(learner: type[Any], item: Field[Any]) -> Addable:
    shown = "" if item.default is None else f"; default {_show(item.default)}"
    help = f"{item.metadata['help'].rstrip('.')}{shown}."
    if types_of(learner, item.name) == [bool]:
        name = spelling(item)
        return option(f"{name}/--no-{name[2:]} {item.name}", None, help, default=None)
    return declared_option(learner, item, help=help)


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(str(v) for v in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
