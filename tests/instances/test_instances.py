"""The catalogue of shipped problems."""

import json
from importlib.resources import files

import pytest
from pandas.api.types import is_float_dtype

from milpbn import instances
from milpbn.errors import InputError

OPTIMUM_KEYS = {"score", "p", "max_parents", "class_parents", "objective", "bound", "status", "command"}


def optima() -> dict:
    return json.loads(files("milpbn.instances").joinpath("optima.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", instances.names())
def test_load_gives_features_then_class_and_their_numbers_are_described(name):
    frame = instances.load(name)
    assert frame.columns[-1] == "class"
    assert frame.columns.is_unique
    assert not frame.isna().any().any()
    for column in frame:
        assert is_float_dtype(frame[column]) or all(type(value) is str for value in frame[column])
    assert not is_float_dtype(frame["class"])
    about = instances.describe(name)
    assert about["name"] == name
    assert (about["rows"], about["features"] + 1) == frame.shape
    assert about["classes"] == frame["class"].nunique()
    assert about["continuous"] == sum(map(is_float_dtype, frame.dtypes))
    assert about["source"]
    assert about["definition"]
    assert about["optima"] == optima()[name]
    # The README lists the sizes.
    text = files("milpbn.instances").joinpath("README.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
    rows, features, classes = (cell.strip() for cell in row.split("|")[3:6])
    assert (int(rows), int(classes)) == (about["rows"], about["classes"])
    assert features == f"{about['features']}" + (" *c*" if about["continuous"] else "")


def test_optima_are_complete_and_consistent():
    assert list(optima()) == instances.names()
    for entries in optima().values():
        for entry in entries:
            assert set(entry) == OPTIMUM_KEYS
            assert entry["status"] in {"optimal", "feasible"}
            gap = entry["bound"] - entry["objective"]
            assert gap >= 0
            if entry["status"] == "optimal":
                assert gap <= 1e-6 * max(1.0, abs(entry["objective"]))


def test_default_is_large_enough():
    about = instances.describe(instances.DEFAULT)
    assert about["features"] >= 8
    assert about["rows"] >= 400


def test_a_loaded_frame_is_the_callers_own():
    frame = instances.load("corral")
    frame.loc[0, "class"] = "changed"
    assert instances.load("corral").loc[0, "class"] == "0"


@pytest.mark.parametrize("call", [instances.load, instances.describe])
def test_unknown_name_lists_the_known_ones(call):
    with pytest.raises(InputError, match=r"no instance named 'monk'; choose one of corral, .*digits\."):
        call("monk")
