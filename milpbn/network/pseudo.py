"""The classifier of a pseudo-TAN (Roth and Pernkopf 2020, section 4.5): one table per variable, with cycles allowed.

It is not a Bayesian network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import LABEL_TYPES, Variable
from milpbn.errors import InputError
from milpbn.network.cards import network_card
from milpbn.network.checks import ROW_SUM_TOLERANCE, check_variables
from milpbn.network.classifier import TableClassifier
from milpbn.network.conformal import Conformal
from milpbn.network.cpt import Cpt
from milpbn.network.decisions import DecisionRule
from milpbn.util.jsonable import Fields, shorten
from milpbn.util.plurals import counted

#: Values of the keys ``format`` and ``version`` of the file.
FORMAT, VERSION = "milpbn-pseudo-classifier", 1
#: Version of files with a decision, which a milpbn that knows no decisions would ignore.
DECIDING = 2


@dataclass(frozen=True, eq=False)
class PseudoClassifier(TableClassifier):
    """One table per variable; classes are compared by the sum of the tables' log-probabilities.

    Attributes
    ----------
    variables : tuple of Variable, length V = N + 1
        Features first, the class variable last.
    cpts : tuple of Cpt, length V
        One table per variable; the graph of their parents may have cycles.
    decision, conformal
        As those of a `Classifier`.

    Raises
    ------
    InputError
        If the tables do not fit the variables, or do not hold probabilities.
    """

    variables: tuple[Variable, ...]
    cpts: tuple[Cpt, ...]
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

    def to_dict(self) -> dict[str, Any]:
        """Return the classifier as JSON values."""
        return {
            "format": FORMAT,
            "version": VERSION if self.decision is None else DECIDING,
            "variables": [asdict(v) for v in self.variables],
            "cpts": [{"parents": list(cpt.parents), "table": cpt.table.tolist()} for cpt in self.cpts],
            **({} if self.decision is None else {"decision": self.decision.to_dict()}),
            **({} if self.conformal is None else {"conformal": self.conformal.to_dict()}),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> PseudoClassifier:
        """Return the classifier that `to_dict` described; `InputError` if parts are missing or do not fit together."""
        version = VERSION if document.get("decision") is None else DECIDING
        if document.get("format") != FORMAT or document.get("version") != version:
            raise InputError(f"Its keys 'format' and 'version' are not {FORMAT!r} and {version}.")
        f = Fields(document, "It")
        variables = tuple(
            Variable(
                item.text("name"),
                tuple(item.texts("states")),
                None if item.missing("cuts") else tuple(item.numbers("cuts")),
                item.flag("numeric"),
                item.flag("missing_state"),
                item.text("label_type", LABEL_TYPES) if "label_type" in item else "text",
                None if item.missing("column") else item.text("column"),
            )
            for item in f.objects("variables")
        )
        cpts = tuple(
            Cpt(i, tuple(item.wholes("parents")), _table(item.items("table")))
            for i, item in enumerate(f.objects("cpts"))
        )
        decided = not f.missing("decision")
        decision = DecisionRule.read(f.fields("decision"), len(variables[-1].states)) if decided else None
        shapes = [[cpt.table.shape for cpt in cpts]]
        sets = None if f.missing("conformal") else Conformal.read(f.fields("conformal"), shapes)
        return cls(variables, cpts, decision, sets)


def _table(rows: list[Any]) -> NDArray[np.float64]:
    try:
        return np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):  # rows of different lengths, or text
        raise InputError(
            "A table in it has rows of different lengths, or values that are not numbers."
        ) from None
