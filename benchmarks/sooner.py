"""CPU seconds until a gap is reached: this installation beside another one, in turns on one thread.

    python benchmarks/sooner.py --other PYTHON --data-dir DIR [NAME ...]

PYTHON is the interpreter of the other installation. Each installation has one process for all its runs. The two take
turns, and begin in alternating order, because the speed of a machine with other work drifts. Before, each process
searches a small problem, so that its kernels are compiled and loaded. A ratio is the other's seconds over this one's,
so more than 1 means sooner here; the median of the pairs counts. Every pair is written to the results at once; the
results of cases that are not named stay.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding
from common import RESULTS, parse, parser, read_results, write_results

OUTPUT = RESULTS / "sooner.json"


class Case(NamedTuple):
    """A problem, and the share of the incumbent that the gap must reach; 0 for a proof."""

    data: str
    p: float
    gap: float
    class_parents: bool = False


CASES = {
    "segment .99, .2 %": Case("segment", 0.99, 0.002),
    "segment .99, .15 %": Case("segment", 0.99, 0.0015),
    "segment .99, .12 %": Case("segment", 0.99, 0.0012),
    "segment .9, .24 %": Case("segment", 0.9, 0.0024),
    "segment .99, class parents, .2 %": Case("segment", 0.99, 0.002, True),
    "waveform-21 .99": Case("waveform-21", 0.99, 0.0),
    "waveform-21 .9, 1.4 %": Case("waveform-21", 0.9, 0.014),
    "heart .6": Case("heart", 0.6, 0.0),
    "heart .9, .6 %": Case("heart", 0.9, 0.006),
    "hepatitis .7": Case("hepatitis", 0.7, 0.0),
    "soybean-large .9, .4 %": Case("soybean-large", 0.9, 0.004),
    "soybean-large .9, .22 %": Case("soybean-large", 0.9, 0.0022),
    "soybean-large .99, .2 %": Case("soybean-large", 0.99, 0.002),
    "satimage .9, 3.7 %": Case("satimage", 0.9, 0.037),
    "satimage .99, 1.2 %": Case("satimage", 0.99, 0.012),
    "letter .9, 9.7 %": Case("letter", 0.9, 0.097),
    "letter .99, 6 %": Case("letter", 0.99, 0.06),
    "adult .9, .55 %": Case("adult", 0.9, 0.0055),
    "adult .99": Case("adult", 0.99, 0.0),
}


#: Answers every line on stdin, a case, with seconds, nodes, incumbent and bound. It is text because other commits lack
#: this file.
SERVER = """
import json, sys, time
import milpbn
print("answer", json.dumps(milpbn.__file__), flush=True)
tables = {}
for line in sys.stdin:
    name, p, gap, class_parents, folder = json.loads(line)
    if name not in tables:
        tables[name] = milpbn.read_table(name, data_dir=folder)
    score = milpbn.Score(p=p, class_parents=class_parents)
    begun = time.process_time()
    found = milpbn.solve(tables[name], score, gap_rel=gap, threads=1, verbose=False)
    seconds = time.process_time() - begun
    print("answer", json.dumps([round(seconds, 3), found.nodes, found.objective, found.bound]), flush=True)
"""


class Installation:
    """A process that searches with one installation."""

    def __init__(self, python: str, folder: Path) -> None:
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self.folder = str(folder)
        self.process = subprocess.Popen(
            [python, "-P", "-W", "ignore", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **single},
        )
        #: Where the installed package is.
        self.package = self._answer()

    def search(self, case: Case) -> dict[str, Any]:
        """Search a problem."""
        asked = [case.data, case.p, case.gap, case.class_parents, self.folder]
        assert self.process.stdin is not None
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        return dict(zip(("seconds", "nodes", "incumbent", "bound"), self._answer(), strict=True))

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            word, _, answer = line.partition(" ")
            if word == "answer":
                return json.loads(answer)
        raise SystemExit(f"the process of {self.process.args!r} ended")


def main() -> None:
    made = parser(__doc__, output=OUTPUT)
    made.add_argument("--other", required=True, metavar="PYTHON", help="the other installation's interpreter")
    made.add_argument("--other-is", default="", metavar="TEXT", help="what the other is, e.g. a commit")
    made.add_argument("--rounds", type=int, default=3, help="pairs of runs of each case")
    options = parse(made, list(CASES), catalog=True)
    results = read_results(options.output)
    here, other = (Installation(p, options.data_dir) for p in (sys.executable, options.other))
    if here.package == other.package:
        made.error(f"both interpreters import {here.package}")
    for each in (here, other):
        each.search(CASES["heart .9, .6 %"])
    for name in options.data or CASES:
        case, pairs = CASES[name], []
        for number in range(options.rounds):
            order = (here, other) if number % 2 else (other, here)
            found = {each: each.search(case) for each in order}
            pairs.append({"here": found[here], "other": found[other]})
            ratios = [pair["other"]["seconds"] / pair["here"]["seconds"] for pair in pairs]
            results.setdefault("cases", {})[name] = {
                "command": f"python benchmarks/sooner.py --other PYTHON --data-dir DIR {shlex.quote(name)}",
                "other": options.other_is,
                "processor": llvmlite.binding.get_host_cpu_name(),
                "ratio": round(statistics.median(ratios), 3),
                "pairs": pairs,
            }
            write_results(options.output, results)
        print(
            f"{name:36} {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})", flush=True
        )


if __name__ == "__main__":
    main()
