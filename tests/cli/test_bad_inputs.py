"""Bad inputs: each ends in one sentence that names the culprit, exit code 2, and no file written."""

import gzip
import json
import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_common import QUICK, refused, toy_rows, write_csv

# Files are named relative to the workshop, where the tests run.
GOOD = ("solve", "toy.csv", *QUICK)


@pytest.fixture(scope="module")
def bench(shop_folder, tmp_path_factory):
    """Return a folder with good files, and with bad ones that each differ from a good one in one thing."""
    folder = tmp_path_factory.mktemp("workshop")
    shutil.copytree(shop_folder, folder, dirs_exist_ok=True)
    (folder / "out").mkdir()
    (folder / "folder.csv").mkdir()
    _write_tables(folder)
    _write_structures(folder)
    _write_documents(folder)
    _write_solutions(folder)
    return folder, snapshot(folder)


@pytest.fixture
def workshop(bench, monkeypatch):
    """Return that folder, as the current one, which no bad input may change."""
    folder, before = bench
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MILPBN_DATA", raising=False)
    yield folder
    assert snapshot(folder) == before


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


#: Command lines, and what their sentences name. A plus sign stands for `GOOD`, and QUICK for `cli_common.QUICK`.
CASES = {
    # Options.
    "solve --no-such-option": "--no-such-option",
    "solves": "solves",
    "predict classifier.json": "DATA",
    "+ toy.csv": "toy.csv",
    "solve --p": "--p",
    "+ --score best": "'best'",
    "+ --p 0.5": "p must",
    "+ --p high": "'--p'",
    "+ --p nan": "'--p'",
    "+ --p 0.9 --gamma 1": "gamma",
    "+ --p cv --gamma 1": "--gamma",
    "+ --score mdl --p cv": "mdl",
    "+ --gamma -1": "gamma",
    "+ --gamma inf": "'--gamma'",
    "+ --score mdl --p 0.9": "mdl",
    "+ --max-parents 0": "max_parents",
    "+ --max-parents two": "'--max-parents'",
    "+ --smoothing-towards prior": "uniform, marginal or class",
    "+ --score bdeu --smoothing-towards class": "smoothing_towards goes with",
    "+ --smoothing 0": "smoothing",
    "+ --parent-sets some": "'--parent-sets'",
    "+ --score bdeu --ess 0": "equivalent sample size",
    "+ --penalty much": "'much'",
    "+ --score ll --hybrid 1": "hybrid",
    "+ --score mdl --leave-one-out": "mdl",
    "+ --penalty bic --leave-one-out": "bic",
    "+ --select leave-one-out=no,yes --class-weights balanced": "multiply all weights",
    "solve tiny.csv QUICK --score aicc": "AICc",
    "+ --time-limit 0": "time limit",
    "+ --time-limit soon": "'--time-limit'",
    "+ --time-limit inf": "'--time-limit'",
    "+ --gap-rel -1": "relative gap",
    "+ --threads 0": "threads",
    "+ --threads 100000000000000000000": "The number of threads must lie between 1 and 4096",
    "+ --threads 0.5": "'--threads'",
    "+ --seed -1": "seed",
    "+ --acyclicity magic": "'magic'",
    "+ --backend nope": "'nope'",
    "+ --backend pulp:nope": "nope",
    "+ --backend pulp:GUROBI_CMD": "GUROBI_CMD",
    "+ --solver-option nope=1": "'nope'",
    "+ --solver-option mip_max_nodes=x": "'mip_max_nodes'",
    "+ --backend cbc --solver-option nope=1": "'nope'",
    "+ --solver-option presolve": "'presolve'",
    "+ --solver-option a=1 --solver-option a=2": "'a'",
    "+ --split test": "'--split'",
    "solve digits QUICK --max-parents 9": "--max-parents",
    # Data.
    "solve none.csv": "'none.csv'",
    "solve nobody": "'nobody'",
    "solve folder.csv": "'folder.csv'",
    "solve empty.csv": "'empty.csv'",
    "solve header.csv": "'header.csv'",
    "solve ragged.csv": "Line 3",
    "solve twice.csv": "'a'",
    "solve unnamed.csv": "Column 2",
    "solve narrow.csv": "'class'",
    "solve one.csv": "'good'",
    "solve measured.csv": "'length'",
    "solve quote.csv": "'quote.csv'",
    "solve holes.csv": "'holes.csv'",
    "solve holes.csv --missing error": "'a'",
    "solve holes.csv --missing ignore": "'--missing'",
    "solve table.xls": "'table.xls'",
    "solve latin.csv": "'latin.csv'",
    "solve null.csv": "'null.csv'",
    "solve cut.csv.gz": "'cut.csv.gz'",
    "solve broken.parquet": "'broken.parquet'",
    "solve nothing.arff": "'nothing.arff'",
    "solve value.arff": "'w'",
    "solve broken.arff": "'broken.arff'",
    "+ --target ''": "'target' names ''",
    "+ --target label": "'label'",
    "+ --continuous c,zebra": "'zebra'",
    "+ --nominal zebra": "'zebra'",
    "+ --continuous c --nominal c": "'c'",
    "+ --continuous a": "'a'",
    "+ --nominal '\"a'": "'--nominal'",
    "+ --weights zebra": "'zebra'",
    "solve weights.csv --target class --weights w": "'w'",
    "+ --weights a": "'a'",
    "+ --class-weights ugly=2": "'ugly'",
    "+ --class-weights good=0": "'good'",
    "+ --class-weights good": "'--class-weights'",
    "+ --class-weights good=1,good=2": "'good'",
    "solve toy --data-dir out": "catalog.json",
    "solve toy --data-dir catalog": "toy.csv.gz",
    "instances zebra": "'zebra'",
    "info any.json": "'any.json'",
    "info cut.json": "'cut.json'",
    # Structures.
    "+ --start none.txt": "'none.txt'",
    "+ --start blank.txt": "'blank.txt'",
    "+ --start unknown.txt": "'zebra'",
    "+ --start cycle.txt": "cycle",
    "+ --start self.txt": "'a'",
    "+ --start noarc.txt": "ine 2",
    "+ --start wide.txt": "start",
    "+ --start arcs.txt --forbid class,a": "start",
    "+ --start any.json": "'any.json'",
    "+ --start cyclic.json": "'cyclic.json'",
    "score unknown.txt toy.csv": "'zebra'",
    "score arcs.txt toy.csv --p cv": "cv",
    # Results.
    "score arcs.txt toy.csv --bound none.json": "'none.json'",
    "score arcs.txt toy.csv --bound cut.json": "'cut.json'",
    "score arcs.txt toy.csv --bound list.json": "'list.json'",
    "score arcs.txt toy.csv --bound any.json": "'any.json'",
    "score arcs.txt toy.csv --bound keyless.json": "'score'",
    "score arcs.txt toy.csv --bound nan.json": "NaN",
    "score arcs.txt toy.csv --bound boundless.json": "'boundless.json'",
    "score arcs.txt toy.csv --bound reason.json": "lucky",
    "plot none.json --output out/p.png": "'none.json'",
    "plot result.json --output out/p.doc": "'out/p.doc'",
    "score arcs.txt other.csv --bound result.json": "'toy'",
    "score arcs.txt toy.csv --bound result.json --p 0.9": "gamma",
    "score arcs.txt toy.csv --bound result.json --score sbm": "name",
    "score arcs.txt toy.csv --bound result.json --max-parents 3": "max_parents",
    # Classifiers.
    "predict none.json toy.csv": "'none.json'",
    "predict toy.csv toy.csv": "'toy.csv'",
    "predict future.json toy.csv": "99",
    "predict format.json toy.csv": "'format.json'",
    "evaluate sums.json toy.csv": "'class'",
    "evaluate tableless.json toy.csv": "'a'",
    "info stateless.json": "'a'",
    "predict classifier.json part.csv": "'a'",
    "evaluate classifier.json strangers.csv": "'strangers'",
    "evaluate classifier.json toy.csv --split test": "--split test",
    "evaluate classifier.json toy.csv --weights zebra": "'zebra'",
    # Solutions.
    "import none.sol --model model.lp": "none.sol",
    "import lonely.sol": "lonely.sol",
    "import none.sol": "no solution file 'none.sol'",
    "import model.sol --output model.json": "--output 'model.json' would",
    "import model.sol --classifier model.lp": "'model.lp' would overwrite",
    "import model.sol --model none.lp": "none.json",
    "import spoilt.sol": "spoilt.json",
    "import garbage.sol": "garbage.sol",
    "import cutoff.sol": "cutoff.sol",
    "import infeasible.sol": "infeasible.sol",
    "import stranger.sol": "stranger.sol",
    "import half.sol": "half.sol",
    "import without.sol": "without.sol",
    "import both.sol": "both.sol",
    "import model.sol --data other.csv": "'other'",
    "import model.sol --bound -1e9": "bound",
    "import model.sol --bound tight": "'--bound'",
    # Constraints.
    "+ --require a,zebra": "'zebra'",
    "+ --require a,a": "'a'",
    "+ --forbid a": "'--forbid'",
    "+ --forbid a,b,c": "'--forbid'",
    "+ --require '\"a,b'": "'--require'",
    "+ --require a,": "'--require'",
    "+ --arc-weight a,b=big": "'--arc-weight'",
    "+ --arc-weight a,b=inf": "'--arc-weight'",
    "+ --arc-weight a,b": "'--arc-weight'",
    "+ --ancestor a,b --ancestor b,a": "is an ancestor of",
    "+ --ancestor a,b --no-ancestor a,b": "is not an ancestor of",
    "+ --ancestor a": "does not have two names",
    "+ --no-ancestor a,a": "names 'a' twice",
    "+ --no-ancestor a,zebra": "'zebra'",
    "+ --independence 'a,b|a'": "'a'",
    "+ --independence 'a,b|c|d'": "'--independence'",
    "+ --independence a": "'--independence'",
    "+ --ancestor a,b --certificate p.npz": "--ancestor",
    "+ --ancestor a,b --screen 3": "--screen",
    "+ --tiers 'a,b;b'": "'b'",
    "+ --max-children a=-1": "'a'",
    "+ --max-children few": "'--max-children'",
    "+ --fix a=b --fix a=c": "'a'",
    "+ --fix a": "'--fix'",
    "+ --constraints none.json": "'none.json'",
    "+ --constraints cut.json": "'cut.json'",
    "+ --constraints key.json": "'requires'",
    "+ --constraints form.json": "'required'",
    "+ --constraints count.json": "'max_children'",
    "+ --constraints tiers.json --tiers 'a;b'": "--tiers",
    "+ --require a,class --no-class-parents": "required arc a -> class",
    # Outputs.
    "+ --output none/r.json": "'none/r.json'",
    "+ --output out": "'out'",
    "+ --output toy.csv": "'toy.csv'",
    "+ --constraints tiers.json --output tiers.json": "--output 'tiers.json' would overwrite",
    "+ --start arcs.txt --output arcs.txt": "'arcs.txt'",
    "+ --output out/x --classifier out/../out/x": "--output",
    "+ --classifier none/c.json": "--classifier",
    "+ --trace none/t": "--trace",
    "+ --log out": "--log",
    "+ --output toy.csv/r.json": "--output",
    "export toy.csv --output out/m.txt": "'out/m.txt'",
    "export toy.csv": "--output",
    "export toy.csv --output out/m.lp --p cv": "cv",
    "export toy.csv --output out/m.lp --time-limit 0": "time limit",
    "export toy.csv --output toy.csv": "'toy.csv'",
    "predict classifier.json toy.csv --output classifier.json": "'classifier.json'",
    "import model.sol --output none/r.json": "'none/r.json'",
    # Explanations, probabilities, comparisons, learners, conversions.
    "explain classifier.json toy.csv --row 0": "rows 1 to 40",
    "explain classifier.json toy.csv --row 41": "rows 1 to 40",
    "explain classifier.json toy.csv --row 1 --label ugly": "'ugly' is not a class",
    "explain classifier.json toy.csv --label good": "add --row K",
    "explain classifier.json toy.csv --row 1 --gamma 1": "leave out --result and --gamma",
    "explain classifier.json toy.csv --row 1 --weights a": "--weights changes no explanation of a single prediction",
    "explain classifier.json toy.csv --seconds 3": "add --result",
    "explain classifier.json toy.csv --gamma -1": "gamma must be a positive number",
    "explain classifier.json toy.csv --shown 0": "--shown must be at least 1",
    "explain classifier.json toy.csv --result none.json": "'none.json'",
    "explain classifier.json toy.csv --output no/such/folder.json": "--output",
    "explain classifier.json --row 1": "--row is about rows of data; add DATA",
    "explain classifier.json --split test": "--split is about rows of data; add DATA",
    "explain classifier.json --weights a": "--weights is about rows of data; add DATA",
    "explain classifier.json --gamma 1": "--gamma is about rows of data; add DATA",
    "query classifier.json --of nope": "There is no variable 'nope' in the classifier; it has 'a', 'b', 'c', 'class'.",
    "query classifier.json --evidence class=ugly": "The class 'class' has no state 'ugly'; it has 'bad', 'good'.",
    "query classifier.json --evidence a=x --evidence a=y": "--evidence is given twice for 'a'",
    "query classifier.json --evidence a=x,a=y": "gives 'a' two values",
    "query classifier.json --evidence a=": "has no value behind a=; leave out what is not known",
    "query classifier.json --evidence a": "has no equals sign; write NAME=VALUE",
    "query classifier.json --of a --mpe": "--of, --mpe and --sample are different questions",
    "query classifier.json --sample 0": "--sample must be at least 1, got 0",
    "query classifier.json --seed 1": "--seed is for --sample",
    "query classifier.json --sample 1 --json": "--sample writes CSV",
    "query classifier.json --sample 1 --seed -1": "random_state is a whole number from 0",
    "query classifier.json --of a --evidence a=x": "already gives 'a' a value",
    "solve '' -q": "'' is empty, and names no file",  # not the default instance
    "solve corral -q --output -": "'-' means neither standard input nor standard output here",  # no file of this name
    "bound '' -q": "is empty",
    "solve toy.csv -q --certificate ''": "is empty",  # not without a proof
    "compare instance:corral --learners nothing": "'nothing'",
    "compare instance:corral --score sm": "--learners",
    "compare instance:corral --p cv": "one gamma",
    "compare instance:corral --test-share 1": "--test-share",
    "compare instance:corral --dask tcp://127.0.0.1:1 --threads 2": "leave out --threads",
    "stability instance:corral --dask tcp://127.0.0.1:1 --n-jobs 2": "leave out one of them",
    "compare instance:corral --output no/such/folder/x.json": "--output",
    "compare instance:corral --set tan": "LEARNER.OPTION=VALUE",
    "compare instance:corral --set tan.nothing=1": "--nothing",
    "compare instance:corral --set tan.smoothing=x": "'x' is not a finite number",
    "compare instance:corral --learners sm,svm --set tan.smoothing=1": "options for 'tan'",
    "compare instance:corral --set sm.p=1": "no learner 'sm'",
    "compare instance:corral --learners tan,svm --p 0.9": "Options of the score",
    "bound instance:corral --score bdeu --smoothing 5": "--smoothing smooths only the tables",
    "compare instance:corral --learners tan,cll --p 0.9": "p belongs to the scores sm and sbm",
    "compare instance:corral --max-parents 0": "max_parents",
    "+ --select p=.6,.9 --p .9": "keep one of them",
    "+ --select p=.6,.9 --p cv": "keep one of them",
    "+ --select p=.6,.9 --score mdl": "p belongs to",
    "compare instance:corral --also nothing": "'nothing'",
    "compare instance:corral --learners tan,svm --set tan.smoothing=-1": "smoothing must be",
    "compare instance:corral --learners sm,parameters": "needs a structure",
    "compare instance:corral --set tan.holdout=0.1": "holdout of tan changes nothing with penalty none",
    "compare corral --set differentiable-tan.checkpoint=no/such/folder/x": "--set differentiable-tan.checkpoint",
    "learn tan toy.csv -q --root nowhere": "nowhere",
    "learn tan toy.csv -q --penalty mdl": "aicc",
    "learn order toy.csv -q --order a,b": "order",
    "learn exact toy.csv -q --score sm": "bdeu",
    "learn naive-bayes toy.csv -q --smoothing -1": "smoothing",
    "learn naive-bayes toy.csv -q --time-limit 0": "time limit",
    "learn naive-bayes toy.csv -q --bound missing.json": "missing.json",
    "learn naive-bayes toy.csv -q --output no/such/folder.json": "--output",
    "learn tan toy.csv --holdout 0.3": "holdout of tan",
    "learn tan-mm toy.csv --smoothing 2 --zero-probability 0.1": "smoothing of tan-mm",
    "learn hill-climbing toy.csv --ess 2": "ess of hill-climbing changes nothing with score mdl",
    "learn stochastic toy.csv --restarts -1": "at least 0",
    "learn parameters toy.csv": "--structure-file",
    "learn parameters toy.csv --structure-file toy.csv --output toy.csv": "would overwrite",
    "convert toy.csv out/n.bif": "toy.csv' is not one of a network",
    "convert classifier.json out/n.txt": "n.txt' is not one of a network; choose one of .json",
    "convert classifier.json out/n.csv": "both files need endings of the same kind",
    "convert classifier.json out/n.bif --target height": "has no variable 'height'",
    "convert no.bif out/n.json": "Cannot read the network file",
    "convert result.json out/n.bif": "result.json' is unusable",
    "convert classifier.json classifier.json": "would overwrite",
}


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def refuse(*arguments: str) -> str:
    """Run a bad command line and return its sentence, checked for form."""
    done = refused(*arguments, *_outputs(arguments))
    assert done.stdout == ""
    assert done.stderr.endswith((".\n", "?\n"))
    return done.stderr.splitlines()[-1]


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


@pytest.mark.parametrize("line", CASES)
def test_bad_input_ends_with_one_sentence(workshop, line):
    words = {"+": GOOD, "QUICK": QUICK}
    arguments = [word for part in shlex.split(line) for word in words.get(part, [part])]
    assert CASES[line] in refuse(*arguments)


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
def test_conflicts_name_a_minimal_subset(workshop, options, named, innocent):
    sentence = refuse(*GOOD, *options)
    assert all(name in sentence for name in named)
    listed = sentence.partition(": ")[2].rpartition(". Drop")[0].partition(": ")[2]
    assert not any(
        innocent in part.split() or innocent in part.partition("arc ")[2] for part in listed.split("; ")
    )


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(workshop, tmp_path):
    tmp_path.chmod(0o500)
    assert str(tmp_path) in refuse(*GOOD, "--output", str(tmp_path / "r.json"))
