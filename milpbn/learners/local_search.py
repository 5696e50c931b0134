"""Local search over single-variable parent changes, with exact scores of all changes of a variable at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from milpbn.bounds.kernels import HARD, Duals, add_gradient, empty_duals, weigh
from milpbn.learners.rehanging import Rehanging
from milpbn.network.structure import Structure
from milpbn.scores.changes import score_changes
from milpbn.scores.problem import Problem
from milpbn.scores.products import add_columns, total_score

#: Changes that gain less, in nats (or sample weights, under the classification rate), are rounding.
MINIMAL_GAIN = 1e-9
#: Threads pay from so many coefficients on.
LARGE = 10_000_000
#: A restart begins with at least and less than so many random changes.
CHANGES = 2, 6
#: Perturbations of the best structure, where nobody says how many.
RESTARTS = 20


class LocalSearch:
    """A structure of a problem, and moves that re-choose one variable's parent set.

    The margins of all samples are kept, so that the scores of all parent sets of a variable come out of one
    pass over the variable's coefficients.

    Parameters
    ----------
    problem : Problem
        With margin coefficients or linear scores.
    structure : Structure
        Where to start; it must obey the problem's rules.
    parallel : bool
        Use threads; not where several searches run at once.
    """

    def __init__(self, problem: Problem, structure: Structure, *, parallel: bool = True) -> None:
        choice = problem.choice(structure)
        if choice is None:
            raise ValueError("the structure is outside the problem's candidates")
        self.problem = problem
        self.choice = choice
        margins = problem.margins
        self.parallel = parallel and margins is not None and margins.n_rows * len(margins.columns) > LARGE
        candidates = problem.candidates
        self._column = problem.column
        self._duals: Duals | None = None
        #: Climbs look at turned subtrees, too.
        self.turning = candidates.feature_parent is not None and not problem.rules.max_children
        self._refresh()

    def _refresh(self) -> None:
        """Recompute the margins from scratch, so that rounding does not add up."""
        margins = self.problem.margins
        if margins is not None:
            self._logits = margins.logits(self.problem.indicator(self.choice))

    @property
    def structure(self) -> Structure:
        """The current structure."""
        return self.problem.candidates.structure(self.choice)

    @property
    def value(self) -> float:
        """The score of the current structure, by the coefficients."""
        return self.problem.value(self.problem.indicator(self.choice))

    def scores(
        self,
        variable: int,
        wanted: NDArray[np.bool_] | None = None,
        choice: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float64]:
        """Return the score with each candidate set of one variable in place of the current one.

        float64 array, shape (number of candidates,); cyclic choices are scored too. With `wanted`, a bool array
        of that shape, only those candidates are scored, and the others are -inf. With `choice`, shape (V,), the other
        variables have those entries instead of their current ones.
        """
        if choice is None:
            choice = self.choice
        problem, candidates = self.problem, self.problem.candidates
        a, b = int(candidates.offsets[variable]), int(candidates.offsets[variable + 1])
        rest = np.delete(choice, variable)
        values = problem.linear[a:b] + problem.linear[rest].sum()
        if problem.curve is not None:
            k = problem.curve.parameters[rest].sum()
            values = values - np.array(
                [problem.curve.correction(k + own) for own in problem.curve.parameters[a:b]]
            )
        margins = problem.margins
        if margins is None:
            return values
        if wanted is None:
            wanted = np.ones(b - a, dtype=bool)
        columns = self._column[a:b]
        base = self._logits_without(variable, choice)
        part = np.full(b - a, -np.inf)
        idle = wanted & (columns < 0)
        if idle.any():
            part[idle] = total_score(margins.flat, margins.softening, base, margins.smallest)
        active = np.flatnonzero(wanted & (columns >= 0))
        if len(active):
            part[active] = score_changes(
                margins.flat,
                margins.spreads,
                margins.softening,
                base,
                columns[active],
                margins.smallest,
                self.parallel,
            )
        return values + part

    def _logits_without(self, variable: int, choice: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the logits of all other variables' entries, `choice`, shape (M, Q)."""
        margins = self.problem.margins
        assert margins is not None
        changed = choice != self.choice
        changed[variable] = False
        entries = np.concatenate([self.choice[[variable]], self.choice[changed], choice[changed]])
        columns = self._column[entries]
        signs = np.repeat([-1.0, 1.0], [1 + np.count_nonzero(changed), np.count_nonzero(changed)])
        logits = self._logits.copy()
        used = columns >= 0
        add_columns(margins.flat, columns[used], signs[used], logits, False)
        return logits

    def _promise(self) -> NDArray[np.float64] | None:
        """Return weights whose difference bounds what any change of a parent set gains, shape (P,).

        The score is concave in eta, so that a supergradient g at the current structure bounds every other
        structure: f(z') <= f(z) + g @ (z' - z). None for scores without one.
        """
        problem, margins = self.problem, self.problem.margins
        if margins is None or margins.smallest or problem.curve is not None:
            return None
        if self._duals is None:
            self._duals = empty_duals(margins.flat)
        temperature = 1.0 if margins.likelihood else HARD
        weigh(margins.flat, margins.softening, self._logits, temperature, self._duals)
        gradient = problem.linear.copy()
        everything = np.ones(len(gradient), dtype=bool)
        add_gradient(margins.flat, self._duals, everything, gradient, self.parallel)
        return gradient

    def admissible(self, variable: int) -> NDArray[np.bool_]:
        """Return which candidate sets of a variable keep the graph acyclic and the child limits, shape (Q_i,)."""
        candidates, rules = self.problem.candidates, self.problem.rules
        chosen = [candidates.flat[p] for p in self.choice]
        below = {variable}
        grown = True
        while grown:
            more = {i for i, s in enumerate(chosen) if i not in below and not below.isdisjoint(s)}
            grown = bool(more)
            below |= more
        banned = set(below)
        if rules.max_children:
            for j, limit in rules.max_children.items():
                if sum(j in s for i, s in enumerate(chosen) if i != variable) >= limit:
                    banned.add(j)
        return np.array([banned.isdisjoint(s) for s in candidates.sets[variable]])

    def move(self, variable: int, candidate: int) -> None:
        """Give a variable its candidate set of the given number."""
        new = int(self.problem.candidates.offsets[variable]) + candidate
        margins = self.problem.margins
        if margins is not None:
            for sign, column in ((-1.0, self._column[self.choice[variable]]), (1.0, self._column[new])):
                if column >= 0:
                    add_columns(margins.flat, column[None], np.array([sign]), self._logits, False)
        self.choice[variable] = new

    def climb(self, rng: np.random.Generator, stopping: Callable[[], bool] = lambda: False) -> float:
        """Re-choose variables in random order until no single change gains; return the score.

        Where features have at most one feature parent each, the score has a supergradient and nobody limits
        children, no turned subtree may gain either (`Rehanging`).
        After a move the promise is out of date and only a guess at what is worth a look, until the next round.
        The last round moves nothing, and so has looked at every change that could gain.
        """
        candidates = self.problem.candidates
        improved = True
        while improved and not stopping():
            improved = False
            promise = self._promise()
            for i in rng.permutation(candidates.n_variables):
                if len(candidates.sets[i]) == 1:
                    continue
                if stopping():
                    break
                allowed = self.admissible(i)
                now = int(self.choice[i] - candidates.offsets[i])
                if promise is not None:
                    own = promise[candidates.offsets[i] : candidates.offsets[i + 1]]
                    allowed &= own > own[now] + MINIMAL_GAIN
                    if not allowed.any():
                        continue
                    allowed[now] = True
                values = np.where(allowed, self.scores(i, allowed), -np.inf)
                best = int(np.argmax(values))
                if values[best] > values[now] + MINIMAL_GAIN:
                    self.move(i, best)
                    improved = True
            self._refresh()
            if not improved and promise is not None and self.turning and not stopping():
                improved = self._turn(promise, stopping)
        return self.value

    def _turn(self, promise: NDArray[np.float64], stopping: Callable[[], bool]) -> bool:
        """Turn a subtree round if that gains."""
        before, value = self.choice, self.value
        other = Rehanging(self, promise).first_gain(MINIMAL_GAIN, stopping)
        if other is None:
            return False
        self.choice = other
        self._refresh()
        if self.value > value + MINIMAL_GAIN:
            return True
        # The scores of changes are other sums, which may gain in rounding: for ever, there and back again.
        self.choice = before
        self._refresh()
        return False

    def perturb(self, rng: np.random.Generator, changes: int) -> None:
        """Give some random variables random admissible parent sets."""
        n = self.problem.candidates.n_variables
        for i in rng.choice(n, size=min(changes, n), replace=False):
            allowed = np.flatnonzero(self.admissible(int(i)))
            if len(allowed):
                self.move(int(i), int(rng.choice(allowed)))
        self._refresh()


