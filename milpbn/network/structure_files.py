"""Structures as files: read from classifier, result and arc list files, written as arc lists and DOT.

An arc list is text with one arc per line, ``parent -> child``, ``parent,child`` or with a tab between
them; ``#`` starts a comment at the beginning of a line or after white space. Names that hold a separator,
a quote or a comment sign stand in quotes: '...' as it is, "..." with JSON's escapes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Sequence

from milpbn.atomic import atomic_write_text
from milpbn.errors import InputError
from milpbn.network.files import parents_mapping
from milpbn.network.jsonable import parse_object, read_text
from milpbn.network.structure import Structure

_NAME = r"""("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'\#,](?:(?!->|\s\#)[^,\t"])*?)"""
_ARC = re.compile(rf"\s*{_NAME}\s*(?:->|,|\t)\s*{_NAME}\s*(?:\s\#.*)?", re.ASCII)
#: Names that an arc list may hold without quotes.
_PLAIN = re.compile(r"(?!.*->)[^\W_][\w.()/:+=-]*(?: [\w.()/:+=-]+)*")


def read_structure(path: str | os.PathLike[str], names: Sequence[str]) -> Structure:
    """Read a structure over the given variables; see `read_parents` for the files.

    Parameters
    ----------
    path : str or path-like
        Classifier file, ``result.json`` or arc list.
    names : sequence of str
        The data's variables, the class last. Variables that the file leaves out have no parents.

    Raises
    ------
    InputError
        If the file is unusable, names another variable, or has a cycle.
    """
    mapping = read_parents(path, names)
    try:
        return Structure.from_mapping(names, mapping)
    except InputError as error:
        raise _unusable(path, str(error)) from None


def read_parents(path: str | os.PathLike[str], names: Collection[str] | None = None) -> dict[str, list[str]]:
    """Return ``{variable: [parents...]}`` from a classifier file, a ``result.json`` or an arc list.

    The content decides: what starts with ``{`` is JSON and its key ``structure`` is taken, the rest is an
    arc list.

    Parameters
    ----------
    path : str or path-like
        The file.
    names : collection of str, optional
        The variables there are; a line of an arc list that names another one is an error.

    Raises
    ------
    InputError
        One sentence that names the file and, in an arc list, the line.
    """
    text = read_text(path, "structure file")
    try:
        if not text.strip():
            raise InputError("It is empty; a structure without arcs still has a comment line.")
        if not text.lstrip().startswith("{"):
            return parse_arcs(text, names)
        document = parse_object(text)
        if document.get("structure") is None:
            raise InputError(
                "It holds no structure under the key 'structure'; a model that is no acyclic graph has none, "
                "as a multinet, a pseudo-TAN with a cycle, or a support vector machine."
            )
        return parents_mapping(document["structure"])
    except InputError as error:
        raise _unusable(path, str(error)) from None


def parse_arcs(text: str, names: Collection[str] | None = None) -> dict[str, list[str]]:
    """Return ``{variable: [parents...]}`` from the text of an arc list.

    Raises
    ------
    InputError
        If a line is no arc, names something outside ``names``, or joins a variable with itself.
    """
    parents: dict[str, list[str]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        arc = _ARC.fullmatch(line)
        if arc is None:
            raise InputError(
                f"Line {number} is no arc: {line.strip()[:80]!r}; write parent -> child or parent,child, "
                "with names that hold commas, arrows or comment signs in double quotes."
            )
        parent, child = (_unquote(name, number) for name in arc.groups())
        for name in (parent, child):
            if names is not None and name not in names:
                raise InputError(f"Line {number} names {name!r}, which is no variable of the data.")
        if parent == child:
            raise InputError(f"Line {number} makes {child!r} its own parent; delete it.")
        members = parents.setdefault(child, [])
        if parent not in members:
            members.append(parent)
    return parents


def format_arcs(structure: Structure) -> str:
    """Return a structure as the text of an arc list, with a comment that counts variables and arcs."""
    names = [_quote(name) for name in structure.names]
    lines = [f"# {len(names)} variables, {len(structure.arcs)} arcs, the class variable is {names[-1]}"]
    lines += [f"{names[parent]} -> {names[child]}" for parent, child in structure.arcs]
    return "\n".join(lines) + "\n"


def write_arcs(structure: Structure, path: str | os.PathLike[str]) -> None:
    """Write a structure as an arc list, atomically; `read_structure` reads it back.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    atomic_write_text(path, format_arcs(structure))


def to_dot(structure: Structure) -> str:
    """Return a structure as a Graphviz digraph, the class variable as a box."""
    names = [_dot_quote(name) for name in structure.names]
    lines = [f"  {names[-1]} [shape=box];"]
    lines += [f"  {name};" for name in names[:-1]]
    lines += [f"  {names[parent]} -> {names[child]};" for parent, child in structure.arcs]
    return "digraph structure {\n" + "\n".join(lines) + "\n}\n"


def _unusable(path: str | os.PathLike[str], reason: str) -> InputError:
    return InputError(f"The structure file {str(path)!r} is unusable: {reason[0].lower()}{reason[1:]}")


def _unquote(name: str, line: int) -> str:
    if name.startswith("'"):
        return name[1:-1]
    if not name.startswith('"'):
        return name.strip()
    try:
        return json.loads(name, strict=False)
    except json.JSONDecodeError:
        raise InputError(
            f"Line {line} has a name with an escape that JSON does not have: {name[:80]}."
        ) from None


def _quote(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name)


def _dot_quote(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("\n", "\\n")
    return f'"{escaped}"'
