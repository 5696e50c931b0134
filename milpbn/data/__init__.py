"""Data: reading tables, types, missing values, discretisation, folds, and the catalog of known data sets.

`read_table` returns a `Table`: raw data, and the decisions about them. Its ``dataset`` method learns states and cuts
from the training rows and returns a `Dataset` of integer codes. `read_samples` encodes the rows of a prediction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from milpbn.util.lazy import lazily

if TYPE_CHECKING:
    from milpbn.data.api import read_encodings as read_encodings
    from milpbn.data.api import read_samples as read_samples
    from milpbn.data.api import read_table as read_table
    from milpbn.data.dataset import MISSING as MISSING
    from milpbn.data.dataset import UNKNOWN as UNKNOWN
    from milpbn.data.dataset import Dataset as Dataset
    from milpbn.data.dataset import Variable as Variable
    from milpbn.data.folds import stratified_folds as stratified_folds
    from milpbn.data.folds import validation_split as validation_split
    from milpbn.data.mdlp import mdlp_cuts as mdlp_cuts
    from milpbn.data.table import Table as Table

__getattr__, __dir__ = lazily(
    __name__,
    {
        "data.api": ["read_encodings", "read_samples", "read_table"],
        "data.dataset": ["Dataset", "MISSING", "UNKNOWN", "Variable"],
        "data.folds": ["stratified_folds", "validation_split"],
        "data.mdlp": ["mdlp_cuts"],
        "data.table": ["Table"],
    },
)
