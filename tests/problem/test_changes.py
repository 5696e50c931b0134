"""Scores of single changes against the score at the changed point, with margins near 0 and far from it."""

from __future__ import annotations

import numpy as np
import pytest
from running import heavy_enough, random_data

from milpbn.problem.changes import score_changes
from milpbn.problem.problem import build_problem
from milpbn.problem.products import add_columns, total_score
from milpbn.problem.scores.spec import Score


@pytest.mark.parametrize("leave_one_out", [False, True])
@pytest.mark.parametrize("name", ["sm", "sbm", "cll", "hard-margin"])
@pytest.mark.parametrize("spread", [0.0, 3.0, 300.0])
@pytest.mark.parametrize("smoothing", [1.0, 1e-6, 1e-12])
def test_a_change_scores_what_the_changed_point_scores(
    name: str, spread: float, smoothing: float, leave_one_out: bool
) -> None:
    """Three parents leave most cells of a domain without samples; one thread and several agree.

    Column -1 adds nothing, and two more columns are added to the logits in every case.
    """
    for seed in range(3):
        score = Score(name=name, max_parents=3, smoothing=smoothing, leave_one_out=leave_one_out)
        data = random_data([82, seed], n_features=4, n_samples=40, weights=bool(seed % 2))
        margins = build_problem(heavy_enough(data, score), score).margins
        assert margins is not None
        tables, softening = margins.tables, margins.softening
        logits = np.random.default_rng(seed).normal(0.0, spread, (margins.n_samples, tables.values.shape[1]))
        columns = np.arange(-1, len(tables.columns))
        gone, factors = np.array([len(columns) - 2, 0]), np.array([-1.0, 0.5])
        expected = []
        for k in columns:
            changed = logits.copy()
            add_columns(tables, gone, factors, changed, False)
            add_columns(tables, columns[1:][[k]], np.full(1, float(k >= 0)), changed, False)
            expected.append(total_score(tables, softening, changed, margins.smallest))
        for parallel in (False, True):
            found = score_changes(
                tables, margins.spreads, softening, logits, columns, margins.smallest, parallel, gone, factors
            )
            assert found == pytest.approx(expected, rel=1e-11, abs=1e-9)


def test_the_loss_of_a_hopeless_sample_is_finite() -> None:
    """If a class lacks a thousand nats, its exponential is 0, and the score must still be finite."""
    margins = build_problem(random_data([83, 0], n_samples=20), Score(name="cll")).margins
    assert margins is not None
    tables = margins.tables
    logits = np.zeros((margins.n_samples, tables.values.shape[1]))
    logits[np.arange(len(logits)), tables.true] = -1000.0
    columns = np.arange(len(tables.columns))
    found = score_changes(tables, margins.spreads, margins.softening, logits, columns, False, False)
    assert found == pytest.approx(-1000.0 * margins.weights.sum(), rel=0.01)
