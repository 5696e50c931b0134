"""Dynamic programming over orders: heaviest structures, overall and with each parent set, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from running import all_choices, random_data

from milpbn.engine.relaxation.oracle import ORDERS, oracle_of
from milpbn.engine.relaxation.orders import best_order, heaviest_orders
from milpbn.problem.candidates import build_candidates
from milpbn.problem.scores.spec import Score

CANDIDATES = {
    "class parents": build_candidates(("X1", "X2", "X3", "X4", "C"), Score(max_parents=3)),
    "class first": build_candidates(("X1", "X2", "X3", "X4", "C"), Score(max_parents=3, class_parents=False)),
    "all sets": build_candidates(("X1", "X2", "C"), Score(name="mdl", parent_sets="all", max_parents=2)),
}


@pytest.mark.parametrize("kind", CANDIDATES)
def test_maxima_equal_enumeration(kind):
    candidates = CANDIDATES[kind]
    oracle = oracle_of(candidates)._replace(kind=ORDERS)
    V = candidates.n_variables
    if not oracle.masks.any():  # `oracle_of` numbers the members where it wants orders
        oracle = oracle._replace(masks=np.array([sum(1 << j for j in s) for s in candidates.flat]))
    choices = all_choices(candidates)
    rng = np.random.default_rng(V)
    without = 0
    for keep in [1.0, 0.7, 0.5, 0.3] * 6:
        weights = rng.normal(size=candidates.n_sets) * 10.0 ** rng.integers(-1, 4)
        if rng.random() < 0.3:
            weights = np.round(weights)  # ties
        allowed = rng.random(candidates.n_sets) < keep
        inside = choices[allowed[choices].all(axis=1)]
        values = weights[inside].sum(axis=1)
        choice = np.full(V, -1)
        value = best_order(oracle.offsets, oracle.masks, weights, allowed, choice)
        out = np.full(candidates.n_sets, np.nan)
        heaviest_orders(oracle.offsets, oracle.masks, weights, allowed, out)
        if not len(inside):
            without += 1
            assert value == -np.inf
            assert np.isneginf(out[allowed]).all()
            continue
        assert value == pytest.approx(values.max())
        assert (inside == choice).all(axis=1).any()
        assert weights[choice].sum() == pytest.approx(value)
        for p in range(candidates.n_sets):
            if allowed[p]:
                own = values[(inside == p).any(axis=1)]
                assert out[p] == pytest.approx(own.max() if len(own) else -np.inf)
            else:
                assert np.isnan(out[p])  # left alone
    assert 0 < without < 24


def test_a_class_without_parents_needs_no_bit():
    data = random_data(0, n_features=14)
    score = Score(max_parents=3, class_parents=False)
    oracle = oracle_of(build_candidates(data.names, score))
    assert oracle.kind == ORDERS
    assert max(int(mask) for mask in oracle.masks).bit_length() == 14
