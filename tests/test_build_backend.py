"""The build backend: kernels in the wheel, or one sentence."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import milpbn


@pytest.fixture
def backend() -> ModuleType:
    pytest.importorskip("setuptools", minversion="77")
    path = Path(__file__).parents[1] / "build_backend" / "with_kernels.py"
    spec = importlib.util.spec_from_file_location("with_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(
    "site-packages" not in milpbn.__file__ or "MILPBN_NO_KERNELS" in os.environ,
    reason="neither a clone nor an editable installation has compiled kernels",
)
def test_an_installation_has_the_kernels_of_the_default_search(tmp_path: Path) -> None:
    program = "from milpbn.solving.warm_up import of_default_search as f; print([j.is_kept() for j in f()])"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    kept = json.loads(done.stdout.lower())
    assert len(kept) > 40
    assert all(kept)


def test_an_installation_needs_a_compiler_only_for_kernels(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend.build_meta, "get_requires_for_build_wheel", lambda settings: [])
    monkeypatch.delenv("MILPBN_NO_KERNELS", raising=False)
    names = [line.partition(">")[0] for line in backend.get_requires_for_build_wheel()]
    assert names == ["numba", "numpy", "threadpoolctl"]
    monkeypatch.setenv("MILPBN_NO_KERNELS", "1")
    assert backend.get_requires_for_build_wheel() == []


@pytest.mark.parametrize("program", ["raise SystemExit('no compiler')", "import os; os.kill(os.getpid(), 9)"])
def test_kernels_that_cannot_be_compiled_are_one_sentence(
    backend: ModuleType,
    program: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    def start(**options: object) -> list[subprocess.Popen]:
        return [subprocess.Popen([sys.executable, "-c", program], text=True, **options)]  # type: ignore[call-overload]

    monkeypatch.setattr(backend, "start", start)
    monkeypatch.setattr(backend, "ROOT", tmp_path)
    (tmp_path / "build" / "kernels-0").mkdir(parents=True)
    backend.add_kernels(tmp_path)
    said = capsys.readouterr().err
    assert said.startswith("The kernels could not be compiled, so the first run will compile them: ")
    assert said.count("\n") == 1
    assert not list(tmp_path.glob("build/kernels-*"))
