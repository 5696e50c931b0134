"""Reads the parts of a ``result.json`` that are no dataclasses of this package, or need more than their declaration.

Only the form of the values is checked here, and that they do not contradict each other. Whether they are true is
checked against data and certificate in `milpbn.certificate.verify.check`. ``docs/numbers.md`` has a table of all keys
and how each is checked. Every function raises `InputError` if a value is missing, has another form, or contradicts
another one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from milpbn.claims.alternatives import Alternatives
from milpbn.claims.reasons import LIMITED, Status
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.class_free import among
from milpbn.problem.constraints import Constraints
from milpbn.problem.scores.spec import Score
from milpbn.util.atomic import atomic_write_text
from milpbn.util.declared import read_as
from milpbn.util.jsonable import Fields

#: Seconds, incumbent and bound; None while there is none.
TracePoint = tuple[float, float | None, float | None]


def save_document(path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
    """Write JSON atomically; raise InputError if the file cannot be written."""
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    # UTF-8 cannot encode lone surrogates; JSON escapes them in the same form as Python.
    atomic_write_text(path, text.encode(errors="backslashreplace").decode())


def read_status(f: Fields) -> Status:
    """Read how a run ended; refuse a limit beside a reason that has none (`LIMITED`)."""
    status = read_as(Status, f.fields("status"))
    if status.limit is not None and status.reason not in LIMITED:
        raise f.contradiction(
            f"the limit {str(status.limit)!r} does not go with the reason {str(status.reason)!r}"
        )
    return status


def read_structure(f: Fields, where: str) -> Structure | None:
    """Read the structure with the class last, since other tools may have reordered the keys.

    Without a class the order of the keys is that of the variables.
    """
    target = f.optional("class", f.text)
    if f.get("structure") is None:
        if target is not None:
            raise f.contradiction("it names a class, but has no structure")
        return None
    if target is None and f.fields("data").number("classes", 0) == 0:
        target = [None, *f.fields("structure")][-1]
    return _structure(f, target, where)


def read_alternatives(f: Fields, structure: Structure | None, where: str) -> Alternatives | None:
    """Read the K best structures; each has the variables of the result's structure, which is the first of them."""
    if f.missing("alternatives"):
        return None
    own = f.fields("alternatives")
    if structure is None:
        raise f.contradiction("it lists the best structures, but has none")
    names = structure.names
    listed = [_structure(one, names[-1], where) for one in own.objects("structures")]
    if any(set(other.names) != set(names) for other in listed):
        raise own.contradiction("a structure of the list has other variables than the result's")
    same_order = [Structure.from_mapping(names, other.to_mapping()) for other in listed]
    if same_order[:1] != [structure]:
        raise own.contradiction("the first structure of the list is not that of the result")
    return Alternatives.of(own, same_order)


def read_parents(f: Fields) -> dict[str, list[str]]:
    """Read the parents of every variable under the key ``structure``."""
    given = f.fields("structure")
    return {name: given.texts(name) for name in given}


def structure_of(parents: Mapping[str, list[str]], where: str, target: str | None = None) -> Structure:
    """Return the structure with these parents, and the class last; refuse cycles and unknown parents."""
    try:
        return Structure.from_mapping(sorted(parents, key=lambda name: name == target), parents)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _structure(f: Fields, target: str | None, where: str) -> Structure:
    """Read the structure under the key of that name, with the class last."""
    parents = read_parents(f)
    if target not in parents:
        raise f.contradiction(f"its class {target!r} is not a variable of its structure")
    for name, members in parents.items():
        if len(set(members)) < len(members):
            raise f.contradiction(f"{name!r} has a parent twice")
    return structure_of(parents, where, target)


def read_score(f: Fields, where: str) -> Score:
    """Read the score with its options."""
    given = f.fields("score")
    given.known([field.name for field in fields(Score)])
    try:
        return Score.from_dict(given.plain())
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def read_constraints(f: Fields, where: str) -> Constraints:
    """Read the constraints; none where the key is missing."""
    return Constraints.from_dict(f.get("constraints") if "constraints" in f else {}, f"{where}, constraints")


def read_among(values: object, where: str) -> str:
    """Return the structures that a document with a score and constraints is about (`class_free.among`)."""
    f = Fields(values, where)
    return among(read_score(f, where), read_constraints(f, where))


def check_among(f: Fields, computed: str) -> None:
    """Refuse a result that is about other structures than its score and constraints say; old ones lack the key."""
    if "among" in f and (f.optional("among", f.text) or "") != computed:
        about = computed or "all structures"
        raise f.contradiction(
            f"by its score and constraints it is about {about}, and its key 'among' says other"
        )


def read_trace(f: Fields) -> tuple[TracePoint, ...]:
    """Read the any-time trace; times and incumbents never fall, bounds never rise or are below their incumbent."""
    points: list[TracePoint] = []
    last, best, least = 0.0, None, None
    for row in f.rows("trace", 3):
        seconds = row.number("0", 0.0)
        objective, bound = row.optional("1", row.number), row.optional("2", row.number)
        if seconds < last:
            raise row.contradiction(f"its time {seconds!r} is before the {last!r} of the point before")
        if best is not None and (objective is None or objective < best):
            raise row.contradiction(f"its incumbent {objective!r} is below the {best!r} of the point before")
        if least is not None and (bound is None or bound > least):
            raise row.contradiction(f"its bound {bound!r} is above the {least!r} of the point before")
        if objective is not None and bound is not None and bound < objective:
            raise row.contradiction(f"its bound {bound!r} is below its incumbent {objective!r}")
        points.append((seconds, objective, bound))
        last, best, least = seconds, objective, bound
    return tuple(points)
