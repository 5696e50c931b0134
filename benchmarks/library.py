"""The library of networks that ships with milpbn: the best known structure and bound of many problems.

    python benchmarks/library.py --data-dir DIR --time-limit 20     searches that are missing or had less time
    python benchmarks/library.py --report                           the page alone

Each of the catalog's sets (its training rows) and of the embedded instances is searched under SM, and with three
classes or more under SBM, for each p of P12 and with at most two parents. A search that had less time goes on from its
best structure. Every certificate is verified before its bound is kept; the file is not kept, only its SHA-256.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

from common import RESULTS, errors_as_sentences, parser, write_page
from gap_over_time import machine

from milpbn import __version__, instances
from milpbn.certificate.verify.check import verify
from milpbn.data import Dataset, read_table
from milpbn.data.catalog import catalog_names
from milpbn.network.structure import Structure
from milpbn.problem.scores.spec import P_GRID, Score
from milpbn.solving.api import solve
from milpbn.solving.library import ARCHIVE, KnownNetwork, load_library, open_problems, overview
from milpbn.solving.outlook import forecast
from milpbn.trials.store import Store

#: The values of p, those that papers use most first.
ORDER = sorted(P_GRID, key=lambda p: (p not in (0.99, 0.9), -p))
MAX_PARENTS = 2


def searched(
    data: Dataset, source: str, score: Score, seconds: float, threads: int, old: KnownNetwork | None
) -> dict[str, Any]:
    """Search, verify, and return the cell."""
    start = None if old is None else Structure.from_mapping(data.names, old.structure.to_mapping())
    began, found = time.process_time(), []
    with tempfile.TemporaryDirectory() as folder:
        proof = Path(folder) / "proof.npz"
        result = solve(
            data,
            score,
            threads=threads,
            start=start,
            certificate=proof,
            verbose=False,
            on_change=found.append,
            interrupted=lambda: bool(found) and time.process_time() - began > seconds,
        )
        proved = verify(result, proof, data)
        digest = hashlib.sha256(proof.read_bytes()).hexdigest()
    values = result.to_dict()
    ahead = None if result.optimal else forecast(result.trace, result.seconds.total)
    return {
        "source": source,
        "milpbn": __version__,
        "machine": machine(),
        "threads": threads,
        "cpu_seconds": seconds,
        "seconds": round(result.seconds.total, 3),
        "certificate": digest,
        "leaves": proved.leaves,
        "outlook": None if ahead is None else {key: float(f"{x:.4g}") for key, x in ahead._asdict().items()},
        **{
            key: values[key]
            for key in ("data", "score", "structure", "class", "objective", "bound", "status")
        },
        "tolerance": result.tolerance,
        "standard_error": result.standard_error,
    }


def better(cell: dict[str, Any], old: dict[str, Any] | None) -> dict[str, Any]:
    """Return the cell with the smaller gap, with the CPU seconds of the new one."""
    if old is None or cell["bound"] - cell["objective"] <= old["bound"] - old["objective"]:
        return cell
    return {**old, "cpu_seconds": cell["cpu_seconds"]}


def fill(store: Store, options: argparse.Namespace) -> None:
    """Search whatever is missing or had less time and is not proved, the fastest first."""
    names = options.data or [
        *(f"instance:{name}" for name in instances.names()),
        *catalog_names(options.data_dir),
    ]
    for source in sorted(names, key=lambda name: cost(name, options.data_dir)):
        data = read_table(source, data_dir=options.data_dir).dataset("train")
        for p, name in product(ORDER, ("sm", "sbm")[: 1 if data.n_classes == 2 else 2]):
            key = f"{source}-{name}-p{p:g}-k{MAX_PARENTS}"
            old = store.get(key)
            if old is not None and (
                old["status"]["reason"] == "optimal" or old["cpu_seconds"] >= options.time_limit
            ):
                continue
            earlier = None if old is None else KnownNetwork.of(old)
            score = Score(name=name, p=p, max_parents=MAX_PARENTS)
            found = searched(data, source, score, options.time_limit, options.threads, earlier)
            store.add({key: better(found, old)})
            gap = 100 * (found["bound"] - found["objective"]) / found["bound"]
            print(f"{time.strftime('%H:%M:%S')}  {key}  {gap:.3f} %  {found['seconds']} s", flush=True)


def cost(name: str, data_dir: Path) -> int:
    """Return a number that grows with the data."""
    if name.startswith("instance:"):
        return instances.load(name.removeprefix("instance:")).shape[1] * 1000
    return (data_dir / f"{name}.csv.gz").stat().st_size


def pack(store: Store) -> None:
    """Write the archive anew as one member, which takes a fraction of the space."""
    packed = store.path.with_name(f"packed-{store.path.name}")
    packed.unlink(missing_ok=True)
    Store(packed).add(dict(sorted(store.items())))
    packed.replace(store.path)


def markdown(rows: list[list[str]]) -> str:
    """Return a table as Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def page(archive: Path) -> list[str]:
    """Return the sections of the page."""
    networks = load_library(archive)
    cells = Store(archive).values()
    machines = sorted({cell["machine"]["processor"] for cell in cells})
    proved = sum(network.proved for network in networks)
    return [
        "# Library of proved networks",
        f"{len(networks)} problems: the training rows of each set of the catalog and of each embedded instance "
        "(`instance:`), SM, and with three classes or more SBM, P12's values of p, at most two parents. "
        f"{proved} are proved. Every bound was verified with its certificate, of which the archive has the SHA-256. "
        "Searches had one thread and so many CPU seconds as the last table says, beside much other work on "
        f"{' and '.join(machines)}.",
        "`milpbn library list` prints these tables, and `milpbn library check result.json DATA` says what a result "
        "adds. The archive, `instances/library.jsonl.gz`, is installed with the package. "
        "`python benchmarks/library.py --data-dir DIR --time-limit SECONDS` extends it and writes this page.",
        "Gaps are relative to the bound (empty: not yet searched), or in nats where the score is 0 (iris at p = .501: "
        "the best network has no arcs, and what is left is an allowance for rounding).",
        markdown(overview(networks)),
        "## Open",
        "The outlook is that of the closing block ([numbers](../../docs/numbers.md)); it is empty where the bound "
        "falls too unevenly, or would take too long, to say so.",
        "0 CPU seconds stand for 20 s by the clock, of which other work took an unknown share.",
        markdown(open_problems(networks)),
    ]


def main() -> None:
    """Search, and write the page."""
    made = parser(__doc__, time_limit=20.0, threads=1, output=ARCHIVE)
    made.add_argument(
        "--report", action="store_true", help="search nothing; pack the archive and write the page"
    )
    options = made.parse_args()
    store = Store(options.output)
    with errors_as_sentences():
        if not options.report:
            fill(store, options)
        pack(store)
        write_page(RESULTS / "library", page(options.output))


if __name__ == "__main__":
    main()
