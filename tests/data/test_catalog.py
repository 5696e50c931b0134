import gzip
import hashlib
import json
import os
from pathlib import Path

import pytest

from milpbn.data import read_table
from milpbn.data.catalog import catalog_names, find_data_dir
from milpbn.data.column import Column
from milpbn.data.left_out import looks_like
from milpbn.errors import DataWarning, InputError

TEXT = "n,k,text,class\n" + "\n".join(
    f"{i},{i % 3},{'?' if i == 4 else 'ab'[i % 2]},{'pq'[i % 2]}" for i in range(20)
)


@pytest.fixture
def folder(tmp_path):
    return make_catalog(tmp_path, continuous=["k"], missing="drop row", train_rows=12)


def make_catalog(folder, text=TEXT, **entry):
    data = gzip.compress(text.encode())
    (folder / "known.csv.gz").write_bytes(data)
    catalog = {"known": {"sha256": hashlib.sha256(data).hexdigest(), **entry}}
    (folder / "catalog.json").write_text(json.dumps(catalog))
    return folder


def test_the_entry_decides_kinds_and_missing_values(folder, monkeypatch):
    monkeypatch.setenv("MILPBN_DATA", str(folder))
    table = read_table("known")
    assert table.name == "known"
    assert table.kinds == {"n": "nominal", "k": "continuous", "text": "nominal", "class": "nominal"}
    assert len(table.train_indices) == 11  # row 5 is dropped
    assert len(table.test_indices) == 8
    assert table.dataset().n_samples == 11
    assert table.encode(table.dataset().variables, "test").n_samples == 8


def test_options_override_the_entry(folder):
    table = read_table(
        "known", data_dir=folder, nominal=["k"], continuous=["n"], missing="state", target="text"
    )
    assert table.kinds == {"n": "continuous", "k": "nominal", "class": "nominal", "text": "nominal"}
    assert table.missing == "state"


def test_a_column_without_a_name_is_no_feature(tmp_path):
    text = "\n".join(f"{'' if k == 0 else k},{line}" for k, line in enumerate(TEXT.splitlines()))
    folder = make_catalog(tmp_path, text, continuous=["k"])
    with pytest.warns(DataWarning, match="'Unnamed: 0' looks like a row index"):
        assert read_table("known", data_dir=folder).features == ("n", "k", "text")


def test_missing_values_become_a_state(tmp_path):
    table = read_table("known", data_dir=make_catalog(tmp_path, missing="value", train_rows=None))
    assert table.n_rows == 20
    assert table.train_rows is None
    assert table.dataset().variables[2].states == ("a", "b", "?")


def test_file_wins_over_name_and_folder_does_not(folder, tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "known").mkdir()
    assert read_table("known", data_dir=folder).name == "known"
    (work / "known").rmdir()
    (work / "known").write_text("x")
    with pytest.raises(InputError, match="ending of 'known'"):
        read_table("known", data_dir=folder)


def test_unknown_name_lists_the_catalog(folder):
    with pytest.raises(InputError, match=r"not an entry of the catalog .*\(known\)"):
        read_table("other", data_dir=folder)


def test_changed_and_absent_files_are_refused(folder):
    (folder / "known.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(InputError, match="SHA-256 differs"):
        read_table("known", data_dir=folder)
    (folder / "known.csv.gz").unlink()
    with pytest.raises(InputError, match=r"known\.csv\.gz' cannot be read"):
        read_table("known", data_dir=folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be a JSON object"),
        ('{"known": 1}', "'known' must be a JSON object"),
        ('{"known": {"continuous": "k"}}', "'continuous' of 'known' must be a list"),
        ('{"known": {"continuous": ["z"]}}', "calls 'z' of 'known' continuous"),
        ('{"known": {"missing": "guess"}}', "'missing' of 'known' must be 'drop row' or 'value'"),
        ('{"known": {"train_rows": 0}}', "'train_rows' of 'known' must be null or a positive"),
    ],
)
def test_malformed_catalogs_are_refused(folder, text, message):
    (folder / "catalog.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read_table("known", data_dir=folder)


def test_an_absent_catalog_is_refused(tmp_path):
    with pytest.raises(InputError, match="--data-dir"):
        read_table("known", data_dir=tmp_path / "nowhere")


DATA = find_data_dir() or Path(__file__).parents[2] / ".." / "shared" / "data" / "uci"


@pytest.mark.skipif(not (DATA / "catalog.json").exists(), reason="needs the UCI data (MILPBN_DATA)")
@pytest.mark.parametrize("name", catalog_names(DATA) if os.path.exists(DATA / "catalog.json") else [])
def test_tables_agree_with_the_catalog(name):
    """No feature is left out, nor would it be without the kinds of the catalog."""
    entry = json.loads((DATA / "catalog.json").read_text())[name]
    table = read_table(name, data_dir=DATA)
    dropped = entry["rows_with_missing"] if entry["missing"] == "drop row" else 0
    assert table.n_rows == entry["rows"] - dropped
    assert len(table.features) == entry["features"]
    data = table.dataset("all")
    assert data.n_classes <= entry["classes"]  # soybean loses four with its incomplete rows
    assert (data.codes >= 0).all()
    assert not table.left_out
    for label, series in table.frame[list(table.features)].head(4000).items():  # fewer rows repeat less
        assert looks_like(Column.of(series)) is None, label
    if name == "adult":  # its published split
        assert (len(table.train_indices), len(table.test_indices)) == (30162, 15060)
