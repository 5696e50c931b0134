"""Local search that changes one variable's parent set at a time, with exact scores of all its candidate sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from milpbn.heuristics.rounds import improve
from milpbn.heuristics.subtree_exchange import Scores, SubtreeExchange, changed_columns, hopeful_scores
from milpbn.heuristics.tuning import TUNING
from milpbn.network.structure import Structure
from milpbn.problem.candidates import SEVERAL
from milpbn.problem.changes import score_changes
from milpbn.problem.duals import Duals, add_gradient, empty_duals, score_temperature, weigh
from milpbn.problem.problem import Problem
from milpbn.problem.products import SLICE, add_columns
from milpbn.util.graphs import families_with_class

#: The most ends of climbs that are remembered.
MOST_OPTIMA = 10_000


class LocalSearch:
    """A structure of a problem, and moves that replace one variable's parent set.

    The search keeps the margins of all samples. One pass over a variable's coefficients then gives the scores of all
    its parent sets. The first structure must obey the problem's rules. A caller that runs several searches at a time
    sets `parallel`, whether to use threads, to False. Searches of one problem may share `optima`: where climbs ended,
    as bytes of the choices, and the passes of their last rounds.
    """

    def __init__(
        self,
        problem: Problem,
        structure: Structure,
        *,
        parallel: bool = True,
        optima: dict[bytes, int] | None = None,
    ) -> None:
        choice = problem.choice(structure)
        if choice is None:
            raise ValueError("the structure is outside the problem's candidates")
        self.problem = problem
        self.choice = choice
        self._optima = {} if optima is None else optima
        margins = problem.margins
        self.parallel = (
            parallel and margins is not None and margins.n_rows * len(margins.columns) > TUNING.parallel_from
        )
        candidates = problem.candidates
        self._column = problem.column
        self._duals: Duals | None = None
        #: Number of passes over a variable's parent sets so far. A supergradient counts as one.
        self.passes = 0
        rules = problem.rules
        alone = not (rules.max_children or rules.on_paths)
        #: Whether a climb also tries subtree exchanges, and whether a round of it is one kernel.
        self.exchanges_subtrees = alone and candidates.forest_parent is not None
        several = not alone or rules.max_features is not None or self.parallel
        self._compiled = margins is not None and not (margins.softening.smooth or several)
        self._refresh()

    def _refresh(self) -> None:
        """Recompute the margins from the coefficients, so that rounding errors do not accumulate."""
        margins = self.problem.margins
        if margins is not None:
            columns = self._column[self.choice]
            columns = np.sort(columns[columns >= 0])
            self._logits = np.zeros((margins.n_samples, margins.tables.values.shape[1]))
            add_columns(margins.tables, columns, np.ones(len(columns)), self._logits, False)

    @property
    def structure(self) -> Structure:
        """The current structure."""
        return self.problem.candidates.structure(self.choice)

    @property
    def value(self) -> float:
        """The score of the current structure, computed from the coefficients."""
        self._refresh()
        logits = self._logits if self.problem.margins is not None else None
        return self.problem.value(self.problem.indicator(self.choice), logits)

    def scores(
        self,
        variable: int,
        wanted: NDArray[np.bool_] | None = None,
        choice: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float64]:
        """Return the score with each candidate set of one variable in place of its current parent set, shape (Q_i,).

        Sets that close a cycle are scored too. `wanted`, bool of shape (Q_i,), says which sets are scored, by default
        all; the others get -inf if the problem has margins. `choice`, int64 of shape (V,), has the indices of the other
        variables' parent sets, by default those of the current structure.
        """
        self.passes += 1
        if choice is None:
            choice = self.choice
        problem, candidates = self.problem, self.problem.candidates
        a, b = int(candidates.offsets[variable]), int(candidates.offsets[variable + 1])
        rest = np.concatenate([choice[:variable], choice[variable + 1 :]])
        values = problem.linear[a:b] + problem.linear[rest].sum()
        if problem.curve is not None:
            k = problem.curve.parameters[rest].sum()
            values = values - np.array(
                [problem.curve.correction(k + added) for added in problem.curve.parameters[a:b]]
            )
        margins = problem.margins
        if margins is None:
            return values
        if wanted is None:
            wanted = np.ones(b - a, dtype=bool)
        part = np.full(b - a, -np.inf)
        part[wanted] = score_changes(
            margins.tables,
            margins.spreads,
            margins.softening,
            self._logits,
            self._column[a:b][wanted],
            margins.smallest,
            self.parallel,
            *changed_columns(variable, self.choice, choice, self._column),
        )
        return values + part

    def supergradient(self) -> NDArray[np.float64] | None:
        """Return a supergradient of the score at the current structure, shape (P,), or None.

        A supergradient g exists if the score f is concave in eta. It bounds the score of every other structure:
        f(z') <= f(z) + g @ (z' - z). It is not computed for the hard margin and for scores with a curve.
        """
        problem, margins = self.problem, self.problem.margins
        if margins is None or margins.smallest or problem.curve is not None:
            return None
        self.passes += 1
        if self._duals is None:
            self._duals = empty_duals(margins.tables)
        temperature = score_temperature(margins.softening)
        weigh(margins.tables, margins.softening, self._logits, temperature, self._duals)
        gradient = problem.linear.copy()
        everything = np.ones(len(gradient), dtype=bool)
        add_gradient(margins.tables, self._duals, everything, gradient, self.parallel)
        return gradient

    def admissible(self, variable: int, wanted: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """Return which candidate sets of a variable close no cycle and obey the rules, shape (Q_i,).

        Only those that are `wanted`, bool of shape (Q_i,), are looked at; by default all.
        """
        candidates, rules = self.problem.candidates, self.problem.rules
        chosen = [candidates.flat[p] for p in self.choice.tolist()]
        banned, more = {variable}, [variable]
        for j in more:
            below = [i for i, s in enumerate(chosen) if j in s and i not in banned]
            more += below
            banned.update(below)
        if rules.max_children:
            for j, limit in rules.max_children.items():
                if sum(j in s for i, s in enumerate(chosen) if i != variable) >= limit:
                    banned.add(j)
        sets = candidates.sets[variable]
        found = np.ones(len(sets), dtype=bool) if wanted is None else wanted.copy()
        for k in np.flatnonzero(found):
            found[k] = banned.isdisjoint(sets[k])
        if rules.max_features is not None:
            c = len(chosen) - 1
            others = [s if i != variable else () for i, s in enumerate(chosen)]
            used = families_with_class(others) - {c}
            for k in np.flatnonzero(found):
                family = {variable, *candidates.sets[variable][k]}
                found[k] = len(used | family - {c} if c in family else used) <= rules.max_features
        if rules.on_paths:
            for k in np.flatnonzero(found):
                chosen[variable] = candidates.sets[variable][k]
                found[k] = rules.keeps_paths(chosen)
        return found

    def move(self, variable: int, candidate: int) -> None:
        """Give a variable the candidate set with this position among its candidate sets."""
        new = int(self.problem.candidates.offsets[variable]) + candidate
        margins = self.problem.margins
        if margins is not None:
            columns = self._column[[self.choice[variable], new]]
            used = columns >= 0
            add_columns(margins.tables, columns[used], np.array([-1.0, 1.0])[used], self._logits, False)
        self.choice[variable] = new

    def climb(self, rng: np.random.Generator, stopping: Callable[[], bool] = lambda: False) -> float:
        """Climb to a local optimum and return its score.

        Each round goes through the variables in random order and gives each the parent set with the best score. The
        climb ends when no change of one variable improves the score. If features have at most one feature parent,
        the score has a supergradient and there are no child limits, no subtree exchange improves it either
        (`SubtreeExchange`).

        Changes that cannot gain according to the supergradient are not scored. The supergradient is computed once per
        round, so it is only a heuristic after the first move of a round. The last round makes no move, so its
        supergradient is valid throughout, and every change that could improve the score has been scored. A later climb
        that comes to the same structure ends there without that round. It counts the passes of the round, so that
        what depends on the passes is the same as without the memory.
        """
        candidates, optima = self.problem.candidates, self._optima
        known, improved = np.append(np.full(candidates.n_sets, -1), 0), True
        while improved and not stopping():
            self._add_features(stopping)
            improved = False
            key, before, order = self.choice.tobytes(), self.passes, rng.permutation(candidates.n_variables)
            if key in optima:
                self.passes += optima[key]
                break
            supergradient = self.supergradient()
            if self._compiled and supergradient is not None:
                improved, order = self._improve(supergradient, order, known, stopping), order[:0]
            for i in order:
                if len(candidates.sets[i]) == 1:
                    continue
                now = int(self.choice[i] - candidates.offsets[i])
                allowed = np.ones(len(candidates.sets[i]), dtype=bool)
                if supergradient is not None:
                    slopes = supergradient[candidates.offsets[i] : candidates.offsets[i + 1]]
                    allowed = slopes > slopes[now] + TUNING.least_gain
                    if not allowed.any():
                        continue
                if stopping():
                    break
                allowed = self.admissible(i, allowed)
                if not allowed.any():
                    continue
                allowed[now] = True
                values = np.where(allowed, self.scores(i, allowed), -np.inf)
                best = int(np.argmax(values))
                if values[best] > values[now] + TUNING.least_gain:
                    self.move(i, best)
                    improved = True
            self._refresh()
            if not improved and supergradient is not None and self.exchanges_subtrees and not stopping():
                improved = self._exchange_subtree(supergradient, stopping)
                known[-1] += improved
            if not improved and len(optima) < MOST_OPTIMA and not stopping():
                optima[key] = self.passes - before
        return self.value

    def _improve(
        self,
        slopes: NDArray[np.float64],
        order: NDArray[np.int64],
        known: NDArray[np.int64],
        stopping: Callable[[], bool],
    ) -> bool:
        """Give variables their best parent sets by `improve`, some at a time; return whether any was changed."""
        margins, candidates, improved = self.problem.margins, self.problem.candidates, False
        assert margins is not None
        data = margins.tables, margins.spreads, margins.softening, self.problem.linear
        sets = candidates.offsets, candidates.firsts, candidates.arcs[0], self._column, slopes
        each = max(1, SLICE // max(1, self._logits.size * int(np.diff(candidates.offsets).max())))
        for some in np.split(order, range(each, len(order), each)):
            if stopping():
                break
            moves, looked = improve(*data, *sets, some, self.choice, self._logits, known)
            improved |= moves > 0
            self.passes += looked
        return improved

    def _add_features(self, stopping: Callable[[], bool]) -> None:
        """Where few features are allowed, add the best one to those that predictions depend on, while that gains."""
        most, offsets = self.problem.rules.max_features, self.problem.candidates.offsets
        while most is not None and len(used := self.structure.markov_blanket) < most and not stopping():
            gains = [(TUNING.least_gain, -1, 0)]
            for i in set(range(len(offsets) - 2)) - used:
                allowed, now = self.admissible(i), int(self.choice[i] - offsets[i])
                values = np.where(allowed, self.scores(i, allowed), -np.inf)
                best = int(np.argmax(values))
                gains.append((float(values[best] - values[now]), i, best))
            _, i, best = max(gains)
            if i < 0:
                break
            self.move(i, best)

    def _exchange_subtree(self, supergradient: NDArray[np.float64], stopping: Callable[[], bool]) -> bool:
        """Make a subtree exchange that improves the score, and return whether there is one."""
        before, value = self.choice, self.value
        features, known = self.choice[:-1], self.problem.candidates.forest_parent
        if known is None or SEVERAL in known[features]:  # no forest
            return False
        exchange = SubtreeExchange(self.problem.candidates, self.choice, supergradient)
        margins, passes = self.problem.margins, self.passes
        scores: Scores = self.scores
        if margins is not None and not margins.softening.smooth:
            scores = hopeful_scores(self.problem, self.choice, self._logits, value)
        other = exchange.first_gain(value, scores, TUNING.least_gain, stopping)
        self.passes = passes + exchange.tried
        if other is None:
            return False
        self.choice = other
        self._refresh()
        if self.value > value + TUNING.least_gain:
            return True
        # `scores` and `value` add in different orders. A gain by rounding only could be repeated for ever.
        self.choice = before
        self._refresh()
        return False

    def perturb(self, rng: np.random.Generator, changes: int) -> None:
        """Give `changes` random variables random admissible parent sets."""
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
    restarts: int = TUNING.restarts,
    stopping: Callable[[], bool] = lambda: False,
    found: Callable[[Structure], object] = lambda structure: None,
    parallel: bool = True,
) -> Structure | None:
    """Climb from every start, then repeatedly perturb the best structure and climb again; return the best structure.

    It is None if there is no usable start: those outside the candidate sets or the child limits are skipped. `restarts`
    is the number of perturbations. `stopping` is called often, and the search ends when it returns True. `found` is
    called with every structure that is better than all previous ones. `parallel` says whether to use threads.
    """
    rng, optima = np.random.default_rng(random_state), dict[bytes, int]()
    best: tuple[float, NDArray[np.int64]] | None = None

    def keep(current: LocalSearch, value: float) -> None:
        nonlocal best
        if best is None or value > best[0] + TUNING.least_gain:
            best = value, current.choice.copy()
            found(current.structure)

    for start in starts:
        if not problem.obeys(start):
            continue
        current = LocalSearch(problem, start, parallel=parallel, optima=optima)
        keep(current, current.value)
        if stopping():
            break
        keep(current, current.climb(rng, stopping))
    if best is None:
        return None
    for _ in range(restarts):
        if stopping():
            break
        structure = problem.candidates.structure(best[1])
        current = LocalSearch(problem, structure, parallel=parallel, optima=optima)
        current.perturb(rng, int(rng.integers(TUNING.fewest_changes, TUNING.most_changes)))
        keep(current, current.climb(rng, stopping))
    return problem.candidates.structure(best[1])


def best_neighbours(
    problem: Problem,
    structure: Structure,
    cutoff: Callable[[], float],
    most: int,
    stopping: Callable[[], bool],
    *,
    parallel: bool,
) -> Iterator[tuple[NDArray[np.int64], float]]:
    """Yield the neighbours that score more than a cutoff, with their scores; at most `most` of every variable.

    A neighbour is an int64 array of shape (V,), the indices of its parent sets; its score in nats is finite. The scores
    are changes to that of the structure, so that they have a little more rounding than others. The structure must obey
    the problem's rules; so do the neighbours. `cutoff` returns the score that a neighbour must exceed; it may rise
    meanwhile. `stopping` is asked before each variable. `parallel` says whether large products may use threads.
    """
    search = LocalSearch(problem, structure, parallel=parallel)
    slopes, value = search.supergradient(), search.value
    offsets = problem.candidates.offsets
    for i in range(problem.candidates.n_variables):
        if stopping():
            return
        wanted = search.admissible(i)
        now = search.choice[i] - offsets[i]
        wanted[now] = False
        if slopes is not None:
            # No neighbour scores more than its supergradient says.
            own = slopes[offsets[i] : offsets[i + 1]]
            wanted &= value + own - own[now] > cutoff()
        if not wanted.any():
            continue
        values = np.where(wanted, search.scores(i, wanted), -np.inf)
        for k in np.argsort(-values, kind="stable")[:most]:
            if not values[k] > cutoff():
                break
            choice = search.choice.copy()
            choice[i] = offsets[i] + k
            yield choice, float(values[k])
