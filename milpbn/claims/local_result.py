"""The result of a search over local scores (``.jkl``), and the format of its file.

It is a result without data and without a classifier. Its file has the keys of ``result.json`` that have a meaning here,
with a key ``format`` that tells the two kinds of files apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from milpbn.claims.other_files import LOCAL
from milpbn.claims.reasons import BoundSource
from milpbn.claims.result import Result
from milpbn.data.dataset import Dataset
from milpbn.problem.local import LocalDataset, LocalScore
from milpbn.problem.scores.spec import Score
from milpbn.util.declared import Count
from milpbn.util.jsonable import Fields
from milpbn.util.plurals import counted

#: The keys of the file beside ``format``.
KEYS = (
    *("version", "data", "constraints", "status", "objective", "bound", "tolerance", "gap", "structure"),
    *("backend", "bound_source", "seconds", "trace", "seed", "run", "nodes", "alternatives", "notes"),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class LocalResult(Result):
    """Outcome of a search for the structure with the largest sum of local scores.

    The summary of the data has the name of the file of scores without its ending, the hash of its variables, parent
    sets and scores, and the number of its variables. `parent_sets` counts the parent sets in it.
    """

    parent_sets: Count
    FORMAT: ClassVar = LOCAL

    @property
    def described_data(self) -> str:
        """What was searched, in words."""
        return f"{counted(self.parent_sets, 'parent set')} of {counted(self.data.features, 'variable')}"

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of the file; unknown numbers are None."""
        values = super().to_dict()
        own: dict[str, Any] = {"name": self.data.name, "sha256": self.data.sha256}
        own |= {"variables": self.data.features, "parent_sets": self.parent_sets}
        return {"format": LOCAL} | {key: values[key] for key in KEYS} | {"data": own}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "The result") -> Self:
        """Read what `to_dict` returned, also in an earlier version; see `Result.from_dict`."""
        f = Fields(values, where)
        f.text("format", (LOCAL,))
        f.known(("format", *KEYS))
        data = f.fields("data")
        data.known(("name", "sha256", "variables", "parent_sets"))
        found = {key: f.get(key) for key in f if key != "format"} | {"class": None}
        found["data"] = {"name": data.get("name"), "sha256": data.get("sha256"), "samples": 1}
        found["data"] |= {"unique_samples": 1, "features": data.whole("variables", 1), "classes": 0}
        # Files of earlier versions have the total of the seconds only, and call bounds of branch and cut a solver's.
        seconds = f.fields("seconds")
        if [*seconds] == ["total"]:
            total = seconds.get("total")
            found["seconds"] = {"total": total, "coefficients": 0.0, "model": 0.0, "solve": total}
        if f.fields("backend").get("name") == "branch-and-cut":
            found["bound_source"] = BoundSource.CERTIFIED.value
        result = super().from_dict(found | {"parent_sets": data.whole("parent_sets", 1)}, where)
        object.__setattr__(result, "classifier", None)
        return result

    @classmethod
    def read_score(cls, f: Fields, where: str) -> Score:
        """Return what stands for the score, which the file does not have."""
        return LocalScore()


def result_kind(values: Mapping[str, Any]) -> type[Result]:
    """Return the class of the result that a document holds: over data or over local scores."""
    return LocalResult if values.get("format") == LOCAL else Result


def result_over(dataset: Dataset, **claims: Any) -> Result:
    """Return the result of a search over data, or over the local scores that stand for them."""
    if isinstance(dataset, LocalDataset):
        return LocalResult(parent_sets=dataset.local.candidates.n_sets, **claims)
    return Result(**claims)
