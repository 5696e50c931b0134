"""Find the optima of the embedded instances, and write them to instances/optima.json and instances/README.md.

    python benchmarks/instances.py [NAME ...] [--time-limit 120]

Solves every instance with the default options at p = 0.9 and 0.99. Each number is written with its command; the last
column of the table in instances/README.md is filled.
"""

from __future__ import annotations

import json
import re

from common import RESULTS, parse, parser, write_results

import milpbn
from milpbn import instances

FOLDER = RESULTS.parent / "instances"
OPTIMA, README = FOLDER / "optima.json", FOLDER / "README.md"


def solve(name: str, p: float, seconds: float, backend: str) -> dict[str, object]:
    result = milpbn.solve(name, milpbn.Score(p=p), time_limit=seconds, backend=backend, verbose=False)
    command = f"milpbn solve {name} --score sm --p {p} --time-limit {seconds:g}"
    if backend != "auto":
        command += f" --backend {backend}"
    print(command, result.reason, result.objective, result.bound, f"{result.seconds.total:.1f} s", flush=True)
    return {
        "score": "sm",
        "p": p,
        "max_parents": 2,
        "class_parents": True,
        "objective": result.objective,
        "bound": result.bound,
        "status": result.reason,
        "command": command,
    }


def better(new: dict[str, object], old: dict[str, object] | None) -> bool:
    """Return whether a new entry has a higher incumbent or, at the same incumbent, a lower bound."""
    if old is None:
        return True
    # An entry of an earlier version is replaced by an equal new one, so that its command works with this version.
    return (new["objective"], -new["bound"]) >= (old["objective"] - 1e-9, -old["bound"] - 1e-9)  # type: ignore[operator]


def show(entries: list[dict[str, object]]) -> str:
    parts = []
    for entry in entries:
        value = f"{entry['objective']:.6f}"
        if entry["status"] != "optimal":
            value = f"{entry['objective']:.3f} to {entry['bound']:.3f}"
        parts.append(f"p = {entry['p']}: {value}")
    return "; ".join(parts)


def main() -> None:
    made = parser(__doc__, data=instances.names(), time_limit=120.0)
    made.add_argument("--backend", default="auto")
    options = parse(made, instances.names())
    optima = json.loads(OPTIMA.read_text())
    for name in options.data:
        entries = {entry["p"]: entry for entry in optima.get(name, [])}
        for p in (0.9, 0.99):
            found = solve(name, p, options.time_limit, options.backend)
            if better(found, entries.get(p)):
                entries[p] = found
        optima[name] = [entries[p] for p in sorted(entries)]
        write_results(OPTIMA, optima)
    text = README.read_text()
    for name, entries in optima.items():
        pattern = rf"(?m)^(\| {re.escape(name)} \|.*\|) [^|]*\|$"
        text = re.sub(pattern, lambda m, e=entries: f"{m.group(1)} {show(e)} |", text)
    README.write_text(text)


if __name__ == "__main__":
    main()
