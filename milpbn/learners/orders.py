"""Search over orders of the variables: the best parent sets for a given order, and for all orders at once.

Once an order is given, every variable chooses its parents among those before it by itself (Ihler's slides; Cooper &
Herskovits 1992 with all sets tried). Over all orders the same is done by dynamic programming over the subsets of
variables that come first (Silander & Myllymaki 2006).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.orders import PORTION, best_order_in_time
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.learners.base import Control, setting
from milpbn.learners.closed_form import Found
from milpbn.learners.decomposable import Decomposable, choose_max_parents, problem_of
from milpbn.learners.information import mutual_information
from milpbn.memory import require_memory
from milpbn.network.structure import Structure
from milpbn.scores.candidates import Candidates

#: Orders that have a name; what else is given are the variables themselves.
WORDS = ("information", "data", "random")
#: Seconds between two reports of dynamic programming.
REPORT_SECONDS = 5.0


def best_for_order(
    candidates: Candidates, weights: NDArray[np.float64], order: Sequence[int] | NDArray[np.integer]
) -> NDArray[np.int64]:
    """Return the heaviest candidate set of every variable among those whose members all come before it.

    Parameters
    ----------
    candidates : Candidates
        With the empty set among the sets of every variable.
    weights : float64 array, shape (P,)
        Local scores.
    order : sequence of int, length V
        All variables, parents before children.

    Returns
    -------
    int64 array, shape (V,)
        Entries of eta, of equally heavy ones the first.
    """
    place = np.empty(candidates.n_variables, dtype=np.int64)
    place[np.asarray(order)] = np.arange(candidates.n_variables)
    latest = np.full(candidates.n_sets, -1, dtype=np.int64)
    parent, _, entry = candidates.arcs
    np.maximum.at(latest, entry, place[parent])
    return candidates.heaviest(np.where(latest < place[candidates.variable], weights, -np.inf))


def find_order(data: Dataset, order: str | Sequence[str], random_state: int = 0) -> list[int]:
    """Return the variables in an order that a user describes.

    Parameters
    ----------
    data : Dataset
        Training data.
    order : str or sequence of str
        ``information`` (the class, then the features by falling I(C; X)), ``data`` (the class, then the features as the
        data have them), ``random``, or the names of all variables; the class may be left out and comes first then.
    random_state : int
        Seed of a random order.

    Raises
    ------
    InputError
        If names are unknown, repeated or missing.
    """
    c = data.n_features
    names = (order,) if isinstance(order, str) else tuple(order)
    if len(names) == 1 and names[0] in WORDS:
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
            f"The order has {wrong}; give {', '.join(WORDS)} or the name of every variable exactly once."
        )
    index = {name: i for i, name in enumerate(data.names)}
    return [index[name] for name in names]


@dataclass(frozen=True, kw_only=True)
class OrderSearch(Decomposable):
    """The best parent sets that a given order of the variables allows, found by trying all.

    Attributes
    ----------
    order : str or tuple of str
        See `find_order`.
    holdout : float
        Share of the rows held out to choose max_parents, up to the one given; 0 does not choose.
    """

    name = "order"
    summary = "Exhaustive search for the best parent sets, the order of the variables given."
    reference = "Ihler's slides; Cooper & Herskovits 1992."

    order: tuple[str, ...] | str = setting(
        "information", "Parents before children: information, data, random, or all names."
    )
    holdout: float = setting(0.0, "Share of the rows held out to choose max_parents; 0 does not choose.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.order, str):
            if not isinstance(self.order, Sequence) or not all(isinstance(name, str) for name in self.order):
                raise InputError(f"order must be a word or the names of all variables, got {self.order!r}.")
            object.__setattr__(self, "order", tuple(self.order))

    def search(self, data: Dataset, control: Control) -> Found:
        """Return the best structure; its score is in the details."""
        values: list[float] = []
        left = control.clock()

        def learn(rows: Dataset, max_parents: int, _: Control) -> Structure:
            # Not a share of the time: there is no answer until the tables of this number are there.
            problem = problem_of(rows, self.additive_spec(max_parents), left())
            choice = best_for_order(problem.candidates, problem.linear, order)
            values.append(float(problem.linear[choice].sum()))
            control.report(f"the best structure of the order: {values[-1]:.6f} nats")
            return problem.candidates.structure(choice)

        self.additive_spec()
        order = find_order(data, self.order, control.random_state)
        most, chosen = choose_max_parents(
            learn, data, self.max_parents, self.holdout, self.smoothing, control
        )
        structure = learn(data, most, control)
        return structure, {"score": values[-1], "order": [data.names[i] for i in order], **chosen}


@dataclass(frozen=True, kw_only=True)
class AllOrders(Decomposable):
    """The best structure over all orders, by dynamic programming: exact, in memory that doubles with each variable.

    When it is told to stop, the answer is the best structure of one order, by falling information on the class.
    """

    name = "all-orders"
    summary = "Exact network by dynamic programming over all orders, for some 25 variables at most."
    reference = "Silander & Myllymaki 2006."

    def search(self, data: Dataset, control: Control) -> Found:
        """Return the best structure; its score is in the details, and whether it is the best of all."""
        stopping = control.watch()
        V = data.n_variables
        score = self.additive_spec()
        # Per subset and variable a weight and an entry; per subset a total and the last variable.
        require_memory(
            (12 * V + 9) << V,
            f"Dynamic programming over the subsets of {V} variables",
            "use the learner exact, or fewer features",
        )
        problem = problem_of(data, score, control)
        candidates = problem.candidates
        masks = np.array([sum(1 << j for j in s) for s in candidates.flat], dtype=np.int64)
        choice = np.empty(V, dtype=np.int64)
        value = best_order_in_time(
            candidates.offsets, masks, problem.linear, choice, _told(stopping, V, control)
        )
        if value is None:
            choice = best_for_order(candidates, problem.linear, find_order(data, "information"))
            value = float(problem.linear[choice].sum())
            return candidates.structure(choice), {"score": value, "optimal": False, "stopped_early": True}
        control.report(f"the best structure of all orders: {value:.6f} nats")
        return candidates.structure(choice), {"score": value, "optimal": True, "stopped_early": False}


def _told(stopping: Callable[[], bool], n_variables: int, control: Control) -> Callable[[], bool]:
    """Return a question for `best_order_in_time` that reports, now and then, how many steps have begun."""
    steps = n_variables + max(1, (1 << n_variables) // PORTION)
    asked, last = 0, time.monotonic()

    def ask() -> bool:
        nonlocal asked, last
        asked += 1
        if time.monotonic() - last >= REPORT_SECONDS:
            control.report(f"dynamic programming over the sets of variables: step {asked} of at most {steps}")
            last = time.monotonic()
        return stopping()

    return ask
