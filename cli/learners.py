"""Options of a learner on the command line, built from the fields of its dataclass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from typing import Any

import click

from milpbn.cli.declared import declared_option
from milpbn.cli.sections import Addable, Verb, given, option, option_group, verb
from milpbn.errors import InputError
from milpbn.util.options import declared, spelling, types_of


def learner_options(learner: type[Any]) -> Callable[[Verb], Verb]:
    """Return a decorator that adds the options of a learner to a verb, as its argument ``options``.

    The argument maps fields to the values that were given; all other fields keep the learner's defaults. A bool becomes
    a pair of flags.
    """
    own = (_option(learner, item) for item in declared(learner) if item.init)
    return option_group("Learner", "options", *own)(given)


def read_options(learner: type[Any], words: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return a learner's options from pairs of name and value, parsed as `learner_options` parses them.

    Parameters
    ----------
    learner : type
        The learner's class.
    words : sequence of pairs of str
        Names and values. A name is written as on the command line without its leading dashes, or as in Python. The
        value of a flag is yes or no.

    Raises
    ------
    InputError
        If the learner has no such option, or its value cannot be parsed; the sentence names the option.
    """

    @verb(add_help_option=False)
    @learner_options(learner)
    def gather(options: dict[str, Any]) -> dict[str, Any]:
        return options

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
        options: dict[str, Any] = gather.main(arguments, standalone_mode=False)
    except click.UsageError as error:
        text = error.format_message().rstrip(".")
        raise InputError(f"{learner.name}: {text}; see milpbn learn {learner.name} --help.") from error
    return options


def files_of(learner: type[Any], options: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return the files that a learner's options name: outputs by option, and inputs."""
    known = {item.name: item for item in fields(learner)}
    kinds = {name: item.metadata.get("file") for name, item in known.items()}
    named = {key: value for key, value in options.items() if kinds.get(key) and value is not None}
    outputs = {spelling(known[key]): path for key, path in named.items() if kinds[key] == "output"}
    return outputs, [path for key, path in named.items() if kinds[key] == "input"]


def _option(learner: type[Any], item: Field[Any]) -> Addable:
    shown = "" if item.default is None else f"; default {_show(item.default)}"
    settings: dict[str, Any] = {"help": f"{item.metadata['help'].rstrip('.')}{shown}."}
    if types_of(learner, item.name) == [bool]:
        name = spelling(item)
        return option(f"{name}/--no-{name[2:]}", item.name, **settings, default=None)
    return declared_option(learner, item, **settings)


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(str(v) for v in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
