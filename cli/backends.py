"""``milpbn backends``: the list of solvers, and which of them are installed."""

from __future__ import annotations

import click

from milpbn.cli.sections import verb


@verb(short_help="List the solvers.")
def backends() -> None:
    """List the solvers that are installed, with their versions, and those that are not.

    \b
    Example:
      milpbn backends
      milpbn solve corral --backend cbc
    """
    from milpbn.errors import InputError
    from milpbn.solving.engines.registry import engine_names, get_engine

    missing = []
    for name in engine_names():
        engine = get_engine(name)
        try:
            version = engine.version()
        except InputError:
            missing.append(name)
            continue
        can = engine.capabilities
        words = {
            f"for {', '.join(can.scores)}": not can.milp,
            "certificates": can.certificate,
            "--n-best": can.n_best,
            "rows in its tree": can.lazy_rows,
            "no warm start": not can.warm_start,
            "bound at its end only": not can.bound_stream,
        }
        remarks = "; ".join(word for word, holds in words.items() if holds)
        click.echo(f"{name:<18} {version}{f' ({remarks})' if remarks else ''}")
    if missing:
        click.echo(f"Not found (name one as --backend to learn what it needs): {', '.join(missing)}.")
