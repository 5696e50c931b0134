"""The score in exact arithmetic, and the candidate parent sets; equations are of Peharz and Pernkopf (2012, P12)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from milpbn.certificate.exact.arithmetic import (
    BITS,
    ONE,
    Ends,
    Json,
    log,
    log_gamma,
    need,
    number,
    require_work,
)
from milpbn.certificate.exact.multipliers import ExactRules, as_mask

#: Dual weights below exp(-REACH) of the largest count as 0, by score.
REACH = {"sm": 16.0, "sbm": 16.0, "cll": 36.0}
#: The penalty of the scores that are sums of one term per variable and its parent set.
DECOMPOSABLE = {"ll": 0, "mdl": "bic", "aic": "aic", "bdeu": 0}

#: States of some variables, the class last if it is among them.
Row = tuple[int, ...]
#: Ascending indices of the parents of a variable.
Parents = tuple[int, ...]


class ExactProblem:
    """The score, and the structures over which it is maximised.

    `rows` are the distinct samples in lexicographic order, the class last; `counts` are their weights in the
    parameters, `weights` those in the score; `parent_sets` are the candidates (variable, parents) in the order of eta:
    all `total` ones, or those that screening `kept`. `whole` are the counts and `pseudo` is the smoothing, times
    `scale`, which makes them whole numbers.
    """

    def __init__(
        self, data: Any, options: Json, constraints: Json, kept: list[tuple[int, Parents]] | None
    ) -> None:
        flags = {key: options.get(key, False) for key in ("class_parents", "leave_one_out")}
        read = {"name", "gamma", "max_parents", "smoothing", "smoothing_towards", "penalty", "hybrid", *flags}
        self.decomposable = options["name"] in DECOMPOSABLE
        unused = {"parent_sets": (asked := options.get("parent_sets")), "equivalent_sample_size": 1.0}
        if options["name"] == "bdeu":
            read |= {"equivalent_sample_size"}
            self.sample_size = number(options["equivalent_sample_size"])
        fits = all(key in read or value == unused.get(key) for key, value in options.items())
        self.name, (self.class_parents, self.unit) = options["name"], flags.values()
        fits = fits and type(self.class_parents) is type(self.unit) is bool
        fits = fits and self.name in {*REACH, *DECOMPOSABLE}
        self.towards = ("uniform", "marginal", "class").index(options.get("smoothing_towards", "uniform"))
        need(fits, "The exact check does not know the score, or one of its options.")
        self.n_states, self.last = [len(v.states) for v in data.variables], len(data.variables) - 1
        merged: dict[Row, Fraction] = {}
        for row, weight in zip(map(tuple, data.codes.tolist()), data.weights.tolist(), strict=True):
            known = weight >= self.unit and all(0 <= x < n for x, n in zip(row, self.n_states, strict=True))
            need(known, "The data have a value without a state, or a weight that is too small.")
            merged[row] = merged.get(row, Fraction(0)) + Fraction(weight)
        self.rows = sorted(merged)
        self.weights = self.counts = [merged[row] for row in self.rows]
        self.smoothing, self.hybrid = number(options["smoothing"]), number(options["hybrid"])
        penalty = options["penalty"]
        if self.decomposable:
            self.hybrid, penalty = Fraction(self.name != "bdeu"), DECOMPOSABLE[self.name]
        self.max_parents = min(options["max_parents"], self.last)
        # 0 under cll, because log P(c_m | z_m) is at most 0 and at most every margin.
        self.gamma = number(options["gamma"]) if self.name in ("sm", "sbm") else Fraction(0)
        need(self.smoothing > 0 and self.hybrid >= 0, "The score has options out of range.")
        if penalty == "bic":
            self.penalty = [Fraction(end, 2 * ONE) for end in log(sum(self.counts, Fraction(0)))]
        else:
            self.penalty = [number(1 if penalty == "aic" else penalty)] * 2
        self.scale = math.lcm(self.smoothing.denominator, *(n.denominator for n in self.counts))
        *self.whole, self.pseudo = (int(n * self.scale) for n in (*self.counts, self.smoothing))
        self._tables: dict[Any, dict[Row, int]] = {}
        self._local: dict[tuple[int, Parents], Ends] = {}
        self._read_constraints(constraints, {v.name: i for i, v in enumerate(data.variables)})
        more = bool(self.hybrid or self.arc_weights)
        self.alike = not (more or any(self.penalty))
        self.larger = more if asked == "auto" else asked == "all" and not self.alike
        whole = self.larger or self.alike
        self.about_all = whole or (asked == "auto" and min(self.penalty) >= 0), whole  # a bound, a list
        if self.decomposable:
            self.alike, self.larger = False, asked == "all"
            self.about_all = self.larger, self.larger
        self.parent_sets = [(i, s) for i in range(self.last + 1) for s in self.candidates(i)]
        self.total = len(self.parent_sets)
        if kept is not None:
            known = set(kept) <= {*self.parent_sets} and len({*kept}) == len(kept)
            need(known and [i for i, _ in kept] == sorted(i for i, _ in kept), "A kept parent set is none.")
            self.parent_sets = kept
        require_work(1000 * len(self.parent_sets) * len(self.rows) * self.n_states[-1], "table")
        self.linear = [self.local_terms(i, s)[1] * ONE for i, s in self.parent_sets]
        self.alpha = [self.coefficients(i, s) for i, s in self.parent_sets]

    def _read_constraints(self, given: Json, at: Mapping[str, int]) -> None:
        """Read constraints by name; arcs are (parent, child), and tiers and lists of allowed parents forbid arcs."""
        known = {
            "required",
            "forbidden",
            "tiers",
            "max_children",
            "max_features",
            "fixed",
            "allowed",
            "arc_weights",
        }
        known |= {"ancestors", "no_ancestors", "independences"} if self.decomposable else set()
        asked = {key for key, value in given.items() if value}
        need(known.issuperset(asked), "The exact check does not know all of the constraints.")
        self.required = {(at[j], at[i]) for j, i in given.get("required", ())}
        tier = {at[name]: level for level, tier in enumerate(given.get("tiers", ())) for name in tier}
        self.forbidden = {(at[j], at[i]) for j, i in given.get("forbidden", ())}
        self.forbidden |= {(j, i) for j in tier for i in tier if tier[j] > tier[i]}
        allowed = given.get("allowed", {})
        self.forbidden |= {(at[j], at[i]) for i, parents in allowed.items() for j in at if j not in parents}
        self.fixed = {at[i]: {at[j] for j in parents} for i, parents in given.get("fixed", {}).items()}
        limits = given.get("max_children", {})  # the key * means all other features
        self.limits = {i: limits["*"] for i in range(self.last) if "*" in limits}
        self.limits |= {at[name]: limit for name, limit in limits.items() if name != "*"}
        few: int | None = given.get("max_features")
        if few is not None:  # the children of the class are among these features
            self.limits[self.last] = min(few, self.limits.get(self.last, self.last))
        self.arc_weights = {(at[j], at[i]): number(w) for j, i, w in given.get("arc_weights", ())}
        above, apart = ([(at[a], at[d]) for a, d in given.get(k, ())] for k in ("ancestors", "no_ancestors"))
        independences = [(at[a], at[b], [at[j] for j in s]) for a, b, s in given.get("independences", ())]
        self.rules = ExactRules(self.limits, above, apart, independences, few)
        # These arcs break a constraint by themselves, so that no parent set has them.
        self.forbidden |= {(d, a) for a, d in above} | {*apart}
        self.forbidden |= {arc for a, b, _ in independences for arc in ((a, b), (b, a))}

    def admits(self, i: int, parents: Parents) -> bool:
        """Whether options and constraints allow variable i to have these parents."""
        arcs = {(j, i) for j in parents}
        fits = len(parents) <= (self.max_parents if i < self.last or self.class_parents else 0)
        fits = fits and arcs.issuperset(arc for arc in self.required if arc[1] == i)
        return fits and arcs.isdisjoint(self.forbidden) and set(parents) == self.fixed.get(i, set(parents))

    def candidates(self, i: int) -> list[Parents]:
        """Return the parent sets of i, without the class first, then by size; `larger`: not only {} of these."""
        others, sizes = [j for j in range(self.last + 1) if j != i], range(self.max_parents + 1)
        sets = [s for size in sizes for s in combinations(others, size) if self.admits(i, s)]
        free = [s for s in sets if self.last not in s]
        return (free if self.larger or i == self.last else free[:1]) + [s for s in sets if self.last in s]

    def exceeds_limits(self, structure: Collection[Collection[int]]) -> bool:
        """Whether some variable has more children than allowed, or the class more features in its Markov blanket."""
        if any(sum(j in s for s in structure) > limit for j, limit in self.limits.items()):
            return True
        return self.rules.too_many_features([*map(as_mask, map(tuple, structure))])

    def allows(self, structure: Sequence[Parents]) -> bool:
        """Whether the bound covers a structure, or one that differs only in class-free sets of the same score."""
        families, placed = list(enumerate(structure)), set[int]()
        for _ in structure:
            placed |= {i for i, s in families if placed.issuperset(s)}
        bare = {i for i, s in self.parent_sets if self.alike and self.last not in (i, *s)}
        free = {(i, s) for i, s in families if i in bare and self.last not in s and self.admits(i, s)}
        known = free.union(self.parent_sets).issuperset(families) and len(placed) == len(structure)
        return known and not self.exceeds_limits(structure) and self.rules.obeyed([*map(as_mask, structure)])

    def count(self, i: int, parents: Parents, one: int | None) -> dict[Row, int]:
        """Return n_{j|h} by (j, *h) and n_h by h, (2), times `scale`; with `one`, that class is 0, the others 1."""
        table = self._tables.setdefault((i, parents, one), {})
        if not table:
            for row, n in zip(self.rows, self.whole, strict=True):
                x = row if one is None else (*row[:-1], int(row[-1] != one))
                h = tuple(x[j] for j in parents)
                for cell in ((x[i], *h), h):
                    table[cell] = table.get(cell, 0) + n
        return table

    def theta(self, i: int, parents: Parents, x: Row, one: int | None, own: Row) -> tuple[int, int]:
        """Return parts of the parameter (n_{j|h} + a sp t) / (n_h + a sp) of a row x, times a factor, (2), (20).

        The mean t is 1 / sp(X_i), or the parameter with the parents `kept`. With leave_one_out, all counts lack a unit
        of the row `own`.
        """
        table, h, a = self.count(i, parents, one), tuple(x[j] for j in parents), self.pseudo
        sizes = self.n_states if one is None else [*self.n_states[:-1], 2]
        unit = self.scale if self.unit and h == tuple(own[j] for j in parents) else 0
        n, of = table.get((x[i], *h), 0) - unit * (x[i] == own[i]), table.get(h, 0) - unit + a * sizes[i]
        kept = tuple(j for j in parents if self.towards == 2 and j == self.last)
        if not self.towards or all(sizes[j] == 1 for j in parents if j not in kept):
            return n + a, of
        part, whole = self.theta(i, kept, x, one, own)
        return n * whole + a * sizes[i] * part, of * whole

    def versions(self, row: Row) -> tuple[int | None, Row, list[Row]]:
        """Return `one` of `count`, the sample, and the sample with each competing class instead, (8), (20), (21)."""
        if self.name == "sbm":
            return row[-1], (*row[:-1], 0), [(*row[:-1], 1)]
        return None, row, [(*row[:-1], c) for c in range(self.n_states[-1]) if c != row[-1]]

    def coefficients(self, i: int, parents: Parents) -> tuple[list[Row], dict[Row, list[tuple[int, int]]]]:
        """Return the samples' cells, and alpha(i, k, m, c) of all c by cell, (12), (23); {} if all are 0."""
        if self.decomposable:
            return [], {}
        cells = [tuple(row[j] for j in sorted((i, *parents))) for row in self.rows]
        alpha: dict[Row, list[tuple[int, int]]] = {}
        for cell, row in dict(zip(cells, self.rows, strict=True)).items():
            one, own, rivals = self.versions(row)
            (n, of), *others = (self.theta(i, parents, x, one, own) for x in (own, *rivals))
            alpha[cell] = [log(Fraction(n * whole, of * part)) for part, whole in others]
        return (cells, alpha) if self.last in (i, *parents) else ([], {})

    def local_terms(self, i: int, parents: Parents) -> Ends:
        """Return (low, high) of hybrid sum n_{j|h} log(n_{j|h} / n_h) - penalty (free parameters) + arc weights.

        Of bdeu it is `bdeu` and the arc weights.
        """
        if (i, parents) not in self._local:
            self._local[i, parents] = self._family(i, parents)
        return self._local[i, parents]

    def _family(self, i: int, parents: Parents) -> Ends:
        terms = sum((self.arc_weights.get((j, i), Fraction(0)) for j in parents), Fraction(0))
        if self.name == "bdeu":
            low, high = self.bdeu(i, parents)
            return terms + low, terms + high
        free = (self.n_states[i] - 1) * math.prod(self.n_states[j] for j in parents)
        table, ends = self.count(i, parents, None) if self.hybrid else {}, (0, 0)
        for cell, n in ((cell, n) for cell, n in table.items() if len(cell) > len(parents) and n):
            row = tuple(dict(zip((i, *parents), cell, strict=True)).get(j, 0) for j in range(self.last + 1))
            parts = self.theta(i, parents, row, None, row) if self.unit else (n, table[cell[1:]])
            below, above = log(Fraction(*parts))
            ends = ends[0] + n * below, ends[1] + n * above
        fit = [self.hybrid * Fraction(end, self.scale * ONE) for end in ends]
        return terms - free * self.penalty[1] + fit[0], terms - free * self.penalty[0] + fit[1]

    def bdeu(self, i: int, parents: Parents) -> Ends:
        """Return (low, high) of the sum of log(gamma(a + n) / gamma(a)) over cells, less that over parent states.

        a is the equivalent sample size divided by the number of all cells, or of all parent states.
        """
        above = self.sample_size / math.prod(self.n_states[j] for j in parents)
        low = high = 0
        for cell, n in self.count(i, parents, None).items():
            whole = len(cell) == len(parents)  # a parent state, with all states of the variable
            a = above if whole else above / self.n_states[i]
            ends = log_gamma(a), log_gamma(a + Fraction(n, self.scale))
            least, most = ends[1][0] - ends[0][1], ends[1][1] - ends[0][0]
            low, high = (low - most, high - least) if whole else (low + least, high + most)
        return Fraction(low, ONE), Fraction(high, ONE)

    def score(self, structure: Sequence[Parents], weights: Sequence[Fraction]) -> Ends:
        """Return (low, high) of a structure's score by its definition, (1), (8), (9), (21)."""
        sets = list(enumerate(structure))
        low, high = (sum((self.local_terms(i, s)[end] for i, s in sets), Fraction(0)) for end in (0, 1))
        if self.decomposable:
            return low, high
        for row, weight in zip(self.rows, weights, strict=True):
            one, own, rivals = self.versions(row)
            thetas = ([self.theta(i, s, x, one, own) for i, s in sets] for x in (own, *rivals))
            p, *others = (Fraction(*map(math.prod, zip(*parts, strict=True))) for parts in thetas)
            below, above = log(p / (p + sum(others)) if self.name == "cll" else p / max(others))
            low += weight * min(self.gamma, Fraction(below, ONE))
            high += weight * min(self.gamma, Fraction(above, ONE))
        return low, high

    def bound_without_search(self) -> Fraction:
        """Return the bound in which every sample and competing class chooses each variable's parent set on its own."""
        groups = [[p for p, (i, _) in enumerate(self.parent_sets) if i == v] for v in range(self.last + 1)]
        total = sum((max(self.linear[p] for p in own) for own in groups), Fraction(0)) / ONE
        for m, (row, weight) in enumerate(zip(self.rows, self.weights, strict=True)):
            x = [0] * len(self.versions(row)[2])
            for sets in ([self.alpha[p] for p in own] for own in groups):
                lists = [alpha[cells[m]] if cells else [(0, 0)] * len(x) for cells, alpha in sets]
                x = [value + max(a[r][1] for a in lists) for r, value in enumerate(x)]
            total += weight * min(self.gamma, Fraction(min(x), ONE))
        return total

    def bound_at(self, eta: Any, temperature: float) -> tuple[Fraction, list[Fraction]]:
        """Return constant and gradient without multipliers, in grains, rounded up."""
        unit = math.lcm(*(w.denominator for w in self.weights))  # w unit is a whole number
        points = [[float(self.gamma), *[0.0] * len(self.versions(row)[2])] for row in self.rows]
        for p, value in eta:
            cells, alpha = self.alpha[p]
            terms = {cell: [0.0, *(value * (low / ONE) for low, _ in a)] for cell, a in alpha.items()}
            for m, cell in enumerate(cells):
                points[m] = [x + term for x, term in zip(points[m], terms[cell], strict=True)]
        constant, active = Fraction(0), []
        for m, (x, weight) in enumerate(zip(points, self.weights, strict=True)):
            away = [(value - min(x)) / temperature for value in x]
            parts = [math.exp(-value) if value < REACH[self.name] else 0.0 for value in away]
            dual = [int(math.ldexp(part / sum(parts), BITS)) for part in parts]  # of lambda_m
            dual[dual.index(max(dual))] += ONE - sum(dual)
            entropy = sum(k * log(Fraction(k, ONE))[1] for k in dual if k) if self.name == "cll" else 0
            constant += weight * (dual[0] * self.gamma + Fraction(entropy, ONE))
            if weight and dual[0] < ONE:
                active.append((m, [int(weight * unit) * k for k in dual[1:]]))
        gradient = list(self.linear)
        for p, (cells, alpha) in ((p, f) for p, f in enumerate(self.alpha) if f[0]):
            mass = {cell: [0] * len(a) for cell, a in alpha.items()}
            for m, dual in active:
                mass[cells[m]] = [total + k for total, k in zip(mass[cells[m]], dual, strict=True)]
            # w lambda is not negative, so that the upper ends of alpha give the upper ends of the sums.
            total = sum(k * a[1] for cell, own in mass.items() for k, a in zip(own, alpha[cell], strict=True))
            gradient[p] += Fraction(total, unit * ONE)
        return constant, gradient
