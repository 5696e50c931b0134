"""Scores computed from the data against those of the test oracle."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from running import heavy_enough, random_data

from milpbn.network import class_log_joint, fit_cpts, log_margins
from milpbn.network.structure import Structure
from milpbn.problem.rescore import rescore, standard_error
from milpbn.problem.scores.registry import SCORES, margin_scores
from milpbn.problem.scores.spec import Score


@pytest.mark.parametrize(
    ("name", "leave_one_out"),
    [(name, False) for name in SCORES] + [(name, True) for name in (*margin_scores(), "ll")],
)
@pytest.mark.parametrize("weights", [False, True])
def test_scores_are_those_of_the_oracle(name: str, weights: bool, leave_one_out: bool) -> None:
    data = random_data([31, weights], n_samples=60, weights=weights)
    options = {"gamma": 1.7} if name in ("sm", "sbm") else {}
    if name in oracle.MARGIN_SCORES:
        options |= {"smoothing": 0.5, "penalty": 0.25, "hybrid": 0.1}
    if leave_one_out:
        options |= {"leave_one_out": True, "smoothing": 0.5}
    score = Score(name=name, max_parents=3, **options)
    data = heavy_enough(data, score)
    structures = oracle.acyclic_structures(tuple(map(tuple, oracle.candidate_sets(data.n_variables, 3))))
    for k in np.random.default_rng(32).choice(len(structures), 12, replace=False):
        expected = oracle.score_structure(data, structures[k], name, **options)
        assert rescore(data, Structure(data.names, structures[k]), score) == pytest.approx(
            expected, rel=1e-12
        )


def test_the_conditional_log_likelihood_of_a_tie_is_that_of_a_guess() -> None:
    data = random_data(33, n_classes=3, n_samples=30)
    no_arcs = Structure.empty(data.names)
    share = (np.bincount(data.y) + 1.0) / (data.n_samples + 3.0)
    assert rescore(data, no_arcs, Score(name="cll")) == pytest.approx(np.log(share[data.y]).sum())


def test_the_standard_error_is_that_of_a_sum_over_the_samples() -> None:
    data, score = random_data(34, n_samples=60, weights=True), Score(gamma=1.7)
    structure = Structure.naive_bayes(data.names)
    joint = class_log_joint(data.codes, structure, fit_cpts(data, structure, 1.0), data.n_classes)
    f = np.minimum(log_margins(joint, data.y), 1.7)
    mean = np.average(f, weights=data.weights)
    expected = np.sqrt((data.weights * (f - mean) ** 2).sum())
    for same in (data, data.merged):
        assert standard_error(same, structure, score) == pytest.approx(expected, rel=1e-12)


def test_another_sample_changes_a_score_by_its_standard_error() -> None:
    """A bootstrap with new parameters: the error counts them as given, so that scores vary a little more."""
    data, score, rng = random_data(35, n_samples=400), Score(gamma=1.7), np.random.default_rng(36)
    structure = Structure.naive_bayes(data.names)
    drawn = [rescore(data.take(rng.integers(0, 400, 400)), structure, score) for _ in range(300)]
    assert 0.9 < np.std(drawn) / standard_error(data, structure, score) < 1.3


@pytest.mark.parametrize("score", [Score(hybrid=0.1), Score(name="hard-margin"), Score(name="mdl")])
def test_scores_that_are_no_sums_over_samples_have_no_standard_error(score: Score) -> None:
    data = random_data(37)
    assert standard_error(data, Structure.naive_bayes(data.names), score) is None
