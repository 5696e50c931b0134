"""Check that some structure obeys all constraints; if not, find a minimal set of constraints that conflict."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.problem.candidates import Admitted, Candidates, admitted_sets
from milpbn.problem.constraints import Atom, Constraints, Rules, atoms, combine
from milpbn.problem.rows import children_block, features_block, order_block, set_block, stack
from milpbn.problem.scores.spec import Score
from milpbn.problem.screening import sets_up_to
from milpbn.util.graphs import with_ancestors


def resolve(constraints: Constraints, names: Sequence[str], score: Score) -> tuple[Rules, list[Admitted]]:
    """Turn named constraints into rules, and what these and the options admit; some structure obeys them.

    The parent sets are not listed (`milpbn.problem.candidates.list_candidates`). If no structure obeys all constraints,
    the message of the InputError names a minimal conflicting subset: if any one of its constraints is dropped, some
    structure obeys the others.
    """
    parts = atoms(constraints, names)
    if _feasible(parts, names, score):
        rules = combine(parts)
        return rules, admitted_sets(len(names) - 1, score, rules)
    binding = [p for p in parts if not p.rules.arc_weights]
    needed = minimal_conflict(binding, names, score)
    if len(needed) == 1:
        raise InputError(
            f"No structure with {score.limits} obeys this constraint: {needed[0].text}. Drop or change it."
        )
    shown = "; ".join(p.text for p in needed)
    raise InputError(
        f"With {score.limits} these constraints exclude each other: {shown}. Drop or change one of them."
    )


def minimal_conflict(parts: Sequence[Atom], names: Sequence[str], score: Score) -> list[Atom]:
    """Return a conflicting subset; some structure obeys each of its proper subsets (deletion filter)."""
    needed = list(parts)
    # Large blocks are dropped first: most constraints of a long list have no part in the conflict.
    size = len(needed) // 2
    while size >= 1:
        start = 0
        while start < len(needed):
            rest = needed[:start] + needed[start + size :]
            if _feasible(rest, names, score):
                start += size
            else:
                needed = rest
        size //= 2
    return needed


def _fixed_agree(parts: Sequence[Atom], names: Sequence[str], score: Score) -> bool:
    """Return whether no two constraints fix different parent sets of a variable, and each is within the limits."""
    fixed: dict[int, frozenset[int]] = {}
    for part in parts:
        for i, parents in part.rules.fixed.items():
            if fixed.setdefault(i, parents) != parents:
                return False
            if len(parents) > score.max_parents or (
                i == len(names) - 1 and parents and not score.class_parents
            ):
                return False
    return True


def _feasible(parts: Sequence[Atom], names: Sequence[str], score: Score) -> bool:
    if not _fixed_agree(parts, names, score):
        return False
    rules = combine(parts)
    if not _paths_agree(rules, len(names)):
        return False
    smallest = sets_up_to(names, admitted_sets(len(names) - 1, score, rules), [0] * len(names))
    return feasible_structure(smallest, rules) is not None


def _paths_agree(rules: Rules, n: int) -> bool:
    """Return whether arcs and paths that must be there form no cycle, and none that must not be there.

    This is necessary only: whether parent sets admit the paths is decided by the search.
    """
    parents: list[set[int]] = [set(rules.fixed.get(i, ())) for i in range(n)]
    for j, i in (*rules.required, *rules.ancestors):
        parents[i].add(j)
    cyclic = any(i in with_ancestors(parents, parents[i]) for i in range(n))
    return not cyclic and all(a not in with_ancestors(parents, [b]) for a, b in rules.no_ancestors)


def feasible_structure(candidates: Candidates, rules: Rules) -> Structure | None:
    """Return some structure over the candidates that obeys the rules but those on paths, or None if there is none.

    Without child limits, variables are placed greedily: a variable can come next if one of its candidates is a subset
    of the variables already placed, and placing it only adds options for the others. With child limits, a small MILP
    is solved.
    """
    if any(not s for s in candidates.sets):
        return None
    if rules.max_children:
        return _feasible_by_milp(candidates, rules)
    chosen: dict[int, tuple[int, ...]] = {}
    placed: set[int] = set()
    waiting = set(range(candidates.n_variables))
    while waiting:
        ready = {}
        for i in waiting:
            fitting = next((s for s in candidates.sets[i] if placed.issuperset(s)), None)
            if fitting is not None:
                ready[i] = fitting
        if not ready:
            return None
        chosen |= ready
        placed |= ready.keys()
        waiting -= ready.keys()
    return Structure(candidates.names, tuple(chosen[i] for i in range(candidates.n_variables)))


def _feasible_by_milp(candidates: Candidates, rules: Rules) -> Structure | None:
    """Decide by rows (4)-(6) and (16) of Peharz & Pernkopf (2012), with Delta = V, and rows of the limits."""
    P, V = candidates.n_sets, candidates.n_variables
    blocks = [
        set_block(candidates),
        order_block(candidates, P, arcs_only=True),
        children_block(candidates, rules.max_children),
    ]
    width = P + V
    if rules.max_features is not None:
        blocks.append(features_block(candidates, rules.max_features, width))
        width += V - 1
    rows = stack(blocks, width)
    result = scipy.optimize.milp(
        np.zeros(width),
        integrality=np.concatenate([np.ones(P), np.zeros(width - P)]),
        bounds=scipy.optimize.Bounds(0.0, np.repeat([1.0, float(V)], [P, width - P])),
        constraints=scipy.optimize.LinearConstraint(rows.matrix, rows.lower, rows.upper),
    )
    if result.x is None:
        return None
    chosen = [int(np.flatnonzero((candidates.variable == i) & (result.x[:P] > 0.5))[0]) for i in range(V)]
    return candidates.structure(chosen)
