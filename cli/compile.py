"""``milpbn compile``: compiles the kernels ahead of time."""

from __future__ import annotations

import click

from milpbn.cli.sections import verb


@verb("compile", short_help="Compile the kernels of all searches ahead of time.")
def compile_() -> None:
    """Compile the kernels of all searches and cache them, so that the first run does not wait for them.

    This is meant for container images, and for machines on which every run starts from scratch. Several cores are used;
    kernels that are cached already are not compiled again. The cache lies beside the package or, where that is
    read-only, in the user's cache folder. The environment variable NUMBA_CACHE_DIR names another folder; set it to
    the same folder when you run milpbn.

    \b
    Example:
      milpbn compile
      NUMBA_CACHE_DIR=/opt/kernels milpbn compile
    """
    from milpbn.solving.warm_up import compile_all

    missing = 0

    def show_progress(done: int, of: int) -> None:
        nonlocal missing
        missing = of
        click.echo(f"compiling kernels: {done} of {of}", err=True)

    count = compile_all(show_progress)
    click.echo(f"{count} kernels are cached, {count - missing} of them were before.")
