"""Which parent sets without the class are candidates, and which structures claims are about."""

from __future__ import annotations

import math
from dataclasses import dataclass

import oracle
import pytest
from running import predicate, random_constraints, random_data

import milpbn
from milpbn.problem.candidates import build_candidates
from milpbn.problem.class_free import alike, among, has_larger, settled, smallest_suffices
from milpbn.problem.constraints import Constraints, Rules
from milpbn.problem.counts import log_likelihood
from milpbn.problem.scores import registry
from milpbn.problem.scores.conditional_likelihood import ConditionalLikelihood
from milpbn.problem.scores.spec import Score

WEIGHTED = Rules(arc_weights={(0, 1): 1.0})
#: The words of every claim about a class of structures.
WORDS = "structures in which every feature has the class among its parents, or no parents"


@pytest.mark.parametrize(
    ("score", "rules", "expected"),
    [
        (Score(), Rules(), (True, True)),
        (Score(name="hard-margin"), Rules(), (True, True)),
        (Score(penalty="bic"), Rules(), (False, True)),
        (Score(hybrid=0.1), Rules(), (False, False)),
        (Score(penalty=1.0, hybrid=0.1), Rules(), (False, False)),
        (Score(), WEIGHTED, (False, False)),
        (Score(penalty=1.0), WEIGHTED, (False, False)),
        (Score(name="mdl"), Rules(), (False, False)),
    ],
)
def test_what_tells_class_free_sets_apart(score: Score, rules: Rules, expected: tuple[bool, bool]) -> None:
    assert (alike(score, rules), smallest_suffices(score, rules)) == expected


@pytest.mark.parametrize(
    ("name", "options", "rules", "larger", "named"),
    [
        # margins alone: {} has the same score as all others, so nothing is left out
        *(("sm", {"parent_sets": sets}, Rules(), False, False) for sets in ("auto", "paper", "all")),
        # a penalty: {} is never worse, but "all" asks for the others, and "paper" says what it leaves out
        ("cll", {"penalty": 1.0}, Rules(), False, False),
        ("cll", {"penalty": 1.0, "parent_sets": "all"}, Rules(), True, False),
        ("cll", {"penalty": 1.0, "parent_sets": "paper"}, Rules(), False, True),
        ("cll", {"hybrid": 0.1}, Rules(), True, False),
        ("cll", {"hybrid": 0.1, "parent_sets": "all"}, Rules(), True, False),
        ("cll", {"hybrid": 0.1, "parent_sets": "paper"}, Rules(), False, True),
        ("sm", {}, WEIGHTED, True, False),
        ("sm", {"parent_sets": "paper"}, WEIGHTED, False, True),
        ("mdl", {}, Rules(), False, True),
        ("bdeu", {"parent_sets": "all"}, Rules(), True, False),
    ],
)
def test_candidates_and_words_go_together(
    name: str, options: dict, rules: Rules, larger: bool, named: bool
) -> None:
    score = Score(name=name, max_parents=2, **options)
    assert has_larger(score, rules) == larger
    assert ((1,) in build_candidates(("X1", "X2", "X3", "C"), score, rules).sets[0]) == larger
    assert among(score, rules) == (WORDS if named else "")


def test_words_name_what_constraints_demand() -> None:
    score = Score(name="mdl")
    for rules in (Constraints(required=(("a", "b"),)), Constraints(fixed={"b": ("a",)})):
        assert among(score, rules) == f"{WORDS} but those that constraints demand"


@pytest.mark.parametrize("seed", range(30))
def test_the_smallest_set_never_scores_less_under_a_penalty(seed: int) -> None:
    """The claim of the module: no structure beats the best one over the smallest class-free sets."""
    rng = oracle.np.random.default_rng([3, seed])
    data = random_data([4, seed], n_samples=14)
    rules = random_constraints(rng, data.names)
    if rules.arc_weights:
        rules = Constraints(**{**vars(rules), "arc_weights": {}})
    score = Score(name="cll", penalty=0.3, max_parents=int(rng.integers(1, 4)))
    obeys = predicate(data.names, rules)
    every = tuple(map(tuple, oracle.candidate_sets(4, score.max_parents, parent_sets="all")))
    best = oracle.enumerate_best(data, "cll", penalty=0.3, candidates=every, allowed=obeys)
    if not best.structures:
        return
    result = milpbn.solve(data, score, constraints=rules, threads=1, verbose=False)
    assert result.optimal
    assert not result.among
    assert result.objective == pytest.approx(best.objective, rel=1e-7, abs=1e-7)


def test_a_run_needs_more_sets_for_a_list_and_under_a_negative_penalty() -> None:
    score = Score(name="cll", penalty="bic")
    assert settled(score, Rules(), 10.0) == score
    assert settled(score, Rules(), 0.5).parent_sets == "all"  # log(.5) / 2 is a bonus for every parameter
    assert settled(score, Rules(), 10.0, listed=True).parent_sets == "all"
    assert settled(Score(), Rules(), 10.0, listed=True) == Score()
    paper = Score(name="cll", penalty="bic", parent_sets="paper")
    assert settled(paper, Rules(), 0.5, listed=True) == paper


def test_a_negative_penalty_rewards_class_free_parents() -> None:
    data = random_data(3, n_features=2, n_samples=10)
    light = milpbn.data.Dataset(data.name, data.variables, data.codes, data.weights / 20)
    result = milpbn.solve(light, Score(name="cll", penalty="bic"), threads=1, verbose=False)
    every = tuple(map(tuple, oracle.candidate_sets(3, 2, parent_sets="all")))
    best = oracle.enumerate_best(light, "cll", penalty=math.log(0.5) / 2, candidates=every)
    assert (result.score.parent_sets, result.among) == ("all", "")
    assert result.objective == pytest.approx(best.objective, rel=1e-7)


@dataclass(frozen=True, kw_only=True)
class Bonus(ConditionalLikelihood):
    """A score of a user's own: half of the likelihood of every family is added, without an option that says so."""

    name = "bonus"
    certified = False

    def family(self, data, child, parents):
        value = 0.5 * log_likelihood(data, child, parents)
        return value, abs(value)

    def local_value(self, data, parents):
        terms = [self.family(data, i, s) for i, s in enumerate(parents)]
        return milpbn.problem.scores.base.LocalValue([v for v, _ in terms], [size for _, size in terms])


def test_local_terms_of_a_user_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A score of one's own with terms of single families tells class-free sets apart; nobody has to declare it."""
    monkeypatch.setattr(registry, "SCORES", {**registry.SCORES, "bonus": "unused:Bonus"})
    find = registry.find_score
    for module in ("registry", "spec"):
        monkeypatch.setattr(
            f"milpbn.problem.scores.{module}.find_score",
            lambda name: Bonus if name == "bonus" else find(name),
        )
    score = Score(name="bonus")
    assert not alike(score, Rules())
    assert not smallest_suffices(score, Rules())
    assert has_larger(score, Rules())
    data = random_data(5, n_features=2)
    result = milpbn.solve(data, score, threads=1, verbose=False)
    every = tuple(map(tuple, oracle.candidate_sets(3, 2, parent_sets="all")))
    best = oracle.enumerate_best(
        data,
        "cll",
        candidates=every,
        bonus=lambda g: 0.5 * sum(log_likelihood(data, i, s) for i, s in enumerate(g)),
    )
    assert result.objective == pytest.approx(best.objective, rel=1e-7)
