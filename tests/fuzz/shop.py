"""Valid files of every kind, written by the package and by the solvers, from which hostile input is made."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

import milpbn
from milpbn.util import stages
from milpbn.util.checkpoints import load_checkpoint

#: Columns of the table: nominal text, numbers with holes, quotes, few integers, weights; the class last.
HEADER = ("colour", "size", "wide, name", "count", "w", "class")
ROWS = [
    (
        ("red", "green", "blue é", "?")[i * 7 % 4],
        "" if i % 11 == 5 else f"{(i * 37 % 100) / 7:.4f}",
        ('say "hi"', "a;b", "plain")[i * 5 % 3],
        str(i * i % 3),
        str(1 + i % 3 / 2),
        "yes" if (i * 7 % 4 < 2) != (i % 9 == 0) else "no",
    )
    for i in range(40)
]
#: The score of the checkpoint of a search; its tree has some dozen nodes.
SEARCHED = milpbn.Score(p=0.7)
QUICK = ("--backend", "highs", "--threads", "1", "--time-limit", "60", "--weights", "w")
#: Learns by gradients, in a moment.
GRADIENTS = ("learn", "differentiable-tan", "--structure", "pseudo-all", "--epochs", "3", "--weights", "w")


def run(*arguments: object) -> tuple[int, str, str]:
    """Run the command line in this process; return exit code, stdout and stderr."""
    from milpbn.cli.app import app

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = app.run([str(a) for a in arguments])
    return code, out.getvalue(), err.getvalue()


def make_shop(folder: Path) -> Path:
    """Fill a folder with valid files of every kind."""
    table = folder / "toy.csv"
    _write_tables(folder)
    native = ("--backend", "native", "--threads", "1", "--time-limit", "60", "--weights", "w")
    result, classifier = folder / "result.json", folder / "classifier.json"
    proof = ("--certificate", folder / "certificate.npz")
    _good("solve", table, *native, "--output", result, "--classifier", classifier, *proof)
    averaged = ("--select", "max-parents=1,2", "--average", "2", "--classifier", folder / "averaged.json")
    _good("solve", table, *native, *averaged)
    _good("export", table, "--weights", "w", "--output", folder / "model.lp")
    _good("solve", table, *native, "--subset", "6", "--output", folder / "subset.json")
    _good("learn", "tan", table, "--weights", "w", "--output", folder / "tan.json")
    compared = ("--learners", "sm,tan", "--weights", "w", "--threads", "1", "--folds", "2")
    _good("compare", table, *compared, "--output", folder / "compare.json")
    _good(
        *GRADIENTS, table, "--checkpoint", folder / "checkpoint.npz", "--classifier", folder / "pseudo.json"
    )
    _write_search(folder)
    for name in ("toy.bif", "toy.xml", "toy.xdsl", "toy.net"):
        _good("convert", classifier, folder / name)
    _good("convert", table, folder / "toy.dat")
    _good("export", table, "--score", "bdeu", "--weights", "w", "--output", folder / "toy.jkl")
    _write_structures(folder)
    _write_catalog(folder)
    _write_solutions(folder)
    return folder


def _write_search(folder: Path) -> None:
    """Write the checkpoint of a search that was stopped in its tree."""
    asked = iter(range(400))

    def stop() -> bool:
        return stages.current() == "branch and bound" and next(asked, None) is None

    table = milpbn.read_table(folder / "toy.csv", weights="w")
    milpbn.solve(
        table, SEARCHED, threads=1, verbose=False, checkpoint=folder / "search.npz", interrupted=stop
    )


def _good(*arguments: object) -> None:
    code, out, err = run(*arguments)
    if code:
        raise RuntimeError(f"milpbn {' '.join(map(str, arguments))} ended with {code}: {out}{err}")


def _write_tables(folder: Path) -> None:
    import csv

    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, delimiter in (("toy.csv", ","), ("semicolon.csv", ";"), ("toy.tsv", "\t")):
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows([HEADER, *ROWS])
    (folder / "toy.csv.gz").write_bytes(gzip.compress((folder / "toy.csv").read_bytes()))
    lines = [
        "% a comment", "@relation 'a relation'", "@attribute colour {red,green,'blue é'}", "@attribute size numeric",
        "@attribute 'wide, name' string", "@attribute count integer", "@attribute class {yes,no}", "", "@data",
        *(f"{a},{b or '?'},'{c}',{d},{e}" for a, b, c, d, _, e in ROWS[:20]), "{0 green, 1 2.5, 4 no}",
    ]  # fmt: skip
    (folder / "toy.arff").write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = list(zip(*ROWS, strict=True))
    arrays = {
        "colour": pa.array(columns[0]).dictionary_encode(),
        "size": pa.array([float(v) if v else None for v in columns[1]]),
        "wide, name": pa.array(columns[2]),
        "count": pa.array([int(v) for v in columns[3]], pa.int8()),
        "w": pa.array([float(v) for v in columns[4]]),
        "class": pa.array([v == "yes" for v in columns[5]]),
    }
    pq.write_table(pa.table(arrays), folder / "toy.parquet")
    strange = {
        "when": pa.array([i * 10**9 for i in range(40)], pa.timestamp("us", tz="UTC")),
        "list": pa.array([[i, i] for i in range(40)]),
        "decimal": pa.array(list(range(40))).cast(pa.decimal128(30, 5)),
        "bytes": pa.array([bytes([i, 255]) for i in range(40)]),
        "struct": pa.array([{"a": i} for i in range(40)]),
        "span": pa.array(list(range(40)), pa.duration("ns")),
        "class": pa.array(["a", "b"] * 20),
    }
    for name in ("when", "decimal", "bytes", "span", "list", "struct"):
        part = {name: strange[name], "class": strange["class"]}
        pq.write_table(pa.table(part), folder / f"{name}.parquet", compression="gzip")


def _write_structures(folder: Path) -> None:
    arcs = '# arcs\nclass -> colour\nclass,size\n"wide, name"\tcount\nclass -> "wide, name"  # why\n'
    (folder / "arcs.txt").write_text(arcs, encoding="utf-8")
    constraints = {
        "required": [["class", "colour"]],
        "forbidden": [["colour", "size"]],
        "tiers": [["class"], ["colour", "size"]],
        "max_children": {"*": 2, "colour": 1},
        "fixed": {"count": ["class"]},
        "allowed": {"size": ["class", "count"]},
        "arc_weights": [["colour", "wide, name", -0.5]],
    }
    (folder / "constraints.json").write_text(json.dumps(constraints))


def _write_catalog(folder: Path) -> None:
    entry = {"continuous": ["size"], "missing": "value", "train_rows": 30}
    catalog = {"toy": entry, "other": {"missing": "drop row", "train_rows": None, "sha256": "0" * 64}}
    (folder / "catalog.json").write_text(json.dumps(catalog))


def _write_solutions(folder: Path) -> None:
    """Write a solution in the form of each solver; CPLEX's and Gurobi's are their start files with a head."""
    import highspy
    import pulp

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(folder / "model.lp"))
    highs.run()
    for style, name in ((0, "highs"), (1, "pretty"), (4, "sparse")):
        highs.writeSolution(str(folder / f"{name}.sol"), style)
    out = folder / "cbc.sol"
    words = [pulp.PULP_CBC_CMD().path, str(folder / "model.lp"), "-solve", "-solution", str(out)]
    subprocess.run(words, capture_output=True, check=True, timeout=60)
    scip = (folder / "model.start.scip.sol").read_text()
    (folder / "scip.sol").write_text("solution status: optimal solution found\n" + scip)
    gurobi = (folder / "model.start.gurobi.mst").read_text()
    (folder / "gurobi.sol").write_text("# Solution for model m\n# Objective value = 12.5\n" + gurobi)
    cplex = (folder / "model.start.cplex.mst").read_text()
    head = '  <header\n    objectiveValue="12.5"\n    solutionStatusString="optimal"\n    bestBound="13"\n'
    mark = json.loads((folder / "model.json").read_text())[
        "fingerprint"
    ]  # no integer, which is all a start holds
    cplex = cplex.replace("  <header\n", head).replace(
        "  <variables>\n", f'  <variables>\n   <variable name="{mark}" index="0" value="1"/>\n'
    )
    (folder / "cplex.sol").write_text(cplex)


def checkpoint_state(folder: Path) -> tuple[str, dict[str, np.ndarray]]:
    """Return the run's name and the arrays of the shop's checkpoint."""
    found = load_checkpoint(folder / "checkpoint.npz", "training", 2**30)
    assert found is not None
    return found.header["run"], found.arrays


if __name__ == "__main__":
    make_shop(Path(sys.argv[1]))
