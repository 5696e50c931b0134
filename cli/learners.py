"""Options of a learner on the command line, built from the fields of its dataclass."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

import click

from milpbn.cli.search_options import BACKEND
from milpbn.cli.sections import Verb, given, option, option_group, verb
from milpbn.cli.types import (
    COUNT,
    FILE,
    NAME,
    NAMES,
    NUMBER,
    Parsed,
    parse_count,
    parse_name,
    parse_number,
    split,
)
from milpbn.errors import InputError
from milpbn.util.validation import union_members

#: The function that parses a value of each type, or a member of a tuple of that type.
_PARSERS: dict[Any, Callable[[str], Any]] = {int: parse_count, float: parse_number, str: str}


def learner_options(learner: type[Any]) -> Callable[[Verb], Verb]:
    """Return a decorator that adds the options of a learner to a verb, as its argument ``options``.

    The argument maps fields to the values that were given; all other fields keep the learner's defaults. The type of
    a field decides how its option is parsed. A union takes the first of its members that can parse the text, with
    plain text tried last. A tuple is written with commas between its values. A bool becomes a pair of flags. A field
    with ``choices`` in its metadata takes one of these words.
    """
    hints = typing.get_type_hints(learner)
    options = [f for f in fields(learner) if f.init]

    def gather(**values: Any) -> dict[str, Any]:
        return given(values)

    kind = inspect.Parameter.KEYWORD_ONLY
    gather.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # click's values by name
        [inspect.Parameter(f.name, kind) for f in options]
    )
    return option_group("Learner", "options", *(_option(f, hints[f.name]) for f in options))(gather)


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
    kinds = {f.name: f.metadata.get("file") for f in fields(learner)}
    named = {key: value for key, value in options.items() if kinds.get(key) and value is not None}
    outputs = {option_name(key): path for key, path in named.items() if kinds[key] == "output"}
    return outputs, [path for key, path in named.items() if kinds[key] == "input"]


def option_name(field: str) -> str:
    """Return the long option of a field, without the underscore that ends names which are Python keywords."""
    return "--" + field.rstrip("_").replace("_", "-")


def _option(field: Field[Any], annotation: Any) -> Callable[[str], Callable[[Verb], Verb]]:
    name = option_name(field.name)
    help_text = str(field.metadata.get("help", "")).rstrip(".")
    default = None if field.default is MISSING else field.default
    shown = "" if default is None else f"; default {_show(default)}"
    settings: dict[str, Any] = {"help": f"{help_text}{shown}.", "default": None}
    members = [m for m in union_members(annotation) if m is not type(None)]
    if members == [bool]:
        return option(f"{name}/--no-{name[2:]}", field.name, **settings)
    if "choices" in field.metadata:
        settings["type"] = click.Choice(list(field.metadata["choices"]))
    elif "file" in field.metadata:
        settings["type"] = FILE
    elif "takes" in field.metadata:
        settings["type"] = {"variable": NAME, "backend": BACKEND}[field.metadata["takes"]]
    else:
        settings["type"] = _type(members)
    return option(name, field.name, **settings)


def _type(members: list[Any]) -> click.ParamType | None:
    """Return the parameter type for a union of types; plain text is tried last."""
    members = sorted(members, key=lambda member: member is str)
    plain: dict[Any, click.ParamType | None] = {int: COUNT, float: NUMBER, str: None, tuple[str, ...]: NAMES}
    if members[0] in plain and (len(members) == 1 or members[0] == tuple[str, ...]):
        return plain[members[0]]

    def parse(text: str) -> Any:
        errors = []
        for member in members:
            try:
                return _parse(text, member)
            except ValueError as error:
                errors.append(str(error))
        raise ValueError(" and ".join(dict.fromkeys(errors)))

    return Parsed("|".join(_word(member) for member in members), parse)


def _word(member: Any) -> str:
    """Return the placeholder for a value of a type in the help."""
    inner = typing.get_args(member)
    return f"{_word(inner[0])},..." if inner else {int: "integer", float: "number", str: "word"}[member]


def _parse(text: str, member: Any) -> Any:
    """Return a value of a type; the members of a tuple are separated by commas."""
    if typing.get_origin(member) is tuple:
        return tuple(_PARSERS[typing.get_args(member)[0]](parse_name(piece)) for piece in split(text, ","))
    return _PARSERS[member](text)


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(str(v) for v in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
