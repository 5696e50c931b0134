"""The tree of a certificate, in exact arithmetic: the bounds of its leaves, its fixings, and the maximum over a node.

Equations are of Peharz and Pernkopf (2012).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from milpbn.certificate.exact.arithmetic import ONE, Json, column, groups, need, require_work
from milpbn.certificate.exact.problem import ExactProblem

#: Kinds of decisions, and the value of `row_limit` that marks an inequality of a cluster.
EDGE, ARC, ORPHAN, PARENT_SET, CLUSTER = 0, 1, 2, 3, -1


class ExactTree:
    """The tree that the arrays of a certificate hold.

    By node: `branches` are [kind, a, b, inside, outside], `leaves` are points, `fixings` are lists of (point, parent
    sets). A point is (eta, temperature, multipliers). `undecided` are the arcs (parent, child) that structures may
    lack (in) or may have (out) in leaves whose bound reaches the incumbent.
    """

    def __init__(self, problem: ExactProblem, arrays: Json) -> None:
        self.problem = problem
        self.undecided: dict[str, set[tuple[int, int]]] = {"in": set(), "out": set()}
        P, V, limits = len(problem.parent_sets), problem.last + 1, column(arrays, "row_limit", int)
        self.rows = [self._row(*pair) for pair in zip(arrays["row_members"].tolist(), limits, strict=True)]
        nodes, leaves = column(arrays, "deletion_node", int), column(arrays, "leaf_node", int)
        removed = groups(arrays, "deletion_size", column(arrays, "deleted", int, P))
        eta = groups(arrays, "weights_size", column(arrays, "entries", int, P), column(arrays, "eta", float))
        rows, mu = column(arrays, "multiplier_row", int, len(limits)), column(arrays, "multiplier", float)
        multipliers = groups(arrays, "multipliers_size", rows, mu)
        temperatures = column(arrays, "temperature", float)
        need(min([1, *temperatures]) > 0 and min([0, *mu]) >= 0, "A temperature or multiplier is too small.")
        points = [*zip(eta, temperatures, multipliers, strict=True)]
        self.fixings: dict[int, list[Any]] = {}
        for node, *fixing in zip(nodes, points[: len(nodes)], removed, strict=True):
            self.fixings.setdefault(node, []).append(fixing)
        self.leaves = dict(zip(leaves, points[len(nodes) :], strict=True))
        self.branches = {node: branch for node, *branch in arrays["branches"].tolist()}
        once = len(self.leaves) == len(leaves) and len(self.branches) == len(arrays["branches"])
        need(once and self.leaves.keys().isdisjoint(self.branches), "The certificate has a node twice.")
        work = len(points) * (P * (len(problem.rows) * problem.n_states[-1] + 2**V) + V * V * 2**V)
        require_work(work, "certificate")

    def _row(self, members: list[bool], limit: int) -> tuple[dict[int, int], int]:
        """Return a and b of an inequality a @ eta >= b: (7) for a cluster, or a variable's child limit."""
        inside, sets = {i for i, member in enumerate(members) if member}, self.problem.parent_sets
        if limit == CLUSTER and inside and max(inside) <= self.problem.last:
            return {p: 1 for p, (i, s) in enumerate(sets) if i in inside and inside.isdisjoint(s)}, 1
        holds = len(inside) == 1 and limit >= self.problem.limits.get(min(inside), math.inf)
        need(holds, "The certificate has an inequality that does not hold for every structure.")
        return {p: -1 for p, (_, s) in enumerate(sets) if not inside.isdisjoint(s)}, -limit

    def keeps(self, p: int, kind: int, a: int, b: int, inside: bool) -> bool:
        """Whether structures that obey a decision (inside), or that do not, may have parent set p.

        EDGE: a and b are neighbours; ARC: a is a parent of b; ORPHAN: a has no feature parent; PARENT_SET: eta_a = 1.
        """
        i, s = self.problem.parent_sets[p]
        if kind == EDGE:
            return inside or (b if i == a else a if i == b else i) not in s
        if kind == ARC:
            return i != b or (a in s) == inside
        if kind == ORPHAN:
            return i != a or {self.problem.last}.issuperset(s) == inside
        need(kind == PARENT_SET and a >= 0, "The certificate has an unknown decision.")
        return i != self.problem.parent_sets[a][0] or (p == a) == inside

    def prove(
        self, objective: int, listed: Any = (), cutoff: int | None = None
    ) -> tuple[Fraction | float, Fraction | float]:
        """Return the largest bound of a leaf, and that of a leaf which holds more than one structure of a list.

        The fixings are checked against the cutoff, by default the incumbent's score, in grains.
        """
        sets, largest, others, seen = self.problem.parent_sets, -math.inf, -math.inf, set()
        cutoff = objective if cutoff is None else min(objective, cutoff)
        stack: list[tuple[int, frozenset[int], Any]] = [(0, frozenset(range(len(sets))), ())]
        while stack:
            node, allowed, edges = stack.pop()
            need(node not in seen, f"The certificate reaches node {node} twice.")
            seen.add(node)
            allowed = self.within_features(allowed)
            for point, removed in self.fixings.get(node, ()):
                wanted = allowed.intersection(p for (p,) in removed)
                worse = self.bound(allowed, edges, point, wanted) < cutoff
                need(worse, f"A better structure may have a parent set that node {node} removes.")
                allowed -= wanted
            if node in self.branches:
                kind, a, b, *children = self.branches[node]
                for child, inside in zip(children, (True, False), strict=True):
                    kept = frozenset(p for p in allowed if self.keeps(p, kind, a, b, inside))
                    stack.append((child, kept, (*edges, (a, b)) if kind == EDGE and inside else edges))
                continue
            bare = node == 0 and not self.leaves  # a root without dual weights: only the bound without search
            need(bare or node in self.leaves, f"The certificate has no bound for node {node}.")
            bound = math.inf if bare else self.bound(allowed, edges, self.leaves[node])
            bound = min(bound, self.only(allowed)) if bound >= cutoff else bound
            largest = max(largest, bound)
            others = others if allowed in listed else max(others, bound)
            for i, s in (sets[p] for p in allowed if bound >= objective):
                for j in range(self.problem.last + 1):
                    self.undecided["out" if j in s else "in"].add((j, i))
        reached = seen.issuperset((*self.branches, *self.leaves, *self.fixings))
        need(reached, "The certificate has nodes that its tree does not reach.")
        one, other = (x if math.isinf(x) else Fraction(x) / ONE for x in (largest, others))
        return one, other

    def within_features(self, allowed: frozenset[int]) -> frozenset[int]:
        """Leave out sets with features beside as many as may be in families with the class, if these are certain."""
        last, sets = self.problem.last, self.problem.parent_sets
        families = [{i, *s} if last in {i, *s} else set() for i, s in sets]
        before = frozenset[int]()
        while self.problem.rules.max_features is not None and allowed != before:
            before, certain = allowed, set[int]()
            for v in range(last + 1):
                certain |= set.intersection(*([families[p] for p in allowed if sets[p][0] == v] or [set()]))
            if len(certain - {last}) == self.problem.rules.max_features:
                allowed = frozenset(p for p in allowed if families[p] <= certain | {last})
        return allowed

    def only(self, allowed: frozenset[int]) -> float:
        """Return the score of a node's only structure, or inf; -inf if the arcs of all exceed a limit."""
        families = sorted(self.problem.parent_sets[p] for p in allowed)
        sets = [[s for i, s in families if i == v] for v in range(self.problem.last + 1)]
        if self.problem.exceeds_limits([set(own[0]).intersection(*own) for own in sets if own]):
            return -math.inf
        if any(len(own) != 1 for own in sets):
            return math.inf
        return math.ceil(self.problem.score([own[0] for own in sets], self.problem.weights)[1] * ONE)

    def bound(self, allowed: frozenset[int], edges: Any, point: Any, wanted: Any = None) -> float:
        """Return b(lambda, mu) of a node in grains, rounded up; with `wanted`, of its structures with one of those."""
        eta, temperature, multipliers = point
        constant, gradient = self.problem.bound_at(eta, temperature)
        for r, mu in multipliers:
            row, side = self.rows[r]
            constant -= Fraction(mu) * side * ONE
            for p, a in row.items():
                gradient[p] += Fraction(mu) * a * ONE
        return math.ceil(constant) + heaviest(self.problem.parent_sets, gradient, allowed, edges, wanted)


