"""Files made to do harm: false sizes, endless numbers, very deep nesting. Each is refused with a sentence."""

import io
import json
import re
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_common import outputs, refused, run, solve_with_highs, succeed, toy_rows, write_csv

from milpbn.certificate import format as proof
from milpbn.certificate.format import LARGEST_FILE, load_proof, save_certificate

HUGE = "1" + "0" * 400
ENDLESS = "9" * 5000
DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table and one of every file that is JSON or holds it."""
    folder = tmp_path_factory.mktemp("hostile")
    table = write_csv(folder / "toy.csv", toy_rows(count=40))
    files = outputs(folder, output="result.json", certificate="proof.npz", classifier="classifier.json")
    succeed("solve --threads 1 --p 0.9", table, *files)
    succeed("export --class-weights good=2", table, "--output", folder / "model.lp")
    succeed("learn tan", table, "--output", folder / "learnt.json")
    solve_with_highs(folder / "model.lp", folder / "model.sol")
    (folder / "constraints.json").write_text(
        json.dumps({"forbidden": [["a", "b"]], "max_children": {"a": 1}, "arc_weights": [["b", "a", 0.5]]})
    )
    return folder


def uses(folder: Path, name: str, path: Path) -> list[list[object]]:
    """Return the commands that read a document of a kind."""
    table, proof = folder / "toy.csv", ["--certificate", folder / "proof.npz"]
    start = ["solve", table, "--time-limit", 1, "--threads", 1]
    return {
        "result.json": [
            ["verify", path, table, *proof],
            ["info", path],
            ["score", path, table, "--bound", path],
            ["plot", path, "--output", path.with_name("picture.png")],
        ],
        "classifier.json": [["info", path], ["predict", path, table], ["evaluate", path, table]],
        "model.json": [["info", path], ["import", folder / "model.sol", "--model", path.with_suffix(".lp")]],
        "constraints.json": [[*start, "--constraints", path]],
        "learnt.json": [["info", path], ["score", path, table]],
    }[name]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inside for found in leaves(item, (*path, key)))]


@pytest.mark.parametrize(
    "name", ["result.json", "classifier.json", "model.json", "constraints.json", "learnt.json"]
)
def test_no_value_of_a_document_ends_in_a_traceback(folder, name, tmp_path):
    """Each value is replaced by values of all JSON types and by odd ones: the verb answers or refuses in a sentence."""
    document = json.loads((folder / name).read_text())
    rng = np.random.default_rng(0)
    hostile = [
        HUGE,
        ENDLESS,
        DEEP + "]" * len(DEEP),
        *("1e999", "NaN", "-Infinity", "true", "null", "-1", "1e308", "0", "2"),
    ]
    hostile += ['"x"', '""', "[]", "{}", "[[]]", '{"a": 1}', '["x"]', str(2**70)]
    paths = leaves(document)[1:]
    target = tmp_path / name
    refusals = 0
    for at in rng.integers(0, len(paths), 20):
        path = paths[at]
        changed = json.loads(json.dumps(document))
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = "@"
        text = json.dumps(changed)
        for value in rng.choice(hostile, 4, replace=False):
            target.write_text(text.replace('"@"', str(value), 1))
            for command in uses(folder, name, target)[:2]:
                done = run(*command)
                assert done.exit_code in (0, 2), (path, str(value)[:20], command, done.output)
                if done.exit_code == 2:
                    refusals += 1
                    last = done.stderr.splitlines()[-1]
                    assert last.startswith("Error: "), done.stderr
                    assert "unexpectedly" not in last
    assert refusals > 10


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.replace('"bound": ', '"bound": 1' + "0" * 400 + ', "was": '), "a number of 401 digits"),
        (lambda t: t.replace('"bound": ', f'"bound": {ENDLESS}, "was": '), "a number is too long"),
        (lambda t: t.replace('"bound": ', '"bound": 1e999, "was": '), "beyond float64"),
        (lambda t: t.replace('"bound": ', '"bound": Infinity, "was": '), "holds Infinity"),
        (lambda t: t.replace('"bound": ', '"bound": 1, "bound": '), "the key 'bound' twice"),
        (lambda t: re.sub('"absolute": [^,]+', '"absolute": "small"', t), "a finite number"),
        (lambda t: t.replace('"trace": ', f'"trace": {DEEP}{"]" * len(DEEP)}, "was": '), "too deeply nested"),
        (lambda t: re.sub(r'"seed": \d+', '"seed": true', t), "a whole number of at least 0 as 'seed'"),
    ],
)
def test_unusable_numbers_in_a_result_are_refused(folder, change, words, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(change((folder / "result.json").read_text()))
    for command in uses(folder, "result.json", path):
        assert words in refused(*command).stderr


def npz(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy(shape: tuple[int, ...], dtype: object = np.float64, content: bytes = b"") -> bytes:
    """Return the bytes of an array whose header states any shape, with the given content."""
    file = io.BytesIO()
    values = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, values)
    return file.getvalue() + content


def peak(*arguments: object) -> tuple[str, int]:
    """Return the sentence of a refusal, and the peak memory of Python and NumPy in bytes."""
    tracemalloc.start()
    try:
        return refused(*arguments).stderr, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_certificate_that_says_it_is_large_is_not_read(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("milpbn.certificate.format.LARGEST_FILE", LARGEST_FILE // 16)
    size = LARGEST_FILE // 16 + 1
    path = tmp_path / "c.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("eta.npy", "w", force_zip64=True) as file,
    ):
        file.write(npy((size // 8,)))
        for _ in range(size // 2**20 + 1):
            file.write(bytes(2**20))
    assert path.stat().st_size < 2**20
    sentence, most = peak("verify", path, folder / "toy.csv")
    assert "such files have at most" in sentence
    assert most < 2**24


@pytest.mark.parametrize(
    "content",
    [
        npy((2**32,)),
        npy((2**60,)),
        npy((2**40, 2**40)),
        npy((0, 2**62)),
        npy((-1,)),
        npy((3,), content=bytes(16)),
        npy((3,), content=bytes(32)),
        npy((1,), object, bytes(8)),
        npy((1,), "M8[s]", bytes(8)),
        npy((1,), "V8", bytes(8)),
        b"",
        b"\x93NUMPY\x01\x00\xff\xff",
        b"\x93NUMPY\x09\x00" + bytes(100),
    ],
)
def test_an_array_that_the_file_does_not_hold_is_not_allocated(folder, content, tmp_path):
    path = npz(tmp_path / "c.npz", {"eta.npy": content})
    sentence, most = peak("verify", path, folder / "toy.csv")
    assert "no readable certificate" in sentence
    assert most < 2**24


def test_archives_of_other_kinds_are_refused(folder, tmp_path):
    content = npy((1,), content=bytes(8))
    for compression in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path = npz(tmp_path / "c.npz", {"eta.npy": content}, compression)
        assert "no readable certificate" in refused("verify", path, folder / "toy.csv").stderr
    with zipfile.ZipFile(tmp_path / "c.npz", "w") as archive:
        archive.writestr("eta.npy", content)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("eta.npy", content)
    assert "no readable certificate" in refused("verify", tmp_path / "c.npz", folder / "toy.csv").stderr
    assert (
        "no readable certificate" in refused("verify", npz(tmp_path / "c.npz", {}), folder / "toy.csv").stderr
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"version": ' + HUGE.encode() + b"}", "a number of 401 digits"),
        (b'{"version": NaN}', "holds NaN"),
        (DEEP.encode(), "too deeply nested"),
        (b"[]", "not a JSON object"),
        (b'{"version": true}', "not of version"),
        (b'{"version": 4}', "not of version"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b"\xff\xfe", "no readable certificate"),
    ],
)
def test_unusable_headers_are_refused(folder, text, words, tmp_path):
    header = npy((len(text),), np.uint8, text)
    assert (
        words in refused("verify", npz(tmp_path / "c.npz", {"header.npy": header}), folder / "toy.csv").stderr
    )


@pytest.mark.parametrize("constraint", [[], ["--forbid", "x1,x2"]])
def test_too_many_parent_sets_are_counted_before_they_are_made(tmp_path, monkeypatch, constraint):
    """25 variables with up to 25 parents: 25 * 2 ** 24 sets, of a run and of a certificate's header."""
    rows = [[str(b) for b in row] for row in np.random.default_rng(0).integers(0, 2, (40, 26))]
    table = write_csv(tmp_path / "wide.csv", rows, ",".join([*(f"x{i}" for i in range(25)), "class"]))
    monkeypatch.setattr("milpbn.util.memory.available_memory", lambda: 4 * 2**30)
    solving = ["solve", table, "--threads", 1, *constraint, "--p", 0.9, "--no-class-parents"]
    assert "candidate parent sets would need" in refused(*solving, "--max-parents", 25).stderr
    succeed(*solving, "--gap-rel", 1, "--certificate", tmp_path / "c.npz")
    header, arrays = load_proof(tmp_path / "c.npz")
    header["score"]["max_parents"] = 25
    save_certificate(tmp_path / "c.npz", header, arrays)
    sentence, most = peak("verify", tmp_path / "c.npz", table)
    assert "candidate parent sets would need" in sentence
    assert most < 2**26


