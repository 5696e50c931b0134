"""milpbn: exact maximum-margin structure learning of Bayesian network classifiers.

The command line (`milpbn --help`) is a thin layer over these names.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from milpbn.data import Dataset, Table, Variable, read_table
    from milpbn.errors import InputError, MilpbnError, SolverError
    from milpbn.external import export_model, import_solution
    from milpbn.network import Classifier, Structure, evaluate
    from milpbn.result import Result
    from milpbn.scores.constraints import Constraints
    from milpbn.scores.rescore import rescore
    from milpbn.scores.spec import Score
    from milpbn.selection import select, solve_selected
    from milpbn.solving import solve

# Imported at first use: NumPy, pandas and numba take a second that `milpbn --help` does not need.
_HOME = {
    "Classifier": "network",
    "Constraints": "scores.constraints",
    "Dataset": "data",
    "InputError": "errors",
    "MilpbnError": "errors",
    "Result": "result",
    "Score": "scores.spec",
    "SolverError": "errors",
    "Structure": "network",
    "Table": "data",
    "Variable": "data",
    "evaluate": "network",
    "export_model": "external",
    "import_solution": "external",
    "read_table": "data",
    "rescore": "scores.rescore",
    "select": "selection",
    "solve": "solving",
    "solve_selected": "selection",
}

__all__ = [
    "Classifier",
    "Constraints",
    "Dataset",
    "InputError",
    "MilpbnError",
    "Result",
    "Score",
    "SolverError",
    "Structure",
    "Table",
    "Variable",
    "__version__",
    "evaluate",
    "export_model",
    "import_solution",
    "read_table",
    "rescore",
    "select",
    "solve",
    "solve_selected",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module 'milpbn' has no attribute {name!r}")
    return getattr(import_module(f"milpbn.{_HOME[name]}"), name)