def heaviest(sets: Any, gradient: Sequence[Fraction], allowed: Any, edges: Any, wanted: Any) -> float:
    """Return the largest gradient @ eta, rounded up, of acyclic structures of allowed sets with all edges, or -inf.

    With `wanted`, only structures with one of these sets count. Sets of variables are bit masks. first[U] is the most
    that the variables of U add if they come first in an order; rest[U] is the most that the others add after them;
    best[i][U] is the most that variable i adds right after U, with parents in U, among them all that have an edge to i.
    """
    V = sets[-1][0] + 1
    full, beside = 1 << V, [0] * V
    for a, b in (*edges, *((b, a) for a, b in edges)):
        beside[a] |= 1 << b
    bits, weights = {p: sum(1 << j for j in sets[p][1]) for p in allowed}, [math.ceil(x) for x in gradient]
    best: list[list[float]] = [[-math.inf] * full for _ in range(V)]
    for p, parents in bits.items():
        own = best[sets[p][0]]
        own[parents] = max(own[parents], weights[p])
    for i, own in enumerate(best):
        for bit in (1 << j for j in range(V) if not beside[i] >> j & 1):
            for U in filter(bit.__and__, range(full)):
                own[U] = max(own[U], own[U ^ bit])
    first: list[float] = [0, *[-math.inf] * (full - 1)]
    for U in range(1, full):
        first[U] = max(first[U ^ 1 << i] + best[i][U ^ 1 << i] for i in range(V) if U >> i & 1)
    if wanted is None:
        return first[-1]
    rest: list[float] = [*[-math.inf] * (full - 1), 0]
    for U in reversed(range(full - 1)):
        rest[U] = max(best[i][U] + rest[U | 1 << i] for i in range(V) if not U >> i & 1)
    most = -math.inf
    for i, parents, weight in ((sets[p][0], bits[p], weights[p]) for p in wanted):
        fitting = (U for U in range(full) if not U >> i & 1 and U & (parents | beside[i]) == parents)
        most = max([most, *(first[U] + rest[U | 1 << i] + weight for U in fitting)])
    return most
