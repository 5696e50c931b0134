"""The forest with the best AICc: spanning forests for a sequence of multipliers, and a small MILP if a gap is left.

AICc = L - k - k (k + 1) / (M - k - 1) is not a sum over edges, but its correction h(k) = k + k (k + 1) / (M - k - 1) is
convex in the total number of parameters k. For every Lagrange multiplier u of a parameter,

    max over forests of (L - u k)  +  max over k of (u k - h(k))

is an upper bound on the AICc of all forests. The first maximum is a maximum-weight forest. At the best multiplier the
bound often equals the AICc of a forest. Otherwise reduced-cost fixing excludes the edges that no better forest can
have: with such an edge forced in, the bound is below the AICc of the best forest so far. The MILP of `milpbn.solve`
then decides among the other edges.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milpbn.claims.result import is_optimal
from milpbn.data.dataset import Dataset
from milpbn.errors import InputError, NoIncumbentError
from milpbn.heuristics.spanning import (
    MINIMAL_GAIN,
    EdgeTerms,
    Parents,
    forest_structure,
    positive_forest,
    spanning_tree,
)
from milpbn.learners.base import Control, solver_limits
from milpbn.problem.constraints import Constraints
from milpbn.problem.counts import n_parameters
from milpbn.problem.rescore import rescore
from milpbn.problem.scores.aicc import AiccCurve
from milpbn.problem.scores.spec import Score
from milpbn.solving.api import solve
from milpbn.util.budget import Budget

#: Number of times that the range of the multiplier is halved.
HALVINGS = 60


@dataclass(frozen=True)
class Relaxation:
    """The best forest and the smallest bound of the Lagrangian relaxation."""

    #: AICc of the forest `above`, and upper bound on the AICc of every forest. Both leave out the log-likelihood of the
    #: forest without edges.
    value: float
    bound: float
    above: Parents
    #: The multiplier of the bound, in nats per parameter.
    multiplier: float


def aicc_forest(
    data: Dataset, terms: EdgeTerms, root: int, control: Control, budget: Budget, *, conditional: bool
) -> tuple[Parents, dict[str, Any]]:
    """Return the forest with the best AICc, and details, as `ForestOptions.grow` does.

    Parameters
    ----------
    terms : EdgeTerms
        Log-likelihood and parameters that each edge adds.
    budget : Budget
        That of the MILP.
    conditional : bool
        True: a forest of the features given the class; AICc counts the parameters of the class too.
        False: a forest of all variables.

    Raises
    ------
    InputError
        If AICc is undefined even for the forest without edges.
    """
    none = np.full(len(terms.gain), -1, dtype=np.int64)
    bare = forest_structure(data, none, conditional=conditional)
    base = sum(n_parameters(data, i, parents) for i, parents in enumerate(bare.parents))
    curve = AiccCurve(terms.parameters, float(data.weights.sum()))
    if base >= curve.total_weight - 1:
        raise InputError(
            f"AICc is defined for fewer than M - 1 = {curve.total_weight - 1:g} parameters, and without any edge there "
            f"are {base}; use more data, or the penalty bic."
        )
    relaxed = solve_relaxation(terms, base, curve, root)
    above, optimal = relaxed.above, is_optimal(relaxed.value, relaxed.bound)
    if not optimal:
        allowed = open_edges(terms, relaxed, MINIMAL_GAIN * curve.total_weight)
        control.report(
            f"AICc: a forest within {relaxed.bound - relaxed.value:.6f} nats of the bound; "
            f"the MILP decides among {int(allowed.sum()) // 2} edges"
        )
        above, optimal = _by_milp(data, above, allowed, root, control, budget, conditional=conditional)
    value = rescore(data, forest_structure(data, above, conditional=conditional), Score(name="aicc"))
    edges = int(np.count_nonzero(above >= 0))
    # The MILP ends without a proof only if a limit or the user stops it.
    return above, {"edges": edges, "aicc": value, "optimal": optimal, "stopped_early": not optimal}


def solve_relaxation(terms: EdgeTerms, base: int, curve: AiccCurve, root: int) -> Relaxation:
    """Minimise the bound over the multiplier by bisection, and keep the best forest.

    The bound is convex in the multiplier. Its slope is the k of the second maximum less the parameters of the forest of
    the first one.

    There are `base` parameters without edges, fewer than M - 1. The curve is the correction h.
    """
    counts = range(base, int(np.ceil(curve.total_weight - 1)))  # all k that AICc is defined for

    def step(k: int) -> float:
        return curve.correction(k + 1) - curve.correction(k)

    tolerance = MINIMAL_GAIN * curve.total_weight
    best = Relaxation(-curve.correction(base), np.inf, np.full(len(terms.gain), -1, dtype=np.int64), 0.0)
    # The correction grows by more than 1 nat per parameter. Above the largest gain per parameter, no edge has a
    # positive weight.
    low, high = 1.0, 2.0 + float((terms.gain / np.maximum(terms.parameters, 1)).max())
    for _ in range(HALVINGS):
        multiplier = float(np.sqrt(low * high))
        above = positive_forest(terms.gain - multiplier * terms.parameters, root, tolerance)
        inner = np.flatnonzero(above >= 0)
        gain = float(terms.gain[inner, above[inner]].sum())
        k = base + int(terms.parameters[inner, above[inner]].sum())
        best_k = counts[bisect_right(counts[:-1], multiplier, key=step)]
        bound = gain - multiplier * (k - best_k) - curve.correction(best_k)
        value = gain - curve.correction(k)
        if value > best.value:
            best = Relaxation(value, best.bound, above, best.multiplier)
        if bound < best.bound:
            best = Relaxation(best.value, bound, best.above, multiplier)
        if is_optimal(best.value, best.bound):
            break
        low, high = (low, multiplier) if best_k > k else (multiplier, high)
    return best


def open_edges(terms: EdgeTerms, relaxed: Relaxation, tolerance: float) -> NDArray[np.bool_]:
    """Return which edges a better forest may have, symmetric, shape (K, K).

    If an edge is forced into the maximum-weight forest, it replaces the lightest edge on the path between its ends, or
    no edge if there is no such path. The change of the weight is added to the bound.
    """
    weights = terms.gain - relaxed.multiplier * terms.parameters
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
    forced = relaxed.bound + np.minimum(0.0, weights - lightest)
    allowed = forced >= relaxed.value - tolerance - 1e-9 * max(1.0, abs(relaxed.value))
    np.fill_diagonal(allowed, False)
    return allowed


def _by_milp(
    data: Dataset,
    start: Parents,
    allowed: NDArray[np.bool_],
    root: int,
    control: Control,
    budget: Budget,
    *,
    conditional: bool,
) -> tuple[Parents, bool]:
    """Return the best forest of the allowed edges by the MILP, and whether it is proved optimal."""
    names, target = data.names, data.names[-1]
    neighbours = {names[i]: [names[j] for j in np.flatnonzero(row)] for i, row in enumerate(allowed)}
    if conditional:
        score = Score(name="aicc", max_parents=2, class_parents=False)
        required = tuple((target, name) for name in neighbours)
        parents = {name: (target, *others) for name, others in neighbours.items()}
        rules = Constraints(required=required, allowed=parents)
    else:
        score = Score(name="aicc", max_parents=1, parent_sets="all")
        rules = Constraints(allowed={name: tuple(others) for name, others in neighbours.items()})
    try:
        result = solve(
            data,
            score,
            constraints=rules,
            start=forest_structure(data, start, conditional=conditional),
            acyclicity="cluster",
            **solver_limits(budget),
            threads=control.n_jobs,
            random_state=control.random_state,
        )
    except NoIncumbentError:  # the time limit ended before the start was scored
        return start, False
    assert result.structure is not None  # at least the start
    K = len(allowed)
    edges = np.zeros((K, K))
    for j, i in result.structure.arcs:
        if not (conditional and K in (j, i)):
            edges[i, j] = edges[j, i] = 1.0
    return positive_forest(edges, root, 0.5), result.optimal
