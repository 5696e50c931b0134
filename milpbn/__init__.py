"""milpbn: exact maximum-margin structure learning of Bayesian network classifiers.

The command line (`milpbn --help`) is a thin layer over the functions here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from milpbn.util.lazy import lazily
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

__getattr__, __dir__ = lazily(__name__, {**_HOME, "__version__": "version"})
