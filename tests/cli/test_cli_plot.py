"""The verbs ``plot`` and ``report``."""

import html
import json
import random
import re
import shlex
from dataclasses import replace

import pytest
from cli_common import load, refused, succeed

from milpbn import Score, Structure, read_table
from milpbn.claims.result import BackendInfo, DataSummary, Result
from milpbn.network import Classifier, PseudoClassifier, save_classifier
from milpbn.network.additive.record import AdditiveFit, AdditiveTrial
from milpbn.network.parameters.record import ParameterFit
from milpbn.problem.rescore import rescore


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A table, a result and a classifier of it, and a comparison."""
    folder = tmp_path_factory.mktemp("plot")
    rows = [f"{i % 2},{(i // 2) % 3},{'yes' if (i + i // 5) % 2 else 'no'}" for i in range(40)]
    (folder / "t.csv").write_text("\n".join(["年齢,b,class", *rows]) + "\n", encoding="utf-8")
    data = read_table(folder / "t.csv").dataset("train")
    structure, score = Structure(data.names, ((2,), (0, 2), ())), Score()
    objective = rescore(data, structure, score)
    result = Result(
        data=DataSummary(data.name, data.sha256, 40, data.merged.n_samples, 2, 2),
        score=score,
        reason="feasible",
        limit="time",
        structure=structure,
        objective=objective,
        bound=objective + 1,
        backend=BackendInfo("native", "milpbn", 1),
        trace=((0.0, objective, objective + 1),),
    )
    result.save(folder / "r.json")
    penalty = dict.fromkeys(("main_ridge", "main_smoothness", "pair_ridge", "pair_smoothness"), 3.0)
    trials = tuple(
        AdditiveTrial(cuts="mdl", structure=s, kappa=0.5, log_loss=0.3, difference=d, standard_error=0.01, **penalty)
        for s, d in (("forest", 0.04), ("none", 0.0), ("exact", 0.002))
    )  # fmt: skip
    fit = AdditiveFit(trials=trials, chosen=1, rows=40, folds=5, repeats=1, complete=False)
    parameters = ParameterFit(method="additive", fitted=True, kappa=0.5, additive=fit)
    replace(result, parameters=parameters).save(folder / "chosen.json")
    classifier = Classifier.fit(data, structure)
    save_classifier(classifier, folder / "c.json")
    save_classifier(PseudoClassifier(classifier.variables, classifier.cpts), folder / "pseudo.json")
    (folder / "compare.json").write_text(json.dumps({"rows": [{"name": "sm", "test": 0.5}]}))
    (folder / "arcs.txt").write_text("class -> a\nclass -> b\na -> b\n")
    (folder / "empty.txt").write_text("# no arcs\n")
    return folder


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("r.json", ["年齢", "seconds"]),
        ("result r.json t.csv", ["年齢", "seconds", "the score loses"]),
        ("network r.json", ["年齢"]),
        ("network r.json t.csv", ["the score loses"]),
        ("network c.json", ["年齢"]),
        ("network arcs.txt", ["a; parents: class"]),
        ("network arcs.txt --target b", ["network of b", "class; parents: none"]),
        ("network c.json --target class", ["年齢"]),
        ("trace r.json", ["seconds"]),
        ("choice chosen.json", ["+0.0400 ± 0.0100; 3 3 3 3", "the exact structure", "before all candidates"]),
        ("margins c.json t.csv", ["log-margin"]),
        ("cpt c.json --variable b", ["P(b | 年齢, class)"]),
        ("explain c.json t.csv", ["What each variable contributes"]),
        ("explain c.json t.csv --row 3", ["Row 3", "sum"]),
        ("compare compare.json", ["accuracy"]),
        ("roc c.json t.csv", ["ROC-AUC"]),
        ("precision-recall c.json t.csv --positive yes", ["yes, average precision"]),
        ("gain c.json t.csv", ["sensitivity"]),
        ("calibration c.json t.csv", ["mean predicted probability"]),
    ],
)
def test_every_kind_is_drawn(files, monkeypatch, words, found):
    monkeypatch.chdir(files)
    succeed("plot", *words.split(), "--output", "out.svg")
    text = (files / "out.svg").read_text(encoding="utf-8")
    assert text.startswith("<svg")
    for each in found:
        assert each in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("what r.json t.csv", "KIND is one of"),
        (
            "network arcs.txt --target d",
            "--target 'd' is not a node of 'arcs.txt', whose nodes are 'a', 'b', 'class'",
        ),
        ("network c.json --target b", "the class of 'c.json' is 'class'"),
        ("network r.json --target b", "the class of 'r.json' is 'class'"),
        ("network empty.txt", "has no arcs"),
        ("network pseudo.json", "a pseudo-TAN, whose graph may have cycles"),
        ("margins c.json", "needs data"),
        ("trace r.json t.csv", "takes no data"),
        ("choice r.json", "has no choice of the recipe accurate"),
        ("cpt c.json", "--variable NAME"),
        ("cpt c.json --variable x", "is not one of"),
        ("trace r.json --variable x", "leave it out"),
        ("margins c.json t.csv --row 1", "leave it out"),
        ("explain c.json t.csv --row 41", "rows 1 to 40"),
        ("network c.json t.csv", "not a result"),
        ("roc c.json t.csv --positive zebra", "--positive (positive) is 'zebra', and the classes are"),
        ("margins c.json t.csv --positive x", "--positive is for the kinds roc, precision-recall"),
        ("network r.json other.csv", "other data"),
        ("compare r.json", "not the output of milpbn compare"),
        ("r.json --output r.json", "overwrite"),
        ("missing.json", "missing.json"),
    ],
)
def test_what_cannot_be_drawn_is_told(files, monkeypatch, words, told):
    monkeypatch.chdir(files)
    lines = (files / "t.csv").read_text(encoding="utf-8").splitlines()
    (files / "other.csv").write_text("\n".join(lines[:-3]) + "\n", encoding="utf-8")
    out = [] if "--output" in words else ["--output", "refused.svg"]
    assert told in refused("plot", *words.split(), *out).stderr
    assert not (files / "refused.svg").exists()


def test_a_report_is_written(files, monkeypatch):
    monkeypatch.chdir(files)
    for more in ([], ["t.csv"], ["t.csv", "--classifier", "c.json"]):
        succeed("report", "r.json", *more, "--output", "report.html")
        text = (files / "report.html").read_text(encoding="utf-8")
        assert text.startswith("<!DOCTYPE html>")
        assert ("95 % interval" in text) == bool(more)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("r.json --output report.pdf", ".html"),
        ("r.json other.csv --output no.html", "other data"),
        ("c.json --output no.html", "The result 'c.json'"),
    ],
)
def test_what_cannot_be_reported_is_told(files, monkeypatch, words, told):
    monkeypatch.chdir(files)
    (files / "other.csv").write_text("a,class\n1,x\n2,y\n", encoding="utf-8")
    assert told in refused("report", *words.split()).stderr
    assert not (files / "no.html").exists()


def test_the_commands_of_a_report_repeat_the_run(tmp_path, monkeypatch):
    """With options of table, score and constraints that all matter, and names that need quotes."""
    draw = random.Random(5)
    rows = []
    for number in range(80):
        label = draw.choice("pq")
        good = draw.random() < 0.8
        cells = [
            label,
            f"id{number}",
            "?" if draw.random() < 0.1 else str(round(draw.gauss((label == "p") * 1.5, 1), 3)),
            ("x" if good else "y") if label == "p" else draw.choice("xyz"),
            draw.choice("uv"),
            draw.choice("12"),
        ]
        rows.append(",".join(cells))
    folder = tmp_path / "my data"
    folder.mkdir()
    header = 'kind,id,size,"a,b",c,w'
    (folder / "t.csv").write_text("\n".join([header, *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    table = ["--target", "kind", "--drop", "id", "--discretise", "quantile:3", "--missing", "state"]
    table += ["--weights", "w", "--class-weights", "p=2,q=1", "--continuous", "size"]
    score = ["--score", "sbm", "--p", ".8", "--no-class-parents", "--smoothing", "0.5", "--penalty", "0.1"]
    rules = ["--forbid", '"a,b",c', "--max-children", "c=0"]
    files = ["--output", "first.json", "--classifier", "c.json"]
    succeed("solve", "my data/t.csv", *table, *score, *rules, "--threads", "1", "-q", *files)
    succeed("report", "first.json", "--output", "plain.html")
    succeed("report", "first.json", "my data/t.csv", *table, "--output", "with.html")
    first = load(tmp_path / "first.json")
    for page in ("plain.html", "with.html"):
        text = html.unescape((tmp_path / page).read_text(encoding="utf-8"))
        [commands] = re.findall("<pre>(milpbn solve [^<]*)</pre>", text)
        solve, verify = commands.splitlines()
        succeed(*shlex.split(solve)[1:])
        again = load(tmp_path / "result.json")
        for key in ("data", "score", "constraints", "objective", "structure"):
            assert again[key] == first[key], key
        assert first["status"]["reason"] == "optimal"
        succeed(*shlex.split(verify)[1:])


def test_a_report_of_a_selection_repeats_what_was_chosen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    grid = [
        "--select",
        "p=.6,.9 discretise=quantile:2,quantile:3",
        "--threads",
        "1",
        "-q",
        "--max-parents",
        "1",
    ]
    succeed("solve", "iris", *grid, "--output", "first.json")
    first = load(tmp_path / "first.json")
    assert first["request"]["options"]["discretise"] == first["selection"]["options"]["discretise"]
    succeed("report", "first.json", "--output", "report.html")
    text = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    solve, *_ = re.findall(r"milpbn solve [^<\n]*", text)  # the checklist has it, too
    succeed(*shlex.split(solve)[1:])
    again = load(tmp_path / "result.json")
    for key in ("data", "score"):
        assert again[key] == first[key], key
    assert again["objective"] == pytest.approx(first["objective"])  # of another optimum, if there are several
