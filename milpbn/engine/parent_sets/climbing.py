"""Structures by local search over orders: every variable takes its best parent set among its predecessors.

A step moves one variable to another place in the order (insertion). A perturbation moves some variables at random
(iterated local search; Scanagatta, Corani & Zaffalon 2017 use such moves for large problems). The first climb accepts
worse orders by simulated annealing.
"""

from __future__ import annotations

import copy
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.sums import EPS
from milpbn.engine.parent_sets.sets import (
    ParentSets,
    generator,
    has,
    inside,
    linked_sets,
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


class OrderState(NamedTuple):
    """An order, the place of each variable and its best parent set, and the variables to try to move.

    The arrays have the shape (V,). The queue has one entry more, the number of variables in it.
    """

    order: NDArray[np.int64]
    where: NDArray[np.int64]
    choice: NDArray[np.int64]
    queue: NDArray[np.int64]
    queued: NDArray[np.bool_]


def order_state(order: NDArray[np.int64]) -> OrderState:
    """Return the state of an order, whose places and parent sets `cost_of_order` fills in."""
    n = len(order)
    return OrderState(
        order.copy(), order.copy(), order.copy(), np.zeros(n + 1, dtype=np.int64), np.zeros(n, dtype=bool)
    )


@kernel(linked=True)
def _copy(state, other):  # type: ignore[no-untyped-def]
    state.order[:], state.where[:], state.choice[:] = other.order, other.where, other.choice


@kernel(linked=True)
def _enqueue(state, v):  # type: ignore[no-untyped-def]
    if not state.queued[v]:
        state.queue[state.queue[-1]] = v
        state.queue[-1] += 1
        state.queued[v] = True


@kernel(linked=True)
def _fits(sets, p, where):  # type: ignore[no-untyped-def]
    """Whether all members of a parent set are placed before its variable."""
    k, end, at = sets.starts[p], sets.starts[p + 1], where[sets.child[p]]
    while k < end and where[sets.members[k]] < at:
        k += 1
    return k == end


@kernel(linked=True)
def _first_fit(sets, p, end, where):  # type: ignore[no-untyped-def]
    """Return the first parent set from p on that fits, `end` if there is none before."""
    while p < end and not _fits(sets, p, where):
        p += 1
    return p


@kernel
def cost_of_order(sets, state):  # type: ignore[no-untyped-def]
    """Write the places and the best parent sets of an order; return their cost, inf if a variable has none."""
    for t in range(len(state.order)):
        state.where[state.order[t]] = t
    total = 0.0
    for i in state.order:
        p = _first_fit(sets, sets.offsets[i], sets.offsets[i + 1], state.where)
        if p == sets.offsets[i + 1]:
            return np.inf
        state.choice[i] = p
        total += sets.costs[p]
    return total


@kernel(inner=True)
def _move(sets, state, v, place):  # type: ignore[no-untyped-def]
    """Move a variable to a place, and choose parent sets anew; return the change of cost, inf if a variable has none.

    The variables whose sets change are enqueued.
    """
    order, where, choice, at = state.order, state.where, state.choice, state.where[v]
    step = 1 if at < place else -1
    for t in range(at, place, step):
        order[t] = order[t + step]
        where[order[t]] = t
    order[place], where[v] = v, place
    p, end = sets.offsets[v] if at < place else choice[v], sets.offsets[v + 1]
    p = _first_fit(sets, p, end, where)
    if p == end:
        return np.inf
    change = sets.costs[p] - sets.costs[choice[v]]
    choice[v] = p
    _enqueue(state, v)
    for h in range(sets.first[v], sets.first[v + 1]):
        p = sets.holding[h]
        u = sets.child[p]
        if at < place and p == choice[u] and where[u] < place:
            p = _first_fit(sets, p + 1, sets.offsets[u + 1], where)
            if p == sets.offsets[u + 1]:
                return np.inf
        elif place >= at or p >= choice[u] or not place < where[u] <= at or not _fits(sets, p, where):
            continue
        change += sets.costs[p] - sets.costs[choice[u]]
        choice[u] = p
        _enqueue(state, u)
    return change


@kernel(inner=True)
def _best_place(sets, state, v, steps):  # type: ignore[no-untyped-def]
    """Return the best place for a variable, its own if no other one gains.

    `steps`, shape (V,), is overwritten by how much the cost changes from each place among the others on.
    """
    where, choice, costs = state.where, state.choice, sets.costs
    n, at = len(where), where[v]
    steps[:] = 0.0
    last, gains, size = n - 1, 0.0, 0.0
    gained = -1
    for h in range(sets.first[v], sets.first[v + 1]):
        p = sets.holding[h]
        u = sets.child[p]
        if p == choice[u]:  # lost at places behind u
            where[v] = n
            q = _first_fit(sets, p + 1, sets.offsets[u + 1], where)
            if q == sets.offsets[u + 1]:
                last = min(last, where[u] - 1)
            else:
                steps[where[u]] += costs[q] - costs[p]
                size += costs[q] - costs[p]
        elif p < choice[u] and where[u] < at and u != gained:  # gained at places before u
            where[v] = -1
            if _fits(sets, p, where):
                gain, gained = costs[choice[u]] - costs[p], u
                steps[0] -= gain
                steps[where[u] + 1] += gain
                gains += gain
    where[v] = at
    # Cheaper sets of v need later places.
    least, own = n, costs[choice[v]]
    for p in range(sets.offsets[v], sets.offsets[v + 1]):
        if least == 0 or (p > choice[v] and costs[p] - own >= gains):
            break
        need = 0
        for k in range(sets.starts[p], sets.starts[p + 1]):
            t = where[sets.members[k]]
            need = max(need, t if t > at else t + 1)
        if need < least:
            steps[need] += costs[p] - own
            size += abs(costs[p] - own)
            if least < n:
                steps[least] -= costs[p] - own
            least = need
    # Sums of many steps have rounding errors.
    total, best, place = 0.0, -LEAST_GAIN - n * EPS * (size + gains), at
    for t in range(last + 1):
        total += steps[t]
        if total < best and t >= least:
            best, place = total, t
    return place


@kernel
def climb(sets, state, cost, thorough, steps, random):  # type: ignore[no-untyped-def]
    """Insert the variables in the queue elsewhere, until no insertion gains, and return the cost, which was `cost`.

    A variable whose parent set changes is tried again. `thorough` is whether to go on until no insertion of any
    variable gains. `steps`, shape (V,), is overwritten.
    """
    queue, again = state.queue, True
    while again:
        again = False
        while queue[-1]:
            k = random_below(random, queue[-1])
            v = queue[k]
            queue[-1] -= 1
            queue[k] = queue[queue[-1]]
            state.queued[v] = False
            place = _best_place(sets, state, v, steps)
            if place != state.where[v]:
                cost += _move(sets, state, v, place)
                again = thorough
        if again:
            for v in range(len(steps)):
                _enqueue(state, v)
    return cost


@kernel
def perturbed_climbs(sets, current, cost, best, best_cost, times, share, losses, random):  # type: ignore[no-untyped-def]
    """Perturb the current order and climb, `times` times; a worse order is accepted as in simulated annealing.

    The state `current`, which costs `cost`, and the order `best`, which costs `best_cost`, are overwritten. The
    temperature is a share of the mean of all losses, whose sum and number `losses`, shape (2,), grow.
    """
    n = len(best)
    steps = np.empty(n)
    new = OrderState(best.copy(), best.copy(), best.copy(), np.zeros(n + 1, np.int64), np.zeros(n, np.bool_))
    for _ in range(times):
        _copy(new, current)
        found = cost
        for _ in range(1 + random_below(random, KICK)):
            v = random_below(random, n)
            found += _move(sets, new, v, random_below(random, n))
            if found == np.inf:
                break
        if found == np.inf:
            new.queue[-1] = 0
            new.queued[:] = False
            continue
        found = climb(sets, new, found, False, steps, random)
        loss = found - cost
        if loss > LEAST_GAIN:
            losses[0] += loss
            losses[1] += 1
        # With probability exp(-loss / temperature).
        if loss <= LEAST_GAIN or loss * losses[1] < -math.log(1.0 - random_share(random)) * share * losses[0]:
            cost = found
            _copy(current, new)
            if found < best_cost - LEAST_GAIN:
                best_cost = found
                best[:] = new.order


def greedy_order(sets: ParentSets, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return an order in which the next variable is the one with the largest weight of sets among its predecessors.

    `weights`, shape (P,), are for example those of a fractional point. Where no variable has any, as on cycles, the
    next one is that which loses least, compared with its cheapest set with a weight.
    """
    used = np.flatnonzero(weights > 0)
    order, own = np.empty(sets.n_variables, dtype=np.int64), np.full(sets.n_variables, np.inf)
    np.minimum.at(own, sets.child[used], sets.costs[used])
    _greedy(sets, used, weights, own, order)
    return order


@kernel
def _greedy(sets, used, weights, own, order):  # type: ignore[no-untyped-def]
    n = len(order)
    placed = np.zeros(sets.masks.shape[1], dtype=np.uint64)
    total, loss = np.empty(n), np.empty(n)
    for t in range(n):
        total[:], loss[:] = 0.0, 0.0
        for p in used:
            if inside(sets.masks[p], placed):
                total[sets.child[p]] += weights[p]
        stuck = True
        for i in range(n):
            stuck = stuck and (has(placed, i) or total[i] == 0.0)
        if stuck:
            for i in range(n):
                p, end = sets.offsets[i], sets.offsets[i + 1]
                while p < end and not inside(sets.masks[p], placed):
                    p += 1
                loss[i] = sets.costs[p] - own[i] if p < end else np.inf
        best = -1
        for i in range(n):
            if not has(placed, i) and (
                best < 0 or total[i] > total[best] or (total[i] == total[best] and loss[i] < loss[best])
            ):
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
        self.sets, self._linked, self._random = sets, linked_sets(sets), generator(seed)
        self._current = order_state(np.arange(sets.n_variables))
        self._cost, self._losses = np.inf, np.zeros(2)
        self.order, self.cost = self._current.order.copy(), np.inf

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
        other = copy.copy(self)
        other._random, other._losses = generator(seed), self._losses.copy()
        other._current, other.order = order_state(self._current.order), self.order.copy()
        cost_of_order(other._linked, other._current)
        return other

    def start(self, order: NDArray[np.int64], *, afresh: bool = False) -> bool:
        """Climb from an order, and go on there if it gets better than the current one, or `afresh`.

        Return whether the best one became better.
        """
        sets, new = self._linked, order_state(order)
        cost = cost_of_order(sets, new)
        if cost < np.inf:
            new.queue[:-1], new.queue[-1], new.queued[:] = order, len(order), True
            climb(sets, new, cost, True, np.empty(len(order)), self._random)
            cost = cost_of_order(sets, new)
        if afresh or cost < self._cost:
            self._current, self._cost = new, cost
        if cost >= self.cost - LEAST_GAIN:
            return False
        self.order, self.cost = new.order.copy(), cost
        return True

    def perturb(self, times: int, budget: Budget, hot: float = COLD) -> bool:
        """Perturb and climb several times, within the budget; return whether the best order became better.

        The temperature goes down from `hot` to `COLD` by equal factors.
        """
        before, sets, current = self.cost, self._linked, self._current
        for done in range(0, times, AT_ONCE):
            if budget.over() or self._cost == np.inf:
                break
            count, share = min(AT_ONCE, times - done), hot * (COLD / hot) ** (done / times)
            known = current, self._cost, self.order, self.cost
            perturbed_climbs(sets, *known, count, share, self._losses, self._random)
            # Added up anew, without the errors of many changes.
            self._cost = cost_of_order(sets, current)
            self.cost = cost_of_order(sets, order_state(self.order))
        return bool(self.cost < before - LEAST_GAIN)

    def choice(self) -> NDArray[np.int64]:
        """Return the parent sets of the best order, shape (V,)."""
        state = order_state(self.order)
        cost_of_order(self._linked, state)
        return state.choice
