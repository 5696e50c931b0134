"""GeNIe's files, as GeNIe and others write them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from format_cases import random_classifier, written

from milpbn.errors import InputError
from milpbn.network.formats.plain_network import plain_nodes
from milpbn.network.formats.registry import read_network
from milpbn.network.formats.words import in_words
from milpbn.network.formats.xdsl import read_xdsl, to_xdsl
from milpbn.network.formats.xmlbif import parse_xml

GENIE = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!-- This network was created in GeNIe Academic -->
<smile version="1.0" id="Net" numsamples="10000">
 <nodes>
  <cpt id="A" diagtype="target"><state id="a b" /><state id="a1" /><probabilities>0.25 0.75</probabilities>
   <property id="unit">é</property></cpt>
  <cpt id="B"><state id="b0" /><state id="b1" /><state id="b2" /><parents>A</parents>
   <probabilities>0.1 .2 0.7
     1 0 0e0</probabilities></cpt>
  <deterministic id="D"><state id="x" /><state id="y" /><parents>A B</parents>
   <resultingstates>x x y y y x</resultingstates></deterministic>
  <noisymax id="M"><state id="high" /><state id="low" /><state id="off" /><parents>A B</parents>
   <strengths>1 0 2 0 1</strengths>
   <parameters>0.5 0.3 0.2 0 0 1 0.4 0.4 0.2 0.1 0.2 0.7 0 0 1 0.05 0.1 0.85</parameters></noisymax>
 </nodes>
 <extensions><genie version="1.0" app="GeNIe"><submodel id="S"><node id="A"><name>A</name></node></submodel></genie>
 </extensions>
</smile>
"""


def test_genies_nodes_become_tables():
    nodes = {node.name: node for node in read_xdsl(GENIE)}
    assert nodes["A"].states == ("a b", "a1")
    assert nodes["B"].table.tolist() == [[0.1, 0.2, 0.7], [1, 0, 0]]
    assert nodes["D"].table.argmax(axis=-1).tolist() == [[0, 0, 1], [1, 1, 0]]
    assert nodes["D"].table.sum() == 6


def test_a_noisy_maximum_is_that_of_its_causes():
    """Independent causes, and the leak: the node is the strongest of their effects (lowest index)."""
    effects = {"A": [[0, 0, 1], [0.5, 0.3, 0.2]], "B": [[0.1, 0.2, 0.7], [0, 0, 1], [0.4, 0.4, 0.2]]}
    expected = np.zeros((2, 3, 3))
    for a, b in np.ndindex(2, 3):
        for causes in itertools.product(range(3), repeat=3):
            rows = (effects["A"][a], effects["B"][b], [0.05, 0.1, 0.85])
            expected[a, b, min(causes)] += np.prod([row[k] for row, k in zip(rows, causes, strict=True)])
    assert read_xdsl(GENIE)[3].table == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("seed", [1, 4])
def test_pgmpy_reads_it(seed, tmp_path):
    readwrite = pytest.importorskip("pgmpy.readwrite")
    classifier = random_classifier(seed)
    reader = readwrite.XDSLReader(written(to_xdsl(classifier), tmp_path / "n.xdsl"))
    nodes = in_words(plain_nodes(classifier, ""))
    assert any(len(node.parents) > 1 for node in nodes)
    for node in nodes:
        assert tuple(reader.variable_parents[node.name]) == node.parents
        values = np.array(reader.variable_CPD[node.name])
        assert np.array_equal(values, node.table.reshape(-1, len(node.states)).T)


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("utf-8", "ISO-8859-1"),
        ("latin-1", "ISO-8859-1"),
        ("utf-16", "UTF-16"),
        ("utf-8", "UTF-16"),
        ("cp1251", "windows-1251"),
        ("cp1252", "unknown"),
    ],
)
def test_genies_encodings_are_read(encoding, declared, tmp_path):
    """By the byte order mark, as UTF-8, as the file declares, or as cp1252."""
    label = "Да" if encoding == "cp1251" else "é€" if encoding == "cp1252" else "é"
    text = GENIE.replace("ISO-8859-1", declared).replace("a b", label)
    (tmp_path / "n.xdsl").write_bytes(text.replace("é<", "<").encode(encoding))
    assert read_network(tmp_path / "n.xdsl", "A").classes == (label, "a1")


def test_our_boxes_do_not_overlap():
    root = parse_xml(to_xdsl(random_classifier(4)))
    boxes = [[int(word) for word in (e.findtext("position") or "").split()] for e in root.iter("node")]
    assert len(boxes) == 6
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("<smile", "<mile"), "not XML"),
        (("nodes>", "knots>"), "not GeNIe's"),
        (("</nodes>", "</nodes><dynamic />"), "not GeNIe's"),
        (("deterministic", "decision"), "'D' is of the kind decision"),
        (("y y y x", "y y y z"), "'D' has the result 'z', which is none of its states"),
        (("y y y x", "y y y"), "'D' has 10 values, but needs 12"),
        (("<parents>A</parents>", "<parents>Q</parents>"), "'B' names 'Q'"),
        (("<strengths>1 0", "<strengths>1 1"), "'M' has strengths that are no orders"),
        (("0.25 0.75", "0.25 x"), "'A' holds a value that is no probability"),
        (('<state id="x" /><state id="y" />', ""), "'D' has no states"),
    ],
)
def test_what_is_no_network_of_genie_is_refused(change, said, tmp_path):
    (tmp_path / "n.xdsl").write_text(GENIE.replace(*change), encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_network(tmp_path / "n.xdsl", "A")