def test_a_proof_that_is_full_can_be_read():
    """Readers accept whatever a search may write: a proof stops growing well below the limit of the readers."""
    assert proof.LARGEST < LARGEST_FILE < 2 * proof.LARGEST


@pytest.mark.parametrize("size", [1e149, 1e151, 1e300, 1.7e308])
@pytest.mark.parametrize("name", ["eta", "multiplier", "temperature"])
def test_weights_that_overflow_prove_nothing(folder, tmp_path, name, size):
    """A sum beyond the range of float64 is not read as a node without structures."""
    header, arrays = load_proof(folder / "proof.npz")
    rng = np.random.default_rng(0)
    lower = header["objective"] + 0.5 * (header["bound"] - header["objective"])
    assert lower < header["bound"]
    for _ in range(5):
        changed = {key: values.copy() for key, values in arrays.items()}
        if name == "multiplier" and not len(changed["multiplier"]):
            # Every leaf gets a row: in the cluster of all features one has no parent there.
            n = len(changed["temperature"])
            V = len(header["structure"])
            changed["row_members"] = np.ones((1, V), dtype=bool)
            changed["row_limit"] = np.array([-1])
            changed["multipliers_size"] = np.ones(n, dtype=np.int64)
            changed["multiplier_row"] = np.zeros(n, dtype=np.int32)
            changed["multiplier"] = np.zeros(n)
        chosen = rng.random(len(changed[name])) < 0.5
        changed[name][chosen] = size * (1 if name != "eta" else rng.choice([-1, 1], int(chosen.sum())))
        save_certificate(tmp_path / "c.npz", header, changed)
        done = run("verify", tmp_path / "c.npz", folder / "toy.csv")
        assert done.exit_code in (0, 2), done.output
        if done.exit_code == 0:
            assert f"bound      {header['bound']:.6f}" in done.stdout
