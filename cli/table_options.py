"""The options of the table: the source of the training data, and how to read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.sections import given, option, option_group
from milpbn.cli.types import CLASS_WEIGHTS, FOLDER, MISSING_VALUES, NAME, NAMES, word
from milpbn.errors import InputError

if TYPE_CHECKING:
    from milpbn.claims.result import Result
    from milpbn.data import Dataset, Table
    from milpbn.data.request import DataRequest


@dataclass(frozen=True)
class TableOptions:
    """How to read the training data: the rows that train, and the options of `milpbn.read_table`."""

    rows: str = "train"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def read(self, source: str, *, in_units: bool = False) -> Table:
        """Return the table; its split is dropped where ``rows`` is ``all``.

        With `in_units`, weights below 1 are made larger (`milpbn.data.table.Table.in_units`).
        """
        from dataclasses import replace

        from milpbn.data import read_table

        table = read_table(source, **self.settings)
        if in_units:
            table = table.in_units()
        if self.rows != "all":
            return table
        request = None if table.request is None else replace(table.request, rows="all")
        return replace(table, train_rows=None, request=request)

    def read_of(self, result: Result, source: str) -> tuple[Table, Dataset]:
        """Return the table and the training rows of a result, or refuse other data."""
        table = self.read(source, in_units=result.score.needs_units)
        dataset = table.dataset("train")
        if dataset.sha256 != result.data.sha256:
            raise InputError(
                f"The result is of other data ({result.data.name!r}) than {source!r}; give the data and the options of "
                "the table of that run."
            )
        return table, dataset

    @property
    def form(self) -> dict[str, Any]:
        """The options of text files."""
        return {key: value for key, value in self.settings.items() if key in TEXT}

    def request(self, source: str) -> DataRequest:
        """Return source and options as a record, for the sidecar of an exported model."""
        from milpbn.data.request import DataRequest

        return DataRequest(source, self.rows, self.settings)


#: Names of the options of text files.
TEXT = ("separator", "decimal", "thousands", "encoding", "na_values", "header")
#: Options of every verb that reads a table: how a text file is written.
TEXT_OPTIONS = (
    option(
        "--separator",
        type=word("character", "comma", "semicolon", "tab", "pipe", "blank"),
        help="What separates the cells of a text file: a character, or comma, semicolon, tab, pipe or blank.",
    ),
    option(
        "--decimal",
        type=word("character", "point", "comma"),
        help="What stands before decimal places: a character, or point or comma.",
    ),
    option(
        "--thousands",
        type=word("character", "point", "comma", "blank", "apostrophe"),
        help="What stands between groups of digits: a character, or point, comma, blank or apostrophe.",
    ),
    option(
        "--encoding",
        type=word("name", "utf-8", "utf-16", "cp1252", "latin-1"),
        help="Encoding of a text file, such as cp1252; by default UTF-8.",
    ),
    option(
        "--na-values",
        type=MISSING_VALUES,
        multiple=True,
        help="More values that mean a missing one: 999,unknown for all columns, or age=999 for one.",
    ),
    option(
        "--header/--no-header",
        default=None,
        help="Whether the first line of a text file holds the names of the columns.",
    ),
)


def text_settings(**values: Any) -> dict[str, Any]:
    """Gather the options of text files; those that were not given are left out."""
    missing: dict[str, list[str]] = {}
    for column, value in (pair for pairs in values["na_values"] for pair in pairs):
        missing.setdefault(column, []).append(value)
    return given(**values | {"na_values": missing or None})


#: Adds the argument ``form`` to verbs that read a table for prediction.
text_options = option_group("Text files", "form", *TEXT_OPTIONS)(text_settings)


@option_group(
    "Table",
    "table",
    option(
        "--target", type=NAME, help="Class column; by default the last one that does not number the rows."
    ),
    option(
        "--drop", type=NAMES, multiple=True, help="Columns that are not features, such as --drop id,name."
    ),
    option(
        "--features",
        type=NAMES,
        multiple=True,
        help="The features; other columns are left out. By default all columns, except those that look like "
        "row numbers, identifiers, dates or free text.",
    ),
    option("--continuous", type=NAMES, multiple=True, help="Columns to discretise."),
    option(
        "--discretise",
        "--discretize",
        type=word("method", "mdl", "quantile:5", "uniform:5", "kmeans:5"),
        default="mdl",
        show_default=True,
        help="How continuous columns are cut: mdl (minimum description length), or K intervals by quantile:K, "
        "uniform:K or kmeans:K, for example quantile:5.",
    ),
    option("--nominal", type=NAMES, multiple=True, help="Columns whose values are states as they stand."),
    option(
        "--missing",
        type=click.Choice(["drop", "state", "error"]),
        help="Missing values: drop their rows (the default), make them a state of their own, or refuse the data.",
    ),
    option("--weights", type=NAME, help="Column of sample weights, not used as a feature."),
    option("--class-weights", type=CLASS_WEIGHTS, help="Factor on the sample weights of each class."),
    option("--data-dir", type=FOLDER, help="Folder of the catalog; by default the variable MILPBN_DATA."),
    option(
        "--states",
        type=click.Choice(["seen", "declared"]),
        default="seen",
        help="States of nominal columns: those seen in training rows, or all that an ARFF or Parquet file declares.",
    ),
    option(
        "--split",
        type=click.Choice(["train", "all"]),
        default="train",
        show_default=True,
        help="Which rows to train on, where the catalog splits the data.",
    ),
    *TEXT_OPTIONS,
)
def table_options(split: str, **values: Any) -> TableOptions:
    """Gather the options of the table; options at their defaults are left out."""
    form = text_settings(**{name: values.pop(name) for name in TEXT})
    for name, default in (("discretise", "mdl"), ("states", "seen")):
        if values[name] == default:
            values[name] = None
    for key in ("drop", "features", "continuous", "nominal"):
        values[key] = [name for names in values[key] for name in names]
    # An empty name, for instance from an unset shell variable, is passed on so that it is refused.
    return TableOptions(split, {key: value for key, value in values.items() if value or value == ""} | form)
