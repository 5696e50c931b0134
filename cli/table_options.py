"""The options of the table: the source of the training data, and how to read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.declared import options_of
from milpbn.cli.sections import given, option, option_group
from milpbn.cli.types import CLASS_WEIGHTS, FOLDER, MISSING_VALUES
from milpbn.data.options import COLUMN_LISTS, TEXT_OPTIONS, ReadingOptions, TextFormat
from milpbn.errors import InputError
from milpbn.util.options import declared

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
        return {key: value for key, value in self.settings.items() if key in TEXT_OPTIONS}

    def request(self, source: str) -> DataRequest:
        """Return source and options as a record, for the sidecar of an exported model."""
        from milpbn.data.request import DataRequest

        return DataRequest(source, self.rows, self.settings)


#: Options of every verb that reads a table: how a text file is written.
TEXT_FILES = options_of(TextFormat, na_values={"type": MISSING_VALUES, "multiple": True})


def text_settings(**values: Any) -> dict[str, Any]:
    """Gather the options of text files; those that were not given are left out."""
    missing: dict[str, list[str]] = {}
    for column, value in (pair for pairs in values["na_values"] for pair in pairs):
        missing.setdefault(column, []).append(value)
    return given(**values | {"na_values": missing or None})


#: Adds the argument ``form`` to verbs that read a table for prediction.
text_options = option_group("Text files", "form", *TEXT_FILES)(text_settings)


@option_group(
    "Table",
    "table",
    *options_of(
        ReadingOptions,
        [item.name for item in declared(ReadingOptions) if item.name not in TEXT_OPTIONS],
        **{name: {"multiple": True} for name in COLUMN_LISTS},
        discretise={"default": "mdl", "show_default": True},
        class_weights={"type": CLASS_WEIGHTS},
        data_dir={"type": FOLDER},
    ),
    option(
        "--split",
        type=click.Choice(["train", "all"]),
        default="train",
        show_default=True,
        help="Which rows to train on, where the catalog splits the data.",
    ),
    *TEXT_FILES,
)
def table_options(split: str, **values: Any) -> TableOptions:
    """Gather the options of the table; options at their defaults are left out."""
    form = text_settings(**{name: values.pop(name) for name in TEXT_OPTIONS})
    for name in ("discretise", "states"):
        if values[name] == getattr(ReadingOptions, name):
            values[name] = None
    for key in COLUMN_LISTS:
        values[key] = [name for names in values[key] for name in names]
    # An empty name, for instance from an unset shell variable, is passed on so that it is refused.
    return TableOptions(split, {key: value for key, value in values.items() if value or value == ""} | form)
