"""Climbing over orders against insertions tried one by one."""

from __future__ import annotations

import numpy as np
import pytest

from milpbn.engine.parent_sets.climbing import OrderClimber, greedy_order
from milpbn.engine.parent_sets.sets import ParentSets, inside, mask_of, selected, undominated
from milpbn.util.budget import Budget


def _random_sets(n: int, seed: int) -> ParentSets:
    """Return random parent sets over more variables than a word has bits; some variables have no empty set."""
    rng = np.random.default_rng(seed)
    child, masks, costs = [], [], []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        listed = {
            tuple(sorted(rng.choice(others, rng.integers(1, 4), replace=False).tolist())) for _ in range(12)
        }
        listed |= set() if rng.random() < 0.1 else {()}
        own = sorted(zip(rng.exponential(5.0, len(listed)).tolist(), sorted(listed), strict=True))
        child += [i] * len(own)
        costs += [cost - own[0][0] for cost, _ in own]
        masks += [mask_of(members, n) for _, members in own]
    offsets = np.searchsorted(child, np.arange(n + 1)).astype(np.int64)
    sets = ParentSets(offsets, np.array(child), np.array(masks), np.array(costs))
    return selected(sets, undominated(offsets, sets.masks))


def _cost(sets: ParentSets, order: list[int]) -> float:
    total, n = 0.0, sets.n_variables
    for t, i in enumerate(order):
        before = mask_of(order[:t], n)
        block = range(sets.offsets[i], sets.offsets[i + 1])
        total += next((sets.costs[p] for p in block if inside.py_func(sets.masks[p], before)), np.inf)
    return total


class TestOrderClimber:
    """An order from which climbing ends gains by no insertion, and costs what its parent sets cost."""

    @pytest.mark.parametrize("seed", range(3))
    def test_no_insertion_gains_after_a_climb(self, seed: int) -> None:
        n = 12 if seed else 70
        sets = _random_sets(n, seed)
        climber = OrderClimber(sets, seed)
        climber.start(greedy_order(sets, np.ones(sets.n_sets)))
        order = climber.order.tolist()
        assert climber.cost == pytest.approx(_cost(sets, order), abs=1e-9)
        assert climber.cost == pytest.approx(sets.costs[climber.choice()].sum(), abs=1e-9)
        for v in order if seed else order[:2]:
            rest = [u for u in order if u != v]
            for place in range(n):
                assert _cost(sets, [*rest[:place], v, *rest[place:]]) >= climber.cost - 1e-8

    def test_perturbed_climbs_keep_costs_right(self) -> None:
        sets = _random_sets(12, 7)
        climber = OrderClimber(sets, 0)
        climber.start(greedy_order(sets, np.ones(sets.n_sets)))
        first = climber.cost
        climber.perturb(400, Budget(None), 0.1)
        assert climber.cost == pytest.approx(_cost(sets, climber.order.tolist()), abs=1e-9)
        assert climber.cost <= first
