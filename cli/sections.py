"""Groups of options. A group is a section of the help, and one argument of the verbs that use it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click
from click.core import ParameterSource

from milpbn.errors import InputError

Verb = Callable[..., Any]
#: An option that still lacks its section of the help; see `option`.
Addable = Callable[[str], Callable[[Verb], Verb]]


class SectionedOption(click.Option):
    """An option that knows its section of the help."""

    def __init__(self, *args: Any, section: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class SectionedCommand(click.Command):
    """A verb whose help shows its options by section."""

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


def option(*names: str, **settings: Any) -> Addable:
    """Return a function from a section of the help to the decorator that adds the option to it."""
    return lambda section: click.option(*names, cls=SectionedOption, section=section, **settings)


def given(**values: Any) -> dict[str, Any]:
    """Return the options that were given: all that are not None."""
    return {key: value for key, value in values.items() if value is not None}


def typed(context: click.Context | None = None) -> dict[str, str]:
    """Return the options that stand on the command line: the spelling of each, by the name of its parameter.

    An option at its default value counts if the user wrote it.

    Parameters
    ----------
    context : click.Context, optional
        By default the current one.
    """
    context = context or click.get_current_context()
    return {
        parameter.name: parameter.opts[0]
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        and parameter.name is not None
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    }


def once(name: str, base: Mapping[Any, Any], given: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return a mapping with more pairs.

    Raises
    ------
    InputError
        If a key is given twice; `name` is the option that the sentence names.
    """
    result = dict(base)
    for key, value in given:
        if key in result:
            shown = " -> ".join(key) if isinstance(key, tuple) else key
            raise InputError(f"{name} is given twice for {shown!r}; keep one of them.")
        result[key] = value
    return result


def option_group(
    section: str, argument: str, *options: Addable
) -> Callable[[Callable[..., Any]], Callable[[Verb], Verb]]:
    """Turn a function of option values, or a dataclass, into a decorator for verbs.

    Parameters
    ----------
    section : str
        Heading in the help.
    argument : str
        Name of the verb's argument that receives the function's return value.
    *options
        Return values of `option`; the function gets their values by name.
    """

    def make(build: Callable[..., Any]) -> Callable[[Verb], Verb]:
        def decorate(command: Verb) -> Verb:
            @functools.wraps(command)
            def with_group(*args: Any, **values: Any) -> Any:
                group = {key: values.pop(key) for key in keys}
                return command(*args, **{argument: build(**group)}, **values)

            before = len(getattr(command, "__click_params__", ()))
            decorated: Verb = with_group
            for add in reversed(options):
                decorated = add(section)(decorated)
            added = getattr(decorated, "__click_params__", [])[before:]
            keys = [parameter.name for parameter in reversed(added)]  # click has the last one first
            return decorated

        return decorate

    return make
