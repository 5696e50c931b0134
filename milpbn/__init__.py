"""milpbn: exact maximum-margin structure learning of Bayesian network classifiers.

The command line (`milpbn --help`) is a thin layer over the functions here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from milpbn.util.lazy import lazily

if TYPE_CHECKING:
    from milpbn import data as data
    from milpbn import errors as errors
    from milpbn import network as network
    from milpbn import plotting as plotting
    from milpbn import sklearn as sklearn
    from milpbn.claims.result import Result as Result
    from milpbn.data import Dataset as Dataset
    from milpbn.data import Table as Table
    from milpbn.data import Variable as Variable
    from milpbn.data import read_table as read_table
    from milpbn.errors import BoundWarning as BoundWarning
    from milpbn.errors import DataWarning as DataWarning
    from milpbn.errors import InputError as InputError
    from milpbn.errors import MilpbnError as MilpbnError
    from milpbn.errors import MilpbnWarning as MilpbnWarning
    from milpbn.errors import SolverError as SolverError
    from milpbn.network import Classifier as Classifier
    from milpbn.network import Structure as Structure
    from milpbn.network import evaluate as evaluate
    from milpbn.problem.constraints import Constraints as Constraints
    from milpbn.problem.rescore import rescore as rescore
    from milpbn.problem.scores.spec import Score as Score
    from milpbn.solving.api import solve as solve
    from milpbn.solving.exporting import export_model as export_model
    from milpbn.solving.importing import import_solution as import_solution
    from milpbn.solving.pricing import price as price
    from milpbn.solving.selection import select as select
    from milpbn.solving.selection import solve_selected as solve_selected
    from milpbn.solving.stability import stability as stability
    from milpbn.version import __version__ as __version__

# In a clone two packages lie beside this one. A Python that is started there imports this one, installed or not.
_above = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
__path__.extend([_above] * os.path.exists(os.path.join(_above, "build_backend", "with_kernels.py")))

__getattr__, __dir__ = lazily(
    __name__,
    {
        "claims.result": ["Result"],
        "data": ["Dataset", "Table", "Variable", "read_table"],
        "errors": [
            "BoundWarning",
            "DataWarning",
            "InputError",
            "MilpbnError",
            "MilpbnWarning",
            "SolverError",
        ],
        "network": ["Classifier", "Structure", "evaluate"],
        "problem.constraints": ["Constraints"],
        "problem.rescore": ["rescore"],
        "problem.scores.spec": ["Score"],
        "solving.api": ["solve"],
        "solving.exporting": ["export_model"],
        "solving.importing": ["import_solution"],
        "solving.pricing": ["price"],
        "solving.selection": ["select", "solve_selected"],
        "solving.stability": ["stability"],
        "version": ["__version__"],
    },
    ("data", "errors", "network", "plotting", "sklearn"),
)
