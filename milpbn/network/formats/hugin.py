"""Hugin's ``.net`` files: their network is the file, or a class in it, and a node has no parents, but a potential."""

from __future__ import annotations

import numpy as np

from milpbn.drawing.network import node_boxes
from milpbn.errors import InputError
from milpbn.network.classifier import Classifier
from milpbn.network.formats.blocks import Block, read_blocks
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import (
    as_classifier,
    interval_states,
    nodes_of_lists,
    one_network,
    plain_nodes,
)
from milpbn.network.formats.tokens import PERCENT, numbers_of
from milpbn.network.formats.words import Spelling, in_words

_KEYWORDS = {
    *("net", "class", "node", "potential", "data", "discrete", "continuous", "decision", "utility", "function"),
    *("label", "position", "states", "instance", "temporal"),
}  # fmt: skip
_SPELLING = Spelling(keywords=frozenset(_KEYWORDS))


def to_net(classifier: AnyClassifier) -> str:
    """Return a classifier as the text of a Hugin file, whose nodes are where the drawing has them.

    Raises `InputError` if it is not one network.
    """
    originals = plain_nodes(classifier, "A Hugin file")
    network = one_network(classifier, "A Hugin file")
    boxes = node_boxes(network.structure.names, network.structure.parents, has_class=network.has_class)
    parts = ["net {\n  node_size = (80 40);\n}\n"]
    nodes = in_words(originals, _SPELLING)
    for i, node in enumerate(nodes):
        label = originals[i].name.translate(str.maketrans({'"': "'", "\\": "/", "\n": " ", "\r": " "}))
        x, y = boxes[i].x + boxes[i].width / 2, -boxes[i].y - boxes[i].height / 2  # upwards
        states = " ".join(f'"{state}"' for state in node.states)
        lines = [f"states = ({states});", f'label = "{label}";', f"position = ({x:.0f} {y:.0f});"]
        lines += [f'{key} = "{value}";' for key, value in node.properties.items()]
        parts.append(f"node {node.name} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n")
    for node in nodes:
        given = f" | {' '.join(node.parents)}" if node.parents else ""
        data = _nested(node.table, "          ")
        parts.append(f"potential ( {node.name}{given} ) {{\n  data = {data};\n}}\n")
    return "".join(parts)


def _nested(table: np.ndarray, indent: str) -> str:
    """Return a table in parentheses, one pair per parent and around each row."""
    if table.ndim == 1:
        return f"({' '.join(map(repr, table.tolist()))})"
    return "(" + f"\n{indent}".join(_nested(part, indent + " ") for part in table) + ")"


def from_net(text: str, target: str | None = None) -> Classifier:
    """Return the classifier in the text of a Hugin file.

    `target` is the name of the class variable; files that milpbn wrote name it themselves. Rows are normalised, and a
    potential without data is uniform, as in Hugin. Raises `InputError` if the text is not Hugin's, or not a network of
    discrete chance nodes; the sentence names the line and the node.
    """
    blocks: list[Block] = []
    for block in read_blocks(text, PERCENT):
        blocks += block.blocks if block.words[0].lower() == "class" else [block]
    states: dict[str, tuple[str, ...]] = {}
    properties: dict[str, dict[str, str]] = {}
    potentials = []
    for block in blocks:
        kind = " ".join(block.words[:-1])
        if block.words[0].lower() == "net":
            continue
        if block.words[0].lower() == "potential":
            potentials.append(block)
            continue
        if kind not in ("node", "discrete node"):
            raise InputError(
                f"{block.where} is {f'of the kind {kind}' if kind else 'of no kind'}; only discrete chance nodes "
                "can be read."
            )
        name = block.words[-1]
        if name in states:
            raise InputError(f"Line {block.head[0].line} declares the node {name!r} a second time.")
        labels, cut = tuple(block.texts("states")), {}
        if block.text("subtype").lower() == "interval":
            labels, cut = interval_states(block.edges("state_values"), labels, block.where)
        elif not labels and block.text("subtype").lower() == "boolean":
            labels = ("false", "true")
        elif not labels and block.text("subtype").lower() == "number":
            labels = tuple(block.texts("state_values"))
        if not labels:
            raise InputError(f"{block.where} has no states.")
        states[name], properties[name] = labels, {**cut, **block.properties()}
    if not states:
        raise InputError("It declares no node, so it is not a Hugin file.")
    lists = [_potential(block, states) for block in potentials]
    return as_classifier(nodes_of_lists(states, properties, lists), target, "Hugin")


def _potential(block: Block, states: dict[str, tuple[str, ...]]) -> tuple[str, list[str], list[float], str]:
    """Return what `nodes_of_lists` wants of a potential."""
    line = block.head[0].line
    texts = [token.text for token in block.head[1:] if token.quoted or token.text not in ("(", ")", ",")]
    bar = texts.index("|") if "|" in texts else len(texts)
    if bar != 1:
        raise InputError(f"The potential in line {line} is not that of one node given others.")
    name, parents, where = texts[0], texts[2:], f" (line {line})"
    if "data" not in block.fields and "model_data" in block.fields:
        raise InputError(f"The table of {name!r}{where} is a model; save the network with its tables.")
    if name not in states:
        return name, parents, [], where
    n = len(states[name])
    if "data" not in block.fields:
        shape = [float(len(states.get(parent, ()))) for parent in parents]
        return name, parents, [1 / n] * int(min(np.prod([n, *shape]), 1e8)), where
    values = numbers_of(block.fields["data"], f"The table of {name!r}")
    rows = np.array(values) if len(values) % n else np.array(values).reshape(-1, n)
    totals = rows.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = np.where((totals > 0) & (abs(totals - 1) > 1e-12), rows / totals, rows)
    return name, parents, rows.ravel().tolist(), where
