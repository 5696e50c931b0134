"""Structures by local search over orders: every variable takes its best parent set among its predecessors.

A step moves one variable to another place in the order (insertion). A perturbation moves some variables at random
(iterated local search; Scanagatta, Corani & Zaffalon 2017 use such moves for large problems). The first climb accepts
worse orders by simulated annealing.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from milpbn.engine.parent_sets.sets import (
    ParentSets,
    drop,
    generator,
    has,
    inside,
    put,
    random_below,
    random_share,
)
from milpbn.util.budget import Budget
from milpbn.util.compiled import kernel

#: Gains below this are rounding errors, in nats.
LEAST_GAIN = 1e-9
#: Temperature of the first climb and of its end, as shares of the mean loss of a perturbation.
HOT, COLD = 0.065, 0.003
#: At most this many variables are moved by a perturbation.
KICK = 5
#: Perturbations of the first climb: at least, and for each variable. Some 7,000 of them take a second.
FIRST_PERTURBATIONS, PER_VARIABLE = 4000, 40
#: Perturbations between two looks at the budget.
AT_ONCE = 20


@kernel(linked=True)
def first_inside(offsets, masks, i, placed):  # type: ignore[no-untyped-def]
    """Return the cheapest parent set of variable i among the placed variables, -1 if there is none."""
    for p in range(offsets[i], offsets[i + 1]):
        if inside(masks[p], placed):
            return p
    return -1


@kernel
def cost_of_order(offsets, masks, costs, order, choice):  # type: ignore[no-untyped-def]
    """Write the best parent sets in an order to `choice`; return their cost, inf if a variable has none."""
    placed = np.zeros(masks.shape[1], dtype=np.uint64)
    total = 0.0
    for i in order:
        p = first_inside(offsets, masks, i, placed)
        if p < 0:
            return np.inf
        choice[i] = p
        total += costs[p]
        put(placed, i)
    return total


@kernel(linked=True)
def _move(order, a, b):  # type: ignore[no-untyped-def]
    """Move the variable at place a to place b."""
    v = order[a]
    for t in range(a, b, 1 if a < b else -1):
        order[t] = order[t + 1] if a < b else order[t - 1]
    order[b] = v


@kernel(inner=True)
def _place_before(offsets, masks, costs, order, choice, at):  # type: ignore[no-untyped-def]
    """Return the best earlier place for the variable v at place `at`, and the change of cost.

    A variable that v overtakes may take a cheaper set that contains v; v itself may lose its set.
    """
    v, best, place = order[at], -LEAST_GAIN, at
    before = np.zeros(masks.shape[1], dtype=np.uint64)
    to_gain = change = 0.0  # what the variables further to the left cost: they cannot gain more
    for t in range(at):
        put(before, order[t])
        to_gain += costs[choice[order[t]]]
    own = choice[v]
    for t in range(at - 1, -1, -1):
        u = order[t]
        drop(before, u)
        while own < offsets[v + 1] and not inside(masks[own], before):
            own += 1
        if own == offsets[v + 1]:
            break
        to_gain -= costs[choice[u]]
        put(before, v)
        for p in range(offsets[u], choice[u]):
            if has(masks[p], v) and inside(masks[p], before):
                change += costs[p] - costs[choice[u]]
                break
        drop(before, v)
        loss = costs[own] - costs[choice[v]]
        if change + loss < best:
            best, place = change + loss, t
        if change - to_gain + loss >= best:
            break
    return place, best


@kernel(inner=True)
def _place_behind(offsets, masks, costs, order, choice, at):  # type: ignore[no-untyped-def]
    """Return the best later place for the variable v at place `at`, and the change of cost; see `_place_before`.

    A variable that overtakes v loses its set if that contains v; v may take a cheaper set.
    """
    v, best, place = order[at], -LEAST_GAIN, at
    before = np.zeros(masks.shape[1], dtype=np.uint64)
    for t in range(at):
        put(before, order[t])
    own, change = choice[v], 0.0
    for t in range(at + 1, len(order)):
        u = order[t]
        if has(masks[choice[u]], v):
            p = choice[u] + 1
            while p < offsets[u + 1] and not inside(masks[p], before):
                p += 1
            if p == offsets[u + 1]:
                break
            change += costs[p] - costs[choice[u]]
        put(before, u)
        for p in range(offsets[v], own):
            if has(masks[p], u) and inside(masks[p], before):
                own = p
                break
        gain = change + costs[own] - costs[choice[v]]
        if gain < best:
            best, place = gain, t
        if change - costs[choice[v]] >= best:
            break
    return place, best


@kernel(inner=True)
def _rechoose(offsets, masks, costs, order, choice, first, last, pending):  # type: ignore[no-untyped-def]
    """Choose the best sets anew at some places of an order, note whose set changes; return the change of cost."""
    placed = np.zeros(masks.shape[1], dtype=np.uint64)
    for t in range(first):
        put(placed, order[t])
    change = 0.0
    for t in range(first, last + 1):
        i = order[t]
        p = first_inside(offsets, masks, i, placed)
        if p < 0:
            return np.inf
        if p != choice[i]:
            change += costs[p] - costs[choice[i]]
            choice[i] = p
            pending[i] = True
        put(placed, i)
    return change


@kernel
def climb(offsets, masks, costs, order, choice, cost, pending, thorough, random):  # type: ignore[no-untyped-def]
    """Insert variables elsewhere in an order until no insertion gains; return the cost.

    Parameters
    ----------
    order, choice : int64 arrays, shape (V,)
        The order and its parent sets; overwritten.
    cost : float
        Cost of the parent sets.
    pending : bool array, shape (V,)
        The variables to try to move. A variable whose parent set changes is tried again.
    thorough : bool
        Whether to go on until no insertion of any variable gains.
    """
    n = len(order)
    where, turns = np.empty(n, dtype=np.int64), np.arange(n)
    for t in range(n):
        where[order[t]] = t
    again = True
    while again:
        again = False
        for k in range(n - 1, 0, -1):
            j = random_below(random, k + 1)
            turns[k], turns[j] = turns[j], turns[k]
        for v in turns:
            if not pending[v]:
                continue
            pending[v] = False
            at = where[v]
            place, gain = _place_before(offsets, masks, costs, order, choice, at)
            later, more = _place_behind(offsets, masks, costs, order, choice, at)
            if more < gain:
                place = later
            if place == at:
                continue
            _move(order, at, place)
            first, last = min(at, place), max(at, place)
            for t in range(first, last + 1):
                where[order[t]] = t
            cost += _rechoose(offsets, masks, costs, order, choice, first, last, pending)
            pending[v] = again = True
        if again and thorough:
            pending[:] = True
    return cost


@kernel
def perturbed_climbs(offsets, masks, costs, current, cost, best, best_cost, times, share, losses, random):  # type: ignore[no-untyped-def]
    """Perturb the current order and climb, `times` times; a worse order is accepted as in simulated annealing.

    Parameters
    ----------
    current, best : int64 arrays, shape (V,)
        The orders, which are overwritten.
    cost, best_cost : float
        Their costs.
    share : float
        The temperature is this share of the mean loss so far.
    losses : float64 array, shape (2,)
        Sum and number of the losses, to which those of worse orders are added.
    """
    n = len(current)
    new, kept = np.empty_like(current), np.empty_like(current)
    choice, pending = np.empty_like(current), np.zeros(n, dtype=np.bool_)
    cost_of_order(offsets, masks, costs, current, kept)
    for _ in range(times):
        new[:], choice[:], pending[:] = current, kept, False
        found = cost
        for _ in range(1 + random_below(random, KICK)):
            a, b = random_below(random, n), random_below(random, n)
            pending[new[a]] = True
            _move(new, a, b)
            found += _rechoose(offsets, masks, costs, new, choice, min(a, b), max(a, b), pending)
            if found == np.inf:
                break
        if found == np.inf:
            continue
        found = climb(offsets, masks, costs, new, choice, found, pending, False, random)
        loss = found - cost
        if loss > LEAST_GAIN:
            losses[0] += loss
            losses[1] += 1
        # With probability exp(-loss / temperature).
        if loss <= LEAST_GAIN or loss * losses[1] < -math.log(1.0 - random_share(random)) * share * losses[0]:
            cost = found
            current[:], kept[:] = new, choice
            if found < best_cost - LEAST_GAIN:
                best_cost = found
                best[:] = new


def greedy_order(sets: ParentSets, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return an order in which the next variable is the one with the largest weight of sets among its predecessors.

    `weights`, shape (P,), are for example those of a fractional point.
    """
    used = np.flatnonzero(weights > 0)
    order = np.empty(sets.n_variables, dtype=np.int64)
    _greedy(sets.offsets, sets.child[used], sets.masks[used], weights[used], order)
    return order


