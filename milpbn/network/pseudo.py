"""The classifier of a pseudo-TAN (R20, section 4.5): tables whose graph may have cycles, no Bayesian network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Variable
from milpbn.errors import InputError
from milpbn.network.checks import ROW_SUM_TOLERANCE, check_variables
from milpbn.network.classifier import Source, TableClassifier
from milpbn.network.cpt import Cpt, class_log_joint
from milpbn.network.structure import Structure

#: Value of the key ``format`` of the file, and its version.
FORMAT, VERSION = "milpbn-pseudo-classifier", 1


@dataclass(frozen=True, eq=False)
class PseudoClassifier(TableClassifier):
    """One table per variable; classes are compared by the sum of the tables' log-probabilities.

    Attributes
    ----------
    variables : tuple of Variable, length V = N + 1
        Features first, the class variable last.
    cpts : tuple of Cpt, length V
        One table per variable; as a graph, their parents may have cycles.

    Raises
    ------
    InputError
        If the tables do not belong to the variables or do not hold probabilities.
    """

    variables: tuple[Variable, ...]
    cpts: tuple[Cpt, ...]

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
                raise InputError(f"The table of {variable.name!r} does not have its states' shape.")
            sums = cpt.table.sum(axis=-1)
            if not (cpt.table >= 0).all() or not np.allclose(sums, 1, rtol=0, atol=ROW_SUM_TOLERANCE):
                raise InputError(f"The table of {variable.name!r} has a row that is no distribution.")

    def predict_log_joint(self, source: Source) -> NDArray[np.float64]:
        """Return the sums of log-probabilities of all classes in nats, shape (M, C).

        They are no logarithms of joint probabilities where the graph has cycles. States without a code count as in
        `class_log_joint`.
        """
        data = self.encode(source)
        # Of the structure only the names are read.
        return class_log_joint(data.codes, Structure.empty(data.names), self.cpts, len(self.classes))

    def to_dict(self) -> dict[str, Any]:
        """Return the classifier as JSON values."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "variables": [asdict(v) for v in self.variables],
            "cpts": [{"parents": list(cpt.parents), "table": cpt.table.tolist()} for cpt in self.cpts],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> PseudoClassifier:
        """Return the classifier that `to_dict` described.

        Raises
        ------
        InputError
            If it is something else, or its parts do not belong together.
        """
        if document.get("format") != FORMAT or document.get("version") != VERSION:
            raise InputError(f"Its keys 'format' and 'version' are not {FORMAT!r} and {VERSION}.")
        try:
            variables = tuple(
                Variable(
                    str(item["name"]),
                    tuple(map(str, item["states"])),
                    None if item["cuts"] is None else tuple(map(float, item["cuts"])),
                    bool(item["numeric"]),
                    bool(item["missing_state"]),
                )
                for item in document["variables"]
            )
            cpts = tuple(
                Cpt(i, tuple(map(int, item["parents"])), np.array(item["table"], dtype=np.float64))
                for i, item in enumerate(document["cpts"])
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"A variable or a table in it lacks something or holds no numbers ({error})."
            ) from None
        return cls(variables, cpts)
