"""The verb convert, and the local scores and scripts of export."""

import pytest
from cli_common import refused, run, says, succeed
from fine import fine_classifier, raw_rows

import milpbn
from milpbn.network import load_classifier


@pytest.mark.parametrize("ending", [".bif", ".xmlbif", ".xml", ".xdsl", ".net"])
def test_a_classifier_predicts_the_same_after_a_round_trip(shop, tmp_path, ending):
    there = run("convert classifier.json", tmp_path / f"n{ending}")
    assert (there.exit_code, there.stdout) == (0, f"{tmp_path / f'n{ending}'}\n")
    succeed("convert", tmp_path / f"n{ending}", tmp_path / "back.json")
    arguments = [shop / "toy.csv", "--proba", "--joint"]
    assert (
        run("predict", tmp_path / "back.json", *arguments).stdout
        == run("predict classifier.json", *arguments).stdout
    )


def test_cuts_survive_so_that_raw_numbers_are_predicted(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"x": [0.1 * k + 1 / 3 for k in range(40)]})
    frame["class"] = ["low" if x < 2 else "high" for x in frame["x"]]
    result = milpbn.solve(milpbn.read_table(frame), milpbn.Score(p=0.9), threads=1, time_limit=60)
    assert result.classifier.variables[0].cuts
    milpbn.network.save_classifier(result.classifier, tmp_path / "c.json")
    succeed("convert", tmp_path / "c.json", tmp_path / "c.bif")
    succeed("convert", tmp_path / "c.bif", tmp_path / "d.json")
    back = load_classifier(tmp_path / "d.json")
    assert back.variables == result.classifier.variables
    new = frame[["x"]] + 0.05
    assert (back.predict_log_joint(new) == result.classifier.predict_log_joint(new)).all()


def test_info_says_where_a_network_comes_from(shop, tmp_path):
    for source, output in ((shop / "classifier.json", "n.bif"), (tmp_path / "n.bif", "n.json")):
        succeed("convert", source, tmp_path / output)
    shown = run("info", tmp_path / "n.json").stdout
    assert "read from   BIF" in shown
    assert "learnt by" not in shown


def test_networks_of_others_are_shown_and_are_no_classifier_files(shop, tmp_path):
    (tmp_path / "n.net").write_text("""net {} node A { states = (a b); } node B { states = (c d); }
        potential (A) { data = (1 3); } potential (B | A) { data = ((1 1)(1 4)); }""")
    shown = succeed("info", tmp_path / "n.net", "--target", "A").output
    says(shown, "  A: 2 states, nominal, the class; parents: (none)", "  B: 2 states, nominal; parents: A")
    says(
        refused("info", tmp_path / "n.net").stderr,
        "name it with --target (in Python: target), one of 'A', 'B'.",
    )
    advice = "milpbn convert FILE classifier.json --target NAME"
    says(refused("predict", tmp_path / "n.net", shop / "toy.csv").stderr, advice)


def test_a_picture_of_the_structure_is_written(shop, tmp_path):
    succeed("convert classifier.json", tmp_path / "n.dot")
    assert (tmp_path / "n.dot").read_text().startswith("digraph")


def test_tables_are_written(shop, tmp_path):
    for ending in (".arff", ".dat", ".csv"):
        succeed("convert toy.csv", tmp_path / f"t{ending}")
        assert milpbn.read_table(tmp_path / f"t{ending}").n_rows == 40
    assert "@attribute class {bad, good}" in (tmp_path / "t.arff").read_text()
    assert (tmp_path / "t.dat").read_text().splitlines()[1:3] == ["a b c class", "3 2 2 2"]


def test_export_writes_local_scores(shop, tmp_path):
    done = run("export toy.csv --score bdeu --output", tmp_path / "s.jkl", "-q")
    assert done.stdout == f"scores   {tmp_path / 's.jkl'}: 9 parent sets of 4 variables\n"
    assert (tmp_path / "s.jkl").read_text().splitlines()[0] == "4"
    done = run("export toy.csv --score bdeu --dominated --output", tmp_path / "all.jkl", "-q")
    assert done.stdout == f"scores   {tmp_path / 'all.jkl'}: 19 parent sets of 4 variables\n"
    done = refused("export toy.csv --dominated --output", tmp_path / "m.lp")
    assert "--dominated concerns local scores" in done.stderr
    done = refused("export toy.csv --score bdeu --output", tmp_path / "t.jkl", "--reduced")
    assert "--reduced concerns a model" in done.stderr
    assert not (tmp_path / "t.jkl").exists()


