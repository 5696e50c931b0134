"""``milpbn compile``: compiles the kernels ahead of time."""

from __future__ import annotations

import click

from milpbn.cli.sections import verb


@verb("compile", short_help="Compile all kernels ahead of time.")
def compile_() -> None:
    """Compile and cache the kernels of searches, discretisation, learners and verify, so that no first run waits.

    This is meant for container images, and for machines on which every run starts from scratch. Several cores are used;
    kernels that are cached already are not compiled again. The cache lies beside the package or, where that is
    read-only, in the user's cache folder. The environment variable NUMBA_CACHE_DIR names another folder; set it to
    the same folder when you run milpbn.

    \b
    Example:
      milpbn compile
      NUMBA_CACHE_DIR=/opt/kernels milpbn compile
    """
    from milpbn.learners.rehearsals import compile_package

    count, before = compile_package(lambda line: click.echo(line, err=True))
    click.echo(f"{count} kernels are cached, {before} of them were before.")
