"""A folder with one of everything."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_common import make_shop


@pytest.fixture(scope="session")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table, result, classifier, model and solution; tests only read there."""
    return make_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def shop(shop_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return that folder, as the current one."""
    monkeypatch.chdir(shop_folder)
    return shop_folder
