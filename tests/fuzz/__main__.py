"""``python -m tests.fuzz``: feed hostile input to every reader for a while, in several processes.

Writes figures as JSON and a folder per failure. With ``--atheris READER`` (pip install atheris) one reader runs under
coverage guidance instead.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

from .campaign import WARM_UP, Count, Feeder, dump, limited, save_failures, summary
from .readers import READERS
from .shop import make_shop

VERSIONS = ("milpbn", "numpy", "pandas", "pyarrow", "click", "numba", "highspy")


def main() -> int:
    """Run the campaign; exit code 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=None, help="by default a fresh one")
    parser.add_argument("--readers", nargs="*", help="parts of readers' names; by default all")
    parser.add_argument(
        "--failures", type=Path, default=Path("fuzz-failures"), help="folder for failing inputs"
    )
    parser.add_argument("--output", type=Path, help="figures as JSON")
    parser.add_argument("--atheris", metavar="READER", help="guide one reader by coverage")
    parser.add_argument("--replay", type=Path, nargs="*", help="folders of failures to try again")
    parser.add_argument("--shop", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.seed = secrets.randbits(32) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory(dir=Path("/dev/shm") if os.path.isdir("/dev/shm") else None) as scratch:
        folder = Path(scratch)
        if options.shop is None:
            (folder / "shop").mkdir()
            options.shop = make_shop(folder / "shop")
        (folder / "work").mkdir()
        if options.replay is not None:
            return _replay(options, folder / "work")
        if options.atheris:
            return _atheris(options, folder / "work")
        if options.worker is not None or options.processes == 1:
            return _work(options, folder / "work")
        return _fork(options)


def _chosen(options: argparse.Namespace) -> list[Any]:
    wanted = options.readers or [""]
    return [r for r in READERS if any(part.lower() in r.name.lower() for part in wanted)]


def _work(options: argparse.Namespace, folder: Path) -> int:
    """Feed all readers in turns."""
    readers = _chosen(options)
    feeders = []
    for i, reader in enumerate(readers):
        (folder / str(i)).mkdir()
        feeders.append(Feeder(reader, options.shop, folder / str(i), options.seed + (options.worker or 0)))
    with limited(memory=False):  # loads what is loaded once
        for feeder in feeders:
            blanks = (
                9 if feeder.reader.form in ("text", "json") else 1
            )  # command lines are chosen by the length
            for data in feeder.pool:
                for i in range(blanks):
                    feeder.try_input(data + b"\n" * i, "a valid file", WARM_UP)
    began = time.monotonic()
    end = began + options.seconds
    total = sum(reader.share for reader in readers)
    turn = min(60.0, options.seconds)
    while time.monotonic() < end:
        for feeder in feeders:
            with limited():
                feeder.run(min(turn * feeder.reader.share / total, max(0.0, end - time.monotonic())))
        failures = [f for feeder in feeders for f in feeder.count.failures]
        for place in save_failures(failures, options.failures):
            print(place, flush=True)
        counts = {f.reader.name: f.count for f in feeders}
        print(f"{time.monotonic() - began:.0f}s  {sum(c.inputs for c in counts.values())} inputs", flush=True)
        _write(options, counts, time.monotonic() - began)
    return int(any(feeder.count.failures for feeder in feeders))


def _write(options: argparse.Namespace, counts: dict[str, Count], seconds: float) -> None:
    figures = summary(counts)
    inputs = sum(count.inputs for count in counts.values())
    failures = sum(len(count.failures) for count in counts.values())
    document = {
        "command": " ".join(["python -m tests.fuzz", *sys.argv[1:]]),
        "seed": options.seed,
        "inputs": inputs,
        "failures": failures,
        "bound": None if failures or not inputs else 3 / inputs,
        "cpu_seconds": round(sum(count.cpu for count in counts.values()), 1),
        "seconds": round(seconds, 1),
        "versions": {
            "python": platform.python_version(),
            **{n: importlib.metadata.version(n) for n in VERSIONS},
        },
        "readers": figures,
    }
    if options.output is not None:
        dump(document, options.output)


def _fork(options: argparse.Namespace) -> int:
    """Run workers as processes of their own: one that a library kills does not end the others."""
    outputs = [options.shop.parent / f"figures-{i}.json" for i in range(options.processes)]
    words = [
        sys.executable,
        "-m",
        __spec__.parent if __spec__ else "tests.fuzz",
        "--seconds",
        str(options.seconds),
    ]
    words += ["--seed", str(options.seed), "--failures", str(options.failures), "--shop", str(options.shop)]
    words += ["--readers", *options.readers] if options.readers else []
    workers = [
        subprocess.Popen([*words, "--worker", str(i), "--output", str(output)])
        for i, output in enumerate(outputs)
    ]
    codes = [worker.wait() for worker in workers]
    if options.output is not None:
        for i, output in enumerate(outputs):
            if output.exists():
                shutil.copy(
                    output, options.output.with_name(f"{options.output.stem}-{i}{options.output.suffix}")
                )
    for code in codes:
        if code not in (0, 1):
            print(f"A worker ended with {code}.", file=sys.stderr)
    return int(any(codes))


def _replay(options: argparse.Namespace, folder: Path) -> int:
    """Try inputs of earlier failures again."""
    bad = 0
    for place in options.replay:
        name = (place / "README.txt").read_text().split("\n", 1)[0].removeprefix("reader: ")
        reader = next(r for r in READERS if r.name == name)
        feeder = Feeder(reader, options.shop, folder, 0)
        with limited(memory=False):
            for data in feeder.pool:
                feeder.try_input(data, patience=WARM_UP)
        with limited():
            answer = feeder.try_input((place / "input").read_bytes())
        bad += answer is None
        print(place.name, "->", answer if answer is not None else feeder.count.failures[-1].what)
    return int(bad > 0)


def _functions_of_the_package() -> Iterator[FunctionType]:
    """Yield the functions and methods that are loaded; those that are compiled have no Python code to watch."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "milpbn":
            continue
        for value in list(vars(module).values()):
            members = vars(value).values() if isinstance(value, type) else [value]
            for member in members:
                function = getattr(member, "__func__", member)
                if isinstance(function, FunctionType) and function.__module__ == name:
                    yield function


def _atheris(options: argparse.Namespace, folder: Path) -> int:
    """Let libFuzzer guide one reader by the coverage of the package."""
    import random

    import atheris

    from .mutate import generate

    reader = next(r for r in READERS if options.atheris.lower() in r.name.lower())
    feed = reader.harness(options.shop, folder)
    pool = reader.pool(options.shop)
    corpus = folder / "corpus"
    corpus.mkdir()
    for i, data in enumerate(pool):
        (corpus / str(i)).write_bytes(data)
        feed(data)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        return generate(random.Random(seed), [data, *pool], reader.form)[:most]

    for function in _functions_of_the_package():
        atheris.instrument_func(function)
    options.failures.mkdir(parents=True, exist_ok=True)
    words = [
        sys.argv[0],
        str(corpus),
        f"-max_total_time={options.seconds:.0f}",
        "-timeout=5",
        "-rss_limit_mb=1536",
    ]
    words += [
        "-max_len=60000",
        "-print_final_stats=1",
        f"-seed={options.seed}",
        f"-artifact_prefix={options.failures}/",
    ]
    atheris.Setup(words, lambda data: feed(data) and None, custom_mutator=mutate)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