def search(
    problem: Problem,
    starts: Iterable[Structure],
    *,
    random_state: int = 0,
    restarts: int = RESTARTS,
    stopping: Callable[[], bool] = lambda: False,
    found: Callable[[Structure], None] = lambda structure: None,
    parallel: bool = True,
) -> Structure | None:
    """Climb from every start, then perturb the best structure and climb again.

    Parameters
    ----------
    problem : Problem
        What to maximise.
    starts : iterable of Structure
        Starting points; those outside the candidates or the child limits are passed over.
    random_state : int
        Seed.
    restarts : int
        Number of perturbations of the best structure.
    stopping : callable
        Asked often; True ends the search.
    found : callable
        Told of every structure that is better than all before.
    parallel : bool
        Use threads.

    Returns
    -------
    Structure or None
        The best one, or None if no start could be used.
    """
    rng = np.random.default_rng(random_state)
    best: tuple[float, NDArray[np.int64]] | None = None

    def keep(current: LocalSearch, value: float) -> None:
        nonlocal best
        if best is None or value > best[0] + MINIMAL_GAIN:
            best = value, current.choice.copy()
            found(current.structure)

    for start in starts:
        if not problem.obeys(start):
            continue
        current = LocalSearch(problem, start, parallel=parallel)
        keep(current, current.value)
        if stopping():
            break
        keep(current, current.climb(rng, stopping))
    if best is None:
        return None
    for _ in range(restarts):
        if stopping():
            break
        current = LocalSearch(problem, problem.candidates.structure(best[1]), parallel=parallel)
        current.perturb(rng, int(rng.integers(*CHANGES)))
        keep(current, current.climb(rng, stopping))
    return problem.candidates.structure(best[1])
