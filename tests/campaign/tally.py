"""The figures of a campaign, added up over tests and workers in one JSON file."""

from __future__ import annotations

import fcntl
import json
import platform
import resource
import time
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

#: Packages whose versions the figures belong to.
PACKAGES = (
    "milpbn", "numpy", "scipy", "numba", "pandas", "highspy", "pulp", "ortools", "pyscipopt", "mpmath"
)  # fmt: skip
#: The counts of attempts, from which the bound on the rate of failures follows.
INDEPENDENT = ("cases", "forgeries", "solution files", "tables")
#: 95 % upper bound on the rate of failures where n tries had none: 3 / n.
RULE_OF_THREE = 3.0


def _cpu_seconds() -> float:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage)


@dataclass
class Tally:
    """What a test has tried and found.

    Attributes
    ----------
    tried : Counter
        Cases, structures enumerated, forgeries, solution files.
    outcomes : Counter
        What became of the cases, and of which backend and score they were.
    failures : dict of str to list
        By kind, where it occurred: seeds.
    """

    tried: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[str]] = field(default_factory=dict)
    _wall: float = field(default_factory=time.monotonic)
    _cpu: float = field(default_factory=_cpu_seconds)

    def fail(self, kind: str, origin: str) -> bool:
        """Note a failure; return whether it is the first of its kind."""
        first = kind not in self.failures
        self.failures.setdefault(kind, []).append(origin)
        return first

    def figures(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            "tried": dict(self.tried),
            "outcomes": dict(self.outcomes),
            "failures": self.failures,
            "cpu_seconds": round(_cpu_seconds() - self._cpu, 1),
            "test_seconds": round(time.monotonic() - self._wall, 1),
        }

    def add_to(self, path: Path, command: str) -> None:
        """Add the figures to those of a file, which other processes may be adding to."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            text = file.read()
            total = _summed(json.loads(text) if text.strip() else {}, self.figures())
            failed = sum(map(len, total["failures"].values()))
            total["bound_95"] = {
                what: RULE_OF_THREE / count
                for what, count in total["tried"].items()
                if count and not failed and what in INDEPENDENT
            }
            total |= {"command": command, "date": time.strftime("%Y-%m-%d"), "versions": versions()}
            file.seek(0)
            file.truncate()
            file.write(json.dumps(total, indent=1, ensure_ascii=False) + "\n")


def _summed(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Add up numbers, and join lists, key by key."""
    out = dict(a)
    for key, value in b.items():
        if isinstance(value, dict):
            out[key] = _summed(a.get(key, {}), value)
        else:
            out[key] = a[key] + value if key in a else value
    return out


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "system": platform.platform()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
