import pytest

from milpbn.data import read_table
from milpbn.data.arff import parse_arff
from milpbn.errors import InputError

HEADER = """% a comment
@RELATION 'some table'

@attribute 'x 1' NUMERIC
@Attribute\tcolour\t{red, 'dark blue', "a,b", 'it\\'s'}
@attribute note string
@attribute class{yes,no}
@DATA
"""


def rows(text):
    frame = parse_arff(HEADER + text, "'t.arff'").astype(object)
    return frame.where(frame.notna(), None).to_numpy().tolist()


def test_the_header_declares_the_columns():
    frame = parse_arff(HEADER + "1,red,a,no\n", "'t.arff'")
    assert list(frame.columns) == ["x 1", "colour", "note", "class"]
    assert list(frame["colour"].cat.categories) == ["red", "dark blue", "a,b", "it's"]
    assert list(frame["class"].cat.categories) == ["yes", "no"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1.5, red, some text, yes", ["1.5", "red", "some text", "yes"]),
        ("1e3,'dark blue','x, y',no", ["1e3", "dark blue", "x, y", "no"]),
        ('-1,"a,b","say \\"hi\\"",\'no\'', ["-1", "a,b", 'say "hi"', "no"]),
        ("1,'it\\'s',z,no", ["1", "it's", "z", "no"]),
        ("?,?,?,yes", ["?", None, "?", "yes"]),
        ("1\tred\tz\tno", ["1", "red", "z", "no"]),
        ("{0 2, 1 'dark blue', 2 'p, q', 3 no}", ["2", "dark blue", "p, q", "no"]),
        ("{2 z}", ["0", "red", "z", "yes"]),
        ("1 red z no", ["1", "red", "z", "no"]),  # as Weka reads it
        ("1 'dark blue'  z ,no", ["1", "dark blue", "z", "no"]),
        ("1,red,z,no % a note", ["1", "red", "z", "no"]),
        ("1,red,'50 % z',no% a note", None),
        ("1 'a,b' '50 % z' no % a 'note'", ["1", "a,b", "50 % z", "no"]),
        ("{2 z} % a note", ["0", "red", "z", "yes"]),
        ("1,red,New York,no", ["1", "red", "New York", "no"]),
        ("1,red,50%,no", ["1", "red", "50%", "no"]),
        ("<null>,red,z,no", ["?", "red", "z", "no"]),  # KEEL's missing value
    ],
)
def test_dense_and_sparse_rows_are_read(line, expected):
    if expected is None:
        with pytest.raises(InputError, match="Line 9"):
            rows(line)
    else:
        assert rows(line) == [expected]


KEEL = """@relation iris
@attribute SepalLength real [4.3, 7.9]
@attribute n integer[0,9]
@attribute Class {a, b} % the species
@inputs SepalLength, n
@outputs Class
@data
5.1, 2, a
<null>, 3, b
"""


def test_the_header_of_keel_is_read(tmp_path):
    frame = parse_arff(KEEL, "'k.dat'")
    assert list(frame.columns) == ["SepalLength", "n", "Class"]
    assert frame["Class"].cat.categories.tolist() == ["a", "b"]
    (tmp_path / "k.dat").write_text(KEEL)
    table = read_table(tmp_path / "k.dat", missing="state")
    assert table.columns["SepalLength"].missing.tolist() == [False, True]
    with pytest.raises(InputError, match=r"The output n of 'k.dat' is not its last attribute"):
        parse_arff(KEEL.replace("@outputs Class", "@outputs n"), "'k.dat'")


@pytest.mark.parametrize("row", ["1,red," + " " * 60000 + "q %", "% '" * 20000, "%" + " %" * 30000])
def test_long_lines_take_no_long_time(row):
    with pytest.raises(InputError):
        rows("1,red," + row)


def test_comments_and_blank_lines_between_rows():
    assert len(rows("1,red,a,no\r\n\r\n% comment\r\n2,red,b,yes\r\n")) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "1,red,a,maybe\n", "Line 9 .*'maybe' of 'class' is not among its declared"),
        (HEADER + "1,red,a,no\nabc,red,a,no\n", "Line 10 .*'abc' of 'x 1' is not a number"),
        (HEADER + "1,red,no\n", "Line 9 .* has 3 values for 4 attributes"),
        (HEADER + "1,red,a,no,{2}\n", "instance weight"),
        (HEADER + "1,'red,a,no\n", "quote"),
        (HEADER + "{7 x}\n", "Line 9 .*not an attribute position"),
        (HEADER + "{0 1, 0 2}\n", "Line 9 .* has two values of 'x 1'"),
        (HEADER + "{0 1\n", "closing brace of a sparse row"),
        ("@relation r\n@attribute a numeric\n", "no @data line"),
        ("@relation r\n@data\n1\n", "declares no attributes"),
        ("@relation r\n@attribute a relational\n@data\n", "type 'relational'"),
        ("@relation r\n@attribute a {x,y\n@data\n", "closing brace of the values"),
        ("@relation r\n@attribute a {x,x}\n@data\n", "one twice"),
        ("@relation r\n@attribute a\n@data\n", "Line 2 .*not a valid ARFF attribute"),
        ("a,b\n1,2\n", "Line 1 .*neither"),
    ],
)
def test_bad_files_are_refused_with_the_line(text, message):
    with pytest.raises(InputError, match=message) as error:
        parse_arff(text, "'t.arff'")
    assert "'t.arff'" in str(error.value)
