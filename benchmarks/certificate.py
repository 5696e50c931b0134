"""The size of a certificate, and the time that its verification takes, against the search that it proves.

    python benchmarks/certificate.py segment --data-dir DIR [--p 0.9] [--time-limit 600]

SM, max_parents 2, no class parents, training rows, kernels compiled before. For usps and mnist DIR has the images.
Writes results/certificates.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from images import load

from milpbn.atomic import atomic_write_text
from milpbn.bounds.verify import verify
from milpbn.data import read_table
from milpbn.scores.spec import Score
from milpbn.solving import solve

RESULTS = Path(__file__).resolve().parent.parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--data-dir", required=True, help="catalog folder")
    parser.add_argument("--p", type=float, default=0.9)
    parser.add_argument("--time-limit", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RESULTS / "certificates.json")
    options = parser.parse_args()
    score = Score(name="sm", p=options.p, class_parents=False)
    kept = json.loads(options.output.read_text()) if options.output.exists() else {}
    for name in ["tic-tac-toe", *options.data]:  # the first loads the kernels
        embedded = name not in options.data
        if name in ("usps", "mnist"):
            data, _ = load(Path(options.data_dir), name)
        else:
            data = read_table(name, data_dir=None if embedded else options.data_dir).dataset("train")
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
                verify(result, certificate, data)  # which has kernels of its own
            begun = time.perf_counter()
            verified = verify(result, certificate, data)
            seconds, size = time.perf_counter() - begun, certificate.stat().st_size
        if embedded:
            continue
        kept[f"{name} p {options.p:g}"] = {
            "command": f"python benchmarks/certificate.py {name} --data-dir DIR --p {options.p:g} "
            f"--time-limit {options.time_limit:g} --threads {options.threads}",
            "reason": result.reason,
            "gap": verified.gap.relative_to_bound,
            "nodes": verified.nodes,
            "leaves": verified.leaves,
            "deletions": verified.deletions,
            "bytes": size,
            "solve_seconds": result.seconds.total,
            "verify_seconds": seconds,
        }
        atomic_write_text(options.output, json.dumps(kept, indent=1) + "\n")
        print(json.dumps(kept[f"{name} p {options.p:g}"]), flush=True)


if __name__ == "__main__":
    main()
