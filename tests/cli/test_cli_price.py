"""``milpbn price``, and the options of a limit of features and of a class of structures."""

import json

import pytest
from cli_common import refused, succeed

CORRAL = ["instance:corral", "--p", 0.9, "--threads", 1, "-q"]


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    path = tmp_path_factory.mktemp("price") / "result.json"
    succeed("solve", *CORRAL, "--max-features", 4, "--output", path)
    return path


def test_a_table_of_prices_and_its_file(result, tmp_path):
    file = tmp_path / "prices.json"
    rules = ["--rule", "max-features=2", "--rule", "structure=selective", "--rule", "forbid=A0,A1"]
    found = succeed("price", result, "instance:corral", "--threads", 1, *rules, "--output", file)
    assert all(rule in found.stdout for rule in rules[1::2])
    assert "3 of 3: forbid=A0,A1" in found.stderr
    prices = {p["rule"]: p["price"] for p in json.loads(file.read_text())["prices"]}
    assert prices["max-features=2"] > 100
    assert prices["forbid=A0,A1"] == pytest.approx(0, abs=1e-6)
    own = succeed("price", result, "instance:corral", "--threads", 1, "-q")
    assert "max features: 4" in own.stdout


def test_options_of_features_and_structures_reach_the_result(tmp_path):
    path = tmp_path / "result.json"
    succeed("solve", *CORRAL, "--structure", "tan", "--output", path)
    told = json.loads(path.read_text())
    assert all("class" in own for name, own in told["structure"].items() if name != "class")
    assert told["structure"]["class"] == []
    assert "max_features" not in told["constraints"]


def test_words_that_are_no_rules_get_a_sentence(result):
    for rule, words in (
        ("stars=3", "no rule"),
        ("max-features", "KEY=VALUE"),
        ("forbid=A0", "no rule"),
        ("structure=star", "no structure 'star'"),
    ):
        assert words in refused("price", result, "instance:corral", "--rule", rule).stderr
    found = refused("solve", "instance:corral", "--structure", "tan", "--max-parents", 3)
    assert "max_parents = 2" in found.stderr
