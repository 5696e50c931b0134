"""``milpbn plot``: draws a picture of a result."""

from __future__ import annotations

import click

from milpbn.cli.outputs import check_outputs
from milpbn.cli.sections import verb


@verb(short_help="Draw a result: the network, and the gap over time.")
@click.argument("result")
@click.option("--output", required=True, metavar="FILE", help="Picture: .png, .svg or .pdf.")
def plot(result: str, output: str) -> None:
    """Draw RESULT (a result.json): the network on the left, incumbent and bound over time on the right.

    Needs the extra [plot]: pip install milpbn[plot].

    \b
    Example:
      milpbn solve tic-tac-toe --time-limit 60 --output result.json
      milpbn plot result.json --output result.png
    """
    check_outputs({"--output": output}, [result])

    from milpbn.claims.result import Result
    from milpbn.plotting import save_picture

    save_picture(Result.load(result), output)
