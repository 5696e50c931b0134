"""``milpbn convert``: a classifier or a table in another format."""

from __future__ import annotations

from typing import Any

import click

from milpbn.cli.sections import option, options, verb
from milpbn.cli.steps import say_notes
from milpbn.cli.table_options import text_options
from milpbn.cli.types import DATA, NAME, NUMBER, OUTPUT
from milpbn.errors import InputError


@verb(short_help="Write a classifier or a table in another format.")
@click.argument("source", type=DATA, metavar="INPUT")
@click.argument("output", type=OUTPUT)
@options(
    option("--target", NAME, "The class variable, if INPUT does not name it."),
    option("--worst-error", NUMBER, "The largest error of a scorecard's probabilities (default 0.05)."),
)
@text_options
def convert(
    source: str, output: str, target: str | None, worst_error: float | None, form: dict[str, Any]
) -> None:
    """Read INPUT, a classifier or a table, and write it to OUTPUT in the format of OUTPUT's ending.

    Classifiers: .json (milpbn's own), .bif, .xmlbif, .bifxml, .xml, .xdsl (GeNIe) and .net (Hugin) are read and
    written; .dne and .dnet (Netica) are read; .dot, .gv, .sql (a query that predicts the rows of the table "data"),
    .onnx, .pmml, .xlsx (formulas), .py (Python without packages), .html (a points scorecard of two classes) and .R
    (a script that predicts with the .bif file) are written. A network of another program becomes a
    classifier; --target names its class variable.

    Tables: .csv, .arff and .dat (GOBNILP; discretised, the class last) are written, whatever milpbn solve reads is
    read.

    \b
    Examples:
      milpbn convert classifier.json classifier.bif
      milpbn convert alarm.bif classifier.json --target HYPOVOLEMIA
      milpbn convert classifier.json classifier.sql
      milpbn convert classifier.json scorer.py
      milpbn convert classifier.json card.html --worst-error .03
      milpbn convert table.csv table.dat --target species
    """
    from milpbn.data.writing import WRITERS
    from milpbn.network.formats.registry import READERS
    from milpbn.util.raw_files import ending_of

    if worst_error is None and ending_of(output, WRITERS) is not None:
        if ending_of(source, READERS) is not None:
            raise InputError(
                f"The ending of {source!r} is that of a network, and that of {output!r} is one of a table; both files "
                "need endings of the same kind."
            )
        _convert_table(source, output, target, form)
    else:
        if form:
            raise InputError(
                f"The option {next(iter(form))!r} is for tables, not for networks; leave it out."
            )
        _convert_network(source, output, target, worst_error)
    click.echo(output)


def _convert_network(source: str, output: str, target: str | None, worst_error: float | None) -> None:
    from milpbn.network.explanation.columns import shared_columns
    from milpbn.network.formats import registry
    from milpbn.network.predictor import form_of

    ending = registry.check_network_ending(output, worst_error)
    network = registry.read_network(source, target)
    two = [network.variables[places[0]].raw_column for places in shared_columns(network.variables)]
    if two and ending in registry.OF_NODES:
        few = ", ".join(two[:5]) + ", ..." * (len(two) > 5)
        say_notes([f"Columns with several nodes in the file, their coarse and fine intervals: {few}."])
    if network.conformal is not None and ending != ".json":
        say_notes(["Prediction sets (--conformal) are left out: only milpbn's own file, .json, holds them."])
    values = dict.fromkeys(repr(value) for some in form_of(network).na_values.values() for value in some)
    if values and ending not in (".json", ".dot", ".gv"):
        note = "Only milpbn's own file, .json, holds the values that mean a missing one (--na-values): {}. "
        say_notes([note.format(", ".join(values)) + "Elsewhere such a value has to be an empty one."])
    if network.decision is not None and ending not in registry.WITH_DECISIONS:
        say_notes(["Costs and thresholds are left out: the file gives probabilities only."])
    registry.write_network(network, output, worst_error=worst_error)


def _convert_table(source: str, output: str, target: str | None, form: dict[str, Any]) -> None:
    from milpbn.data import read_table
    from milpbn.data.writing import write_table

    # GOBNILP has no missing values; other formats keep their rows.
    discrete = output.lower().endswith(".dat")
    form = form if target is None else {**form, "target": target}
    table = read_table(source, missing="drop" if discrete else "state", **form)
    say_notes(table.notes)
    write_table(table, output)
