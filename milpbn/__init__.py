"""milpbn: exact maximum-margin structure learning of Bayesian network classifiers.

The command line (`milpbn --help`) is a thin layer over the functions here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from milpbn.version import __version__

if TYPE_CHECKING:
    from milpbn.claims.result import Result
    from milpbn.data import Dataset, Table, Variable, read_table
    from milpbn.errors import BoundWarning, DataWarning, InputError, MilpbnError, MilpbnWarning, SolverError
    from milpbn.network import Classifier, Structure, evaluate
    from milpbn.problem.constraints import Constraints
    from milpbn.problem.rescore import rescore
    from milpbn.problem.scores.spec import Score
    from milpbn.solving.api import solve
    from milpbn.solving.exporting import export_model
    from milpbn.solving.importing import import_solution
    from milpbn.solving.selection import select, solve_selected
    from milpbn.solving.stability import stability

# Imported at first use: NumPy, pandas and numba take a second to import, and `milpbn --help` does not need them.
_HOME = {
    "BoundWarning": "errors",
    "Classifier": "network",
    "Constraints": "problem.constraints",
    "DataWarning": "errors",
    "Dataset": "data",
    "InputError": "errors",
    "MilpbnError": "errors",
    "MilpbnWarning": "errors",
    "Result": "claims.result",
    "Score": "problem.scores.spec",
    "SolverError": "errors",
    "Structure": "network",
    "Table": "data",
    "Variable": "data",
    "evaluate": "network",
    "export_model": "solving.exporting",
    "import_solution": "solving.importing",
    "read_table": "data",
    "rescore": "problem.rescore",
    "select": "solving.selection",
    "solve": "solving.api",
    "solve_selected": "solving.selection",
    "stability": "solving.stability",
}

__all__ = [
    "BoundWarning",
    "Classifier",
    "Constraints",
    "DataWarning",
    "Dataset",
    "InputError",
    "MilpbnError",
    "MilpbnWarning",
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
    "stability",
]


def __dir__() -> list[str]:
    """List the public names only, including those that have not been imported yet."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module 'milpbn' has no attribute {name!r}")
    return getattr(import_module(f"milpbn.{_HOME[name]}"), name)
