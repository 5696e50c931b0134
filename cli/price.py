"""``milpbn price``: what constraints cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.constraint_options import constraint_options
from milpbn.cli.report import say
from milpbn.cli.search_options import MEMORY_LIMIT, QUIET, of_search
from milpbn.cli.sections import given, option, option_group, options, verb
from milpbn.cli.steps import read, started, telling
from milpbn.cli.table_options import TableOptions, table_options
from milpbn.cli.types import DATA, FILE, Parsed, parse_setting
from milpbn.errors import InputError
from milpbn.util.progress_line import LINE

if TYPE_CHECKING:
    from milpbn.problem.constraints import Constraints
    from milpbn.solving.pricing import Rule


@click.command()
@constraint_options
def _alone(constraints: Constraints) -> Constraints:
    """Read one option of the constraints."""
    return constraints


def parse_rule(text: str) -> tuple[str, Rule]:
    """Return a rule, and the text that names it: an option of the constraints without its dashes, and its value."""
    name, value = parse_setting(text)
    if name == "structure":
        return text, value
    try:
        found: Constraints = _alone.main([f"--{name}", value], standalone_mode=False)
    except click.ClickException as error:
        raise ValueError(f"is no rule: {error.format_message().rstrip('.')}") from None
    return text, found


@verb(short_help="Say what constraints cost: the best score with and without each.")
@click.argument("result", type=FILE)
@click.argument("data", type=DATA)
@option_group(
    "Prices",
    "search",
    option(
        "--rule",
        Parsed("option=value", parse_rule),
        "A rule beside the constraints of RESULT, as an option of the constraints without its dashes; can be repeated. "
        "Without it, the constraints of RESULT are priced. Examples: --rule max-features=5 --rule structure=tan --rule "
        "'tiers=age;income' --rule forbid=age,class",
        multiple=True,
    ),
    *of_search("backend", "time_limit", "threads", "random_state"),
    *of_search("output", output={"help": "The table as JSON, kept up to date."}),
    QUIET,
)(given)
@options(MEMORY_LIMIT, section="Prices")
@table_options
def price(result: str, data: str, search: dict[str, Any], table: TableOptions) -> None:
    """Say what rules cost: the best score without a rule less the best score with it, in nats.

    RESULT is a result.json, and DATA its training data with the same options of the table. Each search starts from
    the structure of RESULT and gets its part of what is left of --time-limit. Both sides have a bound, so that the
    price lies in an interval; if both are proved, it is one number. Ctrl-C keeps what is done.

    \b
    Example:
      milpbn solve table.csv --target class --forbid age,income --output result.json
      milpbn price result.json table.csv --target class
      milpbn price result.json table.csv --target class --rule max-features=5 --rule structure=tan
    """
    from milpbn.claims.result import Result
    from milpbn.solving.pricing import price as priced

    began, quiet, rules = started(), search.pop("quiet"), dict(search.pop("rule"))
    told = Result.load(result)
    _, dataset = read(table, data, began, quiet=quiet, in_units=told.score.needs_units)
    if (limit := search.get("time_limit")) is not None:
        search["time_limit"] = max(1.0, limit - (time.monotonic() - began))
    found = priced(told, dataset, rules or None, report=telling(began, quiet=quiet), verbose=False, **search)
    LINE.end()
    say(str(found))
    if not found.prices:
        raise InputError("The time did not suffice for a search; give a longer --time-limit.")
