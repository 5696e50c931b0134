"""The sidecar of an exported model: what its columns mean and what it was made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milpbn.atomic import atomic_write_text
from milpbn.errors import InputError
from milpbn.network.jsonable import parse_object, read_text
from milpbn.network.structure import Structure
from milpbn.scores.constraints import Constraints
from milpbn.scores.spec import Score

FORMAT = "milpbn-model"
VERSION = 1


@dataclass(frozen=True)
class Sidecar:
    """Everything `milpbn import` needs beside the solver's solution.

    Attributes
    ----------
    model : str
        File name of the model.
    fingerprint : str
        Hash of data, score, constraints and formulation; also the name of a column that is fixed to 1 in the
        model, so that every solution file carries it.
    names : tuple of str
        Variable names, the class last.
    columns : mapping of str to (str, list of str)
        Variable and parents of each parent-set column.
    score : Score
        What the model maximises.
    constraints : Constraints
        What it enforces.
    data : mapping
        Summary with name and sha256 of the training data.
    request : mapping or None
        How to read the data again (`milpbn.data.request.DataRequest`), if it came from a file or by name.
    merge : bool
        Whether identical samples were merged.
    subset : mapping of int to float, or None
        What the samples of a subset that stands for all count, by their row among the (merged) samples.
    sign, constant : float
        The score is sign * (objective of the file) + constant.
    """

    model: str
    fingerprint: str
    names: tuple[str, ...]
    columns: Mapping[str, tuple[str, list[str]]]
    score: Score
    constraints: Constraints
    data: Mapping[str, Any]
    request: Mapping[str, Any] | None
    merge: bool
    sign: float
    constant: float
    subset: Mapping[int, float] | None = None

    def structure(self, values: Mapping[str, float], where: str) -> Structure:
        """Rebuild the structure from column values; columns that are missing are zero.

        Raises
        ------
        InputError
            If the solution belongs to another model, is not integral, does not choose one parent set for
            every variable, or has a cycle; `where` names the solution.
        """
        if round(values.get(self.fingerprint, 0.0)) != 1:
            raise InputError(
                f"{where} is not a solution of this model (it lacks the column {self.fingerprint}): it belongs to "
                "other data or other options; give its own model with --model."
            )
        chosen: dict[str, list[str]] = {}
        for column, (variable, parents) in self.columns.items():
            value = values.get(column, 0.0)
            if abs(value - round(value)) > 1e-4 or not -0.5 < value < 1.5:
                raise InputError(f"{where} has the value {value} in the column {column}, which is binary.")
            if round(value) == 1:
                if variable in chosen:
                    raise InputError(f"{where} chooses two parent sets for the variable {variable!r}.")
                chosen[variable] = parents
        missing = [name for name in self.names if name not in chosen]
        if missing:
            raise InputError(f"{where} chooses no parent set for the variable {missing[0]!r}.")
        try:
            return Structure.from_mapping(self.names, chosen)
        except InputError as error:
            raise InputError(f"{where} is no acyclic graph: {error}") from None

    def save(self, path: Path) -> None:
        """Write the sidecar atomically."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "model": self.model,
            "fingerprint": self.fingerprint,
            "names": list(self.names),
            "columns": {name: [v, list(p)] for name, (v, p) in self.columns.items()},
            "score": self.score.to_dict(),
            "constraints": self.constraints.to_dict(),
            "data": dict(self.data),
            "request": self.request,
            "merge": self.merge,
            "subset": None if self.subset is None else [list(pair) for pair in self.subset.items()],
            "sign": self.sign,
            "constant": self.constant,
        }
        atomic_write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> Sidecar:
        """Read a sidecar.

        Raises
        ------
        InputError
            If the file is missing or is no sidecar.
        """
        where = f"The sidecar {str(path)!r}"
        try:
            values = parse_object(read_text(path, "sidecar"))
            if values.get("format") != FORMAT or values.get("version") != VERSION:
                raise InputError(f"it is not marked as {FORMAT} version {VERSION}.")
            return cls(
                model=str(values["model"]),
                fingerprint=str(values["fingerprint"]),
                names=tuple(str(n) for n in values["names"]),
                columns={str(k): (str(v), [str(n) for n in p]) for k, (v, p) in values["columns"].items()},
                score=Score.from_dict(values["score"]),
                constraints=Constraints.from_dict(values["constraints"]),
                data=dict(values["data"]),
                request=values["request"],
                merge=bool(values["merge"]),
                sign=float(values["sign"]),
                constant=float(values["constant"]),
                subset=None
                if values.get("subset") is None
                else {int(row): float(weight) for row, weight in values["subset"]},
            )
        except KeyError as error:
            raise InputError(f"{where} cannot be used: it lacks the key {error.args[0]!r}.") from None
        except (InputError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{where} cannot be used: {error}") from None


def fingerprint(
    data_sha256: str,
    score: Score,
    constraints: Constraints,
    acyclicity: str,
    merge: bool,
    kept: list[int] | None = None,
    subset: Mapping[int, float] | None = None,
) -> str:
    """Return a column name that two models share only if they are the same problem.

    `kept` are the entries of eta that a reduced model holds, and `subset` what the samples count that stand for all;
    None means all.
    """
    described = [data_sha256, score.to_dict(), constraints.to_dict(), acyclicity, merge]
    if kept is not None:
        described.append(kept)
    if subset is not None:
        described.append({"subset": sorted(subset.items())})
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
    return f"id_{digest[:16]}"
