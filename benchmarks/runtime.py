"""How long a search takes, by rows and features: seconds to a gap of 5, 1 and .1 %, and to the proof.

    python benchmarks/runtime.py [--rows 300 3000] [--features 10 40] [--time-limit 60] [--threads 1]

Tables of random forest-augmented networks with three states and two classes (`generated.forest`), SM at p = .9 with at
most two parents; kernels are compiled before. A cell is computed once; a run that is killed goes on where it stopped.
`--report` prints the table of docs/runtime.md.
"""

from __future__ import annotations

from typing import Any

from common import RESULTS, alone, command, parser, read_results, write_results
from generated import forest

GAPS = (0.05, 0.01, 0.001)
ROWS, FEATURES = (300, 1000, 3000, 10000, 30000), (10, 20, 40, 80)


def search(rows: int, features: int, limit: float, threads: int) -> dict[str, Any]:
    """Search a table; return seconds from the start to each gap and to the proof, or None, and the last gap."""
    import milpbn
    from milpbn.solving.warm_up import compile_all

    compile_all()
    frame = forest(rows, features, states=3, classes=2, seed=rows + features, concentration=2.0).astype(str)
    table = milpbn.read_table(frame)
    result = milpbn.solve(table, milpbn.Score(p=0.9), time_limit=limit, threads=threads, verbose=False)
    reached: dict[str, float | None] = {}
    for gap in GAPS:
        times = [t for t, z, b in result.trace if z is not None and b is not None and b - z <= gap * abs(b)]
        reached[f"{gap:g}"] = round(times[0], 2) if times else None
    return {
        "reached": reached,
        "proof": round(result.seconds.total, 2) if result.optimal else None,
        "gap": result.gap.relative_to_bound,
        "nodes": result.nodes,
    }


def report(results: dict[str, Any]) -> str:
    """Return a table: seconds to 1 % and to the proof, or the gap at the limit."""
    cells = results["cells"]
    features = sorted({int(key.split(" x ")[1]) for key in cells})
    lines = [
        "| rows | " + " | ".join(f"{n} features" for n in features) + " |",
        "|---" * (len(features) + 1) + "|",
    ]
    for rows in sorted({int(key.split(" x ")[0]) for key in cells}):
        words = []
        for n in features:
            cell = cells.get(f"{rows} x {n}")
            if cell is None:
                words.append("-")
                continue
            early, proof = cell["reached"]["0.01"], cell["proof"]
            end = f"{100 * cell['gap']:.2g} % left" if proof is None else f"proof {proof:.1f} s"
            words.append(("-" if early is None else f"{early:.1f} s") + f"; {end}")
        lines.append(f"| {rows:,} | " + " | ".join(words) + " |")
    return "\n".join(lines)


def main() -> None:
    """Compute what is missing, and write it."""
    made = parser(__doc__, output=RESULTS / "runtime.json", time_limit=60.0, threads=1)
    made.add_argument("--rows", type=int, nargs="+", default=ROWS)
    made.add_argument("--features", type=int, nargs="+", default=FEATURES)
    made.add_argument("--report", action="store_true", help="print the table, and compute nothing")
    options = made.parse_args()
    results = read_results(options.output)
    if options.report:
        print(report(results))
        return
    cells = results.setdefault("cells", {})
    for rows in options.rows:
        for features in options.features:
            key = f"{rows} x {features}"
            if key in cells:
                continue
            cells[key] = alone(search, rows, features, options.time_limit, options.threads)
            results |= {
                "command": command(options),
                "time_limit": options.time_limit,
                "threads": options.threads,
            }
            write_results(options.output, results)
            print(key, cells[key], flush=True)


if __name__ == "__main__":
    main()
