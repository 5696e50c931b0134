"""``milpbn backends``: which solvers there are."""

from __future__ import annotations

import click

from milpbn.cli.sections import verb


@verb(short_help="List the solvers.")
def backends() -> None:
    r"""List the solvers that milpbn drives, with versions, or what is missing.

    \b
    Example:
      milpbn backends
      milpbn solve corral --backend cbc
    """
    from milpbn.backends.registry import BACKENDS, get_backend
    from milpbn.errors import MilpbnError

    for name in BACKENDS:
        try:
            found = get_backend(name).version()
        except MilpbnError as error:
            found = f"missing: {error}"
        click.echo(f"{name:<8} {found}")
    click.echo("pulp:NAME  any solver that PuLP drives, such as pulp:GUROBI_CMD")
