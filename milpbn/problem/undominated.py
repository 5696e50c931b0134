"""The parent sets that a best structure may need, found while all are scored; the others are never listed.

Let t(i, S) be the term of variable i with the parents S, F(S + i) - F(S) - lambda (r_i - 1) q_S + w(i, S), with F of
`milpbn.problem.joint_counts`, r_i states, q_S joint states of the parents, lambda nats per parameter, and arc weights
w. A set T is dominated if an admitted set S inside it has no smaller term. If S takes the place of T, a structure stays
acyclic and obeys the limits of children, what is required is in both, and fewer arcs break no independence. So one best
structure has no dominated set. The K best may have some, and so may the best one if paths are required.

Sets are scored by size, and each is compared with the best term inside it. If all sets above S are dominated by one of
these bounds, none of them is scored:

1. Likelihoods (de Campos & Ji 2011). A log-likelihood is at most 0, and T above S has at least twice as many
   parameters as S. So t(i, T) <= -2 lambda (r_i - 1) q_S plus the positive weights of arcs into i. If this is no more
   than the best term inside S, all T are dominated.
2. BDeu (Correia, Cussens & de Campos 2020; de Campos & Ji 2011 with the joint states of S only). Given the samples
   before it, a sample has the predictive probability (a / r_i + n') / (a + n), with n earlier samples of the same
   parents' states, n' of them in the same state of i. At the first sample of each joint state of T and i, n' = 0, and
   this is at most 1 / r_i; at others it is at most 1. So t(i, T) <= -K log r_i plus the positive weights, where K is
   the number of joint states of S + i that occur: T + i has no fewer. One of weight n < 1 counts as n in K, because
   log Gamma(a / r_i + x) - log Gamma(a + x) is convex in x, and falls by log r_i from x = 0 to 1.
3. Likelihoods (de Campos, Scanagatta, Corani & Zaffalon 2018). Let j be in S and R = S - j. The parent j adds M times
   the mutual information of i and j given R to the log-likelihood of M samples. This is at most
   M min(H(i | R), H(j | R)), and conditional entropies do not rise if R grows. Its parameters cost
   lambda (r_i - 1) q_R (r_j - 1), which does not fall. If the first, with a positive weight of the arc, is no more than
   the second, then every T above S, and S itself, has no larger term than T - j, which has to be admitted.

A parent or a child of one state changes no score but by arc weights. All comparisons leave room for rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset
from milpbn.errors import InputError
from milpbn.problem.candidates import Admitted, Candidates, list_candidates
from milpbn.problem.constraints import Constraints, Rules
from milpbn.problem.joint_counts import WeightedRows, rows_of, scratch_of, total_of
from milpbn.problem.lattice import Admission, Known, score_level
from milpbn.problem.scores.spec import Score
from milpbn.util.budget import Budget
from milpbn.util.compiled import Specialization, specialized
from milpbn.util.compiling import are_cached
from milpbn.util.threads import in_parts

#: Largest number of joint states of a set of numbered states and one more variable: some hundred megabytes a thread.
MOST_CELLS = 50_000_000
#: So few parent sets are all listed and scored one by one: to load the kernels would take as long.
FEW = 1_000


def can_leave_out(data: Dataset, score: Score, rules: Rules | Constraints | None) -> bool:
    """Return whether the score's dominated parent sets can be left out while they are scored."""
    most = data.n_samples * int(data.n_states.max())
    if rules is not None and rules.ancestors:  # a path may need the arcs of a dominated set
        return False
    return score.kind.sums_of_joint_states(data.total_weight) is not None and most <= MOST_CELLS


def undominated_sets(
    data: Dataset, score: Score, rules: Rules, admitted: Sequence[Admitted], budget: Budget
) -> Candidates:
    """Return all admitted parent sets that are not dominated, and a few that are nearly so.

    NoIncumbentError if the budget is used up, InputError if the sets are too many to be numbered.
    """
    if sum(own.count(data.n_features) for own in admitted) <= FEW:
        return list_candidates(data.names, admitted, budget)
    return Candidates(data.names, Levels(data, score, rules, admitted, budget).run())


