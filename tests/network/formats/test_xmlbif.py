from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from format_cases import assert_same, random_classifier, written

from milpbn.data.dataset import Dataset, Variable
from milpbn.errors import InputError
from milpbn.network.classifier import Classifier
from milpbn.network.formats.libraries import from_pgmpy
from milpbn.network.formats.xmlbif import from_xmlbif, to_xmlbif

FOREIGN = """<?xml version="1.0"?>
<!DOCTYPE BIF [ <!ELEMENT BIF ( NETWORK )*> ]>
<BIF VERSION="0.3"><NETWORK><NAME>x</NAME>
<VARIABLE TYPE="nature"><NAME>light-on</NAME><OUTCOME>true</OUTCOME><OUTCOME>false</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>out</NAME><OUTCOME>(-inf-2.5]</OUTCOME><OUTCOME>(2.5-inf)</OUTCOME></VARIABLE>
<DEFINITION><FOR>light-on</FOR><GIVEN>out</GIVEN><TABLE>0.6 0.4 <!-- a row --> 0.05 0.95</TABLE></DEFINITION>
<DEFINITION><FOR>out</FOR><TABLE>0.15 0.85</TABLE></DEFINITION>
</NETWORK></BIF>"""


def test_labels_that_xml_would_change_come_back():
    plain = random_classifier(0, 1)
    states = (" x", "a  b", "", "\x01", "\n")
    variables = (Variable("f", states[: plain.variables[0].n_states]), plain.variables[1])
    structure = plain.structure.from_mapping(("f", plain.variables[1].name), {"f": [plain.variables[1].name]})
    data = Dataset("d", variables, np.zeros((2, len(variables)), dtype=np.int32), np.ones(2))
    assert from_xmlbif(to_xmlbif(Classifier.fit(data, structure))).variables == variables


def test_wekas_spelling_is_read():
    found = from_xmlbif(FOREIGN, "light-on")
    assert found.variables[0].cuts == (2.5,)
    assert found.cpts[1].table.tolist() == [[0.6, 0.4], [0.05, 0.95]]


@pytest.mark.parametrize("seed", range(5))
def test_pgmpy_reads_it(seed, tmp_path):
    readwrite = pytest.importorskip("pgmpy.readwrite")
    classifier = random_classifier(seed)
    path = written(to_xmlbif(classifier), tmp_path / "n.xml")
    assert_same(from_pgmpy(readwrite.XMLBIFReader(path).get_model()), classifier)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("<BIF", "<BIF <"), "not XML"),
        (("NETWORK", "NET"), "without an element NETWORK"),
        (("<!ELEMENT BIF ( NETWORK )*>", '<!ENTITY a "b">'), "entities"),
        (("<FOR>out</FOR>", "<FOR>in</FOR>"), "names 'in'"),
        (("0.15 0.85", "0.15"), "has 1 values, but needs 2"),
        (("0.15 0.85", "0.15 x"), "holds a value that is no probability"),
        (("<FOR>out</FOR>", ""), "lacks its FOR"),
        (('TYPE="nature"><NAME>out', 'TYPE="decision"><NAME>out'), "decision node"),
    ],
)
def test_what_is_no_network_is_refused(change, said):
    with pytest.raises(InputError, match=said):
        from_xmlbif(FOREIGN.replace(*change), "light-on")


def network_of(outcomes: str, attributes: str = "") -> str:
    """Return a network with the class a/b and one feature of three outcomes, as Weka writes it."""
    return (
        f'<?xml version="1.0"?><BIF VERSION="0.3"{attributes}><NETWORK><NAME>w</NAME>'
        '<VARIABLE TYPE="nature"><NAME>class</NAME><OUTCOME>a</OUTCOME><OUTCOME>b</OUTCOME></VARIABLE>'
        f'<VARIABLE TYPE="nature"><NAME>petal</NAME>{outcomes}</VARIABLE>'
        "<DEFINITION><FOR>class</FOR><TABLE>0.5 0.5</TABLE></DEFINITION>"
        "<DEFINITION><FOR>petal</FOR><GIVEN>class</GIVEN><TABLE>0.8 0.1 0.1 0.1 0.2 0.7</TABLE></DEFINITION>"
        "</NETWORK></BIF>"
    )


@pytest.mark.parametrize("attributes", ["", ' xmlns="http://www.cs.ubc.ca/labs/lci/fopi/ve/XMLBIFv0_3"'])
@pytest.mark.parametrize("apostrophe", ["", "&apos;", "\\&apos;"])
def test_wekas_intervals_in_apostrophes_become_cuts(apostrophe, attributes):
    labels = ["(-inf-2.45]", "(2.45-4.75]", "(4.75-inf)"]
    outcomes = "".join(f"<OUTCOME>{apostrophe}{label}{apostrophe}</OUTCOME>" for label in labels)
    found = from_xmlbif(network_of(outcomes, attributes), "class")
    assert found.variables[0].cuts == (2.45, 4.75)
    expected = np.array([0.8 / 0.9, 0.1 / 0.3, 0.1 / 0.8])
    for rows in (
        [1.4, 4.0, 6],
        [2.45, 4.75, 4.76],
        labels,
        ["'(-inf-2.45]'", "'(2.45-4.75]'", "'(4.75-inf)'"],
    ):
        assert found.predict_proba(pd.DataFrame({"petal": rows}))[:, 0] == pytest.approx(expected)
    assert_same(from_xmlbif(to_xmlbif(found)), found)


def test_wekas_label_of_a_column_without_cuts_takes_every_number():
    text = network_of("<OUTCOME>&apos;All&apos;</OUTCOME>").replace("0.8 0.1 0.1 0.1 0.2 0.7", "1 1")
    found = from_xmlbif(text, "class")
    assert found.variables[0].cuts == ()
    assert found.encode(pd.DataFrame({"petal": [1.4, -7, 1e9]})).codes[:, 0].tolist() == [0, 0, 0]
