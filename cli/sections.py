"""Options in groups. A group is a section of the help, and one argument of the verbs that use it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import click
from click.core import ParameterSource

from milpbn.cli.outputs import check_outputs
from milpbn.errors import InputError

Verb = Callable[..., Any]
#: An option that still lacks its section of the help; see `option`.
Addable = Callable[[str], Callable[[Verb], Verb]]
#: The values of a group of options, each under the name of its parameter.
Values = SimpleNamespace


class SectionedOption(click.Option):
    """An option that knows its section of the help."""

    def __init__(self, *args: Any, section: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class SectionedCommand(click.Command):
    """A verb that checks its files before it begins, and whose help shows its options by section."""

    def invoke(self, ctx: click.Context) -> Any:
        """Check the files that will be written, then run the verb."""
        check_outputs()
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, in the order of the groups."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records)


#: Decorates a verb.
verb = functools.partial(click.command, cls=SectionedCommand)


def option(names: str, kind: click.ParamType | None, help: str, **settings: Any) -> Addable:  # click's word
    """Return a function from a section of the help to the decorator that adds an option to it.

    The names are the spellings of the option, with blanks between them, and the name of the parameter if it is another
    one. The kind is None for any text, and for a flag. The settings are further arguments of `click.option`.
    """
    if kind is not None:
        settings["type"] = kind
    return lambda section: click.option(
        *names.split(), cls=SectionedOption, section=section, help=help, **settings
    )


def flag(names: str, help: str) -> Addable:
    """Return an option without a value."""
    return option(names, None, help, is_flag=True)


def options(*items: Addable, section: str = "Options") -> Callable[[Verb], Verb]:
    """Return a decorator that adds options to a section of a verb's help; each is an argument of the verb."""

    def decorate(command: Verb) -> Verb:
        for add in reversed(items):
            command = add(section)(command)
        return command

    return decorate


def option_group(
    section: str, argument: str, *items: Addable
) -> Callable[[Callable[..., Any]], Callable[[Verb], Verb]]:
    """Turn a function of option values, or a class such as `Values`, into a decorator for verbs.

    It adds options to a section of the help. The function gets their values by name, and `argument` is the name of the
    verb's argument that gets what it returns.
    """

    def make(build: Callable[..., Any]) -> Callable[[Verb], Verb]:
        def decorate(command: Verb) -> Verb:
            @functools.wraps(command)
            def with_group(*args: Any, **values: Any) -> Any:
                group = {key: values.pop(key) for key in keys}
                return command(*args, **{argument: build(**group)}, **values)

            before = len(getattr(command, "__click_params__", ()))
            decorated = options(*items, section=section)(with_group)
            added = getattr(decorated, "__click_params__", [])[before:]
            keys = [parameter.name for parameter in reversed(added)]  # click has the last one first
            return decorated

        return decorate

    return make


def given(**values: Any) -> dict[str, Any]:
    """Return the options that were given: all that are not None."""
    return {key: value for key, value in values.items() if value is not None}


def typed() -> dict[str, str]:
    """Return the options on the command line: the spelling of each, by the name of its parameter.

    An option at its default value counts if the user wrote it.
    """
    context = click.get_current_context()
    return {
        parameter.name: parameter.opts[0]
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        and parameter.name is not None
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    }


def once(name: str, base: Mapping[Any, Any], given: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a mapping with more pairs; raise InputError, which names the option, if a key is given twice."""
    result = dict(base)
    for key, value in given:
        if key in result:
            shown = " -> ".join(key) if isinstance(key, tuple) else key
            raise InputError(f"{name} is given twice for {shown!r}; keep one of them.")
        result[key] = value
    return result
