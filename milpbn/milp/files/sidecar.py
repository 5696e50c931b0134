"""The sidecar of an exported model: the meaning of its columns, and the data and options that it was made from."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from milpbn.claims.reading import read_constraints, read_score
from milpbn.errors import InputError
from milpbn.milp.files.text_output import model_stem
from milpbn.network.structure import Structure
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.util.atomic import atomic_write_text
from milpbn.util.declared import NotNegative, read_as
from milpbn.util.jsonable import Fields, parse_object, read_text, shorten

FORMAT = "milpbn-model"
VERSION = 1


def sidecar_path(model: Path) -> Path:
    """Return the path of the sidecar of a model file; InputError as for `model_stem`."""
    stem = model_stem(model)
    return stem.with_name(stem.name + ".json")


@dataclass(frozen=True, kw_only=True)
class Sidecar:
    """Everything that `milpbn import` needs besides the solver's solution: what the model is, and how it was made."""

    #: File name of the model.
    model: str
    #: Hash of data, score, constraints and formulation. The model has a column of this name that is fixed to 1, so that
    #: every solution file names the model.
    fingerprint: str
    #: Variable names, the class last.
    names: tuple[str, ...]
    #: Variable and parents of each parent-set column.
    columns: Mapping[str, tuple[str, list[str]]]
    score: Score
    constraints: Constraints
    #: Summary of the training data, with ``name`` and ``sha256``.
    data: Mapping[str, Any]
    #: How to read the data again (`milpbn.data.request.DataRequest`), if it came from a file or by name.
    request: Mapping[str, Any] | None
    #: Whether identical samples were merged.
    merge: bool
    #: If the model is over representative samples: the weight of each, by its row among the (merged) samples.
    subset: Mapping[int, float] | None = None
    #: The score is sign * (objective of the file) + constant.
    sign: float
    constant: float
    #: By how much the terms that the model computes by rows can differ between structures (`Formulation.span`); inf in
    #: files of earlier versions.
    span: NotNegative = math.inf
    #: The project's own bound on the score of every structure, in nats, if the export computed one.
    root_bound: float | None = None
    #: Attributes that files of earlier versions lack.
    LATER: ClassVar = ("span", "root_bound")

    def structure(self, values: Mapping[str, float], where: str) -> Structure:
        """Return the structure of column values, by column name; a column that is missing is zero.

        InputError, a sentence that begins with `where`, if the solution belongs to another model, is not integral, does
        not choose one parent set for every variable, or has a cycle.
        """
        if not any(name in self.columns for name in values):
            raise InputError(
                f"{where} has none of this model's columns, but {next(iter(values), 'none')!r}; have the solver keep "
                "the names of the model, or give its own model with --model."
            )
        if round(values.get(self.fingerprint, 0.0)) != 1:
            raise InputError(
                f"{where} is not a solution of this model (it lacks the column {self.fingerprint}): it belongs to "
                "other data or other options, or is cut off; give its own model with --model."
            )
        chosen: dict[str, list[str]] = {}
        for column, (variable, parents) in self.columns.items():
            value = values.get(column, 0.0)
            if abs(value - round(value)) > 1e-4 or not -0.5 < value < 1.5:
                raise InputError(
                    f"{where} has the value {value} in the column {column}, which must be 0 or 1."
                )
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
            raise InputError(f"{where} is not an acyclic graph: {error}") from None

    def save(self, path: Path) -> None:
        """Write the sidecar atomically."""
        own = {item.name: getattr(self, item.name) for item in fields(self)}
        own |= {"score": self.score.to_dict(), "constraints": self.constraints.to_dict()}
        own["subset"] = None if self.subset is None else list(self.subset.items())
        document = {"format": FORMAT, "version": VERSION, **own}
        atomic_write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")

    @staticmethod
    def is_at(path: Path) -> bool:
        """Return whether a file begins as a sidecar does, without reading the rest of it."""
        try:
            with open(path, "rb") as file:
                return FORMAT.encode() in file.read(100)
        except OSError:
            return False

    @classmethod
    def load(cls, path: Path) -> Sidecar:
        """Read a sidecar; InputError if the file is missing or is not one."""
        where = f"The sidecar {str(path)!r}"
        try:
            f = Fields(parse_object(read_text(path, "sidecar")), "It")
            if f.missing("format") or f.get("format") != FORMAT or f.whole("version") != VERSION:
                raise InputError(f"It is not marked as {FORMAT} version {VERSION}.")
            return cls._from_fields(f)
        except InputError as error:
            raise InputError(f"{where} cannot be used: {str(error)[0].lower()}{str(error)[1:]}") from None

    @classmethod
    def _from_fields(cls, f: Fields) -> Sidecar:
        names = tuple(f.texts("names"))
        if len(set(names)) < len(names):
            raise f.contradiction("it has a variable twice")
        model = f.text("model")
        if model != os.path.basename(model) or not model:
            raise InputError(f"Its model {shorten(model)} is not the name of a file in the same folder.")
        columns: dict[str, tuple[str, list[str]]] = {}
        given = f.fields("columns")
        for column in given:
            variable, parents = given.items(column) if len(given.items(column)) == 2 else (None, None)
            members = [variable, *parents] if isinstance(parents, list) else [None]
            if not all(isinstance(name, str) and name in names for name in members):
                raise InputError(
                    f"Its column {shorten(column)} does not consist of a variable and its parents."
                )
            columns[column] = (str(variable), [str(name) for name in parents or ()])
        if abs(f.number("sign")) != 1:
            raise InputError(f"Its sign {f.number('sign')!r} is neither 1 nor -1.")
        subset = None
        if not f.missing("subset"):
            subset = {row.whole("0"): row.number("1", 0.0) for row in f.rows("subset", 2)}
        data = f.fields("data")
        data.text("name")
        data.text("sha256")
        return read_as(
            cls,
            f,
            *f,
            names=names,
            columns=columns,
            score=read_score(f, "It"),
            constraints=read_constraints(f, "It"),
            data=data.plain(),
            request=None if f.missing("request") else f.get("request"),
            subset=subset,
        )


def fingerprint(
    data_sha256: str,
    score: Score,
    constraints: Constraints,
    acyclicity: str,
    merge: bool,
    kept: list[int] | None = None,
    subset: Mapping[int, float] | None = None,
) -> str:
    """Return a column name that two models share only if they state the same problem.

    `kept` has the indices of the parent sets that a reduced model keeps, by default all. `subset` has the weights of
    representative samples, see `Sidecar`; by default the model is over all samples.
    """
    described = [data_sha256, score.to_dict(), constraints.to_dict(), acyclicity, merge]
    if kept is not None:
        described.append(kept)
    if subset is not None:
        described.append({"subset": sorted(subset.items())})
    digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
    return f"id_{digest[:16]}"
