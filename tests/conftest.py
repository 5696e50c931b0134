"""Options of the test suite."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from quick import QUICK

from milpbn.data.catalog import find_data_dir
from milpbn.data.dataset import Dataset, Variable

pytest_plugins = ["exact_checks"]

# Until all tests are collected; nothing of what a worker imports is garbage.
if "PYTEST_XDIST_WORKER" in os.environ:
    gc.disable()

TESTS = Path(__file__).parent
SHARED = Path(__file__).parents[1] / ".." / "shared" / "data"
#: So many random instances of a test run always: the first values of its parameter `seed`.
SEEDS = 12


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--oracle-problems",
        type=int,
        default=63,
        metavar="N",
        help="number of random problems that every solver has to agree with enumeration on (default: 63)",
    )
    parser.addoption(
        "--fuzz",
        type=float,
        default=2.0,
        metavar="SECONDS",
        help="seconds of hostile input for all readers together (default: 2)",
    )
    campaign = parser.getgroup("campaign", "random problems against exact arithmetic (tests/campaign)")
    campaign.addoption(
        "--campaign",
        type=float,
        metavar="SECONDS",
        help="run fresh random cases and forgeries for so long, on all workers together, instead of some 10 s",
    )
    campaign.addoption(
        "--campaign-seed", type=int, metavar="N", help="begin with this seed, as a run printed it"
    )
    campaign.addoption(
        "--campaign-aim",
        default="mixed",
        choices=("mixed", "all", "weights", "constraints", "decomposable", "extremes"),
        help="aim of the cases",
    )
    campaign.addoption("--campaign-report", type=Path, metavar="FILE", help="add the figures to a JSON file")
    campaign.addoption(
        "--campaign-failures",
        type=Path,
        metavar="DIR",
        help="write failures here, shrunk, a folder each; by default into pytest's temporary folder",
    )
    parser.addoption("--slow", action="store_true", help="run the tests that take minutes, too")


def pytest_configure(config: pytest.Config) -> None:
    # No deadline: an example that takes long on a busy machine is no failure.
    settings.register_profile("suite", max_examples=25, deadline=None)
    settings.register_profile("slow", max_examples=100, deadline=None)
    settings.load_profile("slow" if config.getoption("--slow") else "suite")
    config.addinivalue_line("markers", "quick: one of the files that take a minute together")
    config.addinivalue_line("markers", "slow: takes more than 20 seconds; runs with --slow only")
    # Tests start many processes, each of which would compile the package's sources again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # A shell that starts a program in the background makes it ignore Ctrl-C, which some tests send and wait for.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let the second worker begin with the last folders: each finds what the other has rewritten meanwhile."""
    config = session.config
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw1" and config.args == config.getini("testpaths"):
        found = {TESTS / path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py")}
        config.args = sorted(map(str, found), reverse=True)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m quick``, leave out all other files, which take longer to import than the quick ones to run."""
    if config.getoption("markexpr") != "quick" or not collection_path.name.startswith("test_"):
        return None
    return None if is_quick(collection_path) else True


def is_quick(path: Path) -> bool:
    """Whether `QUICK` lists a file of tests."""
    return path.relative_to(TESTS).with_suffix("").as_posix() in QUICK


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # These few take longest: begun last, they would leave one worker alone at the end. Workers need one order.
    items.sort(key=lambda item: (item.path.name != "test_pages.py", item.path))
    for item in items:
        if is_quick(item.path):
            item.add_marker("quick")
    if config.getoption("--slow"):
        return
    later = [item for item in items if is_volume(item)]
    items[:] = [item for item in items if not is_volume(item)]
    config.hook.pytest_deselected(items=later)
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow: runs with --slow"))


def is_volume(item: pytest.Item) -> bool:
    """Whether a test is one of more than `SEEDS` random instances of the same."""
    call = getattr(item, "callspec", None)
    return call is not None and "seed" in call.params and call.indices["seed"] >= SEEDS


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Slow tests and campaigns take their time; for all others, `faulthandler_timeout` ends one that hangs."""
    option = item.config.getoption
    if item.get_closest_marker("slow") or option("--campaign") or option("--fuzz") > 60:
        faulthandler.cancel_dump_traceback_later()


def pytest_collection_finish() -> None:
    """Let the garbage collector leave out the modules and items that stay to the end, half a million objects."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def uci() -> Path:
    """Folder of the UCI data; tests are skipped without it."""
    folder = find_data_dir() or SHARED / "uci"
    if not (folder / "catalog.json").exists():
        pytest.skip("needs the UCI data (MILPBN_DATA)")
    return folder


@pytest.fixture(scope="session")
def image_folds() -> Callable[[str], list[tuple[Dataset, Dataset]]]:
    """Training and test rows of every fold of Roth & Pernkopf's (2020) image data, by name; skips without the data."""

    def folds(name: str) -> list[tuple[Dataset, Dataset]]:
        path = Path(os.environ.get("MILPBN_IMAGES", SHARED / "images")) / f"{name}-discretised.npz"
        if not path.exists():
            pytest.skip("needs the discretised image data (MILPBN_IMAGES)")
        with np.load(path, allow_pickle=False) as arrays:
            return [_fold(name, arrays, fold) for fold in range(1, int(arrays["n_folds"]) + 1)]

    return folds


def _fold(name: str, arrays: np.lib.npyio.NpzFile, fold: int) -> tuple[Dataset, Dataset]:
    # States are numbered from 1 in the files, classes from 0.
    train, test = (
        np.column_stack([arrays[f"x_{part}_fold{fold}"].astype(np.int32) - 1, arrays[f"t_{part}_fold{fold}"]])
        for part in ("tr", "te")
    )
    sizes = np.maximum(train.max(axis=0), test.max(axis=0)) + 1
    variables = tuple(Variable(f"x{i + 1}", tuple(map(str, range(n)))) for i, n in enumerate(sizes.tolist()))
    return tuple(Dataset(name, variables, c.astype(np.int32), np.ones(len(c))) for c in (train, test))
