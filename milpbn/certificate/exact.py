"""A small checker of certificates, independent of the ordinary verifier; it is slow, and short enough to be read.

It shares only the reader of the file, which unpacks arrays, with the rest of the project. Counts, weights and dual
weights are exact rational numbers, logarithms are intervals that are rounded outwards, and all other arithmetic has no
rounding. P12 is Peharz and Pernkopf (2012); numbers in parentheses are its equations.

What is proved. A structure gives every variable i one of its candidate parent sets, without a cycle; eta is the
indicator of these choices, (4)-(7). With the coefficients alpha_{m,c} of sample m and competing class c, (12), or the
single alpha_m of the binary margin, (23), the score is a sum over samples with weights w_m,

    sm, sbm   sum_m w_m min(gamma, min_c alpha_{m,c} @ eta)                                    (9), (13), (22)
    cll       sum_m w_m log P(c_m | z_m) = - sum_m w_m log(1 + sum_c exp(- alpha_{m,c} @ eta))

plus linear @ eta: hybrid times the log-likelihood, minus penalty times the free parameters, plus weights of arcs. With
leave_one_out, one unit of a sample's weight counts neither in its own coefficients nor in its own, then smoothed,
log-likelihood. For every lambda of the simplex, lambda_0 for gamma (under cll, for the true class, of value 0),

    min(gamma, min_c x_c) <= lambda_0 gamma + sum_c lambda_c x_c,
    - log(1 + sum_c exp(- x_c)) <= sum_c lambda_c x_c + sum_{c and 0} lambda_c log lambda_c,

because a minimum is at most any mean, and because the negative entropy is the conjugate of log-sum-exp (Boyd and
Vandenberghe 2004, example 3.25). With multipliers mu_r >= 0 of inequalities a_r @ eta >= b_r that every structure
obeys, no structure of a set scores more than

    b(lambda, mu) = constant + max over the set of gradient @ eta,
    constant      = sum_m w_m (lambda_{m,0} gamma or sum lambda_m log lambda_m) - mu @ b,
    gradient      = linear + sum_{m,c} w_m lambda_{m,c} alpha_{m,c} + sum_r mu_r a_r.

What a certificate holds. A binary tree of sets of structures; node 0 holds all. A branch (node, kind, a, b, inside,
outside) divides a node by a decision (`ExactTree.keeps`). A reduced-cost fixing removes parent sets from a node and its
descendants, because the node's structures with one of them score less than the incumbent. A node's fixings apply in
the order of the file, before its branch. A node without a branch is a leaf; the largest bound of a leaf bounds all
structures. Each fixing and each leaf has a point eta and a temperature T. They stand for dual weights proportional to
exp(- x / T), for x = gamma (cll: 0) and x = alpha_{m,c} @ eta; weights below exp(-REACH) of the largest are 0. They are
computed in floats, and then made exact. Parent sets are numbered by variable, the class last, then as in `candidates`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, combinations, pairwise
from typing import Any

from mpmath import iv, libmp

from milpbn.certificate.format import load_proof

#: Problems with more features or more steps are refused; about 10 million steps take a second.
LARGEST_FEATURES, LARGEST_WORK = 12, 20_000_000_000
#: Logarithms are whole multiples of a grain, 1 / ONE nats; dual weights are whole multiples of 1 / ONE.
BITS, ONE = 100, 1 << 100
#: Shares of max(1, abs(score)): how far a claimed score may be off, and how far an optimum's bound may lie above it.
TOLERANCE, OPTIMALITY = Fraction(1, 10**9), Fraction(1, 10**6)
#: Dual weights below exp(-REACH) of the largest count as 0, by score.
REACH = {"sm": 16.0, "sbm": 16.0, "cll": 36.0}
#: Kinds of decisions, and the value of `row_limit` that marks an inequality of a cluster.
EDGE, ARC, ORPHAN, PARENT_SET, CLUSTER = 0, 1, 2, 3, -1

Json = Mapping[str, Any]
Ends = tuple[Fraction, Fraction]
Row = tuple[int, ...]
Parents = tuple[int, ...]


class NotProvedError(ValueError):
    """A claim does not hold, or cannot be checked here; the text is a sentence."""


def check(claim: Json | None, certificate: str | os.PathLike[str], data: Any) -> tuple[Ends, Fraction]:
    """Check a result's structure, score, bound, optimality and arcs of all optima, or raise NotProvedError.

    `claim` is the contents of a result.json; None checks the claims in the certificate's own header. `data` has the
    attributes `variables` (each with name, states and cuts; the class last), `codes` and `weights` of a `Dataset`.
    Returns (low, high) of the structure's score over all rows, and the proved bound: over the subset, if there is one.
    """
    header, arrays = load_proof(certificate)
    try:
        return _check(header if claim is None else claim, header, arrays, data)
    except NotProvedError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise NotProvedError(f"The claim does not have the known form ({error!r:.80}).") from None


def _check(claim: Json, header: Json, arrays: Json, data: Any) -> tuple[Ends, Fraction]:
    _need(len(data.variables) <= LARGEST_FEATURES + 1, f"Too large: more than {LARGEST_FEATURES} features.")
    problem = ExactProblem(data, claim["score"], claim["constraints"])
    described = json.dumps([[v.name, list(v.states), v.cuts] for v in data.variables])
    numbers = data.codes.astype("<i4").tobytes() + data.weights.astype("<f8").tobytes()
    found = {"sha256": hashlib.sha256(described.encode() + numbers).hexdigest(), "samples": len(data.codes)}
    found |= {"unique_samples": len(problem.rows), "features": problem.last, "classes": problem.n_states[-1]}
    _need(found.items() <= claim["data"].items(), "The data differ from the data of the claim.")
    same = all(claim[key] == header[key] for key in ("score", "constraints", "run"))
    _need(same, "Result and certificate differ in score, constraints or run.")
    subset, reason = claim.get("subset"), claim.get("status", {}).get("reason")
    _need((subset is None) == (header.get("subset") is None), "Result and certificate differ in the subset.")
    own = claim if subset is None else subset
    if subset is not None:
        silent = claim.get("bound") is None and reason != "optimal" and not claim.get("proved")
        _need(silent, "The optima over a subset prove nothing about the optima over all rows.")
        problem.weights = _subset(problem, arrays, subset["samples"])
    place = {v.name: i for i, v in enumerate(data.variables)}
    _need(set(claim["structure"]) == set(place), "The structure has other variables than the data.")
    structure = [tuple(sorted(place[j] for j in claim["structure"][name])) for name in place]
    _need(problem.allows(structure), "The structure does not obey the options and constraints.")
    for z, weights in ((claim["objective"], problem.counts), (own["objective"], problem.weights)):
        low, high = problem.score(structure, weights)
        close = abs(_number(z) - low) <= TOLERANCE * max(Fraction(1), abs(low))
        _need(close, f"The structure scores {float(low)!r}, not {z!r} as claimed.")
    tree, bound, objective = ExactTree(problem, arrays), _number(own["bound"]), _number(own["objective"])
    proved = tree.prove(math.floor(low * ONE))
    proved = Fraction(max(high, proved if proved <= bound else min(proved, problem.bound_without_search())))
    _need(proved <= bound, f"The claimed bound is {float(proved - bound):.3g} below the proved bound.")
    optimal = bound - objective <= OPTIMALITY * max(Fraction(1), abs(objective))
    _need(optimal or not (reason == "optimal" or own.get("optimal")), "The structure is not proved optimal.")
    for key, undecided in tree.undecided.items():
        arcs = {(place[j], place[i]) for j, i in (claim.get("proved") or {}).get(key, ())}
        _need(undecided.isdisjoint(arcs), f"An arc in the claim's list {key!r} is not proved.")
    return (low, high), proved


def _subset(problem: ExactProblem, arrays: Json, samples: int) -> list[Fraction]:
    """Return the weights of all rows in the subset; but for rounding, every class keeps its total weight."""
    chosen = dict(zip(arrays["subset_row"].tolist(), arrays["subset_weight"].tolist(), strict=True))
    found = [_number(chosen.get(m, 0)) for m in range(len(problem.rows))]
    fits = sum(w > 0 for w in found) == len(chosen) == len(arrays["subset_row"]) == samples
    for c in range(problem.n_states[-1]):
        here = [m for m, row in enumerate(problem.rows) if row[-1] == c]
        part, whole = (sum((w[m] for m in here), Fraction(0)) for w in (found, problem.counts))
        fits = fits and abs(part - whole) <= TOLERANCE * max(Fraction(1), whole)
    _need(fits, "The certificate's samples do not represent all rows of their classes.")
    return found


def _need(holds: bool, sentence: str) -> None:
    if not holds:
        raise NotProvedError(sentence)


def _number(value: Any) -> Fraction:
    """Return a number of a JSON file, exactly."""
    _need(type(value) in (int, float), f"{value!r:.40} stands where a number should be.")
    return Fraction(value)


@lru_cache(maxsize=500_000)
def log(x: Fraction) -> tuple[int, int]:
    """Return whole numbers of grains below and above the natural logarithm of a positive number."""
    if x == 1:
        return 0, 0
    iv.prec = BITS + 60
    low, high = (iv.log(iv.mpf(x.numerator) / iv.mpf(x.denominator)) * ONE)._mpi_
    # One more grain covers a last bit that mpmath rounds to the wrong side; the interval has 60 bits to spare.
    return libmp.to_int(low, libmp.round_floor) - 1, libmp.to_int(high, libmp.round_ceiling) + 1


class ExactProblem:
    """The score, and the structures over which it is maximised.

    `rows` are the distinct samples in lexicographic order, the class last; `counts` are their weights in the
    parameters, `weights` those in the score; `parent_sets` are the candidates (variable, parents) in the order of eta.
    """

    def __init__(self, data: Any, options: Json, constraints: Json) -> None:
        flags = {key: options.get(key, False) for key in ("class_parents", "leave_one_out")}
        read = {"name", "gamma", "max_parents", "smoothing", "penalty", "hybrid", *flags}
        unused = {"parent_sets": "paper", "equivalent_sample_size": 1.0}
        fits = all(key in read or value == unused.get(key) for key, value in options.items())
        self.name, (self.class_parents, self.unit) = options["name"], flags.values()
        fits = fits and type(self.class_parents) is type(self.unit) is bool and self.name in REACH
        _need(fits, "The exact check does not know the score, or one of its options.")
        self.n_states, self.last = [len(v.states) for v in data.variables], len(data.variables) - 1
        merged: dict[Row, Fraction] = {}
        for row, weight in zip(map(tuple, data.codes.tolist()), data.weights.tolist(), strict=True):
            known = weight >= self.unit and all(0 <= x < n for x, n in zip(row, self.n_states, strict=True))
            _need(known, "The data have a value without a state, or a weight that is too small.")
            merged[row] = merged.get(row, Fraction(0)) + Fraction(weight)
        self.rows = sorted(merged)
        self.weights = self.counts = [merged[row] for row in self.rows]
        self.smoothing, self.hybrid = _number(options["smoothing"]), _number(options["hybrid"])
        self.max_parents = min(options["max_parents"], self.last)
        # 0 under cll, because log P(c_m | z_m) is at most 0 and at most every margin.
        self.gamma = Fraction(0) if self.name == "cll" else _number(options["gamma"])
        _need(self.smoothing > 0 and self.hybrid >= 0, "The score has options out of range.")
        if options["penalty"] == "bic":
            self.penalty = [Fraction(end, 2 * ONE) for end in log(sum(self.counts, Fraction(0)))]
        else:
            self.penalty = [_number(1 if options["penalty"] == "aic" else options["penalty"])] * 2
        self._tables: dict[Any, dict[Row, Fraction]] = {}
        self._read_constraints(constraints, {v.name: i for i, v in enumerate(data.variables)})
        self.parent_sets = [(i, s) for i in range(self.last + 1) for s in self.candidates(i)]
        work = 1000 * len(self.parent_sets) * len(self.rows) * self.n_states[-1]
        _need(work <= LARGEST_WORK, "The table is too large for the exact check.")
        self.linear = [self.local_terms(i, s)[1] * ONE for i, s in self.parent_sets]
        self.alpha = [self.coefficients(i, s) for i, s in self.parent_sets]

    def _read_constraints(self, given: Json, at: Mapping[str, int]) -> None:
        """Read constraints by name; arcs are (parent, child), and tiers and lists of allowed parents forbid arcs."""
        known = {"required", "forbidden", "tiers", "max_children", "fixed", "allowed", "arc_weights"}
        _need(known.issuperset(given), "The exact check does not know all of the constraints.")
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
        self.arc_weights = {(at[j], at[i]): _number(w) for j, i, w in given.get("arc_weights", ())}

    def admits(self, i: int, parents: Parents) -> bool:
        """Whether options and constraints allow variable i to have these parents."""
        arcs = {(j, i) for j in parents}
        fits = len(parents) <= (self.max_parents if i < self.last or self.class_parents else 0)
        fits = fits and arcs.issuperset(arc for arc in self.required if arc[1] == i)
        return fits and arcs.isdisjoint(self.forbidden) and set(parents) == self.fixed.get(i, set(parents))

    def candidates(self, i: int) -> list[Parents]:
        """Return the parent sets that variable i may have: sets without the class first, then by size and members.

        A feature has only one set without the class, the smallest: margins are equal under all (P12, footnote 1).
        """
        others, sizes = [j for j in range(self.last + 1) if j != i], range(self.max_parents + 1)
        sets = [s for size in sizes for s in combinations(others, size) if self.admits(i, s)]
        free = [s for s in sets if self.last not in s]
        return free[:1] + [s for s in sets if self.last in s] if i < self.last else free

    def exceeds_child_limit(self, structure: Collection[Parents]) -> bool:
        """Whether some variable has more children than the constraints allow."""
        return any(sum(j in s for s in structure) > limit for j, limit in self.limits.items())

    def allows(self, structure: Sequence[Parents]) -> bool:
        """Whether the bound covers a structure, or one that differs only in class-free sets of the same score."""
        alike = not (any(self.penalty) or self.hybrid or self.arc_weights)
        families, placed = list(enumerate(structure)), set[int]()
        for _ in structure:
            placed |= {i for i, s in families if placed.issuperset(s)}
        free = {(i, s) for i, s in families if alike and self.last not in (i, *s) and self.admits(i, s)}
        known = free.union(self.parent_sets).issuperset(families)
        return known and len(placed) == len(structure) and not self.exceeds_child_limit(structure)

    def count(self, i: int, parents: Parents, one: int | None) -> dict[Row, Fraction]:
        """Return n_{j|h} by (j, *h) and n_h by h, (2); with `one`, that class counts as 0 and all others as 1, (20)."""
        table = self._tables.setdefault((i, parents, one), {})
        if not table:
            for row, weight in zip(self.rows, self.counts, strict=True):
                x = row if one is None else (*row[:-1], int(row[-1] != one))
                h = tuple(x[j] for j in parents)
                for cell in ((x[i], *h), h):
                    table[cell] = table.get(cell, Fraction(0)) + weight
        return table

    def theta(self, i: int, parents: Parents, x: Row, one: int | None, own: Row) -> Fraction:
        """Return (n_{j|h} + a) / (n_h + a sp(X_i)) for a row x, (2), (20), with leave_one_out less a unit of `own`."""
        table, h, a = self.count(i, parents, one), tuple(x[j] for j in parents), self.smoothing
        states = 2 if one is not None and i == self.last else self.n_states[i]
        unit = int(self.unit and h == tuple(own[j] for j in parents))
        n = table.get((x[i], *h), 0) - unit * (x[i] == own[i])
        return (n + a) / (table.get(h, 0) - unit + a * states)

    def versions(self, row: Row) -> tuple[int | None, Row, list[Row]]:
        """Return `one` of `count`, the sample, and the sample with each competing class instead, (8), (20), (21)."""
        z, y = row[:-1], row[-1]
        if self.name == "sbm":
            return y, (*z, 0), [(*z, 1)]
        return None, row, [(*z, c) for c in range(self.n_states[-1]) if c != y]

    def coefficients(self, i: int, parents: Parents) -> tuple[list[Row], dict[Row, list[tuple[int, int]]]]:
        """Return the samples' cells, and alpha(i, k, m, c) of all c by cell, (12), (23); {} if all are 0."""
        cells = [tuple(row[j] for j in sorted((i, *parents))) for row in self.rows]
        alpha: dict[Row, list[tuple[int, int]]] = {}
        for cell, row in dict(zip(cells, self.rows, strict=True)).items():
            one, own, rivals = self.versions(row)
            theta = self.theta(i, parents, own, one, own)
            alpha[cell] = [log(theta / self.theta(i, parents, x, one, own)) for x in rivals]
        return (cells, alpha) if self.last in (i, *parents) else ([], {})

    def local_terms(self, i: int, parents: Parents) -> Ends:
        """Return (low, high) of hybrid sum n_{j|h} log(n_{j|h} / n_h) - penalty (free parameters) + arc weights."""
        terms = sum((self.arc_weights.get((j, i), Fraction(0)) for j in parents), Fraction(0))
        free = (self.n_states[i] - 1) * math.prod(self.n_states[j] for j in parents)
        low, high = (terms - free * self.penalty[end] for end in (1, 0))
        table, a = self.count(i, parents, None) if self.hybrid else {}, self.unit * self.smoothing
        for cell, n in ((cell, n) for cell, n in table.items() if len(cell) > len(parents) and n):
            below, above = log((n - self.unit + a) / (table[cell[1:]] - self.unit + a * self.n_states[i]))
            low, high = low + self.hybrid * n * below / ONE, high + self.hybrid * n * above / ONE
        return low, high

    def score(self, structure: Sequence[Parents], weights: Sequence[Fraction]) -> Ends:
        """Return (low, high) of a structure's score by its definition, (1), (8), (9), (21)."""
        sets = list(enumerate(structure))
        low, high = (sum((self.local_terms(i, s)[end] for i, s in sets), Fraction(0)) for end in (0, 1))
        for row, weight in zip(self.rows, weights, strict=True):
            one, own, rivals = self.versions(row)
            p, *others = (math.prod(self.theta(i, s, x, one, own) for i, s in sets) for x in (own, *rivals))
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


