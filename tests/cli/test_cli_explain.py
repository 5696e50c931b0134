"""The verb explain: texts and files of classifiers, predictions and structures."""

import json

import pytest
from cli_common import load, refused, run, says, succeed, write_csv
from fine import refined

import milpbn
from milpbn.network import AveragedClassifier, load_classifier, save_classifier


def test_a_classifier_alone_is_shown_as_rules(shop):
    done = succeed("explain classifier.json")
    assert done.stdout.strip() == str(load_classifier(shop / "classifier.json"))
    assert "log-odds of good against bad" in done.stdout


def test_data_add_importances_and_the_rows_below_gamma(shop, tmp_path):
    output = tmp_path / "explained.json"
    done = succeed("explain classifier.json toy.csv --output", output)
    explained = load(output)["classifier"]
    result = load(shop / "result.json")
    assert explained["margins"]["soft_margin"] == pytest.approx(result["objective"])
    assert explained["margins"]["gamma"] == pytest.approx(result["score"]["gamma"])
    count = len(explained["margins"]["below_gamma"])
    assert f"samples below gamma = {result['score']['gamma']:.6g}: {count} of 40" in done.stdout
    one = run("explain classifier.json toy.csv --gamma 0.1 --shown 1")
    says(one.stdout, "samples below gamma = 0.1", "... ")


def test_a_row_is_explained_by_a_sum(shop, tmp_path):
    output = tmp_path / "row.json"
    done = succeed("explain classifier.json toy.csv --row 2 --row 7 --output", output)
    says(done.stdout, "sample 2: class = ", "sample 7: class = ")
    joint = load_classifier(shop / "classifier.json").predict_log_joint(str(shop / "toy.csv"))
    for found, m in zip(load(output)["predictions"], (1, 6), strict=True):
        places = [found["classes"].index(found[key]) for key in ("label", "against")]
        total = sum(c["log_odds"] for c in found["contributions"])
        assert total == pytest.approx(joint[m, places[0]] - joint[m, places[1]], abs=1e-12)
    named = run("explain --row 2 --label bad --against good classifier.json toy.csv")
    assert "log-odds of bad against good" in named.stdout
    assert [found["row"] for found in load(output)["predictions"]] == [2, 7]


def test_only_what_the_explained_rows_lack_is_noted(shop, tmp_path):
    table = write_csv(
        tmp_path / "new.csv", [["x", "?", "0", "good"], ["x", "u", "0", "bad"], ["w", "?", "1", "bad"]]
    )
    done = run("explain classifier.json", table, "--row", 2, "--row", 3)
    assert done.stderr == (
        "Row 3: without 'b', marginalised; with values of 'a' that training never saw, which contribute nothing.\n"
    )
    done = refused("explain classifier.json", table, "--row", 4)
    assert done.stdout == ""
    assert "have the rows 1 to 3" in done.stderr


def test_a_result_adds_its_structure(shop, tmp_path):
    output = tmp_path / "structure.json"
    done = succeed("explain classifier.json toy.csv --result result.json --output", output)
    found = load(output)["structure"]
    assert found["objective"] == pytest.approx(load(shop / "result.json")["objective"])
    assert "alternatives: structures that differ by one change" in done.stdout
    assert all(other["loss"] > -1e-6 for other in found["alternatives"])


def test_a_result_explains_its_structure_beside_finer_intervals(tmp_path):
    rows = [[str(k % 7), "uv"[k % 2], ["good", "bad"][k % 7 > 3]] for k in range(40)]
    table = write_csv(tmp_path / "t.csv", rows, "a,b,class")
    data = milpbn.read_table(str(table), continuous=["a"])
    result = milpbn.solve(data, milpbn.Score(p=0.9), backend="highs", verbose=False)
    result.save(tmp_path / "r.json")
    save_classifier(refined(result.classifier, "a", (0.5, 1.5, 5.5)), tmp_path / "c.json")
    done = succeed("explain", tmp_path / "c.json", table, "--result", tmp_path / "r.json", "-q")
    says(done.stdout, "alternatives", "a: (-inf, 0.5] (")


def test_rows_that_the_search_dropped_are_dropped_again(tmp_path):
    rows = [["x", "u", "0", "good"], ["y", "v", "1", "bad"]] * 8 + [
        ["x", "?", "1", "bad"],
        ["y", "u", "1", "good"],
    ]
    table = write_csv(tmp_path / "t.csv", rows)
    result = milpbn.solve(str(table), milpbn.Score(p=0.9), backend="highs", verbose=False)
    result.save(tmp_path / "r.json")
    save_classifier(result.classifier, tmp_path / "c.json")
    done = succeed("explain", tmp_path / "c.json", table, "--result", tmp_path / "r.json", "-q")
    assert "alternatives" in done.stdout


def test_a_result_is_explained_with_the_weights_and_states_of_its_run(tmp_path):
    rows = [["xy"[k % 3 == 0], "uv?"[k % 3], "12"[k % 2], "good" if k % 4 else "bad"] for k in range(40)]
    table = write_csv(tmp_path / "t.csv", rows, "a,b,w,class")
    options = ("--weights", "w", "--class-weights", "balanced", "--missing", "state", "--leave-one-out", "-q")
    files = ("--output", tmp_path / "r.json", "--classifier", tmp_path / "c.json")
    succeed("solve", table, "--score", "cll", "--time-limit", 60, *options, *files)
    explain = ("explain", tmp_path / "c.json", table, "-q", "--output", tmp_path / "e.json", "--result")
    succeed(*explain, tmp_path / "r.json")
    document = load(tmp_path / "r.json")
    assert load(tmp_path / "e.json")["structure"]["objective"] == pytest.approx(document["objective"])
    del document["request"]  # the rows are then those that the classifier reads
    (tmp_path / "without.json").write_text(json.dumps(document))
    assert "of other data" in refused(*explain, tmp_path / "without.json").stderr


def test_an_average_is_explained_network_by_network(shop, tmp_path):
    member = load_classifier(shop / "classifier.json")
    save_classifier(AveragedClassifier((member, member)), tmp_path / "average.json")
    done = succeed("explain", tmp_path / "average.json", "toy.csv", "--row", 1)
    says(done.stdout, "no sum over families", "network 2")


def test_a_result_of_other_rows_is_refused(shop, tmp_path):
    other = write_csv(tmp_path / "other.csv", [["x", "u", "0", "good"], ["y", "v", "1", "bad"]])
    assert "of other data" in refused("explain classifier.json", other, "--result", "result.json").stderr


def test_monotone_features_are_checked_and_fitted(shop, tmp_path):
    output, made = tmp_path / "explained.json", tmp_path / "c.json"
    for word in ("u:v", "v:u"):
        done = succeed("explain classifier.json --positive bad --monotone", f"b={word}", "--output", output)
        (check,) = load(output)["monotone"]
        assert check["constraint"]["states"] == word.split(":")
        assert ("not true that" in done.stdout) == (not check["holds"])
    words = "--threads 1 --backend highs --quiet --monotone b=u:v --positive good --classifier"
    done = succeed("solve toy.csv", *words.split(), made)
    says(done.stdout, "the log-odds of 'good' never fall in 'b' (u < v)", "what monotone costs: log-loss")
    says(
        succeed("explain", made).stdout,
        "monotone, over all complete rows:\n  the log-odds of 'good' never fall",
    )
    assert "no order of their own" in refused("explain classifier.json --monotone b=+").stderr
    assert "leave out --row" in refused("explain classifier.json toy.csv --row 1 --monotone b=+").stderr
