"""The size of a certificate, and the time of its verification beside the time of its search.

    python benchmarks/certificate.py segment --data-dir DIR [--p 0.9] [--time-limit 600]

Score SM, max_parents 2, no class parents, training rows; kernels are compiled before. For usps and mnist, DIR is the
folder of the images. Writes results/certificates.json.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

from common import RESULTS, command, parse, parser, read_results, training_rows, write_results
from images import FOLDS, load

from milpbn.certificate.verify.check import verify
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import solve


def main() -> None:
    made = parser(
        __doc__, data=("segment",), output=RESULTS / "certificates.json", time_limit=600.0, threads=1
    )
    made.add_argument("--p", type=float, default=0.9)
    options = parse(made)
    score = Score(name="sm", p=options.p, class_parents=False)
    kept = read_results(options.output)
    for name in ["tic-tac-toe", *options.data]:  # the first loads the kernels
        embedded = name not in options.data
        if name in ("usps", *(image for image in FOLDS if image.startswith("mnist"))):
            data, _ = load(options.data_dir, name)
        else:
            data = training_rows(name, None if embedded else options.data_dir)
        with tempfile.TemporaryDirectory() as folder:
            certificate = Path(folder, "certificate.npz")
            result = solve(
                data,
                score,
                time_limit=options.time_limit,
                threads=options.threads,
                verbose=False,
                certificate=certificate,
                backend="native",
            )
            if embedded:
                verify(result, certificate, data)  # the verifier has kernels of its own
            begun = time.perf_counter()
            verified = verify(result, certificate, data)
            seconds, size = time.perf_counter() - begun, certificate.stat().st_size
        if embedded:
            continue
        kept[f"{name} p {options.p:g}"] = {
            "command": command(options, name),
            "reason": result.reason,
            "gap": verified.gap.relative_to_bound,
            "nodes": verified.nodes,
            "leaves": verified.leaves,
            "deletions": verified.deletions,
            "bytes": size,
            "solve_seconds": result.seconds.total,
            "verify_seconds": seconds,
        }
        write_results(options.output, kept)
        print(json.dumps(kept[f"{name} p {options.p:g}"]), flush=True)


if __name__ == "__main__":
    main()
