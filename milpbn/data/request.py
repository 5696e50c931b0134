"""How training data were read, in a form that can be stored: the source, the reading options and the rows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from milpbn.data.options import COLUMN_LISTS, EVERY, OPTIONS
from milpbn.errors import InputError
from milpbn.util.jsonable import Fields, shorten
from milpbn.util.options import comma_separated, quoted

#: Values of `DataRequest.rows`.
ROWS = ("train", "all")


@dataclass(frozen=True)
class DataRequest:
    """The source of training data and how to read it, in JSON-safe values.

    The source is a path, or the name of a catalog entry or an instance. `rows` says which rows are training data in a
    table with a split, ``train`` or ``all``. The options are keyword arguments of `milpbn.data.read_table`; a target of
    None means that the data have no class.
    """

    source: str
    rows: str = "train"
    options: Mapping[str, Any] = field(default_factory=dict)

    def with_options(self, **options: str | None) -> DataRequest:
        """Return the request with some options changed; those that are None are left out."""
        changed = {**self.options, **options}
        kept = {k: v for k, v in changed.items() if v is not None or (k == "target" and k in self.options)}
        return replace(self, options=kept)

    @property
    def words(self) -> list[str]:
        """The options on the command line, that of the rows included."""
        words = []
        for key, value in self.options.items():
            if key == "name":  # a name for reports, which is no option of the command line
                continue
            text = value
            if key == "target" and value is None:
                words.append("--no-target")
                continue
            if key in COLUMN_LISTS:
                text = comma_separated(value)
            elif key == "na_values":
                pairs = [(name, one) for name, values in value.items() for one in values]
                text = ",".join(
                    quoted(one) if name == EVERY else f"{quoted(name)}={quoted(one)}" for name, one in pairs
                )
            elif key == "header":
                words.append("--header" if value else "--no-header")
                continue
            elif isinstance(value, Mapping):
                text = ",".join(f"{quoted(label)}={factor!r}" for label, factor in value.items())
            words += [f"--{key.replace('_', '-')}", text]
        return [*words, *(["--split", "all"] if self.rows == "all" else [])]

    def absolute(self) -> DataRequest:
        """Return the request with absolute paths, so that it is valid in every working directory."""
        source = os.path.abspath(self.source) if Path(self.source).is_file() else self.source
        folder = self.options.get("data_dir")
        moved = self if folder is None else self.with_options(data_dir=os.path.abspath(folder))
        return replace(moved, source=source)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values."""
        return {"source": self.source, "rows": self.rows, "options": dict(self.options)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "The description of the data") -> DataRequest:
        """Return the request that `to_dict` described.

        Raises `InputError` if the values have another form than those of `to_dict`; `where` begins the sentence.
        """
        f = Fields(values, where)
        f.known(("source", "rows", "options"))
        options = f.fields("options")
        for key in options:
            if key in COLUMN_LISTS:
                options.texts(key)
            elif key == "class_weights" and isinstance(options.get(key), Mapping):
                factors = options.fields(key)
                for label in factors:
                    factors.number(label, 0.0)
            elif key == "header":
                options.flag(key)
            elif key == "target":
                options.optional(key, options.text)
            elif key == "na_values":
                by_column = options.fields(key)
                for name in by_column:
                    by_column.texts(name)
            elif key in OPTIONS:
                options.text(key)
            else:
                raise InputError(f"{where} has the unknown option {shorten(key)}.")
        return cls(f.text("source"), f.text("rows", ROWS), options.plain())
