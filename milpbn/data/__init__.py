"""Data: reading tables, types, missing values, discretisation, folds, and the catalog of known data sets.

`read_table` returns a `Table`: raw data, and the decisions about them. Its ``dataset`` method learns states and cuts
from the training rows and returns a `Dataset` of integer codes. `read_samples` encodes the rows of a prediction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from milpbn.util.lazy import lazily

if TYPE_CHECKING:
    from milpbn.data.api import read_encodings, read_samples, read_table
    from milpbn.data.dataset import MISSING, UNKNOWN, Dataset, Variable
    from milpbn.data.folds import stratified_folds, validation_split
    from milpbn.data.mdlp import mdlp_cuts
    from milpbn.data.table import Table

__all__ = [
    "MISSING",
    "UNKNOWN",
    "Dataset",
    "Table",
    "Variable",
    "mdlp_cuts",
    "read_encodings",
    "read_samples",
    "read_table",
    "stratified_folds",
    "validation_split",
]

_HOME = {
    "Dataset": "dataset",
    "MISSING": "dataset",
    "Table": "table",
    "UNKNOWN": "dataset",
    "Variable": "dataset",
    "mdlp_cuts": "mdlp",
    "read_encodings": "api",
    "read_samples": "api",
    "read_table": "api",
    "stratified_folds": "folds",
    "validation_split": "folds",
}

__getattr__, __dir__ = lazily(__name__, _HOME)
