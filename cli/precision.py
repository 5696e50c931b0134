"""``milpbn precision``: accuracy of a classifier whose parameters have few bits."""

from __future__ import annotations

import click

from milpbn.cli.evaluate import JSON
from milpbn.cli.sections import option, options, verb
from milpbn.cli.steps import json_line, say_notes, write_text
from milpbn.cli.table_options import RowOptions, row_options
from milpbn.cli.types import COUNT, DATA, FILE, OUTPUT


@verb(short_help="Measure a classifier's accuracy with few bits per parameter.")
@click.argument("classifier", type=FILE)
@click.argument("data", type=DATA)
@options(
    option("--integer-bits", COUNT, "Integer bits; by default as many as the parameters need."),
    option("--bits", COUNT, "Integer and fraction bits of the widest format.", default=24, show_default=True),
)
@row_options
@options(option("--plot picture", OUTPUT, "Draw accuracy over bits: .png, .svg or .pdf."), JSON)
def precision(
    classifier: str,
    data: str,
    integer_bits: int | None,
    bits: int,
    chosen: RowOptions,
    picture: str | None,
    as_json: bool,
) -> None:
    """Round the parameters of CLASSIFIER to fixed-point numbers, and measure its accuracy on DATA.

    A parameter -log theta is cut to a number of integer and fraction bits. Widths are tried from --bits down to 1
    bit, by dropping the lowest bit each time (Pernkopf, Wohlmayr and Mücke 2011, section 5). Rows without a class label
    are left out, as in milpbn evaluate. So are rows with missing values, because sums of fixed-point numbers cannot be
    marginalised. Both numbers are reported. Costs or a threshold of CLASSIFIER (milpbn decide) have no effect here,
    because sums of fixed-point numbers are not probabilities: the most probable class is predicted.

    \b
    Example:
      milpbn precision classifier.json test.csv --integer-bits 12 --bits 64 --plot bits.png
    """
    import numpy as np

    from milpbn.data import MISSING
    from milpbn.network import evaluate, load_classifier
    from milpbn.network.fixed_point import accuracy_by_width, enough_integer_bits
    from milpbn.plotting import check_picture, draw_widths, save

    if picture is not None:
        check_picture(picture)
    loaded = load_classifier(classifier)
    if loaded.decision is not None:
        say_notes([f"The most probable class is predicted; the decision of {classifier!r} has no effect."])
        loaded = loaded.deciding(None)
    samples, rows = chosen.read(loaded, data)
    say_notes(samples.notes)
    # The notes say how many rows have no class label.
    counted = (samples.y != MISSING) & (samples.weights > 0)
    whole = counted & (samples.X != MISSING).all(axis=1)
    if left_out := counted.sum() - whole.sum():
        say_notes([f"Rows left out because values are missing: {left_out} of {counted.sum()}."])
    samples = samples.take(np.flatnonzero(whole))
    integer_bits = enough_integer_bits(loaded) if integer_bits is None else integer_bits
    figures = accuracy_by_width(loaded, samples, integer_bits, bits)
    double = evaluate(loaded, samples).accuracy
    if picture is not None:
        save(draw_widths(figures, double, f"{samples.name}: {integer_bits} integer bits"), picture)
    if as_json:
        listed = [{"bits": width, "accuracy": share} for width, share in figures]
        write_text(
            None, json_line({"rows": rows, "integer_bits": integer_bits, "double": double, "widths": listed})
        )
        return
    click.echo(f"{samples.name}: {samples.n_samples} samples ({rows} rows); {integer_bits} integer bits")
    click.echo(f"{'bits':>6}  {'fraction':>8}  accuracy")
    click.echo(f"{'double':>6}  {'':>8}  {100 * double:.2f} %")
    for width, share in figures:
        click.echo(f"{width:>6}  {width - integer_bits:>8}  {100 * share:.2f} %")
