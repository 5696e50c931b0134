"""Enumeration of every structure of a tiny problem, in slow, plain Python that is independent of milpbn's scores.

The code follows the definitions: it counts, estimates, multiplies and compares. It merges and prunes nothing, and
imports nothing from `milpbn.problem` or `milpbn.milp`. Only the last step, from the log-probabilities of single
variables to the score, is taken for many structures at once, in arrays. Numbers in parentheses, such as (9), are the
equations of Peharz and Pernkopf (2012), P12.

A structure is a tuple with the parents of each variable as a tuple of ascending indices, the class variable last, like
`Structure.parents`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from math import inf, lgamma, log, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milpbn.data.dataset import Dataset, Variable

Parents = tuple[int, ...]
StructureParents = tuple[Parents, ...]
Row = tuple[int, ...]
Floats = NDArray[np.float64]

#: Structures whose log-probabilities are in memory at the same time.
AT_ONCE = 2000


class MarginScore(NamedTuple):
    """A score on margins.

    `value` returns the samples' terms, given their log-joints with the true class, their log-joints with the competing
    classes, along the first axis, and gamma. With `binary`, the class is re-read as {c, not c}. With `smallest`, the
    score is the smallest term, not the sum.
    """

    value: Callable[[Floats, Floats, float], Floats]
    binary: bool = False
    smallest: bool = False


MARGIN_SCORES = {
    "sm": MarginScore(lambda true, rivals, gamma: np.minimum(gamma, true - rivals.max(axis=0))),
    "sbm": MarginScore(lambda true, rivals, gamma: np.minimum(gamma, true - rivals.max(axis=0)), binary=True),
    "hard-margin": MarginScore(lambda true, rivals, gamma: true - rivals.max(axis=0), smallest=True),
    "cll": MarginScore(lambda true, rivals, gamma: -np.log(1.0 + np.exp(rivals - true).sum(axis=0))),
}
#: Scores as functions of log-likelihood, number of parameters and sum of the weights.
PENALISED_SCORES: dict[str, Callable[[float, int, float], float]] = {
    "ll": lambda fit, k, m: fit,
    "mdl": lambda fit, k, m: fit - k / 2 * log(m),
    "aic": lambda fit, k, m: fit - k,
    "aicc": lambda fit, k, m: fit - k - k * (k + 1) / (m - k - 1) if k < m - 1 else -inf,
}
#: Terms of scores that are sums over families. A term is a function of the family's counts, with one row for each
#: parent configuration that occurs, of the number of all configurations, and of the equivalent sample size.
#: Configurations that do not occur add 0.
FAMILY_SCORES: dict[str, Callable[[list[list[float]], int, float], float]] = {
    "bdeu": lambda rows, q, ess: sum(
        lgamma(ess / q)
        - lgamma(ess / q + sum(row))
        + sum(lgamma(ess / (q * len(row)) + n) - lgamma(ess / (q * len(row))) for n in row)
        for row in rows
    ),
}
GENERATIVE_SCORES = (*PENALISED_SCORES, *FAMILY_SCORES)
SCORES = (*MARGIN_SCORES, *GENERATIVE_SCORES)


@dataclass(frozen=True)
class Best:
    """The optimum of a problem.

    Attributes
    ----------
    objective : float
        Best score in nats; -inf if no structure is allowed.
    structures : tuple of structures
        All structures whose score equals the best one up to 1e-9 relative to max(1, abs(objective)).
    ranked : tuple of (float, structure)
        The best structures with their scores, best first: as many as were asked for, if there are so many.
    """

    objective: float
    structures: tuple[StructureParents, ...]
    ranked: tuple[tuple[float, StructureParents], ...] = ()


def enumerate_best(
    data: Dataset,
    score: str,
    *,
    max_parents: int = 2,
    class_parents: bool = True,
    parent_sets: str = "paper",
    allowed: Callable[[StructureParents], bool] | None = None,
    candidates: Sequence[Sequence[Sequence[int]]] | None = None,
    bonus: Callable[[StructureParents], float] = lambda parents: 0.0,
    most: int = 0,
    **options: Any,
) -> Best:
    """Score every acyclic structure and return the best.

    Parameters
    ----------
    data : Dataset
        Training data without unknown values.
    score : str
        One of `SCORES`.
    max_parents, class_parents, parent_sets
        See `candidate_sets`.
    allowed : callable, optional
        User constraints: structures for which it returns False are not allowed.
    candidates : sequence of sequences of parent sets, optional
        Candidate parent sets of each variable, instead of those of `candidate_sets`.
    bonus : callable
        Returns a term that is added to a structure's score, such as the weights of its arcs.
    most : int
        Number of structures in `Best.ranked`.
    **options
        See `score_structure`.
    """
    if candidates is None:
        candidates = candidate_sets(data.n_variables, max_parents, class_parents, parent_sets)
    fixed = tuple(tuple(tuple(sorted(s)) for s in sets) for sets in candidates)
    problem = _Problem(data, score, **options)
    structures = [g for g in acyclic_structures(fixed) if allowed is None or allowed(g)]
    scored = [(value + bonus(g), g) for value, g in zip(problem.scores(structures), structures, strict=True)]
    objective = max((value for value, _ in scored), default=-inf)
    if objective == -inf:
        return Best(-inf, ())
    tolerance = 1e-9 * max(1.0, abs(objective))
    ranked = sorted(scored, key=lambda pair: -pair[0])[:most] if most else []
    return Best(objective, tuple(g for value, g in scored if value >= objective - tolerance), tuple(ranked))


def score_structure(data: Dataset, parents: Sequence[Sequence[int]], score: str, **options: Any) -> float:
    """Return the score of one structure, in nats; the options are the further arguments of `_Problem`.

    theta are the smoothed parameters (n + a sp t) / (n_h + a sp), where t is 1 / sp, or with smoothing_towards
    "marginal" or "class" the smoothed parameter without parents or given the class alone (`_Problem._prior_parents`), M
    is the sum of the weights w, LL the unsmoothed log-likelihood, and k the number of free parameters:

    - sm: sum of w min(gamma, log P(c_m, z_m) - max over c != c_m of log P(c, z_m)), P12 (9);
    - sbm: the same with the class re-read as {c_m, not c_m} for each sample, P12 (21);
    - hard-margin: the smallest log-margin of a sample;
    - cll: sum of w log P(c_m | z_m);
    - ll: LL; mdl: LL - k/2 log M; aic: LL - k; aicc: LL - k - k (k + 1) / (M - k - 1), -inf if k >= M - 1;
    - bdeu: log marginal likelihood under Dirichlet priors with alpha = ess / (sp q).

    To the first four, - penalty k + hybrid LL is added.

    With leave_one_out the parameters are estimated once for every row of the data, with one unit of its weight less,
    and give the row's term. LL is then the sum of w log P(c_m, z_m) with these smoothed parameters.
    """
    asked = score, options
    if not _last or _last[0] is not data or _last[1] != asked:
        _last[:] = data, asked, _Problem(data, score, **options)
    (value,) = _last[2].scores([tuple(tuple(sorted(p)) for p in parents)])
    return value


#: The data, the arguments and the problem of the last call of `score_structure`: many tests score one structure after
#: the other, which share families.
_last: list[Any] = []


def candidate_sets(
    n_variables: int, max_parents: int, class_parents: bool = True, parent_sets: str = "paper"
) -> list[list[Parents]]:
    """Return the candidate parent sets of each variable.

    With "paper", a feature has {} or a set with the class; with "all", any set of other variables. A set has at
    most max_parents variables, including the class. The class variable has sets of features, or only {}.
    """
    class_index = n_variables - 1
    result = []
    for i in range(n_variables):
        sets = _subsets([j for j in range(n_variables) if j != i], max_parents)
        if i == class_index:
            sets = sets if class_parents else [()]
        elif parent_sets == "paper":
            sets = [s for s in sets if not s or class_index in s]
        elif parent_sets != "all":
            raise ValueError(f"unknown parent sets {parent_sets!r}")
        result.append(sets)
    return result


@lru_cache(maxsize=64)
def acyclic_structures(candidates: tuple[tuple[Parents, ...], ...]) -> tuple[StructureParents, ...]:
    """Return every acyclic choice of one parent set for each variable."""
    return tuple(_extend(candidates, ()))


def random_dataset(
    rng: np.random.Generator,
    n_features: int,
    n_classes: int,
    max_states: int,
    n_samples: int,
    weights: bool = False,
) -> Dataset:
    """Return a tiny random problem whose variables depend on each other.

    Features have 2 to max_states states. A value is usually a random function of the class and of the previous
    feature, and sometimes noise. Every state of every variable occurs. Weights are 1, or real in [0.25, 3].

    Raises
    ------
    ValueError
        If n_samples is smaller than a variable's number of states, or max_states < 2.
    """
    states = [int(rng.integers(2, max_states + 1)) for _ in range(n_features)] + [n_classes]
    if n_samples < max(states):
        raise ValueError("every state needs a sample")
    codes = np.zeros((n_samples, n_features + 1), dtype=np.int32)
    codes[:, -1] = rng.integers(0, n_classes, n_samples)
    for i in range(n_features):
        before = codes[:, i - 1] if i else codes[:, -1]
        function = rng.integers(0, states[i], (n_classes, max(states)))
        noise = rng.integers(0, states[i], n_samples)
        codes[:, i] = np.where(rng.random(n_samples) < 0.3, noise, function[codes[:, -1], before])
    for i, n_states in enumerate(states):  # write each state into one row if some state does not occur
        rows = rng.permutation(n_samples)[:n_states]
        if len(np.unique(codes[:, i])) < n_states:
            codes[rows, i] = np.arange(n_states)
    names = [f"X{i + 1}" for i in range(n_features)] + ["C"]
    variables = tuple(
        Variable(name, tuple(f"s{j}" for j in range(n))) for name, n in zip(names, states, strict=True)
    )
    sample_weights = np.round(rng.uniform(0.25, 3.0, n_samples), 2) if weights else np.ones(n_samples)
    return Dataset("random", variables, codes, sample_weights)


def _subsets(items: Sequence[int], max_size: int) -> list[Parents]:
    return [s for size in range(max_size + 1) for s in combinations(items, size)]


def _extend(candidates: Sequence[Sequence[Parents]], chosen: StructureParents) -> Iterator[StructureParents]:
    """Yield the acyclic completions of the parent sets chosen for the first variables."""
    if len(chosen) == len(candidates):
        yield chosen
        return
    for parents in candidates[len(chosen)]:
        if not _close_cycle(chosen, parents):
            yield from _extend(candidates, (*chosen, parents))


def _close_cycle(chosen: StructureParents, parents: Parents) -> bool:
    """Return whether the next variable is among its own ancestors if it has these parents."""
    following = len(chosen)
    waiting, seen = list(parents), set(parents)
    while waiting:
        i = waiting.pop()
        if i == following:
            return True
        if i < following:  # later variables have no parents yet
            waiting += [j for j in chosen[i] if j not in seen]
            seen.update(chosen[i])
    return False


class _Problem:
    """Data and score, with the terms of each (variable, parent set) computed once."""

    def __init__(
        self,
        data: Dataset,
        score: str,
        *,
        gamma: float | None = None,
        smoothing: float = 1.0,
        ess: float = 1.0,
        penalty: float = 0.0,
        hybrid: float = 0.0,
        leave_one_out: bool = False,
        smoothing_towards: str = "uniform",
    ) -> None:
        if score not in (*MARGIN_SCORES, *PENALISED_SCORES, *FAMILY_SCORES):
            raise ValueError(f"unknown score {score!r}")
        if score in ("sm", "sbm") and gamma is None:
            raise ValueError(f"{score} needs gamma")
        if score in GENERATIVE_SCORES and (penalty or hybrid):
            raise ValueError("penalty and hybrid belong to margin scores")
        if leave_one_out and score not in (*MARGIN_SCORES, "ll"):
            raise ValueError("leave_one_out belongs to margin scores and ll")
        if smoothing_towards not in ("uniform", "marginal", "class"):
            raise ValueError(f"unknown prior {smoothing_towards!r}")
        if smoothing_towards != "uniform" and score in GENERATIVE_SCORES:
            raise ValueError("smoothing_towards belongs to margin scores")
        self.towards = smoothing_towards
        self.score_name, self.gamma, self.smoothing, self.ess = score, gamma, smoothing, ess
        self.penalty, self.hybrid, self.leave_one_out = penalty, hybrid, leave_one_out
        self.rows: list[Row] = [tuple(row) for row in data.codes.tolist()]
        self.weights: list[float] = data.weights.tolist()
        self.n_states: list[int] = [v.n_states for v in data.variables]
        if any(code < 0 for row in self.rows for code in row):
            raise ValueError("training data has no unknown values")
        self.total = sum(self.weights)
        # Many structures share a family.
        self.rival_terms = cache(self._rival_terms)
        self.log_likelihood_term = cache(self._log_likelihood_term)
        self.family_term = cache(self._family_term)

    def scores(self, structures: Sequence[StructureParents]) -> list[float]:
        if self.score_name not in MARGIN_SCORES:
            return [self._generative_score(g) for g in structures]
        parts = (structures[k : k + AT_ONCE] for k in range(0, len(structures), AT_ONCE))
        values = [value for part in parts for value in self._margin_scores(part)]
        if self.penalty:
            values = [
                v - self.penalty * self._n_parameters(g) for v, g in zip(values, structures, strict=True)
            ]
        if self.hybrid:
            values = [
                v + self.hybrid * self._log_likelihood(g) for v, g in zip(values, structures, strict=True)
            ]
        return values

    def _generative_score(self, parents: StructureParents) -> float:
        if self.score_name in FAMILY_SCORES:
            return sum(self.family_term(i, p) for i, p in enumerate(parents))
        value = PENALISED_SCORES[self.score_name]
        return value(self._log_likelihood(parents), self._n_parameters(parents), self.total)

    def _margin_scores(self, structures: Sequence[StructureParents]) -> list[float]:
        score = MARGIN_SCORES[self.score_name]
        gamma = inf if self.gamma is None else self.gamma
        # Joint log-probabilities: an axis of structures, one of samples, and one of classes, the true one first.
        joint = sum(
            np.stack([self.rival_terms(i, g[i]) for g in structures]) for i in range(len(self.n_states))
        )
        values = score.value(joint[..., 0], np.moveaxis(joint[..., 1:], -1, 0), gamma)
        weights = np.array(self.weights)
        if score.smallest:
            return values[:, weights > 0].min(axis=1, initial=inf).tolist()
        return (values * weights).sum(axis=1).tolist()

    def _rival_terms(self, i: int, parents: Parents) -> Floats:
        """Return a variable's log theta for each sample: with the true class, then with each competing class."""
        if not MARGIN_SCORES[self.score_name].binary:
            log_thetas = self._smoothed(self.rows, self.n_states, i, parents)
            classes = range(self.n_states[-1])
            return np.array(
                [
                    (log_theta(row), *(log_theta((*row[:-1], c)) for c in classes if c != row[-1]))
                    for row, log_theta in zip(self.rows, log_thetas, strict=True)
                ]
            )
        # P12 (20): one set of parameters for each class c, estimated with the class re-read as {c, not c}.
        result: list[tuple[float, ...]] = [()] * len(self.rows)
        for c in range(self.n_states[-1]):
            binary = [(*row[:-1], 0 if row[-1] == c else 1) for row in self.rows]
            log_thetas = self._smoothed(binary, [*self.n_states[:-1], 2], i, parents)
            for m, (row, log_theta) in enumerate(zip(self.rows, log_thetas, strict=True)):
                if row[-1] == c:
                    result[m] = (log_theta((*row[:-1], 0)), log_theta((*row[:-1], 1)))
        return np.array(result)

    def _smoothed(
        self, rows: list[Row], n_states: list[int], i: int, parents: Parents
    ) -> list[Callable[[Row], float]]:
        """Return, for each sample, a function from a row to log theta of variable i's state given its parents' states.

        The parameters are those that score the sample: of all data, or without a unit of the sample's weight.
        """
        a, prior_parents = self.smoothing, self._prior_parents(parents, n_states)

        families = [parents] if prior_parents is None else [parents, prior_parents]
        counts = [self._counts(rows, i, of, self.weights) for of in families]

        def function(left_out: Row | None) -> Callable[[Row], float]:
            tables = [(family.copy(), configuration.copy()) for family, configuration in counts]
            for of, (family, configuration) in zip(families, tables, strict=True):
                if left_out is not None:
                    h = tuple(left_out[p] for p in of)
                    family[left_out[i], h] -= 1.0
                    configuration[h] -= 1.0

            def log_theta(row: Row) -> float:
                (family, configuration), *prior = tables
                h, mean = tuple(row[p] for p in parents), 1 / n_states[i]
                for prior_family, prior_configuration in prior:
                    g = tuple(row[p] for p in families[1])
                    mean = (prior_family[row[i], g] + a) / (prior_configuration[g] + a * n_states[i])
                return log(
                    (family[row[i], h] + a * n_states[i] * mean) / (configuration[h] + a * n_states[i])
                )

            return log_theta

        if not self.leave_one_out:
            return [function(None)] * len(rows)
        return [function(row) for row in rows]

    def _prior_parents(self, parents: Parents, n_states: list[int]) -> Parents | None:
        """Return the parents that the mean of a family's prior has; None for the uniform mean.

        Parents with one state do not count: with no others than in the prior's table, the mean is uniform.
        """
        class_index = len(n_states) - 1
        kept = (class_index,) if self.towards == "class" and class_index in parents else ()
        more = [p for p in parents if p not in kept and n_states[p] > 1]
        return kept if self.towards != "uniform" and more else None

    def _counts(
        self, rows: list[Row], i: int, parents: Parents, weights: list[float]
    ) -> tuple[dict[tuple[int, Row], float], dict[Row, float]]:
        """Return the weights n(x_i, h) of states and n(h) of parent configurations; 0 if they do not occur."""
        family: dict[tuple[int, Row], float] = defaultdict(float)
        configuration: dict[Row, float] = defaultdict(float)
        for row, weight in zip(rows, weights, strict=True):
            h = tuple(row[p] for p in parents)
            family[row[i], h] += weight
            configuration[h] += weight
        return family, configuration

    def _log_likelihood(self, parents: StructureParents) -> float:
        return sum(self.log_likelihood_term(i, p) for i, p in enumerate(parents))

    def _log_likelihood_term(self, i: int, parents: Parents) -> float:
        if self.leave_one_out:
            log_thetas = self._smoothed(self.rows, self.n_states, i, parents)
            return sum(
                w * log_theta(row)
                for row, w, log_theta in zip(self.rows, self.weights, log_thetas, strict=True)
            )
        family, configuration = self._counts(self.rows, i, parents, self.weights)
        return sum(n * log(n / configuration[h]) for (_, h), n in family.items() if n > 0)

    def _family_term(self, i: int, parents: Parents) -> float:
        family, configuration = self._counts(self.rows, i, parents, self.weights)
        rows = [[family[j, h] for j in range(self.n_states[i])] for h in configuration]
        q = prod(self.n_states[p] for p in parents)
        return FAMILY_SCORES[self.score_name](rows, q, self.ess)

    def _n_parameters(self, parents: StructureParents) -> int:
        return sum(
            (r - 1) * prod(self.n_states[j] for j in p) for r, p in zip(self.n_states, parents, strict=True)
        )