class ExactTree:
    """The tree that the arrays of a certificate hold.

    By node: `branches` are [kind, a, b, inside, outside], `leaves` are points, `fixings` are lists of (point, parent
    sets). A point is (eta, temperature, multipliers). `undecided` are the arcs (parent, child) that structures may
    lack (in) or may have (out) in leaves whose bound reaches the incumbent.
    """

    def __init__(self, problem: ExactProblem, arrays: Json) -> None:
        self.problem, self._arrays = problem, arrays
        self.undecided: dict[str, set[tuple[int, int]]] = {"in": set(), "out": set()}
        P, V, limits = len(problem.parent_sets), problem.last + 1, self._column("row_limit", int)
        self.rows = [self._row(*pair) for pair in zip(arrays["row_members"].tolist(), limits, strict=True)]
        nodes, leaves = self._column("deletion_node", int), self._column("leaf_node", int)
        removed = self._groups("deletion_size", self._column("deleted", int, P))
        eta = self._groups("weights_size", self._column("entries", int, P), self._column("eta", float))
        rows, mu = self._column("multiplier_row", int, len(limits)), self._column("multiplier", float)
        multipliers = self._groups("multipliers_size", rows, mu)
        temperatures = self._column("temperature", float)
        _need(min([1, *temperatures]) > 0 and min([0, *mu]) >= 0, "A temperature or multiplier is too small.")
        points = [*zip(eta, temperatures, multipliers, strict=True)]
        self.fixings: dict[int, list[Any]] = {}
        for node, *fixing in zip(nodes, points[: len(nodes)], removed, strict=True):
            self.fixings.setdefault(node, []).append(fixing)
        self.leaves = dict(zip(leaves, points[len(nodes) :], strict=True))
        self.branches = {node: branch for node, *branch in arrays["branches"].tolist()}
        once = len(self.leaves) == len(leaves) and len(self.branches) == len(arrays["branches"])
        _need(once and self.leaves.keys().isdisjoint(self.branches), "The certificate has a node twice.")
        work = len(points) * (P * (len(problem.rows) * problem.n_states[-1] + 2**V) + V * V * 2**V)
        _need(work <= LARGEST_WORK, "The certificate is too large for the exact check.")

    def _column(self, name: str, kind: type, below: float = math.inf) -> list[Any]:
        """Return an array of finite numbers of a type as a list; with `below`, of indices below that number."""
        values: list[Any] = self._arrays[name].tolist()
        fits = all(math.isfinite(x) and type(x) is kind for x in values)
        _need(fits and (below == math.inf or all(0 <= x < below for x in values)), f"{name} is damaged.")
        return values

    def _groups(self, sizes: str, *columns: list[Any]) -> list[list[Any]]:
        """Divide the rows of columns of equal length into groups of the given sizes."""
        counts, items = self._column(sizes, int, len(columns[0]) + 1), list(zip(*columns, strict=True))
        ends = list(accumulate(counts, initial=0))
        _need(ends[-1] == len(items), f"{sizes} of the certificate is damaged.")
        return [items[begin:end] for begin, end in pairwise(ends)]

    def _row(self, members: list[bool], limit: int) -> tuple[dict[int, int], int]:
        """Return a and b of an inequality a @ eta >= b: (7) for a cluster, or a variable's child limit."""
        inside, sets = {i for i, member in enumerate(members) if member}, self.problem.parent_sets
        if limit == CLUSTER and inside and max(inside) <= self.problem.last:
            return {p: 1 for p, (i, s) in enumerate(sets) if i in inside and inside.isdisjoint(s)}, 1
        holds = len(inside) == 1 and limit >= self.problem.limits.get(min(inside), math.inf)
        _need(holds, "The certificate has an inequality that does not hold for every structure.")
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
        _need(kind == PARENT_SET and a >= 0, "The certificate has an unknown decision.")
        return i != self.problem.parent_sets[a][0] or (p == a) == inside

    def prove(self, objective: int) -> Fraction | float:
        """Return the largest bound of a leaf; check the fixings against the incumbent's score, in grains."""
        sets, largest, seen = self.problem.parent_sets, -math.inf, set()
        stack: list[tuple[int, frozenset[int], Any]] = [(0, frozenset(range(len(sets))), ())]
        while stack:
            node, allowed, edges = stack.pop()
            _need(node not in seen, f"The certificate reaches node {node} twice.")
            seen.add(node)
            for point, removed in self.fixings.get(node, ()):
                wanted = allowed.intersection(p for (p,) in removed)
                worse = self.bound(allowed, edges, point, wanted) < objective
                _need(worse, f"A better structure may have a parent set that node {node} removes.")
                allowed -= wanted
            if node in self.branches:
                kind, a, b, *children = self.branches[node]
                for child, inside in zip(children, (True, False), strict=True):
                    kept = frozenset(p for p in allowed if self.keeps(p, kind, a, b, inside))
                    stack.append((child, kept, (*edges, (a, b)) if kind == EDGE and inside else edges))
                continue
            bare = node == 0 and not self.leaves  # a root without dual weights: only the bound without search
            _need(bare or node in self.leaves, f"The certificate has no bound for node {node}.")
            bound = math.inf if bare else self.bound(allowed, edges, self.leaves[node])
            largest = max(largest, bound)
            for i, s in (sets[p] for p in allowed if bound >= objective):
                for j in range(self.problem.last + 1):
                    self.undecided["out" if j in s else "in"].add((j, i))
        reached = seen.issuperset((*self.branches, *self.leaves, *self.fixings))
        _need(reached, "The certificate has nodes that its tree does not reach.")
        return largest if math.isinf(largest) else Fraction(largest) / ONE

    def bound(self, allowed: frozenset[int], edges: Any, point: Any, wanted: Any = None) -> float:
        """Return b(lambda, mu) of a node in grains, rounded up; with `wanted`, of its structures with one of those."""
        eta, temperature, multipliers = point
        constant, gradient = self.problem.bound_at(eta, temperature)
        for r, mu in multipliers:
            row, side = self.rows[r]
            constant -= Fraction(mu) * side * ONE
            for p, a in row.items():
                gradient[p] += Fraction(mu) * a * ONE
        left = dict(self.problem.parent_sets[p] for p in allowed)
        if len(left) == len(allowed) and self.problem.exceeds_child_limit(left.values()):
            return -math.inf  # the only structure left breaks a child limit
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
            for U in range(full):
                if U & bit and own[U ^ bit] > own[U]:
                    own[U] = own[U ^ bit]
    first: list[float] = [0, *[-math.inf] * (full - 1)]
    for U in range(1, full):
        first[U] = max(first[U ^ 1 << i] + best[i][U ^ 1 << i] for i in range(V) if U >> i & 1)
    if wanted is None:
        return first[-1]
    rest: list[float] = [*[-math.inf] * (full - 1), 0]
    for U in reversed(range(full - 1)):
        rest[U] = max(best[i][U] + rest[U | 1 << i] for i in range(V) if not U >> i & 1)
    most = -math.inf
    for p in wanted:
        i, parents = sets[p][0], bits[p]
        for U in range(full):
            if not U >> i & 1 and U & (parents | beside[i]) == parents:
                most = max(most, first[U] + rest[U | 1 << i] + weights[p])
    return most
