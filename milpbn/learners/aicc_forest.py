"""The forest of the best AICc: Kruskal's algorithm along a path of penalties, and a small MILP for what is left.

AICc = L - k - k (k + 1) / (M - k - 1) is not a sum over edges, but its correction h(k) is convex in the total number of
parameters k. For every price of a parameter

    max over forests of L - price k  +  max over k of price k - h(k)

bounds the AICc of all forests from above; the first maximum is a spanning tree. At the best price, bound and forest
often meet. Otherwise edges whose bound, once they are forced in, lies below the best forest are deleted, and the MILP
of `milpbn.solve` decides among the others.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError, NoIncumbentError
from milpbn.learners.base import Control
from milpbn.learners.spanning import (
    MINIMAL_GAIN,
    EdgeTerms,
    Parents,
    forest_structure,
    positive_forest,
    spanning_tree,
)
from milpbn.result import is_optimal
from milpbn.scores.constraints import Constraints
from milpbn.scores.generative import AiccCurve, n_parameters
from milpbn.scores.rescore import rescore
from milpbn.scores.spec import Score

#: Halvings of the range of prices.
HALVINGS = 60


@dataclass(frozen=True)
class Priced:
    """The best forest and the least bound that prices have led to.

    Attributes
    ----------
    value, bound : float
        AICc of the forest, and upper bound on that of every forest, both without the log-likelihood of no edges.
    above : int64 array, shape (K,)
        The forest.
    price : float
        Nats per parameter at which the bound was found.
    """

    value: float
    bound: float
    above: Parents
    price: float


def aicc_forest(
    data: Dataset, terms: EdgeTerms, root: int, control: Control, *, conditional: bool
) -> tuple[Parents, dict[str, Any]]:
    """Return the forest of the best AICc; parameters and answer as those of `milpbn.learners.forests.forest`.

    Parameters
    ----------
    data : Dataset
        Training data.
    terms : EdgeTerms
        What each edge adds.
    root : int
        Variable at the root.
    control : Control
        Time limit and threads of the MILP.
    conditional : bool
        Over the features given the class; the parameters of all variables count.

    Raises
    ------
    InputError
        If AICc is undefined even for the forest without edges.
    """
    started = time.monotonic()
    none = np.full(len(terms.gain), -1, dtype=np.int64)
    bare = forest_structure(data, none, conditional=conditional)
    base = sum(n_parameters(data, i, parents) for i, parents in enumerate(bare.parents))
    curve = AiccCurve(terms.parameters, float(data.weights.sum()))
    if base >= curve.total_weight - 1:
        raise InputError(
            f"AICc is defined for fewer than M - 1 = {curve.total_weight - 1:g} parameters, and without any edge there "
            f"are {base}; use more data, or the penalty bic."
        )
    priced = search_prices(terms, base, curve, root)
    above, optimal = priced.above, is_optimal(priced.value, priced.bound)
    if not optimal:
        allowed = open_edges(terms, priced, MINIMAL_GAIN * curve.total_weight)
        control.report(
            f"AICc: a forest within {priced.bound - priced.value:.6f} nats of the bound; "
            f"the MILP decides among {int(allowed.sum()) // 2} edges"
        )
        above, optimal = _by_milp(data, above, allowed, root, control, started, conditional=conditional)
    value = rescore(data, forest_structure(data, above, conditional=conditional), Score(name="aicc"))
    edges = int(np.count_nonzero(above >= 0))
    # Nothing but a limit, or the user, ends the MILP without a proof.
    return above, {"edges": edges, "aicc": value, "optimal": optimal, "stopped_early": not optimal}


def search_prices(terms: EdgeTerms, base: int, curve: AiccCurve, root: int) -> Priced:
    """Minimise the bound over prices by halving, and keep the best forest met.

    The bound is convex in the price; its slope is the number of parameters that the price is worth less those of the
    forest.

    Parameters
    ----------
    terms : EdgeTerms
        What each edge adds.
    base : int
        Parameters without edges, fewer than M - 1.
    curve : AiccCurve
        The correction h.
    root : int
        Variable at the root.
    """
    counts = range(base, int(np.ceil(curve.total_weight - 1)))  # all k that AICc is defined for

    def step(k: int) -> float:
        return curve.correction(k + 1) - curve.correction(k)

    tolerance = MINIMAL_GAIN * curve.total_weight
    best = Priced(-curve.correction(base), np.inf, np.full(len(terms.gain), -1, dtype=np.int64), 0.0)
    # A parameter costs more than 1 nat, and beyond the largest gain per parameter no edge pays.
    low, high = 1.0, 2.0 + float((terms.gain / np.maximum(terms.parameters, 1)).max())
    for _ in range(HALVINGS):
        price = float(np.sqrt(low * high))
        above = positive_forest(terms.gain - price * terms.parameters, root, tolerance)
        inner = np.flatnonzero(above >= 0)
        gain = float(terms.gain[inner, above[inner]].sum())
        k = base + int(terms.parameters[inner, above[inner]].sum())
        worth = counts[bisect_right(counts[:-1], price, key=step)]
        bound = gain - price * (k - worth) - curve.correction(worth)
        value = gain - curve.correction(k)
        if value > best.value:
            best = Priced(value, best.bound, above, best.price)
        if bound < best.bound:
            best = Priced(best.value, bound, best.above, price)
        if is_optimal(best.value, best.bound):
            break
        low, high = (low, price) if worth > k else (price, high)
    return best


def open_edges(terms: EdgeTerms, priced: Priced, tolerance: float) -> NDArray[np.bool_]:
    """Return which edges a better forest may have, symmetric, shape (K, K).

    Forced into the forest of the best price, an edge takes the place of the lightest one on the path between its ends,
    if there is one that weighs more than nothing. The rest of the bound stays.
    """
    weights = terms.gain - priced.price * terms.parameters
    K = len(weights)
    above = spanning_tree(weights, 0)
    lightest = np.full((K, K), np.inf)
    reached = [0]
    waiting = set(range(1, K))
    while waiting:
        for i in [i for i in waiting if above[i] not in waiting]:
            link = max(0.0, float(weights[i, above[i]]))
            lightest[i, reached] = lightest[reached, i] = np.minimum(lightest[above[i], reached], link)
            reached.append(i)
            waiting.remove(i)
    forced = priced.bound + np.minimum(0.0, weights - lightest)
    allowed = forced >= priced.value - tolerance - 1e-9 * max(1.0, abs(priced.value))
    np.fill_diagonal(allowed, False)
    return allowed


def _by_milp(
    data: Dataset,
    start: Parents,
    allowed: NDArray[np.bool_],
    root: int,
    control: Control,
    started: float,
    *,
    conditional: bool,
) -> tuple[Parents, bool]:
    """Return the best forest of some edges, and whether that is proved: one parent at most, beside the class."""
    from milpbn.solving import solve  # whose first incumbent is a tree of `milpbn.learners.tan`

    names, target = data.names, data.names[-1]
    near = {names[i]: [names[j] for j in np.flatnonzero(row)] for i, row in enumerate(allowed)}
    if conditional:
        score = Score(name="aicc", max_parents=2, class_parents=False)
        required = tuple((target, name) for name in near)
        rules = Constraints(required=required, allowed={name: (target, *js) for name, js in near.items()})
    else:
        score = Score(name="aicc", max_parents=1, parent_sets="all")
        rules = Constraints(allowed={name: tuple(js) for name, js in near.items()})
    try:
        result = solve(
            data,
            score,
            constraints=rules,
            started=started,
            start=forest_structure(data, start, conditional=conditional),
            acyclicity="cluster",
            backend="highs",
            time_limit=control.time_limit,
            threads=control.n_jobs,
            random_state=control.random_state,
        )
    except NoIncumbentError:  # the time was over before the start was scored
        return start, False
    assert result.structure is not None  # the start is one
    K = len(allowed)
    edges = np.zeros((K, K))
    for j, i in result.structure.arcs:
        if not (conditional and K in (j, i)):
            edges[i, j] = edges[j, i] = 1.0
    return positive_forest(edges, root, 0.5), result.optimal
