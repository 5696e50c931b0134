"""Code that the scripts share: common options, rows of data sets, results files, runs of cells, and new processes."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from milpbn.data import Dataset, Table, read_table
from milpbn.data.catalog import catalog_names
from milpbn.errors import DataWarning, MilpbnError
from milpbn.experiments.cells import KeptCells
from milpbn.experiments.images import IMAGES, image_folder, read_images
from milpbn.experiments.paper import compute as compute_study
from milpbn.experiments.protocol import TEST_SET, Part, parts
from milpbn.experiments.runner import Study, missing
from milpbn.util.atomic import atomic_write_text

RESULTS = Path(__file__).resolve().parent.parent / "results"
#: Options whose values are folders of this machine; `command` leaves them out.
_FOLDERS = ("--data-dir", "--recut")


def parser(
    doc: str | None,
    *,
    data: Sequence[str] | None = (),
    names: str = "data sets",
    output: Path | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
) -> argparse.ArgumentParser:
    """Return a parser with the common options.

    Parameters
    ----------
    doc : str or None
        The script's docstring, whose first line is its description.
    data : sequence of str or None
        Data sets that are measured if the command line names none. None is for scripts that need no data: they take
        neither names nor ``--data-dir``.
    names : str
        What the names on the command line stand for.
    output : Path, optional
        Default of ``--output``; without it the option does not exist.
    time_limit : float, optional
        Default of ``--time-limit``, in seconds per run; without it the option does not exist.
    threads : int, optional
        Default of ``--threads``, per run; without it the option does not exist.
    """
    made = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    if data is not None:
        by_default = f"; by default {' '.join(data)}" if data else ""
        made.add_argument("data", nargs="*", default=list(data), metavar="NAME", help=f"{names}{by_default}")
        made.add_argument(
            "--data-dir",
            type=Path,
            default=os.environ.get("MILPBN_DATA"),
            metavar="DIR",
            help="folder of the data; by default the variable MILPBN_DATA",
        )
    if output is not None:
        made.add_argument("--output", type=Path, default=output, help="file or folder for the results")
    if time_limit is not None:
        made.add_argument(
            "--time-limit", type=float, default=time_limit, metavar="SECONDS", help="time limit of each run"
        )
    if threads is not None:
        made.add_argument("--threads", type=int, default=threads, help="threads of each run")
    return made


def parse(
    made: argparse.ArgumentParser, known: Sequence[str] = (), *, catalog: bool = False
) -> argparse.Namespace:
    """Read the command line; the named data sets must be among `known`, unless that is empty.

    With `catalog`, a folder of the data is required, and `known` are by default its data sets.
    """
    options = made.parse_args()
    if catalog and options.data_dir is None:
        made.error("name the catalog's folder with --data-dir or the variable MILPBN_DATA")
    if catalog and not known:
        with errors_as_sentences():
            known = catalog_names(options.data_dir)
    unknown = [name for name in options.data if known and name not in known]
    if unknown:
        made.error(f"there is no data set {unknown[0]}; choose from {', '.join(known)}")
    return options


def command(options: argparse.Namespace, *names: str) -> str:
    """Return a command line that measures only the data sets `names`; folders of this machine are written as DIR."""
    words: list[str] = [*names]
    for before, word in zip(sys.argv, sys.argv[1:], strict=False):
        if before in _FOLDERS:
            words.append("DIR")
        elif "--output" not in (before, word) and word not in options.data:
            words.append(word)
    return shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words])


def training_rows(name: str, data_dir: Path | None) -> Dataset:
    """Return training rows: of images, of the catalog, or without `data_dir` of an embedded instance."""
    if name in IMAGES:
        parts = read_images(name, image_folder(name, data_dir))
        return next(iter(parts.values())).train
    return read_table(name, data_dir=data_dir).dataset("train")


def read_results(path: Path) -> dict[str, Any]:
    """Return the contents of a results file; {} if it does not exist."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Write a results file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write_text(path, json.dumps(results, indent=1, allow_nan=False) + "\n")


def write_page(folder: Path, sections: Sequence[str]) -> str:
    """Write the sections that are not empty as README.md of a folder of results; return its text."""
    text = "\n\n".join(stripped for section in sections if (stripped := section.strip())) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write_text(folder / "README.md", text)
    return text


def other_partition(table: Table, seed: int) -> list[Part]:
    """Return the parts of another partition of a table, of the same sizes: random folds, or a random split."""
    if not table.test_indices.size:
        return parts(table, seed)
    n = len(table.train_indices)
    rows = np.random.default_rng(seed).permutation(np.concatenate([table.train_indices, table.test_indices]))
    return [Part(TEST_SET, table, np.sort(rows[:n]), np.sort(rows[n:]))]


def alone(work: Callable[..., Any], *arguments: object) -> Any:
    """Call a function in a new process, so that memory and kernels are those of this run alone; return its value."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def add_run_options(made: argparse.ArgumentParser) -> None:
    """Add the options of `compute`."""
    made.add_argument("--n-jobs", type=int, default=1, help="processes")
    made.add_argument(
        "--dask",
        metavar="ADDRESS|FILE",
        help="compute on the workers of a Dask cluster: address of its scheduler, or its scheduler file",
    )
    made.add_argument("--only-cached", action="store_true", help="compute nothing; name what is missing")
    made.add_argument("--retry-failed", action="store_true", help="compute failed cells again")


def compute(plan: Study, store: KeptCells, options: argparse.Namespace) -> None:
    """Compute the cells of a plan that are missing, or name them with ``--only-cached``."""
    waiting, failed = missing(plan, store, retry_failed=options.retry_failed)
    if options.only_cached:
        for task in waiting:
            print(f"missing: {task.cell} ({task.cell.key[:12]})")
        for task, reason in failed:
            print(f"failed: {task.cell}: {reason}")
        print(json.dumps({"missing": len(waiting), "failed": len(failed)}))
        return
    how = {name: getattr(options, name) for name in ("n_jobs", "dask", "threads", "retry_failed")}
    for line in compute_study(plan, store, options.output, **how):
        print(line, flush=True)
    for task, reason in failed:
        print(f"failed before: {task.cell}: {reason}")


@contextmanager
def errors_as_sentences() -> Iterator[None]:
    """Print the package's errors, and an interrupt, as a sentence, and end; that rows are dropped is on the pages."""
    warnings.simplefilter("ignore", DataWarning)
    try:
        yield
    except MilpbnError as error:
        print(error, file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        print("Interrupted; the finished cells are kept.", file=sys.stderr)
        raise SystemExit(130) from None
