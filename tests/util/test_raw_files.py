"""Archives that unpack to very large files, endless streams, and other files that hold no usable content."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

import milpbn
from milpbn.errors import InputError
from milpbn.learners.differentiable.checkpoints import load_checkpoint, save_checkpoint
from milpbn.milp.files.solution_files import read_solution
from milpbn.util.raw_files import SMALL

needs_devices = pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs the devices of Unix")


def test_a_table_that_unpacks_to_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,class\n" + b"x,y\n" * (SMALL // 2)))
    with pytest.raises(InputError, match=r"bomb\.csv\.gz' unpacks to more than 16\.0 MiB, .* gunzip"):
        milpbn.read_table(path)


def test_a_table_that_unpacks_to_a_little_is_read(tmp_path: Path) -> None:
    path = tmp_path / "flat.csv.gz"
    path.write_bytes(gzip.compress(b"a,class\n" + b"x,y\nx,z\n" * 10_000))
    assert milpbn.read_table(path).n_rows == 20_000


def test_a_solution_that_unpacks_to_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.sol"
    path.write_bytes(gzip.compress(b"# Objective value = 1\n" + b"x 1\n" * (SMALL // 2)))
    with pytest.raises(InputError, match=r"bomb\.sol unpacks to more than"):
        read_solution(path)


def test_a_parquet_table_of_countless_rows_is_refused(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path, part = (
        tmp_path / "bomb.parquet",
        pa.table({"a": np.zeros(4_000_000, np.int8), "class": np.zeros(4_000_000, np.int8)}),
    )
    with pq.ParquetWriter(path, part.schema) as writer:
        for _ in range(3):
            writer.write_table(part)
    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match=r"bomb\.parquet' of .* declares 12000000 rows of 2 columns"):
        milpbn.read_table(path)


def test_a_parquet_text_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "latin.parquet"
    pq.write_table(pa.table({"a": ["plain", "pl?in"], "class": ["x", "y"]}), path, compression=None)
    path.write_bytes(path.read_bytes().replace(b"pl?in", b"pl\xffin"))
    with pytest.raises(InputError, match=r"latin\.parquet' cannot be read as Parquet"):
        milpbn.read_table(path)


@needs_devices
@pytest.mark.parametrize("name", ["a.csv", "a.arff", "a.parquet", "a.csv.gz"])
def test_a_device_without_end_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"is not a regular file and gives more than 256\.0 MiB"):
        milpbn.read_table(tmp_path / name)


@needs_devices
def test_other_readers_refuse_devices(tmp_path: Path) -> None:
    (tmp_path / "a.sol").symlink_to("/dev/zero")
    (tmp_path / "catalog.json").symlink_to("/dev/zero")
    (tmp_path / "null.csv").symlink_to("/dev/null")
    with pytest.raises(InputError, match="not a regular file"):
        read_solution(tmp_path / "a.sol")
    with pytest.raises(InputError, match="not a regular file"):
        milpbn.read_table("toy", data_dir=tmp_path)
    with pytest.raises(InputError, match="is empty"):
        milpbn.read_table(tmp_path / "null.csv")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("a,class\nx,y\nz,w\n"))
    writer.start()
    assert milpbn.read_table(pipe).n_rows == 2
    writer.join()


@pytest.mark.parametrize("read", [milpbn.read_table, read_solution])
def test_a_name_with_a_null_character_is_refused(read) -> None:
    with pytest.raises(InputError, match="null"):
        read("a\0.csv")


# -- checkpoints ------------------------------------------------------------------------------------------

STATE = {"theta": np.zeros((2, 3), np.float32), "step": np.zeros((), np.int64)}


def checkpoint(path: Path, history: object = (), **arrays: np.ndarray) -> Path:
    save_checkpoint(path, "run", {**STATE, **arrays}, list(history))
    return path


@pytest.mark.parametrize(
    "arrays",
    [
        {"theta": np.zeros((1, 3), np.float32)},
        {"theta": np.zeros((2, 3), np.complex64)},
        {"theta": np.zeros((2, 3), bool)},
        {"step": np.zeros(1, np.int64)},
    ],
)
def test_a_checkpoint_with_other_arrays_is_refused_and_changes_nothing(tmp_path: Path, arrays: dict) -> None:
    state = {name: np.ones_like(array) for name, array in STATE.items()}
    with pytest.raises(InputError, match=r"c\.npz' is not a complete checkpoint; name another file"):
        load_checkpoint(checkpoint(tmp_path / "c.npz", **arrays), "run", state)
    assert all((array == 1).all() for array in state.values())


@pytest.mark.parametrize("history", [[[2, 0.5, None]], [[1, "x", None]], [[1, 0.5]], [3], [[1, 0.5, [0.1]]]])
def test_a_checkpoint_with_another_history_is_refused(tmp_path: Path, history: list) -> None:
    with pytest.raises(InputError, match="not a complete checkpoint"):
        load_checkpoint(checkpoint(tmp_path / "c.npz", history), "run", dict(STATE))


def test_a_checkpoint_that_would_unpack_to_much_is_refused(tmp_path: Path) -> None:
    path = checkpoint(tmp_path / "c.npz", [[1, 0.5, None]])
    assert load_checkpoint(path, "run", dict(STATE)) == [[1, 0.5, None]]
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays["theta"] = np.zeros((2_000, 3_000), np.float32)
    np.savez_compressed(path, **arrays)
    with pytest.raises(InputError, match="not a complete checkpoint"):
        load_checkpoint(path, "run", dict(STATE))


@pytest.mark.parametrize("damage", ["deflate", "method", "header"])
def test_damaged_archives_of_checkpoints_are_refused(tmp_path: Path, damage: str) -> None:
    path = checkpoint(tmp_path / "c.npz")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if damage == "header":
        members["theta.npy"] = members["theta.npy"].replace(b"'<f4'", b"'<f4 ")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    data = out.getvalue()
    if damage == "deflate":
        at = data.index(b"theta.npy") + len("theta.npy")
        data = data[:at] + b"\xff" * 8 + data[at + 8 :]
    if damage == "method":
        data = data.replace(
            b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x08\x00", b"PK\x01\x02\x14\x03\x14\x00\x00\x00\x63\x00"
        )
    path.write_bytes(data)
    with pytest.raises(InputError, match="not a complete checkpoint"):
        load_checkpoint(path, "run", dict(STATE))


# -- catalogs, solutions, numbers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "too deeply nested"),
        ('{"toy": {"missing": ["drop row"]}}', "'missing' of 'toy' must be"),
        ('{"toy": {"missing": {}}}', "'missing' of 'toy' must be"),
    ],
)
def test_catalogs_of_another_form_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "catalog.json").write_text(text)
    with pytest.raises(InputError, match=said) as caught:
        milpbn.read_table("toy", data_dir=tmp_path)
    assert "catalog.json" in str(caught.value)


def test_a_highs_table_without_a_column_of_upper_bounds(tmp_path: Path) -> None:
    path = tmp_path / "a.sol"
    path.write_text("Columns\n Index Status Primal Name\n 0 1 x\nModel status: Optimal\nObjective value: 1\n")
    with pytest.raises(InputError, match=r"a\.sol"):
        read_solution(path)


def test_a_wrong_value_in_xml_is_reported_once(tmp_path: Path) -> None:
    path = tmp_path / "a.sol"
    path.write_text(
        '<CPLEXSolution>\n<variables>\n<variable name="x" value="y"/>\n</variables></CPLEXSolution>'
    )
    with pytest.raises(InputError) as caught:
        read_solution(path)
    assert str(caught.value) == (
        f"The solution file {path} is unusable at line 3: the value 'y' of 'x' is not a finite number."
    )


def test_a_number_of_many_digits_is_read_in_time(tmp_path: Path) -> None:
    # With backtracking over the digits this would take hours.
    path = tmp_path / "long.arff"
    head = "@relation r\n@attribute a string\n@attribute class {y,z}\n@data\n"
    path.write_text(f"{head}{'9' * 3_000_000}x,y\n1,z\n")
    assert milpbn.read_table(path).kinds["a"] == "nominal"


@pytest.mark.parametrize("limit", [10**300, 10**18])
def test_limits_on_children_of_any_size_are_read(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"max_children": {"*": limit}, "required": [["class", "a"]]}))
    table = tmp_path / "t.csv"
    table.write_text("a,b,class\n" + "x,u,y\nz,v,w\nz,u,y\n" * 4)
    from milpbn.cli.constraint_options import read_constraints

    result = milpbn.solve(
        table, constraints=read_constraints(str(path)), backend="highs", time_limit=60, threads=1
    )
    assert result.optimal


DIGITS = "9" * 5000  # more than int() takes


@pytest.mark.parametrize(
    "text",
    [
        f"Optimal - objective value 1\n{DIGITS} x 1 0\n",
        "Optimal - objective value 1\n\u0663 x 1 0\n",
        f"Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 1\n# Columns {DIGITS}\nx 1\n",
    ],
)
def test_counts_of_many_digits_in_solutions_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.sol"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.sol is unusable at line"):
        read_solution(path)


def test_an_attribute_position_of_many_digits_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.arff"
    path.write_text(f"@relation r\n@attribute a string\n@attribute b {{x,y}}\n@data\n{{{DIGITS} x}}\n")
    with pytest.raises(InputError, match=r"Line 5 of .*a\.arff"):
        milpbn.read_table(path)


# -- small files that took long ---------------------------------------------------------------------------

HEAD = "@relation r\n@attribute a string\n@attribute b {x,y}\n@data\n"
BLANKS = " " * 300_000


@pytest.mark.parametrize(
    "row", [f"a{BLANKS}z\tx", f"'',a{BLANKS}b", f"''{BLANKS}'',x", f"'a'{BLANKS}b,x", "'" + " ," * 300_000]
)
def test_rows_of_many_blanks_are_read_or_refused_in_time(tmp_path: Path, row: str) -> None:
    # Earlier, every blank was tried as the end of the cell, and the rest of the line read again, which took hours.
    path = tmp_path / "a.arff"
    path.write_text(f"{HEAD}{row}\nu,y\n")
    try:
        said = f"{milpbn.read_table(path).n_rows} rows"
    except InputError as error:
        said = str(error)
    assert said == "2 rows" or "Line 5 of" in said


@pytest.mark.parametrize(
    "line", [f"a{BLANKS}b", f"a{BLANKS}# c", f'"a"{BLANKS}b', f"class -> a{BLANKS}c", "'" * 99_999]
)
def test_arcs_of_many_blanks_are_refused_in_time(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(line + "\n")
    from milpbn.network import read_structure

    with pytest.raises(InputError, match=r"a\.txt' is unusable: line 1"):
        read_structure(path, ["a", "b", "c", "class"])


def test_sparse_rows_of_many_attributes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "sparse.arff"
    attributes = "".join(f"@attribute a{i} {{x,y}}\n" for i in range(5000))
    path.write_text(f"@relation r\n{attributes}@data\n" + "{0 y}\n" * 5000)
    with pytest.raises(InputError, match=r"sparse\.arff' holds more than 3355 rows of 5000 attributes"):
        milpbn.read_table(path)


def test_nominal_attributes_of_many_values_are_read_in_time(tmp_path: Path) -> None:
    path = tmp_path / "many.arff"
    values = ",".join(map(str, range(20_000)))
    path.write_text(
        f"@relation r\n@attribute a {{{values}}}\n@attribute b {{x,y}}\n@data\n" + "19999,x\n{0 3, 1 y}\n" * 9
    )
    assert milpbn.read_table(path).n_rows == 18
    path.write_text(
        f"@relation r\n@attribute a {{{values}}}\n@attribute b {{x,y}}\n@data\n" + "{0 -3, 1 y}\n"
    )
    with pytest.raises(InputError, match="'-3' of 'a' is not among its declared values"):
        milpbn.read_table(path)


def test_empty_cells_between_tabs_beside_quotes_are_read(tmp_path: Path) -> None:
    path = tmp_path / "tabs.arff"
    path.write_text(
        "@relation r\n@attribute a string\n@attribute b string\n@attribute c {x,y}\n@data\nu\t\t'x'\nw\tv\ty\n"
    )
    assert list(milpbn.read_table(path, missing="state").frame["b"]) == ["", "v"]
