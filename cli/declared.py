"""Options of the command line that are built from the fields of dataclasses, which declare them."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field
from typing import Any

import click

from milpbn.cli.sections import Addable, option
from milpbn.cli.types import (
    BACKEND,
    COUNT,
    COUNT_OR_CV,
    FILE,
    NAME,
    NAMES,
    NUMBER,
    NUMBER_OR_CV,
    OUTPUT,
    Parsed,
    parse_count,
    parse_name,
    parse_number,
    split,
    word,
)
from milpbn.util.options import declared, spelling, types_of

#: The function that parses a value of each type, or a member of a tuple of that type.
_PARSERS: dict[Any, Callable[[str], Any]] = {int: parse_count, float: parse_number, str: str}
#: The types of plain values.
_PLAIN: dict[Any, click.ParamType | None] = {int: COUNT, float: NUMBER, str: None, tuple[str, ...]: NAMES}
#: The types that a declaration names.
_NAMED = {"variable": NAME, "backend": BACKEND, "text": None, "input": FILE, "output": OUTPUT}


def options_of(
    kind: type[Any], only: Sequence[str] | None = None, **changed: Mapping[str, Any]
) -> list[Addable]:
    """Return the options that a dataclass declares, for `milpbn.cli.sections.option_group`.

    Options that are not given are None. `only` has the fields that are wanted, in their order, and `changed` the
    settings that take the place of the declaration's, by field.
    """
    known = {item.name: item for item in declared(kind)}
    return [declared_option(kind, known[name], **changed.get(name, {})) for name in only or known]


def declared_option(kind: type[Any], item: Field[Any], **settings: Any) -> Addable:
    """Return one option of a dataclass; the settings take the place of the declaration's."""
    known = item.metadata
    names = known.get("spelling") or (spelling(item),)
    settings = {"help": known["help"], "default": None, "type": None, **settings}
    if types_of(kind, item.name) != [bool]:
        metavar = None if "completes" in known else known.get("metavar")
        settings = {"metavar": metavar, **settings, "type": settings["type"] or _type(kind, item)}
    elif "/" not in names[0]:
        settings |= {"is_flag": True, "flag_value": not names[0].startswith("--no-")}
    return option(" ".join((*names, item.name)), settings.pop("type"), **settings)


def _type(kind: type[Any], item: Field[Any]) -> click.ParamType | None:
    """Return the type of an option that is not a flag.

    A union takes the first of its members that can parse the text, with plain text tried last. A tuple is written with
    commas between its values.
    """
    known = item.metadata
    members = sorted(types_of(kind, item.name), key=lambda member: member is str)
    if "choices" in known:
        return click.Choice(list(known["choices"]))
    if "completes" in known:
        return word(known["metavar"], *known["completes"])
    if named := known.get("file", known.get("takes")):
        return _NAMED[named]
    if known.get("validation"):
        return COUNT_OR_CV if members == [int] else NUMBER_OR_CV
    if members[0] in _PLAIN and (len(members) == 1 or members[0] == tuple[str, ...]):
        return _PLAIN[members[0]]

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
