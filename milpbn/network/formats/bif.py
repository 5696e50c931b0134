"""The Bayesian interchange format (BIF, version 0.15), as pgmpy and pyAgrum read and write it.

These programs accept different labels: pyAgrum only words of ASCII letters and integers, pgmpy no commas, and names
that differ in more than the case of letters. So every name and label is written as a word that both of them read. Where
this word differs from the original, the original is in the properties ``milpbn_name`` and ``milpbn_states``,
percent-encoded. Reading is more generous: quoted labels, labels with spaces, lists without commas, comments and
properties are understood.

pyAgrum reads the probabilities of BIF files in single precision; XMLBIF files keep all digits there.
"""

from __future__ import annotations

import itertools

from milpbn.network.formats.bif_reader import read_nodes
from milpbn.network.formats.classifier_files import AnyClassifier
from milpbn.network.formats.plain_network import plain_nodes, reader_of
from milpbn.network.formats.words import in_words

_KEYWORDS = "network variable probability property type discrete table default"


def to_bif(classifier: AnyClassifier) -> str:
    """Return a classifier as the text of a BIF file; its probabilities have all digits.

    Raises `InputError` if it is not one network.
    """
    nodes = in_words(plain_nodes(classifier, "A BIF file"), bif=True, keywords=_KEYWORDS)
    labels = {node.name: node.states for node in nodes}
    parts = ["network milpbn {\n}\n"]
    for node in nodes:
        lines = [f"  property {key} = {value} ;\n" for key, value in node.properties.items()]
        parts.append(
            f"variable {node.name} {{\n"
            f"  type discrete [ {len(node.states)} ] {{ {', '.join(node.states)} }};\n{''.join(lines)}}}\n"
        )
    for node in nodes:
        given = f" | {', '.join(node.parents)}" if node.parents else ""
        rows = node.table.reshape(-1, len(node.states)).tolist()
        if node.parents:
            cases = itertools.product(*(labels[name] for name in node.parents))
            starts = [f"({', '.join(case)})" for case in cases]
        else:
            starts = ["table"]
        lines = [f"  {a} {', '.join(map(repr, row))};\n" for a, row in zip(starts, rows, strict=True)]
        parts.append(f"probability ( {node.name}{given} ) {{\n{''.join(lines)}}}\n")
    return "".join(parts)


from_bif = reader_of(read_nodes, "BIF")
