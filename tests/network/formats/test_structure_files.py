import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milpbn.errors import InputError
from milpbn.network import (
    Classifier,
    Structure,
    read_parents,
    read_structure,
    save_classifier,
    write_arcs,
)
from milpbn.network.formats.structure_files import format_arcs, parse_arcs, to_dot

NAMES = ["a", "b c", "x->y", "#d", "class"]


def test_every_form_of_an_arc_list_is_read():
    text = """# a comment
a -> b c        # another
class,a\r
class\tb c
  "x->y" -> '#d'

"cl\\u0061ss" ->"x->y"
class->#d
a-b->c
class -> a
"""
    with pytest.raises(InputError, match="Line 8 is not an arc"):
        parse_arcs(text)  # a name that starts with a comment sign needs quotes
    assert parse_arcs(text.replace("class->#d\n", "")) == {
        "b c": ["a", "class"],
        "a": ["class"],
        "#d": ["x->y"],
        "x->y": ["class"],
        "c": ["a-b"],
    }


@pytest.mark.parametrize(
    "line", ["a", "a -> ", "-> a", "a -> b -> c", "a,b,c", "a <- b", 'a -> "b', '"a"b -> c', "a b", "{a} b"]
)
def test_lines_that_are_no_arc_are_refused(line):
    with pytest.raises(InputError, match="Line 2 is not an arc"):
        parse_arcs(f"a -> b\n{line}\n")


def test_errors_name_file_and_line(tmp_path):
    path = tmp_path / "arcs.txt"
    for content, sentence in [
        ("a -> class\n\nq -> a\n", "line 3 names 'q', which is not a variable"),
        ("a -> a\n", "line 1 makes 'a' its own parent"),
        ('"\\q" -> a\n', "line 1 has a name with an escape"),
        ("", "it is empty"),
        ("a -> class\nclass -> a\n", "the structure has the cycle"),
        ('{"status": 3}', "no structure under the key"),
        ('{"structure": null}', "no structure under the key"),
        ('{"structure": {"a": "class"}}', "entry for 'a' is not a list of names"),
        ('{"structure": {"a": ["q"]}}', "names 'q', which is not a variable"),
        ('{"structure": ', "not JSON"),
    ]:
        path.write_text(content)
        with pytest.raises(InputError, match=sentence) as caught:
            read_structure(path, NAMES)
        assert str(caught.value).startswith(f"The structure file {str(path)!r} is unusable: ")
    with pytest.raises(InputError, match="Cannot read the structure file"):
        read_structure(tmp_path / "missing", NAMES)
    path.write_bytes(b"PAR1\xff\x00")
    with pytest.raises(InputError, match="not UTF-8 text"):
        read_structure(path, NAMES)


def test_reads_arcs_result_and_classifier_alike(tmp_path, make_data, make_structure):
    data = make_data()
    structure = make_structure(data.names, 9)
    write_arcs(structure, tmp_path / "arcs.txt")
    save_classifier(Classifier.fit(data, structure), tmp_path / "classifier.json")
    result = {"version": "0.1", "structure": structure.to_mapping()}
    (tmp_path / "result.json").write_text("\ufeff" + json.dumps(result), encoding="utf-8")
    for name in ("arcs.txt", "classifier.json", "result.json"):
        assert read_structure(tmp_path / name, data.names) == structure
    assert read_parents(tmp_path / "result.json") == structure.to_mapping()


names = st.lists(st.text(min_size=1), min_size=2, max_size=6, unique=True)


@given(names, st.integers(0, 10**6))
def test_arc_lists_keep_any_name(make_structure, names, seed):
    structure = make_structure(names, seed)
    mapping = {child: parents for child, parents in structure.to_mapping().items() if parents}
    assert parse_arcs(format_arcs(structure), names) == mapping


def test_structure_without_arcs_survives(tmp_path):
    write_arcs(Structure.empty(NAMES), tmp_path / "arcs.txt")
    assert read_structure(tmp_path / "arcs.txt", NAMES) == Structure.empty(NAMES)


def test_dot_quotes_names_and_marks_the_class():
    # The second feature does not matter once the first is known.
    structure = Structure(('say "hi"', "back\\slash", "class"), ((2,), (0,), ()))
    assert to_dot(structure) == (
        "digraph structure {\n"
        '  "class" [shape=box];\n'
        '  "say \\"hi\\"";\n'
        '  "back\\\\slash" [color=gray, fontcolor=gray];\n'
        '  "class" -> "say \\"hi\\"";\n'
        '  "say \\"hi\\"" -> "back\\\\slash";\n'
        "}\n"
    )


def test_dot_of_a_network_without_a_class_marks_no_variable():
    dot = to_dot(Structure(("a", "b", "c"), ((), (0,), ())), has_class=False)
    assert dot == 'digraph structure {\n  "c";\n  "a";\n  "b";\n  "a" -> "b";\n}\n'
