"""A written-down way to get training data again: what to read, how, and which rows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError


@dataclass(frozen=True)
class DataRequest:
    """What to read and how, in JSON-safe values.

    Attributes
    ----------
    source : str
        Path, catalog name or instance name.
    rows : {"train", "all"}
        Which rows of a table with a split are training data.
    options : mapping
        Keyword arguments of `milpbn.data.read_table`.
    """

    source: str
    rows: str = "train"
    options: Mapping[str, Any] = field(default_factory=dict)

    def load(self) -> Dataset:
        """Read the data and return the training rows."""
        from milpbn.data.api import read_table

        return read_table(self.source, **self.options).dataset(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values; a path becomes absolute, so that it can be found from elsewhere."""
        source = os.path.abspath(self.source) if Path(self.source).is_file() else self.source
        return {"source": source, "rows": self.rows, "options": dict(self.options)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DataRequest:
        """Read what `to_dict` returned.

        Raises
        ------
        InputError
            If it has another form.
        """
        try:
            return cls(str(values["source"]), str(values["rows"]), dict(values["options"]))
        except (KeyError, TypeError, ValueError):
            raise InputError("The description of the data is not of the form that milpbn writes.") from None
