"""Runs readers on generated inputs for a while, within limits of time and memory, and counts.

An input whose answer is new (apart from names and numbers in the sentence) is kept, and later inputs are made from it.
This leads to new paths without instrumented code.
"""

from __future__ import annotations

import json
import random
import re
import resource
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from .mutate import LONG, generate
from .readers import Reader

#: Seconds of CPU time, and of wall-clock time on a busy machine, after which an input has hung the reader.
CPU_LIMIT, WALL_LIMIT = 5.0, 60.0
#: Seconds for valid files at the start, when kernels may have to be compiled.
WARM_UP = 300.0
#: Bytes that a reader may use beyond what the process had.
MEMORY = 1 << 30
#: Largest number of inputs that are kept.
POOL = 400


class Hang(BaseException):
    """A reader took too long; nothing that handles exceptions stops it."""


@dataclass
class Failure:
    """An input that was neither answered nor refused with a sentence."""

    reader: str
    what: str
    data: bytes
    draw: str

    @property
    def key(self) -> str:
        """What failures of one cause have in common."""
        return f"{self.reader}: {_template(self.what.splitlines()[0])}"


@dataclass
class Count:
    """The counts of one reader."""

    inputs: int = 0
    accepted: int = 0
    answers: set[str] = field(default_factory=set)
    cpu: float = 0.0
    failures: list[Failure] = field(default_factory=list)


@contextmanager
def limited(memory: bool = True) -> Iterator[None]:
    """Limit the address space to `MEMORY` more than now, and let `Hang` end what takes longer than the limits."""

    def hang(number: int, frame: FrameType | None) -> None:
        raise Hang("".join(traceback.format_stack(frame, limit=12)))

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = [signal.signal(number, hang) for number in (signal.SIGPROF, signal.SIGALRM)]
    if memory:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        for number, handler in zip((signal.SIGPROF, signal.SIGALRM), before, strict=True):
            signal.signal(number, handler)


class Feeder:
    """Feeds one reader, and keeps the inputs from which later ones are made.

    Parameters
    ----------
    reader : Reader
    shop, folder : Path
        Valid files, and where the hostile file is written.
    seed : int
        Of the inputs.
    """

    def __init__(self, reader: Reader, shop: Path, folder: Path, seed: int) -> None:
        self.reader = reader
        self.pool = reader.pool(shop)
        self.first = len(self.pool)
        self.feed = reader.harness(shop, folder)
        self.seed, self.number = seed, 0
        self.count = Count()

    def run(
        self, seconds: float, *, least: int = 0, most: float = float("inf"), patience: float = CPU_LIMIT
    ) -> None:
        """Feed inputs for a time, at least and at most so many in all; call it within `limited`."""
        began, end = time.process_time(), time.monotonic() + seconds
        while self.count.inputs < most and (self.count.inputs < least or time.monotonic() < end):
            self.step(patience)
        self.count.cpu += time.process_time() - began

    def next_input(self) -> tuple[bytes, str]:
        """Return another input, and what it was drawn with."""
        self.number += 1
        draw = f"{self.seed}-{self.reader.name}-{self.number}"
        return generate(random.Random(draw), self.pool, self.reader.form), draw

    def step(self, patience: float = CPU_LIMIT) -> None:
        """Feed one input."""
        data, draw = self.next_input()
        self.count.inputs += 1
        answer = self.try_input(data, draw, patience)
        if answer is None:
            return
        self.count.accepted += not answer
        template = _template(answer)
        if template not in self.count.answers:
            self.count.answers.add(template)
            if len(self.pool) < POOL + self.first and len(data) < LONG:
                self.pool.append(data)

    def try_input(self, data: bytes, draw: str = "", patience: float = CPU_LIMIT) -> str | None:
        """Return the answer to an input; None, and a failure noted, if there is none within seconds of CPU time."""
        signal.setitimer(signal.ITIMER_PROF, patience)
        signal.setitimer(signal.ITIMER_REAL, max(WALL_LIMIT, 10 * patience))
        try:
            return self.feed(data)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.count.failures.append(Failure(self.reader.name, _describe(error), data, draw))
            return None
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)


def save_failures(failures: list[Failure], folder: Path) -> list[Path]:
    """Write one folder per cause, with the input, its reader and what happened; return the new ones."""
    made = []
    for failure in failures:
        name = re.sub(r"\W+", "-", failure.key).strip("-")[:110]
        place = folder / name
        if place.exists():
            continue
        place.mkdir(parents=True)
        (place / "input").write_bytes(failure.data)
        (place / "README.txt").write_text(
            f"reader: {failure.reader}\ndraw: {failure.draw}\n\n{failure.what}\n", errors="backslashreplace"
        )
        made.append(place)
    return made


def summary(counts: dict[str, Count]) -> dict[str, Any]:
    """Return the figures of a run by reader, for JSON."""
    return {
        name: {
            "inputs": count.inputs,
            "accepted": count.accepted,
            "different answers": len(count.answers),
            "failures": len(count.failures),
            "cpu_seconds": round(count.cpu, 1),
            "bound": None if count.failures or not count.inputs else 3 / count.inputs,
        }
        for name, count in counts.items()
    }


def _template(answer: str) -> str:
    """Return an answer without its quoted names and its numbers."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\d+|\s+", " ", answer[:1500])[:200]


def _describe(error: BaseException) -> str:
    """Return the kind of an error, the last line of the package that it passed, and its text."""
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if "/milpbn/" in f.filename and "venv" not in f.filename
    ]
    place = f"{Path(frames[-1].filename).name} in {frames[-1].name}" if frames else "?"
    text = "".join(traceback.format_exception(error, limit=-8))
    said = "" if isinstance(error, Hang) else " ".join(str(error)[:90].split())
    return f"{type(error).__name__} at {place}: {said}\n{text[-6000:]}"


def dump(document: dict[str, Any], path: Path) -> None:
    """Write figures."""
    path.write_text(json.dumps(document, indent=1) + "\n")
