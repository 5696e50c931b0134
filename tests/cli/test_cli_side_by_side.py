"""Several searches at once: in threads, in forked and spawned processes, in one folder, on a fresh machine."""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from cli_common import load, toy_rows, write_csv
from joblib import Parallel, delayed

import milpbn
from milpbn.certificate.verify.check import verify
from milpbn.data import read_table

SCRIPT = Path(sys.executable).with_name("milpbn")


def solved(table: str, backend: str, folder: str | None = None, random_state: int = 0) -> tuple[str, float]:
    """Return what a search says of its result, with the files of a folder that others write, too."""
    files = {}
    if folder is not None:
        names = {"output": "r.json", "trace": "t.jsonl"} | (
            {"certificate": "p.npz"} if backend == "native" else {}
        )
        files = {option: os.path.join(folder, name) for option, name in names.items()}
    score = milpbn.Score(p=0.9)
    result = milpbn.solve(
        table, score, backend=backend, threads=1, random_state=random_state, verbose=False, **files
    )
    assert result.objective is not None
    return str(result.reason), round(result.objective, 6)


@pytest.fixture
def table(tmp_path):
    return str(write_csv(tmp_path / "toy.csv", toy_rows()))


@pytest.mark.parametrize("backend", ["native", "highs"])
def test_searches_in_threads_that_write_the_same_files(tmp_path, table, backend):
    folder = tmp_path / "out"
    folder.mkdir()
    expected = solved(table, backend)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: solved(table, backend, str(folder), k), range(6)))
    assert found == [expected] * 6
    assert {path.name for path in folder.iterdir()} <= {"r.json", "t.jsonl", "p.npz"}
    assert load(folder / "r.json")["status"]["reason"] == "optimal"
    if backend == "native":
        verify(None, folder / "p.npz", read_table(table).dataset("train"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("backend", ["native", "highs", "cbc"])
def test_searches_in_forked_processes(table, backend):
    """The parent has compiled kernels, and has used the solver."""
    expected = solved(table, backend)
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        found = list(pool.map(solved, [table] * 3, [backend] * 3, timeout=120))
    assert found == [expected] * 3


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["native", "cpsat"])
def test_searches_in_spawned_processes_and_in_those_of_joblib(tmp_path, table, backend):
    folder = str(tmp_path)
    expected = solved(table, backend)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(solved, [table] * 4, [backend] * 4, [folder] * 4, timeout=240))
    found += Parallel(n_jobs=2)(delayed(solved)(table, backend, folder, k) for k in range(2))
    assert found == [expected] * 6


@pytest.mark.slow
@pytest.mark.skipif(not SCRIPT.exists(), reason="milpbn is not installed as a command")
def test_two_first_runs_on_a_fresh_machine_share_the_compilation(tmp_path, table):
    """Then a third run compiles nothing."""
    for name in ("cache", "tmp", "out"):
        (tmp_path / name).mkdir()
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "tmp")}
    files = ["--output", "out/r.json", "--classifier", "out/c.json", "--certificate", "out/p.npz"]
    command = [str(SCRIPT), "solve", table, "--p", "0.9", "--backend", "native", "--threads", "1", *files]

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    for process in [start(), start()]:
        output, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
        assert "status     optimal" in output
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nb?")}
    assert len(kept) > 80
    assert not [
        path for path in (tmp_path / "cache").rglob("*") if ".tmp." in path.name or ".milpbn" in path.name
    ]
    process = start()
    process.communicate(timeout=600)
    assert process.returncode == 0
    assert kept == {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nb?")}
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == [f"milpbn-{os.getuid()}"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"r.json", "c.json", "p.npz"}
    verify(None, tmp_path / "out" / "p.npz", read_table(table).dataset("train"))
