"""The commands of a report."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from milpbn import Score, Structure
from milpbn.claims.alternatives import Alternatives
from milpbn.claims.parts import ScreenedClaim, SubsetClaim
from milpbn.claims.result import BackendInfo, DataSummary, Result
from milpbn.cli.types import parse_class_weights, parse_family, parse_independence, parse_names, parse_tiers
from milpbn.data.request import DataRequest
from milpbn.network.parameters.record import ParameterFit
from milpbn.problem.constraints import Constraints
from milpbn.report.command import repeat_commands

ODD = ("a,b", 'say "x"', " edge", "p=q;r", "plain")

LISTED = Alternatives(asked=3, structures=(), bound=None, exhausted=False, optimal=False)


@pytest.fixture
def result():
    return Result(
        data=DataSummary("t", "0" * 64, 60, 50, 3, 2),
        score=Score(),
        reason="optimal",
        structure=Structure(("a", "c"), ((1,), ())),
        objective=10.0,
        bound=10.0,
        bound_source="certified",
        backend=BackendInfo("native", "milpbn", 1),
        request=DataRequest("my data/t.csv"),
    )


def words(result, request=None):
    return shlex.split(repeat_commands(result, request)[0])


def value(words, option):
    return words[words.index(option) + 1]


def test_defaults_are_left_out(result):
    solve, verify = repeat_commands(result)
    assert solve == (
        "milpbn solve 'my data/t.csv' --score sm --threads 1 --seed 0 --output result.json --certificate proof.npz"
    )
    assert verify == "milpbn verify result.json 'my data/t.csv' --certificate proof.npz"


def test_options_of_the_table_are_in_both_commands(result):
    options = {"target": "-c d", "drop": ODD, "states": "declared", "class_weights": {"a,b": 2.5, "x": 1.0}}
    for line in repeat_commands(result, DataRequest("-t.csv", "all", options)):
        told = shlex.split(line)
        assert "./-t.csv" in told
        assert value(told, "--target") == "-c d"
        assert parse_names(value(told, "--drop")) == ODD
        assert value(told, "--states") == "declared"
        assert parse_class_weights(value(told, "--class-weights")) == {"a,b": 2.5, "x": 1.0}
        assert value(told, "--split") == "all"


def test_tables_of_a_recipe_are_repeated_by_the_recipe(result):
    told = words(replace(result, parameters=ParameterFit(method="additive", kappa=0.0, note="No time.")))
    assert value(told, "--recipe") == "accurate"
    assert "--parameters" not in told


def test_refused_data_say_how_those_of_the_run_were_read(result):
    options = {"missing": "state", "discretise": "quantile:8", "drop": ["a b", "c"]}
    sentence = str(result.data.refusal(DataRequest("t.csv", "all", options)))
    assert "of 't'" in sentence
    told = shlex.split(sentence[sentence.index("(") + 1 : sentence.rindex(")")])
    assert told == ["--missing", "state", "--discretise", "quantile:8", "--drop", "a b,c", "--split", "all"]
    assert str(result.data.refusal(None)).endswith("of that run.")


def test_constraints_are_in_the_command(result):
    rules = Constraints(
        required=(ODD[:2],),
        tiers=(ODD[:2], ODD[2:]),
        max_children={"*": 2},
        fixed={ODD[0]: (), ODD[3]: ODD[:2]},
        arc_weights={ODD[:2]: 0.1},
        ancestors=(ODD[2:4],),
        independences=((*ODD[:2], ODD[2:]), (*ODD[1:3], ())),
    )
    told = words(replace(result, constraints=rules))
    assert parse_names(value(told, "--require")) == ODD[:2]
    assert parse_tiers(value(told, "--tiers")) == (ODD[:2], ODD[2:])
    assert value(told, "--max-children") == "2"
    fixed = [told[i + 1] for i, word in enumerate(told) if word == "--fix"]
    assert dict(map(parse_family, fixed)) == rules.fixed
    assert value(told, "--arc-weight").endswith("=0.1")
    assert parse_names(value(told, "--ancestor")) == ODD[2:4]
    given = [told[i + 1] for i, word in enumerate(told) if word == "--independence"]
    assert tuple(map(parse_independence, given)) == rules.independences


def test_what_the_search_was_told_is_in_the_command(result):
    searched = {"objective": 10.0, "bound": 10.0, "optimal": True}
    told = words(
        replace(
            result,
            reason="feasible",
            limit="time",
            subset=SubsetClaim(samples=40, **searched),
            screened=ScreenedClaim(k=7, criterion="", total=9, ranked=1, kept={"a": 1, "c": 1}, **searched),
            alternatives=LISTED,
            parameters=ParameterFit(method="hybrid", fitted=True, kappa=0.5, strength=10.0),
        )
    )
    for option, expected in (
        ("--time-limit", "1"),
        ("--subset", "40"),
        ("--screen", "7"),
        ("--n-best", "3"),
        ("--parameters", "hybrid:0.5:10"),
    ):
        assert value(told, option) == expected


@pytest.mark.parametrize(
    ("changes", "backend"),
    [
        ({"backend": BackendInfo("cbc", "CBC", 1), "bound_source": "solver"}, "cbc"),
        (
            {"backend": BackendInfo("highs", "HiGHS", 1)},
            "highs",
        ),  # its bound may be that of the native engine's root
        ({"constraints": Constraints(ancestors=[("a", "b")])}, None),
        (
            {"score": Score("bdeu"), "backend": BackendInfo("branch-and-cut", "", 1), "alternatives": LISTED},
            None,
        ),
        ({"score": Score("aicc"), "backend": BackendInfo("highs", "HiGHS", 1)}, None),
        (
            {"backend": BackendInfo("gurobi", "gurobi (solution file x)", None), "bound_source": "solver"},
            None,
        ),
    ],
)
def test_no_certificate_is_asked_for_where_solve_would_refuse_it(result, changes, backend):
    lines = repeat_commands(replace(result, **changes))
    assert len(lines) == 1
    assert "--certificate" not in lines[0]
    told = shlex.split(lines[0])
    assert ("--backend" in told) == (backend is not None)
    assert backend is None or value(told, "--backend") == backend
