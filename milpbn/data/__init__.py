"""Data: reading tables, types, missing values, discretisation, folds, and the catalog of known data.

`read_table` makes a `Table` (raw data and decisions), whose ``dataset`` method learns states and cuts on
training rows and returns a `Dataset` (integer codes); `read_samples` encodes rows to predict on.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from milpbn.data.dataset import UNKNOWN, Dataset, Variable

if TYPE_CHECKING:
    from milpbn.data.api import read_samples, read_table
    from milpbn.data.folds import stratified_folds, validation_split
    from milpbn.data.mdlp import mdlp_cuts
    from milpbn.data.table import Table

__all__ = [
    "UNKNOWN",
    "Dataset",
    "Table",
    "Variable",
    "mdlp_cuts",
    "read_samples",
    "read_table",
    "stratified_folds",
    "validation_split",
]

# Imported at first use: they need pandas or numba, half a second each, which `milpbn --help` does not.
_LAZY = {
    "Table": "table",
    "mdlp_cuts": "mdlp",
    "read_samples": "api",
    "read_table": "api",
    "stratified_folds": "folds",
    "validation_split": "folds",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
