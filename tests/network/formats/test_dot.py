from __future__ import annotations

from milpbn.network.formats.dot import to_dot
from milpbn.network.structure import Structure


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
