"""Whether any structure obeys all constraints, and if not, which few of them exclude each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from milpbn.errors import InputError
from milpbn.network.structure import Structure
from milpbn.scores.candidates import Candidates, build_candidates
from milpbn.scores.constraints import Atom, Constraints, Rules, atoms, combine
from milpbn.scores.spec import Score


def resolve(constraints: Constraints, names: Sequence[str], score: Score) -> tuple[Rules, Candidates]:
    """Turn named constraints into rules and candidate sets that some structure obeys.

    Raises
    ------
    InputError
        If no structure obeys all of them; the sentence names a minimal conflicting subset: without any one
        of those constraints the others can be met.
    """
    parts = atoms(constraints, names)
    if _feasible(parts, names, score):
        rules = combine(parts)
        return rules, build_candidates(names, score, rules)
    binding = [p for p in parts if not p.rules.arc_weights]
    needed = minimal_conflict(binding, names, score)
    limits = f"max_parents = {score.max_parents}" + ("" if score.class_parents else " and no class parents")
    if len(needed) == 1:
        raise InputError(
            f"No structure with {limits} obeys this constraint: {needed[0].text}. Drop or change it."
        )
    shown = "; ".join(p.text for p in needed)
    raise InputError(
        f"With {limits} these constraints exclude each other: {shown}. Drop or change one of them."
    )


def minimal_conflict(parts: Sequence[Atom], names: Sequence[str], score: Score) -> list[Atom]:
    """Return a conflicting subset of which every proper subset can be met (deletion filter)."""
    needed = list(parts)
    # Halves first: most constraints of a long list have no part in the conflict.
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


def _feasible(parts: Sequence[Atom], names: Sequence[str], score: Score) -> bool:
    fixed: dict[int, frozenset[int]] = {}
    for part in parts:
        for i, parents in part.rules.fixed.items():
            if fixed.setdefault(i, parents) != parents:
                return False
            if len(parents) > score.max_parents or (
                i == len(names) - 1 and parents and not score.class_parents
            ):
                return False
    rules = combine(parts)
    return feasible_structure(build_candidates(names, score, rules), rules) is not None


def feasible_structure(candidates: Candidates, rules: Rules) -> Structure | None:
    """Return some structure over the candidates that obeys the rules, or None if there is none.

    Without child limits a greedy order decides: a variable can come next if one of its candidates lies among
    those already placed, and placing it never hurts the others. With them a small MILP decides.
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
    """Decide by P12's (4)-(6) and (16) with Delta = V, plus one row per child limit."""
    P, V = candidates.n_sets, candidates.n_variables
    parent, child, entry = candidates.arcs
    one = sp.csr_array((np.ones(P), (candidates.variable, np.arange(P))), shape=(V, P + V))
    arcs = np.unique(np.stack([parent, child]), axis=1)
    row_of = {(int(j), int(i)): r for r, (j, i) in enumerate(arcs.T)}
    rows = np.array([row_of[int(j), int(i)] for j, i in zip(parent, child, strict=True)], dtype=np.int64)
    r = np.arange(arcs.shape[1])
    order = sp.csr_array(
        (
            np.concatenate([np.full(len(rows), -2.0 * V), np.ones(len(r)), -np.ones(len(r))]),
            (np.concatenate([rows, r, r]), np.concatenate([entry, P + arcs[1], P + arcs[0]])),
        ),
        shape=(len(r), P + V),
    )
    limited = sorted(rules.max_children)
    children = sp.csr_array((len(limited), P + V))
    if limited:
        at = {j: k for k, j in enumerate(limited)}
        keep = np.isin(parent, limited)
        places = ([at[int(j)] for j in parent[keep]], entry[keep])
        children = sp.csr_array((np.ones(int(keep.sum())), places), shape=(len(limited), P + V))
    result = milp(
        np.zeros(P + V),
        integrality=np.concatenate([np.ones(P), np.zeros(V)]),
        bounds=Bounds(np.zeros(P + V), np.concatenate([np.ones(P), np.full(V, float(V))])),
        constraints=[
            LinearConstraint(one, 1, 1),
            LinearConstraint(order, 1 - 2.0 * V, np.inf),
            LinearConstraint(children, -np.inf, [float(rules.max_children[j]) for j in limited]),
        ],
    )
    if result.x is None:
        return None
    chosen = [int(np.flatnonzero((candidates.variable == i) & (result.x[:P] > 0.5))[0]) for i in range(V)]
    return candidates.structure(chosen)
