"""Files of structures: classifier files, results and arc lists are read; arc lists and Graphviz pictures are written.

An arc list is text with one arc per line: ``parent -> child``, ``parent,child``, or a tab between the names. ``#``
starts a comment at the beginning of a line or after white space. Names that contain a separator, a quote or ``#`` are
quoted: '...' without escapes, or "..." with JSON's escapes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Sequence

from milpbn.errors import InputError
from milpbn.network.formats.classifier_files import AVERAGED, AnyClassifier, parents_mapping
from milpbn.network.formats.plain_network import one_network
from milpbn.network.structure import Structure
from milpbn.util.atomic import atomic_write_text
from milpbn.util.jsonable import parse_object, read_text, unusable
from milpbn.util.text_lines import content_lines

# The quantifiers are possessive (*+): with backtracking, a line of many blanks would take quadratic time.
_NAME = r"""("(?:[^"\\]|\\.)*+"|'[^']*+'|[^\s"'\#,](?:(?!->|\s\#)[^,\t"])*+)"""
_ARC = re.compile(rf"\s*+{_NAME}[^\S\t]*+(?:->|,|\t)\s*+{_NAME}(?:\s++(?:\#.*)?)?", re.ASCII)
#: Names that need no quotes in an arc list.
_PLAIN = re.compile(r"(?!.*->)[^\W_][\w.()/:+=-]*(?: [\w.()/:+=-]+)*")


def read_structure(path: str | os.PathLike[str], names: Sequence[str]) -> Structure:
    """Read a structure over the given variables from a file of any kind that `read_parents` accepts.

    Parameters
    ----------
    path : str or path-like
        Classifier file, ``result.json`` or arc list.
    names : sequence of str
        The data's variables, the class last. Variables that are not in the file have no parents.

    Raises
    ------
    InputError
        If the file is unusable, names an unknown variable, or has a cycle.
    """
    mapping = read_parents(path, names)
    try:
        return Structure.from_mapping(names, mapping)
    except InputError as error:
        raise unusable("structure file", path, error) from None


def read_parents(path: str | os.PathLike[str], names: Collection[str] | None = None) -> dict[str, list[str]]:
    """Return ``{variable: [parents...]}`` from a classifier file, a ``result.json`` or an arc list.

    A file that starts with ``{`` is JSON, and the structure is under its key ``structure``. Any other file is an
    arc list.

    Parameters
    ----------
    path : str or path-like
        Path of the file.
    names : collection of str, optional
        Names of all variables; an arc list must not contain other names.

    Raises
    ------
    InputError
        If the file is unusable; the message names the file and, for an arc list, the line.
    """
    text = read_text(path, "structure file")
    try:
        if not text.strip():
            raise InputError(
                "It is empty; write a structure without arcs as a comment line, such as # no arcs."
            )
        if not text.lstrip().startswith("{"):
            return parse_arcs(text, names)
        document = parse_object(text)
        if document.get("format") == AVERAGED:
            raise InputError(
                "It holds an average of several networks, not one structure; give the result of the run (--output), "
                "which has the structure of the first network."
            )
        if document.get("structure") is None:
            raise InputError(
                "It holds no structure under the key 'structure'; a model has none if it is not an acyclic graph, "
                "such as a multinet, a pseudo-TAN with a cycle, or a support vector machine."
            )
        return parents_mapping(document["structure"])
    except InputError as error:
        raise unusable("structure file", path, error) from None


def parse_arcs(text: str, names: Collection[str] | None = None) -> dict[str, list[str]]:
    """Return ``{variable: [parents...]}`` from the text of an arc list.

    Raises `InputError` if a line is not an arc, names a variable that is not in `names`, or makes a variable its own
    parent.
    """
    parents: dict[str, list[str]] = {}
    for number, line in content_lines(text):
        arc = _ARC.fullmatch(line)
        if arc is None:
            raise InputError(
                f"Line {number} is not an arc: {line[:80]!r}; write parent -> child or parent,child, "
                "and put names with commas, arrows or comment signs in double quotes."
            )
        parent, child = (_unquote(name, number) for name in arc.groups())
        for name in (parent, child):
            if names is not None and name not in names:
                raise InputError(f"Line {number} names {name!r}, which is not a variable of the data.")
        if parent == child:
            raise InputError(f"Line {number} makes {child!r} its own parent; delete it.")
        members = parents.setdefault(child, [])
        if parent not in members:
            members.append(parent)
    return parents


def format_arcs(structure: Structure) -> str:
    """Return a structure as the text of an arc list, with a comment that gives the numbers of variables and arcs."""
    names = [_quote(name) for name in structure.names]
    lines = [f"# {len(names)} variables, {len(structure.arcs)} arcs, the class variable is {names[-1]}"]
    lines += [f"{names[parent]} -> {names[child]}" for parent, child in structure.arcs]
    return "\n".join(lines) + "\n"


def write_arcs(structure: Structure, path: str | os.PathLike[str]) -> None:
    """Write a structure atomically as an arc list, which `read_structure` reads.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    atomic_write_text(path, format_arcs(structure))


def to_dot(structure: Structure, *, has_class: bool = True) -> str:
    """Return a structure as a Graphviz digraph in which the class variable, if there is one, is a box.

    Features outside the Markov blanket of the class, which change no prediction, are grey.
    """
    names, used = [_dot_quote(name) for name in structure.names], structure.markov_blanket
    if not has_class:
        used = frozenset(range(len(names)))
    lines = [f"  {names[-1]} [shape=box];" if has_class else f"  {names[-1]};"]
    lines += [
        f"  {name};" if i in used else f"  {name} [color=gray, fontcolor=gray];"
        for i, name in enumerate(names[:-1])
    ]
    lines += [f"  {names[parent]} -> {names[child]};" for parent, child in structure.arcs]
    return "digraph structure {\n" + "\n".join(lines) + "\n}\n"


def classifier_to_dot(classifier: AnyClassifier) -> str:
    """Return the structure of a classifier as `to_dot` does.

    Raises `InputError` if the classifier is not one network.
    """
    network = one_network(classifier, "A DOT file")
    return to_dot(network.structure, has_class=network.has_class)


def _unquote(name: str, line: int) -> str:
    if name.startswith("'"):
        return name[1:-1]
    if not name.startswith('"'):
        return name.strip()
    try:
        return json.loads(name, strict=False)
    except json.JSONDecodeError:
        raise InputError(
            f"Line {line} has a name with an escape that is not valid in JSON: {name[:80]}."
        ) from None


def _quote(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name)


def _dot_quote(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("\n", "\\n")
    return f'"{escaped}"'
