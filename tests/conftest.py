"""Options of the test suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from milpbn.data.catalog import find_data_dir


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--oracle-problems",
        type=int,
        default=225,
        metavar="N",
        help="number of random problems that every solver has to agree with enumeration on (default: 225)",
    )
    parser.addoption("--slow", action="store_true", help="run the tests that take minutes, too")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes more than 20 seconds; runs with --slow only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow: runs with --slow"))


@pytest.fixture(scope="session")
def uci() -> Path:
    """Folder of the UCI data; tests are skipped where there is none."""
    folder = find_data_dir() or Path(__file__).parents[1] / ".." / "shared" / "data" / "uci"
    if not (folder / "catalog.json").exists():
        pytest.skip("needs the UCI data (MILPBN_DATA)")
    return folder
