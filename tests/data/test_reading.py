import bz2
import gzip
import lzma

import pandas as pd
import pytest

from milpbn.data.options import TextFormat
from milpbn.data.reading import path_stem, read_file
from milpbn.errors import InputError


def write(path, data):
    raw = data if isinstance(data, bytes) else data.encode()
    path.write_bytes(gzip.compress(raw) if path.name.endswith(".gz") else raw)
    return path


def frame_of(path):
    return read_file(path).frame


def cells(frame):
    return [list(frame.columns), *frame.astype(object).to_numpy().tolist()]


EXPECTED = [["a", "b"], ["1", "x"], ["2", "y"]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "a,b\n1,x\n2,y\n"),
        ("t.CSV", "a,b\n1,x\n2,y"),
        ("t.csv.gz", "a,b\n1,x\n2,y\n"),
        ("t.csv", "\ufeffa,b\r\n1,x\r\n2,y\r\n"),
        ("t.csv", "\ufeffa,b\r\n1,x\r\n\ufeffa,b\r\n2,y\r\n"),  # two files put together
        ("t.csv", "a,b\r1,x\r2,y\r"),
        ("t.csv", "\na,b\n\n1,x\n\n2,y\n\n"),
        ("t.csv", "a;b\n1;x\n2;y\n"),
        ("t.csv", "a\tb\n1\tx\n2\ty\n"),
        ("t.csv", '"a","b"\n"1","x"\n"2","y"\n'),
        ("t.tsv", "a\tb\n1\tx\n2\ty\n"),
        ("t.tsv.gz", "a\tb\n1\tx\n2\ty\n"),
        ("t.csv", " a , b\n1,x\n2,y\n"),
        ("t.csv", "a|b\n1|x\n2|y\n"),
        ("t.csv", "a b\n1  x\n2\ty\n"),
        ("t.csv", 'a, "b"\n1, "x"\n2, y\n'),
        ("t.csv", "sep=;\na;b\n1;x\n2;y\n"),
        ("t.csv", "a,b\r\n1,x\r\n2,y\r\n\x1a"),
        ("t.csv", "a,b\n1,x\n2,y\n".encode("utf-16")),
        ("t.tsv", "a\tb\n1\tx\n2\ty\n".encode("utf-32")),
    ],
)
def test_delimited_text_is_read(tmp_path, name, text):
    assert cells(frame_of(write(tmp_path / name, text))) == EXPECTED


def test_quotes_unicode_and_text_stay_as_they_are(tmp_path):
    text = 'größe,"Klasse, ""neu""",x;y\n"1,5\nm",Ω,007\n1e3,"",NA\n'
    frame = frame_of(write(tmp_path / "t.csv", text))
    assert cells(frame) == [
        ["größe", 'Klasse, "neu"', "x;y"],
        ["1,5\nm", "Ω", "007"],
        ["1e3", "", "NA"],
    ]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.csv", "", "is empty"),
        ("t.csv.gz", "", "is empty"),
        ("t.csv", "\n\n", "no rows"),
        ("t.csv", "a,b\n", "no rows"),
        ("t.csv", "a,b\n1,2\n3\n", "Line 3 .* has 1 cells, but there are 2"),
        ("t.csv", 'a,b\n"x\ny",2\n3,4,5\n', "Line 4 .* has 3 cells"),
        ("t.csv", 'a,b\n1,"2\n', "Line .* cannot be parsed"),
        (
            "t.csv",
            'a,b\n1,2\n3,"4\n5,6\n',
            "The row in lines 3 to 4 .* cannot be parsed: .*; check the quotation",
        ),
        ("t.csv", "a,,c\n1,2,3\n", "Column 2 .* has no name"),
        ("t.csv", "a, \n1,2\n", "Column 2 .* has no name"),
        ("t.csv", "a,b,a\n1,2,3\n", "'a' occurs more than once"),
        ("t.csv", "a,b\n1,x\n2,\xe9\n".encode("latin-1"), "not UTF-8 text .byte 0xe9 in line 3"),
        ("t.csv", "a,b\n1,x\n".encode("utf-16-le"), "null characters.*--encoding utf-16-le"),
        ("t.csv", "a,b\n1,x\n2,\xe9\n".encode("latin-1"), "--encoding cp1252"),
        ("t.arff", b"@relation \xe9\n", "--encoding cp1252"),
        ("t.csv", b"a,b\n1,\0\n", "null characters"),
        ("t.csv", gzip.compress(b"a,b\n1,x\n", mtime=0), "no table, but compressed with gzip"),
        ("t.csv", bz2.compress(b"a,b\n1,x\n"), "no table, but compressed with bzip2"),
        ("t.csv", lzma.compress(b"a,b\n1,x\n"), "no table, but compressed with xz"),
        ("t.csv", b"PK\3\4...", "no table, but a zip archive or a workbook of Excel"),
        ("t.csv", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "git lfs pull"),
        ("t.csv", "<!doctype html>\n<p>a,b</p>\n", "a web page"),
        ("t.xlsx", "a,b\n1,2\n", "ending .* is unknown"),
        ("t", "a,b\n1,2\n", "ending .* is unknown"),
    ],
)
def test_bad_files_are_refused(tmp_path, name, data, message):
    with pytest.raises(InputError, match=message) as error:
        frame_of(write(tmp_path / name, data))
    assert name in str(error.value)
    assert str(error.value).endswith(".")


