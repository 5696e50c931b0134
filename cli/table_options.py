"""The options of tables: how to read training data (`TableOptions`), and rows for a classifier (`RowOptions`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from milpbn.cli.declared import options_of
from milpbn.cli.sections import flag, given, option, option_group, typed
from milpbn.cli.types import CLASS_WEIGHTS, FOLDER, MISSING_VALUES, NAME
from milpbn.data.options import COLUMN_LISTS, TEXT_OPTIONS, ReadingOptions, TextFormat
from milpbn.errors import InputError
from milpbn.util.options import declared

if TYPE_CHECKING:
    from milpbn.claims.result import Result
    from milpbn.data import Dataset, Table
    from milpbn.data.raw_table import RawTable
    from milpbn.data.request import DataRequest
    from milpbn.network.formats.classifier_files import AnyClassifier


@dataclass(frozen=True)
class TableOptions:
    """How to read the training data: the rows that train, and the options of `milpbn.read_table`."""

    rows: str = "train"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def read(self, source: str, *, in_units: bool = False) -> Table:
        """Return the table; its split is dropped where ``rows`` is ``all``.

        With `in_units`, weights below 1 are made larger (`milpbn.data.table.Table.in_units`).
        """
        from milpbn.data import read_table

        table = read_table(source, **self.settings)
        if in_units:
            table = table.in_units()
        if self.rows != "all":
            return table
        request = None if table.request is None else replace(table.request, rows="all")
        return replace(table, train_rows=None, request=request)

    def as_in(self, result: Result) -> TableOptions:
        """Return the options with the cuts and the missing values of a result, unless those were given."""
        known = {} if result.request is None else result.request.options
        chosen = {key: known[key] for key in ("discretise", "missing") if key in known and key not in typed()}
        return replace(self, settings={**self.settings, **chosen})

    def read_of(self, result: Result, source: str) -> tuple[Table, Dataset]:
        """Return the table and the training rows of a result, or refuse other data.

        Cuts and missing values are as in the run unless options say otherwise: validation may have chosen them.
        """
        table = self.as_in(result).read(source, in_units=result.score.needs_units)
        dataset = table.dataset("train")
        if dataset.sha256 != result.data.sha256:
            raise result.data.refusal(result.request)
        return table, dataset

    def for_rows(self, split: str | None) -> RowOptions:
        """Return the options with which a classifier reads rows of the same table."""
        known = self.settings
        form = {key: value for key, value in known.items() if key in TEXT_OPTIONS}
        return RowOptions(split, known.get("weights"), False, known.get("data_dir"), form)

    def request(self, source: str) -> DataRequest:
        """Return source and options as a record, for the sidecar of an exported model."""
        from milpbn.data.request import DataRequest

        return DataRequest(source, self.rows, self.settings)


@dataclass(frozen=True)
class RowOptions:
    """Which rows of a table a classifier gets, with which weights, and how to read them.

    The split is ``all``, ``train`` or ``test``, or None for the usual one of a verb. ``form`` has the options of text
    files, as keyword arguments of `milpbn.read_table`.
    """

    split: str | None
    weights: str | None
    ignore_unseen: bool
    data_dir: str | None
    form: Mapping[str, Any]

    def read(self, classifier: AnyClassifier, data: str, default: str = "test") -> tuple[Dataset, str]:
        """Return the rows, encoded, and their name: ``all``, ``train`` or ``test``.

        Without a choice of rows they are the `default` ones where the data have a split, and all elsewhere.
        """
        from milpbn.data import read_encodings

        loaded = load_table(classifier, data, self.data_dir, self.form)
        train_rows = None if loaded.entry is None else loaded.entry.train_rows
        if train_rows is None and self.split in ("train", "test"):
            raise InputError(
                f"The data {data!r} have no split into training and test rows; leave out --split {self.split}."
            )
        rows = self.split or ("all" if train_rows is None else default)
        frame = {"all": loaded.frame, "train": loaded.frame[:train_rows], "test": loaded.frame[train_rows:]}[
            rows
        ]
        samples = read_encodings(
            replace(loaded, frame=frame),
            classifier.variable_sets,
            weights=self.weights,
            ignore_unseen=self.ignore_unseen,
        )
        return samples, rows


def load_table(
    classifier: AnyClassifier, data: str, data_dir: str | None, form: Mapping[str, Any]
) -> RawTable:
    """Return the cells of a table for prediction, read as the training table was where the options do not say how."""
    from milpbn.data.sources import load_source
    from milpbn.network.predictor import form_of

    names = [variable.name for variable in classifier.variables]
    return load_source(data, data_dir, names, TextFormat.of(form).after(form_of(classifier)))


#: Options of every verb that reads a table: how a text file is written.
TEXT_FILES = options_of(TextFormat, na_values={"type": MISSING_VALUES, "multiple": True})
#: Shared by all verbs that read tables, and by those that give rows to a classifier.
(DATA_DIR,) = options_of(ReadingOptions, ["data_dir"], data_dir={"type": FOLDER})
IGNORE_UNSEEN = flag(
    "--ignore-unseen",
    "Go on where a column has no value that occurs in the training data, as if it said nothing.",
)


def text_settings(**values: Any) -> dict[str, Any]:
    """Gather the options of text files; those that were not given are left out."""
    missing: dict[str, list[str]] = {}
    for column, value in (pair for pairs in values["na_values"] for pair in pairs):
        missing.setdefault(column, []).append(value)
    return given(**values | {"na_values": missing or None})


#: Adds the argument ``form`` to verbs that read a table for prediction.
text_options = option_group("Text files", "form", *TEXT_FILES)(text_settings)


@option_group(
    "Options",
    "chosen",
    option(
        "--split",
        click.Choice(["all", "train", "test"]),
        "Rows of the catalog's split; by default the test rows, or all rows where there is no split.",
    ),
    option("--weights", NAME, "Column of sample weights."),
    IGNORE_UNSEEN,
    DATA_DIR,
    *(lambda _, add=add: add("Text files") for add in TEXT_FILES),  # in their own section of the help
)
def row_options(split: str | None, weights: str | None, ignore_unseen: bool, **values: Any) -> RowOptions:
    """Gather the options of the rows for a classifier."""
    data_dir = values.pop("data_dir")
    return RowOptions(split, weights, ignore_unseen, data_dir, text_settings(**values))


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
    flag(
        "--no-target",
        "The table has no class: learn a network of all variables, by ll, mdl, aic, aicc or bdeu.",
    ),
    option(
        "--split",
        click.Choice(["train", "all"]),
        "Which rows to train on, where the catalog splits the data.",
        default="train",
        show_default=True,
    ),
    *TEXT_FILES,
)
def table_options(split: str, no_target: bool, **values: Any) -> TableOptions:
    """Gather the options of the table; options at their defaults are left out."""
    if no_target and values["target"] is not None:
        raise InputError(
            "--target names a class, and --no-target says that there is none; leave out one of them."
        )
    form = text_settings(**{name: values.pop(name) for name in TEXT_OPTIONS})
    for name in ("discretise", "states"):
        if values[name] == getattr(ReadingOptions, name):
            values[name] = None
    for key in COLUMN_LISTS:
        values[key] = [name for names in values[key] for name in names]
    # An empty name, for instance from an unset shell variable, is passed on so that it is refused.
    own = {key: value for key, value in values.items() if value or value == ""}
    return TableOptions(split, own | ({"target": None} if no_target else {}) | form)
