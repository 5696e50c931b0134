"""``--average`` on the command line: what is written, printed and refused."""

import csv
import io
import json

import pytest
from cli_common import load, refused, run, succeed, write_csv

THREE = ("--select", "p=.6,.9 max-parents=1 discretise=mdl,quantile:3", "--average", "3")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Return a folder with a table, and the result, certificate and average of a run."""
    import numpy as np

    folder = tmp_path_factory.mktemp("average")
    rng = np.random.default_rng(4)
    classes = rng.integers(0, 2, 60)
    rows = [
        [f"{c + rng.normal():.3f}", f"{rng.normal():.3f}", "xy"[int(rng.random() < 0.3) ^ c], "ab"[c]]
        for c in classes
    ]
    write_csv(folder / "t.csv", rows, "one,two,three,class")
    files = ("--output", folder / "r.json", "--classifier", folder / "a.json")
    done = succeed(
        "solve", folder / "t.csv", *THREE, *files, "--certificate", folder / "p.npz", "--threads", 1
    )
    (folder / "solved.txt").write_text(done.stdout)
    return folder


def test_solve_and_info_say_what_the_numbers_are_of(shop):
    said = "classifier average of 3 networks; score, bound, gap and certificate are of the first"
    assert said in (shop / "solved.txt").read_text()
    assert said in run("info", shop / "r.json").stdout
    shown = run("info", shop / "a.json").stdout
    assert "average     of 3 networks with equal weights" in shown
    assert shown.count("gap         ") == shown.count("score       sm, gamma = ") == 3
    assert "network     3" in shown
    document = load(shop / "r.json")
    assert document["average"] == {"asked": 3, "networks": 3, "interrupted": False, "note": ""}
    first = load(shop / "a.json")["members"][0]
    assert first["structure"] == document["structure"]


def test_predict_and_evaluate_take_it(shop):
    done = succeed("predict", shop / "a.json", shop / "t.csv", "--proba", "-q")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert len(rows) == 60
    for row in rows:
        assert float(row["P(a)"]) + float(row["P(b)"]) == pytest.approx(1)
        assert row["class"] == ("a" if float(row["P(a)"]) >= float(row["P(b)"]) else "b")
    figures = json.loads(run("evaluate", shop / "a.json", shop / "t.csv", "--json", "-q").stdout)
    assert figures["networks"] == 3
    truth = [line.rpartition(",")[2] for line in (shop / "t.csv").read_text().splitlines()[1:]]
    right = sum(row["class"] == label for row, label in zip(rows, truth, strict=True))
    assert figures["accuracy"] == pytest.approx(right / 60)
    assert "classifier   average of 3 networks" in run("evaluate", shop / "a.json", shop / "t.csv").stdout


def test_each_network_of_an_average_explains_the_same_row(shop):
    shown = succeed("explain", shop / "a.json", shop / "t.csv", "--row", 7, "--row", 3).stdout
    heads = [line.split(":")[0] for line in shown.splitlines() if line.startswith("sample ")]
    assert heads == ["sample 7"] * 4 + ["sample 3"] * 4


FILES = {"AVERAGE": "a.json", "TABLE": "t.csv", "RESULT": "r.json", "PROOF": "p.npz"}


def words_of(line, shop, tmp_path):
    """Return the words of a command line, with paths in the places of names in capitals."""
    return [shop / FILES[w] if w in FILES else w.replace("OUT", f"{tmp_path}/o") for w in line.split()]


#: What the verbs that the help of --average names do with the file, and the words of that help.
USES = {
    "predict, evaluate, query, explain, info and convert (to .sql, .onnx, .json) use all": [
        "predict AVERAGE TABLE",
        "evaluate AVERAGE TABLE",
        "query AVERAGE",
        "explain AVERAGE TABLE",
        "info AVERAGE",
        "convert AVERAGE OUT.sql",
        "convert AVERAGE OUT.json",
    ],
    "plot and report show the first": [
        "plot network AVERAGE --output OUT.svg",
        "plot margins AVERAGE TABLE --output OUT.svg",
        "plot explain AVERAGE TABLE --output OUT.svg",
        "plot cpt AVERAGE --variable three --output OUT.svg",
        "report RESULT --classifier AVERAGE --output OUT.html",
    ],
    "precision and --start refuse it": ["precision AVERAGE TABLE", "solve TABLE --start AVERAGE -q"],
}


@pytest.mark.parametrize("said", USES)
def test_the_help_says_who_takes_it(shop, tmp_path, said):
    assert said in " ".join(run("solve", "--help").stdout.split())
    for line in USES[said]:
        (refused if "refuse" in said else succeed)(*words_of(line, shop, tmp_path))


def test_plot_draws_the_first(shop, tmp_path):
    for file in ("a.json", "r.json"):
        succeed("plot", "network", shop / file, "--output", tmp_path / f"{file}.svg")
    drawn = [(tmp_path / f"{file}.svg").read_text().count("<title>") for file in ("a.json", "r.json")]
    assert drawn[0] == drawn[1]


def test_unknown_values_are_counted_once(shop, tmp_path):
    text = (shop / "t.csv").read_text().replace(",x,", ",z,", 2)
    (tmp_path / "new.csv").write_text(text)
    done = run("evaluate", shop / "a.json", tmp_path / "new.csv")
    assert "unknown      2 values without a state: 2 in three" in done.stdout
    assert done.stderr.count("never saw") == 1


def test_verify_checks_the_first(shop):
    from milpbn.claims.result import Result

    how = Result.load(shop / "r.json").selection.options["discretise"]
    proof = ("--certificate", shop / "p.npz")
    done = succeed("verify", shop / "r.json", shop / "t.csv", "--discretise", how, *proof)
    settings = "selection  4 settings: the score is the one with the best stated figures; the figures"
    networks = "average    3 networks: only the first, which is the structure of the result, is checked"
    assert settings in done.stdout
    assert networks in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("predict AVERAGE TABLE --joint", "has no joint probabilities; leave out --joint"),
        ("precision AVERAGE TABLE", "solve without --average for a single network"),
        ("score AVERAGE TABLE", "give the result of the run (--output)"),
        ("score RESULT TABLE --bound AVERAGE", "give the file that --output wrote"),
        ("solve TABLE --start AVERAGE -q", "give the result of the run (--output)"),
        ("export TABLE --start AVERAGE --output OUT.lp", "give the result of the run"),
        ("verify AVERAGE TABLE --certificate PROOF", "give the file that --output wrote"),
        ("plot AVERAGE --output OUT.png", "give the file that --output wrote"),
    ],
)
def test_verbs_that_need_one_network_refuse_it(shop, tmp_path, words, sentence):
    done = refused(*words_of(words, shop, tmp_path))
    assert sentence in done.stderr
    assert "a.json" in done.stderr


def test_refusals(shop):
    done = refused("solve", shop / "t.csv", "--average", 3)
    assert "add --recipe, --select, --p cv or --max-parents cv" in done.stderr
    done = refused("solve", shop / "t.csv", "--select", "p=.6,.9", "--average", 0)
    assert "must be at least 1, got 0" in done.stderr
