"""The classifier of a pseudo-TAN (Roth and Pernkopf 2020, section 4.5): one table per variable, with cycles allowed.

It is not a Bayesian network.
"""

from __future__ import annotations

from dataclasses import dataclass

from milpbn.data.dataset import Variable
from milpbn.network.cards import network_card
from milpbn.network.checks import check_cpts, check_variables
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
        check_cpts(self.cpts, self.variables, None)
