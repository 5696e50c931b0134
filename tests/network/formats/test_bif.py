from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from format_cases import assert_same, random_classifier, written

from milpbn.errors import InputError
from milpbn.network.formats.bif import from_bif, to_bif
from milpbn.network.formats.libraries import from_pgmpy

FOREIGN = """
// another program's network
network "old style" { property "author = nobody"; }
variable Rain { /* a comment */
  type discrete[2] { "yes" "no" };
  property "position = (1, 2)";
}
variable "Wet grass" { type discrete [ 3 ] { dry, a bit wet, "very, wet" }; }
variable Sprinkler { type discrete [ 2 ] { on, off }; }
probability ( Rain ) { table 0.2 0.8; }
probability ( Sprinkler | Rain ) { default 0.4, 0.6; (yes) 0.01, 0.99; }
probability ( "Wet grass" | Rain, Sprinkler ) {
  table .1 .2 .3 .4  .5 .4 .3 .2  .4 .4 .4 .4;
}
"""


def test_another_programs_spelling_is_read():
    found = from_bif(FOREIGN, "Sprinkler")
    assert [v.name for v in found.variables] == ["Rain", "Wet grass", "Sprinkler"]
    assert found.variables[1].states == ("dry", "a bit wet", "very, wet")
    assert found.cpts[2].table.tolist() == [[0.01, 0.99], [0.4, 0.6]]
    # A table lists the variable's own states slowest.
    assert found.cpts[1].table[0].tolist() == [[0.1, 0.5, 0.4], [0.2, 0.4, 0.4]]


@pytest.mark.parametrize("seed", [1, 3])
def test_pgmpy_reads_it_and_its_own_file_comes_back(seed, tmp_path):
    readwrite = pytest.importorskip("pgmpy.readwrite")
    classifier = random_classifier(seed)
    path = written(to_bif(classifier), tmp_path / "n.bif")
    model = readwrite.BIFReader(path, include_properties=True).get_model()
    assert_same(from_pgmpy(model), classifier)
    readwrite.BIFWriter(model).write(tmp_path / "again.bif")
    again = from_bif((tmp_path / "again.bif").read_text(encoding="utf-8"))
    assert {v.name: v for v in again.variables} == {v.name: v for v in classifier.variables}
    tables = {v.name: cpt.table for v, cpt in zip(again.variables, again.cpts, strict=True)}
    for v, cpt in zip(classifier.variables, classifier.cpts, strict=True):
        assert np.sort(tables[v.name].ravel()) == pytest.approx(np.sort(cpt.table.ravel()), rel=1e-12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "declares no variable"),
        ("hello", "Line 1 has 'hello' at the beginning"),
        ("network x {\n", "cut off"),
        ("variable a { type discrete [2] { x, y }; }", "no table of 'a'"),
        ("variable a {\n type continuous [2] { x, y }; }", "Line 2 does not declare a discrete"),
        ("variable a { type discrete [2] { x ; y }; }", "Line 1 has ';' where } is expected"),
        (
            "variable a { type discrete [2] { (x, 1], (1, inf) }; }",
            "declares 2 states and lists 3; labels with commas",
        ),
        ("variable a { type discrete [2] { x, y, z }; }", "declares 2 states and lists 3"),
        ('variable a { type discrete [2] { "x, y }; }', "quote or a comment without an end"),
        ("variable a { type discrete [2] { x, y }; }\nprobability ( b ) { table 1; }", "Line 2 names 'b'"),
        (
            "variable a { type discrete [2] { x, y }; } probability ( a ) { table 1; }",
            "has 1 values, but needs 2",
        ),
        ("variable a { type discrete [2] { x, y }; } probability ( a ) { table 1 none; }", "not a number"),
        ("variable a { type discrete [2] { x, y }; } probability ( a ) { }", "lacks a row"),
        (
            "variable a { type discrete [2] { x, y }; } probability ( a ) { (x) 1 0; }",
            "not states of its parents",
        ),
        ("variable a { type discrete [1] { x }; } variable a { type discrete [1] { x }; }", "a second time"),
    ],
)
def test_errors_name_the_line(text, said):
    with pytest.raises(InputError, match=said):
        from_bif(text, "a")


#: As R's bnlearn writes intervals and other levels (pgmpy's issue 2611): it replaces commas and parentheses.
BNLEARN = """network unknown {
}
variable age {
  type discrete [ 2 ] { [-0.54_0.3], _0.3_1.2] };
}
variable out {
  type discrete [ 2 ] { yes/no, <=5% };
}
probability ( age ) {
  table 0.4, 0.6;
}
probability ( out | age ) {
  ([-0.54_0.3]) 0.1, 0.9;
  (_0.3_1.2]) 0.3, 0.7;
}
"""


def test_labels_stay_as_bnlearn_writes_them():
    found = from_bif(BNLEARN, "out")
    assert [v.states for v in found.variables] == [("[-0.54_0.3]", "_0.3_1.2]"), ("yes/no", "<=5%")]
    expected = [[0.1, 0.9], [0.3, 0.7], [0.1, 0.9], [0.1, 0.9], [0.3, 0.7], [0.3, 0.7], [0.5, 0.5]]
    ages = ["[-0.54_0.3]", "_0.3_1.2]", "-0.54", "0.3", "0.300001", "(0.3, 1.2]", "1.3"]
    assert found.predict_proba(pd.DataFrame({"age": ages})) == pytest.approx(np.array(expected))
    again = from_bif(to_bif(found))
    assert again.variables == found.variables
    reader = pytest.importorskip("pgmpy.readwrite").BIFReader
    assert reader(string=BNLEARN).get_model().get_cpds("out").state_names["out"] == ["yes/no", "<=5%"]
    assert_same(from_pgmpy(reader(string=to_bif(found), include_properties=True).get_model()), found)


@pytest.mark.parametrize(
    "labels",
    [
        ["(0.5, 1.5]", "(1.5, 2.5]", "(2.5,9]"],  # pgmpy writes these as they are
        ["[0.5;1.5[", "[1.5;2.5]"],
        ["a[1]", "b|c", "x = y", "<=", "100 %"],
        ["f(x)", "(a)", "a (b) c", "{z}"],
        ["1.0", "2.50", "-3e-05"],
        ["a  b", "a b"],
    ],
)
@pytest.mark.parametrize("quote", ["", '"'])
def test_labels_of_any_characters_stay_as_they_are(labels, quote):
    written = [f"{quote}{label}{quote}" for label in labels]
    rows = "".join(f"  ({label}) {k}.5e-1, .{95 - 10 * k};\n" for k, label in enumerate(written))
    text = (
        f"variable x {{ type discrete [ {len(labels)} ] {{ {', '.join(written)} }}; }}\n"
        "variable c { type discrete [ 2 ] { u, v }; }\n"
        f"probability ( x ) {{ table {' '.join([repr(1 / len(labels))] * len(labels))}; }}\n"
        f"probability ( c | x ) {{\n{rows}}}\n"
    )
    found = from_bif(text, "c")
    assert found.variables[0].states == tuple(labels)
    shares = found.predict_proba(pd.DataFrame({"x": labels}))[:, 0]
    assert shares == pytest.approx([0.05 + 0.1 * k for k in range(len(labels))])
    assert_same(from_bif(to_bif(found)), found)
