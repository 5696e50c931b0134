"""``milpbn convert``: a network in another format."""

from __future__ import annotations

import click

from milpbn.cli.outputs import check_outputs
from milpbn.cli.sections import verb


@verb(short_help="Write a classifier in another format.")
@click.argument("source", metavar="INPUT")
@click.argument("output")
@click.option("--target", metavar="NAME", help="The class variable, if INPUT does not name it.")
def convert(source: str, output: str, target: str | None) -> None:
    """Read the classifier INPUT, and write it to OUTPUT in the format of OUTPUT's ending.

    \b
    Example:
      milpbn convert classifier.json classifier.dot
    """
    check_outputs({"OUTPUT": output}, [source])

    from milpbn.network.formats.registry import check_network_ending, read_network, write_network

    check_network_ending(output)
    write_network(read_network(source, target), output)
    click.echo(output)
