"""Bad inputs: each ends in one sentence that names the culprit, exit code 2, and no file written."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_common import QUICK, run, toy_rows, write_csv

# Files are named relative to the workshop, where the tests run.
GOOD = ("solve", "toy.csv", *QUICK)


@pytest.fixture(scope="module")
def workshop(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with good files, and with bad ones that each differ from a good one in one thing."""
    folder = tmp_path_factory.mktemp("workshop")
    shutil.copytree(shop, folder, dirs_exist_ok=True)
    (folder / "out").mkdir()
    (folder / "folder.csv").mkdir()
    _write_tables(folder)
    _write_structures(folder)
    _write_documents(folder)
    _write_solutions(folder)
    return folder


def _write_tables(folder: Path) -> None:
    rows = toy_rows()
    texts = {
        "empty.csv": "",
        "header.csv": "a,b,class\n",
        "ragged.csv": "a,b,class\nx,y,good\nx,y\n",
        "twice.csv": "a,a,class\nx,y,good\n",
        "unnamed.csv": "a,,class\nx,y,good\n",
        "narrow.csv": "class\ngood\nbad\n",
        "one.csv": "a,class\nx,good\ny,good\n",
        "measured.csv": "a,length\n" + "".join(f"x,{i / 7}\n" for i in range(30)),
        "holes.csv": "a,b,class\n?,y,good\nx,?,bad\n",
        "quote.csv": 'a,class\n"x,good\n',
        "table.xls": "a,class\nx,good\ny,bad\n",
        "nothing.arff": "@relation r\n@attribute a {x,y}\n@attribute class {g,b}\n@data\n",
        "value.arff": "@relation r\n@attribute a {x,y}\n@attribute class {g,b}\n@data\nx,g\nw,b\n",
        "broken.arff": "@relation r\n@attribute a {x,y\n@data\nx\n",
        "tiny.csv": "a,class\nx,good\ny,bad\nx,bad\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "latin.csv").write_bytes("a,class\nGröße,good\n".encode("latin-1"))
    (folder / "null.csv").write_bytes(b"a,class\nx\0,good\n")
    (folder / "cut.csv.gz").write_bytes(gzip.compress(b"a,class\nx,good\n")[:-6])
    (folder / "broken.parquet").write_bytes(b"PAR1 and nothing more")
    write_csv(folder / "weights.csv", [[*row, "-1"] for row in rows], "a,b,c,class,w")
    write_csv(folder / "part.csv", [row[3:] for row in rows], "class")
    write_csv(folder / "other.csv", toy_rows(seed=4))
    write_csv(folder / "strangers.csv", [[*row[:3], "ugly"] for row in rows])
    (folder / "catalog").mkdir()
    (folder / "catalog" / "catalog.json").write_text(json.dumps({"toy": {"sha256": "0"}}))
    (folder / "catalog" / "toy.csv.gz").write_bytes(gzip.compress(b"a,class\nx,good\ny,bad\n"))


def _write_structures(folder: Path) -> None:
    texts = {
        "blank.txt": "\n",
        "unknown.txt": "class -> zebra\n",
        "cycle.txt": "a -> b\nb -> c\nc -> a\n",
        "self.txt": "a -> a\n",
        "noarc.txt": "class -> a\nclass a b\n",
        "wide.txt": "class -> a\nb -> a\nc -> a\n",
        "arcs.txt": "class -> a\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)


def _write_documents(folder: Path) -> None:
    """Write damaged results, classifiers and constraints."""

    def vary(source: str, target: str, change: Callable[[dict[str, Any]], Any]) -> None:
        document = json.loads((folder / source).read_text())
        change(document)
        (folder / target).write_text(json.dumps(document))

    vary("result.json", "keyless.json", lambda d: d.pop("score"))
    vary("result.json", "boundless.json", lambda d: d.update(bound=None))
    vary("result.json", "nan.json", lambda d: d.update(bound=float("nan")))
    vary("result.json", "reason.json", lambda d: d["status"].update(reason="lucky"))
    vary("result.json", "cyclic.json", lambda d: d["structure"].update(a=["class", "b"], b=["a"]))
    vary("classifier.json", "future.json", lambda d: d.update(version=99))
    vary("classifier.json", "format.json", lambda d: d.update(format="other"))
    vary("classifier.json", "sums.json", lambda d: _set_first(d["cpts"]["class"], "table", 7.0))
    vary("classifier.json", "tableless.json", lambda d: d["cpts"].pop("a"))
    vary("classifier.json", "stateless.json", lambda d: d["variables"][0].update(states=[]))
    texts = {
        "cut.json": '{"format": ',
        "list.json": "[1, 2]",
        "any.json": '{"a": 1}',
        "key.json": '{"requires": [["a", "b"]]}',
        "form.json": '{"required": ["a"]}',
        "count.json": '{"max_children": {"a": "two"}}',
        "tiers.json": '{"tiers": [["a"], ["b"]]}',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)


def _set_first(entry: dict[str, Any], key: str, value: float) -> None:
    cell = entry[key]
    while isinstance(cell[0], list):
        cell = cell[0]
    cell[0] = value


def _write_solutions(folder: Path) -> None:
    """Write solution files, each beside a sidecar with its stem."""
    solution, sidecar = (folder / "model.sol").read_text(), (folder / "model.json").read_text()
    document = json.loads(sidecar)
    chosen = next(c for c in document["columns"] if f"\n{c} 1\n" in solution)
    other = next(c for c in document["columns"] if f"\n{c} 0\n" in solution)
    versions = {
        "half": solution.replace(f"\n{chosen} 1\n", f"\n{chosen} 0.5\n"),
        "without": solution.replace(f"\n{chosen} 1\n", f"\n{chosen} 0\n"),
        "stranger": solution.replace(document["fingerprint"], "id_0123456789abcdef"),
        "garbage": "this is no solution\n",
        "infeasible": "Infeasible - objective value 0\n",
        "cutoff": solution[: len(solution) // 3],
        "spoilt": solution,
    }
    two = {c: v for c, v in document["columns"].items() if v[0] == document["columns"][other][0]}
    both = solution
    for column in list(two)[:2]:
        both = both.replace(f"\n{column} 0\n", f"\n{column} 1\n")
    for stem, text in {**versions, "both": both}.items():
        (folder / f"{stem}.sol").write_text(text)
        (folder / f"{stem}.json").write_text(sidecar if stem != "spoilt" else '{"format": "milpbn-model"}')
    (folder / "lonely.sol").write_text(solution)


OPTIONS = {
    "unknown option": (["solve", "--no-such-option"], "--no-such-option"),
    "unknown verb": (["solves"], "solves"),
    "missing argument": (["predict", "classifier.json"], "DATA"),
    "surplus argument": ([*GOOD, "toy.csv"], "toy.csv"),
    "option without its value": (["solve", "--p"], "--p"),
    "unknown score": ([*GOOD, "--score", "best"], "'best'"),
    "p out of range": ([*GOOD, "--p", "0.5"], "p must"),
    "p is no number": ([*GOOD, "--p", "high"], "'--p'"),
    "p is NaN": ([*GOOD, "--p", "nan"], "'--p'"),
    "p and gamma": ([*GOOD, "--p", "0.9", "--gamma", "1"], "gamma"),
    "p by validation and gamma": ([*GOOD, "--p", "cv", "--gamma", "1"], "--gamma"),
    "p by validation without p": ([*GOOD, "--score", "mdl", "--p", "cv"], "mdl"),
    "negative gamma": ([*GOOD, "--gamma", "-1"], "gamma"),
    "infinite gamma": ([*GOOD, "--gamma", "inf"], "'--gamma'"),
    "p for a generative score": ([*GOOD, "--score", "mdl", "--p", "0.9"], "mdl"),
    "no parents": ([*GOOD, "--max-parents", "0"], "max_parents"),
    "parents in words": ([*GOOD, "--max-parents", "two"], "'--max-parents'"),
    "smoothing towards nothing": ([*GOOD, "--smoothing-towards", "prior"], "uniform, marginal or class"),
    "smoothing of a generative score": (
        [*GOOD, "--score", "bdeu", "--smoothing-towards", "class"],
        "smoothing_towards goes with",
    ),
    "no smoothing": ([*GOOD, "--smoothing", "0"], "smoothing"),
    "some sets": ([*GOOD, "--parent-sets", "some"], "'--parent-sets'"),
    "no sample size": ([*GOOD, "--score", "bdeu", "--ess", "0"], "equivalent sample size"),
    "penalty in words": ([*GOOD, "--penalty", "much"], "'much'"),
    "hybrid of a generative score": ([*GOOD, "--score", "ll", "--hybrid", "1"], "hybrid"),
    "leave-one-out of a penalised score": ([*GOOD, "--score", "mdl", "--leave-one-out"], "mdl"),
    "leave-one-out with a penalty for the same": ([*GOOD, "--penalty", "bic", "--leave-one-out"], "bic"),
    "leave-one-out of less than a sample": (
        [*GOOD, "--select", "leave-one-out=no,yes", "--class-weights", "balanced"],
        "multiply all weights",
    ),
    "AICc of few rows": (["solve", "tiny.csv", *QUICK, "--score", "aicc"], "AICc"),
    "no time": ([*GOOD, "--time-limit", "0"], "time limit"),
    "time in words": ([*GOOD, "--time-limit", "soon"], "'--time-limit'"),
    "endless time": ([*GOOD, "--time-limit", "inf"], "'--time-limit'"),
    "negative gap": ([*GOOD, "--gap-rel", "-1"], "relative gap"),
    "no threads": ([*GOOD, "--threads", "0"], "threads"),
    "half a thread": ([*GOOD, "--threads", "0.5"], "'--threads'"),
    "negative seed": ([*GOOD, "--seed", "-1"], "seed"),
    "unknown acyclicity": ([*GOOD, "--acyclicity", "magic"], "'magic'"),
    "unknown backend": ([*GOOD, "--backend", "nope"], "'nope'"),
    "unknown PuLP solver": ([*GOOD, "--backend", "pulp:nope"], "nope"),
    "solver without licence": ([*GOOD, "--backend", "pulp:GUROBI_CMD"], "GUROBI_CMD"),
    "unknown HiGHS option": ([*GOOD, "--solver-option", "nope=1"], "'nope'"),
    "bad value of a HiGHS option": ([*GOOD, "--solver-option", "mip_max_nodes=x"], "'mip_max_nodes'"),
    "unknown CBC option": ([*GOOD, "--backend", "cbc", "--solver-option", "nope=1"], "'nope'"),
    "option without value": ([*GOOD, "--solver-option", "presolve"], "'presolve'"),
    "option twice": ([*GOOD, "--solver-option", "a=1", "--solver-option", "a=2"], "'a'"),
    "unknown split": ([*GOOD, "--split", "test"], "'--split'"),
    "too many candidates": (["solve", "digits", *QUICK, "--max-parents", "20"], "--max-parents"),
}

DATA = {
    "no such file": (["solve", "none.csv"], "'none.csv'"),
    "no such name": (["solve", "nobody"], "'nobody'"),
    "a folder": (["solve", "folder.csv"], "'folder.csv'"),
    "empty file": (["solve", "empty.csv"], "'empty.csv'"),
    "no rows": (["solve", "header.csv"], "'header.csv'"),
    "ragged row": (["solve", "ragged.csv"], "Line 3"),
    "column twice": (["solve", "twice.csv"], "'a'"),
    "column without a name": (["solve", "unnamed.csv"], "Column 2"),
    "one column": (["solve", "narrow.csv"], "'class'"),
    "one class": (["solve", "one.csv"], "'good'"),
    "continuous class": (["solve", "measured.csv"], "'length'"),
    "open quote": (["solve", "quote.csv"], "'quote.csv'"),
    "every row incomplete": (["solve", "holes.csv"], "'holes.csv'"),
    "missing values refused": (["solve", "holes.csv", "--missing", "error"], "'a'"),
    "unknown policy": (["solve", "holes.csv", "--missing", "ignore"], "'--missing'"),
    "unknown ending": (["solve", "table.xls"], "'table.xls'"),
    "Latin-1": (["solve", "latin.csv"], "'latin.csv'"),
    "null character": (["solve", "null.csv"], "'null.csv'"),
    "truncated gzip": (["solve", "cut.csv.gz"], "'cut.csv.gz'"),
    "broken Parquet": (["solve", "broken.parquet"], "'broken.parquet'"),
    "ARFF without rows": (["solve", "nothing.arff"], "'nothing.arff'"),
    "ARFF with an undeclared value": (["solve", "value.arff"], "'w'"),
    "broken ARFF": (["solve", "broken.arff"], "'broken.arff'"),
    "empty target": ([*GOOD, "--target", ""], "'target' names ''"),
    "unknown target": ([*GOOD, "--target", "label"], "'label'"),
    "unknown continuous column": ([*GOOD, "--continuous", "c,zebra"], "'zebra'"),
    "unknown nominal column": ([*GOOD, "--nominal", "zebra"], "'zebra'"),
    "both kinds": ([*GOOD, "--continuous", "c", "--nominal", "c"], "'c'"),
    "continuous text": ([*GOOD, "--continuous", "a"], "'a'"),
    "open quote in a list": ([*GOOD, "--nominal", '"a'], "'--nominal'"),
    "unknown weights": ([*GOOD, "--weights", "zebra"], "'zebra'"),
    "negative weights": (["solve", "weights.csv", "--target", "class", "--weights", "w"], "'w'"),
    "weights in words": ([*GOOD, "--weights", "a"], "'a'"),
    "weight of no class": ([*GOOD, "--class-weights", "ugly=2"], "'ugly'"),
    "no weight of a class": ([*GOOD, "--class-weights", "good=0"], "'good'"),
    "class weights without weights": ([*GOOD, "--class-weights", "good"], "'--class-weights'"),
    "class weighed twice": ([*GOOD, "--class-weights", "good=1,good=2"], "'good'"),
    "no catalog": (["solve", "toy", "--data-dir", "out"], "catalog.json"),
    "changed catalog file": (["solve", "toy", "--data-dir", "catalog"], "toy.csv.gz"),
    "unknown instance": (["instances", "zebra"], "'zebra'"),
    "info of nothing": (["info", "any.json"], "'any.json'"),
    "info of damaged JSON": (["info", "cut.json"], "'cut.json'"),
}

STRUCTURES = {
    "no start file": ([*GOOD, "--start", "none.txt"], "'none.txt'"),
    "blank start file": ([*GOOD, "--start", "blank.txt"], "'blank.txt'"),
    "start with an unknown variable": ([*GOOD, "--start", "unknown.txt"], "'zebra'"),
    "cyclic start": ([*GOOD, "--start", "cycle.txt"], "cycle"),
    "start with a loop": ([*GOOD, "--start", "self.txt"], "'a'"),
    "line that is no arc": ([*GOOD, "--start", "noarc.txt"], "ine 2"),
    "start with too many parents": ([*GOOD, "--start", "wide.txt"], "start"),
    "start against a constraint": ([*GOOD, "--start", "arcs.txt", "--forbid", "class,a"], "start"),
    "start without a structure": ([*GOOD, "--start", "any.json"], "'any.json'"),
    "cyclic result as a start": ([*GOOD, "--start", "cyclic.json"], "'cyclic.json'"),
    "structure of other variables": (["score", "unknown.txt", "toy.csv"], "'zebra'"),
    "score by validation": (["score", "arcs.txt", "toy.csv", "--p", "cv"], "cv"),
}


def bound(*arguments: str) -> list[str]:
    return ["score", "arcs.txt", "toy.csv", "--bound", *arguments]


RESULTS = {
    "no result": (bound("none.json"), "'none.json'"),
    "result cut off": (bound("cut.json"), "'cut.json'"),
    "result that is a list": (bound("list.json"), "'list.json'"),
    "result that is another file": (bound("any.json"), "'any.json'"),
    "result that lacks a key": (bound("keyless.json"), "'score'"),
    "result with NaN": (bound("nan.json"), "NaN"),
    "result without a bound": (bound("boundless.json"), "'boundless.json'"),
    "result with an unknown reason": (bound("reason.json"), "lucky"),
    "picture of nothing": (["plot", "none.json", "--output", "out/p.png"], "'none.json'"),
    "picture of another kind": (["plot", "result.json", "--output", "out/p.doc"], "'out/p.doc'"),
    "bound of other data": (["score", "arcs.txt", "other.csv", "--bound", "result.json"], "'toy'"),
    "bound of another gamma": (bound("result.json", "--p", "0.9"), "gamma"),
    "bound of another score": (bound("result.json", "--score", "sbm"), "name"),
    "bound of other parents": (bound("result.json", "--max-parents", "3"), "max_parents"),
}

CLASSIFIERS = {
    "no classifier": (["predict", "none.json", "toy.csv"], "'none.json'"),
    "classifier that is a table": (["predict", "toy.csv", "toy.csv"], "'toy.csv'"),
    "classifier of the future": (["predict", "future.json", "toy.csv"], "99"),
    "classifier of another format": (["predict", "format.json", "toy.csv"], "'format.json'"),
    "table that does not sum to one": (["evaluate", "sums.json", "toy.csv"], "'class'"),
    "classifier without a table": (["evaluate", "tableless.json", "toy.csv"], "'a'"),
    "variable without states": (["info", "stateless.json"], "'a'"),
    "data without any feature": (["predict", "classifier.json", "part.csv"], "'a'"),
    "data without known classes": (["evaluate", "classifier.json", "strangers.csv"], "'strangers'"),
    "no split": (["evaluate", "classifier.json", "toy.csv", "--split", "test"], "--split test"),
    "no weights to evaluate with": (
        ["evaluate", "classifier.json", "toy.csv", "--weights", "zebra"],
        "'zebra'",
    ),
}

SOLUTIONS = {
    "no solution": (["import", "none.sol", "--model", "model.lp"], "none.sol"),
    "no sidecar": (["import", "lonely.sol"], "lonely.sol"),
    "no solution, whatever the model": (["import", "none.sol"], "no solution file 'none.sol'"),
    "output is the sidecar": (
        ["import", "model.sol", "--output", "model.json"],
        "--output 'model.json' would",
    ),
    "classifier is the model": (
        ["import", "model.sol", "--classifier", "model.lp"],
        "'model.lp' would overwrite",
    ),
    "no such model": (["import", "model.sol", "--model", "none.lp"], "none.json"),
    "spoilt sidecar": (["import", "spoilt.sol"], "spoilt.json"),
    "garbage": (["import", "garbage.sol"], "garbage.sol"),
    "solution cut off": (["import", "cutoff.sol"], "cutoff.sol"),
    "infeasible": (["import", "infeasible.sol"], "infeasible.sol"),
    "solution of another model": (["import", "stranger.sol"], "stranger.sol"),
    "half a parent set": (["import", "half.sol"], "half.sol"),
    "variable without a parent set": (["import", "without.sol"], "without.sol"),
    "two parent sets": (["import", "both.sol"], "both.sol"),
    "other data": (["import", "model.sol", "--data", "other.csv"], "'other'"),
    "bound below the score": (["import", "model.sol", "--bound", "-1e9"], "bound"),
    "bound in words": (["import", "model.sol", "--bound", "tight"], "'--bound'"),
}

CONSTRAINTS = {
    "unknown variable": ([*GOOD, "--require", "a,zebra"], "'zebra'"),
    "loop": ([*GOOD, "--require", "a,a"], "'a'"),
    "half an arc": ([*GOOD, "--forbid", "a"], "'--forbid'"),
    "arc of three": ([*GOOD, "--forbid", "a,b,c"], "'--forbid'"),
    "open quote in an arc": ([*GOOD, "--require", '"a,b'], "'--require'"),
    "empty name": ([*GOOD, "--require", "a,"], "'--require'"),
    "weight without a number": ([*GOOD, "--arc-weight", "a,b=big"], "'--arc-weight'"),
    "infinite weight": ([*GOOD, "--arc-weight", "a,b=inf"], "'--arc-weight'"),
    "weight without an equals sign": ([*GOOD, "--arc-weight", "a,b"], "'--arc-weight'"),
    "variable in two tiers": ([*GOOD, "--tiers", "a,b;b"], "'b'"),
    "negative child limit": ([*GOOD, "--max-children", "a=-1"], "'a'"),
    "child limit in words": ([*GOOD, "--max-children", "few"], "'--max-children'"),
    "fixed twice": ([*GOOD, "--fix", "a=b", "--fix", "a=c"], "'a'"),
    "fixed without parents": ([*GOOD, "--fix", "a"], "'--fix'"),
    "no constraint file": ([*GOOD, "--constraints", "none.json"], "'none.json'"),
    "constraint file cut off": ([*GOOD, "--constraints", "cut.json"], "'cut.json'"),
    "unknown constraint": ([*GOOD, "--constraints", "key.json"], "'requires'"),
    "constraint of another form": ([*GOOD, "--constraints", "form.json"], "'required'"),
    "count of another form": ([*GOOD, "--constraints", "count.json"], "'max_children'"),
    "tiers twice": ([*GOOD, "--constraints", "tiers.json", "--tiers", "a;b"], "--tiers"),
    "class arc without class parents": (
        [*GOOD, "--require", "a,class", "--no-class-parents"],
        "required arc a -> class",
    ),
}

OUTPUTS = {
    "no folder": ([*GOOD, "--output", "none/r.json"], "'none/r.json'"),
    "output is a folder": ([*GOOD, "--output", "out"], "'out'"),
    "output is the data": ([*GOOD, "--output", "toy.csv"], "'toy.csv'"),
    "output is the file of constraints": (
        [*GOOD, "--constraints", "tiers.json", "--output", "tiers.json"],
        "--output 'tiers.json' would overwrite",
    ),
    "output is the start": ([*GOOD, "--start", "arcs.txt", "--output", "arcs.txt"], "'arcs.txt'"),
    "two outputs in one": ([*GOOD, "--output", "out/x", "--classifier", "out/../out/x"], "--output"),
    "no folder for the classifier": ([*GOOD, "--classifier", "none/c.json"], "--classifier"),
    "no folder for the trace": ([*GOOD, "--trace", "none/t"], "--trace"),
    "log is a folder": ([*GOOD, "--log", "out"], "--log"),
    "path through a file": ([*GOOD, "--output", "toy.csv/r.json"], "--output"),
    "export of another format": (["export", "toy.csv", "--output", "out/m.txt"], "'out/m.txt'"),
    "export without a name": (["export", "toy.csv"], "--output"),
    "export by validation": (["export", "toy.csv", "--output", "out/m.lp", "--p", "cv"], "cv"),
    "export without time": (["export", "toy.csv", "--output", "out/m.lp", "--time-limit", "0"], "time limit"),
    "export onto the data": (["export", "toy.csv", "--output", "toy.csv"], "'toy.csv'"),
    "prediction onto the classifier": (
        ["predict", "classifier.json", "toy.csv", "--output", "classifier.json"],
        "'classifier.json'",
    ),
    "import without a folder": (["import", "model.sol", "--output", "none/r.json"], "'none/r.json'"),
}

CASES = {
    **OPTIONS,
    **DATA,
    **STRUCTURES,
    **RESULTS,
    **CLASSIFIERS,
    **SOLUTIONS,
    **CONSTRAINTS,
    **OUTPUTS,
}


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def refuse(workshop: Path, *arguments: str) -> str:
    """Run a bad command line and return its sentence, checked for form."""
    before = snapshot(workshop)
    arguments = (*arguments, *_outputs(arguments))
    done = run(*arguments)
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert len(errors) == 1, done.stderr
    assert done.stderr.splitlines()[-1] == errors[0]
    assert errors[0].endswith((".", "?")), errors[0]
    assert "Traceback" not in done.stderr
    assert snapshot(workshop) == before
    return errors[0]


def _outputs(arguments: tuple[str, ...]) -> list[str]:
    """Return every output that the verb can write and the case does not name, so that one would be seen."""
    options = {
        "solve": ("--output", "--classifier", "--trace", "--log"),
        "import": ("--output", "--classifier"),
        "predict": ("--output",),
    }.get(arguments[0], ())
    if arguments[-1].startswith("--"):
        return []
    return [word for o in options if o not in arguments for word in (o, f"out/{o.strip('-')}")]


def test_there_are_enough_bad_inputs() -> None:
    assert len(CASES) >= 60
    assert len(CASES) == sum(
        map(len, (OPTIONS, DATA, STRUCTURES, RESULTS, CLASSIFIERS, SOLUTIONS, CONSTRAINTS, OUTPUTS))
    )


@pytest.mark.parametrize("case", list(CASES))
def test_bad_input_ends_with_one_sentence(workshop: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    monkeypatch.chdir(workshop)
    monkeypatch.delenv("MILPBN_DATA", raising=False)
    arguments, culprit = CASES[case]
    assert culprit in refuse(workshop, *arguments)


@pytest.mark.parametrize(
    ("options", "named", "innocent"),
    [
        (
            ["--require", "a,b", "--forbid", "a,b", "--forbid", "c,b"],
            ["required arc a -> b", "forbidden arc a -> b"],
            "c",
        ),
        (
            ["--require", "a,b", "--require", "b,c", "--require", "c,a", "--require", "class,a"],
            ["required arc a -> b", "required arc b -> c", "required arc c -> a"],
            "class",
        ),
        (["--tiers", "a;b;c", "--require", "b,a"], ["required arc b -> a", "a"], "c"),
        (
            ["--max-children", "c=1", "--require", "c,a", "--require", "c,b", "--forbid", "b,a"],
            ["at most 1 children of c", "required arc c -> a", "required arc c -> b"],
            "b -> a",
        ),
        (
            ["--fix", "a=b", "--allow", "a=c", "--forbid", "c,b"],
            ["fixed parent set of a", "allowed parents of a"],
            "c -> b",
        ),
    ],
)
def test_conflicts_name_a_minimal_subset(
    workshop: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], named: list[str], innocent: str
) -> None:
    monkeypatch.chdir(workshop)
    sentence = refuse(workshop, *GOOD, *options)
    assert all(name in sentence for name in named)
    listed = sentence.partition(": ")[2].rpartition(". Drop")[0].partition(": ")[2]
    assert not any(
        innocent in part.split() or innocent in part.partition("arc ")[2] for part in listed.split("; ")
    )


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(
    workshop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workshop)
    tmp_path.chmod(0o500)
    assert str(tmp_path) in refuse(workshop, *GOOD, "--output", str(tmp_path / "r.json"))
