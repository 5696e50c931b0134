"""How tables say how they were read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from milpbn.data import read_table
from milpbn.data.discretisation import Discretisation
from milpbn.data.request import DataRequest
from milpbn.errors import InputError


@pytest.fixture
def table(tmp_path, monkeypatch):
    rows = [
        f"{i},{i * 7 % 5 + 0.5 if i % 9 else '?'},{'xy'[i % 2]},{'pq'[i % 3 % 2]},{1 + i % 2}"
        for i in range(40)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["id,size,a,class,w", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    return "t.csv"


def again(request: DataRequest):
    """Read the data as a request says that went through a file."""
    same = DataRequest.from_dict(json.loads(json.dumps(request.to_dict())))
    assert same == request
    return read_table(same.source, **same.options).dataset(same.rows)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"target": "class", "drop": "id", "weights": "w"},
        {"target": "class", "features": ("size", "a"), "continuous": ["size"], "missing": "state"},
        {"target": "class", "nominal": {"id"}, "class_weights": {"p": 2, "q": 1}, "discretise": "quantile:3"},
        {"class_weights": "balanced", "states": "declared", "missing": "drop"},
        {"target": "class", "na_values": {"a": ["x"], "*": ["7"]}, "header": True, "separator": "comma"},
        {"header": False, "decimal": ",", "thousands": " ", "encoding": "latin-1"},
    ],
)
def test_the_request_of_a_dataset_reads_it_again(table, options):
    read = read_table(Path(table), **options)
    for rows in ("train", "all"):
        data = read.dataset(rows)
        assert data.request is not None
        assert data.request.source == table  # as it was given
        assert again(data.request).sha256 == data.sha256
    defaults = {"states": "seen", "discretise": "mdl", "missing": None}
    assert set(data.request.options) == {key for key, value in options.items() if value != defaults.get(key)}


def test_what_a_selection_decides_is_in_the_request(table):
    read = read_table(table, target="class", missing="state")
    chosen = replace(read, discretisation=Discretisation.parse("uniform:2")).of_complete_rows().dataset()
    assert chosen.request.options == {"target": "class", "missing": "drop", "discretise": "uniform:2"}
    assert again(chosen.request).sha256 == chosen.sha256


def test_other_rows_and_data_in_memory_have_none(table):
    read = read_table(table, target="class")
    assert read.dataset([0, 1, 2, 3]).request is None
    assert read.dataset().take([0, 1]).request is None
    assert read.dataset().merged.request is not None
    assert read_table(read.frame).request is None


def test_paths_become_absolute_for_a_sidecar(table, tmp_path):
    request = DataRequest(table, options={"data_dir": "folder"}).absolute()
    assert request.source == str(tmp_path / table)
    assert request.options == {"data_dir": str(tmp_path / "folder")}
    assert DataRequest("corral").absolute().source == "corral"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"more": 1}, "the unknown key 'more'"),
        ({"options": {"more": 1}}, "the unknown option 'more'"),
        ({"rows": "test"}, "rows"),
    ],
)
def test_other_values_are_refused(change, sentence):
    with pytest.raises(InputError, match=f"^The file.*{sentence}"):
        DataRequest.from_dict({**DataRequest("x").to_dict(), **change}, "The file")
