"""Worker processes do not outlive their parents."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")


def test_a_worker_ends_when_its_parent_is_killed() -> None:
    worker = "import time; from milpbn.util import workers; workers.POLL_SECONDS = 0.05; workers.begin(); time.sleep(9)"
    parent = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-c', {worker!r} + ' # '])\n"
        "print(child.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        number = int(process.stdout.readline())
        while _state(number) != "S":
            time.sleep(0.05)
        time.sleep(0.5)  # its watch has begun
        process.send_signal(signal.SIGKILL)
    end = time.monotonic() + 8
    while _state(number) not in ("", "Z"):
        assert time.monotonic() < end, "the worker is still there"
        time.sleep(0.05)


def _state(number: int) -> str:
    """Return the state of a process; empty if it has ended."""
    done = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(number)], capture_output=True, text=True, env=os.environ, check=False
    )
    return done.stdout.strip()[:1]