@kernel
def _greedy(offsets, child, masks, weights, order):  # type: ignore[no-untyped-def]
    n = len(offsets) - 1
    placed = np.zeros(masks.shape[1], dtype=np.uint64)
    total = np.empty(n)
    for t in range(n):
        total[:] = 0.0
        for p in range(len(child)):
            if inside(masks[p], placed):
                total[child[p]] += weights[p]
        best = -1
        for i in range(n):
            if not has(placed, i) and (best < 0 or total[i] > total[best]):
                best = i
        order[t] = best
        put(placed, best)


class OrderClimber:
    """Iterated local search over the orders of a problem; it remembers the best order.

    Parameters
    ----------
    sets : ParentSets
        The parent sets.
    seed : int
        Seed of the perturbations.
    """

    def __init__(self, sets: ParentSets, seed: int) -> None:
        self.sets, self._random = sets, generator(seed)
        self._current = np.arange(sets.n_variables)
        self._cost, self._losses = np.inf, np.zeros(2)
        self.order, self.cost = self._current.copy(), np.inf

    @classmethod
    def climbed(cls, sets: ParentSets, seed: int, budget: Budget) -> OrderClimber:
        """Return what has climbed from a random order and its perturbations; a greedy one if that has no structure."""
        climber = cls(sets, seed)
        climber.start(np.random.default_rng(seed).permutation(sets.n_variables))
        if climber.cost == np.inf:
            climber.start(greedy_order(sets, np.ones(sets.n_sets)))
        climber.perturb(max(FIRST_PERTURBATIONS, PER_VARIABLE * sets.n_variables), budget, HOT)
        return climber

    def copied(self, seed: int) -> OrderClimber:
        """Return a copy that goes on with other random numbers."""
        other = OrderClimber(self.sets, seed)
        other._current, other._cost = self._current.copy(), self._cost
        other.order, other.cost, other._losses = self.order.copy(), self.cost, self._losses.copy()
        return other

    def start(self, order: NDArray[np.int64]) -> bool:
        """Climb from an order; return whether the best one became better."""
        sets, new, choice = self.sets, order.copy(), np.empty_like(order)
        arrays = sets.offsets, sets.masks, sets.costs
        cost = cost_of_order(*arrays, new, choice)
        if cost < np.inf:
            everything = np.ones(len(new), dtype=bool)
            climb(*arrays, new, choice, cost, everything, True, self._random)
            cost = cost_of_order(*arrays, new, choice)
        if cost < self._cost:
            self._current, self._cost = new.copy(), cost
        if cost >= self.cost - LEAST_GAIN:
            return False
        self.order, self.cost = new, cost
        return True

    def perturb(self, times: int, budget: Budget, hot: float = COLD) -> bool:
        """Perturb and climb several times, within the budget; return whether the best order became better.

        The temperature goes down from `hot` to `COLD` by equal factors.
        """
        before, sets = self.cost, self.sets
        arrays = sets.offsets, sets.masks, sets.costs
        for done in range(0, times, AT_ONCE):
            if budget.over() or self._cost == np.inf:
                break
            count, share = min(AT_ONCE, times - done), hot * (COLD / hot) ** (done / times)
            known = self._current, self._cost, self.order, self.cost
            perturbed_climbs(*arrays, *known, count, share, self._losses, self._random)
            # Added up anew, without the errors of many changes.
            choice = np.empty_like(self.order)
            self._cost = cost_of_order(*arrays, self._current, choice)
            self.cost = cost_of_order(*arrays, self.order, choice)
        return bool(self.cost < before - LEAST_GAIN)

    def choice(self) -> NDArray[np.int64]:
        """Return the parent sets of the best order, shape (V,)."""
        sets, choice = self.sets, np.empty(self.sets.n_variables, dtype=np.int64)
        cost_of_order(sets.offsets, sets.masks, sets.costs, self.order, choice)
        return choice
