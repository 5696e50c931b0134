"""Netica's ``.dne`` and ``.dnet`` files, which are read: nodes with tables or functions, also of cut numbers."""

from __future__ import annotations

from collections.abc import Sequence

from milpbn.data.labels import StateLabels, number_label, number_of
from milpbn.errors import InputError
from milpbn.network.classifier import Classifier
from milpbn.network.formats.blocks import Block, read_blocks
from milpbn.network.formats.plain_network import as_classifier, interval_states, nodes_of_lists
from milpbn.network.formats.tokens import CPP


def from_dne(text: str, target: str | None = None) -> Classifier:
    """Return the classifier in the text of a Netica file.

    `target` is the name of the class variable. Nodes that are cut at levels take numbers. Findings, titles and drawings
    are left out. Raises `InputError` if the text is not Netica's, or not a network of chance nodes with tables; the
    sentence names the line and the node.
    """
    nets = [block for block in read_blocks(text, CPP) if block.words[0].lower() == "bnet"]
    if len(nets) != 1:
        raise InputError("It has no block 'bnet', so it is not a Netica file.")
    blocks = {}
    for block in nets[0].blocks:
        kind = block.text("kind").upper()
        if block.words[0] != "node" or kind == "CONSTANT":
            continue
        if kind not in ("NATURE", ""):
            raise InputError(f"{block.where} is of the kind {kind}; only chance nodes (NATURE) can be read.")
        if block.words[-1] in blocks:
            raise InputError(f"Line {block.head[0].line} has the node {block.words[-1]!r} a second time.")
        blocks[block.words[-1]] = block
    found = {name: _states(block) for name, block in blocks.items()}
    states = {name: labels for name, (labels, _) in found.items()}
    properties = {name: own for name, (_, own) in found.items()}
    lists = [
        (name, _parents(block), _values(block, states[name]), f" (line {block.head[0].line})")
        for name, block in blocks.items()
    ]
    return as_classifier(nodes_of_lists(states, properties, lists), target, "Netica")


def _states(block: Block) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return labels and properties of a node: its states' names, or its intervals, values, titles or numbers."""
    names, levels = block.texts("states"), block.edges("levels")
    if block.text("discrete").upper() == "FALSE" or (levels and not names and "discrete" not in block.fields):
        if not levels:
            raise InputError(f"{block.where} is continuous; cut it at levels in Netica.")
        return interval_states(levels, names, block.where)
    if not names and levels:
        names = [number_label(level) for level in levels]
    number = number_of(block.text("numstates"))
    names = names or block.texts("statetitles")
    if not names and 0 < number <= 10**6:
        names = [f"state{k}" for k in range(int(number))]
    if not names:
        raise InputError(f"{block.where} has no states.")
    return tuple(names), {}


def _parents(block: Block) -> list[str]:
    parents = block.texts("parents")
    commas = sum(token.is_mark(",") for token in block.fields.get("parents", []))
    if commas >= max(len(parents), 1):
        raise InputError(f"{block.where} has an input without a node; connect or delete it.")
    return parents


def _values(block: Block, states: Sequence[str]) -> list[float]:
    """Return the values of a node's table, from ``probs`` or ``functable``."""
    key = "probs" if "probs" in block.fields else "functable"
    if key not in block.fields:
        raise InputError(
            f"{block.where} has no table; have Netica convert equations to tables, and save the network."
        )
    labels, edges = StateLabels(states, numeric=True), block.edges("levels")
    if edges and len(edges) == len(states) + 1:
        intervals = StateLabels(interval_states(edges, (), block.where)[0])
    else:
        intervals = labels
    values: list[float] = []
    for token in block.fields[key]:
        text, number = token.text, number_of(token.text)
        if token.quoted or text in ("(", ")", ","):
            continue
        if key == "probs" and number == number:
            values.append(number)
        elif text == "@imposs":
            values += [0.0] if key == "probs" else [0.0] * len(states)
        else:
            code = int(text[1:]) if text[:1] == "#" and text[1:].isdecimal() else labels.code(text)
            code = intervals.code(text) if code is None else code
            if code is None or code >= len(states) or (key == "probs" and text[:1] != "#"):
                raise InputError(f"{block.where} has {text[:40]!r} in its table (line {token.line}).")
            values += [float(k == code) for k in range(len(states))]
    return values