def test_absent_files_folders_and_broken_gzip_are_refused(tmp_path):
    with pytest.raises(InputError, match="no file"):
        frame_of(tmp_path / "absent.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        frame_of(tmp_path / "folder.csv")
    broken = tmp_path / "t.csv.gz"
    whole = gzip.compress(b"a,b\n1,2\n" * 1000)
    for data in (b"a,b\n1,2\n", whole[:-20], whole[:10] + b"\xff" * 40):
        broken.write_bytes(data)
        with pytest.raises(InputError, match="gzip"):
            frame_of(broken)


def test_a_file_is_read_in_the_encoding_that_is_given(tmp_path):
    for encoding in ("cp1252", "utf-16-le", "utf-8-sig"):
        path = write(tmp_path / "t.csv", "größe;b\n1;x\n".encode(encoding))
        assert cells(read_file(path, TextFormat(encoding=encoding)).frame) == [["größe", "b"], ["1", "x"]]
    with pytest.raises(InputError, match=r"not ascii text .byte 0xc3 in line 1"):
        read_file(write(tmp_path / "t.csv", "größe\n1\n"), TextFormat(encoding="ascii"))


@pytest.mark.parametrize(
    ("name", "option"),
    [("t.arff", {"separator": ";"}), ("t.dat", {"decimal": ","}), ("t.parquet", {"encoding": "utf-8"})],
)
def test_an_option_of_another_format_is_refused(tmp_path, name, option):
    with pytest.raises(InputError, match=f"The option {next(iter(option))!r} is not for .{name[2:]} files"):
        read_file(write(tmp_path / name, "x"), TextFormat(**option))


def test_parquet_is_read(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["x", "y"], ["y", "x", "z"]), "c": [1.5, None]})
    frame.to_parquet(tmp_path / "t.parquet", engine="pyarrow")
    write(tmp_path / "t.parquet.gz", (tmp_path / "t.parquet").read_bytes())
    for name in ("t.parquet", "t.parquet.gz"):
        read = frame_of(tmp_path / name)
        assert list(read.columns) == ["a", "b", "c"]
        assert list(read["a"]) == [1, 2]
        assert list(read["b"].cat.categories) == ["y", "x", "z"]
        assert list(read["c"].isna()) == [False, True]
    with pytest.raises(InputError, match="Parquet"):
        frame_of(write(tmp_path / "bad.parquet", "a,b\n1,2\n"))


def test_parquet_without_pyarrow_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'milpbn\[parquet\]'"):
        frame_of(write(tmp_path / "t.parquet", "x"))


def test_the_stem_drops_the_format_endings(tmp_path):
    assert path_stem(tmp_path / "letter.csv.gz") == "letter"
    assert path_stem(tmp_path / "my.data.arff") == "my.data"
