"""User constraints: every answer obeys them and is optimal under them, and messages name conflicts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import oracle
import pytest
from running import (
    BACKENDS,
    FORMULATIONS,
    candidate_sets,
    dataset,
    listed,
    optimum,
    predicate,
    random_constraints,
    random_data,
    run,
)

import milpbn
from milpbn.claims.result import is_optimal
from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.conflicts import minimal_conflict, resolve
from milpbn.problem.constraints import JSON_FORMS, Atom, Constraints, Rules, atoms
from milpbn.problem.problem import build_problem
from milpbn.problem.scores.spec import Score

NAMES = ("X1", "X2", "X3", "C")


def structures(names, score: Score, constraints: Constraints) -> list[tuple[tuple[int, ...], ...]]:
    """Return all structures within the limits that obey the constraints, from all parent sets."""
    everything = Score(
        name="ll", max_parents=score.max_parents, class_parents=score.class_parents, parent_sets="all"
    )
    sets = tuple(map(tuple, candidate_sets(names, everything)))
    obeys = predicate(names, constraints)
    return [g for g in oracle.acyclic_structures(sets) if obeys(g)]


def as_constraints(parts: list[Atom]) -> Constraints:
    """Return the constraints that are equivalent to some atoms."""
    return Constraints(
        required=tuple((NAMES[j], NAMES[i]) for part in parts for j, i in part.rules.required),
        forbidden=tuple((NAMES[j], NAMES[i]) for part in parts for j, i in part.rules.forbidden),
        max_children={NAMES[j]: n for part in parts for j, n in part.rules.max_children.items()},
        fixed={NAMES[i]: tuple(NAMES[j] for j in s) for part in parts for i, s in part.rules.fixed.items()},
    )


@pytest.mark.parametrize("seed", range(20))
def test_random_constraints_match_the_restricted_oracle(seed: int) -> None:
    rng = np.random.default_rng([7, seed])
    data = random_data([8, seed], n_samples=14, weights=bool(seed % 2))
    constraints = random_constraints(rng, NAMES)
    score = Score(
        name=str(rng.choice(["sm", "sbm", "hard-margin", "cll", "mdl", "bdeu"])),
        max_parents=int(rng.integers(1, 4)),
        class_parents=bool(rng.random() < 0.8),
    )
    best = optimum(data, score, constraints)
    if not best.structures:
        with pytest.raises(InputError, match=r"exclude each other|obeys this constraint"):
            build_problem(data, score, constraints)
        return
    problem = build_problem(data, score, constraints)
    obeys = predicate(data.names, constraints)
    # Backends that start a child process get fewer problems.
    every = {"highs": 1, "cpsat": 13, "pulp:HiGHS": 13}
    for backend in (name for name in BACKENDS if seed % every.get(name, 4) == 0):
        for acyclicity in FORMULATIONS:
            session, _ = run(problem, backend, acyclicity)
            assert session.objective == pytest.approx(best.objective, abs=1e-6, rel=1e-6)
            assert session.best_bound >= best.objective - 1e-9
            assert is_optimal(
                session.objective, session.best_bound, tolerance=session.tolerance(session.objective)
            )
            assert obeys(session.structure.parents)


@pytest.mark.parametrize("seed", range(20))
def test_class_free_sets_lose_nothing_under_margin_scores(seed: int) -> None:
    """Under constraints the candidates still contain an optimum over all parent sets, class-free or not."""
    rng = np.random.default_rng([9, seed])
    data = random_data([10, seed], n_samples=14)
    score = Score(name="sm", p=0.9, max_parents=int(rng.integers(1, 4)))
    while True:
        constraints = random_constraints(rng, NAMES)
        allowed = set(structures(data.names, score, constraints))
        if allowed and not constraints.arc_weights:
            break
    everything = [sorted({g[i] for g in allowed}) for i in range(4)]
    best = oracle.enumerate_best(
        data, "sm", gamma=score.gamma, allowed=allowed.__contains__, candidates=everything
    )
    session, _ = run(build_problem(data, score, constraints), "highs")
    assert session.objective == pytest.approx(best.objective, abs=1e-6)
    assert session.structure.parents in allowed


@pytest.mark.parametrize("seed", range(80))
def test_conflicts_are_found_and_minimal(seed: int) -> None:
    rng = np.random.default_rng([11, seed])
    constraints = random_constraints(rng, NAMES, strength=0.6)
    score = Score(
        name="mdl", parent_sets="all", max_parents=int(rng.integers(1, 4)), class_parents=rng.random() < 0.7
    )
    if structures(NAMES, score, constraints):
        candidates = listed(constraints, NAMES, score)
        assert all(candidates.sets)
        return
    with pytest.raises(InputError, match=f"max_parents = {score.max_parents}") as caught:
        resolve(constraints, NAMES, score)
    parts = [part for part in atoms(constraints, NAMES) if not part.rules.arc_weights]
    conflict = minimal_conflict(parts, NAMES, score)
    assert not structures(NAMES, score, as_constraints(conflict))
    for part in conflict:
        rest = [other for other in conflict if other is not part]
        assert structures(NAMES, score, as_constraints(rest)), f"{part.text} is not needed"
    for part in conflict:
        assert part.text in str(caught.value)
    assert str(caught.value).count(";") == max(0, len(conflict) - 1)


def test_random_draws_have_conflicts_and_others_have_none() -> None:
    """The random tests above cover both cases, and conflicts with every kind of constraint."""
    conflicting, kinds = 0, set()
    for seed in range(80):
        rng = np.random.default_rng([11, seed])
        constraints = random_constraints(rng, NAMES, strength=0.6)
        score = Score(max_parents=int(rng.integers(1, 4)))
        if not structures(NAMES, score, constraints):
            conflicting += 1
            parts = [part for part in atoms(constraints, NAMES) if not part.rules.arc_weights]
            kinds |= {part.text.split()[0] for part in minimal_conflict(parts, NAMES, score)}
    assert 20 <= conflicting <= 70
    assert kinds == {"required", "forbidden", "tiers:", "fixed", "allowed", "at"}


@pytest.mark.parametrize("n", [3, 5, 9])
def test_a_required_cycle_is_named_without_the_rest(n: int) -> None:
    names = [f"v{i}" for i in range(12)]
    cycle = tuple((names[i], names[(i + 1) % n]) for i in range(n))
    noise = tuple((names[10], names[i]) for i in range(n))
    with pytest.raises(InputError) as caught:
        resolve(Constraints(required=cycle, forbidden=noise), names, Score(max_parents=3))
    assert "forbidden" not in str(caught.value)
    for a, b in cycle:
        assert f"required arc {a} -> {b}" in str(caught.value)


@pytest.mark.parametrize(
    ("constraints", "score", "named"),
    [
        (Constraints(required=(("X1", "C"),)), Score(class_parents=False), ["required arc X1 -> C"]),
        (Constraints(fixed={"X1": ("X2", "X3", "C")}), Score(max_parents=2), ["fixed parent set of X1"]),
        (
            Constraints(required=(("X2", "X1"),), tiers=(("X1",), ("X2",))),
            Score(),
            ["required arc X2 -> X1", "tiers: X2 comes after X1"],
        ),
        (
            Constraints(required=(("X1", "X2"), ("X1", "X3")), max_children={"X1": 1}),
            Score(),
            ["required arc X1 -> X2", "required arc X1 -> X3", "at most 1 children of X1"],
        ),
        (
            Constraints(required=(("X2", "X1"), ("X3", "X1"), ("C", "X1"))),
            Score(),
            ["required arc X2 -> X1", "required arc X3 -> X1", "required arc C -> X1"],
        ),
        (
            Constraints(required=(("X1", "X2"), ("X2", "X3"), ("C", "X3")), max_children={"X2": 0}),
            Score(),
            ["required arc X2 -> X3", "at most 0 children of X2"],
        ),
        (
            Constraints(fixed={"X1": ("C",)}, required=(("X1", "C"),)),
            Score(),
            ["fixed parent set of X1: {C}", "required arc X1 -> C"],
        ),
        (
            Constraints(allowed={"X1": ("C",)}, required=(("X2", "X1"),)),
            Score(),
            ["allowed parents of X1: {C}", "required arc X2 -> X1"],
        ),
        (
            Constraints(forbidden=(("X2", "X1"),), required=(("X2", "X1"),)),
            Score(),
            ["forbidden arc X2 -> X1", "required arc X2 -> X1"],
        ),
    ],
)
def test_conflicts_by_hand(constraints: Constraints, score: Score, named: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        resolve(constraints, NAMES, score)
    for text in named:
        assert text in str(caught.value)
    assert str(caught.value).count(";") == len(named) - 1


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (Constraints(required=(("Y", "X1"),)), "'Y', which is not a variable"),
        (Constraints(forbidden=(("X1", "X1"),)), "names 'X1' twice"),
        (Constraints(tiers=(("X1",), ("X1",))), "in two tiers"),
        (Constraints(tiers=(("Y",),)), "'Y', which is not a variable"),
        (Constraints(fixed={"Y": ()}), "'Y', which is not a variable"),
        (Constraints(fixed={"X1": ("X1",)}), "names 'X1' twice"),
        (Constraints(allowed={"X1": ("Y",)}), "'Y', which is not a variable"),
        (Constraints(max_children={"Y": 1}), "'Y', which is not a variable"),
        (Constraints(max_children={"X1": -1}), "at least 0"),
        (Constraints(arc_weights={("X1", "C"): float("nan")}), "finite number"),
        (Constraints(arc_weights={("X1", "C"): float("inf")}), "finite number"),
        (Constraints(arc_weights={("Y", "C"): 1.0}), "'Y', which is not a variable"),
    ],
)
def test_unusable_constraints_are_refused(constraints: Constraints, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_problem(random_data(1), Score(), constraints)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"requried": []}, "there is no constraint 'requried'"),
        ({"required": [["a"]]}, "'required'"),
        ({"required": [["a", 1]]}, "'required'"),
        ({"required": 3}, "'required'"),
        ({"tiers": ["ab"]}, "'tiers'"),
        ({"max_children": {"a": 1.5}}, "'max_children'"),
        ({"max_children": {"a": True}}, "'max_children'"),
        ({"max_children": ["a"]}, "'max_children'"),
        ({"fixed": {"a": "bc"}}, "'fixed'"),
        ({"allowed": [["a"]]}, "'allowed'"),
        ({"arc_weights": [["a", "b"]]}, "'arc_weights'"),
        ({"arc_weights": [["a", "b", "x"]]}, "'arc_weights'"),
    ],
)
def test_malformed_json_is_refused(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Constraints.from_dict(values, "The file")


def test_json_round_trip() -> None:
    constraints = Constraints(
        required=(("X1", "X2"),),
        forbidden=(("C", "X1"),),
        tiers=(("X1",), ("X2", "X3")),
        max_children={"*": 1, "C": 2},
        fixed={"X3": ()},
        allowed={"X2": ("X1", "C")},
        arc_weights={("X1", "X2"): -1.5},
    )
    assert constraints.names == {"X1", "X2", "X3", "C", "*"}
    assert Constraints.from_dict(constraints.to_dict()) == constraints
    assert constraints
    assert not Constraints()


def test_a_limit_on_all_features_does_not_limit_the_class() -> None:
    rules, _ = resolve(Constraints(max_children={"*": 1, "X2": 0}), NAMES, Score())
    assert rules.max_children == {0: 1, 1: 0, 2: 1}


def test_rules_admit_parent_sets_by_their_definition() -> None:
    rules = Rules(required=frozenset({(0, 1)}), forbidden=frozenset({(2, 1)}), fixed={0: frozenset({3})})
    assert rules.admits(1, (0,))
    assert rules.admits(1, (0, 3))
    assert not rules.admits(1, ())
    assert not rules.admits(1, (0, 2))
    assert rules.admits(0, (3,))
    assert not rules.admits(0, ())
    assert rules.admits(2, ())


def test_obeys_is_the_predicate() -> None:
    """`Problem.obeys` agrees with the constraints for every structure over the candidates."""
    for seed in range(20):
        rng = np.random.default_rng([12, seed])
        constraints = random_constraints(rng, NAMES)
        score = Score(name="mdl", parent_sets="all", max_parents=2)
        try:
            problem = build_problem(random_data(seed), score, constraints)
        except InputError:
            continue
        allowed = set(structures(NAMES, score, constraints))
        for g in structures(NAMES, score, Constraints()):
            assert problem.obeys(Structure(NAMES, g)) == (g in allowed)


def test_solutions_obey_the_constraints() -> None:
    data = random_data(3, n_samples=40)
    constraints = Constraints(
        required=(("X2", "X1"),),
        max_children={"*": 1},
        tiers=(("X2",), ("X3",)),
        arc_weights={("X1", "X3"): -2.0},
    )
    result = milpbn.solve(data, milpbn.Score(p=0.9), constraints=constraints, backend="highs", threads=1)
    assert result.optimal
    assert predicate(data.names, constraints)(result.structure.parents)
    assert result.objective == pytest.approx(
        optimum(data, milpbn.Score(p=0.9), constraints).objective, abs=1e-6
    )
    assert result.constraints == constraints
    with pytest.raises(InputError, match="start"):
        milpbn.solve(data, constraints=constraints, start=Structure.naive_bayes(data.names), backend="highs")


def test_arc_weights_count_in_the_objective() -> None:
    data = dataset([(0, 0), (1, 1), (0, 0), (1, 1), (1, 0)])
    for weight in (-5.0, 5.0):
        constraints = Constraints(arc_weights={("C", "X1"): weight})
        result = milpbn.solve(data, "ll", constraints=constraints, backend="highs", threads=1)
        assert result.structure.to_mapping() == {
            "X1": ["C"] if weight > 0 else [],
            "C": [] if weight > 0 else ["X1"],
        }
        fit = oracle.score_structure(data, result.structure.parents, "ll")
        assert result.objective == pytest.approx(fit + max(weight, 0.0))


def test_the_file_of_the_page_has_every_kind_and_can_be_met() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "constraints.md"
    (text,) = re.findall(r"```json\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    constraints = Constraints.from_dict(json.loads(text))
    assert constraints.to_dict() == json.loads(text)
    resolve(constraints, ("A", "B", "C", "class"), Score())


def test_every_kind_of_constraint_tells_its_names() -> None:
    kinds: list[dict[str, object]] = [
        *({kind: [["A", "B"]]} for kind in ("required", "forbidden", "tiers", "ancestors", "no_ancestors")),
        *({kind: {"A": ["B"]}} for kind in ("fixed", "allowed")),
        {"arc_weights": [["A", "B", 1.5]]},
        {"independences": [["A", "B", []]]},
        {"independences": [["A", "A", ["B"]]]},
        {"max_children": {"A": 1, "B": 2}},
    ]
    assert all(Constraints.from_dict(kind).names == {"A", "B"} for kind in kinds)
    assert {key for kind in kinds for key in kind} == {*JSON_FORMS} - {"max_features"}
