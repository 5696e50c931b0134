"""The classifier of a pseudo-TAN (Roth and Pernkopf 2020, section 4.5): one table per variable, with cycles allowed.

It is not a Bayesian network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from milpbn.data.dataset import Variable
from milpbn.errors import InputError
from milpbn.network.cards import network_card
from milpbn.network.checks import ROW_SUM_TOLERANCE, check_variables
from milpbn.network.classifier import TableClassifier
from milpbn.network.conformal import Conformal
from milpbn.network.cpt import Cpt
from milpbn.network.decisions import DecisionRule
from milpbn.util.jsonable import shorten
from milpbn.util.plurals import counted


@dataclass(frozen=True, eq=False)
class PseudoClassifier(TableClassifier):
    """One table per variable; classes are compared by the sum of the tables' log-probabilities.

    `InputError` if the tables do not fit the variables, or do not hold probabilities.
    """

    #: Features first, the class variable last.
    variables: tuple[Variable, ...]
    #: One table per variable; the graph of their parents may have cycles.
    cpts: tuple[Cpt, ...]
    #: As those of a `Classifier`.
    decision: DecisionRule | None = None
    conformal: Conformal | None = None

    @property
    def _n_arcs(self) -> int:
        return sum(len(cpt.parents) for cpt in self.cpts)

    def __repr__(self) -> str:
        return (
            f"<PseudoClassifier of {shorten(self.variables[-1].name)}: "
            f"{counted(len(self.classes), 'class', 'classes')}, "
            f"{counted(len(self.variables) - 1, 'feature')}, {counted(self._n_arcs, 'arc')}>"
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the classes, and the numbers of arcs and parameters."""
        return network_card(self.variables, self._n_arcs, self.n_parameters)

    def __post_init__(self) -> None:
        check_variables(self.variables)
        sizes = [v.n_states for v in self.variables]
        if [cpt.variable for cpt in self.cpts] != list(range(len(sizes))):
            raise InputError(
                f"The classifier needs one table for each of its {len(sizes)} variables, in order."
            )
        for cpt, variable in zip(self.cpts, self.variables, strict=True):
            others = set(range(len(sizes))) - {cpt.variable}
            if list(cpt.parents) != sorted(set(cpt.parents) & others):
                raise InputError(
                    f"The parents of {variable.name!r} are not other variables in ascending order."
                )
            if cpt.table.shape != tuple(sizes[j] for j in (*cpt.parents, cpt.variable)):
                raise InputError(
                    f"The shape of the table of {variable.name!r} does not fit its states and parents."
                )
            sums = cpt.table.sum(axis=-1)
            if not (cpt.table >= 0).all() or not np.allclose(sums, 1, rtol=0, atol=ROW_SUM_TOLERANCE):
                raise InputError(f"The table of {variable.name!r} has a row that is not a distribution.")
