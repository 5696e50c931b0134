"""What checkpoints cost: their share of the time of a search, their size, and the time until a search goes on.

    python benchmarks/resume.py segment letter soybean-large --data-dir DIR [--time-limit 60] [--threads 1]

Score SM with the default p, max_parents 2, class parents, training rows, with a certificate; kernels are compiled
before. Writes results/reliability/resume.json.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

from common import RESULTS, command, parse, parser, read_results, training_rows, write_results

from milpbn.problem.scores.spec import Score
from milpbn.solving.api import solve
from milpbn.solving.checkpoint import CheckpointFile
from milpbn.util import stages


def main() -> None:
    made = parser(
        __doc__,
        data=("segment", "letter", "soybean-large"),
        output=RESULTS / "reliability" / "resume.json",
        time_limit=60.0,
        threads=1,
    )
    options = parse(made)
    kept = read_results(options.output)
    plain = CheckpointFile._write
    saves: list[dict[str, float]] = []

    def measured(self: CheckpointFile, *arguments: object) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        plain(self, *arguments)  # type: ignore[arg-type]
        size = Path(self._path).stat().st_size
        saves.append(
            {"bytes": size, "seconds": time.perf_counter() - wall, "cpu_seconds": time.thread_time() - cpu}
        )

    for name in ["tic-tac-toe", *options.data]:  # the first loads the kernels
        embedded = name not in options.data
        data = training_rows(name, None if embedded else options.data_dir)
        with tempfile.TemporaryDirectory() as folder, patch.object(CheckpointFile, "_write", measured):
            saves.clear()
            files = {"checkpoint": Path(folder, "c.npz"), "certificate": Path(folder, "p.npz")}
            common = {"threads": options.threads, "verbose": False, **files}
            limit = 5.0 if embedded else options.time_limit
            result = solve(data, Score(), time_limit=limit, **common)
            during, last = list(saves[:-1]), saves[-1]
            begun = time.perf_counter()
            # Asked to stop as soon as the tree search goes on.
            again = solve(
                data,
                Score(),
                interrupted=lambda: stages.current() == "branch and bound",
                resume=True,
                **common,
            )
            restored = time.perf_counter() - begun
        if embedded:
            continue
        total = result.seconds.total
        kept[name] = {
            "command": command(options, name),
            "seconds": total,
            "nodes": result.nodes,
            "gap": result.gap.relative_to_bound,
            "checkpoints": len(during) + 1,
            "bytes": last["bytes"],
            "share_of_seconds": sum(save["seconds"] for save in during) / total,
            "share_of_cpu_seconds": sum(save["cpu_seconds"] for save in during) / total,
            "last_save_seconds": last["seconds"],
            "seconds_until_it_goes_on": restored - saves[-1]["seconds"],
            "nodes_after": again.nodes,
        }
        write_results(options.output, kept)
        print(json.dumps(kept[name]), flush=True)


if __name__ == "__main__":
    main()
