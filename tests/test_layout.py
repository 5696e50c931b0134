"""The tests mirror the package: the tests of a module are in the same folder under tests/, in files of its name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from quick import QUICK

import milpbn

TESTS = Path(__file__).parent
PACKAGE = Path(milpbn.__file__).parent
#: Folders with tests of the package from outside, as users meet it, instead of tests of a module.
WHOLE = {"campaign", "cli", "faults", "fuzz", "instances"}


@pytest.mark.parametrize(
    "path", sorted(TESTS.glob("*/**/test_*.py")), ids=lambda p: str(p.relative_to(TESTS))
)
def test_a_file_of_tests_is_named_after_a_module(path: Path) -> None:
    folder = path.relative_to(TESTS).parent
    if folder.parts[0] in WHOLE:
        return
    name = path.stem.removeprefix("test_")
    modules = [module.stem for module in (PACKAGE / folder).glob("*.py")]
    assert any(name == module or name.startswith(f"{module}_") for module in modules), (
        f"milpbn/{folder} has no module that tests/{folder}/{path.name} is named after"
    )


def test_every_package_is_in_the_wheel() -> None:
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    folders = {path.parent for path in PACKAGE.rglob("__init__.py")}
    packages = {".".join(("milpbn", *folder.relative_to(PACKAGE).parts)) for folder in folders}
    assert packages | {"milpbn.cli", "milpbn.instances"} == set(project["tool"]["setuptools"]["packages"])


def test_the_source_distribution_has_all_packages_and_no_tests(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77")
    root, copy = TESTS.parent, tmp_path / "milpbn"
    for folder in ("milpbn", "cli", "instances", "tests", "build_backend"):
        shutil.copytree(root / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("CITATION.cff", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"):
        shutil.copy(root / name, copy)
    files = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    build = "import sys, with_kernels; with_kernels.build_sdist(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": "build_backend"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        packed = {member.name.partition("/")[2] for member in archive if member.isfile()}
    assert {name for name in files if not name.startswith("tests/")} <= packed
    assert not {name for name in packed if name.startswith("tests")}


def test_quick_tests_cover_every_package() -> None:
    assert all((TESTS / f"{name}.py").exists() for name in QUICK)
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages <= {name.partition("/")[0] for name in QUICK}


def test_names_of_test_files_are_unique() -> None:
    """Pytest imports test files by their name alone."""
    names = [path.name for path in TESTS.rglob("test_*.py")]
    assert len(names) == len(set(names))