def test_export_lists_solvers_on_the_path_first(shop, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "highs"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    done = run("export toy.csv --output", tmp_path / "m.lp", "--script", "gurobipy", "-q")
    first, others = done.stdout.split("Not on the path of this machine:")
    assert "On the path of this machine:\n\n# highs\n" in first
    assert [line for line in others.splitlines() if line[:1] == "#"] == [
        "# cplex",
        "# gurobi",
        "# scip",
        "# cbc",
    ]
    says(done.stdout, f"script   {tmp_path / 'm_gurobipy.py'}", "certified; milpbn import keeps it")
    done = refused("export toy.csv --output", tmp_path / "n.lp", "--script", "matlab", "-q")
    assert "no script for 'matlab'" in done.stderr


def test_a_column_with_two_variables_is_two_nodes_and_one_column_of_rows(tmp_path):
    classifier = fine_classifier(0, n_classes=2)
    milpbn.network.save_classifier(classifier, tmp_path / "c.json")
    raw_rows(classifier, 60, 1, missing=0.2).to_csv(tmp_path / "rows.csv", index=False)
    there = succeed("convert", tmp_path / "c.json", tmp_path / "c.bif")
    assert (
        "Columns with several nodes in the file, their coarse and fine intervals: x0, x2, x3." in there.stderr
    )
    back = succeed("convert", tmp_path / "c.bif", tmp_path / "d.json")
    assert back.stderr == ""
    first, again = (
        run("predict", tmp_path / f"{k}.json", tmp_path / "rows.csv", "--proba").stdout for k in "cd"
    )
    assert first == again
    assert first.splitlines()[0].count("x") == 0
    assert "x0 (fine): 9 states, discretised, of the column x0" in succeed("info", tmp_path / "c.json").stdout
    other = refused("convert", tmp_path / "c.json", tmp_path / "e.json", "--target", "x0")
    assert "column 'x0' of the class has another variable" in other.stderr
    shown = succeed("evaluate", tmp_path / "c.json", tmp_path / "rows.csv").stdout
    assert "(fine)" not in shown
    drawn = succeed("query", tmp_path / "c.json", "--sample", 5, "--evidence", "x0=0.5").stdout
    assert drawn.splitlines()[0] == "x0,colour,x2,x3,kind"
    for what in ("cpt --variable x0", "network", "explain"):
        kind, *options = what.split()
        data = [tmp_path / "rows.csv"] if kind == "explain" else []
        succeed("plot", kind, tmp_path / "c.json", *data, *options, "--output", tmp_path / f"{kind}.svg")
        assert "(fine)" not in (tmp_path / f"{kind}.svg").read_text()


def test_a_scorecard_has_a_worst_error_and_nothing_else_has_one(shop, tmp_path):
    succeed("convert classifier.json", tmp_path / "card.html", "--worst-error", "0.08")
    assert "points</h1>" in (tmp_path / "card.html").read_text(encoding="utf-8")
    for source, output in (("classifier.json", "n.sql"), ("toy.csv", "toy.arff")):
        done = refused("convert", shop / source, tmp_path / output, "--worst-error", "0.08")
        says(done.stderr, "--worst-error) is that of a scorecard")
    says(
        refused("convert classifier.json", tmp_path / "n.html", "--worst-error", "2").stderr,
        "between 0 and 0.5",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["card.html"]


def test_values_that_mean_a_missing_one_are_named_and_kept_where_they_can_be(tmp_path):
    rows = ["size,side,kind", *(f"{size},{side},{size < 3}" for size in (1, 2, 4, 999) * 6 for side in "lr")]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    learnt = ("--na-values", "999", "--continuous", "size", "--classifier", tmp_path / "c.json", "-q")
    succeed("learn", "naive-bayes", tmp_path / "t.csv", *learnt)
    for ending in (".bif", ".py", ".sql"):
        says(succeed("convert", tmp_path / "c.json", tmp_path / f"c{ending}").stderr, "(--na-values): '999'.")
    assert succeed("convert", tmp_path / "c.json", tmp_path / "c.dot").stderr == ""
    assert succeed("convert", tmp_path / "c.json", tmp_path / "d.json", "--target", "side").stderr == ""
    asked = ("--of", "kind", "--evidence")
    found = [succeed("query", tmp_path / "d.json", *asked, f"size={value}") for value in ("999", "NA", "5")]
    assert found[0].stdout == found[1].stdout != found[2].stdout
