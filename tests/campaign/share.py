"""What every test of the campaign is given: its seeds, its time, and a place for its failures."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from campaign.tally import Tally

#: Tests side by side among which the time of `--campaign` is divided.
SHARES = 6
#: Seconds of `SHARES` tests together in an ordinary run.
SECONDS = 4.0
#: Forgeries of one honest run, and solution files of one exported model: by hand, and in an ordinary run.
PER_RUN = (40, 20)
#: Failures of different kinds after which an ordinary run stops.
ENOUGH = 3


class Share:
    """The part of one test: its seeds, its time, and its failures."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        config = request.config
        given = config.getoption("--campaign")
        workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        self.by_hand = given is not None
        self.seconds = (given * min(workers, SHARES) if self.by_hand else SECONDS) / SHARES
        self.per_run = PER_RUN[0 if self.by_hand else 1]
        fixed = config.getoption("--campaign-seed")
        fresh = secrets.randbelow(10**12) if self.by_hand else crc32(request.node.name.encode())
        self.seed = fresh if fixed is None else fixed
        self.aim = config.getoption("--campaign-aim")
        self.failures = config.getoption("--campaign-failures") or folder / "failures"
        self.report = config.getoption("--campaign-report")
        self.tally = Tally()
        self.texts: list[str] = []

    def seeds(self) -> Iterator[int]:
        """Yield seeds until the time is up; at least one."""
        end = time.monotonic() + self.seconds
        seed = self.seed
        while seed == self.seed or (time.monotonic() < end and (self.by_hand or len(self.texts) < ENOUGH)):
            yield seed
            seed += 1

    def finish(self) -> None:
        """Print the figures, add them to the report, and fail if anything did."""
        figures = self.tally.figures()
        print(f"seeds from {self.seed}, aim {self.aim}: {figures}")
        if self.report is not None:
            self.tally.add_to(self.report, shlex.join(["pytest", *sys.argv[1:]]))
        if self.texts:
            pytest.fail("\n\n".join(self.texts), pytrace=False)

    def note(self, kind: str, origin: str, text: str) -> None:
        """Count a failure, and keep the text of the first one of its kind."""
        if self.tally.fail(kind, origin):
            self.texts.append(f"{kind} ({origin}): {text}")