class Levels:
    """The parent sets of one problem by size. Variables are numbered by their numbers of states, ascending."""

    def __init__(
        self, data: Dataset, score: Score, rules: Rules, admitted: Sequence[Admitted], budget: Budget
    ) -> None:
        sums = score.kind.sums_of_joint_states(data.total_weight)
        assert sums is not None
        self.data, self.budget = data, budget
        self.order = np.argsort(data.n_states, kind="stable")
        self.largest = max(own.largest_size for own in admitted)
        self.rows: WeightedRows = rows_of(data, self.order, sums[0])
        self.admission = self._admission(rules, admitted, sums[1])
        none, whole = np.zeros(0), np.zeros(0, dtype=np.int64)
        self.known = Known(whole, none, whole, whole, none, none, np.zeros(1, dtype=np.int64))

    def _admission(self, rules: Rules, admitted: Sequence[Admitted], penalty: float) -> Admission:
        n, order = self.data.n_variables, self.order
        role, removable = np.zeros((n, n), dtype=np.int8), np.zeros((n, n), dtype=bool)
        gain = np.zeros((n, n))
        for (j, i), weight in rules.arc_weights.items():
            gain[i, j] = weight
        for i, own in enumerate(admitted):
            role[i, list(own.free)], removable[i, list(own.free)] = 1, True
            role[i, list(own.required)] = 2
            if own.with_class >= 0:
                role[i, -1], removable[i, -1] = 1, own.without_class >= own.with_class
        placed = np.ix_(order, order)
        role, removable, gain = role[placed], removable[placed], gain[placed]
        positive = np.maximum(gain, 0.0).sum(axis=1, where=role > 0)
        # Another parent of several states doubles the parameters at least; one of one state is left out where it
        # may be, and has no weight.
        doubles = self.data.n_states.min() > 1 or (self.data.n_classes > 1 and not positive.any())
        binomials = [[math.comb(v, k) for k in range(self.largest + 1)] for v in range(n + 1)]
        if max(binomials[-1]) * n >= 2**62:
            raise InputError(
                f"{n} variables have too many sets of {self.largest} parents to be numbered; reduce --max-parents."
            )
        return Admission(
            role,
            removable,
            gain,
            positive,
            np.array([(admitted[i].without_class, admitted[i].with_class) for i in order], dtype=np.int64),
            np.array([len(admitted[i].required) for i in order], dtype=np.int64),
            int(np.flatnonzero(order == n - 1)[0]),
            penalty,
            2.0 if doubles else 1.0,
            np.array(binomials, dtype=np.int64),
        )

    @property
    def kernels(self) -> list[Specialization]:
        """The kernels of a run."""
        scratch, some = scratch_of(self.rows, 0), np.zeros(1, dtype=np.int64)
        return [
            specialized(total_of, self.rows, scratch, some, 0),
            specialized(score_level, self.rows, self.admission, self.known, scratch, some, 0, False),
        ]

    def run(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Return the parent sets of every variable: those without the class first, then by size."""
        if not numba.config.DISABLE_JIT and not are_cached(self.kernels):
            self.budget.before(
                lambda: [kernel() for kernel in self.kernels], "kernels of scores were compiled"
            )
        none, one = np.zeros(0, dtype=np.int64), np.ones(1)
        value, error = total_of(self.rows, scratch_of(self.rows, 0), none, -1)
        self._learn(none, one[:0], np.zeros(1, dtype=np.int64), value * one, error * one)
        n = self.data.n_variables
        found: list[list[tuple[int, ...]]] = [[] for _ in range(n)]
        for size in range(1, self.largest + 2):
            scored = self._level(size)
            members = self.order[scored]
            members[:, 1:].sort(axis=1)
            for child, *parents in members.tolist():
                found[child].append(tuple(parents))
            if not len(self.known.keys) > self.known.key_start[-2]:
                break
        return tuple(tuple(sorted(sets, key=lambda s: ((n - 1) in s, len(s), s))) for sets in found)

    def _level(self, size: int) -> NDArray[np.int64]:
        """Score the parent sets of ``size - 1`` members; return those that may be needed, each after its child."""
        n, last = self.data.n_variables, size == self.largest + 1
        prefixes = [np.array(p[::-1], dtype=np.int64) for p in combinations(range(n), min(size - 1, 2))]
        prefixes.sort(key=tuple)
        done: list[Any] = [None] * len(prefixes)

        def work(begin: int, end: int) -> None:
            scratch = scratch_of(self.rows, size)
            for k in reversed(range(len(prefixes) - end, len(prefixes) - begin)):
                if self.budget.over():
                    return
                done[k] = score_level(self.rows, self.admission, self.known, scratch, prefixes[k], size, last)

        stage = f"parent sets of {size - 1} of at most {self.largest} parents"
        self.budget.check(f"{stage} were scored", stage)
        in_parts(work, len(prefixes), parallel=True)
        self.budget.check(f"{stage} were scored")
        scored, results = zip(*filter(None, done), strict=True)
        self._learn(*map(np.concatenate, zip(*results, strict=True)))
        return np.concatenate(scored).reshape(-1, size)

    def _learn(
        self,
        keys: NDArray[np.int64],
        best: NDArray[np.float64],
        ranks: NDArray[np.int64],
        sums: NDArray[np.float64],
        errors: NDArray[np.float64],
    ) -> None:
        """Append the results for the sets of the next size."""
        known, order = self.known, np.argsort(keys)
        self.known = Known(
            np.append(known.keys, keys[order]),
            np.append(known.best, best[order]),
            np.append(known.key_start, len(known.keys) + len(keys)),
            np.append(known.ranks, ranks),
            np.append(known.sums, sums),
            np.append(known.errors, errors),
            np.append(known.rank_start, len(known.ranks) + len(ranks)),
        )
