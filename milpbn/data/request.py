"""A description of training data that can be stored: the source, the reading options and the rows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from milpbn.data.api import read_table
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.util.jsonable import Fields, shorten

#: Values of `DataRequest.rows`.
ROWS = ("train", "all")
#: Options whose values are texts, and options whose values are lists of texts.
TEXTS, NAMES = (
    ("target", "missing", "weights", "data_dir", "name", "states", "discretise"),
    ("drop", "features", "continuous", "nominal"),
)


@dataclass(frozen=True)
class DataRequest:
    """The source of training data and how to read it, in JSON-safe values.

    Attributes
    ----------
    source : str
        Path, catalog name or instance name.
    rows : {"train", "all"}
        Rows that are training data, in a table with a split.
    options : mapping
        Keyword arguments of `milpbn.data.read_table`.
    """

    source: str
    rows: str = "train"
    options: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> Dataset:
        """Read the data and return the training rows."""
        return read_table(self.source, **self.options).dataset(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values; a path becomes absolute, so that it is valid in every working directory."""
        source = os.path.abspath(self.source) if Path(self.source).is_file() else self.source
        return {"source": source, "rows": self.rows, "options": dict(self.options)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DataRequest:
        """Return the request that `to_dict` described.

        Raises
        ------
        InputError
            If the values have another form than those of `to_dict`.
        """
        f = Fields(values, "The description of the data")
        options = f.fields("options")
        for key in options:
            if key in NAMES:
                options.texts(key)
            elif key == "class_weights" and isinstance(options.get(key), Mapping):
                factors = options.fields(key)
                for label in factors:
                    factors.number(label, 0.0)
            elif key in (*TEXTS, "class_weights"):
                options.text(key)
            else:
                raise InputError(f"The description of the data has the unknown option {shorten(key)}.")
        return cls(f.text("source"), f.text("rows", ROWS), {key: options.get(key) for key in options})
