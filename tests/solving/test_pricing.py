"""Prices of rules against direct solves, and classes of structures against their definitions."""

import json
from dataclasses import replace

import numpy as np
import pytest
from oracle import enumerate_best, random_dataset

import milpbn
from milpbn import Constraints, InputError, Score
from milpbn.problem.structures import STRUCTURES, structured

DATA = random_dataset(np.random.default_rng(44), 4, 2, 2, 60)
X1, X2, X3, X4, C = DATA.names


def solved(constraints=None, score=None):
    return milpbn.solve(DATA, score or Score(p=0.9), constraints=constraints, threads=1)


def test_prices_are_differences_of_direct_solves(tmp_path):
    rules = {
        "few": Constraints(max_features=2),
        "no arc": Constraints(forbidden=((C, X1),)),
        "a tree": "tan",
        "naive": "naive-bayes",
    }
    base, file, told = solved(Constraints(forbidden=((X2, X3),))), tmp_path / "prices.json", []
    found = milpbn.price(base, DATA, rules, output=file, report=told.append, threads=1)
    assert told == [f"{k} of 4: {rule}" for k, rule in enumerate(rules, 1)]
    assert [p.rule for p in found.prices] == list(rules)
    for one in found.prices:
        rule = rules[one.rule]
        asked = replace(base.constraints, max_features=2)
        if one.rule == "no arc":
            asked = Constraints(forbidden=((X2, X3), (C, X1)))
        elif isinstance(rule, str):
            asked = structured(rule, DATA, base.score, base.constraints)
        direct = solved(asked)
        assert direct.optimal
        assert one.having.objective == pytest.approx(direct.objective, abs=1e-6)
        assert one.price == pytest.approx(base.objective - direct.objective, abs=1e-6)
        assert one.low - 1e-6 <= one.price <= one.high + 1e-6
        assert one.high - one.low <= 1e-4
        assert one.per_row == pytest.approx(one.price / DATA.total_weight)
    assert sum(p.price > 0.1 for p in found.prices) >= 2
    assert [p["rule"] for p in json.loads(file.read_text())["prices"]] == list(rules)
    assert "few" in str(found)


def test_each_constraint_of_a_result_has_a_price():
    base = solved(Constraints(forbidden=((C, X1), (C, X2)), max_children={X3: 0}, max_features=2))
    found = {p.rule: p for p in milpbn.price(base, DATA, threads=1).prices}
    fewer = {
        f"forbidden: {C}, {X1}": replace(base.constraints, forbidden=((C, X2),)),
        f"forbidden: {C}, {X2}": replace(base.constraints, forbidden=((C, X1),)),
        f"max children: {X3}, 0": replace(base.constraints, max_children={}),
        "max features: 2": replace(base.constraints, max_features=None),
        "all of these": Constraints(),
    }
    assert found.keys() == fewer.keys()
    for rule, constraints in fewer.items():
        expected = solved(constraints).objective - base.objective
        assert found[rule].price == pytest.approx(expected, abs=1e-6)
    assert found["all of these"].price > 0.1


def test_open_bounds_make_intervals_and_what_is_not_searched_is_named():
    base = replace(solved(), bound=solved().objective + 5, reason="feasible", limit="time")
    calls = iter([False, True])
    told = []
    rules = {"few": Constraints(max_features=1), "none": Constraints(max_features=0)}
    found = milpbn.price(
        base, DATA, rules, report=told.append, interrupted=lambda: next(calls, True), threads=1
    )
    assert found.missing
    assert told[0] == "1 of 3: the result itself"
    rough = milpbn.price(base, DATA, rules, time_limit=1e-9)
    assert rough.missing == ("few", "none")
    assert "not searched: few" in str(rough)


def test_rules_that_cannot_be_are_refused():
    base = solved()
    for rules, words in (
        ({"x": "star"}, "no structure 'star'"),
        ({"x": Constraints(forbidden=(("A", X1),))}, "'A', which is not a variable"),
        ({"x": Constraints(arc_weights={(X1, X2): 1.0})}, "has no price"),
        (None, "has no constraints"),
    ):
        with pytest.raises(InputError, match=words):
            milpbn.price(base, DATA, rules)
    other = random_dataset(np.random.default_rng(45), 4, 2, 2, 60)
    with pytest.raises(InputError):
        milpbn.price(base, other, {"x": "tan"})
    with pytest.raises(InputError, match="max_parents"):
        structured("tan", DATA, Score(max_parents=3), Constraints())
    with pytest.raises(InputError, match="paper"):
        structured("forest", DATA, Score(parent_sets="all", hybrid=0.1), Constraints())


def obeys(kind, parents):
    """Whether a structure is one of a kind, by its definition."""
    *own, of_class = parents
    c, with_class = len(own), [len(own) in s for s in own]
    few = all(len(s) <= (2 if kind in ("tan", "forest") else 1) for s in own)
    fits = not of_class and few and all(not s or c in s for s in own)
    return fits and (kind in ("selective", "forest") or all(with_class))


@pytest.mark.parametrize("kind", STRUCTURES)
def test_the_best_structure_of_a_kind_is_that_of_the_enumeration(kind):
    data = random_dataset(np.random.default_rng(46), 3, 2, 3, 50)
    best = enumerate_best(data, "sm", gamma=Score(p=0.9).gamma, allowed=lambda parents: obeys(kind, parents))
    asked = structured(kind, data, Score(p=0.9), Constraints())
    found = milpbn.solve(data, Score(p=0.9), constraints=asked, threads=1)
    assert found.optimal
    assert found.objective == pytest.approx(best.objective, abs=1e-6)
    assert obeys(kind, found.structure.parents)
