"""Archives of cells: appended by several processes, whole after a kill, refused where they are none."""

from __future__ import annotations

import gzip
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from milpbn.errors import InputError
from milpbn.trials.store import ARCHIVE, Store

CELLS = {"a": {"x": 0.1 + 0.2, "list": [1, "ä\u2028"]}, "b": {"x": None}, "c": {"x": 2**53 + 1}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "folder" / ARCHIVE


def test_cells_come_back_as_they_were_written(path):
    store = Store(path)
    assert not dict(store)
    assert "a" not in store
    assert not path.exists()
    store.add({"a": CELLS["a"]})
    store.add({"b": {"x": float("nan")}, "c": CELLS["c"]})
    assert dict(store) == dict(Store(path)) == CELLS
    assert list(store) == ["a", "b", "c"]
    assert [entry.name for entry in path.parent.iterdir()] == [ARCHIVE]
    assert len(gzip.decompress(path.read_bytes()).splitlines()) == 3


def test_the_last_cell_of_a_key_counts(path):
    store = Store(path)
    store.add({"a": {"x": 1}})
    store.add({"b": {}})
    store.add({"a": {"y": 2}})
    assert dict(Store(path)) == dict(store) == {"a": {"y": 2}, "b": {}}
    assert list(store) == ["a", "b"]


def test_what_others_write_is_seen(path):
    one, other = Store(path), Store(path)
    for key, cell in CELLS.items():
        one.add({key: cell})
        assert other[key] == one[key] == cell
    path.unlink()
    assert len(one) == 0
    other.add({"d": {}})
    assert list(one) == ["d"]


def test_another_process_gets_the_path_only(path):
    store = Store(path)
    store.add(CELLS)
    assert len(store) == 3
    sent = pickle.dumps(store)
    assert len(sent) < 1000
    assert dict(pickle.loads(sent)) == CELLS


def test_every_beginning_of_the_last_member_is_ignored_and_repaired(path):
    Store(path).add({"a": CELLS["a"]})
    complete = path.read_bytes()
    Store(path).add({"b": CELLS["b"], "c": CELLS["c"]})
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        kept = ["a"] if length >= len(complete) else []
        store = Store(path)
        assert list(store) == kept, length
        store.add({"d": {}})
        assert list(store) == list(Store(path)) == [*kept, "d"]


def test_nothing_is_appended_where_the_disk_is_full(path, monkeypatch):
    store = Store(path)
    store.add({"a": CELLS["a"]})
    before = path.read_bytes()
    write = os.write

    def full(file, content):
        if len(content) < 30:
            raise OSError(28, "No space left on device")
        return write(file, content[:10])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(InputError, match="No space left"):
        store.add({"b": CELLS["b"]})
    assert path.read_bytes() == before


def test_processes_and_threads_write_side_by_side(path):
    code = (
        "import sys; from milpbn.trials.store import Store; store = Store(sys.argv[1])\n"
        "for i in range(25): store.add({f'{sys.argv[2]}-{i}': {'i': i}, 'shared': {'i': i}})"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, path, str(name)]) for name in range(3)]
    with ThreadPoolExecutor(2) as pool:
        for i in range(40):
            pool.submit(lambda i=i: Store(path).add({f"thread-{i}": {"i": i}})).result()
    assert [process.wait(60) for process in running] == [0, 0, 0]
    cells = dict(Store(path))
    assert len(cells) == 3 * 25 + 1 + 40
    assert all(cells[f"{name}-{i}"] == {"i": i} for name in range(3) for i in range(25))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"key,value\n", "not a gzip file"),
        (gzip.compress(b'{"x": 1}\n', mtime=0), "a cell has no key"),
        (gzip.compress(b"[1]\n", mtime=0), "not a JSON object"),
        (gzip.compress(b'{"key": "a", "x": NaN}\n', mtime=0), "NaN"),
        (gzip.compress(b"\xff\n", mtime=0), "utf-8"),
        (gzip.compress(b"key,value\n", mtime=0)[:-4], "cut off"),
        (gzip.compress(b'{"key": "a"}\n', mtime=0)[:-8] + b"12345678", "incorrect data check"),
        (gzip.compress(b'{"key": "a"}\n', mtime=0) + b"more", "not a gzip file"),
    ],
)
def test_a_file_that_is_no_archive_is_refused_and_left_alone(path, content, reason):
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    for use in (lambda store: store["a"], lambda store: store.add({"b": {}})):
        with pytest.raises(InputError, match=f"cells.jsonl.gz.*{reason}.*remove it") as error:
            use(Store(path))
        assert str(error.value).count(". ") == 0
    assert path.read_bytes() == content


def test_a_path_that_is_no_file_is_refused(path):
    path.mkdir(parents=True)
    with pytest.raises(InputError, match="cannot be read"):
        len(Store(path))
    with pytest.raises(InputError, match="Cannot write"):
        Store(path).add({"a": {}})
    (path.parent / "file").write_text("")
    with pytest.raises(InputError, match="Cannot write"):
        Store(path.parent / "file" / ARCHIVE).add({"a": {}})
