"""The names of columns from the beginning of a file."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from milpbn.data.header import BEGINNING, HEADERS, column_names
from milpbn.data.reading import READERS, read_file

TEXTS = {
    "a.csv": '\n\n"x, y";b ;class\n1;2;c\n3;4;d\n',
    "b.csv": '\ufeffb,"x ""y""",class\r\n1,2,c\r\n',
    "c.csv": "a,b,class\r1,2,c\r",
    "a.tsv": "a;b\tclass\n1\tc\n",
    "a.dat": "# no\na b class\n2 2 2\n0 0 1\n",
    "b.dat": "3\na b class\n2 2 2\n0 0 1\n",
    "a.arff": '% no\n@RELATION r\n@attribute \'x y\' real\n@attribute b{0, 1}\n@attribute "it\\"s" {c}\n@data\n1,0,c\n',
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
def test_the_names_are_those_that_reading_finds(name: str, packed: bool, tmp_path: Path) -> None:
    data = TEXTS[name].encode()
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(data) if packed else data)
    assert column_names(path) == list(read_file(path).frame.columns)


def test_every_format_of_text_has_a_header() -> None:
    assert {*HEADERS} == {*READERS} - {".parquet"}


def test_only_the_beginning_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n" + "1,2\n" * BEGINNING)
    assert column_names(path) == ["a", "b"]
    path.write_text(",".join(map(str, range(BEGINNING))) + "\n1,2\n")
    assert column_names(path) == []


def test_what_is_no_table_has_no_names(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "a.xlsx").write_text("a,b\n1,2\n")
    for name in ("empty.csv", "folder.csv", "pipe.csv", "a.xlsx", "none.csv"):
        assert column_names(tmp_path / name) == []
