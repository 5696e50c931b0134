"""``milpbn backends``: which solvers there are."""

from __future__ import annotations

import click

from milpbn.cli.sections import verb


@verb(short_help="List the solvers.")
def backends() -> None:
    """List the solvers that can be used here, with versions, and those that are missing.

    \b
    Example:
      milpbn backends
      milpbn solve corral --backend cbc
    """
    from milpbn.backends.registry import backend_names, get_backend
    from milpbn.errors import InputError

    missing = []
    for name in backend_names():
        try:
            click.echo(f"{name:<18} {get_backend(name).version()}")
        except InputError:
            missing.append(name)
    if missing:
        click.echo(f"Not found (name one as --backend to learn what it needs): {', '.join(missing)}.")
