"""Scores of one structure with 60 digits, from the definitions, to compare floating-point scores with.

Weights, smoothing, gamma and all other options are taken as the exact rational numbers that their doubles are. Nothing
is imported from milpbn but the types of the data. The equations are those of `tests/oracle.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import prod
from typing import Any

from mpmath import mp, mpf

from milpbn.data.dataset import Dataset

Parents = tuple[int, ...]
mp.dps = 60


class Exact:
    """Scores of structures over some data; families are computed once.

    Parameters
    ----------
    data : Dataset
        Training samples, merged or not.
    options : dict
        What `Score.to_dict` returns.
    arc_weights : dict from (parent, child) to float
        By index.
    """

    def __init__(
        self, data: Dataset, options: dict[str, Any], arc_weights: dict[tuple[int, int], float] | None = None
    ) -> None:
        self.o = options
        #: The weight of a sample that its own parameters are estimated without.
        self.unit = int(options["leave_one_out"])
        self.towards = options["smoothing_towards"]
        self.arc_weights = arc_weights or {}
        self.states = [v.n_states for v in data.variables]
        merged: dict[tuple[int, ...], mpf] = defaultdict(mpf)
        for row, weight in zip(data.codes.tolist(), data.weights.tolist(), strict=True):
            merged[tuple(row)] += mpf(weight)
        self.rows, self.weights = list(merged), list(merged.values())
        self.total = sum(self.weights, mpf(0))
        self._terms: dict[tuple[int, Parents], list[list[mpf]]] = {}
        self._likelihood: dict[tuple[int, Parents], mpf] = {}

    def score(self, parents: Sequence[Sequence[int]]) -> mpf:
        """Return the score of a structure; the class is the last variable."""
        structure = [tuple(sorted(s)) for s in parents]
        name = self.o["name"]
        value = sum(
            (mpf(self.arc_weights.get((j, i), 0)) for i, s in enumerate(structure) for j in s), mpf(0)
        )
        if name == "bdeu":
            return value + sum(self._bdeu(i, s) for i, s in enumerate(structure))
        k = sum((self.states[i] - 1) * prod(self.states[j] for j in s) for i, s in enumerate(structure))
        if name in ("sm", "sbm", "cll", "hard-margin"):
            penalty = {"bic": mp.log(self.total) / 2, "aic": mpf(1)}.get(self.o["penalty"])
            value -= k * (mpf(self.o["penalty"]) if penalty is None else penalty)
            if self.o["hybrid"]:
                value += mpf(self.o["hybrid"]) * self._log_likelihood(structure)
            return value + self._margins(structure)
        value += self._log_likelihood(structure)
        if name == "mdl":
            value -= k * mp.log(self.total) / 2
        elif name in ("aic", "aicc"):
            value -= k
            if name == "aicc":
                rest = self.total - k - 1
                value = value - k * (k + 1) / rest if rest > 0 else mpf("-inf")
        return value

    def _margins(self, structure: list[Parents]) -> mpf:
        terms = [self.terms(i, s) for i, s in enumerate(structure)]
        name, total, least = self.o["name"], mpf(0), mpf("inf")
        for m, weight in enumerate(self.weights):
            true, *rivals = (sum(t) for t in zip(*(of[m] for of in terms), strict=True))
            if name == "cll":
                total -= weight * mp.log1p(sum(mp.exp(r - true) for r in rivals))
                continue
            margin = true - max(rivals)
            least = min(least, margin)
            if name != "hard-margin":
                total += weight * min(mpf(self.o["gamma"]), margin)
        return least if name == "hard-margin" else total

    def terms(self, i: int, parents: Parents) -> list[list[mpf]]:
        """Return log theta of a variable for every sample: with the true class, then with each rival."""
        if (i, parents) not in self._terms:
            C = self.states[-1]
            found: list[list[mpf]] = [[] for _ in self.rows]
            for c in range(C) if self.o["name"] == "sbm" else (None,):
                rows, states = self.rows, self.states
                if c is not None:
                    rows = [(*row[:-1], int(row[-1] != c)) for row in rows]
                    states = [*states[:-1], 2]
                joint, above = self._counts(rows, i, parents)
                a, fewer = mpf(self.o["smoothing"]), self._fewer(parents, states)
                means = None if fewer is None else self._counts(rows, i, fewer)
                logs: dict[Any, mpf] = {}
                for m, row in enumerate(rows):
                    if c is not None and row[-1] != 0:
                        continue
                    own = row[i], tuple(row[j] for j in parents)
                    for k in (row[-1], *(k for k in range(states[-1]) if k != row[-1])):
                        other = (*row[:-1], k)
                        key = other[i], tuple(other[j] for j in parents)
                        # Where the sample counts: in n_{j|h}, in n_h, and perhaps in the counts of the prior's table.
                        less = [self.unit * (key == own), self.unit * (key[1] == own[1])]
                        mine = ()
                        if fewer is not None:
                            g, h = (tuple(x[j] for j in fewer) for x in (row, other))
                            mine = h, self.unit * (g == h and key[0] == own[0]), self.unit * (g == h)
                        if (key, *less, *mine) not in logs:
                            n, n_h, mean = joint[key] - less[0], above[key[1]] - less[1], mpf(1) / states[i]
                            if means is not None:
                                mean = (means[0][key[0], h] - mine[1] + a) / (
                                    means[1][h] - mine[2] + a * states[i]
                                )
                            logs[key, *less, *mine] = mp.log(
                                (n + a * states[i] * mean) / (n_h + a * states[i])
                            )
                        found[m].append(logs[key, *less, *mine])
            self._terms[i, parents] = found
        return self._terms[i, parents]

    def _fewer(self, parents: Parents, states: Sequence[int]) -> Parents | None:
        """Return the parents of the prior's table; None for a uniform mean."""
        last = len(states) - 1
        kept = tuple(j for j in parents if j == last and self.towards == "class")
        alone = all(states[j] == 1 for j in parents if j not in kept)
        return None if self.towards == "uniform" or alone else kept

    def _counts(self, rows: Sequence[tuple[int, ...]], i: int, parents: Parents) -> tuple[dict, dict]:
        joint: dict[Any, mpf] = defaultdict(mpf)
        above: dict[Any, mpf] = defaultdict(mpf)
        for row, weight in zip(rows, self.weights, strict=True):
            h = tuple(row[j] for j in parents)
            joint[row[i], h] += weight
            above[h] += weight
        return joint, above

    def _log_likelihood(self, structure: list[Parents]) -> mpf:
        total = mpf(0)
        for i, s in enumerate(structure):
            if (i, s) not in self._likelihood:
                joint, above = self._counts(self.rows, i, s)
                unit, a = self.unit, self.unit * mpf(self.o["smoothing"])
                fewer = self._fewer(s, self.states)
                means = None if fewer is None else self._counts(self.rows, i, fewer)
                total_of_family = mpf(0)
                for (x, h), n in joint.items():
                    mean = mpf(1) / self.states[i]
                    if means is not None:
                        g = tuple(of for j, of in zip(s, h, strict=True) if j in fewer)
                        mean = (means[0][x, g] - unit + a) / (means[1][g] - unit + a * self.states[i])
                    added = a * self.states[i]
                    total_of_family += n * mp.log((n - unit + added * mean) / (above[h] - unit + added))
                self._likelihood[i, s] = total_of_family
            total += self._likelihood[i, s]
        return total

    def _bdeu(self, i: int, s: Parents) -> mpf:
        if (i, s) not in self._likelihood:
            joint, above = self._counts(self.rows, i, s)
            alpha = mpf(self.o["equivalent_sample_size"]) / prod(self.states[j] for j in s)
            cell = alpha / self.states[i]
            value = sum((mp.loggamma(alpha) - mp.loggamma(alpha + n) for n in above.values()), mpf(0))
            value += sum((mp.loggamma(cell + n) - mp.loggamma(cell) for n in joint.values()), mpf(0))
            self._likelihood[i, s] = value
        return self._likelihood[i, s]
