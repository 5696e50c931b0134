"""The first run after an installation, beside a second run.

    python benchmarks/first_run.py [--program PATH ...] [--time-limit SECONDS] [--output FILE]

Runs the README's first command (the default instance) with an empty folder for compiled kernels, then once more with
the kernels of the first run, and then with an empty folder and a time limit of 10 seconds. A program that pip installed
has the kernels of this search; one installed with -e or with MILPBN_NO_KERNELS=1 compiles them at the first run.
`best_incumbent_after` is the moment of the trace at which the incumbent first had its final score, `wall` counts from
the start of the program, `cpu` is the time of all its processes, and `load` the machine's load before the run.
`--program` names programs of other installations, which are run one after the other. Writes results/first_run.json.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import RESULTS, parser, write_results


def run(program: str, cache: str, time_limit: float) -> dict[str, float | bool | None]:
    """Solve the default instance, and return the figures described at the head of this file."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "result.json")
        command = [
            program,
            "solve",
            "--score",
            "sm",
            "--time-limit",
            f"{time_limit:g}",
            "--output",
            str(output),
        ]
        load, before = os.getloadavg()[0], resource.getrusage(resource.RUSAGE_CHILDREN)
        begun = time.perf_counter()
        done = subprocess.run(
            [*command, "-q"],
            env=os.environ | {"NUMBA_CACHE_DIR": cache},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode != 0 or not output.exists():
            raise SystemExit(
                f"{program!r} did not solve the default instance (exit code {done.returncode}): {done.stderr.strip()}"
            )
        wall = time.perf_counter() - begun
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = json.loads(output.read_text())
    best = max(z for _, z, _ in result["trace"] if z is not None)
    first = next(seconds for seconds, z, _ in result["trace"] if z == best)
    return {
        "wall": wall,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "load": load,
        "best_incumbent_after": first,
        "incumbent": result["objective"],
        "bound": result["bound"],
        "optimal": result["status"]["reason"] == "optimal",
    }


def main() -> None:
    made = parser(__doc__, data=None, output=RESULTS / "first_run.json", time_limit=600.0)
    made.add_argument(
        "--program",
        nargs="+",
        default=[str(Path(sys.executable).with_name("milpbn"))],
        metavar="PATH",
        help="programs of other installations",
    )
    options = made.parse_args()
    for program in options.program:
        if shutil.which(program) is None:
            made.error(f"{program!r} is not a program that can be run; give the path of a milpbn command.")
    rows = []
    for number, program in enumerate(options.program):
        with tempfile.TemporaryDirectory() as cache:
            kinds = {kind: run(program, cache, options.time_limit) for kind in ("first", "second")}
            row = {"program": number, **kinds}
        with tempfile.TemporaryDirectory() as cache:
            row["first, 10 s"] = run(program, cache, 10.0)
        print(json.dumps(row), flush=True)
        rows.append(row)
    command = "python benchmarks/first_run.py" + (" --program NEW OLD" if len(rows) == 2 else "")
    write_results(options.output, {"command": command, "results": rows})


if __name__ == "__main__":
    main()
