"""A proof by multipliers in exact arithmetic: sums of one term per variable and its parent set are at most a bound.

What is proved. A structure gives every variable i one parent set S_i, without a cycle, within the limits of children,
and obeying the constraints on paths; its score is the sum of the terms of (i, S_i). For rows sum_i a(i, S_i) <= b that
hold for every structure, and multipliers y >= 0, no structure of a node scores more than

    sum_i max_S (term_iS - sum_r y_r a_r(i, S)) + sum_r y_r b_r,

S being the sets that the node still has. Rows are clusters C (a = 1 if i is in C and S meets C, b = |C| - 1: the first
member in an order has no parent in C), limits of children (a = 1 if j is in S), and blocks B with a function f on
subsets and f({}) = 0:

    a(i, S) = min { f(U + i) - f(U) : S n B subset of U subset of B - i },    b = f(B).

Let U_i be the members of B before i in an order. They contain S_i n B, so that a(i, S_i) <= f(U_i + i) - f(U_i); the
right-hand sides add up to f(B). Constraints on paths give three more kinds, with b = the number of members - 1:

    CLOSED, a(i, S) = 1 if S lies within C, which has d and not its ancestor j: a path from j to d enters C.
    REACHED, a(i, S) = 1 if S meets C + j, where j is no ancestor of d in C: a structure stays acyclic with the arc
        d -> j, and then the cluster C + j, in which j has a parent, says this about the others.
    ARCS, a(i, S) = 1 if S has all arcs into i of some that leave the variables of an independence connected: more arcs
        separate no more, so that not all of them are there. The same holds for arcs that put too many features into
        families with the class, since further arcs take none out.

What a certificate holds. The arrays `searched_...` are the parent sets that the search had. A structure with another
one is no better than with a subset of it, whose term is raised to that of the other one. Node 0 has all structures, and
a branch (node, kind, a, b, first, second) divides a node: ARC, a is a parent of b or not; ORDER, a comes before b or
after it. The steps of a node are multipliers, in the order of the file. Each removes the sets with which the number
above does not exceed the bound. What comes before what in all structures of a node removes sets (`_closed`). A node
without a branch has to end with nothing left, or with a step whose number does not exceed the bound.

If a result lists structures, the bound is on all others. Then, and with ancestors, all sets have to be searched. A
branch PARENT_SET asks for set number a. A node may also end with one structure only, if it is listed, or breaks a
constraint on paths (`ExactRules.obeyed`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from milpbn.certificate.exact.arithmetic import BITS, ONE, Json, column, groups, need, require_work

#: Kinds of decisions; values of `row_limit` that mark other rows than limits; most members of a block.
ARC, PARENT_SET, ORDER, CLUSTER, BLOCK, CLOSED, REACHED, ARCS, LARGEST_BLOCK = 1, 3, 4, -1, -2, -3, -4, -5, 12
#: By variable: its parent sets as bit masks, with their terms in grains.
Own = list[dict[int, int]]


class ExactRules(NamedTuple):
    """What a structure has to obey: the most children by variable, pairs (ancestor, descendant), and independences.

    An independence has two variables, and those that separate them. `max_features` is the most features in the Markov
    blanket of the class, None for no limit.
    """

    limits: Mapping[int, int]
    ancestors: Collection[tuple[int, int]] = ()
    no_ancestors: Collection[tuple[int, int]] = ()
    independences: Collection[tuple[int, int, Collection[int]]] = ()
    max_features: int | None = None

    def too_many_features(self, parents: Sequence[int]) -> bool:
        """Whether more features than allowed are in families with the class, the last variable."""
        last, blanket = len(parents) - 1, 0
        for family in (own | 1 << i for i, own in enumerate(parents)):
            blanket |= family if family >> last else 0
        return self.max_features is not None and (blanket & ~(1 << last)).bit_count() > self.max_features

    def obeyed(self, parents: Sequence[int]) -> bool:
        """Whether an acyclic structure, the parents as bit masks, obeys the constraints on paths and of features."""
        above = _ancestors(parents)
        return not self.too_many_features(parents) and (
            all(above[d] >> a & 1 for a, d in self.ancestors)
            and not any(above[d] >> a & 1 for a, d in self.no_ancestors)
            and all(separated(parents, *one) for one in self.independences)
        )


def _ancestors(parents: Sequence[int]) -> list[int]:
    """Return the variables from which a path leads to each variable, and the variable, as bit masks."""
    above = [own | 1 << i for i, own in enumerate(parents)]
    for j in range(len(above)):
        above = [own | above[j] if own >> j & 1 else own for own in above]
    return above


def separated(parents: Sequence[int], a: int, b: int, given: Collection[int]) -> bool:
    """Whether some variables separate a and b in the moral graph of the ancestors of all (Lauritzen et al. 1990)."""
    above, among, blocked = _ancestors(parents), 0, sum(1 << j for j in given)
    for j in (a, b, *given):
        among |= above[j]
    families = [own | 1 << i for i, own in enumerate(parents) if among >> i & 1]
    reached, before = 1 << a, 0
    while reached != before:
        before = reached
        for family in families:
            if family & reached & ~blocked:
                reached |= family
    return not reached >> b & 1


class _ExactRow(NamedTuple):
    """Members, right-hand side, and a(i, S) as a function of i and a bit mask."""

    members: Sequence[int]
    side: int
    term: Callable[[int, int], int]


def prove(
    sets: Sequence[tuple[int, int, Fraction]],
    rules: ExactRules,
    arrays: Json,
    bound: Fraction | float,
    listed: Collection[tuple[int, ...]] | None = None,
) -> None:
    """Check a proof, or raise NotProvedError; `sets` are (variable, parents as a bit mask, term) in their order.

    The bound is on all structures but the `listed` ones, given by the parents of each variable as bit masks; -inf if
    there are no others. None stands for no list.
    """
    _ExactProof(sets, rules, arrays, bound, listed).check()


def prove_listed(
    sets: Sequence[tuple[int, int, Fraction]],
    rules: ExactRules,
    arrays: Json,
    bound: Fraction,
    structures: Sequence[Sequence[Sequence[int]]] | None,
    others: Fraction | float,
) -> None:
    """Check a bound on all structures, and that of a list on all others (inf for none), or raise NotProvedError.

    The listed structures are given by the parents of each variable; None without a list.
    """
    term_of = {(i, s): term for i, s, term in sets}
    listed = None if structures is None else {tuple(map(as_mask, own)) for own in structures}
    need(len(listed or ()) == len(structures or ()), "The list has a structure twice.")
    for masks in listed or ():
        total = sum((term_of[family] for family in enumerate(masks)), Fraction(0))
        need(total <= bound, "A listed structure exceeds the bound.")
    prove(sets, rules, arrays, min(bound, others), listed)


def as_mask(members: Sequence[int]) -> int:
    """Return a set of variables as a bit mask."""
    return sum(1 << j for j in members)


def _searched(V: int, sets: Sequence[tuple[int, int, Fraction]], arrays: Json, *, every: bool) -> Own:
    """Return the sets of the search, with terms that are at least those of the sets that they stand for."""
    flags = [True] * len(sets)
    if "searched_variable" in arrays:
        members = groups(arrays, "searched_size", column(arrays, "searched_member", int, V))
        masks = [sum({1 << j for (j,) in own}) for own in members]
        known = {*zip(column(arrays, "searched_variable", int, V), masks, strict=True)}
        flags = [(i, s) in known for i, s, _ in sets]
        need(sum(flags) == len(known), "The certificate has a parent set that is no candidate.")
    need(all(flags) or not every, "The certificate leaves out parent sets that a list, or ancestors, need.")
    grains = [(i, s, math.ceil(term * ONE)) for i, s, term in sets]
    kept = sorted((g for g, flag in zip(grains, flags, strict=True) if flag), key=lambda g: -g[2])
    own: Own = [{s: term for i, s, term in kept if i == v} for v in range(V)]
    first = [list(sets) for sets in own]
    for i, s, term in (g for g, flag in zip(grains, flags, strict=True) if not flag):
        inside = [t for t in first[i] if t & ~s == 0][:1]  # the one with the largest term
        need(len(inside) == 1, "The certificate leaves out a parent set of which no subset was searched.")
        own[i][inside[0]] = max(own[i][inside[0]], term)
    return own


class _ExactProof:
    """The arrays of a certificate, and the walk through its tree."""

    def __init__(
        self,
        sets: Sequence[tuple[int, int, Fraction]],
        rules: ExactRules,
        arrays: Json,
        bound: Fraction | float,
        listed: Collection[tuple[int, ...]] | None,
    ) -> None:
        self.V = V = 1 + max(i for i, _, _ in sets)
        self.sets, self.rules, self.listed = sets, rules, listed or ()
        self.own = _searched(V, sets, arrays, every=bool(listed is not None or rules.ancestors))
        # No structure scores less than the sum of the least terms, so that a bound below shows that there is none.
        self.bound = sum(min(terms.values()) for terms in self.own) - 1
        if bound > -math.inf:
            self.bound = max(self.bound, math.floor(bound * ONE))
        values, self.rows = column(arrays, "row_values", int), list[_ExactRow]()
        for flags, limit in zip(
            arrays["row_members"].tolist(), column(arrays, "row_limit", int), strict=True
        ):
            inside = [i for i, member in enumerate(flags) if member]
            size = (
                1 << len(inside) if limit == BLOCK and len(inside) <= LARGEST_BLOCK else int(limit == REACHED)
            )
            size = 1 + 2 * max(0, values[0]) if limit == ARCS else size
            self.rows.append(self._row(inside, limit, values[:size]))
            values = values[size:]
        rows = column(arrays, "multiplier_row", int, len(self.rows))
        numbers = column(arrays, "multiplier", float)
        need(min([0, *numbers]) >= 0, "A multiplier is negative.")
        steps = groups(arrays, "multipliers_size", rows, [int(math.ldexp(y, BITS)) for y in numbers])
        self.steps: dict[int, list[Any]] = {}
        for node, step in zip(column(arrays, "step_node", int), steps, strict=True):
            self.steps.setdefault(node, []).append(step)
        self.branches = {node: branch for node, *branch in arrays["branches"].tolist()}
        reached = [0, *(child for branch in self.branches.values() for child in branch[3:])]
        once = len(self.branches) == len(arrays["branches"]) and len({*reached}) == len(reached)
        need(once, "The certificate has a node twice.")
        need({*reached}.issuperset((*self.branches, *self.steps)), "The certificate never reaches a node.")
        for kind, a, b, *_ in self.branches.values():
            known = kind in (ARC, ORDER) and a != b and 0 <= min(a, b) <= max(a, b) < V
            need(
                known or (kind == PARENT_SET and 0 <= a < len(sets)),
                "The certificate has an unknown decision.",
            )

    def _row(self, inside: list[int], limit: int, values: list[int]) -> _ExactRow:
        """Return an inequality that every structure obeys; `values` are those of f, subset by subset, or name arcs."""
        mask, n, rules = sum(1 << i for i in inside), len(inside), self.rules
        if limit == CLUSTER and n:
            return _ExactRow(inside, n - 1, lambda i, s: int(s & mask != 0))
        if limit == BLOCK and n and len(values) == 1 << n and values[0] == 0:
            at = [sum(1 << i for k, i in enumerate(inside) if s >> k & 1) for s in range(1 << n)]
            tables: dict[int, dict[int, int]] = {}
            for k, i in enumerate(inside):
                least = {s: values[s | 1 << k] - values[s] for s in range(1 << n) if not s >> k & 1}
                for s in sorted(least, reverse=True):  # supersets first
                    more = (least[s | 1 << j] for j in range(n) if j != k and not s >> j & 1)
                    least[s] = min([least[s], *more])
                tables[i] = {at[s]: a for s, a in least.items()}
            return _ExactRow(inside, values[-1], lambda i, s: tables[i][s & mask])
        if limit == CLOSED and any(d in inside and a not in inside for a, d in rules.ancestors):
            return _ExactRow(inside, n - 1, lambda i, s: int(s & ~mask == 0))
        if limit == REACHED and any(d in inside for a, d in rules.no_ancestors if a == values[0]):
            need(values[0] not in inside, "The certificate has a row whose variables it does not hold for.")
            watched = mask | 1 << values[0]
            return _ExactRow(inside, n - 1, lambda i, s: int(s & watched != 0))
        if limit == ARCS:
            needed = [0] * self.V
            for j, i in zip(values[1::2], values[2::2], strict=True):
                needed[i] |= 1 << j
            heads = [i for i, own in enumerate(needed) if own]
            broken = not all(separated(needed, *one) for one in rules.independences)
            holds = heads == inside and (broken or rules.too_many_features(needed))
            need(
                holds, "The certificate excludes arcs that no independence and no limit of features excludes."
            )
            return _ExactRow(inside, n - 1, lambda i, s: int(needed[i] & ~s == 0))
        holds = n == 1 and limit >= rules.limits.get(inside[0], math.inf)
        need(holds, "The certificate has an inequality that does not hold for every structure.")
        return _ExactRow(range(self.V), limit, lambda i, s: int(s & mask != 0))

    def check(self) -> None:
        """Check that every leaf is proved."""
        own = self.own
        sizes = sum(map(len, own)) // self.V + 1
        entries = (
            len(self.rows[r].members) for steps in self.steps.values() for step in steps for r, _ in step
        )
        require_work(sizes * sum(entries) + len(self.branches) * self.V * self.V * sizes, "certificate")
        above = [sum({1 << a for a, d in self.rules.ancestors if d == i}) for i in range(self.V)]
        stack: list[tuple[int, Own, list[int]]] = [(0, own, above)]
        while stack:
            node, own, before = stack.pop()
            if self._proved(node, own, before):
                continue
            if node not in self.branches:
                only = tuple(s for sets in own for s in sets)
                single = len(only) == self.V and (only in self.listed or not self.rules.obeyed(only))
                need(single, f"The bound of node {node} is not proved.")
                continue
            kind, a, b, *children = self.branches[node]
            for child, first in zip(children, (True, False), strict=True):
                sets, order = [dict(own_sets) for own_sets in own], list(before)
                if kind == PARENT_SET:
                    i, asked, _ = self.sets[a]
                    sets[i] = {s: term for s, term in own[i].items() if (s == asked) == first}
                elif kind == ARC:
                    sets[b] = {s: term for s, term in own[b].items() if (s >> a & 1 == 1) == first}
                elif first:
                    order[b] |= 1 << a
                else:
                    order[a] |= 1 << b
                stack.append((child, sets, order))

    def _proved(self, node: int, own: Own, before: list[int]) -> bool:
        """Take the steps of a node, which change its sets; return whether they prove it."""
        for step in [[], *self.steps.get(node, ())]:
            if not self._closed(own, before):
                return True
            values = [dict(sets) for sets in own]
            total = 0
            for r, y in step:
                row = self.rows[r]
                total += y * row.side
                for i in row.members:
                    for s in values[i]:
                        if a := row.term(i, s):
                            values[i][s] -= y * a
            tops = [max(of.values()) for of in values]
            total += sum(tops)
            if total <= self.bound:
                return True
            for i, of in enumerate(values):
                own[i] = {s: own[i][s] for s, value in of.items() if total - tops[i] + value > self.bound}
        return not self._closed(own, before)

    def _closed(self, own: Own, before: list[int]) -> bool:
        """Remove sets with a member that comes later, and put what all sets of a variable share before it.

        This is repeated until nothing changes. `before` has what comes before each variable, as a bit mask. Return
        whether a structure may be left.
        """
        changed = True
        while changed:
            changed = False
            for i in range(self.V):
                for j in range(self.V):
                    if before[i] >> j & 1 and before[j] & ~before[i]:
                        before[i] |= before[j]
                        changed = True
            if any(mask >> i & 1 for i, mask in enumerate(before)):
                return False
            for i in range(self.V):
                later = sum(1 << j for j in range(self.V) if before[j] >> i & 1)
                own[i] = {s: term for s, term in own[i].items() if not s & later}
                if not own[i]:
                    return False
                shared = -1
                for s in own[i]:
                    shared &= s
                if shared & ~before[i]:
                    before[i] |= shared
                    changed = True
        return True
