"""The public names of the package: each is shown, can be imported, and has a type for checkers."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import PyZipFile

import pytest

import milpbn
import milpbn.data
import milpbn.network

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "api"


def test_public_names_can_be_imported() -> None:
    for name in milpbn.__all__:
        assert getattr(milpbn, name) is not None


def test_a_python_that_is_started_in_a_clone_has_the_packages_beside_this_one() -> None:
    clone = Path(milpbn.__file__).parent.parent
    if not (clone / "build_backend").exists():
        pytest.skip("this package is not that of a clone")
    code = """
import sys
sys.meta_path = [one for one in sys.meta_path if "editable" not in str(one).lower()]
import milpbn.cli, milpbn.instances
print(milpbn.read_table("corral"))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=clone, capture_output=True, text=True, check=True)
    assert "<Table 'corral'" in done.stdout


@pytest.mark.parametrize("package", [milpbn, milpbn.data, milpbn.network])
def test_type_checkers_see_what_is_imported_at_first_use(package: Any) -> None:
    tree = ast.parse(inspect.getsource(package))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    typed = {alias.asname: (str(node.module), alias.name) for node in imports for alias in node.names}
    modules = [str(name) for name, (module, _) in typed.items() if module == package.__name__]
    assert dir(package) == sorted(map(str, typed))
    assert package.__all__ == sorted({*map(str, typed)} - {*modules})
    assert "__all__" not in ast.unparse(tree)  # a computed one would hide all names from ``import *`` there
    for name, (module, original) in typed.items():
        assert name == original  # only such a name is exported for type checkers
        assert getattr(package, name) is getattr(import_module(module), original)


def test_public_modules_need_no_import_of_their_own() -> None:
    code = "import milpbn; milpbn.network.load_classifier, milpbn.errors.InputError, milpbn.sklearn, milpbn.plotting"
    subprocess.run([sys.executable, "-P", "-c", code], check=True, timeout=60)
    assert not hasattr(milpbn, "networks")


def test_public_names_are_found_without_source_files(tmp_path: Path) -> None:
    archive, package = tmp_path / "milpbn.zip", str(Path(milpbn.__file__).parent)
    with PyZipFile(str(archive), "w") as file:  # compiled modules only
        file.writepy(package, filterfunc=lambda path: Path(path).stem in ("milpbn", "util", "lazy", "errors"))
    assert [name for name in file.namelist() if name.startswith("milpbn/__init__")] == ["milpbn/__init__.pyc"]
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import milpbn; from milpbn.util import lazy\n"
        "assert sys.argv[1] in milpbn.__file__ and sys.argv[1] in lazy.__file__\n"
        "print(milpbn.InputError.__module__, *milpbn.__all__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(archive)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["milpbn.errors", *milpbn.__all__]


@pytest.mark.parametrize(
    "module", ["", "sklearn", "network", "network.explanation", "network.inference", "plotting"]
)
def test_every_public_name_is_on_a_page_of_the_reference(module: str) -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in REFERENCE.glob("*.md"))
    whole = [import_module(name) for name in re.findall(r"automodule:: (\S+)", text)]
    shown = [getattr(part, name) for part in whole for name in getattr(part, "__all__", vars(part))]
    for name in re.findall(r"auto(?:class|exception|function):: (\S+)", text):
        home, _, last = name.rpartition(".")
        shown.append(getattr(import_module(home), last))
    public = import_module(f"milpbn.{module}".rstrip("."))
    missing = [
        name
        for name in public.__all__
        if callable(getattr(public, name)) and not any(getattr(public, name) is value for value in shown)
    ]
    assert not missing
