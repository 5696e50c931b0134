"""Keys of cells, and what is kept of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from milpbn.errors import InputError
from milpbn.experiments import cells
from milpbn.experiments.cells import Cell, Kept, KeptCells
from milpbn.trials.store import ARCHIVE, Store

CELL = Cell("iris", "ab" * 32, "fold-1", "sm", {"p": (0.6, 0.9), "deep": {"k": 2}}, 0, 60.0)


def test_every_attribute_is_part_of_the_key(monkeypatch):
    others = [
        replace(CELL, data="heart"),
        replace(CELL, data_sha256="cd" * 32),
        replace(CELL, part="fold-2"),
        replace(CELL, method="sbm"),
        replace(CELL, options={"p": (0.6, 0.9), "deep": {"k": 3}}),
        replace(CELL, seed=1),
        replace(CELL, budget=61.0),
        replace(CELL, budget=None),
    ]
    assert len({cell.key for cell in [CELL, *others]}) == 9
    assert replace(CELL, options={"deep": {"k": 2}, "p": [0.6, 0.9]}).key == CELL.key
    before = CELL.key
    monkeypatch.setattr(cells, "FORMAT", cells.FORMAT + 1)
    assert CELL.key != before


def test_a_cell_comes_back_as_it_was_written(tmp_path):
    store = KeptCells(tmp_path / "new" / "folder")
    assert store.read(CELL) is None
    found = {"x": 0.1 + 0.2, "missing": float("nan"), "list": [1, "a"]}
    store.write(CELL, Kept(found), seconds={"wall": 1.5, "processor": 1.0})
    assert store.read(CELL) == Kept({"x": 0.1 + 0.2, "missing": None, "list": [1, "a"]})
    document = Store(tmp_path / "new" / "folder" / ARCHIVE)[CELL.key]
    assert document["seconds"] == {"wall": 1.5, "processor": 1.0}
    assert document["cell"]["options"]["p"] == [0.6, 0.9]
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == [ARCHIVE]


def test_a_failure_keeps_its_reason(tmp_path):
    store = KeptCells(tmp_path)
    store.write(CELL, Kept({}, "The reason."))
    assert store.read(CELL).failure == "The reason."
    store.write(CELL, Kept({"now": 1}))
    assert store.read(CELL) == Kept({"now": 1})


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"key": "x", "status": "done"}', '{"status": "done", "found": {}}']
)
def test_a_damaged_file_is_refused(tmp_path, text):
    (tmp_path / ARCHIVE).write_text(text + "\n")
    with pytest.raises(InputError, match="remove it"):
        KeptCells(tmp_path).read(CELL)


@pytest.mark.parametrize("document", [{}, {"status": "done"}, {"cell": {}, "status": "done", "found": {}}])
def test_an_incomplete_cell_is_refused(tmp_path, document):
    Store(tmp_path / ARCHIVE).add({CELL.key: document})
    with pytest.raises(InputError, match=r"incomplete.*remove the file"):
        KeptCells(tmp_path).read(CELL)


def test_a_proof_stands_for_more_time(tmp_path):
    store = KeptCells(tmp_path)
    proved = Kept({"search": {"reason": "optimal"}})
    store.write(CELL, proved)
    assert store.read(replace(CELL, budget=600.0)) == proved
    assert store.read(replace(CELL, budget=59.0)) is None
    assert store.read(replace(CELL, budget=600.0, seed=1)) is None
    assert store.read(replace(CELL, budget=600.0, part="fold")) is None
    store.write(CELL, Kept({"search": {"reason": "feasible"}}))
    assert store.read(replace(CELL, budget=600.0)) is None


def test_the_most_time_is_shown_where_asked_for(tmp_path):
    store = KeptCells(tmp_path)
    for budget in (30.0, 60.0, 20.0):
        store.write(replace(CELL, budget=budget), Kept({"search": {"reason": "feasible"}, "b": budget}))
    for asked in (600.0, 20.0, 10.0):
        longest = store.read(replace(CELL, budget=asked), any_budget=True)
        assert (longest.budget, longest.found["b"]) == (60.0, 60.0)
    assert store.read(replace(CELL, budget=10.0)) is None
    store.write(replace(CELL, budget=20.0), Kept({"search": {"reason": "optimal"}}))
    assert store.read(replace(CELL, budget=600.0)).budget == 20.0
    assert store.read(replace(CELL, budget=10.0)) is None
    store.write(replace(CELL, budget=90.0), Kept({}, "It failed."))
    assert store.read(replace(CELL, budget=90.0)).failure == "It failed."
    assert store.read(replace(CELL, budget=90.0), any_budget=True).budget == 20.0
    assert store.read(replace(CELL, budget=600.0, seed=1), any_budget=True) is None


def test_most_time_for_the_choice_comes_first(tmp_path):
    store = KeptCells(tmp_path)
    both = [
        replace(CELL, options={"choice": {"seconds": s}}, budget=b) for s, b in ((2.5, 600.0), (10.0, 60.0))
    ]
    for cell in both:
        store.write(cell, Kept({"search": {"reason": "optimal"}, "b": cell.budget}))
    assert store.read(both[0]).budget == 600.0
    assert store.read(both[0], any_budget=True).budget == 60.0


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Cannot write"):
        KeptCells(tmp_path / "file").write(CELL, Kept({}))
