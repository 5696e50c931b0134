"""What the scripts share: their options, the rows of a data set, their results files, and a process for each run."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from milpbn.data import Dataset, read_table
from milpbn.util.atomic import atomic_write_text

RESULTS = Path(__file__).resolve().parent.parent / "results"
#: Options whose values are folders of one machine.
_FOLDERS = ("--data-dir", "--recut")


def parser(
    doc: str | None,
    *,
    data: Sequence[str] = (),
    output: Path | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
) -> argparse.ArgumentParser:
    """Return a parser with the options that scripts have in common.

    Parameters
    ----------
    doc : str or None
        The script's docstring, whose first line is its description.
    data : sequence of str
        Data sets that are measured unless somebody names others.
    output : Path, optional
        Where results go by default; without it there is no ``--output``.
    time_limit : float, optional
        Seconds of each run by default; without it there is no ``--time-limit``.
    threads : int, optional
        Threads of each run by default; without it there is no ``--threads``.
    """
    made = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    by_default = f"; by default {' '.join(data)}" if data else ""
    made.add_argument("data", nargs="*", default=list(data), metavar="NAME", help=f"data sets{by_default}")
    made.add_argument(
        "--data-dir",
        type=Path,
        default=os.environ.get("MILPBN_DATA"),
        metavar="DIR",
        help="folder of the data; by default the variable MILPBN_DATA",
    )
    if output is not None:
        made.add_argument("--output", type=Path, default=output, help="where the results go")
    if time_limit is not None:
        made.add_argument(
            "--time-limit", type=float, default=time_limit, metavar="SECONDS", help="of each run"
        )
    if threads is not None:
        made.add_argument("--threads", type=int, default=threads, help="of each run")
    return made


def parse(made: argparse.ArgumentParser, known: Sequence[str] = ()) -> argparse.Namespace:
    """Read the command line; data sets must be among the known ones if there are any."""
    options = made.parse_args()
    unknown = [name for name in options.data if known and name not in known]
    if unknown:
        made.error(f"there is no data set {unknown[0]}; choose from {', '.join(known)}")
    return options


def command(options: argparse.Namespace, *names: str) -> str:
    """Return the command line that measures some data sets only, without this machine's folders."""
    words: list[str] = [*names]
    for before, word in zip(sys.argv, sys.argv[1:], strict=False):
        if before in _FOLDERS:
            words.append("DIR")
        elif "--output" not in (before, word) and word not in options.data:
            words.append(word)
    return shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words])


def training_rows(name: str, data_dir: Path | None) -> Dataset:
    """Return the training rows of a data set of the catalog, or of an embedded instance without a folder."""
    return read_table(name, data_dir=data_dir).dataset("train")


def read_results(path: Path) -> dict[str, Any]:
    """Return what a results file holds so far."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Write a results file at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write_text(path, json.dumps(results, indent=1, allow_nan=False) + "\n")


def alone(work: Callable[..., Any], *arguments: object) -> Any:
    """Return what some work returns in a process of its own, whose memory and kernels are no other run's."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()
