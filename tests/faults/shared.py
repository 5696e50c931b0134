"""What the scripts share: the program, folders of results, processes by a mark, and pauses."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# The root itself must not be on the path: its milpbn/ has neither the command line nor the instances, which an
# installation has.
sys.path[1:1] = [str(ROOT / "benchmarks"), str(ROOT / "tests")]

from campaign.tally import versions  # noqa: E402
from common import RESULTS, parser, read_results, write_results  # noqa: E402, F401
from generated import forest, wide_continuous, wide_nominal  # noqa: E402, F401

PROGRAM = Path(sys.executable).with_name("milpbn")
RELIABILITY = RESULTS / "reliability"
#: Variable by which the processes that a command starts are found.
MARK = "MILPBN_FAULTS_MARK"


def chosen(commands: Iterable[Any], words: list[str]) -> list[Any]:
    """Return the commands whose names have all of the words."""
    return [command for command in commands if all(word in command.name.split() for word in words)]


def results_of(path: Path) -> dict[str, Any]:
    """Return what a results file holds, with the versions of now."""
    return read_results(path) | {"versions": versions()}


def wait_while(pause: Path | None) -> float:
    """Wait while a file exists, and return the seconds that were waited."""
    began = time.monotonic()
    while pause is not None and pause.exists():
        time.sleep(1.0)
    return time.monotonic() - began


def add_pause(options: argparse.ArgumentParser) -> None:
    """Add the option that names this file."""
    options.add_argument(
        "--pause", type=Path, metavar="FILE", help="begin nothing new while this file exists"
    )


def orphans(mark: str, grace: float) -> list[str]:
    """Return the command lines of the processes with a mark that are left after so many seconds."""
    end = time.monotonic() + grace
    while (left := list(_marked(mark))) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def _marked(mark: str) -> Iterator[str]:
    """Yield the command lines of the running processes that have a mark in their environment."""
    wanted = f"{MARK}={mark}\0".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if wanted not in (folder / "environ").read_bytes():
                continue
            if (folder / "stat").read_text().rpartition(")")[2].split()[0] == "Z":
                continue
            yield (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
        except OSError:
            continue
