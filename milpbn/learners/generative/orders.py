"""Search over orders of the variables: the best parent sets for a given order, and for all orders at once.

If the order is given, the best parents of each variable among its predecessors are independent of the other variables'
parents (Ihler's slides; Cooper & Herskovits 1992, here with all sets tried). The best structure over all orders follows
by dynamic programming over the subsets of variables that can come first (Silander & Myllymaki 2006).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.engine.parent_sets import subsets
from milpbn.engine.parent_sets.sets import list_sets
from milpbn.errors import InputError
from milpbn.heuristics.information import mutual_information
from milpbn.learners.base import Control, setting
from milpbn.learners.generative.closed_form import Found
from milpbn.learners.generative.decomposable import Decomposable, choose_max_parents, problem_of
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Candidates
from milpbn.util.budget import Budget
from milpbn.util.memory import require_memory

#: Orders that have a name; any other order is a list of the variables.
NAMED_ORDERS = ("information", "data", "random")
#: Seconds between two reports of dynamic programming.
REPORT_SECONDS = 5.0


def best_for_order(
    candidates: Candidates, weights: NDArray[np.float64], order: Sequence[int] | NDArray[np.integer]
) -> NDArray[np.int64]:
    """Return the best candidate set of every variable among those whose members all precede it in an order.

    The candidates of every variable include the empty set. The weights are local scores, shape (P,). The order has all
    variables, parents before children. The result has the indices of the parent sets, shape (V,); of equally good sets
    the first.
    """
    place = np.empty(candidates.n_variables, dtype=np.int64)
    place[np.asarray(order)] = np.arange(candidates.n_variables)
    latest = np.full(candidates.n_sets, -1, dtype=np.int64)
    parent, _, index = candidates.arcs
    np.maximum.at(latest, index, place[parent])
    return candidates.heaviest(np.where(latest < place[candidates.variable], weights, -np.inf))


def find_order(data: Dataset, order: str | Sequence[str], random_state: int = 0) -> list[int]:
    """Return the order of the variables that the user has given.

    Parameters
    ----------
    order : str or sequence of str
        ``information`` (the class, then the features by decreasing I(C; X)), ``data`` (the class, then the features in
        the order of the data), ``random``, or the names of all variables. If the class is left out, it comes first.

    Raises
    ------
    InputError
        If names are unknown, repeated or missing.
    """
    c = data.n_features
    names = (order,) if isinstance(order, str) else tuple(order)
    if len(names) == 1 and names[0] in NAMED_ORDERS:
        if names[0] == "random":
            return [int(i) for i in np.random.default_rng(random_state).permutation(c + 1)]
        if names[0] == "data":
            return [c, *range(c)]
        return [c, *np.argsort(-mutual_information(data)[c, :c], kind="stable").tolist()]
    if data.names[-1] not in names:
        names = (data.names[-1], *names)
    missing = [name for name in data.names if name not in names]
    surplus = [name for k, name in enumerate(names) if name not in data.names or name in names[:k]]
    if surplus or missing:
        wrong = f"{surplus[0]!r} once too often" if surplus else f"no {missing[0]!r}"
        raise InputError(
            f"The order has {wrong}; give {', '.join(NAMED_ORDERS)} or the name of every variable exactly once."
        )
    index = {name: i for i, name in enumerate(data.names)}
    return [index[name] for name in names]


@dataclass(frozen=True, kw_only=True)
class OrderSearch(Decomposable):
    """The best structure for a given order of the variables, found by exhaustive search over the parent sets."""

    name = "order"
    summary = "Exhaustive search for the best parent sets, for a given order of the variables."
    reference = "Ihler's slides; Cooper & Herskovits 1992."

    order: tuple[str, ...] | str = setting(
        "information",
        "Order of the variables, parents first: information, data, random, or the names of all variables.",
    )
    holdout: float = setting(
        0.0, "Share of the rows held out to choose max_parents; 0 uses the value of --max-parents."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.order, str):
            if not isinstance(self.order, Sequence) or not all(isinstance(name, str) for name in self.order):
                raise InputError(
                    f"order must be {', '.join(NAMED_ORDERS)} or the names of all variables, got {self.order!r}."
                )
            object.__setattr__(self, "order", tuple(self.order))

    def search(self, data: Dataset, control: Control, budget: Budget) -> Found:
        """Return the best structure for the order; the details include its score."""
        values: list[float] = []

        def learn(rows: Dataset, max_parents: int, _: Budget) -> Structure:
            # All the remaining time, not a share of it: without these local scores there is no result.
            problem = problem_of(rows, self.additive_spec(max_parents), control, budget, dominated=False)
            choice = best_for_order(problem.candidates, problem.linear, order)
            values.append(float(problem.linear[choice].sum()))
            control.report(f"the best structure of the order: {values[-1]:.6f} nats")
            return problem.candidates.structure(choice)

        self.additive_spec()
        order = find_order(data, self.order, control.random_state)
        most, chosen = choose_max_parents(learn, data, self, self.holdout, control, budget)
        structure = learn(data, most, budget)
        return structure, {"score": values[-1], "order": [data.names[i] for i in order], **chosen}


@dataclass(frozen=True, kw_only=True)
class AllOrders(Decomposable):
    """The best structure over all orders, found by dynamic programming in memory that doubles with each variable.

    If the search is stopped, the result is the best structure for one order: features by decreasing I(C; X).
    """

    name = "all-orders"
    summary = "Exact network by dynamic programming over all orders, for at most about 25 variables."
    reference = "Silander & Myllymaki 2006."

    def search(self, data: Dataset, control: Control, budget: Budget) -> Found:
        """Return the best structure; the details include its score and whether it is optimal."""
        V = data.n_variables
        score = self.additive_spec()
        require_memory(
            subsets.most_bytes(V),
            f"Dynamic programming over the subsets of {V} variables",
            "use the learner exact, or fewer features",
        )
        problem = problem_of(data, score, control, budget, dominated=False)
        candidates = problem.candidates
        listed = list_sets(candidates, problem.linear)
        program = subsets.SubsetProgram(listed.sets, np.ones(listed.sets.n_sets, dtype=bool))
        solution = program.solve(Budget(whole=budget, cancelled=_reporting(V, control)))
        if solution is None:
            choice = best_for_order(candidates, problem.linear, find_order(data, "information"))
            value = float(problem.linear[choice].sum())
            return candidates.structure(choice), {"score": value, "optimal": False, "stopped_early": True}
        choice = listed.in_eta[solution.choice]
        value = float(problem.linear[choice].sum())
        control.report(f"the best structure of all orders: {value:.6f} nats")
        return candidates.structure(choice), {"score": value, "optimal": True, "stopped_early": False}


def _reporting(n_variables: int, control: Control) -> Callable[[], bool]:
    """Return a function that reports how often it was called, and stops nothing."""
    steps = 2 * n_variables + (1 << n_variables) // subsets.AT_ONCE
    calls, last = 0, time.monotonic()

    def reporting() -> bool:
        nonlocal calls, last
        calls += 1
        if time.monotonic() - last >= REPORT_SECONDS:
            control.report(f"dynamic programming over the sets of variables: step {calls} of at most {steps}")
            last = time.monotonic()
        return False

    return reporting
