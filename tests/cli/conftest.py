"""A folder with one of everything."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli_common import make_shop


@pytest.fixture(autouse=True)
def outside_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the kernel of notebooks, which tests of pages import: lines of progress would become its outputs."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)


@pytest.fixture(scope="session")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table, result, classifier, model and solution; tests only read there."""
    return make_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def shop(shop_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return that folder, as the current one."""
    monkeypatch.chdir(shop_folder)
    return shop_folder
