"""``milpbn instances``: the problems that are part of the package."""

from __future__ import annotations

from typing import Any

import click

from milpbn.cli.sections import verb
from milpbn.cli.types import INSTANCE


@verb(short_help="List the embedded problems.")
@click.argument("name", type=INSTANCE, required=False)
def instances(name: str | None) -> None:
    """List the embedded problems with their known optima, or describe one of them in full.

    \b
    Example:
      milpbn instances corral
      milpbn solve corral --p 0.9
    """
    from milpbn import instances as embedded

    if name is not None:
        click.echo(_describe(embedded.describe(name)))
        return
    for each in embedded.names():
        known = embedded.describe(each)
        default = "  (default of solve)" if each == embedded.DEFAULT else ""
        continuous = f" ({known['continuous']} continuous)" if known["continuous"] else ""
        click.echo(
            f"{each:<15} {known['rows']:>5} rows  {known['features']:>2} features{continuous}  "
            f"{known['classes']:>2} classes{default}"
        )
        for optimum in known["optima"]:
            click.echo(f"    {_optimum(optimum)}")


def _describe(known: dict[str, Any]) -> str:
    lines = [
        f"instance    {known['name']}: {known['rows']} rows, {known['features']} features "
        f"({known['continuous']} continuous), {known['classes']} classes",
        f"definition  {known['definition']}",
        f"source      {known['source']}",
    ]
    for optimum in known["optima"]:
        lines += [f"known       {_optimum(optimum)}", f"            {optimum['command']}"]
    return "\n".join(lines)


def _optimum(known: dict[str, Any]) -> str:
    p = "" if known["p"] is None else f" p={known['p']:g}"
    parents = "" if known["class_parents"] else " no class parents"
    described = f"{known['score']}{p} max_parents={known['max_parents']}{parents}: {known['objective']:.6f}"
    if known["status"] == "optimal":
        return f"{described} (optimal)"
    return f"{described}, bound {known['bound']:.6f}"
