"""The score of every structure of a case, in exact arithmetic, with which results are compared.

P12 is Peharz & Pernkopf (2012). Counts, weights and parameters are fractions. Their logarithms are integers in units of
2**-SHIFT, rounded down from numbers of some 100 more bits. Sums and comparisons of them are exact, and the error of a
score is less than 10**-70 of the sum of its weights. `NOTHING` is much larger than that, and much smaller than the
precision of float64.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np

from campaign.case import Case, Training
from campaign.space import Graph, Parents, is_margin, structures

SHIFT = 320
ONE = 1 << SHIFT
CONTEXT = mpmath.MPContext()
CONTEXT.prec = SHIFT + 110
#: Smaller differences count as 0.
NOTHING = Fraction(1, 1 << 200)


def fixed(value: Any) -> int:
    """Return a number of the context in units of 2**-SHIFT."""
    return int(CONTEXT.floor(CONTEXT.ldexp(value, SHIFT)))


def number(value: Fraction) -> Any:
    """Return a fraction as a number of the context."""
    return CONTEXT.mpf(value.numerator) / value.denominator


@lru_cache(maxsize=200_000)
def log(value: Fraction) -> int:
    """Return the logarithm of a positive fraction."""
    return fixed(CONTEXT.log(number(value)))


@lru_cache(maxsize=100_000)
def log_gamma(value: Fraction) -> int:
    """Return the logarithm of the gamma function."""
    return fixed(CONTEXT.loggamma(number(value)))


@lru_cache(maxsize=200_000)
def log_one_plus_exp(rivals: tuple[int, ...]) -> int:
    """Return log(1 + sum of exp) of numbers in units of 2**-SHIFT."""
    total = CONTEXT.fsum(CONTEXT.exp(CONTEXT.ldexp(r, -SHIFT)) for r in rivals)
    return fixed(CONTEXT.log1p(total))


def times(weight: Fraction, value: int) -> int:
    """Return a product in units of 2**-SHIFT."""
    return weight.numerator * value // weight.denominator


def gamma_of(score: dict[str, Any]) -> float:
    """Return the desired log-margin: as given, or log(p / (1 - p))."""
    if score.get("gamma") is not None:
        return float(score["gamma"])
    p = score.get("p", 0.99)
    return math.log(p / (1 - p))


class Scores:
    """Scores of structures over the training rows of a case.

    Parameters
    ----------
    case : Case
        The problem.
    counted : dict of row to Fraction, optional
        Weights of the margins of some distinct rows, instead of the weights of all rows: a representative subset.
    """

    def __init__(self, case: Case, counted: dict[int, Fraction] | None = None) -> None:
        self.case, self.score = case, case.score
        self.data: Training = case.training
        self.sizes = [len(states) for states in self.data.states]
        self.total = sum(self.data.weights, Fraction(0))
        #: Whether the rows have a single class, or there are none. The case must be refused.
        self.one_class = len({row[-1] for row in self.data.rows}) < 2
        counted = dict(enumerate(self.data.weights)) if counted is None else counted
        self.rows = sorted(counted)
        self.weights = [counted[m] for m in self.rows]
        self.smoothing = Fraction(self.score.get("smoothing", 1.0))
        self.towards = self.score.get("smoothing_towards", "uniform")
        #: The weight of a row that its own parameters are estimated without. With smaller weights there is no score,
        #: and the case must be refused.
        light = any(w < 1 for w in self.data.weights)
        self.unit = int(self.score.get("leave_one_out", False) and not light)
        self._margins: dict[tuple[int, Parents], np.ndarray | None] = {}
        self._local: dict[tuple[int, Parents], int] = {}
        index = {name: i for i, name in enumerate(case.names)}
        self.arcs = {
            (index[a], index[b]): fixed(CONTEXT.mpf(w)) for a, b, w in case.constraints.get("arc_weights", [])
        }

    def of(self, graph: Graph) -> Fraction | None:
        """Return the score of a structure; None where it has none: AICc, and margins without a rival class."""
        if is_margin(self.case) and self.one_class:
            return None
        value = sum(self.arcs.get((j, i), 0) for i, parents in enumerate(graph) for j in parents)
        value += sum(self.local(i, parents) for i, parents in enumerate(graph))
        if is_margin(self.case):
            value += self._discriminative(graph)
        if self.score["name"] == "aicc":
            k = sum(self.parameters(i, parents) for i, parents in enumerate(graph))
            rest = self.total - k - 1
            if rest <= 0:
                return None
            value -= k * ONE + times(Fraction(k * (k + 1)) / rest, ONE)
        return Fraction(value, ONE)

    def _discriminative(self, graph: Graph) -> int:
        R = 1 if self.score["name"] == "sbm" else self.sizes[-1] - 1
        tables = [t for i, parents in enumerate(graph) if (t := self.margins(i, parents)) is not None]
        sums = sum(tables[1:], tables[0]).reshape(len(self.rows), R)
        if self.score["name"] == "cll":
            parts = [-log_one_plus_exp(tuple(sorted(-v for v in row))) for row in sums.tolist()]
        else:
            parts = sums.min(axis=1).tolist()
        if self.score["name"] == "hard-margin":
            return min(parts)
        if self.score["name"] != "cll":
            gamma = fixed(CONTEXT.mpf(gamma_of(self.score)))
            parts = [min(gamma, part) for part in parts]
        return sum(times(w, part) for w, part in zip(self.weights, parts, strict=True))

    def margins(self, i: int, parents: Parents) -> np.ndarray | None:
        """Return by how much a variable's log theta of the true class exceeds that of each rival, row by row.

        Integers, one after the other for each row and rival; None where the class is not in the family.
        """
        last = len(self.sizes) - 1
        if i != last and last not in parents:
            return None
        key = (i, parents)
        if key not in self._margins:
            make = self._binary if self.score["name"] == "sbm" else self._against_every_class
            self._margins[key] = np.array(make(i, parents), dtype=object)
        return self._margins[key]

    def _against_every_class(self, i: int, parents: Parents) -> list[int]:
        cells, above = self.counts(i, parents, self.data.rows)
        size = self.sizes[i]
        prior = self.prior(i, parents, self.data.rows, self.sizes)
        out = []
        for m in self.rows:
            row = self.data.rows[m]

            def theta(c: int, own: tuple[int, ...] = row) -> int:
                return self.log_theta(cells, above, i, parents, (*own[:-1], c), own, size, prior)

            true = theta(row[-1])
            out += [true - theta(c) for c in range(self.sizes[-1]) if c != row[-1]]
        return out

    def log_theta(
        self,
        cells: dict[tuple[Parents, int], Fraction],
        above: dict[Parents, Fraction],
        i: int,
        parents: Parents,
        row: tuple[int, ...],
        own: tuple[int, ...],
        size: int,
        prior: Any = None,
    ) -> int:
        """Return log theta of variable i in a row, from counts without a unit of weight of the row `own`."""
        mean = Fraction(1, size)
        if prior is not None:
            mean = self._theta(prior[0], prior[1], i, prior[2], row, own, size, mean)
        return log(self._theta(cells, above, i, parents, row, own, size, mean))

    def _theta(self, cells, above, i, parents, row, own, size, mean) -> Fraction:  # type: ignore[no-untyped-def]
        h, a = tuple(row[j] for j in parents), self.smoothing * size
        unit = self.unit if h == tuple(own[j] for j in parents) else 0
        n = cells[h, row[i]] - (unit if row[i] == own[i] else 0)
        return (n + a * mean) / (above[h] - unit + a)

    def prior(self, i: int, parents: Parents, rows: Any, sizes: list[int]) -> Any:
        """Return the counts of the table that a family is shrunk towards, and its parents; None for uniform."""
        last = len(sizes) - 1
        fewer = tuple(j for j in parents if self.towards == "class" and j == last)
        if self.towards == "uniform" or all(sizes[j] == 1 or j in fewer for j in parents):
            return None
        return (*self.counts(i, fewer, rows), fewer)

    def _binary(self, i: int, parents: Parents) -> list[int]:
        """P12 (20): for the class c of each row, count with the class variable re-read as {c, not c}."""
        last, out = len(self.sizes) - 1, {}
        size = 2 if i == last else self.sizes[i]
        for c in {self.data.rows[m][-1] for m in self.rows}:
            coded = [(*row[:-1], int(row[-1] != c)) for row in self.data.rows]
            cells, above = self.counts(i, parents, coded)
            prior = self.prior(i, parents, coded, [*self.sizes[:-1], 2])
            for m in self.rows:
                if self.data.rows[m][-1] != c:
                    continue
                values = [
                    self.log_theta(cells, above, i, parents, (*coded[m][:-1], c), coded[m], size, prior)
                    for c in (0, 1)
                ]
                out[m] = values[0] - values[1]
        return [out[m] for m in self.rows]

    def counts(
        self, i: int, parents: Parents, rows: Any
    ) -> tuple[dict[tuple[Parents, int], Fraction], dict[Parents, Fraction]]:
        """Return the weights of joint states and of parents' states; 0 where none occurs."""
        cells: dict[tuple[Parents, int], Fraction] = defaultdict(Fraction)
        above: dict[Parents, Fraction] = defaultdict(Fraction)
        for row, weight in zip(rows, self.data.weights, strict=True):
            h = tuple(row[j] for j in parents)
            cells[h, row[i]] += weight
            above[h] += weight
        return cells, above

    def parameters(self, i: int, parents: Parents) -> int:
        """Return the number of free parameters of a family."""
        return (self.sizes[i] - 1) * math.prod(self.sizes[j] for j in parents)

    def local(self, i: int, parents: Parents) -> int:
        """Return the term of one family."""
        key = (i, parents)
        if key not in self._local:
            self._local[key] = self._family(i, parents)
        return self._local[key]

    @cached_property
    def price(self) -> int:
        """The penalty per free parameter."""
        if is_margin(self.case):
            penalty = self.score.get("penalty", 0.0)
        else:
            penalty = {"mdl": "bic", "aic": "aic"}.get(self.score["name"], 0.0)
        if penalty == "bic":
            return log(self.total) // 2
        return ONE if penalty == "aic" else fixed(CONTEXT.mpf(penalty))

    def _family(self, i: int, parents: Parents) -> int:
        if self.score["name"] == "bdeu":
            return self._bdeu(i, parents)
        factor = Fraction(self.score.get("hybrid", 0.0)) if is_margin(self.case) else Fraction(1)
        value = -self.price * self.parameters(i, parents)
        if factor:
            cells, above = self.counts(i, parents, self.data.rows)
            prior = self.prior(i, parents, self.data.rows, self.sizes)
            for (h, x), n in cells.items():
                share = (
                    log(n / above[h])
                    if not self.unit
                    else self._left_out(cells, above, i, parents, h, x, prior)
                )
                value += times(factor * n, share)
        return value

    def _left_out(self, cells, above, i, parents, h, x, prior) -> int:  # type: ignore[no-untyped-def]
        at = {**dict(zip(parents, h, strict=True)), i: x}
        row = tuple(at.get(j, 0) for j in range(len(self.sizes)))
        return self.log_theta(cells, above, i, parents, row, row, self.sizes[i], prior)

    def _bdeu(self, i: int, parents: Parents) -> int:
        cells, above = self.counts(i, parents, self.data.rows)
        ess = Fraction(self.score.get("equivalent_sample_size", 1.0))
        over = ess / math.prod(self.sizes[j] for j in parents)
        cell = over / self.sizes[i]
        value = sum(log_gamma(over) - log_gamma(over + n) for n in above.values())
        return value + sum(log_gamma(cell + n) - log_gamma(cell) for n in cells.values())


@dataclass(frozen=True)
class Truth:
    """The exact scores of a case.

    Attributes
    ----------
    scores : Scores
        For any other structure.
    values : dict of structure to Fraction
        Every structure that has a score.
    """

    scores: Scores
    values: dict[Graph, Fraction]

    @cached_property
    def optimum(self) -> Fraction | None:
        """The best score; None if no structure is allowed."""
        return max(self.values.values()) if self.values else None

    @cached_property
    def optimal(self) -> list[Graph]:
        """All structures of the best score."""
        best = self.optimum
        return [g for g, v in self.values.items() if best is not None and best - v <= NOTHING]


def truth(case: Case, most: int = 10**9, counted: dict[int, Fraction] | None = None) -> Truth:
    """Score every structure of a case.

    Raises
    ------
    campaign.space.TooManyError
        If there are more than `most`.
    """
    graphs = structures(case, most)
    scores = Scores(case, counted)
    values = {graph: value for graph in graphs if (value := scores.of(graph)) is not None}
    return Truth(scores, values)
